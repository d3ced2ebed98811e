//! Hosts: read strictly out of a URL, and matched by glob.

use crate::fit::Fit;
use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;
use serde::{Deserialize, Serialize, Serializer};

/// A host glob: `example.com`, `*.example.com` (any name beneath it, not itself), `*` (any host), each with
/// an optional `:port`. Compared in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct HostGlob {
    name: String,
    port: Option<u16>,
}

/// A method of HTTP, in upper case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Method(String);

/// Why a method cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no method of HTTP: write it in upper case, such as `GET`")]
pub struct MethodError(String);

impl Method {
    /// Those by which git fetches over HTTP: it asks what a repository has, and for some of it.
    pub(crate) fn of_git() -> Vec<Self> {
        ["GET", "POST"].map(|name| Self(name.to_string())).into()
    }

    /// Reads a method.
    ///
    /// # Errors
    /// When it is not all of upper-case letters: a request with any other is denied whatever the rules say.
    pub fn new(text: &str) -> Result<Self, MethodError> {
        let is_one =
            !text.is_empty() && text.len() <= 32 && text.bytes().all(|byte| byte.is_ascii_uppercase());
        if is_one { Ok(Self(text.to_string())) } else { Err(MethodError(text.to_string())) }
    }

    /// Its name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How it fits the method of a request. A switch to WebSocket begins as a `GET`, which the server sees:
    /// whoever denies that, or wants to be asked about it, means the switch as well, and whoever allows it
    /// does not.
    pub(crate) fn fit(&self, given: &str) -> Fit {
        match (self.as_str(), given) {
            (own, given) if own == given => Fit::Yes,
            ("GET", "WEBSOCKET") => Fit::Maybe,
            _ => Fit::No,
        }
    }
}

impl TryFrom<String> for Method {
    type Error = MethodError;

    fn try_from(text: String) -> Result<Self, MethodError> {
        Self::new(&text)
    }
}

impl From<Method> for String {
    fn from(method: Method) -> Self {
        method.0
    }
}

/// Why a host glob cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no host: write a name such as `example.com`, `*.example.com` or `*`, without scheme or path"
)]
pub struct HostError(String);

/// The host of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) port: u16,
}

impl HostGlob {
    /// Reads a host glob.
    ///
    /// # Errors
    /// When it is no host, or has a `*` elsewhere than as its first label.
    pub fn new(text: &str) -> Result<Self, HostError> {
        let error = || HostError(text.to_string());
        let plain = text.strip_prefix("*.").unwrap_or(text);
        let (name, port) = split_port(text).ok_or_else(error)?;
        if text == "*" || split_port(plain).is_some_and(|(name, _)| name == "*" || is_name(name)) {
            Ok(Self { name: canonical(name), port })
        } else {
            Err(error())
        }
    }

    /// The glob that matches every host.
    #[must_use]
    pub fn everything() -> Self {
        Self { name: "*".to_string(), port: None }
    }

    /// Whether it matches the host of an absolute URL.
    #[must_use]
    pub fn is_match(&self, url: &str) -> bool {
        Host::of(url).is_some_and(|host| self.fit(&host) == Fit::Yes)
    }

    /// How it fits every host that another glob matches.
    pub(crate) fn fit_all(&self, hosts: &Self) -> Fit {
        if self == hosts || (self.name == "*" && self.port.is_none()) {
            return Fit::Yes;
        }
        if hosts.name.starts_with('*') {
            return Fit::Maybe;
        }
        let port = hosts.port.or(self.port).unwrap_or(0);
        match self.fit(&Host { name: hosts.name.clone(), port }) {
            Fit::Yes if self.port.is_some() && hosts.port.is_none() => Fit::Maybe,
            fit => fit,
        }
    }

    pub(crate) fn fit(&self, host: &Host) -> Fit {
        let named = match self.name.strip_prefix('*') {
            Some("") => true,
            Some(suffix) => host.name.len() > suffix.len() && host.name.ends_with(suffix),
            None => self.name == host.name,
        };
        Fit::from(named && self.port.is_none_or(|port| port == host.port))
    }
}

impl TryFrom<String> for HostGlob {
    type Error = HostError;

    fn try_from(text: String) -> Result<Self, HostError> {
        Self::new(&text)
    }
}

impl fmt::Display for HostGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl Serialize for HostGlob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Whether this is an absolute `http` or `https` URL (RFC 3986) whose host the gate can judge. Requests to
/// any other are denied, so whoever takes a URL from a person can say so at once.
#[must_use]
pub fn is_judged(url: &str) -> bool {
    Host::of(url).is_some()
}

impl Host {
    /// The host of an absolute `http` or `https` URL (RFC 3986); `None` when there is any doubt about it: a
    /// user name, a character that readers of URLs disagree about, a name that is not ASCII.
    pub(crate) fn of(url: &str) -> Option<Self> {
        let (rest, port_default) = match url.strip_prefix("https://") {
            Some(rest) => (rest, 443),
            None => (url.strip_prefix("http://")?, 80),
        };
        if url.contains('\\') || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return None;
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (name, port) = split_port(rest.get(..end)?)?;
        is_name(name).then(|| Self { name: canonical(name), port: port.unwrap_or(port_default) })
    }
}

fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    let bracket = text.rfind(']').unwrap_or(0);
    match text.rfind(':') {
        Some(colon) if colon >= bracket => {
            let digits = text.get(colon + 1..)?;
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            Some((text.get(..colon)?, Some(plain.then(|| digits.parse().ok())??)))
        }
        _ => Some((text, None)),
    }
}

/// A name of letters, digits, `-`, `_` and `.`, or an IPv6 address in brackets.
fn is_name(name: &str) -> bool {
    if let Some(address) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<core::net::Ipv6Addr>().is_ok();
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    // What ends in a number is an address (WHATWG URL, 3.5), and has one spelling here.
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last.get(..2).is_some_and(|two| two.eq_ignore_ascii_case("0x"));
    if is_number && !name.is_empty() {
        return name.parse::<core::net::Ipv4Addr>().is_ok();
    }
    !name.is_empty()
        && name.len() <= 253
        && name.split('.').all(|label| !label.is_empty() && label.len() <= 63)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn canonical(name: &str) -> String {
    let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(address) = inner.and_then(|inner| inner.parse::<core::net::Ipv6Addr>().ok()) {
        return alloc::format!("[{address}]");
    }
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}
