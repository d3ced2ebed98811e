//! The side of the commands: a proxy of HTTP (RFC 9110, 7.6; RFC 9112, 3.2), which answers each request by
//! asking for an effect.

use super::{
    CONNECTIONS_MAX, Exchange, ForwardProxy, Inner,
    answers::{denied, failed, refused, told, why_denied},
    authority::HTTP_2,
    body::{Answered, Passing, text},
    dial::Guarded,
    notes::Notes,
    target::{METHOD_BYTES_MAX, URL_BYTES_MAX, is_same_host, named, shortened, without_user},
};
use crate::{
    config::{Origin, canonical},
    connect::Clients,
    failure::find,
};
use bailey_kernel::{Door, Pass, Refused, RequestSource, Turned};
use bailey_protocol::{Action, Relay, Status};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body as _, Incoming},
    header::{HOST, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, UPGRADE},
    server::conn::{http1, http2},
    service::service_fn,
    upgrade::OnUpgrade,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    task::JoinSet,
    time::{Instant, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// Between two tries to take a connection, where the first failed.
const AFTER_ERROR: Duration = Duration::from_millis(50);
/// What a request to switch to WebSocket (RFC 6455) is judged as: what passes then has no method.
pub(super) const WEBSOCKET: &str = "WEBSOCKET";
/// What a tunnel is asked for with.
const CONNECT: &str = "CONNECT";
/// How long a request's head and a handshake may take.
const HEAD: Duration = Duration::from_secs(30);
/// The most requests at a time on one connection of HTTP/2 (RFC 9113).
const STREAMS_MAX: u32 = 32;
/// So much of an answer waits for who does not read it, in bytes, for each of those.
const UNREAD_MAX: usize = 64 << 10;
/// So much of the bodies on one connection of HTTP/2 waits for a server that does not read it, in bytes.
const UNSENT_MAX: u32 = 256 << 10;
/// The most headers of a request; what has more is no request yet.
const HEADERS_MAX: usize = 1000;
/// The longest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 128 << 10;
/// How long what was cut off may take to be written down.
const LAST: Duration = Duration::from_secs(2);

/// The most connections of one command, and the most of its requests on their way: one command, or a program
/// that runs as long as its session, leaves the others their half.
const SHARE_MAX: usize = CONNECTIONS_MAX / 2;

/// A connection's place among those that there may be, held as long as anything of it goes on.
pub(super) type ConnectionPermit = Arc<Held>;

/// The part that one command may take of the connections, or of the requests on their way, of all commands.
#[derive(Debug, Clone)]
struct Share {
    own: Arc<Semaphore>,
    all: Arc<Semaphore>,
}

/// A place that is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Share {
    fn of(all: &Arc<Semaphore>) -> Self {
        #[cfg(feature = "controls")]
        if bailey_protocol::broken::broken("shares") {
            return Self { own: Arc::new(Semaphore::new(CONNECTIONS_MAX)), all: all.clone() };
        }
        Self { own: Arc::new(Semaphore::new(SHARE_MAX)), all: all.clone() }
    }

    /// Waits for a place. A command that waits for its own share keeps no place from the others.
    async fn take(&self) -> Result<Held, AcquireError> {
        let own = self.own.clone().acquire_owned().await?;
        Ok(Held { _own: own, _all: self.all.clone().acquire_owned().await? })
    }
}

/// One command, as the door knows it.
struct Guest {
    inner: Arc<Inner>,
    pass: Pass,
    door: Door,
    clients: Arc<Clients<Guarded, Passing>>,
    ended: CancellationToken,
    /// Its requests on their way.
    turns: Share,
    /// Held by each effect on its way, which comes to its outcome whether or not somebody still listens.
    working: mpsc::Sender<Infallible>,
    /// Requests so far.
    requests: AtomicU64,
    /// Requests so far that the door refused by itself.
    turned_away: AtomicU64,
    notes: Arc<Notes>,
}

/// Whom a connection leads to once it is a tunnel.
#[derive(Clone)]
struct Tunnel {
    host: String,
    port: u16,
    is_tls: bool,
}

impl Tunnel {
    fn authority(&self) -> String {
        let Self { host, port, is_tls } = self;
        if *port == if *is_tls { 443 } else { 80 } { host.clone() } else { format!("{host}:{port}") }
    }

    fn url(&self, path: &str) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.authority())
    }
}

impl ForwardProxy {
    pub(super) async fn serve_way(inner: Arc<Inner>, way: RequestSource, ended: CancellationToken) -> Turned {
        let RequestSource { listener, pass, door } = way;
        let listener = listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener));
        // Without a listener nobody is served: the command has no network.
        let Ok(listener) = listener else { return Turned::default() };
        let (working, mut idle) = mpsc::channel(1);
        let notes = Arc::new(Notes::default());
        let clients = Arc::new(Clients::new(inner.dial.clone(), inner.trust.clone()));
        let places = Share::of(&inner.places);
        let turns = Share::of(&inner.turns);
        let guest = Arc::new(Guest {
            inner,
            pass,
            door,
            clients,
            ended: ended.clone(),
            turns,
            working,
            requests: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            notes: notes.clone(),
        });
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = ended.cancelled() => break,
                // Who waits for a place waits outside, without a descriptor here.
                accepted = async { (places.take().await, listener.accept().await) } => accepted,
                Some(_) = connections.join_next() => continue,
            };
            let (Ok(place), Ok((stream, _))) = accepted else {
                // A connection that went away meanwhile, or descriptors that are used up: the next try may be
                // better.
                tokio::time::sleep(AFTER_ERROR).await;
                continue;
            };
            let (guest, place) = (guest.clone(), Arc::new(place));
            connections.spawn(async move {
                stream.set_nodelay(true).ok();
                guest.connection(TokioIo::new(stream), place).await;
            });
        }
        drop(listener);
        connections.shutdown().await;
        drop(guest);
        timeout(LAST, idle.recv()).await.ok();
        notes.take()
    }
}

impl Guest {
    /// A connection of the command, and what it becomes after a `CONNECT`.
    async fn connection<S>(self: Arc<Self>, stream: TokioIo<S>, place: ConnectionPermit)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let becoming: Arc<Mutex<Option<(OnUpgrade, Tunnel)>>> = Arc::default();
        let service = service_fn(|request: Request<Incoming>| {
            let (guest, becoming, place) = (self.clone(), becoming.clone(), place.clone());
            async move { Ok::<_, Infallible>(guest.asked(request, &becoming, place).await) }
        });
        // An error is the command's: it went away, or spoke something else than HTTP.
        drop(http().serve_connection(stream, service).with_upgrades().await);
        let tunnel = becoming.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((upgrade, tunnel)) = tunnel else { return };
        if let Ok(stream) = upgrade.await {
            self.tunnel(TokioIo::new(stream), tunnel, place).await;
        }
    }

    /// A request to the door itself.
    async fn asked(
        &self,
        mut request: Request<Incoming>,
        becoming: &Mutex<Option<(OnUpgrade, Tunnel)>>,
        place: ConnectionPermit,
    ) -> Response<Answered> {
        let shown = request.headers_mut().remove(PROXY_AUTHORIZATION);
        let method = request.method().to_string();
        if !self.is_known(shown.as_ref()) {
            // Who shows none is asked for one. Who shows another's is not this command.
            if shown.is_some() {
                self.turn_away(&method, &without_user(request.uri()), "it shows no pass of this command")
                    .await;
            }
            let mut answer = told(
                StatusCode::PROXY_AUTHENTICATION_REQUIRED,
                "Bailey's network door wants the pass of the variable HTTPS_PROXY: each command has its own.\n".into(),
            );
            answer
                .headers_mut()
                .insert(PROXY_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"bailey\""));
            return answer;
        }
        if request.method() == Method::CONNECT {
            let Some((host, port)) = named(request.uri()) else {
                let url = without_user(request.uri());
                return self
                    .refuse(StatusCode::BAD_REQUEST, &method, &url, "CONNECT names a host and a port")
                    .await;
            };
            if self.inner.tunnels.names(&Origin { tls: true, host: host.clone(), port }) {
                let url = format!("https://{host}:{port}/");
                return self.pass_on(request, &format!("{host}:{port}"), url, place).await;
            }
            let is_tls = port != 80 && !self.inner.private.is_plain(&host, port);
            let upgrade = hyper::upgrade::on(&mut request);
            let tunnel = Tunnel { host, port, is_tls };
            *becoming.lock().unwrap_or_else(PoisonError::into_inner) = Some((upgrade, tunnel));
            return Response::new(text(String::new()));
        }
        let uri = request.uri().clone();
        let is_plain = uri.scheme_str() == Some("http") && uri.authority().is_some();
        if !is_plain {
            let why = "this is a proxy: it takes `http://` URLs as they are, and `https://` through CONNECT";
            return self.refuse(StatusCode::BAD_REQUEST, &method, &without_user(&uri), why).await;
        }
        // One server has one name from here on, for whoever judges it and whoever is bound to it.
        let Some(authority) = uri.authority().filter(|authority| !authority.as_str().contains('@')) else {
            let why = "a URL has no user and no password here";
            return self.refuse(StatusCode::BAD_REQUEST, &method, &without_user(&uri), why).await;
        };
        let port = authority.port_u16().filter(|port| *port != 80).map(|port| format!(":{port}"));
        let authority = format!("{}{}", canonical(authority.host()), port.unwrap_or_default());
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let url = format!("http://{authority}{path}");
        self.pass_on(request, &authority, url, place).await
    }

    /// Whether a request shows the command's pass.
    fn is_known(&self, shown: Option<&HeaderValue>) -> bool {
        #[cfg(feature = "controls")]
        if bailey_protocol::broken::broken("passes") {
            return true;
        }
        let shown = shown.and_then(|shown| shown.to_str().ok()).and_then(|shown| shown.split_once(' '));
        let Some((kind, shown)) = shown else { return false };
        let decoded = STANDARD.decode(shown.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let pass = decoded.as_deref().and_then(|decoded| decoded.split_once(':')).map(|(_, pass)| pass);
        // 128 random bits of one command's life: the time of a comparison tells nothing of use.
        kind.eq_ignore_ascii_case("basic") && pass == Some(self.pass.expose())
    }

    /// What a command says to one host, looked into.
    async fn tunnel<S>(self: Arc<Self>, stream: TokioIo<S>, tunnel: Tunnel, place: ConnectionPermit)
    where
        S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
        TokioIo<S>: AsyncRead + AsyncWrite,
    {
        if !tunnel.is_tls {
            return self.inside(stream.into_inner(), tunnel, false, place).await;
        }
        let Ok(config) = self.inner.authority.in_place_of(&tunnel.host) else { return };
        let url = tunnel.url("/");
        let stream = match timeout(HEAD, TlsAcceptor::from(config).accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                let is_distrust = matches!(find(&error), Some(rustls::Error::AlertReceived(_)));
                let hint = if is_distrust {
                    ": it trusts another authority than the one it was shown"
                } else {
                    "; what speaks something else than HTTPS needs a tunnel, which the owner names in config.toml (`bailey guide network`)"
                };
                let why = format!("no TLS came about ({error}){hint}");
                return self.turn_away(CONNECT, &url, &why).await;
            }
            // It went away, or says nothing.
            Ok(Err(_)) | Err(_) => return,
        };
        let said = stream.get_ref().1.server_name();
        if let Some(said) = said.filter(|said| !said.eq_ignore_ascii_case(tunnel.host.trim_end_matches('.')))
        {
            let why = format!("its handshake names somebody else, `{said}`");
            return self.turn_away(CONNECT, &url, &why).await;
        }
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP_2);
        self.inside(TokioIo::new(stream), tunnel, is_http2, place).await;
    }

    async fn inside<S>(self: Arc<Self>, stream: S, tunnel: Tunnel, is_http2: bool, place: ConnectionPermit)
    where
        S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        let service = service_fn(|request: Request<Incoming>| {
            let (guest, tunnel, place) = (self.clone(), tunnel.clone(), place.clone());
            async move { Ok::<_, Infallible>(guest.within(request, &tunnel, place).await) }
        });
        if is_http2 {
            drop(http2().serve_connection(stream, service).await);
        } else {
            drop(http().serve_connection(stream, service).with_upgrades().await);
        }
    }

    /// A request inside a tunnel: it goes where the tunnel leads.
    async fn within(
        &self,
        request: Request<Incoming>,
        tunnel: &Tunnel,
        place: ConnectionPermit,
    ) -> Response<Answered> {
        let url = tunnel.url(request.uri().path_and_query().map_or("/", |path| path.as_str()));
        self.pass_on(request, &tunnel.authority(), url, place).await
    }

    /// Refuses a request that the rules are not asked about.
    async fn refuse(&self, status: StatusCode, method: &str, url: &str, why: &str) -> Response<Answered> {
        self.turn_away(method, url, why).await;
        refused(status, method, url, why)
    }

    /// Writes down that a request was refused, whatever the rules say of it.
    async fn turn_away(&self, method: &str, url: &str, why: &str) {
        self.notes.refused(&format!("{method} {url}"), why);
        if self.turned_away.fetch_add(1, Ordering::Relaxed) >= self.inner.config.requests_max {
            return;
        }
        let number = self.inner.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let (method, url) = (shortened(method), shortened(url));
        let relay = Relay { method, url, length: None, number, key: None };
        let (door, working, why) = (self.door.clone(), self.working.clone(), format!("network door: {why}"));
        // Also where its command went away meanwhile. A journal that takes no entry lets nothing else pass.
        let written = tokio::spawn(async move {
            let _working = working;
            door.refuse(Action::Relay(relay), why).await
        });
        drop(written.await);
    }

    /// Asks for the effect that the request is, and answers with what came of it.
    async fn pass_on(
        &self,
        mut request: Request<Incoming>,
        authority: &str,
        url: String,
        place: ConnectionPermit,
    ) -> Response<Answered> {
        let is_switch = is_websocket(&request) || request.method() == Method::CONNECT;
        let method = if is_websocket(&request) { WEBSOCKET.to_owned() } else { request.method().to_string() };
        if url.len() > URL_BYTES_MAX || method.len() > METHOD_BYTES_MAX {
            let why = format!(
                "a URL has {URL_BYTES_MAX} bytes at most, and a method {METHOD_BYTES_MAX}: each is an entry of the journal"
            );
            let (method, url) = (shortened(&method), shortened(&url));
            return self.refuse(StatusCode::URI_TOO_LONG, &method, &url, &why).await;
        }
        // The door's own word for what has no method any more, and no length: as a method it would pass as
        // what it is not.
        if request.method().as_str().eq_ignore_ascii_case(WEBSOCKET) {
            let why = "no method has this name: WebSocket is asked for with GET and `Upgrade: websocket`";
            return self.refuse(StatusCode::BAD_REQUEST, &method, &url, why).await;
        }
        // The name that is asked for is the one that is judged: no fronting (RFC 9110, 7.4).
        let is_other = |host: &[u8]| !is_same_host(host, authority.as_bytes());
        if request.headers().get_all(HOST).iter().map(HeaderValue::as_bytes).any(is_other) {
            let why =
                format!("the header Host names somebody else than the request, which goes to {authority}");
            return self.refuse(StatusCode::MISDIRECTED_REQUEST, &method, &url, &why).await;
        }
        // `:authority` of HTTP/2, and a whole URL inside a tunnel.
        if request.uri().authority().map(|named| named.as_str().as_bytes()).is_some_and(is_other) {
            let why = format!("the request names somebody else than its connection leads to, {authority}");
            return self.refuse(StatusCode::MISDIRECTED_REQUEST, &method, &url, &why).await;
        }
        let most = self.inner.config.requests_max;
        if self.requests.fetch_add(1, Ordering::Relaxed) >= most {
            let why =
                format!("a command makes {most} requests at most (`limits.command_requests` in config.toml)");
            return self.refuse(StatusCode::TOO_MANY_REQUESTS, &method, &url, &why).await;
        }
        let key = match self.inner.keys.wanted(&method, &url, request.headers()) {
            Ok(Some(key)) if !self.door.takes_key(&key) => {
                let why = format!("a peer gets no key of the owner's that its entry does not name: `{key}`");
                return self.refuse(StatusCode::FORBIDDEN, &method, &url, &why).await;
            }
            Ok(key) => key,
            Err(misused) => {
                return self.refuse(StatusCode::FORBIDDEN, &method, &url, &misused.to_string()).await;
            }
        };
        // What passes after a switch says nowhere how much it is.
        let length = request.body().size_hint().exact().filter(|_| !is_switch);
        // Many requests may come on one connection, and each may take one of its own to a server. Nobody
        // closes this.
        let Ok(turn) = self.turns.take().await else {
            return failed(&method, &url, "the door is shut");
        };
        let began = Instant::now();
        let used = self.inner.limits.of(&url, began).and_then(|used| {
            used.as_ref().map_or(Ok(()), |used| used.begin(length, began))?;
            Ok(used)
        });
        let used = match used {
            Ok(used) => used,
            Err(why) => return self.refuse(StatusCode::TOO_MANY_REQUESTS, &method, &url, &why).await,
        };
        let number = self.inner.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let relay = Relay { method: method.clone(), url: url.clone(), length, number, key };
        let (answer, answered) = oneshot::channel();
        let upgrade = request.extensions_mut().remove::<OnUpgrade>();
        let clients = self.clients.clone();
        let (ended, notes) = (self.ended.clone(), self.notes.clone());
        let counted = used.clone();
        let exchange =
            Exchange { request, upgrade, clients, used, answer, ended, notes, _places: (place, turn) };
        self.inner.wait(number, exchange);
        let (inner, door, working) = (self.inner.clone(), self.door.clone(), self.working.clone());
        let effect = tokio::spawn(async move {
            let _working = working;
            let came = door.act(Action::Relay(relay)).await;
            // What nobody performed is given up, so that nobody waits for its answer.
            drop(inner.take(number));
            came
        });
        if let Ok(answer) = answered.await {
            return answer;
        }
        match effect.await {
            Ok(Err(Refused::Denied(reasons))) => {
                if let Some(counted) = counted {
                    counted.take_back(began);
                }
                self.notes.refused(&format!("{method} {url}"), &why_denied(&method, &url, &reasons));
                denied(&method, &url, &reasons)
            }
            Ok(Err(refused)) => failed(&method, &url, &refused.to_string()),
            Ok(Ok(output)) => match &output.outcome().status {
                Status::Failed { reason } => failed(&method, &url, reason),
                _ => failed(&method, &url, "it was cut off"),
            },
            Err(_) => failed(&method, &url, "it ended badly"),
        }
    }
}

fn http() -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    http
}

fn http2() -> http2::Builder<TokioExecutor> {
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .max_send_buf_size(UNREAD_MAX)
        .initial_stream_window_size(UNSENT_MAX)
        .initial_connection_window_size(UNSENT_MAX)
        .keep_alive_interval(HEAD);
    http
}

/// Whether a request asks for WebSocket. Other protocols are not switched to.
fn is_websocket(request: &Request<Incoming>) -> bool {
    let wanted = request.headers().get(UPGRADE).and_then(|wanted| wanted.to_str().ok());
    request.method() == Method::GET
        && wanted.is_some_and(|wanted| wanted.trim().eq_ignore_ascii_case("websocket"))
}

#[cfg(test)]
mod tests {
    use super::{CONNECTIONS_MAX, SHARE_MAX, Share};
    use std::{sync::Arc, time::Duration};
    use tokio::{sync::Semaphore, time::timeout};

    #[tokio::test]
    async fn a_command_that_takes_all_leaves_half_to_the_others() {
        // Long enough for a place that is free.
        let soon = Duration::from_millis(20);
        let all = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let (greedy, other) = (Share::of(&all), Share::of(&all));
        let mut held = Vec::new();
        while let Ok(place) = timeout(soon, greedy.take()).await {
            held.push(place.unwrap());
        }
        assert_eq!(held.len(), SHARE_MAX);
        held.push(timeout(soon, other.take()).await.unwrap().unwrap());
        // The control: without a share of its own a command takes the rest, and the next one waits.
        assert_eq!(all.forget_permits(CONNECTIONS_MAX), CONNECTIONS_MAX - SHARE_MAX - 1);
        assert!(timeout(soon, other.take()).await.is_err());
    }
}
