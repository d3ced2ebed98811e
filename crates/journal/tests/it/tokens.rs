//! The ledger of capability tokens: what a use costs, who wins the last one, and what ends a token.

use crate::support::{Desk, bounded, command, desk, effect, read, stricter};
use bailey_journal::{
    BadToken, BeginError, Circumstances, Entry, Fact, Journal, JournalError, Macaroon, Mint, Payload,
    Presented, Warrant,
};
use bailey_policy::{
    Allowed, Caller, Caveat, Condition, Decided, Facts, InvalidToken, Places, Policy, Verdict,
};
use bailey_protocol::{Action, Kind, Labels, Role, Sealed, SessionId, Timestamp};
use bailey_testkit::FakeClock;
use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

fn kinds(kinds: &[Kind]) -> Option<Vec<Condition>> {
    Some(vec![Condition { action: Some(kinds.into()), ..Condition::default() }])
}

/// For reads and commands until the hour is over.
fn caveat(operations: u64) -> Caveat {
    Caveat {
        scope: kinds(&[Kind::Read, Kind::Exec]),
        expires: Some("2026-01-02T04:00:00Z".parse().unwrap()),
        operations: Some(operations),
        ..Caveat::default()
    }
}

async fn minted(desk: &Desk, session: SessionId, operations: u64) -> Macaroon {
    desk.mint.mint_token(session, desk.policy.digest(), caveat(operations)).await.unwrap()
}

async fn presented(mint: &Mint, token: &Macaroon) -> Presented {
    mint.present(token).await.unwrap().unwrap()
}

async fn left(mint: &Mint, token: &Macaroon) -> u64 {
    presented(mint, token).await.token().operations_left
}

/// The decision of somebody who acts by this token alone.
fn ruled(policy: &Policy, sealed: &Sealed, held: &Presented, now: Timestamp) -> Decided {
    let places = Places { workspace: "/w".into(), ..Places::default() };
    let caller = Caller { is_confined: true, ..Caller::default() };
    let facts = Facts {
        caller: &caller,
        token: Some(held.token()),
        newest: held.newest(),
        ..Facts::new(sealed, now, &places)
    };
    policy.decide(&facts)
}

fn allowed(decided: Decided) -> Allowed {
    match decided.verdict {
        Verdict::Allow(allowed) => allowed,
        other => panic!("{other:?} {:?}", decided.reasons),
    }
}

/// Decides and begins under a token.
async fn begin(
    (journal, mint): (&Journal, &Mint),
    policy: &Policy,
    token: &Macaroon,
    sealed: Sealed,
) -> Result<(), BeginError> {
    let held = presented(mint, token).await;
    let allowed = allowed(ruled(policy, &sealed, &held, journal.clock().now()));
    begin_with(mint, held, allowed, sealed).await
}

async fn begin_with(
    mint: &Mint,
    held: Presented,
    allowed: Allowed,
    sealed: Sealed,
) -> Result<(), BeginError> {
    let uses = Some(held.uses().clone());
    let circumstances = Circumstances { uses, ..crate::support::why() };
    mint.begin(sealed, Warrant::Allowed(allowed), circumstances, &bounded(0)).await.map(drop)
}

/// Mints a token and uses it once.
pub(crate) async fn used_once(desk: &Desk, session: SessionId) {
    let token = minted(desk, session, 3).await;
    begin((&desk.journal, &desk.mint), &desk.policy, &token, effect(session, read("/w/a"))).await.unwrap();
}

#[tokio::test]
async fn each_effect_uses_an_operation_and_the_last_is_the_last() {
    let desk = desk().await;
    let session = desk.session().await;
    let token = minted(&desk, session, 2).await;
    let here = (&desk.journal, &desk.mint);
    for expected in [2, 1] {
        assert_eq!(left(&desk.mint, &token).await, expected);
        begin(here, &desk.policy, &token, effect(session, read("/w/a"))).await.unwrap();
    }
    let held = presented(&desk.mint, &token).await;
    let decided = ruled(&desk.policy, &effect(session, read("/w/a")), &held, desk.journal.clock().now());
    assert_eq!(decided.token, Some(Err(InvalidToken::UsedUp)));
    assert!(matches!(decided.verdict, Verdict::Deny(_)));
}

/// Two handles, as two processes have them, and both decided while one operation was left.
#[tokio::test]
async fn of_two_uses_of_the_last_operation_one_wins() {
    let desk = desk().await;
    let session = desk.session().await;
    let (journal, mint) = desk.second().await;
    let mut won = 0;
    for round in 0..20 {
        let token = minted(&desk, session, 1).await;
        let (one, other) = (effect(session, read("/w/a")), effect(session, read("/w/b")));
        let (held, held_there) = (presented(&desk.mint, &token).await, presented(&mint, &token).await);
        let now = journal.clock().now();
        let here = allowed(ruled(&desk.policy, &one, &held, now));
        let there = allowed(ruled(&desk.policy, &other, &held_there, now));
        let (one, other) = tokio::join!(
            begin_with(&desk.mint, held, here, one),
            begin_with(&mint, held_there, there, other)
        );
        let lost = [&one, &other].into_iter().filter(|begun| matches!(begun, Err(BeginError::Spent))).count();
        let begun = [&one, &other].into_iter().filter(|begun| begun.is_ok()).count();
        assert_eq!((begun, lost), (1, 1), "round {round}: {one:?} {other:?}");
        won += begun;
    }
    assert_eq!(won, 20);
    // Control: without the token's count both begin.
    let allow = |sealed: &Sealed| Warrant::Allowed(desk.allowed(sealed));
    for path in ["/w/a", "/w/b"] {
        let sealed = effect(session, read(path));
        let warrant = allow(&sealed);
        drop(desk.mint.begin(sealed, warrant, crate::support::why(), &bounded(0)).await.unwrap());
    }
}

#[tokio::test]
async fn a_narrowed_one_draws_on_what_it_was_made_from_and_dies_with_it() {
    let desk = desk().await;
    let session = desk.session().await;
    let here = (&desk.journal, &desk.mint);
    let parent = minted(&desk, session, 3).await;
    let narrow = |holder: &str| {
        let by = Caveat { operations: Some(2), holder: Some(holder.into()), ..Caveat::default() };
        parent.clone().narrow(&by).unwrap()
    };
    let (one, other) = (narrow("one"), narrow("other"));
    for _ in 0..2 {
        begin(here, &desk.policy, &one, effect(session, read("/w/a"))).await.unwrap();
    }
    let mint = &desk.mint;
    assert_eq!((left(mint, &one).await, left(mint, &other).await, left(mint, &parent).await), (0, 1, 1));
    begin(here, &desk.policy, &parent, effect(session, read("/w/a"))).await.unwrap();
    assert_eq!(left(mint, &other).await, 0, "what the parent used is gone for its children");
    let token = minted(&desk, session, 9).await;
    let child = token.clone().narrow(&Caveat::default()).unwrap();
    assert_eq!(left(mint, &child).await, 9, "control");
    mint.end_token(session, token.id()).await.unwrap();
    for token in [&token, &child] {
        assert_eq!(mint.present(token).await.unwrap().err(), Some(BadToken::Over));
    }
}

#[tokio::test]
async fn what_was_decided_before_its_end_does_not_begin_after_it() {
    let desk = desk().await;
    let session = desk.session().await;
    for end in [true, false] {
        let token = minted(&desk, session, 9).await;
        let sealed = effect(session, read("/w/a"));
        let held = presented(&desk.mint, &token).await;
        let allowed = allowed(ruled(&desk.policy, &sealed, &held, desk.journal.clock().now()));
        if end {
            desk.mint.end_token(session, token.id()).await.unwrap();
        }
        let begun = begin_with(&desk.mint, held, allowed, sealed).await;
        assert_eq!(matches!(begun, Err(BeginError::Spent)), end, "{begun:?}");
    }
}

#[tokio::test]
async fn a_refusal_uses_an_operation_too() {
    let desk = desk().await;
    let session = desk.session().await;
    let token = minted(&desk, session, 3).await;
    let sealed = effect(session, command("deploy"));
    let held = presented(&desk.mint, &token).await;
    let denied = |under| {
        let effect = sealed.effect();
        let fact = Fact::Denied {
            kind: effect.action.kind(),
            target: effect.action.target(),
            digest: sealed.digest(),
            reasons: vec!["a test".into()],
            call: None,
            role: Role::Agent,
            labels: Labels::default(),
            under,
        };
        Entry::of(session, fact).about(effect.id).with(Payload::Text("{}".into()))
    };
    desk.mint.deny(denied(None)).await.unwrap();
    assert_eq!(left(&desk.mint, &token).await, 3, "control");
    desk.mint.deny(denied(Some(held.uses().under()))).await.unwrap();
    assert_eq!(left(&desk.mint, &token).await, 2);
}

#[tokio::test]
async fn it_is_over_when_the_rules_change_also_when_they_change_back() {
    let desk = desk().await;
    let session = desk.session().await;
    let token = minted(&desk, session, 3).await;
    presented(&desk.mint, &token).await;
    let old = desk.mint.mint_token(session, stricter().digest(), caveat(3)).await;
    assert!(matches!(old, Err(JournalError::Token(BadToken::Over))), "those rules are not in force");
    desk.mint.adopt(stricter().digest()).await.unwrap();
    assert_eq!(desk.mint.present(&token).await.unwrap().err(), Some(BadToken::Over));
    desk.mint.adopt(desk.policy.digest()).await.unwrap();
    assert_eq!(desk.mint.present(&token).await.unwrap().err(), Some(BadToken::Over));
    // Control: one that is minted under these rules holds.
    presented(&desk.mint, &minted(&desk, session, 3).await).await;
}

#[tokio::test]
async fn a_clock_that_was_put_back_revives_nothing() {
    let desk = desk().await;
    let session = desk.session().await;
    let token = minted(&desk, session, 3).await;
    desk.clock.advance(Duration::from_secs(7200));
    let sealed = effect(session, read("/w/a"));
    let ruled_at = |held: &Presented, now| ruled(&desk.policy, &sealed, held, now).token.unwrap();
    let held = presented(&desk.mint, &token).await;
    assert_eq!(ruled_at(&held, desk.journal.clock().now()), Err(InvalidToken::Expired));
    // Something is written at that hour, and something else when the clock was put back.
    desk.session().await;
    let back = Arc::new(FakeClock::at("2026-01-02T03:30:00Z"));
    let redactor = desk.journal.redactor().clone();
    let (journal, mint) = Journal::open(&desk.path(), redactor, back).await.unwrap();
    journal.resume_session(session, "p/m".into()).await.unwrap();
    let held = presented(&mint, &token).await;
    assert_eq!(ruled_at(&held, journal.clock().now()), Err(InvalidToken::ClockBehind));
    // Control: at that time it holds where the clock never was ahead.
    let desk = crate::support::desk().await;
    let session = desk.session().await;
    let token = minted(&desk, session, 3).await;
    let held = presented(&desk.mint, &token).await;
    assert_eq!(ruled_at(&held, journal.clock().now()), Ok(()));
}

#[tokio::test]
async fn a_token_of_another_home_is_forged_here() {
    let (one, other) = (desk().await, desk().await);
    let token = minted(&one, one.session().await, 3).await;
    assert_eq!(other.mint.present(&token).await.unwrap().err(), Some(BadToken::Forged));
    let text = token.text();
    let read = Macaroon::parse(&text).unwrap();
    let (_, mint) = one.second().await;
    presented(&mint, &read).await;
}

#[tokio::test]
async fn what_has_no_scope_no_end_or_no_number_of_operations_is_not_minted() {
    let desk = desk().await;
    let session = desk.session().await;
    let lacks = [
        Caveat { scope: None, ..caveat(1) },
        Caveat { expires: None, ..caveat(1) },
        Caveat { operations: None, ..caveat(1) },
    ];
    for caveat in lacks {
        let minted = desk.mint.mint_token(session, desk.policy.digest(), caveat).await;
        assert!(matches!(minted, Err(JournalError::Token(BadToken::Caveat(_)))), "{minted:?}");
    }
}

#[tokio::test]
async fn a_rebuild_and_a_removal_know_tokens() {
    let desk = desk().await;
    let session = desk.session().await;
    let (token, over) = (minted(&desk, session, 3).await, minted(&desk, session, 3).await);
    begin((&desk.journal, &desk.mint), &desk.policy, &token, effect(session, read("/w/a"))).await.unwrap();
    desk.mint.end_token(session, over.id()).await.unwrap();
    let rebuilt = desk.journal.rebuild().await.unwrap();
    assert!(rebuilt.repaired.is_empty(), "{rebuilt:?}");
    assert_eq!((rebuilt.rows["token"], rebuilt.rows["token_use"]), (2, 1));
    desk.tamper(|tx| tx.execute("DELETE FROM token_use", []).unwrap()).await;
    assert_eq!(left(&desk.mint, &token).await, 3, "somebody gave it back what it had used");
    assert_eq!(desk.journal.rebuild().await.unwrap().repaired["token_use"], 1);
    assert_eq!(left(&desk.mint, &token).await, 2);
    let lock =
        bailey_journal::SessionLock::take(session, desk.home.path(), &crate::support::holder()).unwrap();
    desk.journal.remove_session(&lock).await.unwrap();
    assert_eq!(desk.mint.present(&token).await.unwrap().err(), Some(BadToken::Unknown));
}

/// The variables that hand a child its journal and token.
const JOURNAL: &str = "BAILEY_JOURNAL_TEST_JOURNAL";
const TOKEN: &str = "BAILEY_JOURNAL_TEST_TOKEN";

/// Another process uses the token until it is killed in the middle; what it was told had begun is used.
#[tokio::test]
async fn uses_survive_kill_9() {
    let desk = desk().await;
    let session = desk.session().await;
    let token = minted(&desk, session, 100_000).await;
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["tokens::use_until_killed", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(JOURNAL, desk.path())
        .env(TOKEN, format!("{session} {}", *token.text()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let told = lines.map_while(Result::ok).filter(|line| line == "begun").take(20).count();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(told, 20);
    let raw = desk.raw();
    let intents = raw.read(|db| {
        Ok(db.query_row("SELECT count(*) FROM entry WHERE type = 'intent'", [], |row| row.get::<_, u64>(0))?)
    });
    let (intents, left) = (intents.await.unwrap(), left(&desk.mint, &token).await);
    assert!(intents >= 20, "{intents}");
    assert_eq!(left, 100_000 - intents, "a use for each intent, and an intent for each use");
}

#[tokio::test]
#[ignore = "run as a child by `uses_survive_kill_9`"]
async fn use_until_killed() {
    let (Ok(path), Ok(given)) = (std::env::var(JOURNAL), std::env::var(TOKEN)) else { return };
    let (session, token) = given.split_once(' ').unwrap();
    let (session, token) = (SessionId::parse(session).unwrap(), Macaroon::parse(token).unwrap());
    let redactor = bailey_secrets::Redactor::new(&bailey_secrets::Vault::default());
    let clock = Arc::new(FakeClock::default());
    let (journal, mint) = Journal::open(path.as_ref(), redactor, clock).await.unwrap();
    let policy = crate::support::policy(crate::support::RULES);
    for _ in 0..100_000 {
        begin((&journal, &mint), &policy, &token, effect_of_child(session)).await.unwrap();
        println!("begun");
    }
}

/// Numbered apart from those of the other process.
fn effect_of_child(session: SessionId) -> Sealed {
    let mut effect = effect(session, Action::Read { path: "/w/a".into() }).into_effect();
    let mut random = [0; 10];
    getrandom::fill(&mut random).unwrap();
    effect.id = bailey_protocol::EffectId::new(1_767_000_000_001, random);
    Sealed::new(effect).unwrap()
}
