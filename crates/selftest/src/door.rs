//! Requests at the network door, made by a command inside the walls. The servers belong to this process. The
//! data that reaches them counts, not the word of the command.

use super::{
    attack::{Attempt, Tried},
    fixture::{Fixture, Inside, Side},
};
use crate::probe::KEY;
use anyhow::{Context as _, Result};
use bailey_egress::{BoundKey, HostLimit, KeyForm};
use bailey_home::config::Network;
use bailey_policy::{HostGlob, Method, UrlGlob};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

/// The maximum silence of a connection to a server.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How the stand-in of the key begins.
const STAND_IN: &str = "bailey-bailey-prove-key-";
/// The number of bytes that may go to the limited server.
const SENT_MAX: u64 = 1_000;
/// A path whose answer shows the key.
const SHOWS: &str = "/shown";

/// The request at the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    /// A request that no rule allows.
    Unruled,
    /// A request to a private address that the configuration does not name.
    Private,
    /// A stand-in in the place where its key is put in, but at another path.
    Elsewhere,
    /// A stand-in in a URL.
    Url,
    /// A stand-in in a body.
    Body,
    /// An answer that shows the key.
    Answer,
    /// More bytes than may go to a host.
    Limit,
    /// A request with the pass of another command.
    Pass,
}

/// The servers of requests.
pub(crate) struct Servers {
    /// Rules allow it, its address is named, and a key is bound to `/bound`.
    open: Server,
    /// Its address is named, and no rule allows it.
    unruled: Server,
    /// Rules allow it, and its address is not named.
    private: Server,
    /// Rules allow it, its address is named, and few bytes may go there.
    limited: Server,
}

struct Server {
    address: SocketAddr,
    came: Arc<Mutex<Vec<String>>>,
}

impl Servers {
    /// Starts them.
    ///
    /// # Errors
    /// When there can be no server on the loopback.
    pub(crate) fn start(secret: &str) -> Result<Self> {
        let start = || Server::start(secret).context("no server on the loopback");
        Ok(Self { open: start()?, unruled: start()?, private: start()?, limited: start()? })
    }

    /// The words of probes that lead to the servers, with their URLs.
    pub(crate) fn places(&self) -> [(&'static str, String); 4] {
        [
            ("{open}", self.open.url()),
            ("{unruled}", self.unruled.url()),
            ("{private}", self.private.url()),
            ("{limited}", self.limited.url()),
        ]
    }

    /// Sets the door up.
    ///
    /// # Errors
    /// When a setting is invalid.
    pub(crate) fn set(&self, network: &mut Network) -> Result<()> {
        // The private server's port is among the named ones, so that the address alone keeps the request
        // back.
        let port = format!("http://10.255.255.1:{}", self.private.address.port());
        let key = BoundKey {
            secret: KEY.into(),
            variable: KEY.into(),
            at: self.open.url(),
            methods: vec![Method::new("GET")?, Method::new("POST")?],
            paths: vec![UrlGlob::new("/bound/**")?],
            header: "authorization".into(),
            form: KeyForm::Prefixed("Bearer ".into()),
        };
        let limit = HostLimit {
            host: HostGlob::new(&self.limited.address.to_string())?,
            sent: Some(SENT_MAX),
            received: None,
            per_minute: None,
        };
        network.private = vec![self.open.url(), self.unruled.url(), self.limited.url(), port];
        (network.keys, network.limits, network.tunnels) = (vec![key], vec![limit], Vec::new());
        Ok(())
    }

    /// Rules that allow commands to ask for the network, and that allow three of the servers.
    pub(crate) fn rules(&self) -> String {
        let hosts =
            [&self.open, &self.private, &self.limited].map(|server| format!("\"{}\"", server.address));
        format!(
            "[[rule]]\nname = \"may-ask\"\nanswer = \"allow\"\npriority = 1\nmatch = {{ action = \"exec\", network = true }}\n\n\
             [[rule]]\nname = \"servers\"\nanswer = \"allow\"\nmatch = {{ action = \"http\", host = [{}] }}\n",
            hosts.join(", ")
        )
    }
}

impl Server {
    fn start(secret: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let came: Arc<Mutex<Vec<String>>> = Arc::default();
        let (all, secret) = (came.clone(), secret.to_owned());
        thread::spawn(move || {
            // One at a time: no other program asks.
            for stream in listener.incoming().map_while(Result::ok) {
                serve(&stream, &all, &secret).ok();
            }
        });
        Ok(Self { address, came })
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests that came since the last call.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.came.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn serve(mut stream: &TcpStream, came: &Mutex<Vec<String>>, secret: &str) -> std::io::Result<()> {
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    let mut reader = BufReader::new(stream);
    let (mut request, mut length) = (String::new(), 0);
    loop {
        let begin = request.len();
        if reader.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let line = request.get(begin..).unwrap_or_default().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = Vec::new();
    let whole = reader.take(length).read_to_end(&mut body);
    request += &String::from_utf8_lossy(&body);
    let text = if request.lines().next().unwrap_or_default().contains(SHOWS) { secret } else { "took it" };
    // Record the request before the answer, so that it is there when the answer arrives.
    came.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    whole?;
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}", text.len())
}

pub(crate) async fn tried(fixture: &Fixture, request: Request) -> Result<Tried> {
    let Servers { open, unruled, private, limited } = &fixture.servers;
    let reached = |server, probe| arrived(fixture, server, probe);
    let (attack, control) = match request {
        Request::Unruled => {
            (reached(unruled, "ask {unruled}/x").await?, reached(open, "ask {open}/x").await?)
        }
        Request::Private => {
            (reached(private, "ask {private}/x").await?, reached(open, "ask {open}/x").await?)
        }
        Request::Limit => (
            reached(limited, "ask {limited}/x bytes 2000").await?,
            reached(limited, "ask {limited}/x bytes 500").await?,
        ),
        Request::Elsewhere => shown(fixture, "ask {open}/other/x key").await?,
        Request::Url => shown(fixture, "ask {open}/bound/x?note={stand-in} key").await?,
        Request::Body => shown(fixture, "ask {open}/bound/x body").await?,
        Request::Answer => (
            seen(fixture, open, "ask {open}/bound/shown key").await?,
            seen(fixture, limited, "ask {limited}/shown").await?,
        ),
        Request::Pass => (borrowed(fixture).await?, reached(open, "ask {open}/x").await?),
    };
    Ok(Tried { attack, control })
}

/// Whether a request came to its server.
async fn arrived(fixture: &Fixture, server: &Server, probe: &str) -> Result<Attempt> {
    let ran = asked(fixture, probe).await?;
    Ok(judged(server.take().first().map(|_| "the server got it".into()), ran.attempt))
}

/// The attack comes through when the server sees the stand-in or the key. The control comes through when the
/// key is put in where it is bound.
async fn shown(fixture: &Fixture, probe: &str) -> Result<(Attempt, Attempt)> {
    let open = &fixture.servers.open;
    let ran = asked(fixture, probe).await?;
    let came = open.take().concat();
    let has_key = came.contains(&fixture.secret).then(|| "the server got the key".to_owned());
    // At the bound path the door puts the key in, so the key alone shows nothing there.
    let is_bound = probe.contains("/bound/");
    let has_stand_in = came.contains(STAND_IN).then(|| "the server was shown the stand-in".to_owned());
    let attack = judged(has_stand_in.or(has_key.filter(|_| !is_bound)), ran.attempt);
    let ran = asked(fixture, "ask {open}/bound/x key").await?;
    let came = open.take().concat();
    let is_put_in = came.contains(&fixture.secret) && !came.contains(STAND_IN);
    Ok((attack, judged(is_put_in.then(|| "the server got the key".into()), ran.attempt)))
}

/// Whether the command sees the key in an answer. An answer of a server without a bound key passes as it is.
async fn seen(fixture: &Fixture, server: &Server, probe: &str) -> Result<Attempt> {
    let ran = asked(fixture, probe).await?;
    server.take();
    let is_seen = String::from_utf8_lossy(&ran.stdout).contains(&fixture.secret);
    Ok(judged(is_seen.then(|| "the command saw the key".into()), ran.attempt))
}

/// Two commands at once: one of them asks at the other's door.
async fn borrowed(fixture: &Fixture) -> Result<Attempt> {
    let (lent, borrowed) =
        tokio::join!(asked(fixture, "lend {yard}/doors"), asked(fixture, "borrow {yard}/doors {open}/x"));
    if let Attempt::Refused(why) | Attempt::Nothing(why) = lent?.attempt {
        return Ok(Attempt::Nothing(why));
    }
    let came = fixture.servers.open.take();
    Ok(judged(came.first().map(|_| "the server got it".into()), borrowed?.attempt))
}

async fn asked(fixture: &Fixture, probe: &str) -> Result<Inside> {
    fixture.at_the_door(fixture.words(probe, Side::Inside, None)).await
}

/// The verdict by the data that came through. The probe's own word does not count.
fn judged(came: Option<String>, attempt: Attempt) -> Attempt {
    match (came, attempt) {
        (Some(how), _) => Attempt::Reached(how),
        (None, Attempt::Reached(_)) => Attempt::Refused("nothing of it came through".into()),
        (None, attempt) => attempt,
    }
}
