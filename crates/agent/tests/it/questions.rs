//! Calls that wait for a human inside a turn.

use crate::support::{ASK_DEPLOY, Table, table_with};
use bailey_agent::Settled;
use bailey_protocol::{Answer, ApprovalId, Happening};
use bailey_testkit::Setup;
use serde_json::{Value, json};

async fn asking() -> Table {
    table_with([], Setup::default().rule(ASK_DEPLOY)).await
}

fn deploy(what: &str) -> Value {
    json!({ "argv": ["deploy", what], "reads": [], "writes": [] })
}

/// The next question that front ends are told of.
async fn question(table: &mut Table) -> ApprovalId {
    next_question(&mut table.bench.events).await
}

async fn next_question(events: &mut tokio::sync::mpsc::Receiver<bailey_protocol::Event>) -> ApprovalId {
    loop {
        if let Happening::Ask { id, .. } = events.recv().await.unwrap().happening {
            return id;
        }
    }
}

/// Answers as the session host does.
async fn answer(hands: &bailey_agent::Hands, by: &bailey_kernel::Connection, id: ApprovalId, answer: Answer) {
    let why = "a test".to_owned();
    hands.kernel.answer(by, id, answer, "owner", &why).await.unwrap();
    hands.questions.settle(id, Settled { answer, why });
}

#[tokio::test]
async fn yes_runs_it_and_no_tells_why_not() {
    for (given, text) in [(Answer::Yes, "exit code: 127"), (Answer::No, "not approved: a test")] {
        let mut table = asking().await;
        let hands = table.hands.clone();
        let context = table.context.clone();
        let running = tokio::spawn(async move {
            let call = bailey_testkit::tool_call("d", "command.run", &deploy("a"));
            hands.calls(&context, &[call], 99).await.unwrap()
        });
        let id = question(&mut table).await;
        assert_eq!(table.bench.world.spans(), []);
        answer(&table.hands, &table.bench.connection, id, given).await;
        let seen = running.await.unwrap();
        assert!(seen[0].text().contains(text), "{}", seen[0].text());
        assert_eq!(table.bench.world.spans().len(), usize::from(given == Answer::Yes));
    }
}

#[tokio::test]
async fn answers_in_any_order_reach_their_calls() {
    let mut table = asking().await;
    let (hands, context) = (table.hands.clone(), table.context.clone());
    let running = tokio::spawn(async move {
        let call = |id: &str| bailey_testkit::tool_call(id, "command.run", &deploy(id));
        hands.calls(&context, &[call("a"), call("b"), call("c")], 99).await.unwrap()
    });
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(question(&mut table).await);
    }
    for id in ids.iter().rev() {
        answer(&table.hands, &table.bench.connection, *id, Answer::Yes).await;
    }
    let seen = running.await.unwrap();
    for (seen, id) in seen.iter().zip(["a", "b", "c"]) {
        assert!(seen.text().contains(&format!("$ deploy {id}")), "{}", seen.text());
    }
}

#[tokio::test]
async fn a_yes_for_the_session_is_not_asked_again() {
    let mut table = asking().await;
    let (hands, context) = (table.hands.clone(), table.context.clone());
    let running = tokio::spawn(async move {
        let call = |id: &str| bailey_testkit::tool_call(id, "command.run", &deploy("a"));
        hands.calls(&context, &[call("1")], 99).await.unwrap();
        hands.calls(&context, &[call("2")], 99).await.unwrap()
    });
    let id = question(&mut table).await;
    answer(&table.hands, &table.bench.connection, id, Answer::YesForSession).await;
    running.await.unwrap();
    assert_eq!(table.bench.world.targets(), ["deploy a", "deploy a"]);
    assert_eq!(table.bench.facts("asked").await.len(), 1);
}

#[tokio::test]
async fn cancelling_ends_the_wait() {
    let mut table = asking().await;
    let (hands, context) = (table.hands.clone(), table.context.clone());
    let running = tokio::spawn(async move {
        let call = bailey_testkit::tool_call("d", "command.run", &deploy("a"));
        hands.calls(&context, &[call], 99).await.unwrap()
    });
    question(&mut table).await;
    table.hands.scope.cancel().cancel();
    let seen = running.await.unwrap();
    assert!(seen[0].text().contains("before answering"), "{}", seen[0].text());
    assert_eq!(table.bench.world.spans(), []);
}
