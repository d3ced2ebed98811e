//! Calls of one reply: together where they can, one after the other where they must.

use crate::support::{Table, table};
use bailey_testkit::Span;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::sync::Barrier;

fn span(table: &Table, part: &str) -> Span {
    let found = table.bench.world.spans().into_iter().find(|span| span.effect.action.target().contains(part));
    found.unwrap_or_else(|| panic!("nothing with `{part}` in {:?}", table.bench.world.targets()))
}

/// From now on effects with one of these targets end only when both are running.
fn meet(table: &Table, targets: [&'static str; 2]) {
    let barrier = Arc::new(Barrier::new(2));
    table.bench.world.hook(move |effect, _| {
        let barrier = barrier.clone();
        Box::pin(async move {
            if targets.iter().any(|target| effect.action.target().ends_with(target)) {
                barrier.wait().await;
            }
            None
        })
    });
}

/// From now on effects take a moment, so that what may overlap does.
fn linger(table: &Table) {
    table.bench.world.hook(|_, _| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            None
        })
    });
}

#[tokio::test]
async fn two_reads_run_together() {
    let table = table([]).await;
    table.bench.world.put("a", "1");
    table.bench.world.put("b", "2");
    meet(&table, ["/a", "/b"]);
    let calls =
        table.calls([("1", "fs.read", json!({ "path": "a" })), ("2", "fs.read", json!({ "path": "b" }))]);
    let seen = tokio::time::timeout(Duration::from_secs(20), calls).await.unwrap();
    assert!(seen.iter().all(bailey_kernel::Observation::is_ok));
    let ids: Vec<_> = seen.iter().map(|seen| seen.call().0.as_str()).collect();
    assert_eq!(ids, ["1", "2"], "results stand in the order of the calls");
    assert!(span(&table, "/a").overlaps(&span(&table, "/b")));
}

#[tokio::test]
async fn a_read_and_a_write_of_one_path_wait_for_each_other() {
    let table = table([]).await;
    table.bench.world.put("a", "old");
    linger(&table);
    let seen = table
        .calls([
            ("1", "fs.read", json!({ "path": "a" })),
            ("2", "fs.edit", json!({ "path": "./x/../a", "old": "old", "new": "new" })),
            ("3", "fs.read", json!({ "path": format!("{}/a", bailey_testkit::Bench::WORKSPACE) })),
            ("4", "fs.edit", json!({ "path": "a", "old": "new", "new": "newer" })),
        ])
        .await;
    assert!(seen.iter().all(bailey_kernel::Observation::is_ok), "{seen:?}");
    assert!(seen[0].text().contains("old") && seen[2].text().contains("new"));
    assert_eq!(table.bench.world.seen("a").as_deref(), Some("newer"));
    let spans = table.bench.world.spans();
    for (number, one) in spans.iter().enumerate() {
        assert!(spans[number + 1..].iter().all(|other| !one.overlaps(other)), "{spans:?}");
    }
}

#[tokio::test]
async fn two_writes_of_two_paths_run_together() {
    let table = table([]).await;
    meet(&table, ["/a", "/b"]);
    // A write looks at its path first: both looks meet, and then both changes.
    let write = |path: &str| json!({ "path": path, "content": "x" });
    let calls = table.calls([("1", "fs.write", write("a")), ("2", "fs.write", write("b"))]);
    let seen = tokio::time::timeout(Duration::from_secs(20), calls).await.unwrap();
    assert!(seen.iter().all(bailey_kernel::Observation::is_ok), "{seen:?}");
}

#[tokio::test]
async fn an_undeclared_command_waits_for_writes() {
    let table = table([]).await;
    table.bench.world.put("b", "2");
    linger(&table);
    let seen = table
        .calls([
            ("1", "fs.write", json!({ "path": "a", "content": "written" })),
            ("2", "command.run", json!({ "command": "cat a" })),
            ("3", "fs.read", json!({ "path": "b" })),
            ("4", "command.run", json!({ "command": "write a again" })),
        ])
        .await;
    assert!(seen.iter().all(bailey_kernel::Observation::is_ok), "{seen:?}");
    assert!(seen[1].text().contains("written"));
    let (write, cat, again) = (span(&table, "/a"), span(&table, "cat a"), span(&table, "write a again"));
    assert!(!write.overlaps(&cat) && !cat.overlaps(&again));
    // Control: what touches none of it did not wait.
    assert!(span(&table, "/b").overlaps(&write));
    assert_eq!(table.bench.world.seen("a").as_deref(), Some("again"));
}

#[tokio::test]
async fn declared_commands_run_together() {
    let table = table([]).await;
    meet(&table, ["echo one", "echo two"]);
    let run = |line: &str| json!({ "command": line, "reads": [], "writes": [] });
    let calls = table.calls([("1", "command.run", run("echo one")), ("2", "command.run", run("echo two"))]);
    tokio::time::timeout(Duration::from_secs(20), calls).await.unwrap();
}
