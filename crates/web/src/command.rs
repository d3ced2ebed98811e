//! `bailey web`: who is let in at the page. The process that serves it is here, too; the daemon starts it.

use crate::{
    Answer, Origins, PendingAsk,
    logins::{Greeting, Kind, Logins},
};
use anyhow::{Context as _, Result, bail};
use bailey_home::home::Home;
pub use bailey_session::{
    client::Client,
    confinement,
    exit::Mistyped,
    link::Link,
    packet::{self, Packet},
    wire::{Ask, DaemonAnswer},
};
use bailey_terminal::print::{Printer, Style};
use clap::Subcommand;
use serde_json::json;
use std::{io, os::fd::AsFd as _, process::ExitCode, sync::Arc};
use tokio::sync::mpsc;

/// The arguments of `bailey web`.
#[derive(Debug, Subcommand)]
pub enum Args {
    /// Print a link that logs one browser in, once
    Link,
    /// List the logins
    List,
    /// Print a token with which a collector reads metrics at `/metrics`
    Token {
        /// The name of the token
        name: String,
    },
    /// Revoke a login; its open connections end at once
    Revoke {
        /// The number of the login, as `bailey web list` shows it
        #[arg(value_name = "NUMBER")]
        login: Option<u64>,
        /// Revoke all logins
        #[arg(long, conflicts_with = "login")]
        all: bool,
    },
    /// Private: the process that hears browsers, beneath the daemon
    #[command(hide = true)]
    Serve,
}

/// How many questions wait for the daemon.
const ASKS_WAITING_MAX: usize = 64;
/// The longest question, in bytes.
const ASK_BYTES_MAX: usize = 60 << 10;

/// Lets browsers and collectors in, lists them, and stops them.
pub async fn run(home: &Home, command: Args, printer: &Printer) -> Result<ExitCode> {
    match command {
        Args::Link => {
            let client = Client::connect(home)?;
            let mut client = client.context("no daemon of this home runs; start it with `bailey start`")?;
            let DaemonAnswer::Link { url } = client.ask(Ask::Link).await? else {
                bail!(
                    "the daemon gave an unexpected answer; restart it with `bailey stop`, then \
                     `bailey start`"
                );
            };
            if printer.is_json() {
                printer.json(&json!({ "url": url }));
            } else {
                printer.line(&url);
                printer.note(
                    "the link logs one browser on this machine in, once, within five minutes; `bailey guide web` \
                     says how to connect from another machine",
                );
            }
        }
        Args::List => list(home, printer)?,
        Args::Token { name } => {
            let bearer = Logins::change(home, |logins| logins.add(Kind::Metrics, &name))?;
            if printer.is_json() {
                printer.json(&json!({ "token": bearer }));
            } else {
                printer.line(&bearer);
                printer.note(
                    "the token reads /metrics of the page, and nothing else; it is shown only this once",
                );
            }
        }
        Args::Revoke { login, all } => {
            let login = match (login, all) {
                (Some(login), false) => Some(login),
                (None, true) => None,
                _ => {
                    return Err(Mistyped(
                        "give the number of a login (`bailey web list` shows it), or `--all`".into(),
                    )
                    .into());
                }
            };
            let count = revoke(home, login).await?;
            if login.is_some() && count == 0 {
                bail!("there is no login with that number; `bailey web list` shows all logins");
            }
            if printer.is_json() {
                printer.json(&json!({ "revoked": count }));
            } else {
                printer.note(&format!("revoked logins: {count}; their open connections have ended"));
            }
        }
        Args::Serve => return serve().await,
    }
    Ok(ExitCode::SUCCESS)
}

async fn revoke(home: &Home, login: Option<u64>) -> Result<usize> {
    if let Some(mut client) = Client::connect(home)? {
        let DaemonAnswer::Revoked { count } = client.ask(Ask::Revoke { login }).await? else {
            bail!("the daemon gave an unexpected answer; restart it with `bailey stop`, then `bailey start`");
        };
        return Ok(count);
    }
    Logins::change(home, |logins| Ok(logins.revoke(login)))
}

fn list(home: &Home, printer: &Printer) -> Result<()> {
    let logins = Logins::of(home)?.logins;
    for login in &logins {
        let what = match login.kind {
            Kind::Browser => "browser",
            Kind::Metrics => "figures",
        };
        if printer.is_json() {
            printer.json(&json!({
                "login": login.number, "kind": what, "name": login.name, "since": login.since, "seen": login.seen,
            }));
        } else {
            let number = printer.paint(Style::Bold, &login.number.to_string());
            let since = format!("since {:.10}, seen {:.10}", login.since.to_string(), login.seen.to_string());
            printer.line(format!("{number}  {what}  {since}  {}", printer.paint(Style::Dim, &login.name)));
        }
    }
    if logins.is_empty() && !printer.is_json() {
        printer.note("there are no logins; `bailey web link` prints a link that logs a browser in");
    }
    Ok(())
}

/// Serves the page beneath the daemon: what it asks for goes there.
async fn serve() -> Result<ExitCode> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let greeted = packet::receive::<Packet<Greeting>>(&socket).ok().flatten();
    let Some((Packet { it: Greeting { at, shown_as }, .. }, Some(listener))) = greeted else {
        return Err(Mistyped("the daemon starts this: `bailey web link`".into()).into());
    };
    // INVARIANT: from here on this process hears what anybody sends to a port of this machine.
    confinement::bind_front()?;
    let listener = std::net::TcpListener::from(listener);
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let link: Arc<Link<Answer>> = Arc::new(Link::new(socket));
    let (asks, mut asked) = mpsc::channel::<PendingAsk>(ASKS_WAITING_MAX);
    tokio::spawn(async move {
        while let Some((ask, answer)) = asked.recv().await {
            let link = link.clone();
            tokio::spawn(async move {
                let is_fit = serde_json::to_vec(&ask).is_ok_and(|ask| ask.len() <= ASK_BYTES_MAX);
                let answered = match is_fit {
                    true => link.ask(&ask).await,
                    false => Err(anyhow::anyhow!("that is too long: {} KiB at most", ASK_BYTES_MAX >> 10)),
                };
                // Who asked may be gone.
                answer
                    .send(answered.unwrap_or_else(|error| (Answer::Refused(format!("{error:#}")), None)))
                    .ok();
            });
        }
    });
    let origins = Origins::new(at, shown_as.as_deref());
    #[cfg(feature = "controls")]
    let origins = if bailey_session::controls::is_page_without("origins") { Origins::all() } else { origins };
    crate::serve(listener, origins, asks).await?;
    Ok(ExitCode::SUCCESS)
}
