//! The seam between the walls and the network door: who serves the requests of commands.

use crate::{BoxFuture, Door, Refused, kernel::random};
use serde::{Deserialize, Serialize};
use std::{fmt, net::TcpListener, sync::Arc};
use tokio_util::sync::CancellationToken;

/// What the requests of one command show at the door: other commands of the session share its network.
#[derive(Clone, PartialEq, Eq)]
pub struct Pass(Arc<str>);

impl Pass {
    /// One that nobody guesses, of 128 random bits.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn random() -> Result<Self, Refused> {
        let bytes: [u8; 16] = random()?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()))
    }

    /// Its letters, to be given to the command.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").finish_non_exhaustive()
    }
}

/// What a command finds in a variable in the place of a key that it never holds. It means nothing but at the
/// door.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandIn {
    /// The variable.
    pub variable: String,
    /// Its value.
    pub value: String,
    /// For one that is a password: of what server, as a URL, and of which user there.
    pub user: Option<(String, String)>,
}

/// Where the requests of one command come from.
#[derive(Debug)]
pub struct RequestSource {
    /// A listener in the command's own network.
    pub listener: TcpListener,
    /// What a request must show.
    pub pass: Pass,
    /// What each request goes through.
    pub door: Door,
}

/// The requests of one command that did not pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turned {
    /// What was refused.
    pub refused: RequestSummary,
    /// What was allowed and could not be passed on, or not to its end.
    pub failed: RequestSummary,
}

/// Requests in short: the first of them, each once if it is short enough to be compared, and the number of
/// the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestSummary {
    /// Method, URL, and why.
    pub first: Vec<String>,
    /// Requests that are none of these, each try counted.
    pub more: u32,
}

/// Serves the requests of commands inside the walls. Each is an effect of its own, asked for at the [`Door`]
/// of its command's.
pub trait Gateway: fmt::Debug + Send + Sync + 'static {
    /// What commands find in the place of keys.
    fn stand_ins(&self) -> Vec<StandIn>;

    /// Hosts that commands ask it for although inside they would be taken for the loopback, such as
    /// `127.0.0.1`: the owner has a place there.
    fn own_hosts(&self) -> Vec<String>;

    /// Serves until the command has `ended`, and then cuts off what still goes on.
    fn serve(&self, way: RequestSource, ended: CancellationToken) -> BoxFuture<'static, Turned>;
}
