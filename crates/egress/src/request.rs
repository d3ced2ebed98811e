//! From an effect to bytes that may be sent: every check before anything leaves.

use crate::config::{Endpoints, Origin};
use bailey_protocol::{HeaderValue, HttpRequest};
use bailey_secrets::Vault;
use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Method, Request, Uri,
    header::{HeaderName, HeaderValue as WireValue},
};

/// Headers that say who is spoken to or where a message ends: hyper sets them, nobody else.
const RESERVED: &[&str] = &[
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "proxy-authorization",
    "proxy-connection",
];

/// Whether nobody but hyper sets this header.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved))
}

/// Why a request is not sent.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unsendable {
    #[error(
        "the request's URL is no `http` or `https` URL with a plain host; check the provider's `base_url`"
    )]
    Url,
    #[error(
        "`{0}` is no configured endpoint, so nothing is sent there; configure it as a provider's `base_url` first"
    )]
    OtherOrigin(Origin),
    #[error(
        "`{0}` is no server of this channel, so nothing is sent there; the channel's permit does not name it"
    )]
    NoServer(Origin),
    #[error("the channel's permit does not name the method `{0}` at `{1}`, so nothing is sent")]
    NoServerMethod(String, Origin),
    #[error("the secret `{0}` is not for `{1}`, so it is not sent there")]
    KeyElsewhere(String, Origin),
    #[error("`{0}` is no HTTP method")]
    Method(String),
    #[error("the header `{0}` is set by the network door alone")]
    ReservedHeader(String),
    #[error("the header `{0}` cannot be sent: its name or value holds characters that HTTP forbids")]
    Header(String),
    #[error("the secret `{0}` is not set; set it in the environment or in Bailey's `.env` file")]
    MissingSecret(String),
    #[error(
        "the secret `{0}` does not belong to `{1}`, so it is not sent there; name it as that provider's `key`"
    )]
    ForeignSecret(String, Origin),
    #[error("the value of the secret `{0}` cannot be sent in a header; set it again without line breaks")]
    BadSecret(String),
}

/// The request, with secrets in their places, and whom it goes to.
pub(crate) fn build(
    request: HttpRequest,
    endpoints: &Endpoints,
    vault: &Vault,
) -> Result<(Request<Full<Bytes>>, Origin), Unsendable> {
    let uri: Uri = request.url.parse().map_err(|_| Unsendable::Url)?;
    let origin = Origin::of(&uri).ok_or(Unsendable::Url)?;
    if !endpoints.allow(&origin) {
        return Err(Unsendable::OtherOrigin(origin));
    }
    let method =
        Method::from_bytes(request.method.as_bytes()).ok().filter(|method| *method != Method::CONNECT);
    let mut sent = Request::new(Full::new(Bytes::from(request.body.0)));
    *sent.method_mut() = method.ok_or(Unsendable::Method(request.method))?;
    *sent.uri_mut() = uri;
    for (name, value) in request.headers {
        if is_reserved(&name) {
            return Err(Unsendable::ReservedHeader(name));
        }
        let wire_name =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| Unsendable::Header(name.clone()))?;
        let wire_value = match value {
            HeaderValue::Text(text) => WireValue::from_str(&text).map_err(|_| Unsendable::Header(name))?,
            HeaderValue::Secret { name, prefix } => secret(&name, &prefix, &origin, endpoints, vault)?,
        };
        sent.headers_mut().append(wire_name, wire_value);
    }
    Ok((sent, origin))
}

fn secret(
    name: &str,
    prefix: &str,
    origin: &Origin,
    endpoints: &Endpoints,
    vault: &Vault,
) -> Result<WireValue, Unsendable> {
    if !endpoints.allow_secret(origin, name) {
        return Err(Unsendable::ForeignSecret(name.into(), origin.clone()));
    }
    let secret = vault.get(name).ok_or_else(|| Unsendable::MissingSecret(name.into()))?;
    let value = format!("{prefix}{}", secret.expose().trim());
    let mut value = WireValue::try_from(value).map_err(|_| Unsendable::BadSecret(name.into()))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
