//! A tool call from its plan to its observation.

use crate::support::{ASK_DEPLOY, Toy, asked, call, command, content, done};
use bailey_journal::{Fact, Purpose};
use bailey_kernel::{CallOutcome, Plan, Refused};
use bailey_protocol::{Action, Answer, Happening, ToolUse, Verdict};
use bailey_testkit::{Bench, Setup};

fn read(path: &str) -> Action {
    Action::Read { path: path.into() }
}

#[tokio::test]
async fn a_plan_reads_first_and_then_acts() {
    let mut bench = Bench::new(Setup::default()).await;
    bench.world.put("a", "one");
    bench.world.put("b", "two");
    let (scope, context) = bench.context("go").await;
    let tool = Toy::new(|seen| match seen {
        [] => Plan::Need(vec![read("a"), read("./x/../b")]),
        [a, b] => {
            let words = [content(a), content(b)].concat();
            Plan::Act(command(&format!("echo {}", String::from_utf8_lossy(&words))))
        }
        other => Plan::Refuse(format!("{} outputs", other.len())),
    });
    let seen = done(&bench, &scope, &context, &tool).await;
    assert_eq!(seen.text(), "onetwo\n");
    let intents: Vec<(Purpose, String)> = bench
        .facts("intent")
        .await
        .into_iter()
        .map(|fact| match fact {
            Fact::Intent { purpose, target, call: Some(_), .. } => (purpose, target),
            other => panic!("{other:?}"),
        })
        .collect();
    let at = |name: &str| format!("{}/{name}", Bench::WORKSPACE);
    let expected = [(Purpose::Need, at("a")), (Purpose::Need, at("b")), (Purpose::Act, "echo onetwo".into())];
    assert_eq!(intents, expected);
    let trail = bench.trail().await;
    let expected = ["intent", "outcome", "intent", "outcome", "intent", "outcome", "observation"];
    assert_eq!(trail[2..], expected);
    let mut verdicts = bench.happened().into_iter().filter_map(|event| match event {
        Happening::Decided { verdict, target, .. } => Some((verdict, target)),
        _ => None,
    });
    assert_eq!(verdicts.next_back(), Some((Verdict::Allowed, "echo onetwo".into())));
}

#[tokio::test]
async fn a_plan_may_ask_for_reads_only() {
    let bench = Bench::new(Setup::default()).await;
    let (scope, context) = bench.context("go").await;
    let tool = Toy::new(|_| Plan::Need(vec![command("write a x")]));
    let refused = bench.kernel.call(&scope, &context.provenance(), &tool, &call("c1")).await;
    assert!(matches!(refused, Err(Refused::Failed(_))));
    assert_eq!(bench.world.spans(), []);
}

#[tokio::test]
async fn a_plan_that_never_acts_ends() {
    let bench = Bench::new(Setup::default()).await;
    bench.world.put("a", "one");
    let (scope, context) = bench.context("go").await;
    let tool = Toy::new(|_| Plan::Need(vec![read("a")]));
    let seen = done(&bench, &scope, &context, &tool).await;
    assert_eq!(seen.text(), "the tool still wants to read more after 8 rounds");
}

#[tokio::test]
async fn a_refusal_is_an_observation_without_effect() {
    let bench = Bench::new(Setup::default()).await;
    let (scope, context) = bench.context("go").await;
    let tool = Toy::new(|_| Plan::Refuse("`path` is missing".into()));
    let seen = done(&bench, &scope, &context, &tool).await;
    assert!(!seen.is_ok());
    assert_eq!((seen.text(), seen.call()), ("`path` is missing", &call("c1").id));
    assert_eq!(bench.trail().await[2..], ["observation"]);
}

#[tokio::test]
async fn a_plan_goes_on_after_a_question_about_one_of_its_reads() {
    let bench = Bench::new(Setup::default().rule(ASK_DEPLOY)).await;
    bench.world.put("/etc/outside", "asked ");
    bench.world.put("a", "and allowed");
    let (scope, context) = bench.context("go").await;
    let tool = Toy::new(|seen| match seen {
        [a, b] => {
            let words = [content(a), content(b)].concat();
            Plan::Act(command(&format!("echo {}", String::from_utf8_lossy(&words))))
        }
        _ => Plan::Need(vec![read("/etc/outside"), read("a")]),
    });
    let id = asked(&bench, &scope, &context, &tool).await;
    bench.kernel.answer(&bench.connection, id, Answer::Yes, "owner", "").await.unwrap();
    let step = bench.kernel.resume(&scope, &context.provenance(), id, &tool, &call("c1")).await.unwrap();
    let CallOutcome::Done(seen) = step else { panic!("it is asked again") };
    assert_eq!(seen.text(), "asked and allowed\n");
    assert_eq!(bench.world.targets().len(), 3, "each was read once");
}

#[tokio::test]
async fn a_denied_action_says_why_and_does_nothing() {
    let bench = Bench::new(Setup::default()).await;
    let (scope, context) = bench.context("go").await;
    let tool = Toy::doing(Action::Read { path: "/home/ann/.ssh/id_ed25519".into() });
    let seen = done(&bench, &scope, &context, &tool).await;
    assert!(seen.text().starts_with("denied: "), "{}", seen.text());
    assert_eq!(bench.world.spans(), []);
    assert_eq!(bench.trail().await[2..], ["denied", "observation"]);
}

#[tokio::test]
async fn what_nobody_performs_is_refused_before_it_begins() {
    let bench = Bench::new(Setup { bare: true, ..Setup::default() }).await;
    let (scope, context) = bench.context("go").await;
    let unknown = Action::Tool(ToolUse::judged("x".into(), None, "{}".into()));
    assert!(!done(&bench, &scope, &context, &Toy::doing(unknown)).await.is_ok());
    let seen = done(&bench, &scope, &context, &Toy::run("echo hi")).await;
    assert_eq!(seen.text(), "denied: nobody here performs `exec`");
    assert_eq!(bench.trail().await[2..], ["denied", "observation", "denied", "observation"]);
}
