//! Why nothing came back, told to people: what, why, and how to fix it. No text here ever holds a header's
//! value.

use crate::{config::Origin, proxy::Unusable, request::Unsendable};
use bailey_protocol::Timestamp;
use rustls::{CertificateError, pki_types::UnixTime};
use std::{error::Error, io, time::Duration};

/// The most characters of a cause: servers and their certificates can have part in its words.
const CAUSE_CHARS_MAX: usize = 300;

/// Why an effect failed at the door.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Unsendable(#[from] Unsendable),
    #[error(
        "the system's certificate authorities cannot be used ({0}); install the package `ca-certificates` or name a file in `SSL_CERT_FILE`"
    )]
    Authorities(String),
    #[error("`{0}` could not be reached within {sec} s; check the network, and its address in config.toml (`base_url` or `otlp`)", sec = .1.as_secs_f32())]
    ConnectTimeout(Origin, Duration),
    #[error("`{0}` did not begin to answer within {sec} s; check what its server is doing, or raise `first_byte_seconds` in config.toml", sec = .1.as_secs_f32())]
    FirstByteTimeout(Origin, Duration),
    #[error("`{0}` sent nothing for {sec} s in the middle of its answer; try again", sec = .1.as_secs_f32())]
    IdleTimeout(Origin, Duration),
    #[error(
        "no server listens at `{0}`; check that the server runs, and check its address in config.toml \
         (`base_url` or `otlp`)"
    )]
    Refused(Origin),
    #[error(
        "the name of `{0}` cannot be resolved ({1}); check the network, and its address in config.toml (`base_url` or `otlp`)"
    )]
    Name(Origin, String),
    #[error(
        "the certificate of `{0}` is not trusted: {1}; if the server is yours, add its authority to the system's certificates, else somebody may stand in between"
    )]
    Certificate(Origin, String),
    #[error(
        "the certificate of `{0}` {1}, and this machine's clock shows {2} UTC; if the clock is wrong set it: sudo timedatectl set-ntp true; else whoever runs that server must renew the certificate"
    )]
    Dates(Origin, String, String),
    #[error(
        "no secure connection to `{0}` ({1}); check the scheme and port of its address in config.toml (`base_url` or `otlp`)"
    )]
    Tls(Origin, String),
    #[error(
        "`{0}` cannot be reached ({1}); check the network, and its address in config.toml (`base_url` or `otlp`)"
    )]
    Unreachable(Origin, String),
    #[error(
        "`{0}` cannot be reached through the proxy `{1}` ({2}); check the variables HTTPS_PROXY and HTTP_PROXY, or name the host in NO_PROXY"
    )]
    Proxy(Origin, String, String),
    #[error("`{0}` is not asked: {1}")]
    NoProxy(Origin, Unusable),
    #[error("`{0}` closed the connection without an answer ({1}); try again")]
    NoAnswer(Origin, String),
    #[error("the connection to `{0}` broke in the middle of its answer ({1}); try again")]
    Broken(Origin, String),
    #[error("answer larger than {mib}: `{0}` sent more than is taken; ask for less", mib = mebibytes(*.1))]
    TooLarge(Origin, usize),
}

fn mebibytes(bytes: usize) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{bytes} bytes") }
}

impl Failure {
    /// Whether nothing was sent, and nothing would be if it were tried again.
    pub(crate) fn is_before_sending(&self) -> bool {
        matches!(self, Self::Unsendable(_) | Self::Authorities(_) | Self::NoProxy(..))
    }

    /// Whether the request may have arrived.
    pub(crate) fn is_after_sending(&self) -> bool {
        matches!(
            self,
            Self::FirstByteTimeout(..)
                | Self::IdleTimeout(..)
                | Self::NoAnswer(..)
                | Self::Broken(..)
                | Self::TooLarge(..)
        )
    }

    /// What this error of the client means.
    pub(crate) fn of(
        origin: &Origin,
        proxy: Option<String>,
        error: &hyper_util::client::legacy::Error,
        limit: Duration,
    ) -> Self {
        let origin = origin.clone();
        let cause = innermost(error);
        if !error.is_connect() {
            return Self::NoAnswer(origin, cause);
        }
        if let Some(unusable) = find::<Unusable>(error) {
            return Self::NoProxy(origin, unusable.clone());
        }
        if let Some(tls) = find::<rustls::Error>(error) {
            return match tls {
                rustls::Error::InvalidCertificate(why) => Self::of_certificate(origin, why),
                other => Self::Tls(origin, other.to_string()),
            };
        }
        if let Some(proxy) = proxy {
            return Self::Proxy(origin, proxy, cause);
        }
        match find::<io::Error>(error).map(io::Error::kind) {
            _ if chain(error).any(|error| error.to_string().contains("dns error")) => {
                Self::Name(origin, cause)
            }
            Some(io::ErrorKind::ConnectionRefused) => Self::Refused(origin),
            Some(io::ErrorKind::TimedOut) => Self::ConnectTimeout(origin, limit),
            Some(io::ErrorKind::UnexpectedEof) if origin.tls => Self::Tls(origin, cause),
            _ => Self::Unreachable(origin, cause),
        }
    }

    /// A certificate out of its time is another matter than one of somebody unknown: it may be this machine's
    /// clock.
    fn of_certificate(origin: Origin, why: &CertificateError) -> Self {
        match why {
            CertificateError::ExpiredContext { time, not_after } => {
                Self::Dates(origin, format!("has expired, on {} UTC", date(*not_after)), date(*time))
            }
            CertificateError::NotValidYetContext { time, not_before } => {
                Self::Dates(origin, format!("is valid only from {} UTC", date(*not_before)), date(*time))
            }
            why => Self::Certificate(origin, flaw(why)),
        }
    }
}

/// What is wrong with a certificate, as words behind "the certificate of X is not trusted: ". What rustls has
/// no words for it prints as it is in the program, which tells nobody that the commonest of all is one that
/// somebody signed themselves.
pub(crate) fn flaw(why: &CertificateError) -> String {
    match why {
        CertificateError::ExpiredContext { time, not_after } => {
            format!(
                "it has expired, on {} UTC, and the clock here shows {} UTC",
                date(*not_after),
                date(*time)
            )
        }
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "it is valid only from {} UTC, and the clock here shows {} UTC",
            date(*not_before),
            date(*time)
        ),
        CertificateError::Expired => "it has expired".into(),
        CertificateError::NotValidYet => "it is not valid yet".into(),
        CertificateError::NotValidForName => "it is one of another name".into(),
        CertificateError::Revoked => "it was revoked".into(),
        CertificateError::BadEncoding => "it cannot be read".into(),
        CertificateError::InvalidPurpose => "it is none for servers".into(),
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => {
            "it names no server".into()
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            format!("it is only valid for {}", named(presented))
        }
        CertificateError::InvalidPurposeContext { .. } => why.to_string(),
        // Refused also where it is trusted, so to add it to the system's would not help.
        CertificateError::Other(other) if other.0.to_string() == "CaUsedAsEndEntity" => {
            format!("{UNKNOWN}, and is an authority's own (CA:TRUE), which no server may show as its own")
        }
        _ => UNKNOWN.into(),
    }
}

/// The names of a certificate as people write them, of many the first ones: rustls tells each with its kind.
fn named(presented: &[String]) -> String {
    let bare = |name: &String| {
        let inner = name.strip_prefix("DnsName(\"").and_then(|name| name.strip_suffix("\")"));
        inner.unwrap_or(name).to_owned()
    };
    let mut names: Vec<String> = presented.iter().take(NAMES_MAX).map(bare).collect();
    if presented.len() > NAMES_MAX {
        names.push(format!("{} more", presented.len() - NAMES_MAX));
    }
    names.join(", ")
}

/// The most names of a certificate that are told.
const NAMES_MAX: usize = 5;
/// Said of a certificate whose signer nobody here knows.
const UNKNOWN: &str = "it is signed by nobody whom this machine trusts (self-signed?)";

/// A time as people write it.
fn date(time: UnixTime) -> String {
    let time = i64::try_from(time.as_secs()).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(|| "a time that nobody can read".into(), |time| time.strftime("%F %H:%M").to_string())
}

/// The error and what caused it, also where an `io::Error` hides its inner error from `source`.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source())
    })
}

pub(crate) fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    chain(error).filter_map(|error| error.downcast_ref()).last()
}

/// The text of the first cause, which is no longer than a line. Of HTTP/2 the reason alone: what a server
/// says besides are words of its own.
pub(crate) fn innermost(error: &(dyn Error + 'static)) -> String {
    if let Some(reason) = find::<h2::Error>(error).and_then(h2::Error::reason) {
        return format!("HTTP/2: {reason}");
    }
    let cause = chain(error).last().map(ToString::to_string).unwrap_or_default();
    // rustls names a page for whoever calls it.
    let cause = cause.split(": https://docs.rs/").next().unwrap_or_default();
    cause.chars().take(CAUSE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::{CAUSE_CHARS_MAX, innermost};
    use std::io;
    use tokio::io::AsyncWriteExt as _;

    #[test]
    fn a_page_for_programmers_is_no_cause() {
        let text = "peer closed connection without sending TLS close_notify: https://docs.rs/rustls/latest/rustls/manual";
        let error = io::Error::new(io::ErrorKind::UnexpectedEof, text);
        assert_eq!(innermost(&error), "peer closed connection without sending TLS close_notify");
    }

    /// They stood whole in the journal, in the answer, and in what the model is told in Bailey's name.
    #[tokio::test]
    async fn words_of_a_server_that_ends_a_connection_are_no_part_of_why() {
        let words = b"words of the server";
        let (ours, mut theirs) = tokio::io::duplex(4096);
        // An empty SETTINGS, and a GOAWAY of ENHANCE_YOUR_CALM with words behind it (RFC 9113, 6.5 and 6.8).
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let end = [0, 0, 8 + words.len() as u8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11];
        theirs.write_all(&[&settings[..], &end, words].concat()).await.unwrap();
        let (_sender, connection) = h2::client::handshake(ours).await.unwrap();
        let error = io::Error::other(connection.await.unwrap_err());
        assert!(format!("{error}").contains("words of the server"), "the control: {error}");
        let told = innermost(&error);
        assert!(told.starts_with("HTTP/2: ") && !told.contains("words"), "{told}");
        assert_eq!(innermost(&io::Error::other("x".repeat(1000))).len(), CAUSE_CHARS_MAX);
    }
}
