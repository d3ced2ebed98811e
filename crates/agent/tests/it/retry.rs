//! Failed model calls, tried again.

use crate::support::{assert_every_call_has_its_result, table, table_at};
use bailey_agent::TurnEnd;
use bailey_journal::Fact;
use bailey_kernel::{ModelErrorKind, Refused};
use bailey_protocol::{Happening, Status};
use bailey_testkit::{FakeClock, Message, ModelServer, Reply, Setup};
use serde_json::json;
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

#[tokio::test]
async fn each_attempt_is_an_effect_of_its_own() {
    let failures = [Reply::error(529, "overloaded_error", "busy"), Reply::Cut(Message::text("half"))];
    let mut table = table(failures.into_iter().chain([Reply::text("done")])).await;
    assert_eq!(table.turn().await.unwrap(), TurnEnd::Answered);
    assert_eq!(table.server.requests().len(), 3);
    let entries = table.bench.entries().await;
    let intents: BTreeSet<_> = entries
        .iter()
        .filter(|entry| entry.entry.fact.name() == "intent")
        .map(|entry| entry.entry.effect)
        .collect();
    assert_eq!(intents.len(), 3);
    let statuses: Vec<bool> = table
        .bench
        .facts("outcome")
        .await
        .iter()
        .map(|fact| matches!(fact, Fact::Outcome { status: Status::Done, .. }))
        .collect();
    // An error of the provider's is an answer; a broken connection is none.
    assert_eq!(statuses, [true, false, true]);
    let notices = table.bench.happened().into_iter().filter_map(|event| match event {
        Happening::Notice { text } => Some(text),
        _ => None,
    });
    assert_eq!(notices.filter(|text| text.contains("trying again")).count(), 2);
}

#[tokio::test]
async fn a_provider_says_how_long_to_wait() {
    for status in [429, 529] {
        let mut table = table([Reply::retry_after(status, "0.3"), Reply::text("done")]).await;
        let began = Instant::now();
        assert_eq!(table.turn().await.unwrap(), TurnEnd::Answered);
        // Its own pause would have been a millisecond.
        assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_told_instead() {
    let mut table = table([Reply::retry_after(429, "3600"), Reply::text("done")]).await;
    let error = table.turn().await.unwrap_err();
    assert!(matches!(error, Refused::Model(error) if error.message.contains("3600 s")));
    assert_eq!(table.server.requests().len(), 1);
}

#[tokio::test]
async fn a_refused_key_is_not_tried_again() {
    let mut table = table([Reply::error(401, "authentication_error", "bad key"), Reply::text("done")]).await;
    let error = table.turn().await.unwrap_err();
    assert!(matches!(error, Refused::Model(error) if error.kind == ModelErrorKind::Auth));
    assert_eq!(table.server.requests().len(), 1);
    assert_eq!(table.bench.facts("intent").await.len(), 1);
}

#[tokio::test]
async fn attempts_have_an_end() {
    let busy = || Reply::error(529, "overloaded_error", "busy");
    let mut table = table([busy(), busy(), busy(), Reply::text("too late")]).await;
    let error = table.turn().await.unwrap_err();
    assert!(matches!(error, Refused::Model(error) if error.kind == ModelErrorKind::Overloaded(None)));
    assert_eq!(table.server.requests().len(), 3);
}

#[tokio::test]
async fn a_pause_can_be_cancelled() {
    let mut table = table([Reply::retry_after(429, "50"), Reply::text("done")]).await;
    let (server, cancel) = (table.server.clone(), table.hands.scope.cancel().clone());
    let cancelling = async {
        tokio::task::spawn_blocking(move || server.wait_for(1)).await.unwrap();
        cancel.cancel();
    };
    let (end, ()) = tokio::join!(table.turn(), cancelling);
    assert_eq!(end.unwrap(), TurnEnd::Cancelled);
}

/// The lid was closed: eight hours pass while the model answers, and its connection is dead. The turn goes
/// on.
#[tokio::test]
async fn after_a_pause_of_hours_and_a_dead_connection_the_turn_goes_on() {
    const PAUSE: Duration = Duration::from_secs(8 * 60 * 60);
    let clock = Arc::new(FakeClock::default());
    let (of_server, asked) = (clock.clone(), AtomicUsize::new(0));
    let read = |id| Reply::calls([(id, "fs_read", json!({ "path": "a.txt" }))]);
    let server = ModelServer::by(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => read("c1"),
        1 => {
            of_server.advance(PAUSE);
            Reply::Cut(Message::text("half"))
        }
        2 => read("c2"),
        _ => Reply::text("done"),
    });
    let mut table = table_at(server, Setup { clock, ..Setup::default() }).await;
    assert_eq!(table.turn().await.unwrap(), TurnEnd::Answered);
    assert_eq!(table.server.requests().len(), 4);
    assert_every_call_has_its_result(&table.context);
    let times: Vec<i64> =
        table.bench.entries().await.iter().map(|recorded| recorded.entry.time.as_second()).collect();
    assert!(times.is_sorted() && times[times.len() - 1] - times[0] >= 8 * 60 * 60, "{times:?}");
    table.bench.kernel.journal().verify().await.unwrap();
}
