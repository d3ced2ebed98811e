//! Tokens of a session: reserved with the intent, settled with the outcome, never over the limit.

use crate::support::{Desk, command, costing, decide, desk, done, why};
use bailey_journal::{BeginError, Receipt, SessionLock, Warrant};
use bailey_policy::Verdict;
use bailey_protocol::{Cost, Report, SessionId};
use bailey_store::params;
use std::sync::Arc;

async fn reserve(desk: &Desk, session: SessionId, tokens: u64, limit: u64) -> Result<Receipt, BeginError> {
    let begun = desk.begin(costing(session, command("echo"), tokens), limit).await;
    begun.map(|(_permit, receipt)| receipt)
}

async fn settle(desk: &Desk, receipt: Receipt, used: u64) {
    desk.mint.finish(receipt, &done(Report::Nothing), Cost { tokens: used }, Vec::new()).await.unwrap();
}

async fn booked(desk: &Desk, session: SessionId) -> (u64, u64) {
    let sql = "SELECT tokens_used, tokens_reserved FROM session WHERE id = ?1";
    let id = session.to_string();
    desk.raw()
        .read(move |db| Ok(db.query_row(sql, params![id], |row| Ok((row.get(0)?, row.get(1)?)))?))
        .await
        .unwrap()
}

#[tokio::test]
async fn the_limit_is_exact() {
    let desk = desk().await;
    let session = desk.session().await;
    let refused = reserve(&desk, session, 101, 100).await;
    assert!(matches!(refused, Err(BeginError::Budget { taken: 0, wanted: 101, limit: 100 })));
    let receipt = reserve(&desk, session, 100, 100).await.unwrap();
    let refused = reserve(&desk, session, 1, 100).await;
    assert!(matches!(refused, Err(BeginError::Budget { taken: 100, wanted: 1, limit: 100 })));
    // What was not used is free again.
    settle(&desk, receipt, 60).await;
    assert_eq!(booked(&desk, session).await, (60, 0));
    assert!(reserve(&desk, session, 41, 100).await.is_err());
    drop(reserve(&desk, session, 40, 100).await.unwrap());
}

#[tokio::test]
async fn what_costs_nothing_needs_no_budget() {
    let desk = desk().await;
    let session = desk.session().await;
    let receipt = reserve(&desk, session, 10, 10).await.unwrap();
    settle(&desk, receipt, 10).await;
    drop(reserve(&desk, session, 0, 10).await.unwrap());
    drop(reserve(&desk, session, 0, 0).await.unwrap());
}

#[tokio::test]
async fn a_refusal_reserves_nothing() {
    let desk = desk().await;
    let session = desk.session().await;
    assert!(reserve(&desk, session, 101, 100).await.is_err());
    assert!(reserve(&desk, session, u64::MAX, 100).await.is_err());
    assert_eq!(booked(&desk, session).await, (0, 0));
}

#[tokio::test]
async fn sessions_pay_for_themselves() {
    let desk = desk().await;
    let (one, other) = (desk.session().await, desk.session().await);
    drop(reserve(&desk, one, 100, 100).await.unwrap());
    drop(reserve(&desk, other, 100, 100).await.unwrap());
}

#[tokio::test]
async fn what_was_lost_counts_as_used() {
    let desk = desk().await;
    let session = desk.session().await;
    drop(reserve(&desk, session, 70, 100).await.unwrap());
    let lock = SessionLock::take(session, desk.home.path(), &crate::support::holder()).unwrap();
    for lost in desk.mint.unfinished(&lock).await.unwrap() {
        desk.mint.give_up(&lock, &lost).await.unwrap();
    }
    assert_eq!(booked(&desk, session).await, (70, 0));
    assert!(reserve(&desk, session, 31, 100).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_at_once_never_exceed_the_limit() {
    let desk = Arc::new(desk().await);
    let session = desk.session().await;
    let (_, other) = desk.second().await;
    let other = Arc::new(other);
    let mut running = tokio::task::JoinSet::new();
    for number in 0..50_u64 {
        let (desk, other) = (desk.clone(), other.clone());
        running.spawn(async move {
            let sealed = costing(session, command("echo"), 30);
            let Verdict::Allow(allowed) = decide(&desk.policy, &sealed) else { panic!("not allowed") };
            let mint = if number % 2 == 0 { &desk.mint } else { &other };
            let begun = mint.begin(sealed, Warrant::Allowed(allowed), why(), Cost { tokens: 1000 }).await;
            let (used, reserved) = booked(&desk, session).await;
            assert!(used + reserved <= 1000, "{used} used and {reserved} reserved");
            match begun {
                Ok((_permit, receipt)) => {
                    mint.finish(receipt, &done(Report::Nothing), Cost { tokens: 30 }, Vec::new())
                        .await
                        .unwrap();
                    true
                }
                Err(BeginError::Budget { .. }) => false,
                Err(other) => panic!("{other}"),
            }
        });
    }
    let begun = running.join_all().await.into_iter().filter(|begun| *begun).count();
    assert_eq!(begun, 33, "as many as fit into 1,000");
    assert_eq!(booked(&desk, session).await, (990, 0));
    desk.journal.verify().await.unwrap();
}
