//! Budgets in a turn: the model is warned, the turn comes to an end that can be continued, and no answer that
//! was begun is free.

use crate::support::{Table, hands, table_at};
use bailey_agent::{Models, TurnEnd};
use bailey_journal::Fact;
use bailey_kernel::{BeginError, Bound, Budgets, Price, Refused, Segment, recall};
use bailey_llm::{Endpoint, Wire};
use bailey_protocol::{Action, Happening, Money};
use bailey_testkit::{Bench, Message, ModelServer, Reply, Setup};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Does 120 steps; each costs 2,000 tokens by the server's count.
fn tireless() -> ModelServer {
    let steps = AtomicUsize::new(0);
    ModelServer::by(move |_| {
        let step = steps.fetch_add(1, Ordering::Relaxed);
        if step == 120 {
            return Reply::text("done");
        }
        let call = format!("call-{step}");
        Reply::Message(Message::calls([(&*call, "fs_exists", json!({ "path": "a" }))]).costs(1_500, 500))
    })
}

async fn spent_on(setup: Setup) -> (Table, TurnEnd) {
    let mut table = table_at(tireless(), setup).await;
    let end = table.turn().await.unwrap();
    (table, end)
}

fn told(table: &Table) -> Vec<String> {
    let notes = table.context.segments().iter().filter(|segment| matches!(segment, Segment::Note(_)));
    notes.map(|note| note.seen().into_owned()).collect()
}

fn notices(table: &mut Table) -> Vec<String> {
    let happened = table.bench.happened().into_iter();
    happened
        .filter_map(|happening| match happening {
            Happening::Notice { text } => Some(text),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_turn_is_warned_three_times_and_then_ends() {
    let (mut table, end) = spent_on(Setup { limit: 250_000, ..Setup::default() }).await;
    assert_eq!(end, TurnEnd::Budget);
    let told = told(&table);
    assert_eq!(told.len(), 3, "{told:?}");
    for (note, advice) in told.iter().zip(["Be sparing", "Come to an end", "Finish now"]) {
        assert!(note.starts_with("[Bailey: ") && note.contains("% of the budget of the session"), "{note}");
        assert!(note.contains(advice), "{note}");
    }
    // The model saw them; after the last one nothing more may have fitted.
    let requests = table.server.requests();
    let last = requests.last().unwrap().json()["messages"].to_string();
    assert!(told.iter().take(2).all(|note| last.contains(note.as_str())), "{last}");
    assert_eq!(table.bench.facts("warned").await.len(), 3);
    // The person is told where more of it is to be had.
    let notices = notices(&mut table);
    assert!(notices.iter().any(|text| text.contains("raise `limits.session_tokens`")), "{notices:?}");
    // A session that is resumed says the same again.
    let before = format!("{:?}", table.context.segments());
    let instruction = table.context.instruction().clone();
    let restored = recall(&table.bench.journal, table.bench.session, instruction).await.unwrap();
    assert_eq!(format!("{:?}", restored.segments()), before);
    // And the turn ends at once as long as there is no more.
    assert_eq!(table.turn().await.unwrap(), TurnEnd::Budget);
    assert_eq!(table.server.requests().len(), requests.len());
}

#[tokio::test]
async fn with_enough_nobody_is_warned() {
    let (table, end) = spent_on(Setup { limit: 100_000_000, ..Setup::default() }).await;
    assert_eq!((end, told(&table)), (TurnEnd::Answered, Vec::new()));
}

#[tokio::test]
async fn each_budget_ends_a_turn_and_says_which_it_was() {
    let only = |budgets| Setup { limit: 100_000_000, budgets, ..Setup::default() };
    let bound = Bound::tokens(20_000);
    for (budgets, setting) in [
        (Budgets { turn: bound.clone(), ..Budgets::default() }, "limits.turn_tokens"),
        (Budgets { day: bound, ..Budgets::default() }, "limits.day_tokens"),
        (Budgets { call: Bound::tokens(100), ..Budgets::default() }, "limits.call_tokens"),
    ] {
        let (mut table, end) = spent_on(only(budgets)).await;
        assert_eq!(end, TurnEnd::Budget, "{setting}");
        let notices = notices(&mut table);
        assert!(notices.iter().any(|text| text.contains(setting)), "{setting}: {notices:?}");
    }
}

#[tokio::test]
async fn a_budget_in_money_ends_a_turn() {
    let dollars = |nanos| Money { nanos, currency: "USD".into() };
    // Ten cents; a step of 2,000 tokens at 3 and 15 dollars a million comes to 1.2 cents.
    let day = Bound { tokens: None, money: Some(dollars(100_000_000)) };
    let setup =
        Setup { limit: 100_000_000, budgets: Budgets { day, ..Budgets::default() }, ..Setup::default() };
    let price = Price {
        currency: "USD".into(),
        above_tokens: 0,
        input: 3_000_000_000,
        output: 15_000_000_000,
        cache_read: 0,
        cache_write: 3_000_000_000,
    };
    let server = tireless();
    let endpoint = Endpoint {
        prices: vec![price],
        ..Bench::new(setup.clone().model(&server))
            .await
            .provider(&server, Wire::Anthropic, 1000)
            .endpoint()
            .clone()
    };
    let mut table = table_at(server, setup.clone()).await;
    table.hands.models = Models::only(bailey_llm::provider(endpoint));
    assert_eq!(table.turn().await.unwrap(), TurnEnd::Budget);
    let steps = table.server.requests().len();
    assert!((3..=8).contains(&steps), "{steps} steps for ten cents");
    let spent = table.bench.journal.today().await.unwrap();
    let cents = spent.iter().find(|(unit, _)| unit == "USD").unwrap().1;
    assert!((36_000_000..=100_000_000).contains(&cents), "{spent:?}");
    let told = told(&table);
    assert!(told.iter().any(|note| note.contains("0.1000 USD")), "{told:?}");
    // Without a price, nothing is bought at all.
    let mut table = table_at(tireless(), setup).await;
    let refused = table.turn().await;
    assert!(matches!(refused, Err(Refused::Begin(BeginError::NoPrice { .. }))), "{refused:?}");
    assert_eq!(table.server.requests().len(), 0);
}

/// A server that begins every answer and breaks it off.
async fn storm(limit: u64) -> (usize, Refused) {
    let server = ModelServer::always(Reply::Cut(Message::text("half")));
    let bench = Bench::new(Setup { limit, ..Setup::default() }.model(&server)).await;
    let (scope, context) = bench.context("please").await;
    let hands = hands(&bench, &server, Wire::Anthropic, scope);
    for _ in 0..20 {
        match hands.converse(&context).await {
            Err(Refused::Model(_)) => {}
            Err(refused) => return (server.requests().len(), refused),
            Ok(reply) => panic!("a whole reply: {reply:?}"),
        }
    }
    (server.requests().len(), Refused::Cancelled)
}

#[tokio::test]
async fn a_storm_of_retries_uses_its_budget_up() {
    let (asked, refused) = storm(20_000).await;
    assert!(matches!(refused, Refused::Begin(BeginError::Budget(_))), "{refused:?}");
    // Each may have written its 1,000 tokens, and counts as if it had.
    assert!((1..=20).contains(&asked), "{asked} requests");
    // Control: with more, the same storm goes on.
    let (more, _) = storm(10_000_000).await;
    assert_eq!(more, 60);
}

#[tokio::test]
async fn what_is_reserved_is_the_whole_request() {
    let (table, _) = spent_on(Setup { limit: 60_000, ..Setup::default() }).await;
    for recorded in table.bench.entries().await {
        let Fact::Intent { reserved, .. } = &recorded.entry.fact else { continue };
        let effect: bailey_protocol::Effect =
            serde_json::from_slice(recorded.payload.as_deref().unwrap()).unwrap();
        if matches!(effect.action, Action::Model { .. }) {
            assert!(reserved.tokens > 1_000, "{reserved:?}");
        }
    }
}
