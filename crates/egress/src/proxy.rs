//! The way to a server through a proxy, where the environment names one.
//!
//! Every request goes through a tunnel (`CONNECT`, RFC 9110, 9.3.6), so that a proxy sees whom an `https` endpoint is, and
//! not a byte of what is said. This machine itself is never asked for through a proxy.

use crate::{
    ConfigError,
    connect::{BoxError, Connecting},
};
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
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    http: String,
    https: String,
    no: String,
}

impl Proxies {
    /// Reads `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, or the same in lower case, which goes first; `get`
    /// gives a variable's value.
    ///
    /// # Errors
    /// When one names a proxy that cannot be used: of another kind than `http`.
    pub fn of(get: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let read = |name: &str| {
            let value = get(&name.to_lowercase()).filter(|value| !value.is_empty()).or_else(|| get(name));
            value.map(|value| value.trim().to_owned()).unwrap_or_default()
        };
        let proxy = |name: &str| {
            let value = read(name);
            if is_usable(&value) {
                Ok(value)
            } else {
                Err(ConfigError::Proxy(name.into(), without_user(&value)))
            }
        };
        let all = proxy("ALL_PROXY")?;
        let no = read("NO_PROXY");
        // By habit it means every host; the matcher would take it for every name, and no address.
        if no.split(',').any(|host| host.trim() == "*") {
            proxy("HTTP_PROXY").and(proxy("HTTPS_PROXY"))?;
            return Ok(Self { no, ..Self::default() });
        }
        let or_all = |value: String| if value.is_empty() { all.clone() } else { value };
        let (http, https) = (or_all(proxy("HTTP_PROXY")?), or_all(proxy("HTTPS_PROXY")?));
        Ok(Self { http, https, no })
    }

    pub(crate) fn matcher(&self) -> Matcher {
        Matcher::builder().http(self.http.clone()).https(self.https.clone()).no(self.no.clone()).build()
    }
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (http, https) = (without_user(&self.http), without_user(&self.https));
        f.debug_struct("Proxies").field("http", &http).field("https", &https).field("no", &self.no).finish()
    }
}

/// Connects straight, or through the proxy of the destination.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector,
    matcher: Arc<Matcher>,
}

impl Connector {
    pub(crate) fn new(tcp: HttpConnector, matcher: Arc<Matcher>) -> Self {
        Self { tcp, matcher }
    }

    /// The proxy on the way to this place, without a password.
    pub(crate) fn proxy(&self, destination: &Uri) -> Option<String> {
        let proxy = on_the_way(&self.matcher, destination)?;
        Some(proxy.uri().to_string().trim_end_matches('/').to_owned())
    }
}

/// The proxy on the way to this place; none for this machine itself.
pub(crate) fn on_the_way(matcher: &Matcher, destination: &Uri) -> Option<Intercept> {
    if is_this_machine(destination.host()?) { None } else { matcher.intercept(destination) }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Connecting;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, destination: Uri) -> Connecting {
        let Some(proxy) = on_the_way(&self.matcher, &destination) else {
            let connecting = self.tcp.call(destination);
            return Box::pin(async move { Ok(connecting.await?) });
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
    use super::{Proxies, on_the_way, with_port};
    use crate::ConfigError;

    fn of(variables: &[(&str, &str)]) -> Result<Proxies, ConfigError> {
        let found = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Proxies::of(|name| found(name).map(|(_, value)| (*value).to_owned()))
    }

    fn way(proxies: &Proxies, url: &str) -> Option<String> {
        on_the_way(&proxies.matcher(), &url.parse().unwrap()).map(|proxy| proxy.uri().to_string())
    }

    #[test]
    fn the_environment_says_which_way() {
        let proxies = of(&[
            ("HTTPS_PROXY", "http://ann:secret@proxy.test:3128"),
            ("all_proxy", "other.test:1"),
            ("NO_PROXY", "internal.test, 10.0.0.0/8"),
        ]);
        let proxies = proxies.unwrap();
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
        let none = of(&[("ALL_PROXY", "proxy.test:1"), ("NO_PROXY", "a.test, *")]).unwrap();
        assert_eq!((way(&none, "https://api.example.com"), way(&none, "http://10.1.2.3")), (None, None));
        let shown = format!("{proxies:?}");
        assert!(shown.contains("proxy.test:3128") && !shown.contains("secret"), "{shown}");
        assert_eq!(way(&of(&[]).unwrap(), "https://api.example.com"), None);
    }

    #[test]
    fn a_proxy_of_another_kind_is_refused() {
        for value in ["socks5://ann:secret@127.0.0.1:9050", "https://proxy.test"] {
            let error = of(&[("ALL_PROXY", value)]).unwrap_err().to_string();
            assert!(error.contains("ALL_PROXY") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_tunnel_names_its_port() {
        let named = |uri: &str| with_port(uri.parse().unwrap()).to_string();
        assert_eq!(named("http://a.test/x"), "http://a.test:80/");
        assert_eq!(named("https://a.test"), "https://a.test:443/");
        assert_eq!(named("http://a.test:8080/x"), "http://a.test:8080/x");
    }
}
