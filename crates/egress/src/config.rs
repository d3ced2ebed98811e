//! What the composition root tells the door.

use crate::Proxies;
use hyper::Uri;
use std::{
    fmt,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// How the door behaves.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it may send to; anything else is refused.
    pub endpoints: Vec<Endpoint>,
    /// The proxies on the way.
    pub proxies: Proxies,
    /// Certificate authorities trusted besides the system's, as PEM text (RFC 7468).
    pub extra_authorities: Option<String>,
    /// The longest time to reach a server: name, TCP and TLS together.
    pub connect_timeout: Duration,
    /// The longest time from being connected to the head of the answer.
    pub first_byte_timeout: Duration,
    /// The longest time without any byte of the body. A stream that keeps moving has no limit.
    pub idle_timeout: Duration,
    /// The most bytes of a body; a longer one is a failure.
    pub body_bytes_max: usize,
}

impl Default for Config {
    /// No endpoints, no proxies; 30 s to connect, 30 s to the first byte, 120 s without any byte, 32 MiB.
    fn default() -> Self {
        Self {
            endpoints: Vec::new(),
            proxies: Proxies::default(),
            extra_authorities: None,
            connect_timeout: Duration::from_secs(30),
            first_byte_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(120),
            body_bytes_max: 32 << 20,
        }
    }
}

/// A server that the door may send to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// A URL there: scheme, host and port count (RFC 6454), the path does not.
    pub url: String,
    /// The names of the secrets that may be sent there.
    pub secrets: Vec<String>,
    /// The longest time to the first byte there, where it is another than [`Config::first_byte_timeout`]: a
    /// server that loads a model first needs longer.
    pub first_byte_timeout: Option<Duration>,
}

/// The configuration makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// An endpoint is no `http` or `https` URL with a host.
    #[error(
        "`{0}` is no endpoint; write it as `https://host` or `http://host:port`, without user or password"
    )]
    NoOrigin(String),
    /// A header that is none, or that the door sets itself.
    #[error("`{0}` is no header that a key can stand in")]
    NoHeader(String),
    /// The system gives no randomness.
    #[error("nothing can stand in for a key: {0}")]
    NoStandIn(String),
}

/// Scheme, host and port: who is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Origin {
    /// The origin of a URL that was parsed by the same code that later dials it. `None` for other schemes,
    /// for no host, and for user names in it.
    pub(crate) fn of(url: &Uri) -> Option<Self> {
        let tls = match url.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let authority = url.authority().filter(|authority| !authority.as_str().contains('@'))?;
        let host = authority.host().to_ascii_lowercase();
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        (!host.is_empty()).then_some(Self { tls, host, port })
    }
}

/// A host in the one spelling that it is compared in: lower case, no dots at its end, an address of version 6
/// as RFC 5952 has it.
pub(crate) fn canonical(host: &str) -> String {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match inner.and_then(|inner| inner.parse::<std::net::Ipv6Addr>().ok()) {
        Some(address) => format!("[{address}]"),
        None => host.trim_end_matches('.').to_ascii_lowercase(),
    }
}

/// Whether two URLs name the same host and port, in whatever spelling. The scheme does not count: one port is
/// one server.
#[must_use]
pub fn is_same_server(one: &str, other: &str) -> bool {
    let server = |url: &str| {
        let origin = url.parse().ok().as_ref().and_then(Origin::of)?;
        Some((canonical(&origin.host), origin.port))
    };
    server(one).is_some_and(|one| server(other) == Some(one))
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        let default = if self.tls { 443 } else { 80 };
        write!(f, "{scheme}://{}", self.host)?;
        if self.port == default { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

/// The endpoints, ready to be looked up.
#[derive(Debug)]
pub(crate) struct Endpoints(Vec<EndpointState>);

/// An endpoint, its origin, and how often in a row it was late.
#[derive(Debug)]
struct EndpointState {
    origin: Origin,
    endpoint: Endpoint,
    /// How often in a row its first byte did not come in time.
    late: AtomicU32,
}

impl Endpoints {
    pub(crate) fn new(endpoints: Vec<Endpoint>) -> Result<Self, ConfigError> {
        let origin = |endpoint: Endpoint| {
            let origin = endpoint.url.parse().ok().as_ref().and_then(Origin::of);
            let origin = origin.ok_or_else(|| ConfigError::NoOrigin(endpoint.url.clone()))?;
            Ok(EndpointState { origin, endpoint, late: AtomicU32::new(0) })
        };
        endpoints.into_iter().map(origin).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn allow(&self, origin: &Origin) -> bool {
        self.at(origin).next().is_some()
    }

    /// Whether the secret of this name may be sent there.
    pub(crate) fn allow_secret(&self, origin: &Origin, name: &str) -> bool {
        self.at(origin).any(|endpoint| endpoint.secrets.iter().any(|secret| secret == name))
    }

    /// The longest time to the first byte there now. Each time that it was too short doubles it, up to ten
    /// minutes, until an answer comes.
    pub(crate) fn first_byte_timeout(&self, origin: &Origin, default: Duration) -> Duration {
        const LONGEST: Duration = Duration::from_secs(600);
        let known = self.known(origin);
        let named =
            known.clone().filter_map(|known| known.endpoint.first_byte_timeout).max().unwrap_or(default);
        let late = known.map(|known| known.late.load(Ordering::Relaxed)).max().unwrap_or_default();
        named.saturating_mul(1 << late.min(16)).min(LONGEST.max(named))
    }

    /// An answer came in that time, or did not.
    pub(crate) fn was_late(&self, origin: &Origin, late: bool) {
        for known in self.known(origin) {
            let more = |before: u32| Some(if late { before.saturating_add(1) } else { 0 });
            // It is never refused.
            known.late.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok();
        }
    }

    fn at<'a>(&'a self, origin: &'a Origin) -> impl Iterator<Item = &'a Endpoint> {
        self.known(origin).map(|known| &known.endpoint)
    }

    fn known<'a>(&'a self, origin: &'a Origin) -> impl Iterator<Item = &'a EndpointState> + Clone {
        self.0.iter().filter(move |known| known.origin == *origin)
    }
}
