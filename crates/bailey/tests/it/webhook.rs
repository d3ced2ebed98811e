//! A channel that a server of one's own brings messages to: signed both ways, and nothing twice.

use crate::{
    attacks::actor::controls,
    daemon::{Daemon, PATIENCE},
    page::{Answer, anywhere, ask, default_model, started},
    stage::Stage,
};
use bailey_testkit::{Gate, Message, ModelServer, Reply};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant, SystemTime},
};
use tempfile::TempDir;

const KEY: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const HELD: &str = "held";
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/webhook.py");

/// A server of somebody's, in another language.
pub(crate) struct Server {
    child: Child,
    port: u16,
    posts: Arc<Mutex<Vec<Value>>>,
    folder: TempDir,
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut serve = Command::new("python3");
        serve.args([SCRIPT, "serve", KEY]).arg(folder.path().join(HELD));
        let mut child = serve.stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut port = String::new();
        out.read_line(&mut port).unwrap();
        let posts: Arc<Mutex<Vec<Value>>> = Arc::default();
        let heard = posts.clone();
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                heard.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Self { child, port: port.trim().parse().unwrap(), posts, folder }
    }

    /// From now on it takes what has these words in it, and does not answer.
    fn hold(&self, words: &str) {
        fs::write(self.folder.path().join("new"), words).unwrap();
        fs::rename(self.folder.path().join("new"), self.folder.path().join(HELD)).unwrap();
    }

    fn let_go(&self) {
        fs::remove_file(self.folder.path().join(HELD)).unwrap();
    }

    /// The messages that stand there, where what came again under its name is passed over: what each says, as
    /// it was begun.
    fn stands(&self) -> Vec<String> {
        let mut stands: Vec<(Value, String)> = Vec::new();
        for post in self.posts().into_iter().filter(|post| post["again"] == false) {
            let (message, says) = (&post["body"]["message"], post["body"]["text"].as_str());
            let Some(says) = says else { continue };
            match stands.iter_mut().find(|(name, _)| name == message) {
                Some((_, words)) => *words = says.to_owned(),
                None => stands.push((post["answered"].clone(), says.to_owned())),
            }
        }
        stands.into_iter().map(|(_, says)| says).collect()
    }

    pub(crate) fn posts(&self) -> Vec<Value> {
        self.posts.lock().unwrap().clone()
    }

    /// Waits for something to be shown that has this in it.
    pub(crate) fn wait_for(&self, words: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(post) =
                self.posts().into_iter().rfind(|post| post["body"].to_string().contains(words))
            {
                return post;
            }
            assert!(Instant::now() < deadline, "`{words}` did not come: {:#?}", self.posts());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn at(stage: &Stage, script: Vec<Reply>) -> (Server, ModelServer) {
    let model = stage.model(script);
    default_model(stage);
    anywhere(stage);
    (channel(stage), model)
}

/// Adds such a channel to a home.
pub(crate) fn channel(stage: &Stage) -> Server {
    let server = Server::start();
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    let channel = format!(
        "{own}\n[channels.ci]\nkind = \"webhook\"\nkey_env = \"CI_KEY\"\nworkspace = {:?}\nbase_url = \"http://127.0.0.1:{}/answers\"\n",
        stage.project(),
        server.port
    );
    fs::write(&config, channel).unwrap();
    let keys = stage.home().join(".env");
    let own = fs::read_to_string(&keys).unwrap_or_default();
    fs::write(&keys, format!("{own}CI_KEY={KEY}\n")).unwrap();
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).unwrap();
    server
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

fn signature(key: &str, id: &str, time: u64, body: &str) -> String {
    let mut sign = Command::new("python3")
        .args([SCRIPT, "sign", key, id, &time.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    sign.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    String::from_utf8(sign.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
}

pub(crate) fn page(stage: &Stage) -> u16 {
    let status = stage.ran(&["--json", "status"]).lines().remove(0);
    status["page"]["url"].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap()
}

/// Delivers a body as it is signed; the status.
fn deliver_as(port: u16, channel: &str, signed: (&str, u64, &str), body: &Value) -> u16 {
    answered(port, channel, signed, body).status
}

fn answered(port: u16, channel: &str, (id, time, signature): (&str, u64, &str), body: &Value) -> Answer {
    let heads = [
        format!("host: 127.0.0.1:{port}"),
        "content-type: application/json".into(),
        format!("webhook-id: {id}"),
        format!("webhook-timestamp: {time}"),
        format!("webhook-signature: {signature}"),
    ];
    ask(port, &format!("POST /hooks/{channel}"), &heads, Some(body))
}

pub(crate) fn deliver(port: u16, id: &str, body: &Value) -> u16 {
    let time = now();
    deliver_as(port, "ci", (id, time, &signature(KEY, id, time, &body.to_string())), body)
}

pub(crate) fn says(who: &str, text: &str) -> Value {
    json!({ "conversation": "build 7", "from": { "id": who, "name": who }, "text": text })
}

/// Lets somebody in, as they would be.
pub(crate) fn pair(stage: &Stage, server: &Server, port: u16, who: &str, role: &str) {
    let told = || server.posts().into_iter().filter(|it| it["body"].to_string().contains("channels pair ci"));
    let (before, deadline) = (told().count(), Instant::now() + PATIENCE);
    assert_eq!(deliver(port, &format!("pair-{who}"), &says(who, "hello?")), 200);
    let shown = loop {
        if let Some(shown) = told().nth(before) {
            break shown;
        }
        assert!(Instant::now() < deadline, "{who} was told no code: {:#?}", server.posts());
        thread::sleep(Duration::from_millis(20));
    };
    let text = shown["body"]["text"].as_str().unwrap().to_owned();
    let code = text.split("pair ci ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let ran = stage.ran(&["channels", "pair", "ci", &code, "--as", role]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_server_brings_a_message_and_is_sent_the_answer_and_the_question() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let folder = tempfile::Builder::new().prefix("bailey-test-").tempdir_in("/var/tmp").unwrap();
    let file = folder.path().canonicalize().unwrap().join("notes.txt");
    fs::write(&file, "what the notes say\n").unwrap();
    let read = Reply::calls([("c1", "fs_read", json!({ "path": file.to_str().unwrap() }))]);
    let (server, model) =
        at(&stage, vec![read, Reply::text("the notes are read"), Reply::text("nothing else")]);
    let _daemon = Daemon::start(&stage);
    let port = page(&stage);
    pair(&stage, &server, port, "ann", "owner");
    assert_eq!(deliver(port, "one", &says("ann", "read the notes")), 200);
    let card = server.wait_for("\"chosen\":\"y:");
    let yes = card["body"]["choices"][0]["chosen"].as_str().unwrap_or_else(|| panic!("{card}")).to_owned();
    let chosen = json!({ "conversation": "build 7", "from": { "id": "eve" }, "chosen": yes });
    deliver(port, "two", &chosen);
    thread::sleep(Duration::from_millis(300));
    assert_eq!(model.requests().len(), 1, "who is not let in answers nothing");
    let chosen = json!({ "conversation": "build 7", "from": { "id": "ann" }, "chosen": yes });
    assert_eq!(deliver(port, "three", &chosen), 200);
    let first = server.wait_for("the notes are read");
    // What begins an answer says the same each time, and is another message.
    assert_eq!(deliver(port, "four", &says("ann", "and now?")), 200);
    let second = server.wait_for("nothing else");
    assert_ne!(first["body"]["message"], second["body"]["message"], "{first} {second}");
    assert_eq!(server.posts().iter().find(|post| post["again"] == true), None);
    for post in server.posts() {
        assert_eq!(
            (post["signed"].clone(), post["path"].clone()),
            (json!(true), json!("/answers")),
            "{post}"
        );
        assert!(!post.to_string().contains(KEY), "the key is in no message");
    }
    let log = stage.ran(&["--json", "audit", "log", "-n", "200"]).stdout;
    assert!(!log.contains(KEY));
}

#[test]
fn what_nobody_signed_or_long_ago_or_before_is_nothing() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (server, model) = at(&stage, Vec::new());
    (0..8).for_each(|_| model.push(Reply::text("heard")));
    for (without, program) in
        [("", Path::new(env!("CARGO_BIN_EXE_bailey"))), ("signature", controls()), ("replay", controls())]
    {
        started(&stage, program, without);
        let _daemon = Daemon::of(&stage);
        let port = page(&stage);
        if without.is_empty() {
            pair(&stage, &server, port, "ann", "owner");
        }
        let body = says("ann", &format!("hello {without}"));
        let (time, text) = (now(), body.to_string());
        let right = |id: &str, time| signature(KEY, id, time, &text);
        let other = signature("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "forged", time, &text);
        let before = model.requests().len();
        let forged = deliver_as(port, "ci", ("forged", time, &other), &body);
        assert_eq!(forged, if without == "signature" { 200 } else { 401 });
        for (what, of) in [
            ("an old one", ("old", time - 3600, right("old", time - 3600))),
            ("one to come", ("late", time + 3600, right("late", time + 3600))),
        ] {
            assert_eq!(deliver_as(port, "ci", (of.0, of.1, &of.2), &body), 401, "{what}");
        }
        let unknown = answered(port, "none", ("x", time, &right("x", time)), &body);
        assert_eq!(unknown.status, 401, "no such channel");
        assert!(unknown.body.contains("nothing was taken"), "and not that somebody may log in: {unknown:?}");
        if without == "signature" {
            model.wait_for(before + 1);
            continue;
        }
        assert_eq!(model.requests().len(), before, "nothing of it was heard");

        // The same once more, as who listened in, or a server that did not hear the answer, would send it.
        let id = format!("msg-{without}");
        let signed = right(&id, time);
        assert_eq!(deliver_as(port, "ci", (&id, time, &signed), &body), 200);
        model.wait_for(before + 1);
        let deadline = Instant::now() + PATIENCE;
        let shown = || server.posts().iter().filter(|post| post["body"]["text"] == "heard").count();
        let so_far = if without.is_empty() { 0 } else { 1 };
        while shown() <= so_far {
            assert!(Instant::now() < deadline, "{:#?}", server.posts());
            thread::sleep(Duration::from_millis(20));
        }
        thread::sleep(Duration::from_millis(700));
        let posts = server.posts().len();
        for _ in 0..3 {
            assert_eq!(
                deliver_as(port, "ci", (&id, time, &signed), &body),
                200,
                "a server may stop repeating it"
            );
        }
        thread::sleep(Duration::from_millis(1500));
        assert_eq!(server.posts().len() > posts, without == "replay", "{:#?}", server.posts());
        assert_eq!(model.requests().len(), before + 1, "and no turn begins by it in any case");
    }
    assert_eq!(deliver_wrong(&stage), [409, 409, 415]);
}

/// The process of the channel.
fn process(stage: &Stage) -> Option<u64> {
    let of = format!("{} channels run", stage.home().display());
    let found = Command::new("pgrep").args(["-f", &of]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().lines().next().and_then(|pid| pid.parse().ok())
}

#[test]
fn what_a_kill_left_unheard_is_sent_again_under_its_name_and_nothing_else_is() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let folder = tempfile::Builder::new().prefix("bailey-test-").tempdir_in("/var/tmp").unwrap();
    let file = folder.path().canonicalize().unwrap().join("notes.txt");
    fs::write(&file, "what the notes say\n").unwrap();
    let read = Reply::calls([("c1", "fs_read", json!({ "path": file.to_str().unwrap() }))]);
    let script = ["the first answer", "the second answer", "the third answer"].map(Reply::text);
    let (server, model) = at(&stage, script.into_iter().chain([read, Reply::text("not read")]).collect());
    let _daemon = Daemon::start(&stage);
    let port = page(&stage);
    pair(&stage, &server, port, "ann", "owner");
    // The server took it, and the process that sent it is killed before it can note so.
    let killed = |id: &str, says_it: &str, held: &str| {
        let (before, stood) = (server.posts().len(), server.stands().len());
        let is_it = |post: &Value| post["body"]["text"].as_str().is_some_and(|text| text.contains(held));
        if !held.is_empty() {
            server.hold(held);
        }
        assert_eq!(deliver(port, id, &says("ann", says_it)), 200);
        if !held.is_empty() {
            let deadline = Instant::now() + PATIENCE;
            while !server.posts().iter().skip(before).any(is_it) {
                assert!(Instant::now() < deadline, "`{held}` did not come: {:#?}", server.posts());
                thread::sleep(Duration::from_millis(20));
            }
            crate::daemon::end(process(&stage).unwrap(), "-KILL");
            server.let_go();
        }
        (before, stood)
    };
    // What came since, as soon as `words` stand there, each by itself; what was taken is sent again under its
    // name.
    let came = |(before, stood): (usize, usize), words: &str, is_again: bool| {
        let deadline = Instant::now() + PATIENCE;
        let is_there = || server.stands().iter().skip(stood).any(|says| says.contains(words));
        let again = || server.posts().iter().skip(before).filter(|post| post["again"] == true).count();
        while !is_there() || is_again && again() == 0 {
            assert!(Instant::now() < deadline, "`{words}` did not come: {:#?}", server.posts());
            thread::sleep(Duration::from_millis(20));
        }
        // Whatever would be there twice comes meanwhile.
        thread::sleep(Duration::from_millis(1500));
        assert!(is_again || again() == 0, "{:#?}", server.posts());
        server.stands().split_off(stood)
    };
    // The control: where nobody is killed nothing has the name of anything else.
    assert_eq!(came(killed("one", "one", ""), "the first answer", false), ["the first answer"]);
    // The beginning of an answer, and its last change.
    assert_eq!(came(killed("two", "two", "…"), "the second answer", true), ["the second answer"]);
    let third = killed("three", "three", "the third answer");
    assert_eq!(came(third, "the third answer", true), ["the third answer"]);
    assert_eq!(model.requests().len(), 3);
    // What Bailey itself says.
    let help = came(killed("four", "/help", "What you write is for the agent"), "for the agent", true);
    assert_eq!(help.len(), 1, "{help:#?}");
    // A question's beginning; it is answered in the one message that it stands in.
    let asked = killed("five", "read the notes", "❓");
    let card = server.wait_for("\"chosen\":\"n:");
    let no = card["body"]["choices"].as_array().unwrap().last().unwrap()["chosen"].clone();
    assert_eq!(
        deliver(port, "six", &json!({ "conversation": "build 7", "from": { "id": "ann" }, "chosen": no })),
        200
    );
    let stand = came(asked, "not read", true);
    let questions: Vec<&String> = stand.iter().filter(|says| says.contains("❓")).collect();
    assert!(questions.len() == 1 && questions[0].contains("✘ no"), "{stand:#?}");
    assert_eq!(stand.iter().filter(|says| says.contains("not read")).count(), 1, "{stand:#?}");
}

/// What was on its way when a copy was made ended where the copy was made, or not: nobody knows in the home
/// that is made of it.
#[test]
fn what_a_copy_has_as_not_answered_is_done_again_only_when_it_is_said_again() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let deploy = || Message::calls([("c1", "command_run", json!({ "command": "echo deployed" }))]);
    let script =
        vec![Reply::Held(gate.clone(), deploy()), Reply::text("it is deployed"), Reply::text("said again")];
    let (server, model) = at(&stage, script);
    let daemon = Daemon::start(&stage);
    let port = page(&stage);
    pair(&stage, &server, port, "ann", "owner");
    assert_eq!(deliver(port, "one", &says("ann", "deploy it")), 200);
    model.wait_for(1);
    let copy = stage.ran(&["--json", "backup"]);
    let copy = copy.lines()[0]["copy"].as_str().unwrap_or_else(|| panic!("{copy:?}")).to_owned();
    gate.open();
    server.wait_for("it is deployed");
    assert_eq!(model.requests().len(), 2);
    drop(daemon);
    let restored = stage.ran(&["restore", "--yes", &copy]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let _daemon = Daemon::start(&stage);
    server.wait_for("say it again if it is still to be done");
    // What would be done by itself is done by then.
    thread::sleep(Duration::from_millis(1500));
    assert_eq!(model.requests().len(), 2, "{:#?}", stage.entries("intent"));
    assert_eq!(deliver(page(&stage), "two", &says("ann", "deploy it")), 200);
    server.wait_for("said again");
    assert_eq!(model.requests().len(), 3, "the control");
}

/// Attack A07: what is brought names another session, agent or person than its own.
#[test]
fn a07_what_is_brought_chooses_no_session_no_agent_and_no_person() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (server, model) = at(&stage, Vec::new());
    (0..8).for_each(|_| model.push(Reply::text("heard")));
    let _daemon = Daemon::start(&stage);
    let port = page(&stage);
    pair(&stage, &server, port, "ann", "user");
    assert_eq!(deliver(port, "first", &says("ann", "hello")), 200);
    server.wait_for("heard");
    let sessions = || -> Vec<Value> {
        let mut sessions = stage.ran(&["--json", "sessions", "list", "--all"]).lines();
        sessions.retain(|it| it["title"].as_str().is_some_and(|title| title.starts_with("hello")));
        sessions
    };
    let theirs = sessions()[0]["id"].as_str().unwrap().to_owned();
    let wishes = [
        ("session", json!(theirs)),
        ("agent", json!("other")),
        ("home", json!("/tmp")),
        ("directory", json!("/")),
        ("model", json!("test/other")),
        ("role", json!("owner")),
        ("by", json!({ "channel": "page", "id": "0", "name": "at the page", "role": "owner" })),
    ];
    for (number, (name, value)) in wishes.into_iter().enumerate() {
        let mut body = says("ann", "hello again");
        body[name] = value.clone();
        assert_eq!(deliver(port, &format!("wish-{number}"), &body), 409, "{name}");
        let mut body = says("ann", "hello again");
        body["from"][name] = value;
        assert_eq!(deliver(port, &format!("from-{number}"), &body), 409, "from.{name}");
    }
    assert_eq!(model.requests().len(), 1, "nothing of it was heard");
    // A conversation that is called like a session is another one, and one of its own.
    let mut body = says("ann", "hello, session");
    body["conversation"] = json!(theirs);
    assert_eq!(deliver(port, "named", &body), 200);
    model.wait_for(2);
    assert!(!model.requests()[1].body.contains("heard"), "{}", model.requests()[1].body);
    // The control: in their own conversation they go on, as who they are.
    assert_eq!(deliver(port, "own", &says("ann", "and on")), 200);
    model.wait_for(3);
    assert!(model.requests()[2].body.contains("heard"));
    let mut accepted = stage.trail();
    accepted.retain(|it| it["type"] == "accepted");
    assert_eq!((accepted.len(), sessions().len()), (3, 2), "{accepted:#?}");
    assert!(
        accepted.iter().all(|it| it["by"]["role"] == "user" && it["by"]["channel"] == "ci"),
        "{accepted:#?}"
    );
}

/// What is signed and says nothing.
fn deliver_wrong(stage: &Stage) -> [u16; 3] {
    let _daemon = Daemon::start(stage);
    let port = page(stage);
    let empty = deliver(port, "w1", &json!({}));
    let both = json!({ "conversation": "c", "from": { "id": "ann" }, "text": "x", "chosen": "y" });
    let both = deliver(port, "w2", &both);
    let heads = [format!("host: 127.0.0.1:{port}"), "content-type: text/plain".into()];
    [empty, both, ask(port, "POST /hooks/ci", &heads, Some(&json!({}))).status]
}
