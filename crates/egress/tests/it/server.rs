//! A small HTTP server of raw bytes.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha1::{Digest as _, Sha1};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpListener,
};

/// What it does after it read a request.
#[derive(Clone)]
pub(crate) enum Step {
    Send(Vec<u8>),
    Wait(u64),
    /// Waits until the other side closes.
    Hang,
    Close,
    /// Takes the request for a WebSocket.
    Switch,
    /// Reads a frame of a WebSocket, and logs its text as a request.
    Frame,
}

/// A frame of a server's: its first byte, its declared length and its content.
pub(crate) fn frame(first: u8, length: u64, content: &[u8]) -> Vec<u8> {
    [&[first, 127], &length.to_be_bytes()[..], content].concat()
}

/// A whole text.
pub(crate) fn text(content: &[u8]) -> Step {
    Step::Send(frame(0x81, content.len() as u64, content))
}

#[derive(Clone, Default)]
pub(crate) struct Log {
    requests: Arc<Mutex<Vec<String>>>,
    pub(crate) connections: Arc<AtomicUsize>,
    pub(crate) closed: Arc<AtomicUsize>,
    pub(crate) sent: Arc<AtomicUsize>,
}

impl Log {
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) log: Log,
}

/// An answer with a length.
pub(crate) fn answer(status: &str, body: &[u8]) -> Vec<Step> {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nX-Test: yes\r\n\r\n", body.len());
    vec![Step::Send([head.as_bytes(), body].concat())]
}

/// The head of an answer that ends with its connection.
pub(crate) fn open_ended() -> Step {
    Step::Send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n".to_vec())
}

/// A server on loopback that answers every request with these steps.
pub(crate) async fn serve(steps: Vec<Step>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let log = Log::default();
    let server = Server { url, log: log.clone() };
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            log.connections.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(converse(stream, steps.clone(), log.clone()));
        }
    });
    server
}

/// Answers one connection.
pub(crate) async fn converse(mut stream: impl AsyncRead + AsyncWrite + Unpin, steps: Vec<Step>, log: Log) {
    while let Some(request) = request(&mut stream).await {
        log.requests.lock().unwrap().push(request.clone());
        for step in &steps {
            match step {
                Step::Send(bytes) => {
                    if send(&mut stream, bytes, &log).await.is_err() {
                        return;
                    }
                }
                Step::Wait(ms) => tokio::time::sleep(Duration::from_millis(*ms)).await,
                Step::Hang => {
                    stream.read_u8().await.ok();
                    log.closed.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                Step::Close => return,
                Step::Switch => {
                    let key = request.lines().find_map(|line| line.strip_prefix("sec-websocket-key: "));
                    let accept = accept(key.unwrap_or_default());
                    let head = format!(
                        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                         Sec-WebSocket-Accept: {accept}\r\n\r\n"
                    );
                    if send(&mut stream, head.as_bytes(), &log).await.is_err() {
                        return;
                    }
                }
                Step::Frame => match heard(&mut stream).await {
                    Ok(text) => log.requests.lock().unwrap().push(text),
                    Err(_) => {
                        log.closed.fetch_add(1, Ordering::SeqCst);
                        return;
                    }
                },
            }
        }
    }
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8], log: &Log) -> std::io::Result<()> {
    for piece in bytes.chunks(64 << 10) {
        stream.write_all(piece).await?;
        log.sent.fetch_add(piece.len(), Ordering::SeqCst);
    }
    stream.flush().await
}

fn accept(key: &str) -> String {
    let accept = Sha1::digest(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
    BASE64_STANDARD.encode(accept)
}

/// A short frame of a client's: its first byte and its content.
async fn heard(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<String> {
    let mut head = [0; 6];
    stream.read_exact(&mut head).await?;
    let [first, length, mask @ ..] = head;
    let mut content = vec![0; usize::from(length & 0x7f)];
    stream.read_exact(&mut content).await?;
    content.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    Ok(format!("{first:02x} {}", String::from_utf8_lossy(&content)))
}

/// One request, with its body where it declares one.
async fn request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(bytes).ok()?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.ok()?;
    Some(head + &String::from_utf8(body).ok()?)
}
