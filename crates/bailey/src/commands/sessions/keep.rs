//! Sessions as a whole: another one from it, a copy of it, an end of it.

use crate::{
    exit,
    front::Answering,
    front::{self, short},
    home::{Folder, Home, reserve},
    print::{Printer, Style},
};
use anyhow::{Context as _, Result, bail};
use bailey_journal::{Fact, Holder, Journal, Query, Recorded, SessionInfo, SessionLock};
use bailey_protocol::{Blob, SessionId};
use bailey_session::{
    HALF_APPLIED,
    fork::{Forked, fork as session_fork},
};
use serde::Serialize;
use serde_json::{Value, json};
use std::{
    fs::{File, OpenOptions},
    io::{BufWriter, ErrorKind, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// The version of an export's shape.
const EXPORT_VERSION: u32 = 1;

/// Entries read at a time.
const PAGE: u32 = 500;

/// A session begins as another one stood.
pub(super) async fn fork(home: &Home, name: &str, at: Option<u64>, printer: &Printer) -> Result<ExitCode> {
    let journal = crate::commands::journal(home, printer).await?;
    let from = journal.session(name).await?;
    super::is_own(&from)?;
    let Forked { id, at, left, .. } = session_fork(home, &journal, &from, at).await?;
    if printer.is_json() {
        printer.json(&json!({ "session": id, "from": from.id, "at": at, "left_behind": left }));
        return Ok(ExitCode::SUCCESS);
    }
    let (new, old) = (short(&id), short(&from.id));
    printer.line(format!("forked: {} is as {old} was at entry {at}", printer.paint(Style::Bold, &new)));
    if left > 0 {
        printer.note(&format!(
            "the new session begins with the project as it is now, without the unapplied changes of {old}"
        ));
    }
    printer.note(&format!("bailey sessions resume {new} \"…\""));
    Ok(ExitCode::SUCCESS)
}

/// A session as JSON lines: the first says what it is, the others are its entries, each with its payload.
pub(super) async fn export(
    home: &Home,
    name: &str,
    output: Option<PathBuf>,
    printer: &Printer,
) -> Result<ExitCode> {
    let journal = crate::commands::journal(home, printer).await?;
    let session = journal.session(name).await?;
    let mut to = match &output {
        Some(path) => To::File(BufWriter::new(create(path)?)),
        None => To::Printer(printer),
    };
    to.line(printer, &json!({ "type": "session", "v": EXPORT_VERSION, "session": session }))?;
    let mut after = 0;
    loop {
        let query = Query { session: Some(session.id), after, first: Some(PAGE), last: None };
        let entries = journal.entries(query).await?;
        for recorded in &entries {
            to.line(
                printer,
                &json!({ "type": "entry", "entry": recorded.entry, "payload": payload(recorded) }),
            )?;
        }
        let Some(newest) = entries.last() else { break };
        after = newest.entry.seq.0;
    }
    to.end()?;
    if let Some(path) = output {
        printer.note(&format!("written to `{}`", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// What a session said and did is erased, and its folder removed.
pub(super) async fn remove(home: &Home, name: &str, yes: bool, printer: &Printer) -> Result<ExitCode> {
    let is_full = reserve::give_up(&home.root);
    let journal = crate::commands::journal(home, printer).await?;
    let session = journal.session(name).await?;
    super::let_go(home, session.id).await;
    // A link to it may be lost, and it still be there.
    let elsewhere = home.elsewhere(session.id);
    home.give_up_lost(session.id)?;
    let folder = home.session(session.id, false)?;
    let elsewhere: Vec<PathBuf> = elsewhere.into_iter().filter(|path| *path != folder.path).collect();
    let lock = SessionLock::take(session.id, &folder.path, &holder(&journal))?;
    let of_elsewhere = |path: &PathBuf| SessionLock::take(session.id, path, &holder(&journal));
    let _locks = elsewhere.iter().map(of_elsewhere).collect::<Result<Vec<_>, _>>()?;
    // What it put in the place of is in its backups alone. Of a project that is gone nothing can be taken
    // back.
    if Path::new(&session.workspace.0).exists() && journal.unfinished_apply(session.id).await?.is_some() {
        bail!(
            "{HALF_APPLIED}: `bailey sessions undo` takes it back, `bailey sessions apply` finishes it; \
             then remove the session"
        );
    }
    if !yes && !confirmed(&session, printer).await? {
        printer.note("nothing was removed");
        return Ok(ExitCode::from(exit::DENIED));
    }
    let what = || format!("removing session {}", short(&session.id));
    let removing = async {
        if is_full {
            // What is written of it needs room, and this gives some.
            let upper = folder.path.join("upper");
            tokio::task::spawn_blocking(move || bailey_sandbox::remove(&upper)).await??;
        }
        let removed = journal.remove_session(&lock).await?;
        // Of many files it takes a while, in which the wait is told.
        let (home, id) = (home.clone(), session.id);
        tokio::task::spawn_blocking(move || remove_folders(&home, id, &folder, &elsewhere)).await??;
        anyhow::Ok(removed)
    };
    let removed = printer.waiting_anywhere(what, removing).await?;
    if printer.is_json() {
        printer.json(
            &json!({ "session": session.id, "entries": removed.entries, "payloads": removed.payloads }),
        );
    } else {
        printer.line(format!(
            "removed: {} payloads erased, its changes and backups are gone; {} entries stay in the chain",
            removed.payloads, removed.entries
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn remove_folders(home: &Home, id: SessionId, folder: &Folder, elsewhere: &[PathBuf]) -> Result<()> {
    home.remove_session(id, folder)?;
    elsewhere.iter().try_for_each(|path| {
        bailey_sandbox::remove(path).with_context(|| format!("`{}` could not be removed", path.display()))
    })
}

async fn confirmed(session: &SessionInfo, printer: &Printer) -> Result<bool> {
    if !front::Asker::new(Answering::Ask).is_here() {
        bail!(
            "there is no terminal to ask on; use --yes to remove {} without a question",
            short(&session.id)
        );
    }
    let title = front::one_line(&printer.paint(Style::Plain, &session.title));
    let question = format!(
        "Remove session {} ({title}), with its messages, its unapplied changes and its undo?",
        short(&session.id)
    );
    Ok(front::confirm(&question).await)
}

fn holder(journal: &Journal) -> Holder {
    Holder { pid: std::process::id(), since: journal.clock().now(), command: "bailey sessions rm".into() }
}

/// A payload as what it is: text where a person or a model reads it, a document elsewhere; null when it was
/// erased.
fn payload(recorded: &Recorded) -> Value {
    let Some(bytes) = &recorded.payload else { return Value::Null };
    if let Fact::Image { .. } = recorded.entry.fact {
        return serde_json::to_value(Blob(bytes.clone())).unwrap_or_default();
    }
    let is_text = matches!(
        recorded.entry.fact,
        Fact::Accepted { .. } | Fact::Observation { .. } | Fact::Answered { .. }
    );
    let document = if is_text { None } else { serde_json::from_slice(bytes).ok() };
    document.unwrap_or_else(|| Value::String(recorded.text()))
}

fn create(path: &PathBuf) -> Result<File> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("`{}` exists already: name a new file", path.display())
        }
        file => file.with_context(|| format!("cannot make `{}`", path.display())),
    }
}

/// Where an export goes.
enum To<'a> {
    Printer(&'a Printer),
    File(BufWriter<File>),
}

impl To<'_> {
    fn line(&mut self, printer: &Printer, value: &impl Serialize) -> Result<()> {
        match self {
            Self::Printer(printer) => printer.json(value),
            Self::File(file) => writeln!(file, "{}", printer.json_line(value)?)?,
        }
        Ok(())
    }

    fn end(self) -> Result<()> {
        if let Self::File(file) = self {
            file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
        }
        Ok(())
    }
}
