//! The client that measures: blocking, HTTP/1.1, one thread for each connection, so that it is no part of
//! what is slow.

use super::{CONNECTIONS, EACH, LARGE, SMALL};
use anyhow::{Context as _, Result, bail, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::{Arc, Barrier},
    thread,
    time::{Duration, Instant},
};

/// The private task that this program is then.
pub(in super::super) const ARGUMENT: &str = "asks";
/// Requests that are made first and not counted.
const WARM_UP: usize = 20;
/// How often a request is made before it counts as failed.
const TRIES: usize = 3;
const BUFFER: usize = 64 << 10;

/// Both directions of a connection.
trait Duplex: Read + Write + Send {}
impl<T: Read + Write + Send> Duplex for T {}

/// Whom requests go to, and how.
struct Target {
    is_tls: bool,
    /// `host:port` of the server.
    authority: String,
    host: String,
    proxy: Option<(String, String)>,
    tls: Option<Arc<ClientConfig>>,
    login: String,
}

/// Measures, and prints what came.
pub(in super::super) fn main(words: &[&str]) -> Result<()> {
    let [url, proxy, trusted, key] = *words else { bail!("four words: URL PROXY AUTHORITY KEY") };
    let target = Arc::new(Target::new(url, proxy, trusted, key)?);
    let mut connection = Connection::new(target.clone());
    let small = |connection: &mut Connection| connection.ask("GET", "/small", 0);
    for _ in 0..WARM_UP {
        small(&mut connection)?;
    }
    let times = (0..SMALL).map(|_| timed(|| small(&mut connection)));
    let times: Vec<String> = times.map(|took| Ok(nanos(took?))).collect::<Result<_>>()?;
    println!("small {}", times.join(" "));
    println!("many {}", nanos(many(&target)?));
    println!("down {}", nanos(timed(|| connection.ask("GET", "/large", 0))?));
    println!("up {}", nanos(timed(|| connection.ask("POST", "/small", LARGE))?));
    Ok(())
}

fn nanos(took: Duration) -> String {
    took.as_nanos().to_string()
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed())
}

/// How long it takes until every connection made its requests; each is there before.
fn many(target: &Arc<Target>) -> Result<Duration> {
    let ready = Arc::new(Barrier::new(CONNECTIONS + 1));
    let all: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (target, ready) = (target.clone(), ready.clone());
            thread::spawn(move || {
                let mut connection = Connection::new(target);
                let first = connection.ask("GET", "/small", 0);
                ready.wait();
                first?;
                (0..EACH).try_for_each(|_| connection.ask("GET", "/small", 0))
            })
        })
        .collect();
    ready.wait();
    timed(|| {
        all.into_iter()
            .try_for_each(|one| one.join().map_err(|_| anyhow::anyhow!("a connection panicked"))?)
    })
}

impl Target {
    fn new(url: &str, proxy: &str, trusted: &str, key: &str) -> Result<Self> {
        let (scheme, authority) = url.split_once("://").context("no URL")?;
        let host = authority.split(':').next().unwrap_or_default().to_owned();
        // What is no URL is the variable that holds it, and so on.
        let known = |word: &str| std::env::var(word).unwrap_or_else(|_| word.to_owned());
        let through = |proxy: String| -> Result<(String, String)> {
            let rest = proxy.strip_prefix("http://").context("no URL of a proxy")?.trim_end_matches('/');
            let (login, address) = rest.rsplit_once('@').unwrap_or(("", rest));
            let login = match login {
                "" => String::new(),
                login => format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(login)),
            };
            Ok((address.to_owned(), login))
        };
        let is_tls = scheme == "https";
        Ok(Self {
            is_tls,
            authority: authority.to_owned(),
            host,
            proxy: (proxy != "-").then(|| through(known(proxy))).transpose()?,
            tls: is_tls.then(|| trust(&known(trusted))).transpose()?,
            login: match key {
                "-" => String::new(),
                key => format!("Authorization: Bearer {}\r\n", known(key)),
            },
        })
    }

    fn connect(&self) -> Result<Box<dyn Duplex>> {
        let to = self.proxy.as_ref().map_or(&self.authority, |(proxy, _)| proxy);
        let mut stream = TcpStream::connect(to).with_context(|| to.clone())?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        if let Some((_, login)) = &self.proxy {
            let authority = &self.authority;
            write!(stream, "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{login}\r\n")?;
            // Nothing follows before this side speaks, so nothing of it is lost in the buffer.
            let head = Head::read(&mut BufReader::new(&stream))?;
            ensure!(head.status == 200, "CONNECT was answered {}", head.status);
        }
        let name = ServerName::try_from(self.host.clone())?;
        let tls = ClientConnection::new(tls.clone(), name)?;
        Ok(Box::new(StreamOwned::new(tls, stream)))
    }
}

fn trust(path: &str) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    let pem = std::fs::read(path).with_context(|| path.to_owned())?;
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// A connection, made anew where the other side closed it.
struct Connection {
    target: Arc<Target>,
    stream: Option<BufReader<Box<dyn Duplex>>>,
}

impl Connection {
    fn new(target: Arc<Target>) -> Self {
        Self { target, stream: None }
    }

    /// One request with so many bytes of a body, and its whole answer.
    fn ask(&mut self, method: &str, path: &str, length: u64) -> Result<()> {
        let mut tries = TRIES;
        loop {
            tries -= 1;
            // tinyproxy closes after each answer, and does not say so.
            match self.once(method, path, length) {
                Err(_) if tries > 0 => {}
                done => return done,
            }
        }
    }

    fn once(&mut self, method: &str, path: &str, length: u64) -> Result<()> {
        let Target { is_tls, authority, proxy, login, .. } = &*self.target;
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => BufReader::with_capacity(BUFFER, self.target.connect()?),
        };
        let (at, pass) = match proxy {
            Some((_, pass)) if !is_tls => (format!("http://{authority}"), pass.as_str()),
            _ => (String::new(), ""),
        };
        let head = format!(
            "{method} {at}{path} HTTP/1.1\r\nHost: {authority}\r\n{pass}{login}Content-Length: {length}\r\n\r\n"
        );
        let to = stream.get_mut();
        to.write_all(head.as_bytes())?;
        send(to, length)?;
        to.flush()?;
        let head = Head::read(&mut stream)?;
        let took = head.body(&mut stream)?;
        ensure!(head.status == 200, "{method} {path} was answered {}", head.status);
        ensure!(path != "/large" || took == LARGE, "{took} bytes came of a large body");
        self.stream = (!head.closes).then_some(stream);
        Ok(())
    }
}

/// Sends a body of so many bytes.
pub(super) fn send(to: &mut dyn Write, length: u64) -> std::io::Result<()> {
    let part = vec![b'x'; BUFFER];
    let mut left = usize::try_from(length).unwrap_or(usize::MAX);
    while left > 0 {
        let now = part.get(..left.min(BUFFER)).unwrap_or_default();
        to.write_all(now)?;
        left -= now.len();
    }
    Ok(())
}

/// What the head of a message says of its body.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// The first line, without its end.
    pub(super) first: String,
    status: u16,
    length: Option<u64>,
    is_chunked: bool,
    closes: bool,
}

impl Head {
    /// Reads one.
    ///
    /// # Errors
    /// When none comes.
    pub(super) fn read(from: &mut impl BufRead) -> Result<Self> {
        let mut head = Self { first: line(from)?, ..Self::default() };
        let second = head.first.split(' ').nth(1).unwrap_or_default();
        head.status = second.parse().unwrap_or_default();
        head.closes = head.first.starts_with("HTTP/1.0");
        loop {
            let line = line(from)?.to_ascii_lowercase();
            match line.split_once(':').map(|(name, value)| (name, value.trim())) {
                Some(("content-length", value)) => head.length = Some(value.parse()?),
                Some(("transfer-encoding", value)) => head.is_chunked = value == "chunked",
                Some(("connection", value)) => head.closes = value == "close",
                Some(_) => {}
                None => return Ok(head),
            }
        }
    }

    /// Takes the body, and says how long it was.
    ///
    /// # Errors
    /// When it is cut off.
    pub(super) fn body(&self, from: &mut impl BufRead) -> Result<u64> {
        if !self.is_chunked {
            return skip(from, self.length.unwrap_or_default());
        }
        let mut all = 0;
        loop {
            let size = u64::from_str_radix(line(from)?.trim(), 16)?;
            all += skip(from, size)?;
            line(from)?;
            if size == 0 {
                return Ok(all);
            }
        }
    }
}

fn line(from: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    ensure!(from.read_line(&mut line)? > 0, "the connection was closed");
    Ok(line.trim_end().to_owned())
}

fn skip(from: &mut impl BufRead, length: u64) -> Result<u64> {
    let mut left = length;
    while left > 0 {
        let have = from.fill_buf()?.len();
        ensure!(have > 0, "the connection was closed {left} bytes too early");
        let took = have.min(usize::try_from(left).unwrap_or(usize::MAX));
        from.consume(took);
        left -= took as u64;
    }
    Ok(length)
}
