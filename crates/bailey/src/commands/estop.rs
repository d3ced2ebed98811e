//! `bailey estop`: everything that agents of this home do ends at once, and nothing begins until a human
//! releases it.
//!
//! The journal bars what has not begun, in the transaction in which it would. What has begun ends with the
//! process that runs its session: that one is asked to end, and killed when it does not, and takes everything
//! inside the walls with it. Both are done at the same time, since whoever holds the journal keeps the bar
//! waiting, and may be one of those that are to end.

use crate::{
    compose::{self, Keys},
    config::Config,
    exit,
    front::Answering,
    front::{Asker, choice},
    home::{Home, reserve},
    identity,
    print::{Printer, Style},
};
use anyhow::{Context as _, Result, bail};
use bailey_journal::{Journal, Mint, SystemClock};
use bailey_protocol::Timestamp;
use bailey_secrets::{Redactor, Vault};
use bailey_session::{
    running::{EndReport, Ending},
    sign_stop,
};
use serde_json::json;
use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::timeout;

pub(super) async fn run(home: &Home, why: &str, printer: &Printer) -> Result<ExitCode> {
    let begin = Instant::now();
    let (mut barred, mut all) = end(home, why, printer).await;
    if barred.is_err() {
        // By now nobody else takes the room that is kept for this, and whoever kept the journal from it has
        // ended.
        reserve::give_up(&home.root);
        let ended = all.ended;
        (barred, all) = end(home, why, printer).await;
        all.ended += ended;
    }
    let milliseconds = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    let EndReport { ended, left } = all;
    if !printer.is_json() {
        printer.line(format!(
            "{}: {ended} running {} ended, after {milliseconds} ms",
            printer.paint(Style::Red, "stopped"),
            if ended == 1 { "process" } else { "processes" },
        ));
        left.iter().for_each(|left| printer.warn(&left.to_string()));
    }
    let is_signed = match &barred {
        Ok(journal) => sign_stop(home, journal, printer).await,
        Err(_) => false,
    };
    if printer.is_json() {
        printer.json(&json!({
            "barred": barred.is_ok(), "signed": is_signed, "ended": ended, "left": left, "milliseconds": milliseconds
        }));
    }
    barred.context("running work was ended, but the stop could not be written to the journal, so new work can still begin")?;
    if !printer.is_json() {
        printer.note("nothing begins in this home until you run `bailey estop --release`");
    }
    Ok(ExitCode::from(if left.is_empty() { exit::DONE } else { exit::FAILED }))
}

/// Ends what runs while the bar is written; where that cannot be, what runs is ended all the same.
async fn end(home: &Home, why: &str, printer: &Printer) -> (Result<Journal>, EndReport) {
    let ending = Ending::begin(&home.root);
    let barred = bar(home, why, printer).await;
    // Also what began before the bar stood.
    (barred, ending.finish())
}

/// How long a channel's process that just ends may keep the notes of its messages.
const NOTES: Duration = Duration::from_secs(5);

/// Releases the stop, once a person at the terminal has said so. `drop` drops what would go on by itself: the
/// messages that wait in channels, and the work of the daemon's sessions.
pub(super) async fn release(home: &Home, drop: bool, printer: &Printer) -> Result<ExitCode> {
    let (journal, mint) = mint(home, printer).await?;
    let Some(since) = journal.stopped().await? else {
        printer.note("nothing is stopped");
        return Ok(ExitCode::SUCCESS);
    };
    if !Asker::new(Answering::Ask).is_here() {
        bail!("only a person at a terminal can release the stop, and there is no terminal here");
    }
    let (messages, sessions) = (bailey_channels::waiting(home), bailey_daemon::cut_off(home));
    let count = |count: usize, one: &str, more: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {more}"),
    };
    let messages_count = count(messages, "message that waits in a channel", "messages that wait in channels");
    let sessions_count = count(sessions, "session of the daemon", "sessions of the daemon");
    let (goes_on, hint) = match (messages + sessions, drop) {
        (0, _) => ("Nothing goes on by itself.".to_owned(), "[y/N]"),
        (_, true) => (format!("Dropped: {messages_count}, and the work of {sessions_count}."), "[y/N]"),
        (_, false) => (
            format!("By themselves go on: {messages_count}, and {sessions_count}."),
            "[y/N/d: yes, and drop that work]",
        ),
    };
    let answer = choice(
        &format!(
            "Everything has been stopped since {since}. {goes_on} Release the stop, and let the agents of \
             this home work again?"
        ),
        hint,
    )
    .await;
    let drop = drop || messages + sessions > 0 && answer == "d";
    let is_yes = matches!(answer.as_str(), "y" | "yes") || drop && answer == "d";
    if !is_yes {
        printer.note("it stays stopped");
        return Ok(ExitCode::from(exit::DENIED));
    }
    if drop {
        // Before anything begins again.
        let root = home.clone();
        let dropped = tokio::task::spawn_blocking(move || bailey_channels::drop_waiting(&root));
        let dropped = timeout(NOTES, dropped).await;
        let dropped =
            dropped.context("a channel's process does not end, so it stays stopped; try again")???;
        printer.note(&format!(
            "{} dropped; the people are told, and messages that the platform still has come later",
            count(dropped, "message is", "messages are")
        ));
        let cancelled = bailey_daemon::cancel_cut_off(home, &journal).await?;
        printer.note(&format!("the work of {} ends", count(cancelled, "session", "sessions")));
    }
    mint.release().await?;
    tell(home, None, printer);
    printer
        .line("the stop is released; `bailey sessions resume SESSION` continues a session that was cut off");
    if !drop && messages + sessions > 0 {
        printer.note(
            "messages from a channel go on by themselves, and sessions of the daemon at its next start",
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the configuration or a store of keys cannot be read, the bar stands all the same: without the
/// person's words then, for nobody knows which of them is a key.
async fn bar(home: &Home, why: &str, printer: &Printer) -> Result<Journal> {
    let keys = Config::load(home).and_then(|config| Keys::load(home, &config, printer));
    let (redactor, why) = match keys {
        Ok(keys) => (keys.redactor, why),
        Err(error) => {
            printer.warn(&format!(
                "{error:#}; everything is stopped anyway, but the journal does not keep the reason"
            ));
            (Redactor::new(&Vault::default()), "")
        }
    };
    let (journal, mint) = Journal::open(&home.journal(), redactor, Arc::new(SystemClock)).await?;
    mint.stop(why).await?;
    tell(home, journal.stopped().await?, printer);
    Ok(journal)
}

/// `IDENTITY.md` says it, too; the bar does not depend on it.
fn tell(home: &Home, since: Option<Timestamp>, printer: &Printer) {
    if let Err(error) = identity::tell_stopped(home, since) {
        printer.warn(&format!("{error:#}"));
    }
}

async fn mint(home: &Home, printer: &Printer) -> Result<(Journal, Mint)> {
    let config = Config::load(home)?;
    let keys = Keys::load(home, &config, printer)?;
    compose::journal(home, &keys).await
}
