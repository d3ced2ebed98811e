//! The redactor as an oracle (attack A63): whoever guesses secrets learns by what is masked that a guess was
//! right.

use crate::support::Toy;
use bailey_journal::{Budgets, Fact};
use bailey_kernel::{CallOutcome, Context, Scope};
use bailey_protocol::Happening;
use bailey_testkit::{Bench, Setup, tool_call};
use serde_json::json;
use tempfile::TempDir;

const SECRET: &str = "hunter2-Zq9!xv7Lm";
const WRONG: &str = "hunter3-Zq9!xv7Lm";
const LIMIT: usize = 3;

fn setup(limit: Option<usize>) -> Setup {
    let secrets = vec![("TEST_TOKEN".into(), SECRET.into())];
    Setup { secrets, budgets: Budgets { secret_hits: limit, ..Budgets::default() }, ..Setup::default() }
}

/// What the model is told of a file that holds this text, when it is asked for as `name`.
async fn shown(bench: &Bench, scope: &Scope, context: &Context, name: &str, text: &str) -> String {
    bench.world.put("file.txt", text);
    let call = tool_call("c1", "toy", &json!({ "name": name }));
    match bench.kernel.call(scope, &context.provenance(), &Toy::read("file.txt"), &call).await.unwrap() {
        CallOutcome::Done(observation) => observation.text().to_owned(),
        other => panic!("{other:?}"),
    }
}

/// A loop that guesses: each time a wrong value and the right one. How many right ones it was told, and how
/// many results it was not shown.
async fn guess(bench: &Bench, from: usize) -> (usize, usize) {
    let (scope, context) = bench.context("go").await;
    let (mut told, mut withheld) = (0, 0);
    for at in from..from + 10 {
        let name = format!("guess {at}");
        let text = shown(bench, &scope, &context, &name, &format!("first {WRONG}\nthen {SECRET}\n")).await;
        assert!(!text.contains(SECRET));
        // A withheld result does not say where the hit was, nor anything else that the file holds.
        let is_withheld = text.starts_with("withheld: ");
        assert_eq!(is_withheld, !text.contains("first"), "{text}");
        withheld += usize::from(is_withheld);
        told += usize::from(text.contains("then [redacted:TEST_TOKEN]"));
        // What holds no secret is shown as ever.
        let wrong = shown(bench, &scope, &context, &name, &format!("only {WRONG}")).await;
        assert_eq!(wrong, format!("only {WRONG}"));
    }
    (told, withheld)
}

async fn withheld_entries(bench: &Bench) -> usize {
    let entries = bench.facts("observation").await;
    let is_withheld = |fact: &&Fact| {
        matches!(fact, Fact::Observation { masked: Some(masked), .. } if masked.withheld
            && masked.secrets.contains("TEST_TOKEN"))
    };
    entries.iter().filter(is_withheld).count()
}

#[tokio::test]
async fn a63_a_guessing_loop_is_told_of_so_many_hits_and_no_more() {
    let mut bench = Bench::new(setup(Some(LIMIT))).await;
    assert_eq!(guess(&bench, 0).await, (LIMIT, 10 - LIMIT));
    assert_eq!(withheld_entries(&bench).await, 10 - LIMIT, "an entry says so");
    let is_notice = |happening: &Happening| matches!(happening, Happening::Notice { text } if text.contains("limits.secret_hits"));
    assert_eq!(bench.happened().into_iter().filter(is_notice).count(), 10 - LIMIT, "and the person is told");
    // A restart does not forget.
    let home: TempDir = bench.close();
    let bench = Bench::over(home, setup(Some(LIMIT))).await;
    assert_eq!(guess(&bench, 10).await, (0, 10));

    // Control: without the limit each guess is answered.
    let bench = Bench::new(setup(None)).await;
    assert_eq!(guess(&bench, 0).await, (10, 0));
    assert_eq!(withheld_entries(&bench).await, 0);
}

#[tokio::test]
async fn a63_results_that_come_together_count_each_other() {
    let bench = Bench::new(setup(Some(LIMIT))).await;
    let (scope, context) = bench.context("go").await;
    bench.world.put("file.txt", SECRET);
    let mut running = tokio::task::JoinSet::new();
    for at in 0..10 {
        let (kernel, scope, because) = (bench.kernel.clone(), scope.clone(), context.provenance());
        running.spawn(async move {
            let call = tool_call(&format!("c{at}"), "toy", &json!({ "name": at }));
            match kernel.call(&scope, &because, &Toy::read("file.txt"), &call).await.unwrap() {
                CallOutcome::Done(observation) => observation.text().starts_with("withheld: "),
                other => panic!("{other:?}"),
            }
        });
    }
    let withheld = running.join_all().await.into_iter().filter(|withheld| *withheld).count();
    assert_eq!(withheld, 10 - LIMIT);
}

#[tokio::test]
async fn a_file_that_always_holds_a_key_can_be_read_again_and_again() {
    let bench = Bench::new(setup(Some(LIMIT))).await;
    let (scope, context) = bench.context("go").await;
    for _ in 0..10 {
        let text = shown(&bench, &scope, &context, "the settings", &format!("key = {SECRET}")).await;
        assert_eq!(text, "key = [redacted:TEST_TOKEN]");
    }
    // Of a shape alone nothing is learnt: everybody knows it.
    let token = format!("ghp_{}", "a1B2c3D4e5".repeat(4).split_at(36).0);
    for at in 0..10 {
        let text = shown(&bench, &scope, &context, &format!("file {at}"), &token).await;
        assert!(text.starts_with("[redacted:") && text != "[redacted:TEST_TOKEN]", "{text}");
    }
    // Whoever writes the secret itself into what is asked for knows it, and is one hit each time.
    for _ in 0..LIMIT - 1 {
        let text = shown(&bench, &scope, &context, SECRET, SECRET).await;
        assert_eq!(text, "[redacted:TEST_TOKEN]");
    }
    assert!(shown(&bench, &scope, &context, SECRET, SECRET).await.starts_with("withheld: "));
}
