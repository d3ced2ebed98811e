//! Opening, turns, what comes during one, and coming back.

use crate::support::{ASK_DEPLOY, Front, open, say, session};
use bailey_agent::TurnEnd;
use bailey_journal::{Entry, Fact, Journal, Payload, Query, Recorded};
use bailey_kernel::{Completion, JournalError, SessionLock, StopReason};
use bailey_protocol::{Answer, Happening, Inbound, Labels, Op, SessionId, Usage};
use bailey_session::{Host, HostError, Opening};
use bailey_testkit::{Bench, Gate, Message, ModelServer, Reply, Setup, tool_call};
use serde_json::json;

#[tokio::test]
async fn a_turn_ends_with_an_event_and_an_entry() {
    let server = ModelServer::start([Reply::text("hello")]);
    let (mut host, mut front, _home) = session(&server).await;
    assert_eq!(host.say(say("hi"), &mut front.heard).await.unwrap(), TurnEnd::Answered);
    let end = |happening: &Happening| match happening {
        Happening::End { reason, error, .. } => Some((reason.clone(), error.clone())),
        _ => None,
    };
    assert_eq!(Front::wait(&mut front.events, end).await, ("answered".into(), None));
    assert!(!host.is_interrupted());
    let entries = front.journal.entries(bailey_journal::Query::default()).await.unwrap();
    assert_eq!(entries.last().unwrap().entry.fact.name(), "turn_ended");
}

#[tokio::test]
async fn a_card_is_answered_over_ops_and_twice_is_once() {
    let deploy = json!({ "argv": ["deploy", "it"] });
    let server = ModelServer::start([Reply::calls([("d", "command_run", deploy)]), Reply::text("done")]);
    let (mut host, front, _home) = session(&server).await;
    let Front { ops, mut heard, mut events, world, .. } = front;
    let answering = async {
        let asked = |happening: &Happening| match happening {
            Happening::Ask { id, .. } => Some(*id),
            _ => None,
        };
        let id = Front::wait(&mut events, asked).await;
        for answer in [Answer::Yes, Answer::No] {
            ops.send(Op::Answer { id, answer, why: String::new(), by: None }).await.unwrap();
        }
    };
    let (end, ()) = tokio::join!(host.say(say("deploy"), &mut heard), answering);
    assert_eq!(end.unwrap(), TurnEnd::Answered);
    let done = world.targets();
    let done: Vec<&str> = done.iter().map(String::as_str).filter(|at| !at.ends_with("AGENTS.md")).collect();
    assert_eq!(done, ["deploy it"]);
}

#[tokio::test]
async fn a_message_that_comes_too_late_waits_for_the_next_turn() {
    let gate = Gate::default();
    let server = std::sync::Arc::new(ModelServer::start([
        Reply::Held(gate.clone(), Message::text("x")),
        Reply::text("y"),
    ]));
    let (mut host, front, _home) = session(&server).await;
    let Front { ops, mut heard, .. } = front;
    let waiting = server.clone();
    // The turn is cancelled while the model still thinks, so that nothing in it can see the message.
    let talking = async {
        tokio::task::spawn_blocking(move || waiting.wait_for(1)).await.unwrap();
        let of_channel = Inbound { key: Some("1".into()), ..say("and the blue one") };
        ops.send(Op::Say(of_channel)).await.unwrap();
        // The owner takes their own message back.
        ops.send(Op::Say(say("and the red one"))).await.unwrap();
        ops.send(Op::TakeBack).await.unwrap();
        ops.send(Op::Say(say("and the green one"))).await.unwrap();
        ops.send(Op::Cancel).await.unwrap();
    };
    let (end, ()) = tokio::join!(host.say(say("hi"), &mut heard), talking);
    assert_eq!(end.unwrap(), TurnEnd::Cancelled);
    gate.open();
    assert!(host.is_interrupted());
    assert_eq!(host.go_on(&mut heard).await.unwrap(), TurnEnd::Answered);
    let seen = server.requests().last().unwrap().body.clone();
    assert!(seen.contains("and the blue one") && !seen.contains("and the red one"), "{seen}");
    assert!(seen.contains("and the green one"), "a message that was not taken back waits: {seen}");
}

#[tokio::test]
async fn a_session_that_somebody_runs_is_refused() {
    let server = ModelServer::start([]);
    let bench = Bench::new(Setup::default().model(&server)).await;
    let folder = tempfile::tempdir().unwrap();
    let held = SessionLock::take(bench.session, folder.path(), &Bench::holder()).unwrap();
    let refused = open(bench, &server, Opening::Resume, folder.path().to_owned()).await.err().unwrap();
    assert!(matches!(refused, HostError::Journal(JournalError::Held { .. })), "{refused}");
    drop(held);
    let bench = Bench::new(Setup::default().model(&server)).await;
    assert!(open(bench, &server, Opening::Resume, folder.path().to_owned()).await.is_ok(), "control");
}

#[tokio::test]
async fn a_resumed_session_remembers_and_a_new_one_does_not() {
    let server = ModelServer::start([Reply::text("hello Ann"), Reply::text("Ann"), Reply::text("who")]);
    let (mut host, mut front, home) = session(&server).await;
    host.say(say("my name is Ann"), &mut front.heard).await.unwrap();
    drop((host, front));
    let bench = Bench::over(home, Setup::default().rule(ASK_DEPLOY).model(&server)).await;
    let folder = bench.home().to_owned();
    let (mut host, mut front, home) = open(bench, &server, Opening::Resume, folder).await.unwrap();
    host.say(say("what is my name?"), &mut front.heard).await.unwrap();
    let body = |number: usize| server.requests().get(number).unwrap().body.clone();
    assert!(body(1).contains("my name is Ann") && body(1).contains("hello Ann"));
    drop((host, front));
    let bench = Bench::over(home, Setup::default().rule(ASK_DEPLOY).model(&server)).await;
    let other = tempfile::tempdir().unwrap();
    let fresh = |_| Opening::New(SessionId::new(2, [8; 10]));
    let (mut host, mut front, _home) = open(bench, &server, fresh, other.path().to_owned()).await.unwrap();
    host.say(say("what is my name?"), &mut front.heard).await.unwrap();
    assert!(!body(2).contains("Ann\""), "{}", body(2));
}

/// How the turns of a session ended, as the journal has it.
async fn ends(journal: &Journal, session: SessionId) -> Vec<String> {
    let entries = journal.entries(Query { session: Some(session), ..Query::default() }).await.unwrap();
    let ended = |it: Recorded| match it.entry.fact {
        Fact::TurnEnded { reason, .. } => Some(reason),
        _ => None,
    };
    entries.into_iter().filter_map(ended).collect()
}

/// A session whose process was killed after its message was accepted, or after its answer was written.
async fn killed(server: &ModelServer, is_answered: bool) -> (Host, Front, tempfile::TempDir) {
    let bench = Bench::new(Setup::default().model(server)).await;
    let (journal, session) = (bench.journal.clone(), bench.session);
    let (_scope, _message) = bench.say("go").await;
    if is_answered {
        let answer = Completion {
            text: "here it is".into(),
            calls: Vec::new(),
            stop: StopReason::Answered,
            usage: Usage::default(),
            cost: None,
            verbatim: serde_json::Value::Null,
        };
        let said = journal.entries(Query { last: Some(1), ..Query::default() }).await.unwrap();
        let labels = Labels { sources: said.iter().map(|it| it.entry.seq).collect(), ..Labels::default() };
        let fact = Fact::Reply { provider: "p".into(), model: "m".into(), labels };
        let entry = Entry::of(session, fact).with(Payload::Json(serde_json::to_value(answer).unwrap()));
        journal.append(entry).await.unwrap();
    }
    let folder = bench.home().to_owned();
    open(bench, server, Opening::Resume, folder).await.unwrap()
}

#[tokio::test]
async fn a_turn_that_was_killed_comes_to_an_end_in_the_journal() {
    // Who says the message again under its name is told that it ended, and waits no more.
    let server = ModelServer::start([Reply::text("here it is")]);
    let (host, front, _home) = killed(&server, true).await;
    assert!(!host.is_interrupted());
    assert_eq!(ends(&front.journal, host.session()).await, ["answered"]);
    // One that has no answer yet has its end when it was gone on with, and not before.
    let (mut host, mut front, _home) = killed(&server, false).await;
    assert!(host.is_interrupted() && ends(&front.journal, host.session()).await.is_empty());
    assert_eq!(host.go_on(&mut front.heard).await.unwrap(), TurnEnd::Answered);
    assert_eq!(ends(&front.journal, host.session()).await, ["answered"]);
}

/// More than a channel of events holds.
const MANY: usize = 1_100;

#[tokio::test]
async fn a_session_with_very_many_open_calls_is_taken_up_though_nobody_listens_yet() {
    let server = ModelServer::start([Reply::text("so many")]);
    let mut bench = Bench::new(Setup::default().model(&server)).await;
    let (_scope, _message) = bench.say("go").await;
    let call = |n: usize| tool_call(&format!("c{n}"), "fs_read", &json!({ "path": "a" }));
    let answer = Completion {
        text: String::new(),
        calls: (0..MANY).map(call).collect(),
        stop: StopReason::Calls,
        usage: Usage::default(),
        cost: None,
        verbatim: serde_json::Value::Null,
    };
    let answer = serde_json::to_value(answer).unwrap();
    let fact = Fact::Reply { provider: "another".into(), model: "model".into(), labels: Labels::default() };
    let entry = Entry::of(bench.session, fact).with(Payload::Json(answer));
    bench.journal.append(entry).await.unwrap();
    let (sender, mut events) = tokio::sync::mpsc::channel(4);
    bench.sender = sender;
    let folder = bench.home().to_owned();
    let (mut host, mut front, _home) = open(bench, &server, Opening::Resume, folder).await.unwrap();
    assert!(matches!(events.recv().await.unwrap().happening, Happening::Session { resumed: true, .. }));
    assert!(events.try_recv().is_err(), "nothing else was told");
    let listening = async { while events.recv().await.is_some_and(|event| !is_end(&event.happening)) {} };
    let (end, ()) = tokio::join!(host.go_on(&mut front.heard), listening);
    assert_eq!(end.unwrap(), TurnEnd::Answered);
    let told = server.requests().last().unwrap().body.matches("it was not begun").count();
    assert_eq!(told, MANY, "each has its result");
}

fn is_end(happening: &Happening) -> bool {
    matches!(happening, Happening::End { .. })
}

#[tokio::test]
async fn a_front_end_that_stops_reading_is_cut_off_and_its_session_goes_on() {
    for (reads, ended) in [(false, false), (true, true)] {
        let call =
            |n: usize| Reply::calls([(format!("c{n}").as_str(), "fs_read", json!({ "path": "a.txt" }))]);
        let server = ModelServer::start((0..10).map(call).chain([Reply::text("done")]));
        let mut bench = Bench::new(Setup::default().model(&server)).await;
        let (sender, mut events) = tokio::sync::mpsc::channel(4);
        bench.sender = sender;
        let folder = bench.home().to_owned();
        let (mut host, mut front, _home) = open(bench, &server, Opening::Resume, folder).await.unwrap();
        front.world.put("a.txt", "there\n");
        let turn = host.say(say("go"), &mut front.heard);
        let turn = tokio::time::timeout(std::time::Duration::from_secs(60), turn);
        let listening = async {
            let mut heard = Vec::new();
            while reads && !heard.last().is_some_and(is_end) {
                heard.push(events.recv().await.unwrap().happening);
            }
            heard
        };
        let (end, mut heard) = tokio::join!(turn, listening);
        assert_eq!(end.unwrap().unwrap(), TurnEnd::Answered);
        // What it missed stands in the journal, and its channel says that there was more.
        drop(host);
        while let Some(event) = events.recv().await {
            heard.push(event.happening);
        }
        assert_eq!(heard.iter().any(is_end), ended, "reads: {reads}");
        assert!(reads || heard.len() <= 5, "{}", heard.len());
        let entries = front.journal.entries(bailey_journal::Query::default()).await.unwrap();
        assert_eq!(entries.last().unwrap().entry.fact.name(), "turn_ended");
    }
}
