//! Entries for the fuzz targets into what the program reads: its settings, a terminal's bytes, a model's
//! markdown. Only the feature `fuzz` has them. Each does what the program does with such a text, and fails
//! when a promise is broken.

pub use crate::front::fuzz::{card, keys, markdown};

use crate::{
    cli::{Approvals, Cli, Command, Policy},
    commands::{
        decide::{self, Request},
        desk,
    },
    config::{Config, Document},
    daemon::page,
    home::Home,
    telemetry::{ExportResult, Signal},
    wire,
};
use bailey_channels::{
    People,
    need::{self, Given, Need},
};
use bailey_daemon::schedule;
use bailey_policy::is_tool_name;
use bailey_session::packet::Packet;
use bailey_web::Act;
use clap::{Parser as _, error::ErrorKind};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::path::Path;

/// The human's `config.toml`. What is in force can be shown as a file that is taken again.
pub fn configuration(text: &str) {
    let Ok(document) = parse("config.toml", text) else { return };
    let home = Home { root: "/nowhere/.bailey".into(), user: "/nowhere".into(), agent: None };
    match Config::of(&home, &document) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(config) => assert!(config.values().iter().all(|(key, _)| !key.is_empty())),
    }
}

/// A trusted project's own settings: whatever they say, they only choose a model and lower limits.
pub fn project_settings(text: &str) {
    let Ok(document) = parse(".bailey/config.toml", text) else { return };
    let before = Config::default();
    let mut config = Config::default();
    if let Err(error) = config.obey(&document) {
        assert!(!error.to_string().is_empty());
    }
    assert!(config.budgets.session.tokens <= before.budgets.session.tokens, "a project raised the budget");
    assert!(config.tool_calls <= before.tool_calls, "a project raised the calls of a turn");
    assert!(config.command.wall_ms <= before.command.wall_ms, "a project raised a command's time");
    assert!(config.providers.keys().eq(before.providers.keys()), "a project named a provider");
}

/// A line of another runtime. What is allowed of it has the shape that is promised, however it was written.
pub fn line(bytes: &[u8]) {
    match decide::read(bytes) {
        Err(why) | Ok(Request::Begin(Err(why))) => assert!(!why.is_empty()),
        Ok(Request::Begin(Ok(declared))) => {
            assert!(declared.tools.iter().all(|tool| is_tool_name(&tool.name)))
        }
        Ok(Request::Decide { tool, args, .. }) => {
            if decide::is_judged(tool, args.clone()) {
                let read: Value = serde_json::from_str(&args).unwrap_or_default();
                let written = read.to_string();
                assert!(read.is_object() && decide::is_judged("t".into(), written), "{args}");
            }
        }
        Ok(Request::Hello | Request::Observe { .. } | Request::End) => {}
    }
}

/// What comes at a session's socket, by whom the first byte says.
pub fn session_line(bytes: &[u8]) {
    desk::line(bytes);
}

/// What the daemon is asked for over its socket, and what it hears of a session's process and answers.
pub fn daemon_line(bytes: &[u8]) {
    if let Some(wire::Request { v, ask }) = same::<wire::Request>(bytes) {
        let may = v == wire::VERSION || matches!(ask, wire::Ask::Stop { .. });
        assert_eq!(wire::asked(bytes).is_ok(), may);
    }
    same::<wire::Report>(bytes);
    same::<wire::DaemonAnswer>(bytes);
}

/// What a process that hears the world says to the daemon, and what it is answered. Whoever it brings is
/// nobody yet.
pub fn packet(bytes: &[u8]) {
    same::<Packet<bailey_web::Ask>>(bytes);
    same::<Packet<bailey_web::Answer>>(bytes);
    same::<Packet<Given>>(bytes);
    let Some(Packet { it: Need::Person(need::PersonRequest { id, name, at, .. }), .. }) =
        same::<Packet<Need>>(bytes)
    else {
        return;
    };
    let mut people = People::default();
    assert!(people.speaker("c", &id).is_none() && !people.is_told_enough(&id));
    let told = people.ask(&id, &name, &at).ok().flatten();
    assert!(told.is_some_and(|(code, is_new)| is_new && code.is_ascii()));
    while people.ask(&id, &name, &at).is_ok_and(|told| told.is_some()) {}
    assert!(people.speaker("c", &id).is_none() && people.is_told_enough(&id));
}

/// What was read, where it is one: said again, it is the same.
fn same<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let read: T = serde_json::from_slice(bytes).ok()?;
    let said = serde_json::to_string(&read).expect("what was read can be said");
    let again: T = serde_json::from_str(&said).expect("what was said can be read");
    assert_eq!(serde_json::to_string(&again).expect("it can be said again"), said);
    Some(read)
}

/// What a collector says to what it was sent. Whatever it is, a line of the log ends where it seems to.
pub fn collector(bytes: &[u8]) {
    if let ExportResult::InPart(rejected, words) = ExportResult::of(Signal::Traces, 200, None, bytes) {
        assert!(rejected > 0 || !words.is_empty());
        assert!(words.chars().count() <= 200 && !words.chars().any(char::is_control), "{words:?}");
    }
}

/// What a browser wants done. Whatever it says, that command is what the words are, and none of them is a
/// flag of its own.
pub fn act(bytes: &[u8]) {
    let Ok(act) = serde_json::from_slice::<Act>(bytes) else { return };
    let wanted = page::name(&act);
    let Ok((words, _)) = page::words_to_do(act) else { return };
    let words = ["bailey", "--json"].map(str::to_owned).into_iter().chain(words);
    match Cli::try_parse_from(words) {
        Ok(cli) => {
            assert!(cli.home.is_none(), "another home");
            let is_it = match cli.command {
                Command::Approvals(Approvals::Approve { session, pattern, .. }) => {
                    assert!(!session && !pattern, "for longer than once");
                    wanted == "approve"
                }
                Command::Approvals(Approvals::Reject { .. }) => wanted == "reject",
                Command::Policy(Policy::Update(update)) => {
                    assert!(update.remove.is_none());
                    wanted == if update.dry_run { "try_rules" } else { "update_rules" }
                }
                Command::Schedule(schedule::Args::Add { .. }) => wanted == "add_schedule",
                Command::Schedule(schedule::Args::Run { .. }) => wanted == "run_schedule",
                Command::Schedule(schedule::Args::Rm { .. }) => wanted == "remove_schedule",
                Command::Backup(asked) => asked.to.is_none() && !asked.with_keys && wanted == "backup",
                Command::Estop { release, .. } => !release && wanted == "estop",
                _ => false,
            };
            assert!(is_it, "{wanted} became another command");
        }
        Err(error) => assert!(
            !matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::UnknownArgument
            ),
            "{error}"
        ),
    }
}

fn parse(name: &str, text: &str) -> Result<Document, crate::config::ConfigError> {
    let document = Document::parse(Path::new(name), text.to_owned())?;
    let (keys, names) = (document.keys().count(), document.names().len());
    assert!(names <= keys, "{names} names of {keys} keys");
    Ok(document)
}
