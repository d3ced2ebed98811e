//! The door of commands inside the walls: a forward proxy that each of their requests passes as an effect of
//! its own.
//!
//! A command finds the door on its own loopback (`serve`) and shows the pass that it was started with. A
//! request is asked for at the [`bailey_kernel::Door`] of the command, decided by the rules like any effect,
//! and written down. Only then it leaves (`perform`), on a connection to an address that was looked at
//! (`dial`). What is inside TLS is looked into, because rules speak of methods and not only of hosts: the
//! door shows a certificate of its own (`authority`), which only commands trust.
//!
//! Headers and bodies pass by and are not kept. Of Bailey's keys those are in reach that the owner bound to a
//! server for commands (`keys`): they are put in on the way out, and taken out on the way back.

mod answers;
mod authority;
mod body;
mod dial;
mod fetch;
mod headers;
mod keys;
mod limits;
mod notes;
mod serve;
mod target;
mod tunnel;

pub use authority::{Authority, AuthorityError};
pub use dial::is_of_a_cloud;
pub use fetch::{Fetched, NotFetched};
pub use keys::{BoundKey, KeyForm, is_key_header};
pub use limits::HostLimit;

use crate::{
    ConfigError, Proxies,
    config::Origin,
    connect::{Clients, Speaks, Trust},
    failure::{find, flaw, innermost},
};
use bailey_kernel::{
    BoxFuture, Executor, Gateway, Io, Output, Permit, RequestSource, ResolveError, Route, Seal, StandIn,
    Turned,
};
use bailey_protocol::{Action, Digest, Outcome, Relay, RelayReport, Report, SessionId, Status};
use bailey_secrets::Vault;
use body::{Answered, Look, Mask, Passing};
use dial::{Barred, Guarded, Private};
use headers::{
    COOKIES, check_plain, end_to_end, header_bytes, hide, is_to_websocket, keep_length, keep_told_length,
    keep_upgrade, one_cookie, uri_bytes, without_overrides,
};
use http_body_util::BodyExt as _;
use hyper::{
    Method, Request, Response, StatusCode, Uri, Version,
    body::Incoming,
    header::{self, HeaderValue},
    upgrade::OnUpgrade,
};
use hyper_util::client::legacy::connect::capture_connection;
use keys::Keys;
use limits::{Direction, HostLimits, Meter, Used};
use notes::{Broken, Notes};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Semaphore, oneshot},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

/// The most connections at a time, and the most requests on their way on all of them; more wait.
const CONNECTIONS_MAX: usize = 256;
/// How the door of commands behaves.
#[derive(Debug, Clone)]
pub struct ForwardConfig {
    /// The owner's own places at private addresses, as URLs: scheme, host and port count.
    pub private: Vec<String>,
    /// The proxies on the way.
    pub proxies: Proxies,
    /// Certificate authorities trusted besides the system's, as PEM text (RFC 7468).
    pub extra_authorities: Option<String>,
    /// The longest time to reach a server: name, TCP and TLS together.
    pub connect_timeout: Duration,
    /// The longest time without any byte in either direction.
    pub idle_timeout: Duration,
    /// The most requests of one command: each is written down, and what it writes is the journal's.
    pub requests_max: u64,
    /// Keys that commands use and never hold.
    pub keys: Vec<BoundKey>,
    /// Servers that commands speak with unheard, as URLs: what passes is not looked into.
    pub tunnels: Vec<String>,
    /// How much may pass to and from hosts.
    pub limits: Vec<HostLimit>,
}

/// The door of commands: it listens for them, and performs what the kernel let pass of what they ask for.
#[derive(Debug)]
pub struct ForwardProxy {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: ForwardConfig,
    private: Private,
    authority: Authority,
    keys: Keys,
    tunnels: Private,
    limits: HostLimits,
    seal: Seal,
    dial: Guarded,
    trust: Arc<Trust>,
    /// The same for what switches to another protocol: HTTP/2 knows no switch.
    switching: Arc<Trust>,
    /// Requests that wait for their permits, by number.
    waiting: Mutex<HashMap<u64, Exchange>>,
    numbers: AtomicU64,
    /// Connections that there may be at a time, of all commands: each takes a descriptor.
    places: Arc<Semaphore>,
    /// Requests that may be on their way at a time, of all commands: each may take a connection to a server.
    turns: Arc<Semaphore>,
}

/// A request that waits for its permit.
#[derive(Debug)]
struct Exchange {
    request: Request<Incoming>,
    /// What its connection may become.
    upgrade: Option<OnUpgrade>,
    /// Connections of its command: no other command inherits a login that belongs to one.
    clients: Arc<Clients<Guarded, Passing>>,
    /// What limits its host.
    used: Option<Arc<Used>>,
    answer: oneshot::Sender<Response<Answered>>,
    /// Cancelled when its command has ended.
    ended: CancellationToken,
    /// What its command's result says.
    notes: Arc<Notes>,
    /// Its connection's, also after that became something else, and its own.
    _places: (serve::ConnectionPermit, serve::Held),
}

impl Inner {
    fn wait(&self, number: u64, exchange: Exchange) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(number, exchange);
    }

    fn take(&self, number: u64) -> Option<Exchange> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&number)
    }
}

impl ForwardProxy {
    /// A door that takes the permits of the journal with this seal and keys of this vault, and that commands
    /// trust by this authority.
    ///
    /// # Errors
    /// When a private place is no URL, or a key is bound to none or to no header.
    pub fn new(
        config: ForwardConfig,
        authority: Authority,
        vault: Arc<Vault>,
        seal: Seal,
    ) -> Result<Self, ConfigError> {
        let keys = Keys::new(config.keys.clone(), vault)?;
        let private = Private::new(&config.private)?;
        let proxies = Arc::new(config.proxies.ways());
        let tunnels = Private::new(&config.tunnels)?;
        let dial = Guarded::new(private.clone(), tunnels.clone(), proxies, config.connect_timeout);
        let trust = Trust::new(config.extra_authorities.clone(), Speaks::Both);
        let switching = Trust::new(config.extra_authorities.clone(), Speaks::Http1);
        let limits = HostLimits::new(config.limits.clone());
        let (waiting, numbers) = (Mutex::default(), AtomicU64::new(0));
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let turns = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let inner = Inner {
            config,
            private,
            authority,
            keys,
            tunnels,
            limits,
            seal,
            dial,
            trust,
            switching,
            waiting,
            numbers,
            places,
            turns,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Tells it which keys are still their owner's, by their [names](BoundKey::name) with this salt. A key
    /// that it holds and that is not named, as it is and as it is bound, is put in no more, from the next
    /// request on.
    pub fn keep_keys(&self, salt: &str, named: &BTreeSet<Digest>) {
        self.inner.keys.keep(salt, named);
    }
}

impl Gateway for ForwardProxy {
    fn stand_ins(&self) -> Vec<StandIn> {
        self.inner.keys.shown()
    }

    fn own_hosts(&self) -> Vec<String> {
        let hosts = [&self.inner.private, &self.inner.tunnels].into_iter().flat_map(Private::hosts);
        hosts.map(str::to_owned).collect()
    }

    fn serve(&self, way: RequestSource, ended: CancellationToken) -> BoxFuture<'static, Turned> {
        Box::pin(Self::serve_way(self.inner.clone(), way, ended))
    }
}

impl Executor for ForwardProxy {
    fn routes(&self) -> Vec<Route> {
        vec![Route::Relay]
    }

    /// Nothing here has a path.
    fn resolve<'a>(&'a self, _: SessionId, action: Action) -> BoxFuture<'a, Result<Action, ResolveError>> {
        Box::pin(async move { Ok(action) })
    }

    fn perform<'a>(&'a self, permit: Permit, io: Io) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let relay = match permit.redeem(&self.inner.seal).map(|redeemed| redeemed.effect.action) {
                Ok(Action::Relay(relay)) => relay,
                Ok(other) => {
                    let name = other.kind().name();
                    return Output::failed(format!("the door of commands performs no `{name}`"));
                }
                Err(error) => return Output::failed(error.to_string()),
            };
            let Some(exchange) = self.inner.take(relay.number) else {
                return Output::failed("the command went away before its request left".to_owned());
            };
            let began = Instant::now();
            let passed = Passed::default();
            let (ended, notes) = (exchange.ended.clone(), exchange.notes.clone());
            // Dropping the exchange closes its connections.
            let status = tokio::select! {
                biased;
                () = io.cancel.cancelled() => Status::Cancelled,
                () = ended.cancelled() => Status::Cancelled,
                done = self.inner.relay(&relay, exchange, &passed) => match done {
                    Ok(()) => Status::Done,
                    Err(broken) => {
                        if let Broken::Because(why) = &broken {
                            notes.failed(&format!("{} {}", relay.method, relay.url), why);
                        }
                        Status::Failed { reason: broken.to_string() }
                    }
                },
            };
            let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            let report = Report::Relayed(passed.report(&relay));
            Output::new(Outcome { status, enforced: None, duration_ms, report })
        })
    }
}

/// What passed so far.
#[derive(Debug, Default)]
struct Passed {
    sent: std::sync::atomic::AtomicBool,
    status: std::sync::atomic::AtomicU16,
    out: Arc<AtomicU64>,
    back: Arc<AtomicU64>,
    masked: Arc<AtomicU32>,
}

impl Passed {
    fn report(&self, relay: &Relay) -> RelayReport {
        let uri: Option<Uri> = relay.url.parse().ok();
        RelayReport {
            host: uri.as_ref().and_then(Uri::authority).map(ToString::to_string).unwrap_or_default(),
            sent: self.sent.load(Ordering::Relaxed),
            status: self.status.load(Ordering::Relaxed),
            out: self.out.load(Ordering::Relaxed),
            counted: relay.length.is_some(),
            back: self.back.load(Ordering::Relaxed),
            masked: self.masked.load(Ordering::Relaxed),
        }
    }
}

impl Inner {
    /// Sends a request where its effect says, and passes the answer back. An error says what was in the way.
    async fn relay(&self, relay: &Relay, exchange: Exchange, passed: &Passed) -> Result<(), Broken> {
        let Exchange { request, upgrade, clients, used, mut answer, _places, .. } = exchange;
        let out = Meter::new(&passed.out, Direction::Out, used.as_ref());
        let back = Meter::new(&passed.back, Direction::Back, used.as_ref());
        let uri: Uri = relay.url.parse().map_err(|_| "it is no URL".to_owned())?;
        let origin = Origin::of(&uri).ok_or("it is no plain http or https URL")?;
        if relay.method == Method::CONNECT.as_str() {
            return self.connect(uri, upgrade, answer, passed, (out, back)).await;
        }
        let is_switch = relay.method == serve::WEBSOCKET;
        let method = if is_switch { Ok(Method::GET) } else { Method::from_bytes(relay.method.as_bytes()) };
        let method = method.map_err(|_| "it is no method".to_owned())?;
        let is_head = method == Method::HEAD;
        let (head, body) = request.into_parts();
        let (whole, mut asked) = oneshot::channel();
        let body = Passing::new(body, out.clone(), self.config.idle_timeout, Some(whole))
            .looking(self.keys.watch().map(Look::Refuse));
        let mut sent = Request::new(body);
        (*sent.method_mut(), *sent.uri_mut(), *sent.version_mut()) = (method, uri, Version::HTTP_11);
        *sent.headers_mut() = end_to_end(&head.headers);
        if head.version == Version::HTTP_2 && head.headers.get(header::TE).is_some_and(|te| te == "trailers")
        {
            // What comes behind a body is wanted, which gRPC does not do without.
            sent.headers_mut().insert(header::TE, HeaderValue::from_static("trailers"));
        }
        without_overrides(sent.headers_mut());
        one_cookie(sent.headers_mut());
        keep_length(&head.headers, &mut sent);
        if is_switch {
            keep_upgrade(&head.headers, sent.headers_mut());
        }
        let mask = self.keys.mask_of(&origin);
        if mask.is_some() {
            // A cookie would be a login that stays inside; of a part of an answer, of one in rare letters,
            // and of one that is packed nobody can tell what it shows.
            for name in [header::RANGE, header::IF_RANGE, header::ACCEPT_CHARSET] {
                sent.headers_mut().remove(name);
            }
            COOKIES.iter().for_each(|name| drop(sent.headers_mut().remove(*name)));
            sent.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        if let Some(key) = &relay.key {
            let put_in = self.keys.put_in(key, &relay.method, &relay.url, sent.headers_mut());
            put_in.map_err(|misused| misused.to_string())?;
        }
        out.pass_head(uri_bytes(sent.uri()) + header_bytes(sent.headers()))?;
        // What is switched is nobody's any more afterwards.
        let clients = match is_switch {
            true => Arc::new(Clients::new(self.dial.clone(), self.switching.clone())),
            false => clients,
        };
        let came = tokio::select! {
            biased;
            () = answer.closed() => return Err(Broken::Gone(" before an answer came")),
            came = self.head(sent, &origin, &clients, passed) => came.map_err(|why| match asked.try_recv() {
                // Of a body that was cut off, HTTP/2 passes on that it was and not why.
                Ok(Err(Broken::Because(why))) => {
                    Broken::from(format!("the door passed no more of it on to `{origin}`: {why}"))
                }
                _ => why.into(),
            })?,
        };
        passed.status.store(came.status().as_u16(), Ordering::Relaxed);
        back.pass_head(header_bytes(came.headers()))?;
        if is_switch && came.status() != StatusCode::SWITCHING_PROTOCOLS {
            // The rules were asked about a switch, and what came is what a GET brings.
            return Err(
                format!("the server did not switch to WebSocket, and answered {}", came.status()).into()
            );
        }
        if came.status() == StatusCode::SWITCHING_PROTOCOLS {
            if !is_switch || mask.is_some() || !is_to_websocket(came.headers()) {
                return Err("the server switches to another protocol, which nobody asked for or cannot be looked through".into());
            }
            return self.switched(came, upgrade, answer, (out, back)).await;
        }
        let (head, body) = came.into_parts();
        let mut headers = end_to_end(&head.headers);
        if let Some(mask) = &mask {
            check_plain(head.status, &head.headers)?;
            hide(mask, &mut headers, &passed.masked);
            COOKIES.iter().for_each(|name| drop(headers.remove(*name)));
        } else if is_head || head.status == StatusCode::NOT_MODIFIED {
            // It tells how long the body would be. Of one that comes its own length counts, which this need
            // not be (RFC 9112, 6.3).
            keep_told_length(&head.headers, &mut headers);
        }
        let look = mask.map(|mask| Look::Mask(Mask::new(&mask, &passed.masked)));
        let (ended, over) = oneshot::channel();
        let body = Passing::new(body, back, self.config.idle_timeout, Some(ended)).looking(look);
        let mut back = Response::new(body.boxed());
        (*back.status_mut(), *back.headers_mut()) = (head.status, headers);
        answer.send(back).map_err(|_| Broken::Gone(" before the answer came"))?;
        let answered = over.await.unwrap_or(Err(Broken::Gone(" before it was over")));
        // A server may answer before it was told everything: what still goes out is this effect's, too.
        asked.await.ok();
        answered
    }

    /// Waits for the head of an answer: so long for a connection, then as long as anything moves.
    async fn head(
        &self,
        mut request: Request<Passing>,
        origin: &Origin,
        clients: &Clients<Guarded, Passing>,
        passed: &Passed,
    ) -> Result<Response<Incoming>, String> {
        let ForwardConfig { connect_timeout, idle_timeout, .. } = self.config;
        let client = clients.get(origin.tls).await.map_err(|failure| failure.to_string())?;
        let mut connection = capture_connection(&mut request);
        let answer = client.request(request);
        tokio::pin!(answer);
        let connected = async { connection.wait_for_connection_metadata().await.is_some() };
        let answer = tokio::select! {
            biased;
            answer = &mut answer => answer,
            connected = timeout(connect_timeout, connected) => {
                if connected.is_err() {
                    return Err(format!("`{origin}` could not be reached within {} s", connect_timeout.as_secs()));
                }
                passed.sent.store(true, Ordering::Relaxed);
                loop {
                    let before = passed.out.load(Ordering::Relaxed);
                    match timeout(idle_timeout, &mut answer).await {
                        Ok(answer) => break answer,
                        Err(_) if passed.out.load(Ordering::Relaxed) > before => {}
                        Err(_) => {
                            return Err(format!("`{origin}` sent nothing for {} s", idle_timeout.as_secs()));
                        }
                    }
                }
            }
        };
        let answer = answer.map_err(|error| why(origin, &error))?;
        passed.sent.store(true, Ordering::Relaxed);
        Ok(answer)
    }
}

/// What an error of the client means to whoever reads it inside.
fn why(origin: &Origin, error: &hyper_util::client::legacy::Error) -> String {
    if let Some(barred) = find::<Barred>(error) {
        return barred.to_string();
    }
    match find::<rustls::Error>(error) {
        Some(rustls::Error::InvalidCertificate(why)) => {
            format!("the certificate of `{origin}` is not trusted: {}", flaw(why))
        }
        _ if error.is_connect() => format!("`{origin}` cannot be reached: {}", innermost(error)),
        _ => format!("`{origin}` gave no answer: {}", innermost(error)),
    }
}
