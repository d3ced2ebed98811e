//! Decides which requests are accepted at all: those for this page's own address, from this page.

use hyper::{
    Method, StatusCode,
    header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, ORIGIN},
    http::request::Parts,
};
use std::net::{IpAddr, SocketAddr};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The addresses that the page is known by. A request is refused if a browser was led here under another name
/// (DNS rebinding), or by another page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origins {
    /// In the form of `Host`, in small letters.
    hosts: Vec<String>,
    /// In the form of `Origin` (RFC 6454), in small letters.
    origins: Vec<String>,
}

impl Origins {
    /// The origins of a listener on this machine's loopback, and of the URL under which a proxy of the owner
    /// shows it, if there is one.
    #[must_use]
    pub fn new(at: SocketAddr, shown_as: Option<&str>) -> Self {
        let own = match at.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let here =
            ["127.0.0.1", "[::1]", "localhost", &own].map(|host| format!("http://{host}:{}", at.port()));
        let shown_as = shown_as.map(|url| url.trim_end_matches('/').to_ascii_lowercase());
        let mut origins: Vec<String> = here.into_iter().chain(shown_as).collect();
        // Browsers leave the usual port out (RFC 9110, 4.2.1 and 4.2.2), even if the configuration names it.
        let usual = |url: &String| match url.split_once("://") {
            Some(("http", host)) => host.strip_suffix(":80").map(|host| format!("http://{host}")),
            Some(("https", host)) => host.strip_suffix(":443").map(|host| format!("https://{host}")),
            _ => None,
        };
        let short: Vec<String> = origins.iter().filter_map(usual).collect();
        origins.extend(short);
        let host = |url: &String| url.split_once("://").map(|(_, host)| host.to_owned());
        Self { hosts: origins.iter().filter_map(host).collect(), origins }
    }

    /// Accepts every request, whatever its headers say.
    #[cfg(feature = "controls")]
    #[must_use]
    pub fn all() -> Self {
        Self { hosts: Vec::new(), origins: Vec::new() }
    }

    /// Checks a request's head, before anything else is done with it.
    ///
    /// # Errors
    /// The status of the refusal, and its reason.
    pub(crate) fn check(&self, head: &Parts) -> Result<(), Refusal> {
        #[cfg(feature = "controls")]
        if self.hosts.is_empty() {
            return Ok(());
        }
        let Parts { method, uri, headers, .. } = head;
        let [host] = values(headers, &HOST)[..] else {
            return Err((StatusCode::BAD_REQUEST, "a request names one host"));
        };
        // If the target is a whole address, it decides for whom the request is, whatever `Host` says (RFC
        // 9112, 3.2.2). So both must be right.
        let named = [Some(host), uri.authority().map(|it| it.as_str())];
        if !named.into_iter().flatten().all(|host| self.hosts.contains(&host.to_ascii_lowercase())) {
            return Err((StatusCode::MISDIRECTED_REQUEST, "this is not the page of that host"));
        }
        if values(headers, &ORIGIN).iter().any(|origin| !self.origins.contains(&origin.to_ascii_lowercase()))
        {
            return Err((StatusCode::FORBIDDEN, "another page may ask for nothing here"));
        }
        // `none` is an address that the person typed, or a link outside of any page. A request that another
        // page leads to is refused, also a navigation: that page would choose the view under the person's
        // next click.
        let is_read = matches!(*method, Method::GET | Method::HEAD);
        let mut sites = values(headers, &SEC_FETCH_SITE).into_iter();
        if !sites.all(|site| site == "same-origin" || site == "none" && is_read) {
            return Err((
                StatusCode::FORBIDDEN,
                match values(headers, &SEC_FETCH_DEST) == ["document"] {
                    true => "another page led here: copy this page's address into the browser's address bar",
                    false => "another page may ask for nothing here",
                },
            ));
        }
        if method == Method::POST {
            let types = values(headers, &CONTENT_TYPE);
            if !matches!(types[..], [kind] if is_json(kind)) {
                return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "say it as application/json"));
            }
        }
        Ok(())
    }
}

/// Whether this is JSON's type (RFC 9110, 8.3.1), with any parameters. A form cannot send this type, and a
/// page cannot send it to another origin without asking first.
fn is_json(kind: &str) -> bool {
    let (kind, _) = kind.split_once(';').unwrap_or((kind, ""));
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// A status and its reason.
pub(crate) type Refusal = (StatusCode, &'static str);

/// All values of a header. A value that is not text becomes `?`, which matches nothing.
fn values<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Vec<&'h str> {
    headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?")).collect()
}

#[cfg(test)]
mod tests {
    use super::Origins;
    use hyper::{Method, Request};

    fn refused(origins: &Origins, method: &Method, heads: &[(&str, &str)]) -> Option<u16> {
        refused_at(origins, method, "/api/do", heads)
    }

    fn refused_at(origins: &Origins, method: &Method, target: &str, heads: &[(&str, &str)]) -> Option<u16> {
        let request = Request::builder().method(method).uri(target);
        let request = heads.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let (head, ()) = request.body(()).unwrap().into_parts();
        origins.check(&head).err().map(|(status, _)| status.as_u16())
    }

    #[test]
    fn only_this_page_asks_under_its_own_name() {
        let here = Origins::new("127.0.0.1:7411".parse().unwrap(), Some("https://Bailey.example.org/"));
        let json = ("content-type", "application/json");
        let host = ("host", "127.0.0.1:7411");
        for (what, method, heads, status) in [
            ("a person's address", Method::GET, vec![host, ("sec-fetch-site", "none")], None),
            ("a program", Method::GET, vec![host], None),
            ("the page", Method::POST, vec![host, json, ("origin", "http://127.0.0.1:7411")], None),
            ("by name", Method::GET, vec![("host", "LOCALHOST:7411")], None),
            ("over version 6", Method::GET, vec![("host", "[::1]:7411")], None),
            (
                "behind a proxy",
                Method::POST,
                vec![("host", "bailey.example.org"), json, ("origin", "https://bailey.example.org")],
                None,
            ),
            ("rebinding", Method::GET, vec![("host", "evil.example:7411")], Some(421)),
            ("another port", Method::GET, vec![("host", "127.0.0.1:80")], Some(421)),
            ("no host", Method::GET, vec![], Some(400)),
            ("two hosts", Method::GET, vec![host, ("host", "evil.example")], Some(400)),
            ("another page", Method::POST, vec![host, json, ("origin", "https://evil.example")], Some(403)),
            ("a page from a file", Method::POST, vec![host, json, ("origin", "null")], Some(403)),
            (
                "the same host elsewhere",
                Method::GET,
                vec![host, ("origin", "http://127.0.0.1:80")],
                Some(403),
            ),
            ("an image elsewhere", Method::GET, vec![host, ("sec-fetch-site", "cross-site")], Some(403)),
            ("another port's page", Method::GET, vec![host, ("sec-fetch-site", "same-site")], Some(403)),
            (
                "a type with its letters",
                Method::POST,
                vec![host, ("content-type", "Application/JSON; charset=utf-8")],
                None,
            ),
            ("a form", Method::POST, vec![host, ("content-type", "text/plain")], Some(415)),
            (
                "a form with a parameter",
                Method::POST,
                vec![host, ("content-type", "text/plain; application/json")],
                Some(415),
            ),
            ("two types", Method::POST, vec![host, json, ("content-type", "text/plain")], Some(415)),
            ("a form without a type", Method::POST, vec![host], Some(415)),
            ("a typed post", Method::POST, vec![host, json, ("sec-fetch-site", "none")], Some(403)),
        ] {
            assert_eq!(refused(&here, &method, &heads), status, "{what}");
        }
    }

    #[test]
    fn a_link_of_another_page_leads_to_nothing_and_says_so() {
        let here = Origins::new("127.0.0.1:7411".parse().unwrap(), None);
        let heads = |site| {
            [
                ("host", "127.0.0.1:7411"),
                ("sec-fetch-site", site),
                ("sec-fetch-mode", "navigate"),
                ("sec-fetch-dest", "document"),
            ]
        };
        for target in ["/", "/page.js", "/api/status"] {
            assert_eq!(refused_at(&here, &Method::GET, target, &heads("cross-site")), Some(403));
            assert_eq!(
                refused_at(&here, &Method::GET, target, &heads("none")),
                None,
                "the control: it was typed"
            );
        }
    }

    #[test]
    fn a_whole_address_is_looked_at_like_a_host() {
        let here = Origins::new("127.0.0.1:7411".parse().unwrap(), None);
        let host = [("host", "127.0.0.1:7411")];
        for (target, status) in [
            ("http://127.0.0.1:7411/api/status", None),
            ("http://LOCALHOST:7411/", None),
            ("http://evil.example/", Some(421)),
            ("http://127.0.0.1:80/", Some(421)),
            ("http://127.0.0.1:7411@evil.example/", Some(421)),
        ] {
            assert_eq!(refused_at(&here, &Method::GET, target, &host), status, "{target}");
        }
        // The control: a wrong `Host` is refused, even if the target is right.
        let heads = [("host", "evil.example")];
        assert_eq!(refused_at(&here, &Method::GET, "http://127.0.0.1:7411/", &heads), Some(421));
    }

    #[test]
    fn what_a_browser_calls_the_usual_port_and_another_loopback_is_here() {
        let json = ("content-type", "application/json");
        for (at, shown_as, host, origin, status) in [
            ("127.0.0.2:7411", None, "127.0.0.2:7411", "http://127.0.0.2:7411", None),
            ("127.0.0.1:7411", None, "127.0.0.2:7411", "http://127.0.0.2:7411", Some(421)),
            ("127.0.0.1:80", None, "localhost", "http://localhost", None),
            ("127.0.0.1:7411", None, "localhost", "http://localhost", Some(421)),
            ("[::1]:80", Some("https://x.example:443"), "x.example", "https://x.example", None),
            ("[::1]:80", Some("https://x.example:444"), "x.example", "https://x.example", Some(421)),
        ] {
            let here = Origins::new(at.parse().unwrap(), shown_as);
            let heads = [("host", host), json, ("origin", origin)];
            assert_eq!(refused(&here, &Method::POST, &heads), status, "{at} {host}");
        }
    }
}
