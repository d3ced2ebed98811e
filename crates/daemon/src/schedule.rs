//! `bailey schedule`: tasks that are done by the clock, beneath the daemon.

use anyhow::{Context as _, Result, bail};
use bailey_channels::{Kind as ChannelKind, People, command::unknown, kinds};
use bailey_home::{
    config::Config,
    home::Home,
    program, project,
    schedules::{Cron, Schedule, Schedules, UNSAID, zone},
};
use bailey_journal::{Clock as _, SystemClock};
use bailey_policy::{Caller, Caveat, Condition, scope};
use bailey_protocol::{Kind, Role, Timestamp, WsPath};
use bailey_session::{
    client::Client,
    compose,
    exit::Mistyped,
    extensions::Extensions,
    wire::{Ask, DaemonAnswer},
};
use bailey_terminal::{
    print::{Printer, Style},
    short,
};
use clap::Subcommand;
use jiff::tz::TimeZone;
use serde_json::json;
use std::{path::PathBuf, process::ExitCode};

const CRON_HELP: &str = "\
Five fields of crontab(5): minute, hour, day of the month, month, day of the week, in this machine's local
time; `*`, `1,15`, `mon-fri`, `*/10`, and @hourly, @daily, @weekly, @monthly, @yearly. A task that was due
while no daemon ran runs once when the daemon starts. Each run is a session of its own, under your rules; a
question waits for you in `bailey approvals`.";

/// The arguments of `bailey schedule`.
#[derive(Debug, Subcommand)]
pub enum Args {
    /// Add a schedule: a task and its times
    #[command(after_help = CRON_HELP)]
    Add {
        /// The name of the schedule
        name: String,
        /// When the task runs, as in crontab(5)
        #[arg(long, value_name = "FIELDS")]
        cron: String,
        /// The task for the agent
        task: String,
        /// The project [default: the one you are in]
        #[arg(short = 'C', long, value_name = "DIR")]
        directory: Option<PathBuf>,
        /// The model, PROVIDER/NAME
        #[arg(long)]
        model: Option<String>,
        /// The token limit of each run, unless `limits.session_tokens` is lower
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
        tokens: Option<u64>,
        /// The only things that each run may do: `read,list:src`, `exec:cargo test`, `http:HOST`; may be
        /// given several times [default: everything that your rules allow or ask you about]
        #[arg(long, value_name = "KIND,…[:WHAT]")]
        may: Vec<String>,
        /// The channel, such as `telegram`, where the results go to its owner [default: nowhere]
        #[arg(long, value_name = "CHANNEL")]
        to: Option<String>,
    },
    /// List the schedules, with the next time of each
    List,
    /// Run a schedule now
    Run {
        /// The name of the schedule
        name: String,
    },
    /// Remove a schedule
    Rm {
        /// The name of the schedule
        name: String,
    },
}

const UNSEEN: &str = "tools look at a file before they change it: without `read` and `stat` the schedule \
    can replace no file, and without `stat` it can create none; use --may change,read,stat, with the same \
    paths";

/// Adds, lists, runs or removes schedules.
pub async fn run(home: &Home, asked: Args, printer: &Printer) -> Result<ExitCode> {
    match asked {
        Args::Add { name, cron, task, directory, model, tokens, may, to } => {
            let cron: Cron = cron.parse().map_err(Mistyped)?;
            if task.trim().is_empty() {
                return Err(Mistyped("the task is empty; write what the agent is to do".into()).into());
            }
            if let Some(model) = &model {
                Config::load(home)?.find(model).map_err(|error| Mistyped(format!("{error:#}")))?;
            }
            if let Some(to) = &to {
                may_go_to(home, to)?;
            }
            let (directory, workspace) = project::find(directory.as_deref(), home)?;
            let scope = scope(&may).map_err(|error| Mistyped(error.to_string()))?;
            let cannot_look = may_change_unseen(&scope);
            vouch(home, scope, &workspace)?;
            let (since, zone, sends_to) = (SystemClock.now(), zone()?, to.clone());
            let next = cron.after(since, &zone);
            let schedule = Schedule {
                id: compose::new_session()?.to_string(),
                cron,
                task,
                directory,
                model,
                tokens,
                may,
                agent: home.agent.clone(),
                to,
                owed: None,
                since,
                session: None,
                skipped: 0,
                begun: None,
            };
            Schedules::change(home, |schedules| schedules.add(&name, schedule))?;
            let next = next.map(|next| local(next, &zone)).unwrap_or_default();
            printer.note(&format!("the schedule `{name}` was added; it runs next on {next}"));
            if let Some(to) = &sends_to
                && People::of(home, to)?.owner(to).is_none()
            {
                printer.warn(&format!(
                    "no owner is let in on the channel `{to}` yet, so results wait: write to the bot, then \
                     `bailey channels pair {to} CODE --as owner`"
                ));
            }
            if zone.is_unknown() {
                printer.warn(UNSAID);
            }
            if cannot_look {
                printer.warn(UNSEEN);
            }
            if Client::connect(home)?.is_none() {
                printer.note("schedules run only while the daemon runs; start it with `bailey start`");
            }
        }
        Args::List => list(home, printer)?,
        Args::Run { name } => {
            let mut daemon = Client::connect(home)?
                .context("the daemon runs schedules, and no daemon runs; start it with `bailey start`")?;
            let DaemonAnswer::Opened { session, .. } =
                daemon.ask(Ask::Run { schedule: name.clone() }).await?
            else {
                bail!(
                    "the daemon gave an unexpected answer; restart it with `bailey stop`, then \
                     `bailey start`"
                );
            };
            if printer.is_json() {
                printer.json(&json!({ "schedule": name, "session": session }));
            } else {
                printer.note(&format!(
                    "the schedule `{name}` has begun; watch it with `bailey chat --resume {}`",
                    short(&session)
                ));
            }
        }
        Args::Rm { name } => {
            Schedules::change(home, |schedules| {
                schedules.get(&name)?;
                schedules.0.remove(&name);
                Ok(())
            })?;
            printer.note(&format!("the schedule `{name}` was removed"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks that a channel can bring results to its owner.
fn may_go_to(home: &Home, to: &str) -> Result<()> {
    let config = kinds::load(home)?;
    let Some(channel) = config.channels.get(to) else {
        return Err(Mistyped(unknown(&config, to)).into());
    };
    if !ChannelKind::of(&channel.kind).is_some_and(|kind| kind.writes_to_people()) {
        return Err(Mistyped(format!(
            "the channel `{to}` is a {}, which writes to nobody by itself; results can go to a `telegram` channel",
            channel.kind
        ))
        .into());
    }
    Ok(())
}

/// Whether it may change what its tools may not look at first.
fn may_change_unseen(scope: &[Condition]) -> bool {
    let has = |kind| scope.iter().flat_map(|it| &it.action).any(|kinds| kinds.contains(&kind));
    has(Kind::Change) && !(has(Kind::Read) && has(Kind::Stat))
}

/// That the rules, as they are now, allow all that a schedule is to do: nobody is there to be asked when it
/// does.
fn vouch(home: &Home, scope: Vec<Condition>, workspace: &WsPath) -> Result<()> {
    if scope.is_empty() {
        return Ok(());
    }
    let trust = Caller::of(Role::Agent).trust.map(|trust| vec![trust]);
    let of_agent = |it| Condition { role: Some(vec![Role::Agent]), trust: trust.clone(), ..it };
    let scope = scope.into_iter().map(of_agent).collect();
    let config = Config::load(home)?;
    let policy = compose::policy(home, &Extensions::read(&config))?.0;

    let places = compose::kernel_config(home, &config, program::kept(&config)?).places(workspace);
    let caveat = Caveat { scope: Some(scope), ..Caveat::default() };
    policy.vouch(&caveat, &places).map_err(|why| {
        Mistyped(format!(
            "{why}; a schedule may do only what your rules allow without a question, so allow it in a rule \
             first"
        ))
    })?;
    Ok(())
}

fn list(home: &Home, printer: &Printer) -> Result<()> {
    let schedules = Schedules::of(home)?.0;
    if schedules.is_empty() && !printer.is_json() {
        printer.note("there are no schedules; `bailey schedule add --help` says how to add one");
    }
    let zone = zone()?;
    for (name, schedule) in schedules {
        let next = schedule.cron.after(SystemClock.now(), &zone);
        let Schedule { cron, task, directory, model, tokens, may, agent, to, session, skipped, .. } =
            schedule;
        if printer.is_json() {
            printer.json(&json!({
                "name": name, "cron": cron, "task": task, "directory": directory, "model": model,
                "tokens": tokens, "may": may, "agent": agent, "next": next.map(|next| next.to_string()), "session": session,
                "skipped": skipped, "to": to,
            }));
            continue;
        }
        let next = next.map(|next| local(next, &zone)).unwrap_or_default();
        printer.line(format!("{}  {cron}  next {next}", printer.paint(Style::Bold, &name)));
        let by = agent.map(|agent| format!("; by {agent}")).unwrap_or_default();
        let bound = tokens.map(|tokens| format!("; {tokens} tokens at most")).unwrap_or_default();
        let last = session.map(|session| format!("; last session {}", short(&session))).unwrap_or_default();
        let times = if skipped == 1 { "once".into() } else { format!("{skipped} times") };
        let left = if skipped == 0 {
            String::new()
        } else {
            format!(", and skipped {times} because that session still ran")
        };
        let to = to.map(|to| format!("; results to {to}")).unwrap_or_default();
        let place = format!("  in {}{by}{bound}{to}{last}{left}", directory.display());
        printer.line(printer.paint(Style::Plain, &place));
        if !may.is_empty() {
            let may = format!("  may {}, and nothing else", may.join("; "));
            printer.line(printer.paint(Style::Plain, &may));
        }
        printer.line(printer.paint(Style::Dim, &format!("  {}", bailey_terminal::one_line(&task))));
    }
    Ok(())
}

/// As the clock on the wall shows it.
fn local(moment: Timestamp, zone: &TimeZone) -> String {
    moment.to_zoned(zone.clone()).strftime("%a %F %H:%M").to_string()
}
