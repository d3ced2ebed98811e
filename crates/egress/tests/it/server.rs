//! A small HTTP server of raw bytes.

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
        log.requests.lock().unwrap().push(request);
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

/// One request without a body.
async fn request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(bytes).ok()
}
