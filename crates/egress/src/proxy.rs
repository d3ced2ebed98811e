//! The way to a server through a proxy, where the environment names one.
//!
//! Every request goes through a tunnel (`CONNECT`, RFC 9110, 9.3.6), so that a proxy sees whom an `https`
//! endpoint is, and not a byte of what is said. This machine itself is never asked for through a proxy.

use crate::connect::{BoxError, Connecting};
use hyper::{Uri, http::uri::PathAndQuery};
use hyper_util::{
    client::{
        legacy::connect::{HttpConnector, proxy::Tunnel},
        proxy::matcher::{Intercept, Matcher},
    },
    rt::TokioIo,
};
use std::{
    fmt,
    net::IpAddr,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::net::TcpStream;
use tower_service::Service;

/// The proxies that the environment names. Their passwords are never shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    http: ProxyRoute,
    https: ProxyRoute,
    no: String,
}

/// How servers of a scheme are reached.
#[derive(Clone, Default, PartialEq, Eq)]
enum ProxyRoute {
    #[default]
    Straight,
    Through(String),
    /// A variable names a proxy that cannot be used. A request that would need the
    /// proxy says so, and other requests do not.
    Unusable(Unusable),
}

/// A variable that names a proxy of another kind than `http`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the variable {variable} names `{value}`, and only proxies of the kind `http://host:port` can be used; set {scheme}_PROXY to one, \
     name the host in NO_PROXY, or unset {variable}"
)]
pub(crate) struct Unusable {
    variable: String,
    /// Without user and password.
    value: String,
    /// Of the server.
    scheme: &'static str,
}

impl Proxies {
    /// Reads `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, or the same in lower case, which goes
    /// first; `get` gives a variable's value. A proxy without a scheme is one of HTTP.
    pub fn of(get: impl Fn(&str) -> Option<String>) -> Self {
        let read = |name: &str| {
            let named = [name.to_lowercase(), name.to_owned()].into_iter();
            let mut values = named.filter_map(|name| Some((get(&name)?.trim().to_owned(), name)));
            values.find(|(value, _)| !value.is_empty())
        };
        let no = read("NO_PROXY").map(|(value, _)| value).unwrap_or_default();
        // By habit it means every host; the matcher would take it for every name, and no address.
        if no.split(',').any(|host| host.trim() == "*") {
            return Self { no, ..Self::default() };
        }
        let way = |name: &str, scheme| match read(name).or_else(|| read("ALL_PROXY")) {
            None => ProxyRoute::Straight,
            Some((value, _)) if is_usable(&value) => ProxyRoute::Through(value),
            Some((value, variable)) => {
                ProxyRoute::Unusable(Unusable { variable, value: without_user(&value), scheme })
            }
        };
        Self { http: way("HTTP_PROXY", "HTTP"), https: way("HTTPS_PROXY", "HTTPS"), no }
    }

    pub(crate) fn ways(&self) -> Ways {
        let (http, https) = (self.http.name(), self.https.name());
        let matcher = Matcher::builder().http(http).https(https).no(self.no.clone()).build();
        Ways { matcher, proxies: self.clone() }
    }
}

impl ProxyRoute {
    /// The name that the matcher goes by. The name of a proxy that cannot be
    /// used still says which places it is for.
    fn name(&self) -> String {
        match self {
            Self::Straight => String::new(),
            Self::Through(proxy) => proxy.clone(),
            Self::Unusable(_) => "http://unusable.invalid".into(),
        }
    }
}

impl fmt::Debug for ProxyRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Straight => f.write_str("Straight"),
            Self::Through(proxy) => f.debug_tuple("Through").field(&without_user(proxy)).finish(),
            Self::Unusable(unusable) => f.debug_tuple("Unusable").field(unusable).finish(),
        }
    }
}

/// The same, ready to be asked.
#[derive(Debug)]
pub(crate) struct Ways {
    matcher: Matcher,
    proxies: Proxies,
}

impl Ways {
    /// The proxy on the way to this place; `None` for this machine itself.
    ///
    /// # Errors
    /// When it is of a kind that cannot be used.
    pub(crate) fn to(&self, destination: &Uri) -> Result<Option<Intercept>, Unusable> {
        let host = destination.host().filter(|host| !is_this_machine(host));
        let Some(proxy) = host.and_then(|_| self.matcher.intercept(destination)) else { return Ok(None) };
        match if destination.scheme_str() == Some("https") { &self.proxies.https } else { &self.proxies.http }
        {
            ProxyRoute::Unusable(unusable) => Err(unusable.clone()),
            ProxyRoute::Straight | ProxyRoute::Through(_) => Ok(Some(proxy)),
        }
    }
}

/// Connects straight, or through the proxy of the destination.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector,
    ways: Arc<Ways>,
}

impl Connector {
    pub(crate) fn new(tcp: HttpConnector, ways: Arc<Ways>) -> Self {
        Self { tcp, ways }
    }

    /// The proxy on the way to this place, without a password.
    pub(crate) fn proxy(&self, destination: &Uri) -> Option<String> {
        let proxy = self.ways.to(destination).ok()??;
        Some(proxy.uri().to_string().trim_end_matches('/').to_owned())
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Connecting;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, destination: Uri) -> Connecting {
        let proxy = match self.ways.to(&destination) {
            Ok(Some(proxy)) => proxy,
            Ok(None) => {
                let connecting = self.tcp.call(destination);
                return Box::pin(async move { Ok(connecting.await?) });
            }
            Err(unusable) => return Box::pin(async move { Err(unusable.into()) }),
        };
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.tcp.clone());
        if let Some(password) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(password.clone());
        }
        let connecting = tunnel.call(with_port(destination));
        Box::pin(async move { Ok(connecting.await?) })
    }
}

/// The tunnel takes 443 for granted, also for `http`.
fn with_port(uri: Uri) -> Uri {
    let port = if uri.scheme_str() == Some("http") { 80 } else { 443 };
    if uri.port().is_some() {
        return uri;
    }
    let named = uri.host().map(|host| format!("{host}:{port}")).and_then(|authority| {
        let path = PathAndQuery::from_static("/");
        Uri::builder().scheme(uri.scheme_str()?).authority(authority).path_and_query(path).build().ok()
    });
    named.unwrap_or(uri)
}

fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_usable(value: &str) -> bool {
    let scheme = value.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    value.is_empty() || (scheme.is_none_or(|scheme| scheme == "http") && value.parse::<Uri>().is_ok())
}

fn without_user(value: &str) -> String {
    match value.rsplit_once('@') {
        Some((before, host)) => {
            let scheme = before.split_once("://").map(|(scheme, _)| format!("{scheme}://"));
            scheme.unwrap_or_default() + host
        }
        None => value.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Proxies, with_port};

    fn of(variables: &[(&str, &str)]) -> Proxies {
        let found = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Proxies::of(|name| found(name).map(|(_, value)| (*value).to_owned()))
    }

    fn way(proxies: &Proxies, url: &str) -> Option<String> {
        let proxy = proxies.ways().to(&url.parse().unwrap()).unwrap();
        proxy.map(|proxy| proxy.uri().to_string())
    }

    #[test]
    fn the_environment_says_which_way() {
        let proxies = of(&[
            ("HTTPS_PROXY", "http://ann:secret@proxy.test:3128"),
            ("all_proxy", "other.test:1"),
            ("NO_PROXY", "internal.test, 10.0.0.0/8"),
        ]);
        assert_eq!(way(&proxies, "https://api.example.com/v1").unwrap(), "http://proxy.test:3128/");
        assert_eq!(way(&proxies, "http://api.example.com").unwrap(), "http://other.test:1/");
        for straight in [
            "https://models.internal.test",
            "https://10.1.2.3",
            "http://127.0.0.1:11434",
            "http://localhost:1",
            "http://[::1]:1",
        ] {
            assert_eq!(way(&proxies, straight), None, "{straight}");
        }
        let none = of(&[("ALL_PROXY", "proxy.test:1"), ("NO_PROXY", "a.test, *")]);
        assert_eq!((way(&none, "https://api.example.com"), way(&none, "http://10.1.2.3")), (None, None));
        let shown = format!("{proxies:?}");
        assert!(shown.contains("proxy.test:3128") && !shown.contains("secret"), "{shown}");
        assert_eq!(way(&of(&[]), "https://api.example.com"), None);
    }

    /// Clash and its like have people export a SOCKS proxy for everything beside those of HTTP.
    #[test]
    fn a_proxy_of_another_kind_is_refused_where_it_is_needed() {
        let refused =
            |proxies: &Proxies, url: &str| proxies.ways().to(&url.parse().unwrap()).unwrap_err().to_string();
        for value in ["socks5://ann:secret@127.0.0.1:9050", "https://proxy.test"] {
            let proxies =
                of(&[("all_proxy", value), ("https_proxy", "127.0.0.1:7890"), ("no_proxy", "b.test")]);
            assert_eq!(
                way(&proxies, "https://a.test").unwrap(),
                "http://127.0.0.1:7890/",
                "without a scheme it is HTTP"
            );
            for straight in ["http://127.0.0.1:11434", "http://localhost:1", "http://b.test"] {
                assert_eq!(way(&proxies, straight), None, "{straight}");
            }
            let error = refused(&proxies, "http://a.test");
            assert!(
                error.contains("all_proxy") && error.contains("HTTP_PROXY") && !error.contains("secret"),
                "{error}"
            );
            assert!(!format!("{proxies:?}").contains("secret"));
        }
        let own = of(&[("HTTPS_PROXY", "socks5h://p.test:1"), ("ALL_PROXY", "http://q.test:1")]);
        assert!(refused(&own, "https://a.test").contains("HTTPS_PROXY"), "the nearer variable counts");
        assert_eq!(way(&own, "http://a.test").unwrap(), "http://q.test:1/");
    }

    #[test]
    fn a_tunnel_names_its_port() {
        let named = |uri: &str| with_port(uri.parse().unwrap()).to_string();
        assert_eq!(named("http://a.test/x"), "http://a.test:80/");
        assert_eq!(named("https://a.test"), "https://a.test:443/");
        assert_eq!(named("http://a.test:8080/x"), "http://a.test:8080/x");
    }
}
