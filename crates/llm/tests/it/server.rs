//! A small HTTP server of raw bytes on loopback.

use std::sync::{Arc, Mutex};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

pub(crate) struct Server {
    pub(crate) url: String,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Serves these answers in order, each on a connection of its own; the last one again and again.
    pub(crate) async fn start(answers: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let server = Self { url, bodies: bodies.clone() };
        tokio::spawn(async move {
            for number in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                let answer = answers.get(number).or(answers.last()).cloned().unwrap_or_default();
                tokio::spawn(answer_one(stream, answer, bodies.clone()));
            }
        });
        server
    }

    /// The bodies that came, in order.
    pub(crate) fn bodies(&self) -> Vec<serde_json::Value> {
        self.bodies.lock().unwrap().iter().map(|body| serde_json::from_str(body).unwrap()).collect()
    }
}

async fn answer_one(stream: TcpStream, answer: Vec<u8>, bodies: Arc<Mutex<Vec<String>>>) {
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    bodies.lock().unwrap().push(String::from_utf8(body).unwrap());
    // Whoever has enough closes early.
    stream.write_all(&answer).await.ok();
    stream.flush().await.ok();
}

/// An answer with this status, these headers (each with its line end), and a body that ends with the
/// connection.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}Connection: close\r\n\r\n{body}").into_bytes()
}

/// An event stream.
pub(crate) fn events(body: &str) -> Vec<u8> {
    answer("200 OK", "Content-Type: text/event-stream\r\n", body)
}
