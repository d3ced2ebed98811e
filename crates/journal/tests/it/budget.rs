//! Budgets: reserved with the intent, settled with the outcome, never over the limit, whoever pays.

use crate::support::{Desk, bounded, command, costing, decide, desk, done, paid_by, priced, why};
use bailey_journal::{BeginError, Bound, BudgetScope, Budgets, Exceeded, Receipt, SessionLock, Warrant};
use bailey_policy::Verdict;
use bailey_protocol::{Cost, Labels, Money, Report, SessionId, TurnId};
use bailey_store::params;
use std::{sync::Arc, time::Duration};

async fn reserve(desk: &Desk, session: SessionId, tokens: u64, limit: u64) -> Result<Receipt, BeginError> {
    let begun = desk.begin(costing(session, command("echo"), tokens), limit).await;
    begun.map(|(_permit, receipt)| receipt)
}

async fn settle(desk: &Desk, receipt: Receipt, used: u64) {
    desk.mint.finish(receipt, &done(Report::Nothing), Cost::tokens(used), Vec::new()).await.unwrap();
}

async fn booked(desk: &Desk, session: SessionId) -> (u64, u64) {
    let sql = "SELECT coalesce((SELECT used FROM spent WHERE account = ?1 AND unit = 'tokens'), 0),
        coalesce((SELECT sum(amount) FROM reserved WHERE account = ?1 AND unit = 'tokens'), 0)";
    let id = format!("session:{session}");
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
    assert_eq!(exceeded(refused), (BudgetScope::Session, "tokens".into(), 0, 101, 100));
    let receipt = reserve(&desk, session, 100, 100).await.unwrap();
    let refused = reserve(&desk, session, 1, 100).await;
    assert_eq!(exceeded(refused), (BudgetScope::Session, "tokens".into(), 100, 1, 100));
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
            let begun = mint.begin(sealed, Warrant::Allowed(allowed), why(), &bounded(1000)).await;
            let (used, reserved) = booked(&desk, session).await;
            assert!(used + reserved <= 1000, "{used} used and {reserved} reserved");
            match begun {
                Ok((_permit, receipt)) => {
                    mint.finish(receipt, &done(Report::Nothing), Cost::tokens(30), Vec::new()).await.unwrap();
                    true
                }
                Err(BeginError::Budget(_)) => false,
                Err(other) => panic!("{other}"),
            }
        });
    }
    let begun = running.join_all().await.into_iter().filter(|begun| *begun).count();
    assert_eq!(begun, 33, "as many as fit into 1,000");
    assert_eq!(booked(&desk, session).await, (990, 0));
    desk.journal.verify().await.unwrap();
}

/// Whose budget, its unit, what was taken, what was wanted, what is allowed.
fn exceeded<T>(begun: Result<T, BeginError>) -> (BudgetScope, String, u64, u64, u64) {
    match begun {
        Err(BeginError::Budget(Exceeded { gauge, wanted })) => {
            (gauge.span, gauge.unit, gauge.taken, wanted, gauge.limit)
        }
        Err(other) => panic!("another refusal: {other}"),
        Ok(_) => panic!("it began"),
    }
}

async fn pay(desk: &Desk, session: SessionId, cost: Cost, budgets: &Budgets) -> Result<Receipt, BeginError> {
    let sealed = priced(session, command("echo"), cost);
    let warrant = Warrant::Allowed(desk.allowed(&sealed));
    desk.mint.begin(sealed, warrant, why(), budgets).await.map(|(_permit, receipt)| receipt)
}

fn dollars(nanos: u64) -> Option<Money> {
    Some(Money { nanos, currency: "USD".into() })
}

async fn message(desk: &Desk, session: SessionId, turn: u8) {
    let turn = TurnId::new(1_767_000_000_000, [turn; 10]);
    desk.journal.accept(session, turn, "more", Labels::default()).await.unwrap();
}

/// What is rebuilt from the chain is what is there.
async fn adds_up(desk: &Desk) {
    let rebuilt = desk.journal.rebuild().await.unwrap();
    assert!(rebuilt.repaired.is_empty(), "{rebuilt:?}");
}

#[tokio::test]
async fn money_is_reserved_and_settled_to_the_last_place() {
    let desk = desk().await;
    let session = desk.session().await;
    let budgets = Budgets { session: Bound { tokens: None, money: dollars(100) }, ..Budgets::default() };
    let cost = |nanos| Cost { tokens: 1, money: dollars(nanos) };
    assert_eq!(
        exceeded(pay(&desk, session, cost(101), &budgets).await),
        (BudgetScope::Session, "USD".into(), 0, 101, 100)
    );
    let receipt = pay(&desk, session, cost(100), &budgets).await.unwrap();
    assert_eq!(exceeded(pay(&desk, session, cost(1), &budgets).await).2, 100);
    desk.mint.finish(receipt, &done(Report::Nothing), cost(60), Vec::new()).await.unwrap();
    assert_eq!(exceeded(pay(&desk, session, cost(41), &budgets).await).2, 60);
    drop(pay(&desk, session, cost(40), &budgets).await.unwrap());
    assert_eq!(desk.journal.today().await.unwrap(), [("tokens".to_owned(), 2), ("USD".to_owned(), 100)]);
    // A session's own sum is of what has ended.
    let spent = desk.journal.spent(vec![session]).await.unwrap();
    assert_eq!(spent, [[("tokens".to_owned(), 1), ("USD".to_owned(), 60)]]);
    adds_up(&desk).await;
}

#[tokio::test]
async fn what_nobody_knows_the_price_of_is_not_bought_on_a_budget_of_money() {
    let desk = desk().await;
    let session = desk.session().await;
    let budgets = Budgets { day: Bound { tokens: None, money: dollars(100) }, ..Budgets::default() };
    let euros = Some(Money { nanos: 1, currency: "EUR".into() });
    for money in [None, euros] {
        let refused = pay(&desk, session, Cost { tokens: 1, money }, &budgets).await;
        let Err(error @ BeginError::NoPrice { span: BudgetScope::Day, .. }) = refused else {
            panic!("{refused:?}")
        };
        assert!(error.to_string().contains("models.toml"), "{error}");
    }
    // Nothing is a price; and what uses no model needs none.
    drop(pay(&desk, session, Cost { tokens: 1, money: dollars(0) }, &budgets).await.unwrap());
    drop(pay(&desk, session, Cost::default(), &budgets).await.unwrap());
    // Without a budget in money, the same is begun.
    drop(pay(&desk, session, Cost::tokens(1), &Budgets::default()).await.unwrap());
}

#[tokio::test]
async fn one_call_has_a_limit_of_its_own() {
    let desk = desk().await;
    let session = desk.session().await;
    let budgets = Budgets { call: Bound::tokens(10), ..Budgets::default() };
    assert_eq!(
        exceeded(pay(&desk, session, Cost::tokens(11), &budgets).await),
        (BudgetScope::Call, "tokens".into(), 0, 11, 10)
    );
    for _ in 0..3 {
        drop(pay(&desk, session, Cost::tokens(10), &budgets).await.unwrap());
    }
}

#[tokio::test]
async fn a_turn_begins_with_nothing_used() {
    let desk = desk().await;
    let session = desk.session().await;
    let budgets = Budgets { turn: Bound::tokens(10), session: Bound::tokens(26), ..Budgets::default() };
    message(&desk, session, 1).await;
    let receipt = pay(&desk, session, Cost::tokens(10), &budgets).await.unwrap();
    settle(&desk, receipt, 10).await;
    // A message during the turn starts no other one.
    message(&desk, session, 1).await;
    assert_eq!(exceeded(pay(&desk, session, Cost::tokens(1), &budgets).await).0, BudgetScope::Turn);
    message(&desk, session, 2).await;
    let running = pay(&desk, session, Cost::tokens(6), &budgets).await.unwrap();
    // What still runs when the next turn begins counts there.
    message(&desk, session, 3).await;
    assert_eq!(
        exceeded(pay(&desk, session, Cost::tokens(5), &budgets).await),
        (BudgetScope::Turn, "tokens".into(), 6, 5, 10)
    );
    settle(&desk, running, 6).await;
    assert_eq!(exceeded(pay(&desk, session, Cost::tokens(10), &budgets).await).0, BudgetScope::Turn);
    drop(pay(&desk, session, Cost::tokens(4), &budgets).await.unwrap());
    message(&desk, session, 4).await;
    assert_eq!(
        exceeded(pay(&desk, session, Cost::tokens(7), &budgets).await),
        (BudgetScope::Session, "tokens".into(), 20, 7, 26)
    );
    adds_up(&desk).await;
}

#[tokio::test]
async fn a_day_is_every_sessions_and_ends_at_midnight() {
    let desk = desk().await;
    let (one, other) = (desk.session().await, desk.session().await);
    let budgets = Budgets { day: Bound::tokens(10), ..Budgets::default() };
    let receipt = pay(&desk, one, Cost::tokens(6), &budgets).await.unwrap();
    settle(&desk, receipt, 6).await;
    assert_eq!(
        exceeded(pay(&desk, other, Cost::tokens(5), &budgets).await),
        (BudgetScope::Day, "tokens".into(), 6, 5, 10)
    );
    // A session that is removed gives the day nothing back.
    let lock = SessionLock::take(one, desk.home.path(), &crate::support::holder()).unwrap();
    desk.journal.remove_session(&lock).await.unwrap();
    assert_eq!(exceeded(pay(&desk, other, Cost::tokens(5), &budgets).await).2, 6);
    let late = pay(&desk, other, Cost::tokens(4), &budgets).await.unwrap();
    desk.clock.advance(Duration::from_secs(24 * 60 * 60));
    // It was yesterday's.
    settle(&desk, late, 4).await;
    assert_eq!(desk.journal.today().await.unwrap(), []);
    drop(pay(&desk, other, Cost::tokens(10), &budgets).await.unwrap());
    assert!(pay(&desk, other, Cost::tokens(1), &budgets).await.is_err());
    adds_up(&desk).await;
}

#[tokio::test]
async fn a_part_is_taken_from_the_whole() {
    let desk = desk().await;
    let parent = desk.session().await;
    let child = desk.child(parent, 50).await;
    let grandchild = desk.child(child, 40).await;
    let budgets = bounded(100);
    assert_eq!(exceeded(pay(&desk, grandchild, Cost::tokens(41), &budgets).await).0, BudgetScope::Part);
    let receipt = pay(&desk, grandchild, Cost::tokens(40), &budgets).await.unwrap();
    settle(&desk, receipt, 30).await;
    // It is on the accounts of all three.
    for (session, used) in [(grandchild, 30), (child, 30), (parent, 30)] {
        assert_eq!(booked(&desk, session).await, (used, 0));
    }
    assert_eq!(
        exceeded(pay(&desk, child, Cost::tokens(21), &budgets).await),
        (BudgetScope::Part, "tokens".into(), 30, 21, 50)
    );
    drop(pay(&desk, parent, Cost::tokens(70), &budgets).await.unwrap());
    // The whole is used up, though the part is not.
    assert_eq!(
        exceeded(pay(&desk, child, Cost::tokens(1), &budgets).await),
        (BudgetScope::Session, "tokens".into(), 100, 1, 100)
    );
    adds_up(&desk).await;
    // Without the session that it draws on, nothing is begun.
    let lock = SessionLock::take(parent, desk.home.path(), &crate::support::holder()).unwrap();
    desk.journal.remove_session(&lock).await.unwrap();
    let refused = pay(&desk, child, Cost::tokens(1), &budgets).await;
    assert!(matches!(refused, Err(BeginError::NoSession(_))), "{refused:?}");
}

#[tokio::test]
async fn a_task_has_a_limit_beside_its_part() {
    let desk = desk().await;
    let parent = desk.session().await;
    let (child, other) = (desk.child(parent, 1000).await, desk.child(parent, 1000).await);
    let euros = |nanos| Money { nanos, currency: "EUR".into() };
    let task = Bound { tokens: Some(50), money: Some(euros(70)) };
    let budgets = Budgets { task, ..Budgets::default() };
    let cost = |tokens, nanos| Cost { money: Some(euros(nanos)), ..Cost::tokens(tokens) };
    assert_eq!(
        exceeded(pay(&desk, child, cost(51, 1), &budgets).await),
        (BudgetScope::Task, "tokens".into(), 0, 51, 50)
    );
    drop(pay(&desk, child, cost(20, 60), &budgets).await.unwrap());
    assert_eq!(
        exceeded(pay(&desk, child, cost(1, 11), &budgets).await),
        (BudgetScope::Task, "EUR".into(), 60, 11, 70)
    );
    // Each task has its own, and what is no task has none.
    drop(pay(&desk, other, cost(50, 70), &budgets).await.unwrap());
    drop(pay(&desk, parent, cost(500, 700), &budgets).await.unwrap());
    // The part is a limit of its own.
    let little = desk.child(parent, 10).await;
    assert_eq!(exceeded(pay(&desk, little, cost(11, 1), &budgets).await).0, BudgetScope::Part);
    adds_up(&desk).await;
}

#[tokio::test]
async fn what_a_sub_agent_does_in_its_parents_session_is_paid_from_its_part() {
    let desk = desk().await;
    let parent = desk.session().await;
    let child = desk.child(parent, 50).await;
    let sealed = |tokens| costing(parent, command("echo"), tokens);
    let begin = async |tokens| {
        let sealed = sealed(tokens);
        let warrant = Warrant::Allowed(desk.allowed(&sealed));
        desk.mint
            .begin(sealed, warrant, paid_by(Some(child)), &bounded(100))
            .await
            .map(|(_, receipt)| receipt)
    };
    assert_eq!(exceeded(begin(51).await).0, BudgetScope::Part);
    settle(&desk, begin(50).await.unwrap(), 20).await;
    assert_eq!((booked(&desk, child).await, booked(&desk, parent).await), ((20, 0), (20, 0)));
    assert_eq!(exceeded(begin(31).await).0, BudgetScope::Part);
    // Its parent itself has the rest of the whole.
    drop(pay(&desk, parent, Cost::tokens(80), &bounded(100)).await.unwrap());
    adds_up(&desk).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_parts_never_exceed_the_whole() {
    let desk = Arc::new(desk().await);
    let parent = desk.session().await;
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let desk = desk.clone();
        running.spawn(async move {
            let child = desk.child(parent, 100).await;
            match pay(&desk, child, Cost::tokens(30), &bounded(1000)).await {
                Ok(receipt) => {
                    settle(&desk, receipt, 30).await;
                    true
                }
                Err(BeginError::Budget(_)) => false,
                Err(other) => panic!("{other}"),
            }
        });
    }
    let begun = running.join_all().await.into_iter().filter(|begun| *begun).count();
    assert_eq!((begun, booked(&desk, parent).await), (33, (990, 0)));
}

#[tokio::test]
async fn a_provider_that_counts_beyond_all_numbers_uses_its_budget_up_and_breaks_nothing() {
    let desk = desk().await;
    let budgets =
        Budgets { session: Bound::tokens(u64::MAX), day: Bound::tokens(u64::MAX), ..Budgets::default() };
    for _ in 0..3 {
        let session = desk.session().await;
        let receipt = pay(&desk, session, Cost::tokens(1), &budgets).await.unwrap();
        let used = Cost { tokens: u64::MAX, money: dollars(u64::MAX) };
        desk.mint.finish(receipt, &done(Report::Nothing), used, Vec::new()).await.unwrap();
    }
    let most = i64::MAX as u64;
    assert_eq!(desk.journal.today().await.unwrap(), [("tokens".to_owned(), most), ("USD".to_owned(), most)]);
    let session = desk.session().await;
    let budgets = Budgets { day: Bound::tokens(most), ..Budgets::default() };
    assert_eq!(exceeded(pay(&desk, session, Cost::tokens(1), &budgets).await).0, BudgetScope::Day);
    adds_up(&desk).await;
}
