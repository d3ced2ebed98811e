//! The client side of the daemon's socket.

use super::wire::{self, Ask, DaemonAnswer, Request, VERSION};
use crate::{exit::Failure, home::Home};
use anyhow::{Context as _, Error, Result, bail};
use std::io::{self, ErrorKind};
use tokio::{io::BufReader, net::UnixStream};

/// A connection to the daemon of a home.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects; `None` when no daemon runs.
    ///
    /// # Errors
    /// When a daemon may run and cannot be reached.
    pub fn connect(home: &Home) -> Result<Option<Self>> {
        let stream = match wire::connect(&home.daemon(), wire::SOCKET) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                return Ok(None);
            }
            stream => stream.with_context(|| {
                format!("cannot reach the daemon at `{}`", home.daemon().join(wire::SOCKET).display())
            })?,
        };
        stream.set_nonblocking(true)?;
        Ok(Some(Self { stream: BufReader::new(UnixStream::from_std(stream)?) }))
    }

    /// Whether a daemon listens.
    pub fn is_there(home: &Home) -> bool {
        wire::connect(&home.daemon(), wire::SOCKET).is_ok()
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// The daemon's refusal, in its words; or the daemon ended before it answered.
    pub async fn ask(&mut self, ask: Ask) -> Result<DaemonAnswer> {
        let asked = wire::say(&mut self.stream, &Request { v: VERSION, ask }).await;
        // A daemon without room for another client says so without being asked, and reads nothing: its words
        // count.
        let lost = |error: &Error| error.is::<io::Error>();
        match (self.told().await, asked.context("the daemon has ended")) {
            (Ok(Some(told)), _) => Ok(told),
            (Ok(None), Ok(())) => bail!("the daemon ended before it answered"),
            (Ok(None), Err(error)) => Err(error),
            (Err(why), Err(error)) if lost(&why) => Err(error),
            (Err(why), _) => Err(why),
        }
    }

    /// The next message of the daemon; `None` once the daemon has ended.
    ///
    /// # Errors
    /// As for [`Client::ask`].
    pub async fn told(&mut self) -> Result<Option<DaemonAnswer>> {
        match wire::hear(&mut self.stream).await? {
            Some(DaemonAnswer::Refused { why, code }) => match code {
                Some(code) => Err(Failure { error: why, code }.into()),
                None => bail!(why),
            },
            told => Ok(told),
        }
    }
}
