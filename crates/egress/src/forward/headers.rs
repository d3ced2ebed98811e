//! Headers that the door adds, takes away, or looks at: those of one connection, those that make a request another one, and those of an
//! answer in which a key may stand.

use bailey_secrets::Redactor;
use hyper::{
    HeaderMap, StatusCode,
    header::{self, HeaderName, HeaderValue},
};
use std::sync::atomic::{AtomicU32, Ordering};

/// Headers by which some servers take a request for another one than it is; a `_` is a `-` to many.
const OVERRIDES: [&str; 10] = [
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-uri",
    "x-original-url",
    "x-rewrite-url",
    "x-forwarded-host",
    "x-forwarded-path",
    "x-forwarded-uri",
    "x-forwarded-url",
];
/// Sets of characters, or the beginnings of their names, in which ASCII is as it is.
const PLAIN_CHARSETS: [&str; 6] = ["utf-8", "utf8", "us-ascii", "ascii", "iso-8859-", "windows-125"];
/// Headers that are about one connection and not about the message (RFC 9110, 7.6.1), or that the client writes itself.
pub(super) const OF_THE_CONNECTION: [HeaderName; 9] = [
    header::CONNECTION,
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::EXPECT,
    header::PROXY_AUTHORIZATION,
];
/// The same, without names among the constants.
pub(super) const OLDER: [&str; 3] = ["keep-alive", "proxy-connection", "proxy-authenticate"];

/// Whether some servers take a request with this header for another one than it was judged as.
pub(super) fn is_override(name: &HeaderName) -> bool {
    OVERRIDES.contains(&name.as_str().replace('_', "-").as_str())
}

/// Takes away what would make a request another one than it was judged as.
pub(super) fn without_overrides(headers: &mut HeaderMap) {
    let found: Vec<HeaderName> = headers.keys().filter(|name| is_override(name)).cloned().collect();
    for name in found {
        headers.remove(name);
    }
}

/// An answer in which a key may stand is whole, unpacked, and in letters that its spellings are known in.
pub(super) fn check_plain(status: StatusCode, headers: &HeaderMap) -> Result<(), String> {
    let listed =
        |name| headers.get_all(name).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let is = |value: &[u8], plain: &str| value.trim_ascii().eq_ignore_ascii_case(plain.as_bytes());
    if listed(header::CONTENT_ENCODING).any(|packed| !is(packed, "identity"))
        || listed(header::TRANSFER_ENCODING).any(|packed| !is(packed, "chunked"))
    {
        return Err("the answer is packed, so it cannot be looked through for a key".into());
    }
    if status == StatusCode::PARTIAL_CONTENT {
        return Err(
            "the answer is a part that nobody asked for, so it cannot be looked through for a key".into()
        );
    }
    let media = headers
        .get(header::CONTENT_TYPE)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase());
    let charset = media
        .as_deref()
        .and_then(|media| media.split_once("charset="))
        .map(|(_, rest)| rest.trim_matches(['"', ' ']));
    match charset {
        Some(charset) if !PLAIN_CHARSETS.iter().any(|plain| charset.starts_with(plain)) => {
            Err(format!("the answer is in `{charset}`, so it cannot be looked through for a key"))
        }
        _ => Ok(()),
    }
}

/// Takes keys out of the headers of an answer.
pub(super) fn hide(mask: &Redactor, headers: &mut HeaderMap, masked: &AtomicU32) {
    let shows = |text: &[u8]| *mask.redact_bytes(text) != *text;
    let named: Vec<HeaderName> =
        headers.keys().filter(|name| shows(name.as_str().as_bytes())).cloned().collect();
    for name in named {
        headers.remove(name);
        masked.fetch_add(1, Ordering::Relaxed);
    }
    for value in headers.values_mut() {
        let clean = mask.redact_bytes(value.as_bytes());
        if *clean != *value.as_bytes() {
            *value = HeaderValue::from_bytes(&clean).unwrap_or(HeaderValue::from_static(""));
            masked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The headers that are the message's and not the connection's.
pub(super) fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let listed: Vec<String> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(',').map(|name| name.trim().to_ascii_lowercase()))
        .collect();
    let mut kept = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let is_of_connection = OF_THE_CONNECTION.contains(name)
            || OLDER.contains(&name.as_str())
            || listed.iter().any(|listed| listed == name.as_str());
        if !is_of_connection {
            kept.append(name, value.clone());
        }
    }
    kept
}

/// Where both sides may switch protocols, the wish goes on (RFC 9110, 7.8).
pub(super) fn keep_upgrade(from: &HeaderMap, to: &mut HeaderMap) {
    if let Some(protocol) = from.get(header::UPGRADE) {
        to.insert(header::UPGRADE, protocol.clone());
        to.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
}
