//! Streams of an uplink: WebSockets (RFC 6455) and server-sent events. A task of its own reads each and hands
//! on whole messages. A message that is too long, a long silence, bytes that are no text and a server's close
//! end the stream and say why; the holder opens it anew.

use super::{
    Request,
    events::{Events, TooLong},
    requests::{PermittedServer, Sender},
    size,
};
use crate::failure::Failure;
use bailey_protocol::WEBSOCKET;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures_util::{SinkExt as _, StreamExt as _};
use http_body_util::BodyExt as _;
use hyper::{
    Response, StatusCode,
    body::Incoming,
    header::{
        ACCEPT, CONNECTION, CONTENT_TYPE, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS,
        SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
    },
    upgrade::Upgraded,
};
use hyper_util::rt::TokioIo;
use sha1::{Digest as _, Sha1};
use std::{sync::atomic::Ordering, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout, timeout_at},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self, Message,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

/// Messages that wait to be read, and to be sent.
const WAITING_MAX: usize = 16;
/// How long a server may take to take a message.
const SEND_MAX: Duration = Duration::from_secs(30);
/// The buffers of a WebSocket, in bytes.
const BUFFER_BYTES: usize = 16 << 10;
/// The bytes that wait until a server takes them: texts, and answers to its pings.
const UNSENT_BYTES_MAX: usize = 4 << 20;
/// The most characters of a server's reason that are told.
const REASON_CHARS_MAX: usize = 200;
/// The text that a server adds to a WebSocket's key (RFC 6455, 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The kinds of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamKind {
    /// A WebSocket, for texts in both directions. The action names the method `WEBSOCKET`.
    WebSocket,
    /// Server-sent events. The action names the method `GET`.
    Events,
}

/// A stream to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// Its kind.
    pub kind: StreamKind,
    /// As a request's target; also `ws` and `wss` for a WebSocket.
    pub target: String,
    /// Headers. The key's header is not among them.
    pub headers: Vec<(String, String)>,
    /// The most bytes of a message.
    pub message_bytes_max: usize,
    /// The longest silence. A WebSocket is pinged after half of it.
    pub quiet_max: Duration,
    /// The longest time until it is open.
    pub patience: Duration,
}

impl Opening {
    /// A stream of messages of 1 MiB at most, that is silent for two minutes at most.
    #[must_use]
    pub fn new(kind: StreamKind, target: String) -> Self {
        Self {
            kind,
            target,
            headers: Vec::new(),
            message_bytes_max: 1 << 20,
            quiet_max: Duration::from_secs(120),
            patience: Duration::from_secs(20),
        }
    }
}

/// A whole message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamMessage {
    /// The event's name; empty for a WebSocket's message.
    pub name: String,
    /// The id of the last event that had one; empty for a WebSocket's message.
    pub id: String,
    /// The text.
    pub data: String,
}

/// Why a stream has ended, or was not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct StreamEnd {
    /// The cause; without the key.
    pub why: String,
    /// The code that the server closed a WebSocket with (RFC 6455, 7.4).
    pub code: Option<u16>,
    /// The status code with which the server refused to open it.
    pub status: Option<u16>,
}

impl StreamEnd {
    pub(super) fn new(why: impl ToString) -> Self {
        Self { why: why.to_string(), code: None, status: None }
    }
}

/// An open stream. It is closed when it is dropped.
#[derive(Debug)]
pub struct UplinkStream {
    messages: mpsc::Receiver<Result<StreamMessage, StreamEnd>>,
    words: mpsc::Sender<OutgoingText>,
}

/// A text to be sent, and whether the key is put into it.
#[derive(Debug)]
struct OutgoingText {
    text: String,
    is_keyed: bool,
}

impl UplinkStream {
    /// The next message. May be given up at any time: no message is lost.
    ///
    /// # Errors
    /// Why the stream has ended.
    pub async fn next(&mut self) -> Result<StreamMessage, StreamEnd> {
        let ended = || Err(StreamEnd::new("the channel's connection was closed"));
        self.messages.recv().await.unwrap_or_else(ended)
    }

    /// Sends a text over a WebSocket; `is_keyed` puts the key in the place of [`KEY`](super::KEY), which only
    /// a server that takes the key is sent.
    ///
    /// # Errors
    /// When the stream has ended, or too many texts wait already.
    pub fn say(&self, text: String, is_keyed: bool) -> Result<(), StreamEnd> {
        let waiting = |_| StreamEnd::new("the stream takes no more messages");
        self.words.try_send(OutgoingText { text, is_keyed }).map_err(waiting)
    }
}

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Opens a stream, tells how that went, and serves it to its end.
pub(super) async fn run(
    sender: &Sender,
    opening: Opening,
    told: oneshot::Sender<Result<UplinkStream, StreamEnd>>,
) {
    let (server, answer) = match open(sender, &opening).await {
        Ok(opened) => opened,
        // The asker may be gone, here and below.
        Err(end) => return drop(told.send(Err(end))),
    };
    let (to, messages) = mpsc::channel(WAITING_MAX);
    let (words, said) = mpsc::channel(WAITING_MAX);
    told.send(Ok(UplinkStream { messages, words })).ok();
    let pump = Pump { sender, server, opening, to };
    let end = match answer {
        StreamTransport::Socket(socket) => pump.socket(*socket, said).await,
        StreamTransport::Body(body) => pump.body(body).await,
    };
    if let Err(end) = end {
        pump.to.send(Err(end)).await.ok();
    }
}

/// The transport of an open stream.
enum StreamTransport {
    Socket(Box<Socket>),
    Body(Incoming),
}

async fn open<'a>(
    sender: &'a Sender,
    opening: &Opening,
) -> Result<(&'a PermittedServer, StreamTransport), StreamEnd> {
    let Opening { kind, target, headers, patience, message_bytes_max, .. } = opening;
    let method = if *kind == StreamKind::WebSocket { WEBSOCKET } else { "GET" };
    let request = Request {
        method: method.into(),
        target: target.clone(),
        headers: headers.clone(),
        body: Vec::new(),
        name: String::new(),
        bytes_max: 0,
        patience: *patience,
    };
    let mut checked = sender.check(&request).map_err(StreamEnd::new)?;
    let server = checked.server;
    let headers = checked.request.headers_mut();
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(StreamEnd::new)?;
    let nonce = BASE64_STANDARD.encode(nonce);
    match kind {
        StreamKind::WebSocket => {
            headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
            headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
            headers.insert(SEC_WEBSOCKET_KEY, HeaderValue::from_str(&nonce).map_err(StreamEnd::new)?);
        }
        StreamKind::Events => {
            headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        }
    }
    let opened = async {
        let answer = sender.ask(checked).await.map_err(StreamEnd::new)?;
        let expected = match kind {
            StreamKind::WebSocket => StatusCode::SWITCHING_PROTOCOLS,
            StreamKind::Events => StatusCode::OK,
        };
        if answer.status() != expected {
            let status = answer.status().as_u16();
            let why = format!("`{}` answered {status} and opens no stream", server.origin);
            return Err(StreamEnd { status: Some(status), ..StreamEnd::new(why) });
        }
        match kind {
            StreamKind::WebSocket if !is_switched(&answer, &nonce) => {
                Err(StreamEnd::new(format!("`{}` does not speak WebSocket there", server.origin)))
            }
            StreamKind::WebSocket => {
                let config = WebSocketConfig::default()
                    .read_buffer_size(BUFFER_BYTES)
                    .write_buffer_size(0)
                    .max_write_buffer_size(UNSENT_BYTES_MAX)
                    .max_message_size(Some(*message_bytes_max))
                    .max_frame_size(Some(*message_bytes_max));
                let upgraded = TokioIo::new(hyper::upgrade::on(answer).await.map_err(StreamEnd::new)?);
                let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
                Ok(StreamTransport::Socket(Box::new(socket)))
            }
            StreamKind::Events if !is_event_stream(&answer) => {
                Err(StreamEnd::new(format!("`{}` sends no events there", server.origin)))
            }
            StreamKind::Events => Ok(StreamTransport::Body(answer.into_body())),
        }
    };
    let late = || Err(StreamEnd::new(Failure::FirstByteTimeout(server.origin.clone(), *patience)));
    Ok((server, timeout(*patience, opened).await.unwrap_or_else(|_| late())?))
}

/// Whether the server took this very request for a WebSocket, and nothing beyond (RFC 6455, 4.1).
fn is_switched(answer: &Response<Incoming>, nonce: &str) -> bool {
    let accept = BASE64_STANDARD.encode(Sha1::digest(format!("{nonce}{GUID}")));
    let headers = answer.headers();
    let is_websocket = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"websocket");
    headers.get(UPGRADE).is_some_and(is_websocket)
        && headers.get(SEC_WEBSOCKET_ACCEPT).is_some_and(|given| *given == accept)
        && !headers.contains_key(SEC_WEBSOCKET_EXTENSIONS)
}

fn is_event_stream(answer: &Response<Incoming>) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
}

/// A stream's task.
struct Pump<'a> {
    sender: &'a Sender,
    server: &'a PermittedServer,
    opening: Opening,
    to: mpsc::Sender<Result<StreamMessage, StreamEnd>>,
}

impl Pump<'_> {
    /// Serves a WebSocket until it ends; nothing where its holder is gone.
    async fn socket(
        &self,
        mut socket: Socket,
        mut said: mpsc::Receiver<OutgoingText>,
    ) -> Result<(), StreamEnd> {
        let end = self.talk(&mut socket, &mut said).await;
        let code = match &end {
            Ok(()) => CloseCode::Normal,
            // The server's close is answered already.
            Err(StreamEnd { code: Some(_), .. }) => return end,
            Err(_) => CloseCode::Policy,
        };
        // It need not be heard.
        let frame = CloseFrame { code, reason: "".into() };
        timeout(Duration::from_secs(1), socket.close(Some(frame))).await.ok();
        end
    }

    async fn talk(
        &self,
        socket: &mut Socket,
        said: &mut mpsc::Receiver<OutgoingText>,
    ) -> Result<(), StreamEnd> {
        let half = self.opening.quiet_max / 2;
        let mut silent_until = Instant::now() + half;
        let mut is_pinged = false;
        loop {
            let message = tokio::select! {
                () = self.to.closed() => return Ok(()),
                words = said.recv() => {
                    let Some(OutgoingText { text, is_keyed }) = words else { return Ok(()) };
                    self.sender.passed.out.fetch_add(size(text.len()), Ordering::Relaxed);
                    let text = match is_keyed {
                        true => self.sender.keyed(&text, self.server).map_err(StreamEnd::new)?,
                        false => text,
                    };
                    self.send(socket, Message::text(text)).await?;
                    continue;
                }
                came = timeout_at(silent_until, socket.next()) => came,
            };
            let message = match message {
                Ok(Some(message)) => message.map_err(|error| self.broken(&error))?,
                Ok(None) => return Err(self.ended("ended the stream")),
                Err(_) if is_pinged => return Err(self.silent()),
                Err(_) => {
                    self.send(socket, Message::Ping(tungstenite::Bytes::new())).await?;
                    (is_pinged, silent_until) = (true, Instant::now() + half);
                    continue;
                }
            };
            (is_pinged, silent_until) = (false, Instant::now() + half);
            match message {
                Message::Text(text) => {
                    let data = text.as_str().to_owned();
                    self.pass(StreamMessage { data, ..StreamMessage::default() }).await;
                }
                Message::Binary(_) => return Err(self.ended("sent bytes where a text is expected")),
                Message::Close(frame) => return Err(self.closed(frame)),
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }

    async fn send(&self, socket: &mut Socket, message: Message) -> Result<(), StreamEnd> {
        match timeout(SEND_MAX, socket.send(message)).await {
            Ok(sent) => sent.map_err(|error| self.broken(&error)),
            Err(_) => Err(self.silent()),
        }
    }

    /// Serves server-sent events until they end; nothing where their holder is gone.
    async fn body(&self, mut body: Incoming) -> Result<(), StreamEnd> {
        let mut events = Events::new(self.opening.message_bytes_max);
        // An event that has begun is whole in time, however slowly its bytes come.
        let mut since = Instant::now();
        loop {
            let frame = tokio::select! {
                () = self.to.closed() => return Ok(()),
                frame = timeout_at(since + self.opening.quiet_max, body.frame()) => frame,
            };
            let frame = match frame {
                Ok(Some(frame)) => frame,
                Ok(None) => return Err(self.ended("ended the stream")),
                Err(_) => return Err(self.silent()),
            };
            let broken = |error: hyper::Error| {
                StreamEnd::new(Failure::Broken(self.server.origin.clone(), error.to_string()))
            };
            let frame = frame.map_err(broken)?;
            let Some(bytes) = frame.data_ref() else { continue };
            let whole = events.push(bytes).map_err(|TooLong| self.too_long())?;
            if !whole.is_empty() || !events.is_within() {
                since = Instant::now();
            }
            for message in whole {
                self.pass(message).await;
            }
        }
    }

    /// Hands a message on; a holder who does not read holds the server back.
    async fn pass(&self, message: StreamMessage) {
        self.sender.passed.back.fetch_add(size(message.data.len()), Ordering::Relaxed);
        // A holder that is gone is noticed by the loops.
        self.to.send(Ok(message)).await.ok();
    }

    fn ended(&self, what: &str) -> StreamEnd {
        StreamEnd::new(format!("`{}` {what}", self.server.origin))
    }

    fn silent(&self) -> StreamEnd {
        StreamEnd::new(Failure::IdleTimeout(self.server.origin.clone(), self.opening.quiet_max))
    }

    fn too_long(&self) -> StreamEnd {
        self.ended(&format!("sent a message of more than {} bytes", self.opening.message_bytes_max))
    }

    fn closed(&self, frame: Option<CloseFrame>) -> StreamEnd {
        let Some(CloseFrame { code, reason }) = frame else { return self.ended("closed the stream") };
        let reason = reason.chars().filter(|c| !c.is_control()).take(REASON_CHARS_MAX).collect::<String>();
        let code = u16::from(code);
        StreamEnd { code: Some(code), ..self.ended(&format!("closed the stream ({code} {reason})")) }
    }

    fn broken(&self, error: &tungstenite::Error) -> StreamEnd {
        match error {
            tungstenite::Error::Capacity(_) => self.too_long(),
            tungstenite::Error::Utf8(_) => self.ended("sent a text that is no UTF-8"),
            other => self.ended(&format!("broke the stream ({other})")),
        }
    }
}
