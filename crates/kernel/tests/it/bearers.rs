//! Who acts by a token: what it opens, what it does not, and when it is over.

use crate::support::{ASK_DEPLOY, Toy, asked, call, done};
use bailey_kernel::{
    CallOutcome, Caveat, Condition, Context, Errand, Glob, Instruction, Macaroon, NewSession, Refused, Scope,
    Standpoint,
};
use bailey_policy::{Policy, built_in_rules};
use bailey_protocol::{Action, Answer, Blob, FileChange, Kind, SandboxId, SessionId, WsPath};
use bailey_testkit::{Bench, FakeClock, Setup};
use std::{sync::Arc, time::Duration};

fn of(kinds: &[Kind], globs: &[&str]) -> Condition {
    let path = Some(globs.iter().map(|glob| Glob::new(glob).unwrap()).collect());
    Condition { action: Some(kinds.into()), path, network: Some(false), ..Condition::default() }
}

fn caveat(scope: Condition) -> Caveat {
    Caveat {
        scope: Some(vec![scope]),
        operations: Some(100),
        expires: Some("2026-01-02T04:00:00Z".parse().unwrap()),
        holder: Some("a test".into()),
        ..Caveat::default()
    }
}

fn change(path: &str) -> Toy {
    let file = FileChange { path: path.into(), base: None, new: Some(Blob::default()) };
    Toy::doing(Action::Change { files: vec![file] })
}

/// A turn, the authority of somebody who acts in it by a token of this scope alone, and the token.
async fn confined(bench: &Bench, scope: Condition) -> (Scope, Context, Macaroon) {
    let (turn, context) = bench.context("go").await;
    let token = bench.kernel.mint_token(&turn, caveat(scope)).await.unwrap();
    (turn.confined(token.clone(), None), context, token)
}

#[tokio::test]
async fn what_a_token_does_not_cover_is_denied_and_a_wider_one_does_it() {
    let bench = Bench::new(Setup::default()).await;
    let src = format!("{}/src/a.rs", Bench::WORKSPACE);
    let docs = format!("{}/docs/a.md", Bench::WORKSPACE);
    let (narrow, context, _) = confined(&bench, of(&[Kind::Read], &["src/**"])).await;
    let (wide, _, _) =
        confined(&bench, of(&[Kind::Read, Kind::Change, Kind::Exec], &["{workspace}/**"])).await;
    let beyond = "its caller acts by a token alone, and this is beyond its scope";
    for (tool, is_covered) in [
        (Toy::read(&src), true),
        (Toy::read(&docs), false),
        (change(&src), false),
        (Toy::run("echo hi"), false),
    ] {
        let seen = done(&bench, &narrow, &context, &tool).await;
        assert_eq!(!seen.text().contains(beyond), is_covered, "{}", seen.text());
        let seen = done(&bench, &wide, &context, &tool).await;
        assert!(!seen.text().contains("denied"), "control: {}", seen.text());
    }
    assert_eq!(bench.facts("denied").await.len(), 3);
}

#[tokio::test]
async fn a_token_is_good_in_its_own_session() {
    let bench = Bench::new(Setup::default()).await;
    let path = format!("{}/a", Bench::WORKSPACE);
    let (scope, context, token) = confined(&bench, of(&[Kind::Read], &["{workspace}/**"])).await;
    let other = SessionId::new(2, [2; 10]);
    let workspace: WsPath = "/other".into();
    let (principal, model) = ("owner".into(), "m".into());
    let new = NewSession { agent: None, confined: None, workspace: workspace.clone(), principal, model };
    bench.journal.open_session(other, new).await.unwrap();
    let there = bench.kernel.turn_of(&bench.registrar.connect(other, workspace, bench.sender.clone()));
    // What it covers, `{workspace}/**`, would be another project there.
    let seen = done(&bench, &there.confined(token, None), &context, &Toy::read("/other/a")).await;
    assert!(seen.text().contains("it was minted in another session"), "{}", seen.text());
    let seen = done(&bench, &scope, &context, &Toy::read(&path)).await;
    assert!(!seen.text().contains("denied"), "control: {}", seen.text());
}

#[tokio::test]
async fn no_token_that_holds_no_effect() {
    let clock = Arc::new(FakeClock::default());
    let bench = Bench::new(Setup { clock: clock.clone(), ..Setup::default() }).await;
    let path = format!("{}/a", Bench::WORKSPACE);
    let (scope, context, token) = confined(&bench, of(&[Kind::Read], &["{workspace}/**"])).await;
    let says = async |scope: &Scope, what: &str| {
        let text = done(&bench, scope, &context, &Toy::read(&path)).await.text().to_owned();
        assert!(text.contains(what), "{text}");
    };
    assert!(!done(&bench, &scope, &context, &Toy::read(&path)).await.text().contains("denied"), "control");
    let walls = SandboxId::new(1, [1; 10]);
    let bound = token.clone().narrow(&Caveat { sandbox: Some(walls), ..Caveat::default() }).unwrap();
    says(&bench.scope().confined(bound.clone(), None), "it belongs to another sandbox").await;
    let here = bench.scope().confined(bound, Some(walls));
    assert!(!done(&bench, &here, &context, &Toy::read(&path)).await.text().contains("denied"), "control");
    let spent = token.clone().narrow(&Caveat { operations: Some(1), ..Caveat::default() }).unwrap();
    let spent = bench.scope().confined(spent, None);
    assert!(!done(&bench, &spent, &context, &Toy::read(&path)).await.text().contains("denied"), "control");
    says(&spent, "its operations are used up").await;
    // A refusal of what it does not cover is a use, too.
    let one =
        token.clone().narrow(&Caveat { operations: Some(1), holder: Some("x".into()), ..Caveat::default() });
    let one = bench.scope().confined(one.unwrap(), None);
    let refused = done(&bench, &one, &context, &Toy::run("echo hi")).await;
    assert!(refused.text().contains("beyond its scope"), "{}", refused.text());
    says(&one, "its operations are used up").await;
    clock.advance(Duration::from_secs(3600));
    says(&scope, "it has expired").await;
    let (scope, _, token) = confined_until(&bench, "2026-01-02T06:00:00Z").await;
    assert!(!done(&bench, &scope, &context, &Toy::read(&path)).await.text().contains("denied"), "control");
    bench.kernel.end_token(&bench.scope(), token.id()).await.unwrap();
    says(&scope, "its token does not hold: it is over").await;
}

#[tokio::test]
async fn one_for_which_nothing_else_is_said_is_for_one_call_within_half_a_minute() {
    let clock = Arc::new(FakeClock::default());
    let bench = Bench::new(Setup { clock: clock.clone(), ..Setup::default() }).await;
    let path = format!("{}/a", Bench::WORKSPACE);
    let scope = || Caveat { scope: Some(vec![of(&[Kind::Read], &["{workspace}/**"])]), ..Caveat::default() };
    let (turn, context) = bench.context("go").await;
    // Half of it is not guessed.
    let now = bench.journal.clock().now();
    for half in [
        Caveat { operations: Some(9), ..scope() },
        Caveat { expires: now.checked_add(Duration::from_secs(9)).ok(), ..scope() },
    ] {
        assert!(bench.kernel.mint_token(&turn, half).await.is_err());
    }
    let minted = async || turn.confined(bench.kernel.mint_token(&turn, scope()).await.unwrap(), None);
    let says = async |scope: &Scope| done(&bench, scope, &context, &Toy::read(&path)).await.text().to_owned();
    let (used, waited, late) = (minted().await, minted().await, minted().await);
    assert!(!says(&used).await.contains("denied"), "control");
    assert!(says(&used).await.contains("its operations are used up"));
    clock.advance(Duration::from_millis(29_999));
    assert!(!says(&waited).await.contains("denied"), "control");
    clock.advance(Duration::from_millis(1));
    assert!(says(&late).await.contains("it has expired"));
}

async fn confined_until(bench: &Bench, end: &str) -> (Scope, Context, Macaroon) {
    let (turn, context) = bench.context("go").await;
    let by = caveat(of(&[Kind::Read], &["{workspace}/**"]));
    let token =
        bench.kernel.mint_token(&turn, Caveat { expires: Some(end.parse().unwrap()), ..by }).await.unwrap();
    (turn.confined(token.clone(), None), context, token)
}

#[tokio::test]
async fn only_what_the_rules_allow_unasked_is_minted_and_nobody_who_acts_by_a_token_mints() {
    let bench = Bench::new(Setup::default().rule(ASK_DEPLOY)).await;
    let turn = bench.scope();
    let mint = async |scope: &Scope, what: Condition| bench.kernel.mint_token(scope, caveat(what)).await;
    let refused = |minted: Result<Macaroon, Refused>, what: &str| {
        let why = minted.unwrap_err().to_string();
        assert!(why.contains(what), "{why}");
    };
    // Every command may be the one that the rules ask about.
    refused(mint(&turn, of(&[Kind::Exec], &["{workspace}/**"])).await, "deployments are looked at");
    refused(mint(&turn, of(&[Kind::Read], &["{home}/**"])).await, "reads outside the workspace");
    let token = mint(&turn, of(&[Kind::Read], &["{workspace}/**"])).await.unwrap();
    let confined = turn.confined(token, None);
    refused(mint(&confined, of(&[Kind::Read], &["{workspace}/**"])).await, "who acts by a token mints none");
    assert_eq!(bench.facts("token_minted").await.len(), 1);
}

#[tokio::test]
async fn it_dies_with_the_rules_and_a_binding_rule_still_asks() {
    let bench = Bench::new(Setup::default()).await;
    let path = format!("{}/a", Bench::WORKSPACE);
    let (scope, context, token) = confined(&bench, of(&[Kind::Read], &["{workspace}/**"])).await;
    // The built-in rule about what looks like a secret is heard at each use; the question is the human's.
    let secret = Toy::read(&format!("{}/.env", Bench::WORKSPACE));
    let id = asked(&bench, &scope, &context, &secret).await;
    bench.kernel.answer(&bench.connection, id, Answer::Yes, "owner", "").await.unwrap();
    let step = bench.kernel.resume(&scope, &context.provenance(), id, &secret, &call("c1")).await.unwrap();
    assert!(matches!(step, CallOutcome::Done(seen) if !seen.text().contains("denied")));
    // Another process puts other rules into force.
    let strict = Policy::new(built_in_rules(), Vec::new());
    let redactor = bench.journal.redactor().clone();
    let clock = Arc::new(FakeClock::default());
    let (_, mint) = bailey_journal::Journal::open(&bench.database(), redactor, clock).await.unwrap();
    mint.adopt(strict.digest()).await.unwrap();
    let seen = done(&bench, &scope, &context, &Toy::read(&path)).await;
    assert!(seen.text().contains("it is over"), "{} {token:?}", seen.text());
}

/// Folders of some frameworks are called as a class of characters is written in a pattern.
#[tokio::test]
async fn a_sub_agents_paths_are_names_and_no_patterns_wherever_the_session_stands() {
    let bench = Bench::new(Setup::default()).await;
    let at = |path: &str| format!("{}/{path}", Bench::WORKSPACE);
    let files = ["app/[slug]/a.txt", "app/[slug]/[id]/a.txt", "app/s/a.txt", "app/[slug]/i/a.txt"].map(at);
    files.iter().for_each(|file| bench.world.put(file, "text"));
    let (_, context) = bench.context("go").await;
    let below = |start: Option<&str>| {
        let start = start.map(|start| WsPath(at(start)));
        bench.kernel.turn_of(&bench.connection.clone().at(Standpoint { start, spelled: None }))
    };
    let delegate = async |scope: &Scope, path: &str| {
        let errand = Errand {
            task: "read".into(),
            tools: vec!["fs.read".into()],
            paths: vec![path.into()],
            operations: 20,
            lasts: Duration::from_secs(60),
            tokens: None,
        };
        let (because, instruction) = (context.provenance(), Instruction::fixed("You are a test."));
        bench.kernel.delegate(scope, &because, &errand, &[Kind::Read], &[], instruction).await
    };
    let slug = Some("app/[slug]");
    for (start, path, is_covered) in [
        (slug, ".", [true, true, false, true]),
        (slug, "./a.txt", [true, false, false, false]),
        (slug, "[id]/**", [false, true, false, false]),
        (slug, &at("app/s"), [false, false, true, false]),
        (Some("app"), "[slug]/", [true, true, false, true]),
        (None, "app/[slug]/[id]", [false, true, false, false]),
        (None, ".", [true; 4]),
    ] {
        let child = delegate(&below(start), path).await.unwrap();
        for (file, is_covered) in files.iter().zip(is_covered) {
            let seen = done(&bench, &child.scope, &child.context, &Toy::read(file)).await;
            let is_beyond = seen.text().contains("beyond its scope");
            assert_eq!(!is_beyond, is_covered, "{start:?} {path} {file}: {}", seen.text());
        }
    }
    for (path, why) in [
        ("*.txt", "files and whole folders"),
        ("[id]/{a,b}", "files and whole folders"),
        ("**", "files and whole folders"),
        ("", "an empty path"),
        ("~/x", "`~` is not expanded"),
        ("../s", "`..`"),
    ] {
        for start in [slug, None] {
            let denied = delegate(&below(start), path).await;
            let Err(Refused::Denied(reasons)) = &denied else { panic!("{path}: {denied:?}") };
            assert!(reasons[0].contains(why), "{path}: {reasons:?}");
        }
    }
}
