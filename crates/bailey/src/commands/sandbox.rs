//! `bailey sandbox run`: a command inside the walls, without an agent.

mod live;

use crate::{
    cli::Sandbox,
    compose::{self, Keys, OpenSession, Session},
    config::Config,
    exit,
    front::{EndSignals, short},
    home::Home,
    print::Printer,
    project,
};
use anyhow::{Context as _, Result, bail};
use bailey_kernel::{Acted, Output, Scope};
use bailey_policy::file::Texts;
use bailey_protocol::{Action, Command, ExecReport, Report, SessionId, Status, WsPath};
use bailey_session::{Host, HostError, Opening};
use bailey_tools::Unreached;
use serde_json::Value;
use std::{collections::BTreeMap, future::Future, process::ExitCode};
use tokio::sync::mpsc;

pub(super) async fn run(home: &Home, command: Sandbox, printer: &Printer) -> Result<ExitCode> {
    let Sandbox::Run { directory, profile, network, keep, session, command } = command else {
        return super::doctor::walls(home, printer).await;
    };
    let (root, workspace) = project::find(directory.as_deref(), home)?;
    let mut config = Config::load(home)?;
    printer.notes(config.narrow(home, &root)?);
    if let Some(name) = profile {
        config.choose_calls(home, &name)?;
    }
    project::remarks(&root).iter().for_each(|remark| printer.warn(remark));
    let keys = Keys::load(home, &config, printer)?;
    let cwd = std::fs::canonicalize(directory.as_deref().unwrap_or(std::path::Path::new(".")))?;
    let cwd = WsPath(cwd.display().to_string());
    let mut command = Command {
        argv: command,
        cwd,
        env: BTreeMap::new(),
        stdin: None,
        network,
        background: false,
        limits: config.command.clone(),
    };
    let is_ready = session.is_some();
    if is_ready {
        // Whoever makes workspaces ready waits for it, and it goes with them.
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    }
    let id = match session {
        Some(name) => serde_json::from_value(name.as_str().into()).context("that is no session's name")?,
        None => compose::new_session()?,
    };
    let opening = Opening::New(id);
    let session = Session {
        is_scratch: !keep,
        standpoint: Some(project::standpoint(directory.as_deref(), &workspace)?),
        ..Session::new(home, &config, keys, workspace.clone(), opening)
    };
    let OpenSession { host, kernel, remarks, witness, .. } = compose::open(session).await?;
    // It may be at work in a copy.
    let is_copied = *host.workspace() != workspace;
    if is_ready && is_copied {
        bail!(
            "no workspace can be prepared where there are no namespaces (`bailey guide sandbox`); begin the task \
             itself"
        );
    }
    if let Some(moved) = command.cwd.moved(&workspace.0, &host.workspace().0) {
        command.cwd = moved;
    }
    // Of what is not kept nothing can be lost; that less stands around it, which comes first, is to be known
    // all the same.
    let told = if keep { remarks.len() } else { usize::from(is_copied) };
    remarks.iter().take(told).for_each(|remark| printer.warn(remark));
    let shown = command.clone();
    let by = host.owner();
    let acting = act(&host, &by, Action::Exec(command), config.command.output_bytes, printer);
    let Some(((acted, unread), ended)) = cut_by(EndSignals::listen()?, &by, acting).await else {
        return Ok(ExitCode::from(exit::CANCELLED));
    };
    let (_ops, mut inbox) = tokio::sync::mpsc::channel(1);
    let discarded = if keep { Ok(()) } else { host.discard(&mut inbox).await.map(drop) };
    compose::sign(kernel.journal(), witness.as_ref(), Some((&kernel, &host.owner())), printer).await;
    let kept = keep.then(|| host.session());
    let code = match acted? {
        Acted::Done(output) if let Some(code) = ended => {
            if printer.is_json() {
                printer.json(&document(&output, kept, &shown)?);
            }
            Ok(ExitCode::from(code))
        }
        Acted::Done(_) if unread.is_some() => Ok(ExitCode::from(unread.unwrap_or(exit::UNREAD))),
        Acted::Done(output) => report(&output, kept, &shown, printer),
        Acted::Denied(reasons) => {
            let error = format!("denied: {}", reasons.join("; "));
            if printer.is_json() {
                printer.json_error(&error);
            }
            printer.note(&error);
            Ok(ExitCode::from(exit::DENIED))
        }
        Acted::Waiting(question) => {
            kernel.withdraw(&host.owner(), question, "nobody waits for an answer").await?;
            // Nobody said yes, which is a no.
            return Err(exit::Failure { error: asked(home, network, is_ready), code: exit::DENIED }.into());
        }
    };
    // Last, so that it hides nothing of what the command came to; and of one that was not run there is
    // nothing.
    if code.is_ok() {
        discarded.context("the changes of the command could not be discarded")?;
    }
    if let Some(session) = kept.filter(|_| !printer.is_json()) {
        let name = short(&session);
        printer.note(&format!("kept as session {name}: bailey sessions diff|apply|discard {name}"));
    }
    code
}

/// What to do where the rules ask, and nobody is there to be asked.
fn asked(home: &Home, network: bool, is_ready: bool) -> String {
    let own = if is_ready { "prewarm add" } else { "sandbox run" };
    let told =
        format!("the rules require a person's yes before this command, and `bailey {own}` asks nobody");
    let explain = "bailey policy explain --role owner";
    let has_rules = Texts::of_dir(&home.policy()).is_ok_and(|rules| rules.names().next().is_some());
    // A first file of one's own takes the place of the default rules, unless they lie beside it.
    let first =
        if has_rules { "" } else { "`bailey init`, which writes the default rules down beside it, and " };
    match network {
        false => format!(
            "{told}; `{explain} exec -- COMMAND` shows which rule, and a rule of yours can allow the \
             command (`bailey guide policy`)"
        ),
        true => format!(
            "{told}; `{explain} --network exec -- COMMAND` shows which rule. The rule below lets your own \
             commands ask for a way to the network, and each request is still judged by itself \
             (`bailey guide network`). Put it into a file, run {first}`bailey policy update FILE`, and then \
             `bailey {own}` again:\n{MAY_ASK}"
        ),
    }
}

/// A rule by which the owner's own commands get a way to the network.
const MAY_ASK: &str = "
[[rule]]
name = \"own-network\"
answer = \"allow\"
priority = 1
match = { action = \"exec\", network = true, role = \"owner\" }";

/// Performs it, printing what the command prints; what scripts read is the whole outcome instead, at its end.
async fn act(
    host: &Host,
    by: &Scope,
    action: Action,
    limit: u64,
    printer: &Printer,
) -> (Result<Acted, HostError>, Option<u8>) {
    let (out, mut pieces) = mpsc::channel(live::PIECES_WAITING_MAX);
    if printer.is_json() {
        let unread = async { while pieces.recv().await.is_some() {} };
        return (tokio::join!(host.act_printing(by, action, out), unread).0, None);
    }
    tokio::join!(host.act_printing(by, action, out), live::write(pieces, by.cancel(), limit, printer))
}

/// Waits for it. A signal that asks this program to end cancels what it does, and is the code to exit with;
/// at a second one nothing is waited for any more.
async fn cut_by<T>(
    mut signals: EndSignals,
    by: &Scope,
    work: impl Future<Output = T>,
) -> Option<(T, Option<u8>)> {
    tokio::pin!(work);
    let code = tokio::select! {
        done = &mut work => return Some((done, None)),
        code = signals.heard() => code,
    };
    by.cancel().cancel();
    tokio::select! {
        done = &mut work => Some((done, Some(code))),
        _ = signals.heard() => None,
    }
}

/// What scripts read: the outcome, and beside it the session that is kept.
fn document(output: &Output, kept: Option<SessionId>, command: &Command) -> serde_json::Result<Value> {
    let mut document = serde_json::to_value(output.outcome())?;
    let advice = match output.report() {
        Report::Exec(report) => bailey_tools::raise(report, &command.limits)
            .or_else(|| unreached(command, output, report).map(str::to_owned)),
        _ => None,
    };
    if let Value::Object(fields) = &mut document {
        fields.extend(kept.map(|session| ("session".to_owned(), session.to_string().into())));
        fields.extend(advice.map(|advice| ("advice".to_owned(), advice.into())));
    }
    Ok(document)
}

fn report(
    output: &Output,
    kept: Option<SessionId>,
    command: &Command,
    printer: &Printer,
) -> Result<ExitCode> {
    let limits = &command.limits;
    if printer.is_json() {
        printer.json(&document(output, kept, command)?);
    }
    let Report::Exec(report) = output.report() else {
        let Status::Failed { reason } = &output.outcome().status else { bail!("the command did not end") };
        bail!("{reason}");
    };
    if !printer.is_json() {
        let enforced = output.outcome().enforced.as_ref();
        let limit =
            |name| format!("{}{}", bailey_tools::limit(name, limits), bailey_tools::burst(name, enforced));
        let ended = report.limit.as_deref().map(|name| format!("ended by the {}", limit(name)));
        let told: Vec<String> = ended.into_iter().chain(bailey_tools::raise(report, limits)).collect();
        if !told.is_empty() {
            printer.warn(&told.join("; "));
        }
        for refused in &report.refused {
            let guide = " (`bailey guide network`)";
            let refused = refused.strip_suffix(guide).unwrap_or(refused);
            printer.warn(&format!("the network door refused {refused}{guide}"));
        }
        for failed in &report.not_passed {
            printer.warn(&format!("the network door could not pass on {failed}"));
        }
        let more = [("refused", report.refused_more), ("could not pass on", report.not_passed_more)];
        for (what, count) in more.into_iter().filter(|(_, count)| *count > 0) {
            let requests = if count == 1 { "request" } else { "requests" };
            printer.warn(&format!("the network door {what} {count} more {requests}: see `bailey audit log`"));
        }
        if let Some(why) = unreached(command, output, report) {
            printer.warn(why);
        }
    }
    Ok(ExitCode::from(code(report)))
}

/// What is missing to reach what the command tried to.
fn unreached(command: &Command, output: &Output, report: &ExecReport) -> Option<&'static str> {
    let why = Unreached::of(command, output.outcome(), report)?;
    Some(match why {
        Unreached::NoInterfaces => {
            "it asked which network interfaces there are: `--profile standard-net` tells it (`bailey guide sandbox`)"
        }
        Unreached::NoUnixSockets => {
            "the call `socket` was refused: these walls allow no Unix sockets, and behind Landlock alone no sockets at all \
             (`bailey guide sandbox` says where there are some)"
        }
        Unreached::NoWay => {
            "if the command failed because it needs a server: it has no network here; `--network` asks for \
             a way through the network door (`bailey guide network`)"
        }
        Unreached::NotTheDoor => {
            "if the command failed because it needs a server: only the network door leads to the network, \
             and it also resolves names; the program has to use the proxy that `HTTPS_PROXY` names \
             (`bailey guide network`)"
        }
    })
}

/// The command's own code, or 128 and the signal, as a shell says it.
fn code(report: &ExecReport) -> u8 {
    let code = report.exit.or_else(|| report.signal.map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(exit::FAILED)
}
