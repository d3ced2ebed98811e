//! One turn, from a message to its end.

use crate::support::{Table, assert_every_call_has_its_result, hands, observations, table};
use bailey_agent::{Brain as _, Loop, TurnEnd};
use bailey_kernel::{Refused, Segment};
use bailey_llm::Wire;
use bailey_protocol::{Answer, ApprovalId, Happening, Outcome, Report, Status};
use bailey_store::{Grade, Migration, Store};
use bailey_testkit::{Bench, Gate, Message, ModelServer, Reply, Setup, output};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Notify;

#[tokio::test]
async fn a_turn_looks_changes_checks_and_answers() {
    for wire in [Wire::Anthropic, Wire::OpenAiChat] {
        let server = ModelServer::start([
            Reply::calls([
                ("r", "fs_read", json!({ "path": "a.txt" })),
                ("l", "fs_list", json!({ "path": "." })),
            ]),
            Reply::calls([("e", "fs_edit", json!({ "path": "a.txt", "old": "one", "new": "two" }))]),
            Reply::calls([("c", "command_run", json!({ "command": "cat a.txt" }))]),
            Reply::text("It says two now."),
        ]);
        let bench = Bench::new(Setup::default().model(&server)).await;
        bench.world.put("a.txt", "one\n");
        let (scope, mut context) = bench.context("make it two").await;
        let hands = hands(&bench, &server, wire, scope);
        let end = Loop::default().turn(&hands, &mut context).await.unwrap();
        assert_eq!(end, TurnEnd::Answered);
        assert_eq!(bench.world.seen("a.txt").as_deref(), Some("two\n"));
        assert_eq!(bench.world.project("a.txt").as_deref(), Some("one\n"), "the project stays as it is");
        assert_every_call_has_its_result(&context);
        let seen = observations(&context);
        assert!(seen[0].1.contains("one") && seen[3].1.contains("two"), "{seen:?}");
        let last = server.requests().pop().unwrap();
        assert!(last.body.contains("exit code: 0") && last.body.contains("make it two"));
    }
}

#[tokio::test]
async fn an_unknown_tool_is_answered_with_what_there_is() {
    let table = table([]).await;
    let seen = table.calls([("c", "fs.raed", json!({})), ("d", "browser.open", json!({}))]).await;
    let answers: Vec<Value> = seen.iter().map(|seen| serde_json::from_str(seen.text()).unwrap()).collect();
    assert!(seen.iter().all(|seen| !seen.is_ok()));
    assert_eq!(answers[0]["unavailable"], "fs.raed");
    assert_eq!(answers[0]["did_you_mean"], "fs_read");
    assert_eq!(answers[1]["did_you_mean"], Value::Null);
    for answer in &answers {
        assert!(answer["why"].is_string());
        let available: Vec<&str> =
            answer["available"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        assert!(available.contains(&"fs_read") && available.contains(&"command_run"), "{available:?}");
        assert_eq!(answer.as_object().unwrap().len(), 4);
    }
    assert_eq!(table.bench.world.spans(), []);
}

#[tokio::test]
async fn a_message_during_a_turn_is_seen_between_its_steps() {
    let gate = Gate::default();
    let call = Message::calls([("c", "command_run", json!({ "command": "echo hi" }))]);
    let mut table = table([Reply::Held(gate.clone(), call), Reply::text("fine")]).await;
    let (server, news, bench) = (table.server.clone(), table.hands.news.clone(), &table.bench);
    let interjecting = async {
        tokio::task::spawn_blocking(move || server.wait_for(1)).await.unwrap();
        crate::support::interject(bench, &news, "use the blue one").await;
        gate.open();
    };
    let brain = Loop::default();
    let (end, ()) = tokio::join!(brain.turn(&table.hands, &mut table.context), interjecting);
    assert_eq!(end.unwrap(), TurnEnd::Answered);
    assert!(!table.request(0).contains("blue"));
    assert!(table.request(1).contains("use the blue one"));
    assert_every_call_has_its_result(&table.context);
}

#[tokio::test]
async fn a_message_during_the_last_answer_is_not_lost() {
    let gate = Gate::default();
    let first = Reply::Held(gate.clone(), Message::text("all done"));
    let mut table = table([first, Reply::text("that too")]).await;
    let (server, news, bench) = (table.server.clone(), table.hands.news.clone(), &table.bench);
    let interjecting = async {
        tokio::task::spawn_blocking(move || server.wait_for(1)).await.unwrap();
        crate::support::interject(bench, &news, "and the blue one").await;
        gate.open();
    };
    let brain = Loop::default();
    let (end, ()) = tokio::join!(brain.turn(&table.hands, &mut table.context), interjecting);
    assert_eq!(end.unwrap(), TurnEnd::Answered);
    assert_eq!(table.server.requests().len(), 2);
    assert!(table.request(1).contains("and the blue one"));
    let Some(Segment::Reply(last)) = table.context.segments().last() else { panic!("no reply at the end") };
    assert_eq!(last.answer().text, "that too");
}

#[tokio::test]
async fn cancelling_gives_every_call_a_result() {
    let calls = Reply::calls([
        ("w", "fs_write", json!({ "path": "a", "content": "x" })),
        ("s", "command_run", json!({ "command": "echo slow" })),
        ("t", "command_run", json!({ "command": "echo later" })),
        ("n", "no_such_tool", json!({})),
    ]);
    let mut table = table([calls, Reply::text("never asked")]).await;
    let begun = Arc::new(Notify::new());
    let tell = begun.clone();
    table.bench.world.hook(move |effect, io| {
        let (tell, cancel) = (tell.clone(), io.cancel.clone());
        Box::pin(async move {
            if effect.action.target() != "echo slow" {
                return None;
            }
            tell.notify_one();
            cancel.cancelled().await;
            Some(Outcome { status: Status::Cancelled, ..output(Report::Nothing) })
        })
    });
    let cancel = table.hands.scope.cancel().clone();
    let cancelling = async {
        begun.notified().await;
        cancel.cancel();
    };
    let brain = Loop::default();
    let (end, ()) = tokio::join!(brain.turn(&table.hands, &mut table.context), cancelling);
    assert_eq!(end.unwrap(), TurnEnd::Cancelled);
    assert_every_call_has_its_result(&table.context);
    let seen = observations(&table.context);
    assert!(seen.iter().any(|(id, text)| *id == "s" && text.starts_with("cancelled: ")), "{seen:?}");
    assert!(seen.iter().any(|(id, text)| *id == "t" && text.contains("before the call began")), "{seen:?}");
    assert_eq!(table.server.requests().len(), 1);
    assert!(!table.bench.world.targets().contains(&"echo later".into()));
}

#[tokio::test]
async fn a_call_that_the_kernel_cannot_begin_still_has_a_result() {
    let table = table([]).await;
    let raw = Store::open(
        &table.bench.database(),
        &[Migration { version: bailey_journal::SCHEMA_VERSION, sql: "" }],
    )
    .unwrap();
    let full = "CREATE TRIGGER full BEFORE INSERT ON entry WHEN NEW.type = 'intent'
                BEGIN SELECT RAISE(ABORT, 'no space left'); END";
    raw.write(Grade::Full, move |tx| Ok(tx.execute_batch(full)?)).await.unwrap();
    let seen = table
        .calls([
            ("a", "command_run", json!({ "command": "echo a" })),
            ("b", "no_such_tool", json!({})),
            ("c", "command_run", json!({ "command": "echo c" })),
        ])
        .await;
    let ids: Vec<&str> = seen.iter().map(|seen| seen.call().0.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert!(seen.iter().all(|seen| !seen.is_ok()));
    assert!(
        seen[0].text().contains("not done") && seen[0].text().contains("no space left"),
        "{}",
        seen[0].text()
    );
    assert_eq!(table.bench.world.spans(), []);
}

#[tokio::test]
async fn a_turn_pauses_at_its_limit_of_calls() {
    let call = |id: &str| Reply::calls([(id, "command_run", json!({ "command": "echo hi" }))]);
    let mut table = table([call("1"), call("2"), call("3"), Reply::text("done")]).await;
    assert_eq!(limited(&mut table, Answer::No).await, TurnEnd::Limit);
    assert_every_call_has_its_result(&table.context);
    assert_eq!(table.bench.world.spans().len(), 2);
    // It goes on from there.
    assert_eq!(table.turn().await.unwrap(), TurnEnd::Answered);
    assert_eq!(table.bench.world.spans().len(), 3);
}

#[tokio::test]
async fn a_turn_goes_on_for_as_many_calls_again_where_a_person_says_so() {
    let call = |id: &str| Reply::calls([(id, "command_run", json!({ "command": "echo hi" }))]);
    let mut table = table([call("1"), call("2"), call("3"), Reply::text("done")]).await;
    assert_eq!(limited(&mut table, Answer::Yes).await, TurnEnd::Answered);
    assert_eq!(table.bench.world.spans().len(), 3);
    assert_eq!(table.bench.facts("asked").await.len(), 1);
    assert_eq!(table.bench.facts("answered").await.len(), 1);
}

#[tokio::test]
async fn cancelling_at_the_limit_ends_the_turn() {
    let call = |id: &str| Reply::calls([(id, "command_run", json!({ "command": "echo hi" }))]);
    let mut table = table([call("1"), call("2")]).await;
    let (cancel, hands) = (table.hands.scope.cancel().clone(), table.hands.clone());
    let cancelling = async {
        asked(&mut table.bench.events).await;
        cancel.cancel();
    };
    let (end, ()) = tokio::join!(TWO.turn(&hands, &mut table.context), cancelling);
    assert_eq!(end.unwrap(), TurnEnd::Cancelled);
}

/// A yes to none again would ask for ever.
#[tokio::test]
async fn a_turn_without_tool_calls_ends_and_asks_nobody() {
    let call = Reply::calls([("1", "command_run", json!({ "command": "echo hi" }))]);
    let mut table = table([call]).await;
    let hands = table.hands.clone();
    let end = Loop { calls_max: 0 }.turn(&hands, &mut table.context).await.unwrap();
    assert_eq!((end, table.bench.world.spans().len()), (TurnEnd::Limit, 0));
    assert_every_call_has_its_result(&table.context);
    assert!(table.bench.facts("asked").await.is_empty());
}

const TWO: Loop = Loop { calls_max: 2 };

/// Runs a turn of at most two calls, and answers at the limit.
async fn limited(table: &mut Table, answer: Answer) -> TurnEnd {
    let hands = table.hands.clone();
    let answering = async {
        let id = asked(&mut table.bench.events).await;
        table.bench.kernel.answer(&table.bench.connection, id, answer, "owner", "").await.unwrap();
    };
    let (end, ()) = tokio::join!(TWO.turn(&hands, &mut table.context), answering);
    end.unwrap()
}

/// The next question that front ends are told of.
async fn asked(events: &mut tokio::sync::mpsc::Receiver<bailey_protocol::Event>) -> ApprovalId {
    loop {
        if let Happening::Ask { id, .. } = events.recv().await.unwrap().happening {
            return id;
        }
    }
}

#[tokio::test]
async fn one_reply_cannot_run_more_calls_than_the_turn_may() {
    let calls = [1, 2, 3].map(|n| (["1", "2", "3"][n - 1], "command_run", json!({ "command": "echo hi" })));
    let mut table = table([Reply::calls(calls)]).await;
    assert_eq!(limited(&mut table, Answer::No).await, TurnEnd::Limit);
    assert_every_call_has_its_result(&table.context);
    assert_eq!(table.bench.world.spans().len(), 2, "the third was not run");
    assert!(observations(&table.context)[2].1.contains("limit of tool calls"));
}

#[tokio::test]
async fn calls_that_share_an_identifier_each_get_their_result() {
    let echo = |text: &str| json!({ "command": format!("echo {text}") });
    let server = ModelServer::start([
        Reply::calls([("same", "command_run", echo("first")), ("same", "command_run", echo("second"))]),
        Reply::text("done"),
    ]);
    let bench = Bench::new(Setup::default().model(&server)).await;
    let (scope, mut context) = bench.context("do both").await;
    let hands = hands(&bench, &server, Wire::Anthropic, scope);
    assert_eq!(Loop::default().turn(&hands, &mut context).await.unwrap(), TurnEnd::Answered);
    assert_every_call_has_its_result(&context);
    let last = server.requests().pop().unwrap().json();
    let results: Vec<&Value> =
        last["messages"].as_array().unwrap().last().unwrap()["content"].as_array().unwrap().iter().collect();
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|result| result["type"] == "tool_result"), "{results:?}");
    assert_ne!(results[0]["tool_use_id"], results[1]["tool_use_id"]);
}

fn notices(table: &mut Table) -> Vec<String> {
    let notice = |event| match event {
        Happening::Notice { text } => Some(text),
        _ => None,
    };
    table.bench.happened().into_iter().filter_map(notice).collect()
}

fn touch(id: &'static str) -> (&'static str, &'static str, Value) {
    (id, "command_run", json!({ "command": format!("echo {id}") }))
}

fn stopped(message: Message, why: &str) -> Reply {
    Reply::Message(Message { stop: Some(why.into()), ..message })
}

#[tokio::test]
async fn a_refused_or_empty_answer_is_told() {
    for reply in [stopped(Message::text(""), "refusal"), stopped(Message::text("That I"), "refusal")] {
        let mut table = table([reply]).await;
        assert_eq!(table.turn().await.unwrap(), TurnEnd::Refused);
        assert_eq!(notices(&mut table), ["the provider refused to answer"]);
    }
    let mut table = table([Reply::text("It is done.")]).await;
    table.turn().await.unwrap();
    assert_eq!(notices(&mut table), [""; 0], "control");
}

#[tokio::test]
async fn calls_of_a_refused_reply_are_not_run() {
    for (why, run, end) in [("refusal", 0, TurnEnd::Refused), ("tool_use", 2, TurnEnd::Answered)] {
        let reply = stopped(Message::calls([touch("a"), touch("b")]), why);
        let mut table = table([reply, Reply::text("done")]).await;
        assert_eq!(table.turn().await.unwrap(), end);
        assert_eq!(table.bench.world.spans().len(), run, "{why}");
        assert_every_call_has_its_result(&table.context);
        let refused =
            observations(&table.context).iter().all(|(_, text)| text.contains("the provider refused"));
        assert_eq!(refused, why == "refusal");
        assert_eq!(notices(&mut table).len(), usize::from(refused));
        assert_eq!(table.server.requests().len(), if refused { 1 } else { 2 });
    }
}

/// The model cannot see that its reply was cut, and would write the same again.
#[tokio::test]
async fn the_call_at_which_a_reply_was_cut_is_not_run_and_said_to_be() {
    for (why, run) in [("max_tokens", 1), ("tool_use", 2)] {
        let reply = stopped(Message::calls([touch("a"), touch("b")]).costs(10, 777), why);
        let mut table = table([reply, Reply::text("done")]).await;
        assert_eq!(table.turn().await.unwrap(), TurnEnd::Answered);
        assert_eq!(table.bench.world.targets(), ["echo a", "echo b"][..run], "{why}");
        assert_every_call_has_its_result(&table.context);
        let seen = observations(&table.context);
        let told =
            "your reply was cut at its limit of 777 tokens before this call was whole; nothing was done";
        assert_eq!(seen[1].1.starts_with(told), why == "max_tokens", "{seen:?}");
        assert!(!seen[0].1.contains("cut"), "{seen:?}");
        assert_eq!(notices(&mut table).len(), 2 - run);
    }
    // A reply that was cut where its only call had just begun: its arguments are empty, and would be taken
    // for meant.
    let begun = Message::calls([("l", "fs_list", json!({}))]);
    let mut table = table([stopped(begun, "max_tokens"), Reply::text("done")]).await;
    table.turn().await.unwrap();
    assert!(observations(&table.context)[0].1.contains("was cut"));
    assert_eq!(notices(&mut table), ["the model's answer was cut at its limit of tokens"]);
}

#[tokio::test]
async fn a_failed_turn_says_why() {
    let mut table = table([Reply::error(400, "invalid_request_error", "messages: wrong")]).await;
    let error = table.turn().await.unwrap_err();
    assert!(matches!(&error, Refused::Model(_)) && error.to_string().contains("messages: wrong"), "{error}");
}
