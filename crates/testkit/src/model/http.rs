//! Enough of HTTP/1.1 (RFC 9112) for a server on loopback: requests with a length, answers in chunks.

use super::{Gate, Shared};
use serde_json::Value;
use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    thread,
    time::Duration,
};

/// The largest request body that is taken, in bytes.
const BODY_BYTES_MAX: usize = 64 << 20;
/// Bytes of one chunk of an endless answer.
const PIECE: usize = 64 << 10;

/// A request that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Request {
    /// The body as JSON; null when it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A response, and how it is sent.
pub(super) enum Response {
    Whole { status: u16, headers: Vec<(String, String)>, body: String },
    Events { events: Vec<String>, pace: Duration, gate: Option<Gate>, cut: bool },
    Endless { first: Vec<String>, filler: String, bytes: usize },
    Silent,
    Gone,
}

/// Serves one connection until it is closed.
pub(super) fn serve(stream: TcpStream, shared: &Shared) {
    // Events are small, and each is for its reader at once: held back for an acknowledgement they would come
    // 40 ms late.
    stream.set_nodelay(true).ok();
    let Ok(reading) = stream.try_clone() else { return };
    let mut reading = BufReader::new(reading);
    let mut stream = stream;
    while let Ok(Some(request)) = read(&mut reading) {
        if write(&mut stream, &mut reading, shared.answer(request)).is_err() {
            return;
        }
    }
}

fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
            None => break,
        }
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    if length > BODY_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let body = String::from_utf8_lossy(&body).into_owned();
    Ok(Some(Request { method, path, headers, body }))
}

/// An error ends the connection: on purpose, where an answer is to be cut.
fn write(stream: &mut TcpStream, reading: &mut BufReader<TcpStream>, answer: Response) -> io::Result<()> {
    match answer {
        Response::Whole { status, headers, body } => {
            let mut head = format!("HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\n");
            head.extend(headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")));
            head.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
            stream.write_all(head.as_bytes())
        }
        Response::Events { events, pace, gate, cut } => {
            if let Some(gate) = gate {
                gate.wait();
            }
            begin(stream)?;
            for event in &events {
                if !pace.is_zero() {
                    thread::sleep(pace);
                }
                chunk(stream, event)?;
            }
            if cut {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            stream.write_all(b"0\r\n\r\n")
        }
        Response::Endless { first, filler, bytes } => {
            begin(stream)?;
            first.iter().try_for_each(|event| chunk(stream, event))?;
            let piece = filler.repeat(PIECE.div_ceil(filler.len().max(1)));
            for _ in 0..bytes.div_ceil(piece.len().max(1)) {
                chunk(stream, &piece)?;
            }
            stream.write_all(b"0\r\n\r\n")
        }
        Response::Gone => Err(io::ErrorKind::ConnectionAborted.into()),
        Response::Silent => {
            io::copy(reading, &mut io::sink())?;
            Err(io::ErrorKind::ConnectionAborted.into())
        }
    }
}

fn begin(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    )
}

fn chunk(stream: &mut TcpStream, text: &str) -> io::Result<()> {
    write!(stream, "{:x}\r\n{text}\r\n", text.len())?;
    stream.flush()
}
