//! What a request is for, as it says it: what is written down of it, and whether two names are one.

use crate::config::canonical;
use hyper::Uri;

/// The longest URL, in bytes.
pub(super) const URL_BYTES_MAX: usize = 8 << 10;
/// The longest method, in bytes.
pub(super) const METHOD_BYTES_MAX: usize = 64;
/// So much is told of a longer one of either.
const NAMED_BYTES_MAX: usize = 200;

/// The beginning of what is too long to be written down.
pub(super) fn shortened(text: &str) -> String {
    let most = if text.len() > URL_BYTES_MAX { NAMED_BYTES_MAX } else { URL_BYTES_MAX };
    let begin = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    if begin.len() < text.len() { format!("{begin}…") } else { begin.to_owned() }
}

/// What a request asked for, without the login in it.
pub(super) fn without_user(uri: &Uri) -> String {
    let whole = uri.to_string();
    let user = uri.authority().and_then(|authority| authority.as_str().rsplit_once('@'));
    user.map_or(whole.clone(), |(user, _)| whole.replacen(&format!("{user}@"), "", 1))
}

/// Host and port of a `CONNECT`.
pub(super) fn named(uri: &Uri) -> Option<(String, u16)> {
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
    Some((canonical(authority.host()), authority.port_u16()?))
}

/// Whether two authorities are the same host and, where either names one, port: without it, it is the
/// scheme's.
pub(super) fn is_same_host(one: &[u8], other: &[u8]) -> bool {
    let bare = |text: &[u8]| {
        let text = String::from_utf8_lossy(text).to_ascii_lowercase();
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port),
            _ => (text.as_str(), ""),
        };
        let port = if matches!(port, "80" | "443") { "" } else { port };
        (canonical(host), port.to_owned())
    };
    bare(one) == bare(other)
}

#[cfg(test)]
mod tests {
    use super::{is_same_host, named};

    #[test]
    fn a_host_with_dots_at_its_end_is_the_one_that_it_is() {
        for spelled in ["a.example:443", "A.example.:443", "a.example..:443", "a.example...:443"] {
            assert_eq!(named(&spelled.parse().unwrap()), Some(("a.example".into(), 443)), "{spelled}");
            assert!(is_same_host(spelled.as_bytes(), b"a.example"), "{spelled}");
        }
        assert_eq!(named(&"[0::1]:443".parse().unwrap()), Some(("[::1]".into(), 443)));
        assert!(!is_same_host(b"a.example.b", b"a.example"));
    }
}
