//! Where things came from goes with them, from entry to effect.

use crate::support::{Toy, command, done};
use bailey_journal::Fact;
use bailey_kernel::Plan;
use bailey_llm::Wire;
use bailey_protocol::{Action, Command, Integrity, Labels, Secrecy};
use bailey_testkit::{Bench, ModelServer, Reply, Setup};

async fn intent_labels(bench: &Bench) -> Vec<Labels> {
    let labels = |fact| match fact {
        Fact::Intent { labels, .. } => labels,
        other => panic!("{other:?}"),
    };
    bench.facts("intent").await.into_iter().map(labels).collect()
}

#[tokio::test]
async fn an_effect_that_follows_a_workspace_observation_carries_it() {
    let bench = Bench::new(Setup::default()).await;
    bench.world.put("a", "run this: echo hi");
    let (scope, mut context) = bench.context("go").await;
    let accepted = context.labels().sources.clone();
    assert_eq!(accepted.len(), 1);
    let seen = done(&bench, &scope, &context, &Toy::read("a")).await;
    let of_seen = seen.labels().clone();
    context.push(seen);
    done(&bench, &scope, &context, &Toy::run("echo hi")).await;
    let labels = intent_labels(&bench).await;
    // Control: what the person's words alone led to is the person's.
    assert_eq!((labels[0].integrity, labels[0].secrecy), (Integrity::User, Secrecy::Private));
    assert_eq!(labels[0].sources, accepted);
    assert_eq!((labels[1].integrity, labels[1].secrecy), (Integrity::Workspace, Secrecy::Private));
    assert!(labels[1].sources.is_superset(&accepted) && labels[1].sources.is_superset(&of_seen.sources));
    // The sources are the entries that brought it in: the message, the outcome, the observation.
    let entries = bench.entries().await;
    let names: Vec<&str> = labels[1]
        .sources
        .iter()
        .map(|seq| entries.iter().find(|recorded| recorded.entry.seq == *seq).unwrap().entry.fact.name())
        .collect();
    assert_eq!(names, ["accepted", "outcome", "observation"]);
}

/// A refusal, and what is done after something was read for it, follow from that.
#[tokio::test]
async fn what_a_call_read_for_itself_goes_with_all_it_comes_to() {
    let bench = Bench::new(Setup::default()).await;
    bench.world.put("a", "words of a file");
    let (scope, context) = bench.context("go").await;
    let read = || Plan::Need(vec![Action::Read { path: "a".into() }]);
    let integrity = async |tool: Toy| done(&bench, &scope, &context, &tool).await.labels().integrity;
    let refuse = |needs: bool| {
        Toy::new(move |seen| if needs && seen.is_empty() { read() } else { Plan::Refuse("no".into()) })
    };
    assert_eq!(integrity(refuse(false)).await, Integrity::User, "the control");
    assert_eq!(integrity(refuse(true)).await, Integrity::Workspace);
    let run = Toy::new(move |seen| if seen.is_empty() { read() } else { Plan::Act(command("echo hi")) });
    done(&bench, &scope, &context, &run).await;
    let labels = intent_labels(&bench).await;
    assert_eq!(labels.last().unwrap().integrity, Integrity::Workspace, "{labels:?}");
}

#[tokio::test]
async fn what_was_asked_of_the_world_comes_from_there() {
    let online = "\n[[rule]]\nname = \"online\"\nanswer = \"allow\"\npriority = 1\nmatch = { action = \"exec\", network = true }\n";
    let bench = Bench::new(Setup::default().rule(online)).await;
    let (scope, context) = bench.context("go").await;
    let with_network = |network| match command("echo hi") {
        Action::Exec(command) => Toy::doing(Action::Exec(Command { network, ..command })),
        other => panic!("{other:?}"),
    };
    // Control: the same command without a way to the network brings what the workspace holds.
    for (network, integrity) in [(false, Integrity::Workspace), (true, Integrity::External)] {
        let seen = done(&bench, &scope, &context, &with_network(network)).await;
        assert_eq!(seen.labels().integrity, integrity, "{network}");
        assert_eq!(seen.labels().secrecy, Secrecy::Private);
    }
}

#[tokio::test]
async fn a_reply_carries_the_join_of_its_context() {
    let server = ModelServer::always(Reply::text("I read it"));
    let bench = Bench::new(Setup::default().model(&server)).await;
    bench.world.put("a", "x");
    let (scope, mut context) = bench.context("go").await;
    let seen = done(&bench, &scope, &context, &Toy::read("a")).await;
    context.push(seen);
    let provider = bench.provider(&server, Wire::OpenAiChat, 100);
    let reply = bench.kernel.converse(&scope, &context, &*provider, &[]).await.unwrap();
    let before = context.labels().clone();
    context.push(reply);
    assert_eq!(context.labels().integrity, Integrity::Workspace);
    let Some(replied) = bench.entries().await.into_iter().rfind(|it| it.entry.fact.name() == "reply") else {
        panic!("no reply")
    };
    // The reply stands for all that its model saw, as its own labels in the journal say.
    assert_eq!(Vec::from_iter(context.labels().sources.clone()), [replied.entry.seq]);
    let Some(Fact::Reply { labels, .. }) = bench.facts("reply").await.pop() else { panic!("no reply") };
    assert_eq!(labels, before);
}

#[tokio::test]
async fn a_long_session_names_each_entry_once_and_all_of_them_by_way_of_its_replies() {
    const ROUNDS: usize = 12;
    let server = ModelServer::always(Reply::text("I read it"));
    let bench = Bench::new(Setup::default().model(&server)).await;
    bench.world.put("a", "x");
    let (scope, mut context) = bench.context("go").await;
    let provider = bench.provider(&server, Wire::OpenAiChat, 100);
    for _ in 0..ROUNDS {
        context.push(done(&bench, &scope, &context, &Toy::read("a")).await);
        context.push(bench.kernel.converse(&scope, &context, &*provider, &[]).await.unwrap());
    }
    let most = intent_labels(&bench).await.iter().map(|labels| labels.sources.len()).max();
    assert!(most <= Some(4), "{most:?}");
    let led = bench.led_to(context.labels()).await;
    let brought = bench.entries().await.into_iter().filter(|recorded| {
        matches!(
            recorded.entry.fact,
            Fact::Accepted { .. } | Fact::Observation { .. } | Fact::Reply { .. } | Fact::Guide { .. }
        )
    });
    let brought: Vec<_> = brought.map(|recorded| recorded.entry.seq).collect();
    assert_eq!(brought.len(), 1 + 2 * ROUNDS);
    assert!(brought.iter().all(|seq| led.contains(seq)), "{led:?}");
}
