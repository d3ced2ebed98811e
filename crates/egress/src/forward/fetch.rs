//! Requests of the agent's own: one exchange with a server of the world, no redirect followed, no login brought, no cookie kept.

use super::{
    ForwardProxy,
    headers::{OF_THE_CONNECTION, OLDER, OVERRIDES},
    limits::{Direction, Meter},
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
use std::sync::Arc;
use tokio::time::{Instant, timeout};

/// Who asks, to servers (RFC 9110, 10.1.5).
const AGENT: &str = concat!("Bailey/", env!("CARGO_PKG_VERSION"));

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
}

impl ForwardProxy {
    /// Sends a request that the rules let pass, and takes in so many bytes of the answer at most.
    ///
    /// # Errors
    /// What was in the way, for people and models.
    pub async fn fetch(&self, request: &HttpRequest, bytes_max: usize) -> Result<Fetched, String> {
        let inner = &self.inner;
        let uri: Uri = request.url.parse().map_err(|_| format!("`{}` is no URL", request.url))?;
        let origin = Origin::of(&uri).ok_or("it is no plain http or https URL")?;
        // One server has one name, for whoever judges it and whoever is bound to it.
        if canonical(&origin.host) != origin.host {
            return Err(format!("write its host as `{}`", canonical(&origin.host)));
        }
        let sent = built(request, &uri)?;
        if inner
            .keys
            .wanted(&request.method, &request.url, sent.headers())
            .map_err(|it| it.to_string())?
            .is_some()
        {
            return Err("a key is put in for commands only".into());
        }
        let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
        let used = inner.limits.of(&authority, &request.url);
        let length = u64::try_from(request.body.0.len()).ok();
        used.as_ref().map_or(Ok(()), |used| used.begin(length, Instant::now()))?;
        Meter::new(&Arc::default(), Direction::Out, used.as_ref()).pass(request.body.0.len())?;
        let back = Meter::new(&Arc::default(), Direction::Back, used.as_ref());
        let clients = Clients::new(inner.dial.clone(), inner.trust.clone());
        let client = clients.get(origin.tls).await.map_err(|failure| failure.to_string())?;
        let in_time = inner.config.connect_timeout + inner.config.idle_timeout;
        let answer = timeout(in_time, client.request(sent)).await;
        let answer =
            answer.map_err(|_| format!("`{origin}` gave no answer within {} s", in_time.as_secs()))?;
        let (head, mut body) = answer.map_err(|error| why(&origin, &error))?.into_parts();
        let mut fetched = Fetched {
            status: head.status.as_u16(),
            media: text(&head.headers, &header::CONTENT_TYPE).to_ascii_lowercase(),
            location: Some(text(&head.headers, &header::LOCATION)).filter(|place| !place.is_empty()),
            body: Vec::new(),
            cut: false,
        };
        loop {
            let frame = timeout(inner.config.idle_timeout, body.frame()).await;
            let frame = frame.map_err(|_| format!("`{origin}` sent nothing for too long"))?;
            let Some(frame) = frame else { return Ok(fetched) };
            let frame = frame.map_err(|error| format!("the connection broke: {}", innermost(&error)))?;
            let Ok(mut bytes) = frame.into_data() else { continue };
            back.pass(bytes.len())?;
            let room = bytes_max.saturating_sub(fetched.body.len());
            fetched.cut = bytes.len() > room;
            bytes.truncate(room);
            fetched.body.extend_from_slice(&bytes);
            if fetched.cut {
                return Ok(fetched);
            }
        }
    }
}

fn built(request: &HttpRequest, uri: &Uri) -> Result<Request<Full<Bytes>>, String> {
    let method =
        Method::from_bytes(request.method.as_bytes()).ok().filter(|method| *method != Method::CONNECT);
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
            || OVERRIDES.contains(&wire.as_str())
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
