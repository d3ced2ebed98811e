//! Headers that the door adds, takes away, or looks at: those of one connection, those that make a request
//! another one, and those of an answer in which a key may stand.

use bailey_secrets::Redactor;
use hyper::{
    HeaderMap, Request, StatusCode, Uri,
    body::Body,
    header::{self, HeaderName, HeaderValue},
};
use std::sync::atomic::{AtomicU32, Ordering};

/// Headers by which some servers take a request for another one than it is; a `_` is a `-` to many.
const OVERRIDES: [&str; 24] = [
    "forwarded",
    "x-http-method",
    "x-http-method-override",
    "x-http-host-override",
    "x-http-path-override",
    "x-method-override",
    "x-original-uri",
    "x-original-url",
    "x-rewrite-url",
    "x-forwarded-host",
    "x-forwarded-path",
    "x-forwarded-uri",
    "x-forwarded-url",
    "x-forwarded-method",
    "x-forwarded-prefix",
    "x-forwarded-server",
    "x-envoy-original-path",
    "x-host",
    "x-original-host",
    "x-original-method",
    "x-override-url",
    "x-proxy-url",
    "x-real-url",
    "x-request-uri",
];
/// Sets of characters in which ASCII is as it is.
const PLAIN_CHARSETS: [&str; 4] = ["utf-8", "utf8", "us-ascii", "ascii"];
/// The same, as beginnings of names that a number ends.
const PLAIN_FAMILIES: [&str; 2] = ["iso-8859-", "windows-125"];
/// Logins that a server hands out and is shown again, also as nearly nobody spells them any more (RFC 2965).
pub(super) const COOKIES: [&str; 4] = ["cookie", "cookie2", "set-cookie", "set-cookie2"];
/// What says how a body is read, and so stands before it.
const BEFORE_A_BODY: [&str; 6] =
    ["content-encoding", "content-type", "content-range", "authorization", "cache-control", "location"];
/// Headers that are about one connection and not about the message (RFC 9110, 7.6.1), or that the client
/// writes itself.
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
    for media in headers.get_all(header::CONTENT_TYPE) {
        let charsets = media.to_str().ok().and_then(charsets).ok_or(
            "the answer says what it is in words that cannot be read (`content-type`), so it cannot be looked through for a key",
        )?;
        if let Some(charset) = charsets.iter().find(|charset| !is_plain_charset(charset)) {
            return Err(format!("the answer is in `{charset}`, so it cannot be looked through for a key"));
        }
    }
    Ok(())
}

/// Each set of characters that a media type names (RFC 9110, 8.3.1), in lower case; white space around `=` is
/// let be, as some clients do. None where it cannot be read.
fn charsets(media: &str) -> Option<Vec<String>> {
    let media = media.to_ascii_lowercase();
    let (essence, mut rest) = media.split_once(';').unwrap_or((&media, ""));
    if !is_token(&essence.trim().replacen('/', "", 1)) && !essence.trim().is_empty() {
        return None;
    }
    let mut named = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t', ';']);
        if rest.is_empty() {
            return Some(named);
        }
        let (name, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let end = after.find(';').unwrap_or(after.len());
                let (value, after) = after.split_at_checked(end)?;
                is_token(value.trim_end()).then(|| (value.trim_end().to_owned(), after))?
            }
        };
        let (name, after) = (name.trim_end(), after.trim_start());
        if !is_token(name) || !(after.is_empty() || after.starts_with(';')) {
            return None;
        }
        // Also in pieces and in letters of its own (RFC 8187), which nobody here puts together.
        if name.split('*').next() == Some("charset") {
            named.push(if name == "charset" { value } else { format!("{name}={value}") });
        }
        rest = after;
    }
}

/// What stands before the quote that ends it, and what behind.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut chars) = (String::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => value.push(chars.next()?.1),
            _ => value.push(c),
        }
    }
    None
}

fn is_token(text: &str) -> bool {
    let is_one = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_one)
}

fn is_plain_charset(charset: &str) -> bool {
    let charset = charset.trim();
    let has_number = |family: &&str| {
        let number = charset.strip_prefix(*family).unwrap_or_default();
        (1..=2).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    PLAIN_CHARSETS.contains(&charset) || PLAIN_FAMILIES.iter().any(has_number)
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

/// How many bytes headers are as they are written (RFC 9112, 5).
pub(super) fn header_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + b": \r\n".len()).sum()
}

/// How many bytes a server is told of a URL.
pub(super) fn uri_bytes(uri: &Uri) -> usize {
    uri.path_and_query().map_or(0, |path| path.as_str().len())
        + uri.authority().map_or(0, |host| host.as_str().len())
}

/// How long a body would be that does not come, where one number says that.
pub(super) fn keep_told_length(from: &HeaderMap, to: &mut HeaderMap) {
    let mut told = from.get_all(header::CONTENT_LENGTH).iter();
    let is_one = |length: &&HeaderValue| length.as_bytes().iter().all(u8::is_ascii_digit);
    if let (Some(length), None) = (told.next().filter(is_one), told.next()) {
        to.insert(header::CONTENT_LENGTH, length.clone());
    }
}

/// Whether an answer switches to what was asked for.
pub(super) fn is_to_websocket(headers: &HeaderMap) -> bool {
    headers.get(header::UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// What may come behind a body (RFC 9110, 6.5.1): nothing that says how it is read, or who asks.
pub(super) fn behind(trailers: &HeaderMap) -> HeaderMap {
    let mut kept = end_to_end(trailers);
    COOKIES.iter().chain(&BEFORE_A_BODY).for_each(|name| drop(kept.remove(*name)));
    kept
}

/// One line of cookies: HTTP/2 may bring them in several, which older servers read the first of (RFC 9113,
/// 8.2.3).
pub(super) fn one_cookie(headers: &mut HeaderMap) {
    let all: Vec<&[u8]> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if all.len() > 1
        && let Ok(one) = HeaderValue::from_bytes(&all.join(&b"; "[..]))
    {
        headers.insert(header::COOKIE, one);
    }
}

/// Says how long a body is where the client library would say nothing: one that is empty (RFC 9110, 8.6), and
/// one whose length nobody knows behind a method that has none as a rule, which it would leave away.
pub(super) fn keep_length<B: Body>(from: &HeaderMap, to: &mut Request<B>) {
    if from.get(header::CONTENT_LENGTH).is_some_and(|length| length == "0") {
        to.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    } else if !to.body().is_end_stream() && to.body().size_hint().exact().is_none() {
        to.headers_mut().insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
}

/// Where both sides may switch protocols, the wish goes on (RFC 9110, 7.8).
pub(super) fn keep_upgrade(from: &HeaderMap, to: &mut HeaderMap) {
    if let Some(protocol) = from.get(header::UPGRADE) {
        to.insert(header::UPGRADE, protocol.clone());
        to.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
}

#[cfg(test)]
mod tests;
