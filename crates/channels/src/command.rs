//! `bailey channels`: who may speak over the chat channels of a home. The process that talks with a platform
//! is here, too (`bridge.rs`); the daemon starts it.

use crate::{People, kinds};
use anyhow::{Result, bail};
use bailey_home::{config::Config, home::Home};
use bailey_protocol::{Role, spell::meant};
use bailey_session::{
    client::Client,
    exit::Mistyped,
    wire::{Ask, DaemonAnswer},
};
use bailey_terminal::print::{Printer, Style};
use clap::{Subcommand, ValueEnum};
use serde_json::json;
use std::process::ExitCode;

/// The arguments of `bailey channels`.
#[derive(Debug, Subcommand)]
pub enum Args {
    /// Show the configured channels, and whether they are up
    List,
    /// List the people who may write on a channel, and the people who ask to
    People,
    /// Let in the person who got this code on a channel
    Pair {
        /// The channel's name in config.toml
        channel: String,
        /// The code that the person got
        code: String,
        /// The role of the person
        #[arg(long = "as", value_name = "ROLE", value_enum, default_value_t = PersonRole::User)]
        role: PersonRole,
    },
    /// Stop letting a person write on a channel
    Forget {
        /// The channel's name in config.toml
        channel: String,
        /// The person's id on the channel, as `bailey channels people` shows it
        id: String,
    },
    /// Private: the process that talks with a platform, beneath the daemon
    #[command(hide = true)]
    Run {
        /// The channel's name
        channel: String,
    },
}

/// What somebody at a channel is to a home.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PersonRole {
    /// You, on your phone: answers questions, stops everything
    Owner,
    /// Somebody who looks after it for you: the same
    Operator,
    /// Somebody who gives the agent work, and answers no questions
    User,
    /// Somebody whose words are data to the agent and no instruction
    Guest,
}

/// What is told of a channel that is not configured: the channel that was probably meant, or those that
/// are there.
pub fn unknown(config: &Config, name: &str) -> String {
    let known: Vec<&str> = config.channels.keys().map(String::as_str).collect();
    let hint = match (meant(name, known.iter().copied()), known.as_slice()) {
        (Some(meant), _) => format!("did you mean `{meant}`?"),
        (None, []) => {
            format!("configure it in config.toml as [channels.{name}]: `bailey guide channels` says how")
        }
        (None, known) => format!("there are `{}`", known.join("`, `")),
    };
    format!("there is no channel `{name}`; {hint}")
}

/// Shows the channels and the people there, and lets people speak or stops them.
pub async fn run(home: &Home, command: Args, printer: &Printer) -> Result<ExitCode> {
    let config = kinds::load(home)?;
    let known = |name: &str| match config.channels.contains_key(name) {
        true => Ok(()),
        false => Err(Mistyped(unknown(&config, name))),
    };
    match command {
        Args::List => list(home, &config, printer).await?,
        Args::People => people(home, &config, printer)?,
        Args::Pair { channel, code, role } => {
            known(&channel)?;
            let role = match role {
                PersonRole::Owner => Role::Owner,
                PersonRole::Operator => Role::Operator,
                PersonRole::User => Role::User,
                PersonRole::Guest => Role::Guest,
            };
            let (person, was_known) = People::change(home, &channel, |people| people.pair(&code, role))?;
            if was_known {
                // Connections of before go by what they were then.
                anew(home).await?;
            }
            if printer.is_json() {
                printer.json(
                    &json!({ "channel": channel, "id": person.id, "name": person.name, "role": role.name() }),
                );
            } else {
                let (name, id) = (&person.name, &person.id);
                say(printer, &format!("{name} ({channel} {id}) may write here now, as {}", role.name()));
            }
        }
        Args::Forget { channel, id } => {
            known(&channel)?;
            let person = People::change(home, &channel, |people| people.forget(&id))?;
            anew(home).await?;
            printer.note(&format!(
                "{} ({channel} {id}) may not write here any more; a task that they gave before and that \
                 still runs goes on (`bailey status` shows it)",
                person.name
            ));
        }
        Args::Run { .. } => bail!("the daemon begins the processes of channels: bailey start"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Has the channels begin anew, where the daemon runs: connections that were made before are those of before.
async fn anew(home: &Home) -> Result<()> {
    if let Some(mut daemon) = Client::connect(home)? {
        daemon.ask(Ask::Anew).await?;
    }
    Ok(())
}

async fn list(home: &Home, config: &Config, printer: &Printer) -> Result<()> {
    let running = match Client::connect(home)? {
        Some(mut daemon) => match daemon.ask(Ask::Status).await? {
            DaemonAnswer::Status(status) => Some(status.channels),
            _ => None,
        },
        None => None,
    };
    if config.channels.is_empty() && !printer.is_json() {
        printer.note("no channel is configured; `bailey guide channels` says how to configure one");
    }
    for (name, channel) in &config.channels {
        let state = running.iter().flatten().find(|state| state.name == *name);
        let how = match (state, &running) {
            (Some(state), _) if state.up => "up".to_owned(),
            (Some(state), _) => format!("down: {}", state.note),
            (None, Some(_)) => "not loaded yet; run `bailey reload`".to_owned(),
            (None, None) => "no daemon runs; start it with `bailey start`".to_owned(),
        };
        let People { people, asked } = People::of(home, name)?;
        if printer.is_json() {
            printer.json(&json!({
                "channel": name, "kind": channel.kind, "workspace": channel.workspace, "up": state.is_some_and(|it| it.up),
                "state": how, "people": people.len(), "asked": asked.len(),
            }));
        } else {
            let how = printer.paint(Style::Plain, &how);
            printer.line(format!("{}  {how}", printer.paint(Style::Bold, name)));
            say(printer, &format!("  project {}; people: {}", channel.workspace.display(), people.len()));
        }
    }
    Ok(())
}

/// A line with words of others: what people call themselves is theirs to choose.
fn say(printer: &Printer, text: &str) {
    printer.line(printer.paint(Style::Plain, text));
}

fn people(home: &Home, config: &Config, printer: &Printer) -> Result<()> {
    for name in config.channels.keys() {
        let People { people, asked } = People::of(home, name)?;
        for person in people {
            if printer.is_json() {
                printer.json(&json!({
                    "channel": name, "id": person.id, "name": person.name, "role": person.role.name(),
                    "since": person.since.to_string(),
                }));
            } else {
                say(printer, &format!("{name}  {}  {}  {}", person.id, person.role.name(), person.name));
            }
        }
        for asked in asked {
            if printer.is_json() {
                printer.json(&json!({
                    "channel": name, "id": asked.id, "name": asked.name, "code": asked.code,
                    "asked": asked.at.to_string(),
                }));
            } else {
                let told = format!(
                    "{name}  {}  asks to be let in: {}; let them in with `bailey channels pair {name} {}`",
                    asked.id, asked.name, asked.code
                );
                say(printer, &told);
            }
        }
    }
    Ok(())
}
