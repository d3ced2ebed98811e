//! One attack, tried inside the walls and, as its control, outside the walls.

use super::{
    door,
    fixture::{Fixture, Planted, Side},
    gate, record, secret, swap,
    table::{Limit, Trial},
};
use crate::probe::BAIT;
use anyhow::Result;
use bailey_protocol::{Limits, Wall};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use std::{
    fs,
    time::{Duration, Instant},
};

/// The maximum time that a killed process may take to end.
const END: Duration = Duration::from_secs(2);

/// The end of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// It came through. The text says how that is known.
    Reached(String),
    /// It was stopped. The text is the refusal.
    Refused(String),
    /// It shows nothing. The text says why.
    Nothing(String),
}

/// The attack and its control.
#[derive(Debug)]
pub(crate) struct Tried {
    pub(crate) attack: Attempt,
    pub(crate) control: Attempt,
}

/// The verdict from both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// The attack was stopped, and without the wall it succeeds.
    Held,
    /// The attack succeeded.
    NotHeld,
    /// Nothing is shown: the attack did not come so far, or does not succeed without the wall either.
    Untried,
}

impl Tried {
    /// The verdict, and its reason.
    pub(crate) fn verdict(&self) -> (Verdict, String) {
        match (&self.attack, &self.control) {
            (Attempt::Reached(how), _) => (Verdict::NotHeld, how.clone()),
            (Attempt::Nothing(why), _) => (Verdict::Untried, why.clone()),
            (Attempt::Refused(how), Attempt::Reached(_)) => (Verdict::Held, how.clone()),
            (Attempt::Refused(_), Attempt::Refused(why) | Attempt::Nothing(why)) => {
                (Verdict::Untried, format!("without the wall it does not succeed either: {why}"))
            }
        }
    }
}

/// Tries one line.
///
/// # Errors
/// When it cannot be tried at all.
pub(crate) async fn tried(fixture: &Fixture, trial: Trial) -> Result<Tried> {
    match trial {
        Trial::Probe(probe) => probed(fixture, probe).await,
        Trial::File { probe, file } => wrote(fixture, probe, file).await,
        Trial::Kill => killed(fixture).await,
        Trial::Leave => left(fixture).await,
        Trial::Grow { probe, limit } => grown(fixture, probe, limit).await,
        Trial::Swap => swap::tried(fixture).await,
        Trial::Gate(check) => gate::tried(fixture, check).await,
        Trial::Record(tampering) => record::tried(fixture, tampering).await,
        Trial::Secret => secret::tried(fixture).await,
        Trial::Door(request) => door::tried(fixture, request).await,
    }
}

async fn probed(fixture: &Fixture, probe: &str) -> Result<Tried> {
    let planted = probe.contains("{pid}").then(|| fixture.planted()).transpose()?;
    let words = |side| fixture.words(probe, side, planted.as_ref().map(Planted::id));
    let attack = fixture.inside(words(Side::Inside), fixture.limits.clone()).await?.attempt;
    let control = fixture.outside(words(Side::Outside)).await?;
    Ok(Tried { attack, control })
}

/// The attack came through when the host sees the file that the probe wrote. The probe's own word does not
/// count.
async fn wrote(fixture: &Fixture, probe: &str, file: &str) -> Result<Tried> {
    let on_host = |side, attempt| {
        let path = fixture.on_host(file, side);
        let is_there = fs::read_to_string(&path).is_ok_and(|text| text.contains(BAIT));
        fs::remove_file(&path).ok();
        match (is_there, attempt) {
            (true, _) => Attempt::Reached("the host has what it wrote".into()),
            (false, Attempt::Reached(_)) => Attempt::Refused("the host has nothing of what it wrote".into()),
            (false, attempt) => attempt,
        }
    };
    let said =
        fixture.inside(fixture.words(probe, Side::Inside, None), fixture.limits.clone()).await?.attempt;
    let attack = on_host(Side::Inside, said);
    let control = on_host(Side::Outside, fixture.outside(fixture.words(probe, Side::Outside, None)).await?);
    Ok(Tried { attack, control })
}

async fn killed(fixture: &Fixture) -> Result<Tried> {
    let mut planted = fixture.planted()?;
    let words = fixture.words("kill {pid}", Side::Inside, Some(planted.id()));
    let attack = fixture.inside(words.clone(), fixture.limits.clone()).await?.attempt;
    let attack = of_process(&mut planted, attack).await;
    let mut planted = fixture.planted()?;
    let words = fixture.words("kill {pid}", Side::Outside, Some(planted.id()));
    let control = fixture.outside(words).await?;
    let control = of_process(&mut planted, control).await;
    Ok(Tried { attack, control })
}

/// Judges by the state of the process. The probe's own word that it killed the process does not count.
async fn of_process(planted: &mut Planted, attempt: Attempt) -> Attempt {
    let said_so = matches!(attempt, Attempt::Reached(_));
    // The process ends a moment after the signal.
    let until = Instant::now() + END;
    while said_so && !planted.has_ended() && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    match (planted.has_ended(), attempt) {
        (true, _) => Attempt::Reached("the process is gone".into()),
        (false, Attempt::Reached(_)) => Attempt::Refused("the process lives".into()),
        (false, attempt) => attempt,
    }
}

async fn left(fixture: &Fixture) -> Result<Tried> {
    let on_host = |attempt, mark: &str| {
        let left = marked(mark);
        for pid in &left {
            kill_process(*pid, Signal::KILL).ok();
        }
        match (left.is_empty(), attempt) {
            (false, _) => Attempt::Reached("a process of it lives on".into()),
            (true, Attempt::Reached(_)) => Attempt::Refused("nothing of it lives".into()),
            (true, attempt) => attempt,
        }
    };
    let mark = |side: &str| fixture.words(&format!("{{mark}}-{side}"), Side::Inside, None).concat();
    let words = |mark: &str| vec!["leave".to_owned(), mark.to_owned()];
    let (inner, outer) = (mark("inside"), mark("outside"));
    let attack = fixture.inside(words(&inner), fixture.limits.clone()).await?.attempt;
    let attack = on_host(attack, &inner);
    let control = on_host(fixture.outside(words(&outer)).await?, &outer);
    Ok(Tried { attack, control })
}

/// The processes of the host whose last argument is this mark.
fn marked(mark: &str) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let end = format!("\0{mark}\0");
    let is_marked = |id: &i32| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.ends_with(end.as_bytes())
    };
    ids.filter(is_marked).filter_map(Pid::from_raw).collect()
}

async fn grown(fixture: &Fixture, probe: &str, limit: Limit) -> Result<Tried> {
    let usual = fixture.limits.clone();
    let (limits, wall, name) = match limit {
        // The kernel refuses tasks over this limit, and does not end the command.
        Limit::Tasks(pids) => (Limits { pids, ..usual }, Wall::PidsLimit, None),
        Limit::Memory(memory_bytes) => {
            (Limits { memory_bytes, ..usual }, Wall::MemoryLimit, Some("memory limit"))
        }
        Limit::Disk(disk_bytes) => (Limits { disk_bytes, ..usual }, Wall::DiskLimit, Some("disk limit")),
    };
    let ran = fixture.inside(fixture.words(probe, Side::Inside, None), limits).await?;
    let how = if ran.enforced.watched.contains(&wall) { "watched" } else { "enforced" };
    let attack = match (ran.attempt, ran.limit) {
        (Attempt::Reached(how), _) => Attempt::Reached(how),
        (Attempt::Nothing(_), Some(limit)) if Some(limit.as_str()) == name => {
            Attempt::Refused(format!("ended by the {limit} ({how})"))
        }
        (Attempt::Refused(why), _) => Attempt::Refused(format!("{why} ({how})")),
        (Attempt::Nothing(_), Some(other)) => Attempt::Nothing(format!("it was ended by the {other}")),
        (nothing, None) => nothing,
    };
    let control = fixture.outside(fixture.words(probe, Side::Outside, None)).await?;
    Ok(Tried { attack, control })
}
