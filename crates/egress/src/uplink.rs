//! A standing way to the servers of a chat channel, or to a collector. It is one effect from its opening to
//! its closing, in which requests go out as they come. The words in them stand in the journal where they
//! were said; the outcome tells how many bytes passed.
//!
//! It leads to the servers that the action names, with the methods that it names there, and nowhere else: the
//! rules judge each of them before the uplink opens, and each request is compared with them again. A request
//! is answered ([`UplinkEnd::send`]); a stream goes on, as a WebSocket or as server-sent events
//! ([`UplinkEnd::open`]). No redirect is followed.
//!
//! The key goes only to servers that take it. It stands in a header, with a text before it, where the action
//! names one; else in the place of [`KEY`]. A body that has no place for it is signed with it, as Standard
//! Webhooks has it.

mod events;
mod requests;
mod stream;

#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;

pub use stream::{Opening, StreamEnd, StreamKind, StreamMessage, UplinkStream};

use crate::{Config, ConfigError, signature};
use bailey_kernel::{BoxFuture, Executor, Io, Output, Permit, ResolveError, Route, Seal};
use bailey_protocol::{Action, Outcome, RelayReport, Report, SessionId, Status, Uplink as Way};
use bailey_secrets::Vault;
use requests::Sender;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    task::JoinSet,
    time::Instant,
};

/// Where the key stands in the target of a request, and in a keyed message.
pub const KEY: &str = "{key}";

/// Requests and streams that may be open at once, and requests that wait for that.
const AT_ONCE_MAX: usize = 16;
const WAITING_MAX: usize = 64;

/// A request over an uplink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method, in upper case.
    pub method: String,
    /// A path beneath the first server's URL, or a whole URL at one of the servers; with [`KEY`] in the place
    /// of the key.
    pub target: String,
    /// Headers. The key's header is not among them.
    pub headers: Vec<(String, String)>,
    /// The body: JSON, unless a header says otherwise.
    pub body: Vec<u8>,
    /// A receiver of signed bodies knows a request that is sent again by this name. A request of another name
    /// is another, also where it says the same.
    pub name: String,
    /// The most bytes of the answer's body.
    pub bytes_max: usize,
    /// The longest time to the whole answer.
    pub patience: Duration,
}

/// A server's response, of any status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerResponse {
    /// The status code.
    pub status: u16,
    /// How long the server wants to be left alone (RFC 9110, 10.2.3), where it says so in seconds.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: Vec<u8>,
}

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct UplinkError {
    /// The cause, and how to mend it; without the key.
    pub why: String,
    /// Whether it may have arrived all the same.
    pub may_have_arrived: bool,
    /// Whether there is more of it than was wanted: it will be the next time, too.
    pub is_too_large: bool,
}

impl UplinkError {
    fn new(why: String, may_have_arrived: bool) -> Self {
        Self { why, may_have_arrived, is_too_large: false }
    }
}

/// A request to the executor, and where the outcome goes.
#[derive(Debug)]
enum Order {
    Send(Request, oneshot::Sender<Result<ServerResponse, UplinkError>>),
    Open(Opening, oneshot::Sender<Result<UplinkStream, StreamEnd>>),
}

/// Where requests are given to an [`Uplink`].
#[derive(Debug, Clone)]
pub struct UplinkEnd {
    orders: mpsc::Sender<Order>,
    sender: Arc<Sender>,
}

impl UplinkEnd {
    /// Whether somebody who has the key too signed this, as Standard Webhooks has it; `timestamp` in seconds
    /// since 1970.
    #[must_use]
    pub fn is_signed(&self, id: &str, timestamp: u64, body: &[u8], signatures: &str) -> bool {
        let Some(secret) = self.sender.secret() else { return false };
        signature::is_signed(secret.expose(), id, timestamp, body, signatures)
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// When the action does not allow the request, the uplink is closed, or no whole answer came.
    pub async fn send(&self, request: Request) -> Result<ServerResponse, UplinkError> {
        let (answer, answered) = oneshot::channel();
        let closed = |_| UplinkError::new("the channel's connection is closed".into(), false);
        self.orders.send(Order::Send(request, answer)).await.map_err(|_| closed(()))?;
        answered
            .await
            .unwrap_or_else(|_| Err(UplinkError::new("the channel's connection was closed".into(), true)))
    }

    /// Opens a stream.
    ///
    /// # Errors
    /// When the action does not allow it, the uplink is closed, or the server does not open it.
    pub async fn open(&self, opening: Opening) -> Result<UplinkStream, StreamEnd> {
        let (answer, answered) = oneshot::channel();
        let closed = || StreamEnd::new("the channel's connection is closed");
        self.orders.send(Order::Open(opening, answer)).await.map_err(|_| closed())?;
        answered.await.unwrap_or_else(|_| Err(closed()))
    }
}

/// The way itself: the executor of [`Route::Uplink`].
#[derive(Debug)]
pub struct Uplink {
    way: Way,
    seal: Seal,
    sender: Arc<Sender>,
    orders: Mutex<mpsc::Receiver<Order>>,
}

impl Uplink {
    /// An uplink to the servers of `way`, that takes the permits of the journal with this seal, and where
    /// requests are given to it. Of `config` it takes times, limits, proxies and authorities.
    ///
    /// # Errors
    /// When a server's URL is no `http` or `https` URL.
    pub fn new(
        way: Way,
        config: &Config,
        vault: Arc<Vault>,
        seal: Seal,
    ) -> Result<(Arc<Self>, UplinkEnd), ConfigError> {
        let sender = Arc::new(Sender::new(&way, config, vault)?);
        let (orders, taken) = mpsc::channel(WAITING_MAX);
        let end = UplinkEnd { orders, sender: sender.clone() };
        Ok((Arc::new(Self { way, seal, sender, orders: Mutex::new(taken) }), end))
    }

    /// Does the orders until every [`UplinkEnd`] is gone, and then closes what is open.
    async fn serve(&self) {
        let mut orders = self.orders.lock().await;
        let mut under_way = JoinSet::new();
        loop {
            tokio::select! {
                Some(_) = under_way.join_next() => {}
                order = orders.recv(), if under_way.len() < AT_ONCE_MAX => {
                    let Some(order) = order else { return };
                    let sender = self.sender.clone();
                    under_way.spawn(async move {
                        match order {
                            // The asker may be gone.
                            Order::Send(request, answer) => drop(answer.send(sender.exchange(request).await)),
                            Order::Open(opening, answer) => stream::run(&sender, opening, answer).await,
                        }
                    });
                }
            }
        }
    }
}

fn size(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

impl Executor for Uplink {
    fn routes(&self) -> Vec<Route> {
        vec![Route::Uplink]
    }

    /// Nothing here has a path.
    fn resolve<'a>(&'a self, _: SessionId, action: Action) -> BoxFuture<'a, Result<Action, ResolveError>> {
        Box::pin(async move { Ok(action) })
    }

    fn perform<'a>(&'a self, permit: Permit, io: Io) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            match permit.redeem(&self.seal).map(|redeemed| redeemed.effect.action) {
                Ok(Action::Uplink(way)) if way == self.way => {}
                Ok(other) => {
                    return Output::failed(format!("this uplink does not lead to `{}`", other.target()));
                }
                Err(error) => return Output::failed(error.to_string()),
            }
            let began = Instant::now();
            let status = tokio::select! {
                biased;
                () = io.cancel.cancelled() => Status::Cancelled,
                () = self.serve() => Status::Done,
            };
            let passed = &self.sender.passed;
            let (out, back) = (passed.out.load(Ordering::Relaxed), passed.back.load(Ordering::Relaxed));
            let rest = self.way.url.split_once("://").map_or("", |(_, rest)| rest);
            let host = rest.split('/').next().unwrap_or_default().to_ascii_lowercase();
            let report = RelayReport { host, sent: true, out, back, ..RelayReport::default() };
            let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            Output::new(Outcome { status, enforced: None, duration_ms, report: Report::Relayed(report) })
        })
    }
}
