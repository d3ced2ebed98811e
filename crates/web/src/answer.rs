//! From a request to its answer.

use crate::{
    Gateway,
    ask::{Act, Answer, Ask, Code, Delivery, Wish},
    assets,
    caller::called,
    guard::Refusal,
    places::Busy,
    route::{self, Route},
    stream::{self, Relay},
};
use bailey_protocol::Op;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, Full, LengthLimitError, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{
        AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
        USER_AGENT,
    },
};
use serde::{Deserialize, de::DeserializeOwned};
use std::{error::Error, os::fd::OwnedFd, time::Duration};
use tokio::{sync::oneshot, time::timeout};

/// How long a body may be, in bytes, and how long it may take.
const BODY_BYTES_MAX: usize = 256 << 10;
/// The longest message with its pictures and files as base64, in bytes.
const OP_BYTES_MAX: usize = 16 << 20;
/// How long such a message may take: a phone's uplink is slow.
const OP_MAX: Duration = Duration::from_secs(300);
const BODY_MAX: Duration = Duration::from_secs(20);

/// The headers of a delivery, as Standard Webhooks names them.
const HOOK: [&str; 3] = ["webhook-id", "webhook-timestamp", "webhook-signature"];

const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";
const TEXT: &str = "text/plain; charset=utf-8";

/// The page may use only its own files and connections, stands in no frame, and tells its address to no other
/// server.
const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
];

pub(crate) type Body = Either<Full<Bytes>, Relay>;

/// The body of a request for a new session.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    directory: String,
    #[serde(default)]
    model: Option<String>,
}

/// The message of a status of 401, at the page and at a webhook.
const LOG_IN: &str = "log in: `bailey web link` prints a link";
const UNSIGNED: &str =
    "nothing was taken: no channel of this name has the key of the signature, or it is not from now";

impl Gateway {
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let mut response = match self.find(request).await {
            Ok(response) => response,
            Err((status, why)) => text(status, &why),
        };
        let headers = response.headers_mut();
        for (name, value) in HEADERS {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        response
    }

    async fn find(&self, request: Request<Incoming>) -> Result<Response<Body>, (StatusCode, String)> {
        let (head, body) = request.into_parts();
        self.origins.check(&head).map_err(owned)?;
        if matches!(head.method, Method::GET | Method::HEAD)
            && let Some(asset) = assets::find(head.uri.path())
        {
            let mut response = full(StatusCode::OK, asset.kind, asset.text);
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            return Ok(response);
        }
        let Some(route) = route::read(&head.method, head.uri.path(), head.uri.query()) else {
            return Err((StatusCode::NOT_FOUND, "there is nothing here".into()));
        };
        // Health, login and hooks need no bearer here. Without a bearer, any other request ends here.
        let bearer = match &route {
            Route::Health | Route::Login | Route::Hook(_) => String::new(),
            _ => bearer(&head.headers).ok_or_else(|| unknown(LOG_IN))?,
        };
        let wish = match route {
            Route::Health => Wish::Health,
            Route::Login => {
                let name = called(&text_in(&head.headers, USER_AGENT.as_str()));
                Wish::Login(read::<Code>(body).await?, name)
            }
            Route::Wish(wish) => wish,
            Route::Act => Wish::Do(read::<Act>(body).await?),
            Route::Begin => {
                let Begin { directory, model } = read(body).await?;
                Wish::Begin { directory, model }
            }
            Route::Hook(channel) => {
                let [id, timestamp, signature] = HOOK.map(|name| text_in(&head.headers, name));
                let timestamp = timestamp.parse().unwrap_or(0);
                let body = String::from_utf8(all(body).await?.into())
                    .map_err(|_| (StatusCode::BAD_REQUEST, "that is no text".to_owned()))?;
                Wish::Deliver(Delivery { channel, id, timestamp, signature, body })
            }
            Route::Op(stream) => {
                // Only a known browser may send a body with files.
                if !self.streams.has(&stream, &bearer) {
                    return Err((StatusCode::CONFLICT, stream::ENDED.to_owned()));
                }
                let op = read_at_most::<Op>(body, OP_BYTES_MAX, OP_MAX).await?;
                let said = self.streams.say(&stream, &bearer, &op);
                said.map_err(|why| (StatusCode::CONFLICT, why.to_owned()))?;
                return Ok(full(StatusCode::ACCEPTED, JSON, "{}"));
            }
            Route::Events(session, after) => {
                let (socket, busy) = self.open(bearer.clone(), Wish::Join(session)).await?;
                let relay = stream::join(&self.streams, socket, bearer, after, busy);
                return Ok(relayed(relay.map_err(|error| unavailable(&error.to_string()))?));
            }
        };
        match &wish {
            // The cause may be the channel, the key, the clock or the body: the sender is not told which.
            Wish::Deliver(_) => match self.done(bearer, wish).await {
                Err((StatusCode::UNAUTHORIZED, _)) => Err(unknown(UNSIGNED)),
                done => Ok(full(StatusCode::OK, JSON, serde_json::json!({ "done": done? }).to_string())),
            },
            Wish::See(_) | Wish::Do(_) => {
                let (pipe, busy) = self.open(bearer, wish).await?;
                Ok(relayed(stream::read(pipe, busy).map_err(|error| unavailable(&error.to_string()))?))
            }
            Wish::Metrics | Wish::Health => Ok(full(StatusCode::OK, TEXT, self.done(bearer, wish).await?)),
            _ => {
                let text = serde_json::json!({ "done": self.done(bearer, wish).await? });
                Ok(full(StatusCode::OK, JSON, text.to_string()))
            }
        }
    }

    async fn done(&self, bearer: String, wish: Wish) -> Result<String, (StatusCode, String)> {
        match self.ask(bearer, wish).await? {
            (Answer::Done(text), ..) => Ok(text),
            (answer, ..) => Err(refusal(answer)),
        }
    }

    async fn open(&self, bearer: String, wish: Wish) -> Result<(OwnedFd, Busy), (StatusCode, String)> {
        match self.ask(bearer, wish).await? {
            (Answer::Opened, Some(fd), busy) => Ok((fd, busy)),
            (answer, ..) => Err(refusal(answer)),
        }
    }

    async fn ask(
        &self,
        bearer: String,
        wish: Wish,
    ) -> Result<(Answer, Option<OwnedFd>, Busy), (StatusCode, String)> {
        let busy = self.place.busy();
        let (answer, answered) = oneshot::channel();
        let gone = || unavailable("the daemon has ended");
        self.asks.send((Ask { bearer, wish }, answer)).await.map_err(|_| gone())?;
        let (answer, fd) = answered.await.map_err(|_| gone())?;
        Ok((answer, fd, busy))
    }
}

/// The bearer in `authorization: Bearer …`. Two such headers count as no bearer.
fn bearer(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let (scheme, bearer) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| bearer.to_owned())
}

/// The text of a header; empty if the header is absent or not text.
fn text_in(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

async fn all(body: Incoming) -> Result<Bytes, (StatusCode, String)> {
    at_most(body, BODY_BYTES_MAX, BODY_MAX).await
}

async fn at_most(
    body: Incoming,
    bytes_max: usize,
    time_max: Duration,
) -> Result<Bytes, (StatusCode, String)> {
    let body = timeout(time_max, Limited::new(body, bytes_max).collect());
    let body = body.await.map_err(|_| (StatusCode::REQUEST_TIMEOUT, "it took too long".to_owned()))?;
    let status = |error: &(dyn Error + 'static)| match error.is::<LengthLimitError>() {
        true => StatusCode::PAYLOAD_TOO_LARGE,
        false => StatusCode::BAD_REQUEST,
    };
    Ok(body.map_err(|error| (status(&*error), error.to_string()))?.to_bytes())
}

async fn read<T: DeserializeOwned>(body: Incoming) -> Result<T, (StatusCode, String)> {
    read_at_most(body, BODY_BYTES_MAX, BODY_MAX).await
}

async fn read_at_most<T: DeserializeOwned>(
    body: Incoming,
    bytes_max: usize,
    time_max: Duration,
) -> Result<T, (StatusCode, String)> {
    let body = at_most(body, bytes_max, time_max).await?;
    serde_json::from_slice(&body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))
}

fn refusal(answer: Answer) -> (StatusCode, String) {
    match answer {
        Answer::Unknown => unknown(LOG_IN),
        Answer::Later(seconds) => (StatusCode::TOO_MANY_REQUESTS, seconds.to_string()),
        Answer::Refused(why) => (StatusCode::CONFLICT, why),
        Answer::Done(_) | Answer::Opened => unavailable(
            "the daemon gave an unexpected answer; restart it with `bailey stop`, then `bailey start`",
        ),
    }
}

fn unknown(why: &str) -> (StatusCode, String) {
    (StatusCode::UNAUTHORIZED, why.to_owned())
}

fn unavailable(why: &str) -> (StatusCode, String) {
    (StatusCode::SERVICE_UNAVAILABLE, why.to_owned())
}

fn owned((status, why): Refusal) -> (StatusCode, String) {
    (status, why.to_owned())
}

/// A refusal in words. It repeats nothing that a client sent, except the place of a mistake in its JSON.
fn text(status: StatusCode, why: &str) -> Response<Body> {
    if status == StatusCode::TOO_MANY_REQUESTS {
        let mut response = text_of(status, "too many requests or wrong guesses: wait, then try again");
        response.headers_mut().extend(HeaderValue::from_str(why).ok().map(|value| (RETRY_AFTER, value)));
        return response;
    }
    text_of(status, why)
}

fn text_of(status: StatusCode, why: &str) -> Response<Body> {
    full(status, JSON, serde_json::json!({ "error": why }).to_string())
}

fn full(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    with(status, kind, Either::Left(Full::new(body.into())))
}

fn relayed(relay: Relay) -> Response<Body> {
    with(StatusCode::OK, LINES, Either::Right(relay))
}

fn with(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
