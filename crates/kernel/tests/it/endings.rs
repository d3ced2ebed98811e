//! However an effect ends, it gets an outcome, and the call its result.

use crate::support::{Toy, call, done, open_intents};
use bailey_journal::Fact;
use bailey_kernel::Chunk;
use bailey_protocol::{Outcome, Report, Status};
use bailey_testkit::{Bench, Setup, output};
use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context as TaskContext, Waker},
    time::Duration,
};
use tokio::sync::Notify;

async fn statuses(bench: &Bench) -> Vec<Status> {
    let status = |fact| match fact {
        Fact::Outcome { status, .. } => status,
        other => panic!("{other:?}"),
    };
    bench.facts("outcome").await.into_iter().map(status).collect()
}

/// Waits until every intent has its outcome.
async fn settled(bench: &Bench) {
    for _ in 0..2000 {
        if open_intents(bench).await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("an intent stays without an outcome: {:?}", bench.trail().await);
}

#[tokio::test]
async fn an_executor_that_panics_leaves_unknown() {
    let bench = Bench::new(Setup::default()).await;
    bench.world.hook(|_, _| Box::pin(async { panic!("on purpose") }));
    let (scope, context) = bench.context("go").await;
    let seen = done(&bench, &scope, &context, &Toy::run("echo hi")).await;
    assert!(!seen.is_ok() && seen.text().contains("may have happened"), "{}", seen.text());
    assert_eq!(statuses(&bench).await, [Status::Unknown]);
}

#[tokio::test]
async fn an_executor_that_hangs_is_given_up_after_the_grace_time() {
    let bench = Bench::new(Setup { grace: Duration::from_millis(50), ..Setup::default() }).await;
    let begun = Arc::new(Notify::new());
    let tell = begun.clone();
    bench.world.hook(move |_, _| {
        tell.notify_one();
        Box::pin(std::future::pending())
    });
    let (scope, context) = bench.context("go").await;
    let cancel = scope.cancel().clone();
    let cancelling = async {
        begun.notified().await;
        cancel.cancel();
    };
    let tool = Toy::run("sleep");
    let (seen, ()) = tokio::join!(done(&bench, &scope, &context, &tool), cancelling);
    assert!(seen.text().contains("may have happened"), "{}", seen.text());
    assert_eq!(statuses(&bench).await, [Status::Unknown]);
}

#[tokio::test]
async fn an_executor_that_floods_is_given_up_too() {
    let bench = Bench::new(Setup { grace: Duration::from_millis(50), ..Setup::default() }).await;
    bench.world.hook(|_, io| {
        let out = io.out.clone();
        Box::pin(async move {
            while out.send(Chunk::Body("x".into())).await.is_ok() {}
            std::future::pending().await
        })
    });
    let (scope, context) = bench.context("go").await;
    scope.cancel().cancel();
    let tool = Toy::run("yes");
    let flood = done(&bench, &scope, &context, &tool);
    let seen = tokio::time::timeout(Duration::from_secs(10), flood).await.unwrap();
    assert!(seen.text().contains("may have happened"), "{}", seen.text());
}

#[tokio::test]
async fn an_executor_that_ends_when_cancelled_is_cancelled() {
    let bench = Bench::new(Setup { grace: Duration::from_secs(60), ..Setup::default() }).await;
    bench.world.hook(|_, io| {
        let cancel = io.cancel.clone();
        Box::pin(async move {
            cancel.cancelled().await;
            Some(Outcome { status: Status::Cancelled, ..output(Report::Nothing) })
        })
    });
    let (scope, context) = bench.context("go").await;
    let cancel = scope.cancel().clone();
    let tool = Toy::run("sleep");
    let (seen, ()) = tokio::join!(done(&bench, &scope, &context, &tool), async { cancel.cancel() });
    assert_eq!(seen.text(), "cancelled: the user ended this turn");
    assert_eq!(statuses(&bench).await, [Status::Cancelled]);
}

#[tokio::test]
async fn a_dropped_caller_changes_nothing() {
    let bench = Bench::new(Setup::default()).await;
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait) = (begun.clone(), go.clone());
    bench.world.hook(move |_, _| {
        let (tell, wait) = (tell.clone(), wait.clone());
        Box::pin(async move {
            tell.notify_one();
            wait.notified().await;
            None
        })
    });
    let (scope, context) = bench.context("go").await;
    let (kernel, because) = (bench.kernel.clone(), context.provenance());
    let caller =
        tokio::spawn(async move { kernel.call(&scope, &because, &Toy::run("write a x"), &call("c1")).await });
    begun.notified().await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    assert_eq!(open_intents(&bench).await, 1);
    go.notify_one();
    settled(&bench).await;
    assert_eq!(bench.world.seen("a").as_deref(), Some("x"));
    assert_eq!(statuses(&bench).await, [Status::Done]);
}

/// Polls a future at most so often, a moment apart, and drops it. True when it was done before.
async fn dropped_after(polls: usize, future: impl Future) -> bool {
    let mut future = pin!(future);
    for _ in 0..polls {
        if future.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())).is_ready() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
    false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_dropped_at_any_moment_leaves_no_intent_open() {
    let mut benches = Vec::new();
    for polls in 1.. {
        let bench = Bench::new(Setup::default()).await;
        let (scope, context) = bench.context("go").await;
        let (because, tool, call) = (context.provenance(), Toy::run("write a x"), call("c1"));
        let finished = dropped_after(polls, bench.kernel.call(&scope, &because, &tool, &call)).await;
        benches.push(bench);
        if finished {
            break;
        }
    }
    for (drops, bench) in benches.iter().enumerate() {
        // What is recorded is what happened, as soon as it has ended.
        let agree = async || {
            let written = bench.world.seen("a").is_some();
            open_intents(bench).await == 0 && statuses(bench).await.contains(&Status::Done) == written
        };
        let mut looks = 0;
        while !agree().await {
            looks += 1;
            assert!(looks < 2000, "dropped after {} polls: {:?}", drops + 1, bench.trail().await);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    assert!(benches.last().is_some_and(|bench| bench.world.seen("a").is_some()));
}

#[tokio::test]
async fn an_owners_action_ends_the_same_way() {
    let bench = Bench::new(Setup::default()).await;
    let owner = bench.registrar.owner(&bench.connection);
    let acted = bench.kernel.act(&owner, crate::support::command("echo hi"), &[]).await.unwrap();
    assert!(matches!(acted, bailey_kernel::Acted::Done(output) if output.outcome().status == Status::Done));
    bench.world.hook(|_, _| Box::pin(async { panic!("on purpose") }));
    let acted = bench.kernel.act(&owner, crate::support::command("echo hi"), &[]).await.unwrap();
    assert!(
        matches!(acted, bailey_kernel::Acted::Done(output) if output.outcome().status == Status::Unknown)
    );
    assert_eq!(statuses(&bench).await, [Status::Done, Status::Unknown]);
}

#[tokio::test]
async fn a_tool_that_panics_fails_its_call() {
    let bench = Bench::new(Setup::default()).await;
    let (scope, context) = bench.context("go").await;
    let planning = done(&bench, &scope, &context, &Toy::new(|_| panic!("on purpose"))).await;
    assert!(!planning.is_ok() && planning.text().contains("has a bug: it panicked"), "{}", planning.text());
    assert_eq!(bench.world.spans(), []);
    // What it was to do has been done when it panics over the result.
    let concluding = Arc::new(Toy::run("echo hi"));
    let of_thread = concluding.clone();
    let poison = move || {
        let _held = of_thread.brought.lock().unwrap();
        panic!("on purpose")
    };
    assert!(std::thread::spawn(poison).join().is_err());
    let seen = done(&bench, &scope, &context, &concluding).await;
    assert!(!seen.is_ok() && seen.text().contains("has been done"), "{}", seen.text());
    assert_eq!(statuses(&bench).await, [Status::Done]);
    // The control: the turn goes on, and a tool that is well has its result.
    assert!(done(&bench, &scope, &context, &Toy::run("echo hi")).await.is_ok());
}
