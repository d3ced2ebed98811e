//! `bailey sessions`.

mod keep;
mod list;

use super::{hunks, run as one_task};
use crate::{
    cli::{Approve, Sessions},
    client::Client,
    compose::{self, Keys, OpenSession, Session},
    config::Config,
    exit,
    front::{Answering, Asker, Front, Spent, barred, one_line, short},
    home::Home,
    place::origin,
    print::{Printer, Style},
    project,
    wire::{Ask, DaemonAnswer},
};
use anyhow::{Result, bail};
use bailey_journal::{Fact, Purpose, Query, Recorded, SessionInfo};
use bailey_protocol::{Kind, SessionId, ToolCall, WsPath};
use bailey_sandbox::Shape;
use bailey_session::{Changes, HALF_APPLIED, Host, Opening};
use bailey_tools::tool_name;
use std::{
    path::{Component, PathBuf},
    process::ExitCode,
};
use tokio::sync::mpsc;

pub(super) async fn run(home: &Home, command: Sessions, printer: &Printer) -> Result<ExitCode> {
    match command {
        Sessions::List { last, project, all } => {
            list::run(home, list::Wanted { last, project, all }, printer).await
        }
        Sessions::Search { words, project, last } => {
            list::search(home, &words.join(" "), project, last, printer).await
        }
        Sessions::Show { session } => show(home, &session, printer).await,
        Sessions::Context { session } => super::context::run(home, &session, printer).await,
        Sessions::Resume { session, message, options } => {
            let keys = Keys::unlocked(home, &Config::load(home)?, printer)?;
            let NamedSession { home, mut config, info, revealed, .. } =
                find(home, &session, true, printer).await?;
            config.spend(options.tokens);
            project::still_there(&info.workspace)?;
            let opening = Opening::Resume(info.id);
            let session = Session { revealed, ..Session::new(&home, &config, keys, info.workspace, opening) };
            one_task::resume(session, &options, message, printer).await
        }
        Sessions::Diff { session, paths, red, hunks } => {
            visit(home, &session, Approve::Never, printer, SessionOrder::Diff { paths, red, hunks }).await
        }
        Sessions::Apply { session, paths, hunks, only, approve } => {
            let what = match (hunks, only.is_empty()) {
                (false, true) => SessionOrder::Apply { paths },
                (true, _) => SessionOrder::Pick { paths, only: None },
                (false, false) => SessionOrder::Pick { paths, only: Some(only) },
            };
            visit(home, &session, approve, printer, what).await
        }
        Sessions::Fork { session, at } => keep::fork(home, &session, at, printer).await,
        Sessions::Export { session, output } => keep::export(home, &session, output, printer).await,
        Sessions::Rm { session, yes } => keep::remove(home, &session, yes, printer).await,
        Sessions::Discard { session } => {
            visit(home, &session, Approve::Never, printer, SessionOrder::Discard).await
        }
        Sessions::Undo { session } => visit(home, &session, Approve::Ask, printer, SessionOrder::Undo).await,
    }
}

async fn show(home: &Home, name: &str, printer: &Printer) -> Result<ExitCode> {
    let journal = super::journal(home, printer).await?;
    let session = journal.session(name).await?;
    let entries = journal.entries(Query { session: Some(session.id), ..Query::default() }).await?;
    let mut spent = Spent::default();
    for (at, recorded) in entries.iter().enumerate() {
        if printer.is_json() {
            let text = recorded.text();
            printer.json(&serde_json::json!({ "entry": recorded.entry, "payload": text }));
            continue;
        }
        if let Some(answer) = reply(recorded) {
            spent.add(&answer.usage, answer.cost.as_ref());
        }
        show_entry(printer, recorded, entries.get(at + 1..).unwrap_or_default(), &session.workspace);
    }
    if !printer.is_json() {
        printer.line("");
        printer.line(printer.paint(Style::Dim, &spent.to_string()));
    }
    Ok(ExitCode::SUCCESS)
}

/// What a model said, where the entry holds that.
fn reply(recorded: &Recorded) -> Option<bailey_kernel::Completion> {
    let is_reply = matches!(recorded.entry.fact, Fact::Reply { .. });
    is_reply.then(|| serde_json::from_str(&recorded.text()).ok())?
}

/// Shows an entry. `later` are the entries after it.
fn show_entry(printer: &Printer, recorded: &Recorded, later: &[Recorded], workspace: &WsPath) {
    let text = recorded.text();
    match &recorded.entry.fact {
        Fact::Accepted { .. } => {
            printer.line("");
            let lines = printer.paint_lines(Style::Bold, &format!("> {text}"));
            lines.iter().for_each(|line| printer.line(line));
        }
        Fact::Image { kind, .. } => {
            let bytes = recorded.entry.payload.as_ref().map_or(0, |payload| payload.bytes);
            printer.line("");
            printer.line(printer.paint(Style::Dim, &format!("(a picture: {}, {bytes} bytes)", kind.name())));
        }
        Fact::Reply { .. } => {
            let Some(answer) = reply(recorded) else { return };
            if !answer.text.is_empty() {
                printer.line("");
                answer.text.lines().for_each(|line| printer.line(barred(printer, line)));
            }
            for call in &answer.calls {
                let target = target(call, later, workspace);
                let target = target.as_deref().unwrap_or(&call.arguments);
                let line = format!("  {} {}", one_line(tool_name(&call.name)), one_line(target));
                printer.line(printer.paint(Style::Cyan, &line));
            }
        }
        Fact::Observation { ok, .. } => {
            let style = if *ok { Style::Dim } else { Style::Yellow };
            text.lines().for_each(|line| printer.line(printer.paint(style, &format!("    {line}"))));
        }
        // A command of the owner's own: those of the agent's are told by its calls.
        Fact::Intent { kind: Kind::Exec, call: None, parent: None, target, .. } => {
            printer.line("");
            printer.line(printer.paint(Style::Cyan, &format!("$ {}", one_line(target))));
        }
        Fact::Denied { target, reasons, .. } => {
            printer.line(printer.paint(
                Style::Red,
                &format!("  denied: {}: {}", one_line(target), one_line(&reasons.join("; "))),
            ));
        }
        _ => {}
    }
}

/// The target of a call's effect, as the live view shows it; `None` when the call came to no effect.
fn target(call: &ToolCall, later: &[Recorded], workspace: &WsPath) -> Option<String> {
    // Some servers number the calls of each reply anew.
    let of_reply = later.iter().map(|it| &it.entry.fact).take_while(|it| !matches!(it, Fact::Reply { .. }));
    let target = of_reply.into_iter().find_map(|fact| match fact {
        Fact::Intent { call: Some(of), target, purpose: Purpose::Act, .. }
        | Fact::Denied { call: Some(of), target, .. }
        | Fact::Asked { call: Some(of), target, .. }
            if *of == call.id =>
        {
            Some(target)
        }
        _ => None,
    })?;
    let inside = target.strip_prefix(&workspace.0).and_then(|rest| rest.strip_prefix('/'));
    Some(inside.unwrap_or(target).to_owned())
}

/// What to do with a session's changes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SessionOrder {
    Diff {
        paths: Vec<PathBuf>,
        red: bool,
        hunks: bool,
    },
    Apply {
        paths: Vec<PathBuf>,
    },
    /// Hunks, by their names; none: as they are asked about.
    Pick {
        paths: Vec<PathBuf>,
        only: Option<Vec<String>>,
    },
    Discard,
    Undo,
}

async fn visit(
    home: &Home,
    name: &str,
    approve: Approve,
    printer: &Printer,
    what: SessionOrder,
) -> Result<ExitCode> {
    let NamedSession { config, keys, info, revealed, .. } = find(home, name, false, printer).await?;
    project::still_there(&info.workspace)?;
    if !matches!(what, SessionOrder::Diff { .. }) {
        home.spend(info.id)?;
    }
    let answering = if approve == Approve::Never { Answering::Never } else { Answering::Ask };
    let asker = Asker::compliant(answering, compose::is_compliance(&config)?)?;
    let unattended = asker.is_nobody();
    let opening = Opening::Visit(info.id);
    // Of a session that kept nothing no folder is left by a look.
    let is_scratch = !home.has_folder(info.id);
    let session = Session {
        unattended,
        revealed,
        is_scratch,
        ..Session::new(home, &config, keys, info.workspace, opening)
    };
    let OpenSession { host, kernel, events, remarks, witness, .. } = compose::open(session).await?;
    remarks.iter().for_each(|remark| printer.warn(remark));
    let (ops, mut inbox) = mpsc::channel(8);
    let mut front = Front::new(printer, events, ops, asker, false)?;
    let is_direct = compose::last_shape(kernel.journal(), host.session()).await? == Shape::Direct;
    let code = act(&mut front, &host, what, is_direct, &mut inbox).await;
    compose::sign(kernel.journal(), witness.as_ref(), Some((&kernel, &host.owner())), printer).await;
    // What was done stays done; and whoever reads the code is not told that it was shown.
    match (code?, printer.closed()) {
        (_, Some(unread)) => Ok(ExitCode::from(unread)),
        (code, None) => Ok(code),
    }
}

async fn act(
    front: &mut Front<'_>,
    host: &Host,
    what: SessionOrder,
    is_direct: bool,
    inbox: &mut mpsc::Receiver<bailey_protocol::Op>,
) -> Result<ExitCode> {
    let printer = front.printer;
    let mut held = Changes::default();
    let name = short(&host.session());
    let (merged, word, again) = match what {
        SessionOrder::Diff { paths, red, hunks } => {
            let mut changes = front.during(host.changes_at(&below(host, &paths)?)).await?;
            if red {
                let red: std::collections::HashSet<&String> = changes.red.iter().collect();
                changes.changes.retain(|change| red.contains(&change.path));
            }
            if hunks {
                hunks::show(printer, &changes);
                one_task::tell_held(printer, &changes);
            } else {
                one_task::show(printer, &changes);
            }
            if host.is_half_applied().await? {
                printer.warn(&format!(
                    "{HALF_APPLIED}: `bailey sessions apply {name}` finishes it, \
                     `bailey sessions undo {name}` takes it back"
                ));
            }
            one_task::tell_ignored(printer, &changes, &name);
            if red && changes.changes.is_empty() {
                printer.note("no change of this session is Red");
            } else if changes.changes.is_empty() && changes.commits.is_empty() {
                printer.note(match is_direct {
                    true => {
                        "this session had no walls: it changed the project itself, so its changes cannot be \
                         compared"
                    }
                    false if !changes.ignored.is_empty() => "this session has no other changes",
                    false => "this session has no changes",
                });
            }
            return Ok(ExitCode::SUCCESS);
        }
        SessionOrder::Apply { paths } => {
            let changes = front.during(host.changes_at(&below(host, &paths)?)).await?;
            if changes.is_empty() && !host.is_half_applied().await? {
                one_task::show(printer, &changes);
                bail!("this session has no changes that can be applied");
            }
            held = changes;
            // On a terminal, and for whoever reads JSON, the front end shows what happens.
            let is_silent = !front.asker.is_here();
            let what = || format!("applying {} changes", held.changes.len());
            let applying = front.during(host.apply(&held, inbox));
            let merged =
                if is_silent { printer.waiting_anywhere(what, applying).await } else { applying.await };
            (merged?, "applied", "apply")
        }
        SessionOrder::Pick { paths, only } => {
            let Some(picked) = pick(front, host, &paths, only, inbox).await? else {
                printer.note("you picked no hunk, so nothing was applied");
                return Ok(ExitCode::from(front.ending().unwrap_or(exit::DONE)));
            };
            (front.during(host.apply(&picked, inbox)).await?, "applied", "apply")
        }
        SessionOrder::Undo => (front.during(host.undo(inbox)).await?, "undone", "undo"),
        SessionOrder::Discard => {
            front.during(host.discard(inbox)).await?;
            let has_applied = host.has_applied().await?;
            printer.note(&match has_applied {
                _ if is_direct => {
                    "this session had no walls: it changed the project itself, and those changes are not \
                     taken back"
                        .into()
                }
                true => format!(
                    "the unapplied changes of the session were discarded; the changes that it applied \
                     before stay in the project, and `bailey sessions undo {}` takes them back",
                    short(&host.session())
                ),
                false => "the changes of the session were discarded; the project is unchanged".into(),
            });
            return Ok(ExitCode::SUCCESS);
        }
    };
    one_task::tell_merged(printer, word, &merged, &format!("{again} {name}"));
    one_task::tell_held(printer, &held);
    one_task::tell_ignored(printer, &held, &name);
    Ok(ExitCode::from(if merged.conflicts.is_empty() { exit::DONE } else { exit::CONFLICT }))
}

/// The hunks that are named, or that a person picks; none where nothing is.
async fn pick(
    front: &mut Front<'_>,
    host: &Host,
    paths: &[PathBuf],
    only: Option<Vec<String>>,
    inbox: &mut mpsc::Receiver<bailey_protocol::Op>,
) -> Result<Option<Changes>> {
    if only.is_none() && (!front.asker.is_here() || front.printer.is_json()) {
        bail!(
            "`--hunks` asks on a terminal, and there is no terminal here; name the hunks with `--only`, as \
             `bailey sessions diff --hunks` prints them"
        );
    }
    if let Some(ended) = front.during(host.finish(inbox)).await? {
        let again = format!("apply {}", short(&host.session()));
        one_task::tell_merged(front.printer, "finished the interrupted apply", &ended, &again);
    }
    let changes = front.during(host.changes_at(&below(host, paths)?)).await?;
    let picked = match only {
        Some(names) => Some(hunks::named(&changes, &names)?),
        None if changes.is_empty() => bail!("this session has no changes that can be applied"),
        None => hunks::asked(front, &changes).await,
    };
    let picked = picked.filter(hunks::is_some);
    Ok(picked.map(|picked| changes.pick(&picked)).transpose()?)
}

/// Paths that a person typed, absolute or as a diff names them, relative to the workspace.
fn below(host: &Host, paths: &[PathBuf]) -> Result<Vec<String>> {
    let root = &host.workspace().0;
    let relative = |path: &PathBuf| {
        let clean: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
        let Some(path) = clean.to_str() else { bail!("`{}` is no text", clean.display()) };
        if clean.is_relative() {
            return Ok(path.to_owned());
        }
        let below = bailey_protocol::WsPath::from(path).relative_to(root).map(str::to_owned);
        below.ok_or_else(|| anyhow::anyhow!("`{path}` is not in the workspace `{root}`"))
    };
    paths.iter().map(relative).collect()
}

/// A session of the journal, and what it is opened with.
struct NamedSession {
    /// As its agent has it, where that one goes on with it.
    home: Home,
    config: Config,
    keys: Keys,
    info: SessionInfo,
    revealed: Vec<WsPath>,
}

/// Has the daemon end the process of a session that rests there and that nobody looks at, which it would do
/// by itself in a minute. What goes wrong here is told by whoever finds the session in use.
async fn let_go(home: &Home, session: SessionId) {
    let Ok(Some(mut daemon)) = Client::connect(home) else { return };
    let Ok(DaemonAnswer::Status(status)) = daemon.ask(Ask::Status).await else { return };
    if status.sessions.iter().any(|running| running.session == session && running.state.is_at_rest()) {
        let _ = daemon.ask(Ask::Close { session }).await;
    }
}

/// Whether there is anything to go on with, or to apply.
fn is_own(info: &bailey_kernel::SessionInfo) -> Result<()> {
    if info.principal == bailey_kernel::CLIENT {
        bail!(
            "session {} is a task of another program, so it has nothing to continue or to apply here; \
             `bailey sessions show` and `bailey audit log` show what it asked",
            short(&info.id)
        );
    }
    Ok(())
}

async fn find(home: &Home, name: &str, is_going_on: bool, printer: &Printer) -> Result<NamedSession> {
    let config = Config::load(home)?;
    let keys = Keys::load(home, &config, printer)?;
    let (journal, _) = compose::journal(home, &keys).await?;
    let mut info = journal.session(name).await?;
    is_own(&info)?;
    let_go(home, info.id).await;
    let (home, mut config) = if is_going_on {
        let home = super::home_of(home, &journal, info.id).await?;
        let config = Config::load(&home)?;
        (home, config)
    } else {
        (home.clone(), config)
    };
    info.workspace = origin(&home, info.id).unwrap_or(info.workspace);
    let revealed = journal.revealed(info.id).await?;
    printer.notes(config.narrow(&home, std::path::Path::new(&info.workspace.0))?);
    Ok(NamedSession { home, config, keys, info, revealed })
}
