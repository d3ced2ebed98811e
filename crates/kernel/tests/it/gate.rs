//! The gate's own steps: what a scope brings into a decision, what is asked about at all, and what its answer
//! says.

use crate::support::{ASK_DEPLOY, Toy, asked, call, done};
use bailey_kernel::{
    Acted, BoxFuture, CallOutcome, Caveat, Claims, Conclusion, Condition, Glob, Offered, Output, Permit,
    Plan, RED_FILES_MAX, Redactor, Tool, extension::ExtensionOutcome, program::Program,
};
use bailey_policy::{Late, Policy, Trust, built_in_rules, file};
use bailey_protocol::{
    Action, Answer, Digest, Happening, Kind, Merge, MergeFile, MergeKind, SessionId, ToolCall, ToolEffect,
    ToolSpec, WsPath, event::Verdict,
};
use bailey_testkit::{Bench, Setup};
use serde_json::Value;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::oneshot;

/// A token for reads in the project.
fn reads() -> Caveat {
    let path = Some(vec![Glob::new("{workspace}/**").unwrap()]);
    let scope = Condition { action: Some(vec![Kind::Read]), path, ..Condition::default() };
    Caveat {
        scope: Some(vec![scope]),
        operations: Some(10),
        expires: Some("2026-01-02T04:00:00Z".parse().unwrap()),
        holder: Some("a test".into()),
        ..Caveat::default()
    }
}

fn workspace(name: &str) -> WsPath {
    WsPath(format!("{}/{name}", Bench::WORKSPACE))
}

fn reasons(bench: &mut Bench) -> Vec<String> {
    let card = bench.happened().into_iter().find_map(|event| match event {
        Happening::Ask { card, .. } => Some(card),
        _ => None,
    });
    card.unwrap().reasons
}

#[tokio::test]
async fn who_acts_by_a_token_ends_alone_and_with_the_turn_it_is_part_of() {
    let bench = Bench::new(Setup::default()).await;
    let (turn, _) = bench.context("go").await;
    let token = bench.kernel.mint_token(&turn, reads()).await.unwrap();
    turn.confined(token.clone(), None).cancel().cancel();
    assert!(!turn.cancel().is_cancelled());
    let another = turn.confined(token, None);
    turn.cancel().cancel();
    assert!(another.cancel().is_cancelled());
}

#[tokio::test]
async fn a_card_says_who_asks_and_only_the_reasons_that_decide() {
    let mut bench = Bench::new(Setup::default()).await;
    bench.world.put(".env", "KEY=1");
    let (turn, context) = bench.context("go").await;
    let secret = Toy::read(&workspace(".env").0);
    asked(&bench, &turn, &context, &secret).await;
    // Another rule allows reads in the project: that is no reason to ask.
    let own = reasons(&mut bench);
    assert!(own.len() == 1 && own[0].contains("looks like a secret"), "{own:?}");
    let token = bench.kernel.mint_token(&turn, reads()).await.unwrap();
    asked(&bench, &turn.confined(token, None), &context, &secret).await;
    assert_eq!(reasons(&mut bench), [own[0].as_str(), "asked by a test"]);
}

#[tokio::test]
async fn a_masked_file_is_asked_about_until_it_was_revealed() {
    let bench = Bench::new(Setup::default()).await;
    bench.world.put(".env", "KEY=1");
    let (scope, context) = bench.context("go").await;
    let secret = Toy::read(&workspace(".env").0);
    let id = asked(&bench, &scope, &context, &secret).await;
    bench.kernel.answer(&bench.connection, id, Answer::No, "owner", "").await.unwrap();
    asked(&bench, &scope, &context, &secret).await;
    bench.journal.reveal(bench.session, workspace(".env")).await.unwrap();
    assert_eq!(done(&bench, &scope, &context, &secret).await.text(), "KEY=1");
}

#[tokio::test]
async fn rules_of_one_session_narrow_it_beside_the_others() {
    let narrowing = file::parse("project.toml", ASK_DEPLOY, file::Format::Toml).unwrap().rules;
    for narrowing in [narrowing, Vec::new()] {
        let narrows = !narrowing.is_empty();
        let bench = Bench::new(Setup { narrowing, ..Setup::default() }).await;
        let (scope, context) = bench.context("go").await;
        match narrows {
            true => drop(asked(&bench, &scope, &context, &Toy::run("deploy a")).await),
            false => drop(done(&bench, &scope, &context, &Toy::run("deploy a")).await),
        }
    }
}

/// A rule for other programs' tools that are trusted as far as the project's own agent.
const LOOKUPS: &str = r#"
[[rule]]
name = "lookups"
answer = "allow"
reason = "it only looks something up"
match = { action = "tool", tool = "look_*", trust = "internal" }
"#;

#[tokio::test]
async fn another_programs_tools_are_judged_by_its_trust_and_under_its_tokens() {
    let bench = Bench::new(Setup { rules: LOOKUPS.into(), ..Setup::default() }).await;
    let mut number = 0;
    let mut judged = async |trust| {
        number += 1;
        let session = SessionId::new(number, [9; 10]);
        let connection = bench.registrar.connect(session, Bench::WORKSPACE.into(), bench.sender.clone());
        let scope = bench.registrar.client(&connection, trust);
        let tools = vec![Offered { name: "look_up".into(), effect: ToolEffect::Read }];
        let mut task = bench.kernel.begin_task(&connection, scope, "a task".into(), tools).await.unwrap();
        let judgement = bench.kernel.judge(&mut task, "look_up", "{}").await.unwrap();
        let minted = bench.facts("token_minted").await.len();
        bench.kernel.end_task(task).await.unwrap();
        (judgement.verdict, judgement.reasons, minted)
    };
    let (verdict, reasons, minted) = judged(Some(Trust::Internal)).await;
    assert_eq!((verdict, minted), (bailey_protocol::Verdict::Allowed, 1));
    assert!(reasons.iter().any(|reason| reason.contains("token")), "{reasons:?}");
    // By its role alone another program is not trusted.
    let (verdict, reasons, minted) = judged(None).await;
    assert_eq!((verdict, minted), (bailey_protocol::Verdict::Denied, 1), "{reasons:?}");
}

#[tokio::test]
async fn what_the_rules_deny_is_denied_by_them_also_where_nobody_performs_it() {
    let bench = Bench::new(Setup { bare: true, ..Setup::default() }).await;
    let (scope, context) = bench.context("go").await;
    let seen = done(&bench, &scope, &context, &Toy::read("/home/ann/.ssh/id_ed25519")).await;
    assert!(seen.text().contains("credentials"), "{}", seen.text());
    let seen = done(&bench, &scope, &context, &Toy::run("echo hi")).await;
    assert!(seen.text().contains("nobody here performs"), "control: {}", seen.text());
}

/// A tool that means to change what it reads.
struct Rewrites(Toy);

impl Tool for Rewrites {
    fn spec(&self) -> ToolSpec {
        self.0.spec()
    }

    fn claims(&self, _: &ToolCall) -> Claims {
        Claims { writes: vec!["/".into()], ..Claims::default() }
    }

    fn plan(&self, call: &ToolCall, seen: &[Output]) -> Plan {
        self.0.plan(call, seen)
    }

    fn conclude(&self, call: &ToolCall, seen: &[Output], output: &Output, redactor: &Redactor) -> Conclusion {
        self.0.conclude(call, seen, output, redactor)
    }
}

#[tokio::test]
async fn nobody_is_asked_to_read_what_could_not_be_changed_then() {
    let bench = Bench::new(Setup::default()).await;
    bench.world.put(".env", "KEY=1");
    let (scope, context) = bench.context("go").await;
    let outside = "/home/ann/notes.txt";
    let secret = workspace(".env").0;
    let step = async |tool: &dyn Tool| {
        bench.kernel.call(&scope, &context.provenance(), tool, &call("c1")).await.unwrap()
    };
    let step_of = async |path: &str| step(&Rewrites(reading(path))).await;
    let CallOutcome::Done(seen) = step_of(outside).await else { panic!("it was asked") };
    assert!(seen.text().starts_with("denied: writes outside the workspace"), "{}", seen.text());
    // Only to read it, a human may say yes; and what may be changed may be read for it.
    assert!(matches!(step(&reading(outside)).await, CallOutcome::Waiting(_)));
    assert!(matches!(step_of(&secret).await, CallOutcome::Waiting(_)));
    // No person is asked about a file that does not exist.
    let CallOutcome::Done(seen) = step(&reading(&workspace("sub/.env").0)).await else {
        panic!("it was asked")
    };
    assert!(seen.text().contains("does not exist"), "{}", seen.text());
}

/// A tool that reads a file before it does anything.
fn reading(path: &str) -> Toy {
    let path = path.to_owned();
    Toy::new(move |seen| match seen {
        [] => Plan::Need(vec![Action::Read { path: WsPath(path.clone()) }]),
        _ => Plan::Refuse("it was read".into()),
    })
}

fn merge(direction: MergeKind, files: usize) -> Action {
    let file = |n| MergeFile::whole(workspace(&format!("{n:03}/Cargo.toml")), None, Some(Digest::of(b"new")));
    Action::Merge(Merge::of_files(direction, None, (0..files).map(file).collect()))
}

#[tokio::test]
async fn a_card_names_each_red_file_or_there_is_none() {
    let bench = Bench::new(Setup::default()).await;
    let owner = bench.registrar.owner(&bench.connection);
    let act = async |direction, files| bench.kernel.act(&owner, merge(direction, files), &[]).await.unwrap();
    let most = act(MergeKind::Apply, RED_FILES_MAX).await;
    assert!(matches!(most, Acted::Waiting(_)), "{most:?}");
    let Acted::Denied(why) = act(MergeKind::Apply, RED_FILES_MAX + 1).await else { panic!("it was asked") };
    assert!(why[0].starts_with("101 of these files are Red, and a card names 100 at most"), "{why:?}");
    let undo = act(MergeKind::Undo, RED_FILES_MAX + 1).await;
    assert!(!matches!(undo, Acted::Denied(_)), "{undo:?}");
}

#[tokio::test]
async fn a_long_line_of_a_shell_is_asked_about() {
    let bench = Bench::new(Setup::default().rule(ASK_DEPLOY)).await;
    let owner = bench.registrar.owner(&bench.connection);
    for parts in [1, RED_FILES_MAX + 1] {
        let Action::Exec(mut command) = crate::support::command("sh -c") else { panic!("a command") };
        command.argv.push("deploy a;".repeat(parts));
        let acted = bench.kernel.act(&owner, Action::Exec(command), &[]).await.unwrap();
        assert!(matches!(acted, Acted::Waiting(_)), "{parts}: {acted:?}");
    }
}

/// An extension that runs already, denies, and counts how often it was asked.
#[derive(Default)]
struct Denies(AtomicUsize);

impl bailey_kernel::program::Programs for Denies {
    fn runs(&self, _: &str) -> bool {
        true
    }

    fn program<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Option<Program>> {
        Box::pin(async { None })
    }

    fn start<'a>(
        &'a self,
        _: &'a str,
        _: Permit,
        _: Option<bailey_kernel::Door>,
        _: oneshot::Sender<Output>,
    ) -> BoxFuture<'a, Result<(), ExtensionOutcome>> {
        Box::pin(async { panic!("it runs") })
    }

    fn ask<'a>(&'a self, _: &'a str, _: Value) -> BoxFuture<'a, Result<ExtensionOutcome, Value>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let reply =
            bailey_policy::ExtensionReply::Said { answer: bailey_policy::Answer::Deny, reason: "no".into() };
        Box::pin(async move { Ok(ExtensionOutcome { reply, told: String::new() }) })
    }

    fn end<'a>(&'a self, _: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}

#[tokio::test]
async fn a_preview_says_what_the_rules_say_and_asks_no_extension() {
    let bench = Bench::new(Setup::default()).await;
    let extension = bailey_policy::Extension {
        name: "denies".into(),
        kinds: vec![Kind::Exec],
        late: Late::Deny,
        program: Digest::of(b"denies"),
    };
    let rules = format!("{}\n{ASK_DEPLOY}", bailey_policy::DEFAULT_RULES);
    let rules = file::parse("test.toml", &rules, file::Format::Toml).unwrap().rules;
    let denies = Arc::new(Denies::default());
    bench.registrar.programs(denies.clone());
    bench
        .registrar
        .adopt(Policy::new(built_in_rules(), rules).with_extensions(vec![extension]))
        .await
        .unwrap();
    let (scope, context) = bench.context("go").await;
    for (action, verdict) in [
        (crate::support::command("echo hi"), Verdict::Allowed),
        (crate::support::command("deploy a"), Verdict::Asked),
        (Action::Read { path: "/home/ann/.ssh/id_ed25519".into() }, Verdict::Denied),
    ] {
        let preview = bench.kernel.preview(&scope, action).await.unwrap();
        assert_eq!(preview.verdict, verdict, "{preview:?}");
    }
    assert_eq!(denies.0.load(Ordering::SeqCst), 0);
    let owner = bench.registrar.owner(&bench.connection);
    let red = bench.kernel.preview(&owner, merge(MergeKind::Apply, 2)).await.unwrap().red;
    assert_eq!(red, [workspace("000/Cargo.toml"), workspace("001/Cargo.toml")]);
    let seen = done(&bench, &scope, &context, &Toy::run("echo hi")).await;
    assert!(seen.text().starts_with("denied: no"), "{}", seen.text());
    assert_eq!(denies.0.load(Ordering::SeqCst), 1);
}
