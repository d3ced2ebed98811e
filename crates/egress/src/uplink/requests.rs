//! The requests of an uplink: the checks before anything leaves, where the key goes, and the answers.

use super::{KEY, Request, ServerResponse, UplinkError, size};
use crate::{
    Config, ConfigError,
    config::Origin,
    connect::{Clients, Speaks, Trust, tcp},
    failure::Failure,
    proxy::Connector,
    request::{Unsendable, is_reserved},
    signature,
};
use bailey_protocol::{Digest, Uplink as Way, WEBSOCKET};
use bailey_secrets::{Secret, Vault};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Method, Response, Uri,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::timeout;

/// Sends requests, and knows where they may go.
#[derive(Debug)]
pub(super) struct Sender {
    /// The first server's URL, without a slash at its end.
    base: String,
    servers: Vec<PermittedServer>,
    key: String,
    header: Option<String>,
    prefix: String,
    vault: Arc<Vault>,
    connect_timeout: Duration,
    body_bytes_max: usize,
    clients: Clients<Connector, Full<Bytes>>,
    pub(super) passed: Passed,
}

/// A server of the permit.
#[derive(Debug)]
pub(super) struct PermittedServer {
    pub(super) origin: Origin,
    methods: Vec<String>,
    takes_key: bool,
}

/// Bytes of bodies and messages that passed.
#[derive(Debug, Default)]
pub(super) struct Passed {
    pub(super) out: AtomicU64,
    pub(super) back: AtomicU64,
}

/// A request that every check let through, and whom it goes to.
pub(super) struct Checked<'a> {
    pub(super) request: hyper::Request<Full<Bytes>>,
    pub(super) server: &'a PermittedServer,
}

impl Sender {
    pub(super) fn new(way: &Way, config: &Config, vault: Arc<Vault>) -> Result<Self, ConfigError> {
        let server = |(url, methods, takes_key): (&str, &[String], bool)| {
            let origin = url.parse().ok().as_ref().and_then(Origin::of);
            let origin = origin.ok_or_else(|| ConfigError::NoOrigin(url.to_owned()))?;
            Ok(PermittedServer { origin, methods: methods.to_vec(), takes_key })
        };
        let connector = Connector::new(tcp(config.connect_timeout), Arc::new(config.proxies.ways()));
        let trust = Trust::new(config.extra_authorities.clone(), Speaks::Http1);
        Ok(Self {
            base: way.url.trim_end_matches('/').to_owned(),
            servers: way.servers().map(server).collect::<Result<_, _>>()?,
            key: way.key.clone(),
            header: way.header.clone(),
            prefix: way.prefix.clone(),
            vault,
            connect_timeout: config.connect_timeout,
            body_bytes_max: config.body_bytes_max,
            clients: Clients::new(connector, trust),
            passed: Passed::default(),
        })
    }

    /// The key, where there is one.
    pub(super) fn secret(&self) -> Option<&Secret> {
        self.vault.get(&self.key)
    }

    /// A text with the key in its place, for a server that takes it.
    pub(super) fn keyed(&self, text: &str, server: &PermittedServer) -> Result<String, Unsendable> {
        let key = self.key_for(server)?.ok_or_else(|| self.not_for(server))?;
        // A key that could lead to another path, or end it, is not put in.
        if key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_:.~".contains(&byte)) {
            return Ok(text.replace(KEY, key));
        }
        Err(Unsendable::BadSecret(self.key.clone()))
    }

    /// The key, where there is one and this server takes it.
    fn key_for(&self, server: &PermittedServer) -> Result<Option<&str>, Unsendable> {
        if self.key.is_empty() || !server.takes_key {
            return Ok(None);
        }
        let secret = self.secret().ok_or_else(|| Unsendable::MissingSecret(self.key.clone()))?;
        Ok(Some(secret.expose().trim()))
    }

    fn not_for(&self, server: &PermittedServer) -> Unsendable {
        Unsendable::KeyElsewhere(self.key.clone(), server.origin.clone())
    }

    /// The server and the place that a target names. The key is put in before the place is read, so that the
    /// place is the one that is dialled.
    fn place(&self, method: &str, target: &str) -> Result<(&PermittedServer, Uri), Unsendable> {
        let url = match target.split_once("://") {
            Some(("http" | "https", _)) => target.to_owned(),
            Some(("ws", rest)) if method == WEBSOCKET => format!("http://{rest}"),
            Some(("wss", rest)) if method == WEBSOCKET => format!("https://{rest}"),
            _ => format!("{}{target}", self.base),
        };
        let place = |url: &str| {
            let uri: Uri = url.parse().map_err(|_| Unsendable::Url)?;
            let origin = Origin::of(&uri).ok_or(Unsendable::Url)?;
            let mut there = self.servers.iter().filter(|server| server.origin == origin).peekable();
            if there.peek().is_none() {
                return Err(Unsendable::NoServer(origin));
            }
            let server = there.find(|server| server.methods.iter().any(|allowed| allowed == method));
            Ok((server.ok_or_else(|| Unsendable::NoServerMethod(method.to_owned(), origin))?, uri))
        };
        // A place for the key changes neither scheme nor host.
        let (server, uri) = place(&url.replace(KEY, "key"))?;
        if !url.contains(KEY) {
            return Ok((server, uri));
        }
        let (keyed, uri) = place(&self.keyed(&url, server)?)?;
        if keyed.origin == server.origin { Ok((server, uri)) } else { Err(Unsendable::Url) }
    }

    /// The request with everything in its place. [`WEBSOCKET`] is sent as `GET`.
    pub(super) fn check(&self, wanted: &Request) -> Result<Checked<'_>, Unsendable> {
        let (server, uri) = self.place(&wanted.method, &wanted.target)?;
        let method = if wanted.method == WEBSOCKET { "GET" } else { &wanted.method };
        let method = Method::from_bytes(method.as_bytes()).ok().filter(|method| *method != Method::CONNECT);
        let method = method.ok_or_else(|| Unsendable::Method(wanted.method.clone()))?;
        let has_body = !matches!(method, Method::GET | Method::HEAD);
        let mut request = hyper::Request::new(match has_body {
            true => Full::new(Bytes::from(wanted.body.clone())),
            false => Full::default(),
        });
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        for (name, value) in &wanted.headers {
            let is_keys = self.header.as_ref().is_some_and(|header| header.eq_ignore_ascii_case(name));
            if is_reserved(name) || is_keys {
                return Err(Unsendable::ReservedHeader(name.clone()));
            }
            let wrong = || Unsendable::Header(name.clone());
            let value = HeaderValue::from_str(value).map_err(|_| wrong())?;
            request.headers_mut().append(HeaderName::try_from(name).map_err(|_| wrong())?, value);
        }
        if has_body && !request.headers().contains_key(CONTENT_TYPE) {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let key = self.key_for(server)?;
        match (&self.header, key) {
            (Some(name), Some(key)) => {
                let (name, value) = self.key_header(name, key)?;
                request.headers_mut().insert(name, value);
            }
            (None, Some(key)) if has_body && !wanted.target.contains(KEY) => {
                for (name, value) in self.signed(key, &wanted.body, &wanted.name)? {
                    let value = HeaderValue::from_str(&value).map_err(|_| Unsendable::Url)?;
                    request.headers_mut().insert(HeaderName::from_static(name), value);
                }
            }
            _ => {}
        }
        Ok(Checked { request, server })
    }

    /// The header of the key, whose value is not shown where a request is.
    fn key_header(&self, name: &str, key: &str) -> Result<(HeaderName, HeaderValue), Unsendable> {
        if is_reserved(name) {
            return Err(Unsendable::ReservedHeader(name.to_owned()));
        }
        let wrong = || Unsendable::BadSecret(self.key.clone());
        let mut value = HeaderValue::try_from(format!("{}{key}", self.prefix)).map_err(|_| wrong())?;
        value.set_sensitive(true);
        Ok((name.parse().map_err(|_| wrong())?, value))
    }

    /// The headers of a signed body. A receiver knows one that is sent again by its id (Standard Webhooks).
    fn signed(&self, key: &str, body: &[u8], name: &str) -> Result<[(&'static str, String); 3], Unsendable> {
        let id = format!("msg_{}", Digest::of_parts(&[name.as_bytes(), body]));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let signature = signature::sign(key, &id, now, body);
        let signature = signature.ok_or_else(|| Unsendable::BadSecret(self.key.clone()))?;
        Ok([("webhook-id", id), ("webhook-timestamp", now.to_string()), ("webhook-signature", signature)])
    }

    /// Sends a checked request: the head of the answer.
    pub(super) async fn ask(&self, checked: Checked<'_>) -> Result<Response<Incoming>, Failure> {
        let Checked { request, server } = checked;
        let client = self.clients.get(server.origin.tls).await?;
        let answer = client.request(request).await;
        answer.map_err(|error| Failure::of(&server.origin, None, &error, self.connect_timeout))
    }

    /// Sends a request and reads its whole answer.
    pub(super) async fn exchange(&self, wanted: Request) -> Result<ServerResponse, UplinkError> {
        let failed = |failure: Failure| {
            let is_too_large = matches!(failure, Failure::TooLarge(..));
            UplinkError { is_too_large, ..UplinkError::new(failure.to_string(), failure.is_after_sending()) }
        };
        let bytes_max = wanted.bytes_max.min(self.body_bytes_max);
        let checked = self.check(&wanted).map_err(|error| failed(error.into()))?;
        let origin = &checked.server.origin;
        self.passed.out.fetch_add(size(wanted.body.len()), Ordering::Relaxed);
        let exchange = async {
            let (head, mut body) = self.ask(checked).await?.into_parts();
            let mut taken = Vec::new();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| Failure::Broken(origin.clone(), error.to_string()))?;
                taken.extend_from_slice(frame.data_ref().map_or(&[][..], |bytes| bytes));
                if taken.len() > bytes_max {
                    return Err(Failure::TooLarge(origin.clone(), bytes_max));
                }
            }
            Ok(ServerResponse {
                status: head.status.as_u16(),
                retry_after: retry_after(&head.headers),
                body: taken,
            })
        };
        let late = || Err(Failure::FirstByteTimeout(origin.clone(), wanted.patience));
        let answer = timeout(wanted.patience, exchange).await.unwrap_or_else(|_| late()).map_err(failed)?;
        self.passed.back.fetch_add(size(answer.body.len()), Ordering::Relaxed);
        Ok(answer)
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
