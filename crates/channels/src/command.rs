//! `bailey channels`: who may speak over the chat channels of a home. The process that talks with a platform
//! is here, too (`bridge.rs`); the daemon starts it.

use crate::{People, kinds};
use anyhow::{Result, bail};
use bailey_home::{config::Config, home::Home};
use bailey_protocol::{Role, spell::meant};
use bailey_session::{
    client::Client,
    exit::{self, Mistyped},
    wire::{Ask, DaemonAnswer},
};
use bailey_terminal::{
    confirm, one_line,
    print::{Printer, Style},
};
use clap::{Subcommand, ValueEnum};
use serde_json::json;
use std::{io::IsTerminal as _, process::ExitCode};

/// The arguments of `bailey channels`.
#[derive(Debug, Subcommand)]
pub enum Args {
    /// Show the configured channels, and whether they are up
    List,
    /// Add a channel about the current project: this asks for the bot's token, or reads it from a pipe
    Add(Added),
    /// List the people who may write on a channel, and the people who ask to
    People,
    /// Let in the person who got this code on a channel, or change the role of a person who is let in
    Pair {
        /// The channel's name in config.toml
        channel: String,
        /// The code that the person got; or the id of a person who is let in
        #[arg(value_name = "CODE|ID")]
        code: String,
        /// The role of the person (a person with a code is a user otherwise)
        #[arg(long = "as", value_name = "ROLE", value_enum)]
        role: Option<PersonRole>,
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

/// The arguments of `bailey channels add`.
#[derive(Debug, clap::Args)]
pub struct Added {
    /// The platform
    #[arg(value_enum)]
    pub kind: Platform,
    /// The channel's name in config.toml; the platform's name otherwise
    pub name: Option<String>,
    /// The URL of a server of your own that speaks the platform's protocol
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
}

/// The platforms to which a bot's token is all that a channel needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Platform {
    /// A bot of yours on Telegram
    Telegram,
}

impl Platform {
    /// The name of its kind of channel.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Telegram => crate::telegram::KIND.name,
        }
    }
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

/// Whether the person with this code, or number, is meant to become an owner. A terminal is asked where there
/// is an owner already, or where others ask, too: a stranger may have written first.
async fn is_meant(home: &Home, channel: &str, code: &str) -> Result<bool> {
    let all = People::of(home, channel)?;
    let is_clear = all.owner(channel).is_none() && all.asked.len() < 2;
    if is_clear || !std::io::stdin().is_terminal() {
        return Ok(true);
    }
    let asks = all.asked.iter().find(|asked| asked.code.eq_ignore_ascii_case(code));
    let who =
        asks.map_or_else(|| code.to_owned(), |asked| format!("{} ({channel} {})", asked.name, asked.id));
    Ok(confirm(&format!("{} becomes an owner, who may do all that you may. Go on?", one_line(&who))).await)
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
            let role = role.map(|role| match role {
                PersonRole::Owner => Role::Owner,
                PersonRole::Operator => Role::Operator,
                PersonRole::User => Role::User,
                PersonRole::Guest => Role::Guest,
            });
            if role == Some(Role::Owner) && !is_meant(home, &channel, &code).await? {
                printer.note("nothing was changed");
                return Ok(ExitCode::from(exit::DENIED));
            }
            let (person, was_known) = People::change(home, &channel, |people| people.let_in(&code, role))?;
            // Connections of before go by what they were then.
            tell(home, if was_known { Ask::Anew } else { Ask::LetIn }).await?;
            if printer.is_json() {
                printer.json(&json!({
                    "channel": channel, "id": person.id, "name": person.name,
                    "role": person.role.name(),
                }));
            } else {
                let (name, id) = (&person.name, &person.id);
                say(
                    printer,
                    &format!("{name} ({channel} {id}) may write here now, as {}", person.role.name()),
                );
            }
        }
        Args::Forget { channel, id } => {
            known(&channel)?;
            let person = People::change(home, &channel, |people| people.forget(&id))?;
            tell(home, Ask::Anew).await?;
            printer.note(&format!(
                "{} ({channel} {id}) may not write here any more; a task that they gave before and that \
                 still runs goes on (`bailey status` shows it)",
                person.name
            ));
        }
        Args::Add(_) | Args::Run { .. } => bail!("the daemon begins the processes of channels: bailey start"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells the daemon, where one runs, that the people have changed. After [`Ask::Anew`] the channels begin
/// anew: connections that were made before are those of before.
async fn tell(home: &Home, what: Ask) -> Result<()> {
    if let Some(mut daemon) = Client::connect(home)? {
        daemon.ask(what).await?;
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
        printer.note(
            "no channel is configured; `bailey channels add telegram` adds one (`bailey guide channels` says \
             more)",
        );
    }
    for (name, channel) in &config.channels {
        let state = running.iter().flatten().find(|state| state.name == *name);
        let how = match (state, &running) {
            (Some(state), _) if state.connecting => {
                "connecting; where it does not end, `bailey logs` says why".to_owned()
            }
            (Some(state), _) if state.up => "up".to_owned(),
            (Some(state), _) => format!("down: {}", state.note),
            (None, Some(_)) => "not loaded yet; run `bailey reload`".to_owned(),
            (None, None) => "no daemon runs; start it with `bailey start`".to_owned(),
        };
        let People { people, asked } = People::of(home, name)?;
        if printer.is_json() {
            printer.json(&json!({
                "channel": name, "kind": channel.kind, "workspace": channel.workspace,
                "up": state.is_some_and(|it| it.up && !it.connecting),
                "state": how, "people": people.len(), "asked": asked.len(),
                "connecting": state.is_some_and(|it| it.connecting),
            }));
        } else {
            let how = printer.paint(Style::Plain, &how);
            printer.line(format!("{}  {how}", printer.paint(Style::Bold, name)));
            say(printer, &format!("  project {}; people: {}", channel.workspace.display(), people.len()));
        }
    }
    if !printer.is_json() {
        kinds::faults(config).iter().for_each(|fault| printer.warn(fault));
    }
    Ok(())
}

/// A line with words of others: what people call themselves is theirs to choose.
fn say(printer: &Printer, text: &str) {
    printer.line(printer.paint(Style::Plain, text));
}

fn people(home: &Home, config: &Config, printer: &Printer) -> Result<()> {
    for name in config.channels.keys() {
        let all = People::of(home, name)?;
        for person in &all.people {
            if printer.is_json() {
                printer.json(&json!({
                    "channel": name, "id": person.id, "name": person.name, "role": person.role.name(),
                    "since": person.since.to_string(),
                }));
            } else {
                say(printer, &format!("{name}  {}  {}  {}", person.id, person.role.name(), person.name));
            }
        }
        for asked in &all.asked {
            if printer.is_json() {
                printer.json(&json!({
                    "channel": name, "id": asked.id, "name": asked.name, "code": asked.code,
                    "asked": asked.at.to_string(),
                }));
            } else {
                let told = format!(
                    "{name}  {}  asks to be let in: {}; let them in with `{}`",
                    asked.id,
                    asked.name,
                    all.command(name, &asked.code)
                );
                say(printer, &told);
            }
        }
    }
    Ok(())
}
