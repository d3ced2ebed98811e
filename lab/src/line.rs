//! A line to a daemon, or to a session beneath it (docs/daemon.md), for what drives them here.

#![expect(clippy::indexing_slicing, reason = "an index into JSON that is not there is null")]

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

/// How long nothing may be heard of a session that works.
const SILENCE: Duration = Duration::from_secs(120);

/// One line; the daemon's own is named `socket`, a session's as the session.
pub(crate) struct Line(BufReader<UnixStream>);

impl Line {
    pub(crate) fn to(home: &Path, name: &str) -> Result<Self> {
        let stream = UnixStream::connect(home.join("daemon").join(name))?;
        stream.set_read_timeout(Some(SILENCE))?;
        Ok(Self(BufReader::new(stream)))
    }

    pub(crate) fn say(&mut self, what: &Value) -> Result<()> {
        Ok(self.0.get_mut().write_all(format!("{what}\n").as_bytes())?)
    }

    pub(crate) fn hear(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            bail!("the other side has ended");
        }
        Ok(serde_json::from_str(&line)?)
    }
}

/// Opens a session at a project, or comes to one; its name.
pub(crate) fn open(home: &Path, project: &Path, known: Option<&str>) -> Result<String> {
    let words = match known {
        Some(session) => vec!["--resume".to_owned(), session.to_owned()],
        None => vec!["-C".to_owned(), project.display().to_string()],
    };
    let mut daemon = Line::to(home, "socket")?;
    daemon.say(&json!({
        "v": 1, "ask": "open", "directory": project, "words": words, "again": [], "session": known,
    }))?;
    let opened = daemon.hear()?;
    Ok(opened["session"].as_str().with_context(|| opened.to_string())?.to_owned())
}

/// What a process holds, with its share of what it has in common with others.
pub(crate) fn held_kib(pid: &Value) -> Option<u64> {
    let about = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    about.lines().find_map(|line| line.strip_prefix("Pss:"))?.split_whitespace().next()?.parse().ok()
}
