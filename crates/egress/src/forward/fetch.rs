//! Requests of the agent's own: one exchange with a server of the world, no redirect followed, no login
//! brought, no cookie kept.

use super::{
    ForwardProxy,
    body::{Mask, SHOWS_STAND_IN},
    headers::{OF_THE_CONNECTION, OLDER, check_plain, header_bytes, hide, is_override, uri_bytes},
    limits::{Direction, Meter},
    serve::WEBSOCKET,
    why,
};
use crate::{
    config::{Origin, canonical},
    connect::Clients,
    failure::innermost,
};
use bailey_protocol::{HeaderValue as Value, HttpRequest};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    HeaderMap, Method, Request, Uri,
    header::{self, HeaderName, HeaderValue},
};
use hyper_util::client::legacy::connect::capture_connection;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, timeout, timeout_at};

/// Who asks, to servers (RFC 9110, 10.1.5).
const AGENT: &str = concat!("Bailey/", env!("CARGO_PKG_VERSION"));

/// How long an answer may take, however little of it comes at a time.
const WHOLE_MAX: Duration = Duration::from_secs(300);

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The status code.
    pub status: u16,
    /// What it says that it is, in lower case; empty where it does not say.
    pub media: String,
    /// Where it says that the asker should go, as an absolute URL where it names one.
    pub location: Option<String>,
    /// Its body, or the beginning of it.
    pub body: Vec<u8>,
    /// Whether there was more.
    pub cut: bool,
    /// Whether it is packed (`Content-Encoding`), which nobody asked for.
    pub packed: bool,
}

/// Why nothing was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFetched {
    /// For people and models.
    pub why: String,
    /// Whether the request may have arrived.
    pub sent: bool,
}

impl ForwardProxy {
    /// Sends a request that the rules let pass, and takes in so many bytes of the answer at most.
    ///
    /// # Errors
    /// What was in the way, for people and models, and whether the request may have arrived all the same.
    pub async fn fetch(&self, request: &HttpRequest, bytes_max: usize) -> Result<Fetched, NotFetched> {
        let connected = AtomicBool::new(false);
        let fetched = self.ask(request, bytes_max, &connected).await;
        fetched.map_err(|why| match connected.load(Ordering::Relaxed) {
            true => {
                let why = format!("{why}; a connection was made, so the request may have arrived");
                NotFetched { why, sent: true }
            }
            false => NotFetched { why, sent: false },
        })
    }

    /// The same; it says of each error what it is, and of all whether there was a connection.
    async fn ask(
        &self,
        request: &HttpRequest,
        bytes_max: usize,
        connected: &AtomicBool,
    ) -> Result<Fetched, String> {
        let inner = &self.inner;
        let uri: Uri = request.url.parse().map_err(|_| format!("`{}` is no URL", request.url))?;
        let origin = Origin::of(&uri).ok_or("it is no plain http or https URL")?;
        // One server has one name, for whoever judges it and whoever is bound to it.
        if canonical(&origin.host) != origin.host {
            return Err(format!("write its host as `{}`", canonical(&origin.host)));
        }
        if inner.keys.are_in(&request.body.0) {
            return Err(SHOWS_STAND_IN.into());
        }
        let mut sent = built(request, &uri)?;
        if sent.headers().contains_key(header::COOKIE) && inner.keys.are_at(&origin) {
            return Err(format!("`{origin}` has a key of the owner's, and is sent no cookie"));
        }
        if inner
            .keys
            .wanted(&request.method, &request.url, sent.headers())
            .map_err(|it| it.to_string())?
            .is_some()
        {
            return Err("a key is put in for commands only".into());
        }
        // What comes packed is of no use to who asks; and without a word of it a server may pack (RFC 9110,
        // 12.5.3).
        sent.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        // Such a server may show what a command sent it.
        let mask = inner.keys.mask_of(&origin);
        if mask.is_some() {
            for name in [header::RANGE, header::IF_RANGE, header::ACCEPT_CHARSET] {
                sent.headers_mut().remove(name);
            }
        }
        let now = Instant::now();
        let used = inner.limits.of(&request.url, now)?;
        let length = u64::try_from(request.body.0.len()).ok();
        used.as_ref().map_or(Ok(()), |used| used.begin(length, now))?;
        let head = uri_bytes(&uri) + header_bytes(sent.headers());
        Meter::new(&Arc::default(), Direction::Out, used.as_ref()).pass(head + request.body.0.len())?;
        let back = Meter::new(&Arc::default(), Direction::Back, used.as_ref());
        let clients = Clients::new(inner.dial.clone(), inner.trust.clone());
        let client = clients.get(origin.tls).await.map_err(|failure| failure.to_string())?;
        let in_time = inner.config.connect_timeout + inner.config.idle_timeout;
        let connection = capture_connection(&mut sent);
        let answer = timeout(in_time, client.request(sent)).await;
        connected.store(connection.connection_metadata().is_some(), Ordering::Relaxed);
        let answer =
            answer.map_err(|_| format!("`{origin}` gave no answer within {} s", in_time.as_secs()))?;
        let (mut head, mut body) = answer.map_err(|error| why(&origin, &error))?.into_parts();
        back.pass_head(header_bytes(&head.headers))?;
        let masked = Arc::default();
        if let Some(mask) = &mask {
            check_plain(head.status, &head.headers)?;
            hide(mask, &mut head.headers, &masked);
        }
        let mut mask = mask.map(|mask| Mask::new(&mask, &masked));
        let mut fetched = Fetched {
            status: head.status.as_u16(),
            media: text(&head.headers, &header::CONTENT_TYPE).to_ascii_lowercase(),
            location: Some(text(&head.headers, &header::LOCATION)).filter(|place| !place.is_empty()),
            body: Vec::new(),
            cut: false,
            packed: head.headers.get_all(header::CONTENT_ENCODING).iter().any(|packed| packed != "identity"),
        };
        let until = Instant::now() + WHOLE_MAX;
        while !fetched.cut {
            let in_time = until.min(Instant::now() + inner.config.idle_timeout);
            let frame = timeout_at(in_time, body.frame()).await;
            let frame = frame.map_err(|_| format!("`{origin}` takes too long to answer"))?;
            let Some(frame) = frame else {
                // What was held back, for it might have been the beginning of a key.
                let rest = mask.take().map(Mask::rest).unwrap_or_default();
                fetched.take(&rest, bytes_max);
                break;
            };
            let frame = frame.map_err(|error| format!("the connection broke: {}", innermost(&error)))?;
            let Ok(bytes) = frame.into_data() else { continue };
            back.pass(bytes.len())?;
            let shown = mask.as_mut().map_or_else(|| bytes.clone(), |mask| mask.through(&bytes));
            fetched.take(&shown, bytes_max);
        }
        Ok(fetched)
    }
}

impl Fetched {
    /// Takes in more of the body, as far as there is room.
    fn take(&mut self, bytes: &[u8], bytes_max: usize) {
        let room = bytes_max.saturating_sub(self.body.len());
        self.cut = bytes.len() > room;
        self.body.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }
}

fn built(request: &HttpRequest, uri: &Uri) -> Result<Request<Full<Bytes>>, String> {
    let method = Method::from_bytes(request.method.as_bytes())
        .ok()
        .filter(|method| *method != Method::CONNECT && !method.as_str().eq_ignore_ascii_case(WEBSOCKET));
    let mut sent = Request::new(Full::new(Bytes::from(request.body.0.clone())));
    *sent.method_mut() = method.ok_or_else(|| format!("`{}` is no method", request.method))?;
    *sent.uri_mut() = uri.clone();
    let headers = sent.headers_mut();
    headers.insert(header::USER_AGENT, HeaderValue::from_static(AGENT));
    headers.insert(
        header::ACCEPT,
        HeaderValue::from_static("text/html, text/plain, application/json, */*;q=0.5"),
    );
    for (name, value) in &request.headers {
        let odd = || format!("the header `{name}` cannot be sent");
        let wire = HeaderName::from_bytes(name.as_bytes()).map_err(|_| odd())?;
        let is_ours = OF_THE_CONNECTION.contains(&wire)
            || OLDER.contains(&wire.as_str())
            || is_override(&wire)
            || wire == header::ACCEPT_ENCODING;
        let Value::Text(value) = value else { return Err(odd()) };
        if is_ours {
            return Err(odd());
        }
        headers.insert(wire, HeaderValue::from_str(value).map_err(|_| odd())?);
    }
    Ok(sent)
}

fn text(headers: &HeaderMap, name: &HeaderName) -> String {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
}
