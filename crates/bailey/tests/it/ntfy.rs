//! The channel of `examples/ntfy.rs`, which is in builds for tests: a person writes to a topic, and the
//! answer is published there. Once over server-sent events, and once over a WebSocket.

use crate::{
    attacks::actor::controls,
    daemon::{Daemon, PATIENCE},
    page::default_model,
    stage::{Ran, Stage},
};
use bailey_testkit::Reply;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use sha1::{Digest as _, Sha1};
use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    process::Command,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

const TOKEN: &str = "tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2";

#[derive(Default)]
struct Topic {
    /// Every message: its name, its text, and whether Bailey published it.
    messages: Vec<(String, String, bool)>,
    streams: Vec<Stream>,
    /// The first lines of requests.
    asked: Vec<String>,
    wrong: Vec<String>,
    /// Whether a stream ends as soon as it is open.
    is_moody: bool,
}

/// An open stream of a listener's.
struct Stream {
    tcp: TcpStream,
    is_websocket: bool,
}

impl Stream {
    fn say(&mut self, event: &Value) -> std::io::Result<()> {
        let text = event.to_string();
        let bytes = match self.is_websocket {
            true => [&[0x81, 127], &(text.len() as u64).to_be_bytes()[..], text.as_bytes()].concat(),
            false => format!("data: {text}\n\n").into_bytes(),
        };
        self.tcp.write_all(&bytes)
    }
}

fn event((id, text, is_ours): &(String, String, bool)) -> Value {
    let tags: &[&str] = if *is_ours { &["bailey"] } else { &[] };
    json!({ "id": id, "event": "message", "topic": "den", "message": text, "tags": tags })
}

/// A server of one topic.
#[derive(Clone)]
struct Server {
    url: String,
    topic: Arc<Mutex<Topic>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/den", listener.local_addr().unwrap());
        let server = Self { url, topic: Arc::default() };
        let serving = server.clone();
        thread::spawn(move || {
            for tcp in listener.incoming().flatten() {
                let server = serving.clone();
                thread::spawn(move || server.serve(tcp));
            }
        });
        server
    }

    fn serve(&self, tcp: TcpStream) -> Option<()> {
        let mut lines = BufReader::new(tcp.try_clone().ok()?);
        loop {
            let mut head = Vec::new();
            loop {
                let mut line = String::new();
                lines.read_line(&mut line).ok().filter(|read| *read > 0)?;
                match line.trim_end() {
                    "" => break,
                    line => head.push(line.to_owned()),
                }
            }
            let header =
                |name: &str| head.iter().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            let mut body = vec![0; header("content-length: ").parse().unwrap_or_default()];
            lines.read_exact(&mut body).ok()?;
            let body = String::from_utf8(body).unwrap();
            let mut topic = self.topic.lock().unwrap();
            let asked = head.first()?.clone();
            topic.asked.push(asked.clone());
            if header("authorization: ") != format!("Bearer {TOKEN}") {
                topic.wrong.push(format!("without its key: {head:?}"));
            }
            let mut words = asked.split(' ');
            match (words.next()?, words.next()?) {
                ("PUT", path) => {
                    let name = path.strip_prefix("/den/").map(str::to_owned);
                    let id = name.unwrap_or_else(|| format!("m{}", topic.messages.len()));
                    let message = (id.clone(), body, header("x-tags: ") == "bailey");
                    match topic.messages.iter_mut().find(|known| known.0 == id) {
                        Some(known) => *known = message.clone(),
                        None => topic.messages.push(message.clone()),
                    }
                    topic.streams.retain_mut(|stream| stream.say(&event(&message)).is_ok());
                    let answer = event(&message).to_string();
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
                    (&tcp).write_all(head.as_bytes()).ok()?;
                }
                ("GET", path) => {
                    let is_websocket = path.starts_with("/den/ws");
                    let accept =
                        format!("{}258EAFA5-E914-47DA-95CA-C5AB0DC85B11", header("sec-websocket-key: "));
                    let accept = BASE64_STANDARD.encode(Sha1::digest(accept));
                    let head = match is_websocket {
                        true => format!(
                            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                             Sec-WebSocket-Accept: {accept}\r\n\r\n"
                        ),
                        false => "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n".to_owned(),
                    };
                    (&tcp).write_all(head.as_bytes()).ok()?;
                    let mut stream = Stream { tcp, is_websocket };
                    stream.say(&json!({ "id": "o", "event": "open", "topic": "den" })).ok()?;
                    if let Some((_, since)) = path.split_once("?since=") {
                        let after = topic.messages.iter().skip_while(|(id, ..)| id != since).skip(1);
                        after.map(event).try_for_each(|event| stream.say(&event)).ok()?;
                    }
                    if topic.is_moody {
                        return None;
                    }
                    topic.streams.push(stream);
                    return Some(());
                }
                _ => topic.wrong.push(asked),
            }
        }
    }

    /// The person writes.
    fn says(&self, text: &str) {
        let mut topic = self.topic.lock().unwrap();
        let message = (format!("m{}", topic.messages.len()), text.to_owned(), false);
        topic.messages.push(message.clone());
        topic.streams.retain_mut(|stream| stream.say(&event(&message)).is_ok());
    }

    /// Waits for something.
    fn wait<T>(&self, what: &str, look: impl Fn(&Topic) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let topic = self.topic.lock().unwrap();
            if let Some(found) = look(&topic) {
                return found;
            }
            assert!(
                Instant::now() < deadline,
                "{what} did not come: {:#?} {:?}",
                topic.messages,
                topic.asked
            );
            drop(topic);
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for a message of Bailey's that has this in it.
    fn answer(&self, words: &str) -> String {
        let is_it = |(_, text, is_ours): &&(String, String, bool)| *is_ours && text.contains(words);
        self.wait(words, |topic| topic.messages.iter().find(is_it).map(|(_, text, _)| text.clone()))
    }

    /// Waits for a listener, and sends it these bytes.
    fn sends(&self, bytes: &[u8]) {
        self.wait("a listener", |topic| (!topic.streams.is_empty()).then_some(()));
        let mut stream = self.topic.lock().unwrap().streams.pop().unwrap();
        // It may be cut.
        stream.tcp.write_all(bytes).ok();
        stream.tcp.shutdown(std::net::Shutdown::Both).ok();
    }
}

fn ran(stage: &Stage, words: &[&str]) -> Ran {
    Ran::of(Command::new(controls()).args(stage.bailey(words).get_args()).output().unwrap())
}

fn talks(kind: &str, path: &str, long: &[u8]) {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let list = Reply::calls([("c1", "fs_list", json!({ "path": "." }))]);
    let model = stage.model(vec![
        list,
        Reply::text("There is **one**: `a.txt`."),
        Reply::text("Again, then."),
        Reply::text("Yes."),
    ]);
    default_model(&stage);
    let server = Server::start();
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    let channel = format!(
        "{own}\n[channels.phone]\nkind = \"{kind}\"\nkey_env = \"NTFY_TOKEN\"\nworkspace = {:?}\nbase_url = {:?}\n",
        stage.project(),
        server.url
    );
    fs::write(&config, channel).unwrap();
    let keys = stage.home().join(".env");
    fs::write(&keys, format!("NTFY_TOKEN={TOKEN}\n")).unwrap();
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).unwrap();
    let _daemon = Daemon::with(&stage, "UNUSED", "");
    server.wait("a listener", |topic| (!topic.streams.is_empty()).then_some(()));
    server.says("hello?");
    let told = server.answer("channels pair phone");
    let code = told.split("pair phone ").nth(1).unwrap().split_whitespace().next().unwrap();
    let paired = ran(&stage, &["channels", "pair", "phone", code, "--as", "owner"]);
    assert_eq!(paired.code, Some(0), "{paired:?}");

    server.says("which files are there?");
    server.answer("There is **one**: `a.txt`.");
    assert!(model.requests()[0].body.contains("which files are there?"));

    // A message without end, and a connection that is cut: it listens again after the last message.
    server.sends(long);
    server.sends(b"");
    server.says("and now?");
    server.answer("Again, then.");
    assert_eq!(model.requests().len(), 3, "nothing is heard twice, and Bailey does not hear itself");

    // A server that opens and ends streams is asked after pauses that grow: after 1 s, 2 s, 4 s.
    let opened = || server.topic.lock().unwrap().asked.iter().filter(|asked| asked.contains(path)).count();
    let before = opened();
    server.topic.lock().unwrap().is_moody = true;
    server.sends(b"");
    thread::sleep(Duration::from_secs(6));
    assert!((2..=3).contains(&(opened() - before)), "{} in 6 s", opened() - before);
    server.topic.lock().unwrap().is_moody = false;
    server.says("still there?");
    server.answer("Yes.");
    let topic = server.topic.lock().unwrap();
    assert_eq!(topic.wrong, [""; 0]);
    let opened: Vec<&String> = topic.asked.iter().filter(|asked| asked.contains(path)).collect();
    assert!(opened.len() >= 3 && opened[1].contains("?since=m"), "{opened:?}");
}

#[test]
fn a_channel_that_listens_to_server_sent_events() {
    talks("ntfy", "GET /den/sse", &[b"data: ".to_vec(), vec![b'x'; 50 << 20]].concat());
}

#[test]
fn a_channel_that_listens_to_a_websocket() {
    talks(
        "ntfy_websocket",
        "GET /den/ws",
        &[&[0x81, 127][..], &(50_u64 << 20).to_be_bytes(), &[b'x'; 4096]].concat(),
    );
}

/// The kind of the example is in no release, and is told as any other that is not there.
#[test]
fn a_kind_that_is_not_there_is_told_where_a_channel_is_to_run() {
    let stage = Stage::new(&[]);
    fs::create_dir_all(stage.home()).unwrap();
    let config = |kind: &str| {
        let text = format!(
            "[channels.phone]\nkind = \"{kind}\"\nkey_env = \"K\"\nworkspace = {:?}\nbase_url = \"http://127.0.0.1:9/x\"\n",
            stage.project()
        );
        fs::write(stage.home().join("config.toml"), text).unwrap();
    };
    for words in [&["config", "check"][..], &["start"], &["channels", "list"], &["doctor", "--offline"]] {
        config("ntfy");
        let Ran { stdout, stderr, code, .. } = stage.ran(words);
        let said = format!("{stdout}{stderr}");
        assert!(
            code != Some(0) && said.contains("config.toml:2:1: `ntfy` is no kind of channel"),
            "{words:?}: {said}"
        );
        assert!(said.contains("there are `telegram`, `webhook`\n"), "{words:?}: {said}");
        config("telegram");
        let Ran { stdout, stderr, .. } = stage.ran(words);
        assert!(!format!("{stdout}{stderr}").contains("kind of channel"), "the control: {words:?}");
    }
    stage.ran(&["stop"]);
}
