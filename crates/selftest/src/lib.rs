//! `bailey prove`: the attacks of docs/security/claims.toml, tried against this installation, each with its
//! control.
//!
//! Read `table.rs` first (the attacks), then `attack.rs` (the verdict of an attempt), then `fixture.rs` (the
//! place). The attacks themselves are in `probe.rs`.

mod attack;
mod claims;
mod door;
mod fixture;
mod gate;
pub mod probe;
mod record;
mod scratch_journal;
mod secret;
mod swap;
mod table;
#[cfg(test)]
mod tests;

use anyhow::{Context as _, Result, bail};
use attack::{Attempt, Tried, Verdict};
use bailey_home::{config::Config, home::Home};
use bailey_session::exit;
use bailey_terminal::print::{Printer, Style, fold};
use fixture::Fixture;
use serde::Serialize;
use serde_json::json;
use std::{
    io::IsTerminal as _,
    process::ExitCode,
    time::{Duration, Instant},
};
use table::{Attack, LINES};
use tokio::signal::unix::{SignalKind, signal};

/// The maximum time for all lines, and for one line.
const ALL_MAX: Duration = Duration::from_secs(110);
const LINE_MAX: Duration = Duration::from_secs(30);
/// How many groups stand on a line, and how wide each is.
const COLUMNS: usize = 3;
const CELLS: usize = 24;
/// Where the right column begins.
const INDENT: usize = 10;

/// One line of the result.
#[derive(Debug, Serialize)]
struct Finding {
    line: &'static str,
    says: &'static str,
    verdict: Verdict,
    /// How the attack ended, or why it was not tried.
    because: String,
    /// How the same attack ended without the wall.
    control: String,
    wall: &'static str,
    claim: &'static str,
    millis: u128,
}

/// Tries every line, or the lines whose names begin with one of `only`. Each line is shown with `every`,
/// where lines are named, and for scripts; else one screen tells how many held.
pub async fn run(home: &Home, only: &[String], every: bool, printer: &Printer) -> Result<ExitCode> {
    let lines: Vec<&Attack> = LINES.iter().filter(|line| is_wanted(line, only)).collect();
    if lines.is_empty() {
        let known: Vec<&str> = LINES.iter().map(|line| line.id).collect();
        bail!(exit::Mistyped(format!(
            "no line is named `{}`; there are: {}",
            only.join(" "),
            known.join(", ")
        )));
    }
    let config = Config::load(home)?;
    let every = every || !only.is_empty() || printer.is_json();
    tokio::select! {
        done = all(config, &lines, every, printer) => done,
        // The dropped future removes everything that was made for it.
        code = interrupted() => Ok(ExitCode::from(code?)),
    }
}

/// Waits for a signal to end, and returns its exit code.
async fn interrupted() -> Result<u8> {
    let hear = |kind| signal(kind).context("signals cannot be heard");
    let (mut cancel, mut end) = (hear(SignalKind::interrupt())?, hear(SignalKind::terminate())?);
    let mut hang_up = hear(SignalKind::hangup())?;
    tokio::select! {
        _ = cancel.recv() => Ok(exit::CANCELLED),
        _ = end.recv() => Ok(exit::TERMINATED),
        _ = hang_up.recv() => Ok(exit::HUNG_UP),
    }
}

fn is_wanted(line: &Attack, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|name| line.id.starts_with(name.as_str()))
}

async fn all(config: Config, lines: &[&Attack], every: bool, printer: &Printer) -> Result<ExitCode> {
    let since = Instant::now();
    // When the output's reader goes away, the run ends and leaves nothing behind: the stand removes
    // everything that was made for it.
    printer.watch();
    let opening = printer.waiting(|| "making a place to try it in".into(), Fixture::new(config));
    let fixture = opening.await.context("nothing can be tried")?;
    let mut count = [0; 3];
    let mut fallen = Vec::new();
    let mut groups: Vec<(&str, usize, usize)> = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let begin = Instant::now();
        let what = || format!("{} of {}: {}", number + 1, lines.len(), line.says);
        let tried = printer.waiting(what, one(&fixture, line, ALL_MAX.saturating_sub(since.elapsed()))).await;
        let finding = Finding::of(line, &tried, begin.elapsed());
        if let Some(count) = count.get_mut(finding.verdict as usize) {
            *count += 1;
        }
        fallen.extend((finding.verdict == Verdict::NotHeld).then_some(line.id));
        let group = line.id.split('.').next().unwrap_or(line.id);
        let is_held = usize::from(finding.verdict == Verdict::Held);
        match groups.iter_mut().find(|(known, ..)| *known == group) {
            Some((_, held, of)) => (*held, *of) = (*held + is_held, *of + 1),
            None => groups.push((group, is_held, 1)),
        }
        if every || is_held == 0 {
            finding.print(printer);
        }
        if let Some(code) = printer.closed() {
            return Ok(ExitCode::from(code));
        }
    }
    if !every {
        show(&groups, printer);
    }
    let mut elsewhere = 0;
    for claim in claims::all()?.into_iter().filter(|_| is_all(lines)) {
        let Some(because) = claim.untried else { continue };
        let claim = claim.claim;
        elsewhere += 1;
        if !every {
            continue;
        }
        match printer.is_json() {
            true => printer.json(&json!({ "claim": claim, "verdict": "elsewhere", "because": because })),
            false => {
                let word = printer.paint(Style::Dim, &format!("{:<8}", "not here"));
                printer.line(format!("{word}  {}", printer.paint(Style::Plain, &claim)));
                let because = folded(&because);
                printer.paint_lines(Style::Dim, &because).iter().for_each(|line| printer.line(line));
            }
        }
    }
    let [held, not_held, untried] = count;
    printer.note(&format!(
        "{held} held, {not_held} NOT HELD, {untried} could not be tried here, in {:.1} s",
        since.elapsed().as_secs_f64()
    ));
    // Name them again at the end, because they may have scrolled away.
    if !fallen.is_empty() {
        printer.alarm(&format!("NOT HELD: {}", fallen.join(", ")));
    }
    if elsewhere > 0 {
        printer.note(&format!(
            "{elsewhere} more claims cannot be tried on this machine; docs/security/claims.md names the \
             tests that try them"
        ));
    }
    if !every {
        printer.note("bailey prove --all shows every line with its control; bailey prove NAME some of them");
    }
    if is_nothing_shown(count) {
        printer.alarm("no line could be tried, so nothing is shown about this installation");
    }
    Ok(ExitCode::from(code(count)))
}

/// Shows how many lines of each group held, in columns.
fn show(groups: &[(&str, usize, usize)], printer: &Printer) {
    for row in groups.chunks(COLUMNS) {
        let cells = row.iter().map(|(name, held, of)| {
            let style = if held == of { Style::Green } else { Style::Yellow };
            let text = format!("{name} {held} of {of}");
            format!("{}{}", printer.paint(style, &text), " ".repeat(CELLS.saturating_sub(text.len())))
        });
        printer.line(format!("held  {}", cells.collect::<String>().trim_end()));
    }
}

/// Whether the run shows nothing. The numbers are: lines that held, lines that did not hold, and lines that
/// could not be tried.
fn is_nothing_shown([held, not_held, _]: [usize; 3]) -> bool {
    held == 0 && not_held == 0
}

/// The exit code. A run that shows nothing fails, so that a script that reads only the code does not take
/// untried walls for walls that hold.
fn code(count: [usize; 3]) -> u8 {
    let [_, not_held, _] = count;
    if not_held > 0 || is_nothing_shown(count) { exit::FAILED } else { exit::DONE }
}

fn is_all(lines: &[&Attack]) -> bool {
    lines.len() == LINES.len()
}

/// Puts a text into the right column.
fn folded(text: &str) -> String {
    let is_terminal = std::io::stdout().is_terminal();
    let text = if is_terminal { fold(text, 80 - INDENT, INDENT) } else { text.to_owned() };
    format!("{:INDENT$}{text}", "")
}

async fn one(fixture: &Fixture, line: &Attack, left: Duration) -> Tried {
    let nothing =
        |why: String| Tried { attack: Attempt::Nothing(why.clone()), control: Attempt::Nothing(why) };
    match tokio::time::timeout(left.min(LINE_MAX), attack::tried(fixture, line.trial)).await {
        Ok(Ok(tried)) => tried,
        Ok(Err(error)) => nothing(format!("{error:#}")),
        Err(_) => nothing("there was no time left for it".into()),
    }
}

impl Finding {
    fn of(line: &Attack, tried: &Tried, took: Duration) -> Self {
        let (verdict, because) = tried.verdict();
        let (Attempt::Reached(control) | Attempt::Refused(control) | Attempt::Nothing(control)) =
            &tried.control;
        Self {
            line: line.id,
            says: line.says,
            verdict,
            because,
            control: control.clone(),
            wall: line.wall,
            claim: line.claim,
            millis: took.as_millis(),
        }
    }

    fn print(&self, printer: &Printer) {
        if printer.is_json() {
            return printer.json(self);
        }
        let (style, word) = match self.verdict {
            Verdict::Held => (Style::Green, "held"),
            Verdict::NotHeld => (Style::Red, "NOT HELD"),
            Verdict::Untried => (Style::Yellow, "untried"),
        };
        let word = printer.paint(style, &format!("{word:<8}"));
        printer.line(format!("{word}  {}", printer.paint(Style::Plain, self.says)));
        let why = match self.verdict {
            Verdict::Held => format!("{}; control: {}", self.because, self.control),
            Verdict::NotHeld => format!("{}: {} ({} should hold it)", self.line, self.because, self.wall),
            Verdict::Untried => format!("{}: could not be tried here: {}", self.line, self.because),
        };
        let why = folded(&why);
        printer.paint_lines(Style::Dim, &why).iter().for_each(|line| printer.line(line));
    }
}
