//! `bailey run`: one task, to its end.

pub mod beneath;
mod task;

use crate::{
    Change, Changes, Host, HostError, Merged, Opening, TurnOptions, auto_apply,
    client::Client,
    compose::{self, Keys, OpenSession, Session},
    config::Config,
    exit,
    front::{Asker, Front, one_line, short, some_of},
    home::Home,
    pick, prewarm,
    print::{Printer, Style, fold, whole},
    project,
};
use anyhow::{Result, bail};
use bailey_agent::TurnEnd;
use bailey_kernel::Acted;
use bailey_protocol::{Action, Report, StatReport, WsPath};
use std::{path::PathBuf, process::ExitCode};
use task::Task;
use tokio::sync::mpsc;

/// The arguments of `bailey run`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do; `-` reads it from standard input. Otherwise a pipe or a file on standard input is context
    /// for the task: git diff | bailey run "review this"
    pub(crate) task: String,
    /// Work in this directory's repository
    #[arg(long, short = 'C', value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Use no walls: commands and changes happen directly on this machine, and each one asks first
    #[arg(long)]
    pub(crate) no_sandbox: bool,
    /// Begin in a workspace that `bailey prewarm add` prepared
    #[arg(long, conflicts_with = "no_sandbox")]
    pub(crate) warm: bool,
    /// Run in this terminal alone, even when the daemon runs
    #[arg(long)]
    pub(crate) alone: bool,
    /// Print the answer alone on standard output; everything else goes to standard error or is left out
    #[arg(long)]
    pub(crate) answer: bool,
    /// Show the model this picture (PNG, JPEG, WebP, GIF); may be given more than once
    #[arg(long = "picture", value_name = "PATH")]
    pub(crate) pictures: Vec<String>,
    #[command(flatten)]
    pub(crate) options: TurnOptions,
}

impl Args {
    /// The task, and the printer set up for its output.
    fn begin(&self, printer: &Printer) -> Result<Task> {
        if self.answer && printer.is_json() {
            let what = "--answer prints text alone, and --json prints objects: leave one of them out";
            return Err(exit::Mistyped(what.into()).into());
        }
        if self.answer {
            printer.only_answer();
        }
        Task::read(&self.task, &self.pictures, printer)
    }
}

/// Ops that may wait for the host.
const OPS_WAITING_MAX: usize = 64;

/// Runs a task to its end, here or beneath the daemon.
pub async fn run(home: &Home, run: Args, printer: &Printer) -> Result<ExitCode> {
    let task = run.begin(printer)?;
    let is_alone = run.no_sandbox || run.alone;
    if let Some(daemon) = if is_alone { None } else { Client::connect(home)? } {
        return beneath::run(home, &run, task, daemon, printer).await;
    }
    let (root, workspace) = project::find(run.directory.as_deref(), home)?;
    let mut config = Config::load(home)?;
    printer.notes(config.narrow(home, &root)?);
    config.spend(run.options.tokens);
    project::remarks(&root).iter().for_each(|remark| printer.warn(remark));
    let keys = Keys::unlocked(home, &config, printer)?;
    let opening = match run.warm {
        true => Opening::Resume(prewarm::take(home, &root, printer)?),
        false => Opening::New(compose::new_session()?),
    };
    let is_direct = run.no_sandbox;
    tell_unwalled(printer, is_direct);
    let standpoint = Some(project::standpoint(run.directory.as_deref(), &workspace)?);
    let session = Session { is_direct, standpoint, ..Session::new(home, &config, keys, workspace, opening) };
    turn(session, &run.options, Some(task), printer).await
}

/// Continues a session: with another message, or without one when a turn was cut off.
pub async fn resume(
    session: Session<'_>,
    options: &TurnOptions,
    message: Option<String>,
    printer: &Printer,
) -> Result<ExitCode> {
    turn(session, options, message.map(|text| Task { text, piped: None, pictures: Vec::new() }), printer)
        .await
}

/// Opens the session, runs one turn, shows the changes, and applies them when that is wanted.
async fn turn(
    mut session: Session<'_>,
    options: &TurnOptions,
    message: Option<Task>,
    printer: &Printer,
) -> Result<ExitCode> {
    let asker = Asker::compliant(options.approve, compose::is_compliance(session.config)?)?;
    session.unattended = asker.is_nobody();
    session.options = Some(options);
    let (config, is_direct) = (session.config, session.is_direct);
    let OpenSession { mut host, kernel, events, remarks, unenforced, witness, reveals, .. } =
        compose::open(session).await?;
    remarks.iter().for_each(|remark| printer.warn(remark));
    tell_unenforced(printer, &unenforced);
    reveal(&kernel, &host, reveals).await?;
    pin(&mut host, options).await?;
    let (ops, mut inbox) = mpsc::channel(OPS_WAITING_MAX);
    let mut front = Front::new(printer, events, ops, asker, options.verbose)?;
    if is_direct {
        front.has_no_layer();
    }
    message.iter().flat_map(Task::asked).for_each(|asked| front.asked(&asked));
    let ended = match message {
        Some(task) => front.during(host.say(task.inbound(None), &mut inbox)).await,
        None if host.is_interrupted() => front.during(host.go_on(&mut inbox)).await,
        // A model that has answered is not asked to answer its own answer.
        None => {
            printer.note("the last turn has ended; to continue, add a message to the command");
            Ok(TurnEnd::Answered)
        }
    };
    // Done before the changes are compared: a process may change files as long as it lives.
    for (number, line) in kernel.processes(host.session()) {
        tell_ending(printer, number, &line);
    }
    front.during(host.quiet()).await;
    let code = finish(&mut front, &host, (options, config), ended, &mut inbox).await;
    compose::sign(kernel.journal(), witness.as_ref(), Some((&kernel, &host.owner())), printer).await;
    conclude(&mut front, code)
}

/// Ends a run. The last line of `--json` tells how, also when it failed.
fn conclude(front: &mut Front<'_>, code: Result<u8>) -> Result<ExitCode> {
    let (code, error) = match code {
        Err(error) if front.printer.is_json() => {
            front.printer.error(&error);
            (exit::of(&error), Some(whole(&error)))
        }
        code => (code?, None),
    };
    front.conclude(code, error.as_deref());
    Ok(ExitCode::from(code))
}

/// Tells the user that a background process ends, because no process outlives its run.
fn tell_ending(printer: &Printer, number: u32, line: &str) {
    printer.note(&format!("background process {number} ends with this run: {}", one_line(line)));
}

/// Warns, before anything happens, that there are no walls.
pub(super) fn tell_unwalled(printer: &Printer, is_direct: bool) {
    if is_direct {
        printer.alarm(
            "NO SANDBOX: the agent's commands and changes happen directly on this machine, as you, with \
             your files, keys and network. Bailey asks before each command and each change of a file. \
             Nothing can be compared, taken back or undone afterwards.",
        );
    }
}

/// Tells the user which limits this process could not set for itself.
pub(super) fn tell_unenforced(printer: &Printer, unenforced: &[&str]) {
    if !unenforced.is_empty() {
        printer.note(&format!("this kernel is too old to keep Bailey itself from {}", unenforced.join("; ")));
    }
}

async fn finish(
    front: &mut Front<'_>,
    host: &Host,
    (options, config): (&TurnOptions, &Config),
    ended: Result<TurnEnd, HostError>,
    inbox: &mut mpsc::Receiver<bailey_protocol::Op>,
) -> Result<u8> {
    if let Some(code) = front.ending() {
        return Ok(code);
    }
    let printer = front.printer;
    let changes = front.during(host.changes()).await;
    if changes.is_err() {
        front.not_compared();
    }
    let (ended, changes) = match (ended, changes) {
        (Ok(ended), Ok(changes)) => (ended, changes),
        (Err(error), _) | (Ok(_), Err(error)) => {
            front.tell_story();
            project::still_there(host.workspace())?;
            return Err(error.into());
        }
    };
    show(printer, &changes);
    let merged = merge(front, host, (options, config), ended, changes, inbox).await;
    front.tell_story();
    if let Some(code) = front.ending() {
        return Ok(code);
    }
    if ended == TurnEnd::Unanswered {
        printer.error(&anyhow::anyhow!(
            "the model gave no answer; `bailey sessions resume SESSION` asks it again"
        ));
    }
    Ok(match (merged?, ended) {
        (Some(merged), _) if !merged.conflicts.is_empty() => exit::CONFLICT,
        (_, TurnEnd::Cancelled) => exit::CANCELLED,
        (_, TurnEnd::Limit | TurnEnd::Waiting | TurnEnd::Budget | TurnEnd::Stuck) => exit::PAUSED,
        (_, TurnEnd::Answered) => exit::DONE,
        (_, TurnEnd::Refused | TurnEnd::Unanswered) => exit::MODEL,
    })
}

/// Applies the changes when that is wanted.
async fn merge(
    front: &mut Front<'_>,
    host: &Host,
    (options, config): (&TurnOptions, &Config),
    ended: TurnEnd,
    mut changes: Changes,
    inbox: &mut mpsc::Receiver<bailey_protocol::Op>,
) -> Result<Option<Merged>> {
    let printer = front.printer;
    let again = format!("apply {}", short(&host.session()));
    let is_half_applied = host.is_half_applied().await?;
    if ended != TurnEnd::Answered || changes.is_empty() && !is_half_applied {
        return Ok(None);
    }
    let auto = config.auto_apply.as_ref().filter(|_| !options.apply && !is_half_applied);
    if let Some(auto) = auto {
        match auto_apply::tested(front, host, auto, &config.command, &changes).await? {
            Ok(tested) => {
                let merged = front.during(host.apply(&tested, inbox)).await?;
                tell_merged(printer, &format!("applied, as `{}` passed", auto.test), &merged, &again);
                return Ok(Some(merged));
            }
            Err(why) => printer.note(&format!("not applied automatically: {}", one_line(&why))),
        }
    }
    // Red changes have a card of their own: one question is enough.
    let asks = front.asker.is_here() && !printer.is_json() && !printer.is_answer();
    let question = if is_half_applied {
        "An apply was interrupted. Finish it, and apply these changes? [y/N] "
    } else {
        "Apply these changes? [y/N/pick] "
    };
    if !options.apply {
        let answer = match (asks, changes.red.is_empty()) {
            (false, _) => return Ok(None),
            (true, false) => "yes".into(),
            (true, true) => front.ask_line(question).await.unwrap_or_default(),
        };
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => {}
            "p" | "pick" if !is_half_applied => {
                let Some(picked) = pick::asked(front, &changes).await.filter(pick::is_some) else {
                    return Ok(None);
                };
                changes = changes.pick(&picked)?;
            }
            _ => return Ok(None),
        }
    }
    let merged = front.during(host.apply(&changes, inbox)).await?;
    tell_merged(printer, "applied", &merged, &again);
    Ok(Some(merged))
}

/// Shows a session's changes; under `--json` the event has told them.
pub fn show(printer: &Printer, changes: &Changes) {
    if printer.is_json() || (changes.changes.is_empty() && changes.commits.is_empty()) {
        return;
    }
    printer.line("");
    for change in &changes.changes {
        crate::front::diff_lines(printer, &change.diff, printer.cells())
            .iter()
            .for_each(|line| printer.line(line));
        for remark in change.remarks.iter().cloned().chain(change.would_keep()) {
            say(printer, Style::Yellow, 4, &format!("{} {remark}", change.path));
        }
        if let Some(why) = stays(change) {
            say(printer, Style::Yellow, 4, &why);
        }
    }
    for line in &changes.commits {
        let indent = if line.starts_with(' ') { 4 } else { 2 };
        say(printer, Style::Plain, indent, line.trim_start());
    }
    let label = if changes.is_denied { "stays in the session" } else { "Red" };
    for reason in &changes.reasons {
        say(printer, Style::Red, 2, &format!("{label}: {reason}"));
    }
}

/// Tells which changes stay in the session, and why.
pub fn tell_held(printer: &Printer, changes: &Changes) {
    if !printer.is_json() {
        let held = changes
            .changes
            .iter()
            .filter_map(stays)
            .chain(changes.stuck.iter().map(|line| format!("stays in the session: {line}")));
        held.for_each(|why| say(printer, Style::Yellow, 0, &why));
    }
}

/// Tells which of a session's changes git ignores, and how to apply them anyway.
pub fn tell_ignored(printer: &Printer, changes: &Changes, session: &str) {
    if let Some(first) = changes.ignored.first().filter(|_| !printer.is_json()) {
        let paths = some_of(&changes.ignored);
        let what = format!(
            "stays in the session, because git ignores it: {paths} (`bailey sessions apply {session} \
             {first}` applies it)"
        );
        say(printer, Style::Dim, 0, &what);
    }
}

fn stays(change: &Change) -> Option<String> {
    change.refused.as_ref().map(|why| format!("{} stays in the session: {why}", change.path))
}

/// Prints a line of foreign text, indented by `indent` blanks and broken between words when it is wider than
/// the terminal.
pub(super) fn say(printer: &Printer, style: Style, indent: usize, text: &str) {
    let text = format!("{:indent$}{}", "", one_line(&printer.redact(text)));
    let cells = printer.cells();
    let lines = printer.paint_lines(style, &fold(&text, cells, indent));
    lines.iter().for_each(|line| printer.line(line));
}

/// Tells the result of a merge. `again` is the command of `bailey sessions` that does the part that was kept
/// back.
pub fn tell_merged(printer: &Printer, what: &str, merged: &Merged, again: &str) {
    if printer.is_json() {
        return;
    }
    if !merged.files.is_empty() || merged.commits.is_empty() {
        say(printer, Style::Green, 0, &format!("{what}: {}", some_of(&merged.files)));
    }
    for line in &merged.commits {
        say(printer, Style::Green, 0, &format!("{what}: {line}"));
    }
    for conflict in &merged.conflicts {
        say(printer, Style::Yellow, 0, &format!("kept as it is: {conflict}"));
    }
    if !merged.conflicts.is_empty() {
        printer.note(&format!(
            "what is listed as `kept as it is` was not changed; resolve the named conflicts, then run \
             `bailey sessions {again}` again"
        ));
    }
}

/// Pins the texts that the human gives by a flag, before the turn.
pub(super) async fn pin(host: &mut Host, options: &TurnOptions) -> Result<()> {
    for text in &options.pin {
        if text.trim().is_empty() {
            bail!("`--pin` got no words: say what to keep, such as: --pin \"the public API stays as it is\"");
        }
        host.pin(text.trim()).await?;
    }
    Ok(())
}

/// Records the files that the human reveals by a flag, before the turn.
pub(super) async fn reveal(kernel: &bailey_kernel::Kernel, host: &Host, reveals: Vec<WsPath>) -> Result<()> {
    for path in reveals {
        let stat = host.act(Action::Stat { path: path.clone() }).await?;
        let is_there = matches!(&stat, Acted::Done(output)
            if matches!(output.report(), Report::Stat(StatReport { found: Some(_), .. })));
        if !is_there {
            bail!("there is no file `{path}` to reveal");
        }
        kernel.journal().reveal(host.session(), path).await?;
    }
    Ok(())
}
