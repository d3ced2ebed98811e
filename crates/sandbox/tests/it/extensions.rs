//! Extensions of the policy as guests: what they see, and what becomes of those that misbehave.

use crate::house::{As, House, STRANGER, everyone, is_root};
use bailey_kernel::Output;
use bailey_kernel::{
    extension::{Answer, ExtensionOutcome, ExtensionReply},
    program::Programs as _,
};
use bailey_peers::{Employed, Look, Runner, Work};
use bailey_protocol::{
    Action, Command, Digest, Isolation, Level, Limits, Profile, Report, SessionId, Status, Wall, WsPath,
};
use bailey_sandbox::{Guest, Lease, Walls, Yard};
use bailey_testkit::Permits;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::chown,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// Long enough for whatever else the machine does.
const PATIENT: Duration = Duration::from_secs(10);
/// For those that are to be late.
const SHORT: Duration = Duration::from_millis(100);

const PRELUDE: &str = r#"
import json, os, struct, sys, time
out = sys.stdout.buffer
def raw(data):
    out.write(data)
    out.flush()
def send(document):
    body = json.dumps(document).encode()
    raw(struct.pack(">I", len(body)) + body)
def read():
    head = sys.stdin.buffer.read(4)
    if len(head) < 4:
        sys.exit(0)
    return json.loads(sys.stdin.buffer.read(struct.unpack(">I", head)[0]))
def say(question, answer="allow", reason=""):
    send({"number": question["number"], "answer": answer, "reason": reason})
"#;

/// A house with one extension, and whoever starts and asks it.
struct Office {
    runner: Runner,
    house: House,
    permits: Permits,
    guest: Guest,
}

impl Office {
    async fn new(body: &str, within: Duration) -> Option<Self> {
        Self::with(if is_root() { As::Root } else { As::User }, body, within, &[]).await
    }

    async fn with(who: As, body: &str, within: Duration, without: &[Wall]) -> Option<Self> {
        Self::under(who, body, within, without, Profile::Strict).await
    }

    async fn under(
        who: As,
        body: &str,
        within: Duration,
        without: &[Wall],
        profile: Profile,
    ) -> Option<Self> {
        if !Path::new("/usr/bin/python3").exists() {
            println!("SKIPPED: there is no /usr/bin/python3");
            return None;
        }
        let id = SessionId::new(7, [7; 10]);
        let mut declared = None;
        let house = House::with(who, |config| {
            let root = config.user_home.parent().unwrap().to_owned();
            let script = root.join("x.py");
            fs::write(&script, format!("{PRELUDE}{body}")).unwrap();
            let folder = root.join("guest");
            let project = folder.join("nothing");
            fs::create_dir_all(&project).unwrap();
            if is_root() && who == As::User {
                [&folder, &project]
                    .into_iter()
                    .for_each(|path| chown(path, Some(STRANGER), Some(STRANGER)).unwrap());
            }
            let mut isolation = Isolation {
                profile,
                extra_reads: vec![WsPath(script.display().to_string())],
                ..Isolation::default()
            };
            isolation.minimum.retain(|wall| !without.contains(wall));
            let command = Command {
                argv: vec!["/usr/bin/python3".into(), script.display().to_string()],
                cwd: WsPath(project.display().to_string()),
                env: BTreeMap::new(),
                stdin: None,
                network: false,
                background: false,
                limits: Limits { wall_ms: u64::MAX, pids: 16, memory_bytes: 256 << 20, ..Limits::default() },
            };
            config.without.extend(without);
            if !without.is_empty() {
                config.tiers.internal = Level::Landlock;
            }
            let guest =
                declared.insert(Guest { command, isolation, variables: Default::default() }).clone().into();
            config.sessions.insert(
                id,
                Lease {
                    guest,
                    is_scratch: true,
                    ..Yard { project, folder, linked: None, home: None }.into()
                },
            );
        });
        let permits = Permits::new().await;
        let look: Look = Arc::new(|| Digest::of(b"x"));
        let guest: Guest = declared?;
        let employed =
            Employed { name: "x".into(), lease: id, guest: guest.clone(), within, look, work: Work::Judge };
        let walls = Walls::new(house.native.clone(), permits.seal(), String::new(), String::new());
        let runner = Runner::new(&Arc::new(walls), permits.seal(), vec![employed]);
        Some(Self { runner, house, permits, guest })
    }

    async fn ask(&self) -> ExtensionOutcome {
        self.about(json!({ "action": { "kind": "exec" } })).await
    }

    /// Its reply, after a start where it does not run.
    async fn about(&self, question: Value) -> ExtensionOutcome {
        let mut question = question;
        loop {
            match self.runner.ask("x", question).await {
                Ok(heard) => return heard,
                Err(back) => question = back,
            }
            if let Err(heard) = self.start(&self.guest, oneshot::channel().0).await {
                return heard;
            }
        }
    }

    async fn start(&self, guest: &Guest, ended: oneshot::Sender<Output>) -> Result<(), ExtensionOutcome> {
        let permit = self.permits.of(Action::Exec(guest.command.clone()), &guest.isolation).await;
        self.runner.start("x", permit, None, ended).await
    }

    async fn reply(&self) -> ExtensionReply {
        self.ask().await.reply
    }
}

fn said(answer: Answer, reason: &str) -> ExtensionReply {
    ExtensionReply::Said { answer, reason: reason.into() }
}

const HONEST: &str = r#"
send({"ready": 1})
while True:
    question = read()
    say(question, "deny", question["action"]["kind"])
"#;

#[tokio::test]
async fn an_extension_is_asked_one_question_after_the_other() {
    for who in everyone() {
        let Some(office) = Office::with(who, HONEST, PATIENT, &[]).await else { return };
        for _ in 0..3 {
            assert_eq!(
                office.ask().await,
                ExtensionOutcome { reply: said(Answer::Deny, "exec"), told: String::new() },
                "{who:?}"
            );
        }
        assert_eq!(
            office.house.processes_of_sandboxes(),
            2,
            "an init and one process, not one for each question"
        );
        assert_eq!(office.runner.ask("y", json!(7)).await, Err(json!(7)), "nobody has it");
    }
}

#[tokio::test]
async fn it_starts_by_a_permit_for_itself_and_tells_how_it_ended() {
    let Some(office) = Office::new(HONEST, PATIENT).await else { return };
    let question = json!({ "action": { "kind": "exec" } });
    assert_eq!(office.runner.ask("x", question.clone()).await, Err(question), "nothing starts by itself");
    let other = Guest {
        command: Command { argv: vec!["/usr/bin/true".into()], ..office.guest.command.clone() },
        isolation: office.guest.isolation.clone(),
        variables: Default::default(),
    };
    let (ended, told) = oneshot::channel();
    let refused = office.start(&other, ended).await.unwrap_err();
    assert!(refused.told.contains("this place is one program's"), "{refused:?}");
    assert!(matches!(told.await.unwrap().outcome().status, Status::Failed { .. }));
    // A permit of another journal opens nothing.
    let strangers = Permits::new().await;
    let permit = strangers.of(Action::Exec(office.guest.command.clone()), &office.guest.isolation).await;
    let refused = office.runner.start("x", permit, None, oneshot::channel().0).await.unwrap_err();
    assert!(refused.told.contains("made by another journal") && !office.runner.runs("x"), "{refused:?}");
    // The control.
    let (ended, told) = oneshot::channel();
    office.start(&office.guest, ended).await.unwrap();
    assert!(office.runner.runs("x"));
    assert_eq!(office.reply().await, said(Answer::Deny, "exec"));
    office.runner.end("x").await;
    let output = told.await.unwrap();
    assert_eq!(output.outcome().status, Status::Cancelled);
    assert!(output.outcome().enforced.is_some(), "{output:?}");
    assert!(!office.runner.runs("x"));
    // One that ends by itself.
    let Some(office) = Office::new("send({'ready': 1})\nread()\nsys.exit('on fire')", PATIENT).await else {
        return;
    };
    let (ended, told) = oneshot::channel();
    office.start(&office.guest, ended).await.unwrap();
    assert_eq!(office.reply().await, ExtensionReply::Crashed);
    let output = told.await.unwrap();
    let Report::Exec(report) = output.report() else { panic!("{output:?}") };
    assert_eq!((report.exit, output.outcome().status.clone()), (Some(1), Status::Done));
    assert!(String::from_utf8_lossy(&report.stderr.head.0).contains("on fire"));
}

#[tokio::test]
async fn many_at_once_each_get_their_own_answer() {
    let body = r#"
send({"ready": 1})
while True:
    question = read()
    say(question, "allow", question["mine"])
"#;
    let Some(office) = Office::new(body, PATIENT).await else { return };
    office.start(&office.guest, oneshot::channel().0).await.unwrap();
    let asked = (0..100).map(|n| {
        let office = &office;
        async move { (n, office.about(json!({ "mine": n.to_string() })).await.reply) }
    });
    let mut waiting: Vec<_> = asked.map(Box::pin).collect();
    // Half of those who ask go away; the others' answers are theirs.
    for (place, asking) in waiting.iter_mut().enumerate() {
        tokio::select! { biased; _ = asking => panic!("answered before it was polled twice: {place}"), () = std::future::ready(()) => {} }
    }
    for asking in waiting.into_iter().skip(1).step_by(2) {
        let (n, reply) = asking.await;
        assert_eq!(reply, said(Answer::Allow, &n.to_string()));
    }
}

#[tokio::test]
async fn one_that_crashes_says_why_and_is_started_again() {
    let body = r#"
send({"ready": 1})
read()
sys.exit("the rules are on fire")
"#;
    let Some(office) = Office::new(body, PATIENT).await else { return };
    for _ in 0..2 {
        let heard = office.ask().await;
        assert_eq!(heard.reply, ExtensionReply::Crashed, "{heard:?}");
        assert!(
            heard.told.contains("exit code 1") && heard.told.contains("the rules are on fire"),
            "{heard:?}"
        );
    }
    let Some(office) = Office::new("sys.exit(3)", PATIENT).await else { return };
    let heard = office.ask().await;
    assert!(heard.reply == ExtensionReply::Crashed && heard.told.contains("exit code 3"), "{heard:?}");
}

#[tokio::test]
async fn one_that_hangs_is_late_and_its_late_answer_is_nobodys() {
    let Some(office) = Office::new("send({'ready': 1})\nread()\ntime.sleep(1000)", SHORT).await else {
        return;
    };
    for _ in 0..2 {
        let begin = Instant::now();
        assert_eq!(office.reply().await, ExtensionReply::Late);
        assert!(begin.elapsed() >= SHORT);
    }
    // It is given up when its time is over and not at some multiple of it; a second leaves the machine nine
    // to be slow in.
    let second = Duration::from_secs(1);
    let Some(office) = Office::new("send({'ready': 1})\nread()\ntime.sleep(1000)", second).await else {
        return;
    };
    // Its start has a time of its own.
    assert_eq!(office.reply().await, ExtensionReply::Late);
    let begin = Instant::now();
    assert_eq!(office.reply().await, ExtensionReply::Late);
    assert!((second..10 * second).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    // Each answer is given only with the question that follows it.
    let body = r#"
send({"ready": 1})
last = read()
while True:
    question = read()
    say(last, "allow", "late")
    if question["number"] > 2:
        say(question, "deny", "now")
    last = question
"#;
    let Some(office) = Office::new(body, PATIENT.min(Duration::from_secs(2))).await else { return };
    assert_eq!(office.reply().await, ExtensionReply::Late);
    assert_eq!(office.reply().await, ExtensionReply::Late);
    assert_eq!(office.reply().await, said(Answer::Deny, "now"), "and not what was said to the first two");
}

#[tokio::test]
async fn a_question_that_is_not_read_or_cannot_be_asked_is_no_answer() {
    let Some(office) = Office::new("send({'ready': 1})\ntime.sleep(1000)", SHORT).await else { return };
    let long = json!({ "long": "x".repeat(900_000) });
    let heard = office.about(long).await;
    assert!(
        heard.reply == ExtensionReply::Crashed && heard.told.contains("did not read the question"),
        "{heard:?}"
    );
    let Some(office) = Office::new(HONEST, PATIENT).await else { return };
    assert_eq!(office.about(json!({ "long": "x".repeat(1 << 20) })).await.reply, ExtensionReply::TooLong);
    assert_eq!(office.reply().await, said(Answer::Deny, "exec"), "the control, and it lives");
}

#[tokio::test]
async fn what_is_no_answer_to_the_question_ends_whoever_wrote_it() {
    let attacks = [
        ("garbage", "raw(b'GET / HTTP/1.1\\r\\n\\r\\n')"),
        ("no JSON", "raw(struct.pack('>I', 3) + b'{{}')"),
        ("another document", "send([1, 2])"),
        ("an unknown word", "say(question, 'yes')"),
        ("another number", "send({'number': question['number'] + 1, 'answer': 'allow'})"),
        ("50 MB", "say(question, 'allow', 'x' * 50_000_000)"),
        ("4 GiB", "raw(b'\\xff\\xff\\xff\\xff')"),
        ("an answer twice", "say(question); say(question)"),
        (
            "answers to what was not asked",
            "say(question)\n    while True: send({'number': 0, 'answer': 'allow'})",
        ),
    ];
    for (name, attack) in attacks {
        let body = format!("send({{'ready': 1}})\nwhile True:\n    question = read()\n    {attack}\n");
        let Some(office) = Office::new(&body, PATIENT).await else { return };
        let mut heard = office.ask().await;
        if heard.reply == said(Answer::Allow, "") {
            // What came beside the answer, when the next question comes at the latest.
            heard = loop {
                let next = office.ask().await;
                if next.reply != said(Answer::Allow, "") {
                    break next;
                }
            };
        }
        assert_eq!(heard.reply, ExtensionReply::Garbled, "{name}: {heard:?}");
    }
    let Some(office) = Office::new("raw(struct.pack('>I', 100) + b'{')\ntime.sleep(1000)", PATIENT).await
    else {
        return;
    };
    let unready = office.ask();
    assert!(tokio::time::timeout(SHORT, unready).await.is_err(), "half a frame is not being ready");
    let body = "send({'ready': 1})\nread()\nraw(struct.pack('>I', 100) + b'{')\ntime.sleep(1000)";
    let Some(office) = Office::new(body, SHORT).await else { return };
    assert_eq!(office.reply().await, ExtensionReply::Late, "half a frame is no answer");
    let Some(office) = Office::new("send({'ready': 2})", PATIENT).await else { return };
    assert_eq!(office.reply().await, ExtensionReply::Garbled, "it speaks another version");
}

#[tokio::test]
async fn an_extension_that_forks_without_end_stays_in_its_walls() {
    let body = r#"
send({"ready": 1})
question = read()
made = 0
try:
    while made < 1000:
        if os.fork() == 0:
            time.sleep(1000)
        made += 1
except OSError:
    pass
say(question, "allow", str(made))
read()
"#;
    let Some(office) = Office::new(body, PATIENT).await else { return };
    let ExtensionReply::Said { reason, .. } = office.reply().await else { panic!("no answer") };
    let made: u32 = reason.parse().unwrap();
    assert!((1..=18).contains(&made), "{made} processes");
    drop(office.runner);
    while office.house.processes_of_sandboxes() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

const THIEF: &str = r#"
def attempt(path):
    try:
        return open(path).read().strip()
    except OSError as error:
        return type(error).__name__
send({"ready": 1})
while True:
    question = read()
    say(question, "allow", ",".join(attempt(path) for path in question["paths"]))
"#;

#[tokio::test]
async fn an_extension_sees_its_own_files_and_nothing_of_the_project_or_the_home() {
    for who in everyone() {
        let stolen = async |without: &[Wall]| {
            let office = Office::with(who, THIEF, PATIENT, without).await?;
            let key = office.house.home.join(".ssh/id");
            fs::create_dir_all(key.parent().unwrap()).unwrap();
            fs::write(&key, "the key").unwrap();
            office.house.give(&office.house.home);
            let file = office.house.write("a.txt", "the project");
            let paths = [key, file, office.house.folder.clone()];
            let own = office.house.home.parent().unwrap().join("x.py");
            let reply = office.about(json!({ "paths": paths })).await.reply;
            let ExtensionReply::Said { reason, .. } = reply else { panic!("{reply:?}") };
            let read = office.about(json!({ "paths": [own] })).await.reply;
            assert!(
                matches!(read, ExtensionReply::Said { reason, .. } if reason.contains("attempt")),
                "its own file"
            );
            Some(reason)
        };
        let Some(with) = stolen(&[]).await else { return };
        assert_eq!(with, "FileNotFoundError,FileNotFoundError,FileNotFoundError", "{who:?}");
        let control = stolen(&[Wall::MountNamespace]).await.unwrap();
        assert!(control.starts_with("the key,the project"), "{who:?}, the control: {control}");
    }
}

#[tokio::test]
async fn an_extension_has_no_network_and_few_system_calls() {
    let body = r#"
import socket
send({"ready": 1})
while True:
    question = read()
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        say(question, "allow", "a socket")
    except OSError as error:
        say(question, "allow", error.strerror)
"#;
    let Some(office) = Office::new(body, PATIENT).await else { return };
    let ExtensionReply::Said { reason, .. } = office.reply().await else { panic!("no answer") };
    assert_ne!(reason, "a socket");
    let who = office.house.who;
    let control = Office::under(who, body, PATIENT, &[], Profile::Standard).await.unwrap().reply().await;
    assert_eq!(control, said(Answer::Allow, "a socket"), "the control");
}
