//! A standing way to one server: a chat channel's, or a collector's. It is one effect from its opening to its
//! closing, in which requests go out as they come; what is said in them stands in the journal where it was
//! said, and the outcome says how much passed.
//!
//! It leads to the one server that its owner configured, with the one key that belongs there, and nowhere
//! else. The key is the value of a header where the way names one, else it stands in the path; a request in
//! whose path it has no place is signed with it, as Standard Webhooks has it.

use crate::{
    Config, ConfigError,
    config::Origin,
    connect::{Clients, Speaks, Trust, tcp},
    failure::Failure,
    proxy::Connector,
    request::{Unsendable, is_reserved},
    signature,
};
use bailey_kernel::{BoxFuture, Executor, Io, Output, Permit, ResolveError, Route, Seal};
use bailey_protocol::{Action, Digest, Line as Way, Outcome, RelayReport, Report, SessionId, Status};
use bailey_secrets::Vault;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, Uri, header};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    task::JoinSet,
    time::{Instant, timeout},
};

/// Where the key stands in the path of a request.
pub const KEY: &str = "{key}";

/// Requests that may be on their way at once, and wait for that.
const AT_ONCE_MAX: usize = 16;
const WAITING_MAX: usize = 64;

/// A request over a line, and where its answer goes.
#[derive(Debug)]
struct Order {
    path: String,
    what: What,
    patience: Duration,
    answer: oneshot::Sender<Result<Answer, LineError>>,
}

/// What is asked for.
#[derive(Debug)]
enum What {
    /// That it takes this JSON, said under this name.
    Post(String, String),
    /// A file of so many bytes at most.
    Get(usize),
}

/// What a server answered, whatever it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
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
pub struct LineError {
    /// What, why and how to fix; without the key.
    pub why: String,
    /// Whether it may have arrived all the same.
    pub may_have_arrived: bool,
    /// Whether there is more of it than was wanted: it will be the next time, too.
    pub is_too_large: bool,
}

impl LineError {
    fn new(why: String, may_have_arrived: bool) -> Self {
        Self { why, may_have_arrived, is_too_large: false }
    }
}

/// Where requests are given to a [`Line`].
#[derive(Debug, Clone)]
pub struct LineEnd {
    orders: mpsc::Sender<Order>,
    sender: Arc<Sender>,
}

impl LineEnd {
    /// Whether somebody who has the key too signed this, as Standard Webhooks has it; `timestamp` in seconds
    /// since 1970.
    #[must_use]
    pub fn is_signed(&self, id: &str, timestamp: u64, body: &[u8], signatures: &str) -> bool {
        let Some(secret) = self.sender.vault.get(&self.sender.key) else { return false };
        signature::is_signed(secret.expose(), id, timestamp, body, signatures)
    }

    /// Posts `body`, JSON, to `path` beneath the server's URL, with the key in the place of [`KEY`], and
    /// waits for the answer. What is posted again under the same `name` is one thing to a receiver of signed
    /// bodies; what has another name is another, also where it says the same.
    ///
    /// # Errors
    /// When the line is closed, or no whole answer came within `patience`.
    pub async fn post(
        &self,
        path: String,
        body: String,
        name: String,
        patience: Duration,
    ) -> Result<Answer, LineError> {
        self.send(path, What::Post(body, name), patience).await
    }

    /// Gets what is at `path` beneath the server's URL, with the key in the place of [`KEY`], up to
    /// `bytes_max` bytes of it.
    ///
    /// # Errors
    /// When the line is closed, the answer is longer, or no whole one came within `patience`.
    pub async fn get(&self, path: String, bytes_max: usize, patience: Duration) -> Result<Answer, LineError> {
        self.send(path, What::Get(bytes_max), patience).await
    }

    async fn send(&self, path: String, what: What, patience: Duration) -> Result<Answer, LineError> {
        let (answer, answered) = oneshot::channel();
        let closed = |_| LineError::new("the channel's connection is closed".into(), false);
        self.orders.send(Order { path, what, patience, answer }).await.map_err(|_| closed(()))?;
        answered
            .await
            .unwrap_or_else(|_| Err(LineError::new("the channel's connection was closed".into(), true)))
    }
}

/// The way itself: the executor of [`Route::Line`].
#[derive(Debug)]
pub struct Line {
    way: Way,
    seal: Seal,
    sender: Arc<Sender>,
    orders: Mutex<mpsc::Receiver<Order>>,
}

/// What a request needs.
#[derive(Debug)]
struct Sender {
    base: String,
    origin: Origin,
    key: String,
    header: Option<String>,
    vault: Arc<Vault>,
    connect_timeout: Duration,
    body_bytes_max: usize,
    clients: Clients<Connector, Full<Bytes>>,
}

impl Line {
    /// A line to the server of `way`, that takes the permits of the journal with this seal, and where
    /// requests are given to it. Of `config` it takes times, limits, proxies and authorities.
    ///
    /// # Errors
    /// When the server's URL is none.
    pub fn new(
        way: Way,
        config: &Config,
        vault: Arc<Vault>,
        seal: Seal,
    ) -> Result<(Arc<Self>, LineEnd), ConfigError> {
        let uri: Option<Uri> = way.url.parse().ok();
        let origin =
            uri.as_ref().and_then(Origin::of).ok_or_else(|| ConfigError::NoOrigin(way.url.clone()))?;
        let connector = Connector::new(tcp(config.connect_timeout), Arc::new(config.proxies.ways()));
        let clients = Clients::new(connector, Trust::new(config.extra_authorities.clone(), Speaks::Http1));
        let sender = Arc::new(Sender {
            base: way.url.trim_end_matches('/').to_owned(),
            origin,
            key: way.key.clone(),
            header: way.header.clone(),
            vault,
            connect_timeout: config.connect_timeout,
            body_bytes_max: config.body_bytes_max,
            clients,
        });
        let (orders, taken) = mpsc::channel(WAITING_MAX);
        let end = LineEnd { orders, sender: sender.clone() };
        let line = Self { way, seal, sender, orders: Mutex::new(taken) };
        Ok((Arc::new(line), end))
    }

    /// Sends what comes until nobody can send any more; `passed` counts bytes out and back.
    async fn serve(&self, passed: &mut (u64, u64)) {
        let mut orders = self.orders.lock().await;
        let mut under_way = JoinSet::new();
        loop {
            tokio::select! {
                Some(done) = under_way.join_next() => {
                    let (out, back) = done.unwrap_or_default();
                    *passed = (passed.0 + out, passed.1 + back);
                }
                order = orders.recv(), if under_way.len() < AT_ONCE_MAX => {
                    let Some(Order { path, what, patience, answer }) = order else { return };
                    let sender = self.sender.clone();
                    under_way.spawn(async move {
                        let out = if let What::Post(body, _) = &what { size(body.len()) } else { 0 };
                        let came = sender.exchange(&path, what, patience).await;
                        let back = came.as_ref().map_or(0, |answer| size(answer.body.len()));
                        // Who asked may be gone.
                        answer.send(came).ok();
                        (out, back)
                    });
                }
            }
        }
    }
}

fn size(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

impl Sender {
    async fn exchange(&self, path: &str, what: What, patience: Duration) -> Result<Answer, LineError> {
        let before = |failure: Failure| LineError::new(failure.to_string(), false);
        let bytes_max = match what {
            What::Post(..) => self.body_bytes_max,
            What::Get(bytes_max) => bytes_max.min(self.body_bytes_max),
        };
        let request = self.request(path, what).map_err(|error| before(error.into()))?;
        let client = self.clients.get(self.origin.tls).await.map_err(before)?;
        let exchange = async {
            let answer = client.request(request).await;
            let answer = answer.map_err(|error| {
                let failure = Failure::of(&self.origin, None, &error, self.connect_timeout);
                LineError::new(failure.to_string(), failure.is_after_sending())
            })?;
            let (head, mut body) = answer.into_parts();
            let after = |failure: Failure| LineError::new(failure.to_string(), true);
            let mut taken = Vec::new();
            while let Some(frame) = body.frame().await {
                let frame =
                    frame.map_err(|error| after(Failure::Broken(self.origin.clone(), error.to_string())))?;
                taken.extend_from_slice(frame.data_ref().map_or(&[][..], |bytes| bytes));
                if taken.len() > bytes_max {
                    let failure = after(Failure::TooLarge(self.origin.clone(), bytes_max));
                    return Err(LineError { is_too_large: true, ..failure });
                }
            }
            Ok(Answer { status: head.status.as_u16(), retry_after: retry_after(&head.headers), body: taken })
        };
        timeout(patience, exchange).await.unwrap_or_else(|_| {
            let why = Failure::FirstByteTimeout(self.origin.clone(), patience).to_string();
            Err(LineError::new(why, true))
        })
    }

    fn request(&self, path: &str, what: What) -> Result<Request<Full<Bytes>>, Unsendable> {
        let key = match self.vault.get(&self.key) {
            Some(secret) => secret.expose().trim(),
            None if self.key.is_empty() => "",
            None => return Err(Unsendable::MissingSecret(self.key.clone())),
        };
        let in_path = path.contains(KEY);
        // What could lead to another path, or end it, is no key.
        if in_path && !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_:.~".contains(&byte)) {
            return Err(Unsendable::BadSecret(self.key.clone()));
        }
        let uri: Uri =
            format!("{}{}", self.base, path.replace(KEY, key)).parse().map_err(|_| Unsendable::Url)?;
        if Origin::of(&uri).as_ref() != Some(&self.origin) {
            return Err(Unsendable::Url);
        }
        let What::Post(body, name) = what else {
            let mut request = Request::new(Full::default());
            *request.uri_mut() = uri;
            return Ok(request);
        };
        let is_signed = !in_path && self.header.is_none() && !self.key.is_empty();
        let signed = if is_signed { Some(self.signed(key, &body, &name)?) } else { None };
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        let json = header::HeaderValue::from_static("application/json");
        request.headers_mut().insert(header::CONTENT_TYPE, json);
        if let Some(name) = &self.header {
            if is_reserved(name) {
                return Err(Unsendable::ReservedHeader(name.clone()));
            }
            let (name, value) = header(name, key).ok_or_else(|| Unsendable::BadSecret(self.key.clone()))?;
            request.headers_mut().insert(name, value);
        }
        for (name, value) in signed.into_iter().flatten() {
            let value = header::HeaderValue::from_str(&value).map_err(|_| Unsendable::Url)?;
            request.headers_mut().insert(header::HeaderName::from_static(name), value);
        }
        Ok(request)
    }

    /// The headers of a signed body. A receiver knows one that is sent again by its id (Standard Webhooks).
    fn signed(&self, key: &str, body: &str, name: &str) -> Result<[(&'static str, String); 3], Unsendable> {
        let id = format!("msg_{}", Digest::of_parts(&[name.as_bytes(), body.as_bytes()]));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let signature = signature::sign(key, &id, now, body.as_bytes());
        let signature = signature.ok_or_else(|| Unsendable::BadSecret(self.key.clone()))?;
        Ok([("webhook-id", id), ("webhook-timestamp", now.to_string()), ("webhook-signature", signature)])
    }
}

/// A header whose value is not shown where a request is.
fn header(name: &str, value: &str) -> Option<(header::HeaderName, header::HeaderValue)> {
    let mut value = header::HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some((name.parse().ok()?, value))
}

fn retry_after(headers: &header::HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

impl Executor for Line {
    fn routes(&self) -> Vec<Route> {
        vec![Route::Line]
    }

    /// Nothing here has a path.
    fn resolve<'a>(&'a self, _: SessionId, action: Action) -> BoxFuture<'a, Result<Action, ResolveError>> {
        Box::pin(async move { Ok(action) })
    }

    fn perform<'a>(&'a self, permit: Permit, io: Io) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            match permit.redeem(&self.seal).map(|redeemed| redeemed.effect.action) {
                Ok(Action::Line(way)) if way == self.way => {}
                Ok(other) => {
                    return Output::failed(format!("this line does not lead to `{}`", other.target()));
                }
                Err(error) => return Output::failed(error.to_string()),
            }
            let began = Instant::now();
            let mut passed = (0, 0);
            let status = tokio::select! {
                biased;
                () = io.cancel.cancelled() => Status::Cancelled,
                () = self.serve(&mut passed) => Status::Done,
            };
            let (out, back) = passed;
            let rest = self.way.url.split_once("://").map_or("", |(_, rest)| rest);
            let host = rest.split('/').next().unwrap_or_default().to_ascii_lowercase();
            let report = RelayReport { host, sent: true, out, back, ..RelayReport::default() };
            let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            Output::new(Outcome { status, enforced: None, duration_ms, report: Report::Relayed(report) })
        })
    }
}
