//! Rules that change while a session runs, because another process read the rule files later.

use crate::support::{Toy, call, done};
use bailey_journal::{BeginError, Journal};
use bailey_kernel::Refused;
use bailey_policy::{DEFAULT_RULES, Policy, built_in_rules, file};
use bailey_testkit::{Bench, FakeClock, Setup};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

const NO_ECHO: &str = r#"
[[rule]]
name = "no-echo"
answer = "deny"
reason = "nobody echoes any more"
match = { command = "echo" }
"#;

fn policy(more: &str) -> Policy {
    let rules =
        file::parse("test.toml", &format!("{DEFAULT_RULES}\n{more}"), file::Format::Toml).unwrap().rules;
    Policy::new(built_in_rules(), rules)
}

/// Another process puts rules into force.
async fn adopt(bench: &Bench, policy: &Policy) {
    let redactor = bench.journal.redactor().clone();
    let clock = Arc::new(FakeClock::default());
    let (_journal, mint) = Journal::open(&bench.database(), redactor, clock).await.unwrap();
    mint.adopt(policy.digest()).await.unwrap();
}

#[tokio::test]
async fn rules_that_another_process_put_into_force_are_read_again() {
    let bench = Bench::new(Setup::default()).await;
    let is_strict = Arc::new(AtomicBool::new(false));
    let file = is_strict.clone();
    let read = move || Ok(policy(if file.load(Ordering::SeqCst) { NO_ECHO } else { "" }));
    bench.registrar.reread_rules(Box::new(read));
    let (scope, context) = bench.context("go").await;
    let tool = Toy::run("echo hi");
    assert!(done(&bench, &scope, &context, &tool).await.is_ok(), "the control");
    is_strict.store(true, Ordering::SeqCst);
    adopt(&bench, &policy(NO_ECHO)).await;
    let seen = done(&bench, &scope, &context, &tool).await;
    assert!(!seen.is_ok() && seen.text().contains("nobody echoes any more"), "{}", seen.text());
    // And back.
    is_strict.store(false, Ordering::SeqCst);
    adopt(&bench, &policy("")).await;
    assert!(done(&bench, &scope, &context, &tool).await.is_ok());
    assert_eq!(bench.world.targets(), ["echo hi", "echo hi"]);
}

#[tokio::test]
async fn without_a_way_to_read_them_nothing_begins_by_yesterdays_rules() {
    let bench = Bench::new(Setup::default()).await;
    let (scope, context) = bench.context("go").await;
    adopt(&bench, &policy(NO_ECHO)).await;
    let tool = Toy::run("echo hi");
    let refused = bench.kernel.call(&scope, &context.provenance(), &tool, &call("c1")).await;
    assert!(matches!(refused, Err(Refused::Begin(BeginError::Stale))), "{refused:?}");
    assert_eq!(bench.world.spans(), []);
}

#[tokio::test]
async fn rules_that_cannot_be_read_again_let_nothing_begin() {
    let bench = Bench::new(Setup::default()).await;
    bench.registrar.reread_rules(Box::new(|| Err("test.toml:1:1: a mistake".into())));
    let (scope, context) = bench.context("go").await;
    adopt(&bench, &policy(NO_ECHO)).await;
    let tool = Toy::run("echo hi");
    let refused = bench.kernel.call(&scope, &context.provenance(), &tool, &call("c1")).await;
    assert!(matches!(refused, Err(Refused::Failed(why)) if why.contains("a mistake")));
    assert_eq!(bench.world.spans(), []);
}
