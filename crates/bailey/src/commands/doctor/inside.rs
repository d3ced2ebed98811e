//! The walls, truly tried: a command over a project of its own, in a home of its own beside everything else,
//! through the gate like any other effect.

use super::{Finding, own::why_unwritten, tiers::tiers};
use crate::{
    compose::{self, Keys, OpenSession, Session},
    config::Config,
    home::{Home, make_private},
    print::Printer,
};
use anyhow::{Context as _, Result, bail};
use bailey_kernel::Acted;
use bailey_protocol::{
    Action, Command, Enforced, ExecReport, Level, Report, SessionId, Status, Wall, WsPath,
};
use bailey_session::Opening;
use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

/// The longest that all of it may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What runs inside: writes into the layer, and says which git there is.
const SCRIPT: &str = "echo inside > tried.txt && git --version 2>/dev/null; test -f tried.txt";

/// What the walls did.
struct Tried {
    enforced: Enforced,
    report: ExecReport,
    changed: usize,
    took: Duration,
}

/// Tries the walls.
pub(super) async fn tried(home: &Home, config: &Config, printer: &Printer) -> Vec<Finding> {
    let scratch = home.root.join(format!("doctor-{}", std::process::id()));
    let id = match compose::new_session() {
        Ok(id) => id,
        Err(error) => return vec![Finding::fail("walls", format!("{error:#}"), "look at the clock above")],
    };
    let tried = match tokio::time::timeout(PATIENCE, inside(home, config, &scratch, id, printer)).await {
        Ok(tried) => tried,
        Err(_) => Err(anyhow::anyhow!("no answer within {} seconds", PATIENCE.as_secs())),
    };
    // What it changed may lie in another place than the home.
    let left = home.elsewhere(id).into_iter().chain(scratch.exists().then(|| scratch.clone()));
    for path in left {
        if let Err(error) = bailey_sandbox::remove(&path) {
            printer.note(&format!("`{}` could not be removed: {error}", path.display()));
        }
    }
    let (mut found, level) = match tried {
        Ok(tried) => (findings(&tried), Level::of(&tried.enforced)),
        // That says nothing of the walls.
        Err(error) if why_unwritten(&error).is_some() => {
            let says = format!("not tried, for the home cannot be written: {error:#}");
            return vec![Finding::fail("walls", says, "fix that first; nothing runs without a journal")];
        }
        Err(error) => {
            let says = format!("no command can run: {error:#}");
            let fix = "fix what is reported here and above; nothing runs without walls";
            (vec![Finding::fail("walls", says, fix)], Level::None)
        }
    };
    found.extend(tiers(config, level));
    found
}

async fn inside(
    home: &Home,
    config: &Config,
    scratch: &Path,
    id: SessionId,
    printer: &Printer,
) -> Result<Tried> {
    let own = Home { root: scratch.join("home"), user: home.user.clone(), agent: None };
    let project = scratch.join("project");
    for dir in [scratch, &own.root, &project] {
        make_private(dir)?;
    }
    let text = project.to_str().context("the home's path is not UTF-8")?;
    let workspace = WsPath(text.into());
    let keys = Keys::load(home, config, printer)?;
    // What there is, is tried, also where more is wanted: that is told tier by tier.
    let mut config = config.clone();
    config.tiers.internal = config.tiers.internal.min(Level::HIGHEST);
    let opening = Opening::New(id);
    let session = Session {
        // It hears of nobody, and has more to look at.
        is_bound: false,
        ..Session::new(&own, &config, keys, workspace, opening)
    };
    let begin = Instant::now();
    let OpenSession { host, .. } = compose::open(session).await?;
    let command = Command {
        argv: ["/bin/sh", "-c", SCRIPT].map(Into::into).into(),
        cwd: host.workspace().clone(),
        env: BTreeMap::new(),
        stdin: None,
        network: false,
        background: false,
        limits: config.command.clone(),
    };
    let output = match host.act(Action::Exec(command)).await? {
        Acted::Done(output) => output,
        Acted::Denied(reasons) => bail!("{}", reasons.join("; ")),
        Acted::Waiting(_) => bail!("the rules ask for a human before a command"),
    };
    let took = begin.elapsed();
    let outcome = output.outcome();
    if let Status::Failed { reason } = &outcome.status {
        bail!("{reason}");
    }
    let (Report::Exec(report), Some(enforced)) = (output.report(), &outcome.enforced) else {
        bail!("the command came to no end")
    };
    let changed = host.changes().await?.changes.len();
    Ok(Tried { enforced: enforced.clone(), report: report.clone(), changed, took })
}

fn findings(tried: &Tried) -> Vec<Finding> {
    let Tried { enforced, report, changed, took } = tried;
    let walls: Vec<&str> = enforced.walls.iter().map(|wall| wall.name()).collect();
    let mut findings = vec![Finding::ok(
        "walls",
        format!(
            "a command ran behind {} walls in {} ms (landlock ABI {}): {}",
            walls.len(),
            took.as_millis(),
            enforced.landlock_abi,
            walls.join(", ")
        ),
    )];
    findings.push(calls(enforced));
    findings.push(match (report.exit, changed) {
        (Some(0), 1) => Finding::ok("layer", "the file of the command stayed in the session's layer"),
        (exit, changed) => Finding::fail(
            "layer",
            format!("it ended with {exit:?}, and {changed} changes were seen where one was made"),
            "put the home on a local disk (BAILEY_HOME)",
        ),
    });
    findings.push(limits(enforced));
    findings.push(git(&String::from_utf8_lossy(&report.stdout.head.0)));
    findings
}

/// The list of system calls that was in force.
fn calls(enforced: &Enforced) -> Finding {
    let name = match enforced.custom.as_str() {
        "" => enforced.profile.name().to_owned(),
        own => format!("{own} (your own)"),
    };
    Finding::ok("system calls", format!("commands have those of the profile {name}"))
}

/// No kernel holds how much a tree of processes writes, so that the disk is watched everywhere.
fn limits(enforced: &Enforced) -> Finding {
    const CHECK: &str = "limits";
    let watched: Vec<&str> =
        enforced.watched.iter().filter(|wall| **wall != Wall::DiskLimit).map(|wall| wall.name()).collect();
    if watched.is_empty() {
        return Finding::ok(CHECK, "control groups limit memory and processes, and the disk is watched");
    }
    let says = format!("the kernel does not enforce these here; Bailey checks them: {}", watched.join(", "));
    let fix = "give Bailey control groups of its own: systemd-run --user --scope -p Delegate=yes bailey chat";
    let details = format!(
        "checked at least once a second, so a burst can exceed them for a moment: {}",
        enforced.absent.join("; ")
    );
    Finding { details: Some(details), ..Finding::warn(CHECK, says, fix) }
}

fn git(printed: &str) -> Finding {
    match printed.lines().find_map(|line| line.strip_prefix("git version ")) {
        Some(version) => Finding::ok("git", format!("{version}, inside the walls too")),
        None => Finding::warn(
            "git",
            "not found inside the walls: an agent cannot read a project's history",
            "install git in /usr, or put its directory on PATH",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Grade, git, limits};
    use bailey_protocol::{Enforced, Wall};

    #[test]
    fn limits_that_are_only_watched_and_a_git_that_is_not_there_are_told() {
        let watched = |walls: &[Wall]| {
            let absent = vec!["control groups: none is ours".to_owned()];
            limits(&Enforced { watched: walls.iter().copied().collect(), absent, ..Enforced::default() })
        };
        assert_eq!(watched(&[Wall::DiskLimit]).grade, Grade::Ok, "the control");
        let found = watched(&[Wall::MemoryLimit, Wall::DiskLimit]);
        assert_eq!(found.grade, Grade::Warn);
        assert!(found.says.contains("memory limit") && !found.says.contains("disk"), "{found:?}");
        assert!(found.details.is_some_and(|more| more.contains("a burst") && more.contains("none is ours")));
        assert_eq!(git("git version 2.39.5\n").grade, Grade::Ok, "the control");
        assert_eq!(git("sh: git: not found\n").grade, Grade::Warn);
    }
}
