//! House rules that the kernel holds, each with a control that shows that its test can fail.

use crate::support::{Toy, call, done, open_intents, raw, refuse_entries};
use bailey_kernel::{Chunk, Refused};
use bailey_llm::Wire;
use bailey_protocol::{Happening, Outcome};
use bailey_store::params;
use bailey_testkit::{Bench, Gate, Message, ModelServer, Reply, Setup};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

#[tokio::test]
async fn no_effect_without_permit() {
    // Executors that take the permits of another journal.
    let other = Bench::new(Setup::default()).await;
    let server = ModelServer::always(Reply::text("hello"));
    let setup = Setup { seal: Some(other.journal.seal()), ..Setup::default() }.model(&server);
    let bench = Bench::new(setup).await;
    let (scope, context) = bench.context("go").await;
    let seen = done(&bench, &scope, &context, &Toy::run("write a.txt x")).await;
    assert_eq!(seen.text(), "failed: the permit was made by another journal");
    assert_eq!(bench.world.spans(), []);
    assert_eq!(bench.world.seen("a.txt"), None);
    let provider = bench.provider(&server, Wire::Anthropic, 100);
    bench.kernel.converse(&scope, &context, &*provider, &[]).await.unwrap_err();
    assert_eq!(server.requests(), []);
    assert_eq!(open_intents(&bench).await, 0, "each still has its outcome");
    // Control: permits of their own journal.
    let bench = Bench::new(Setup::default().model(&server)).await;
    let (scope, context) = bench.context("go").await;
    assert!(done(&bench, &scope, &context, &Toy::run("write a.txt x")).await.is_ok());
    assert_eq!(bench.world.seen("a.txt").as_deref(), Some("x"));
    bench.kernel.converse(&scope, &context, &*provider, &[]).await.unwrap();
    assert_eq!(server.requests().len(), 1);
}

const SECRET: &str = "hunter2-Zq9!xv7Lm";
const ANSI: &str = "\u{1b}[2J\u{1b}]52;c;aGk=\u{7}";
const BIDI: &str = "\u{202e}gpj.exe\u{200b}";

/// What came of one hostile output: what the model was sent, what front ends were told, what the
/// observation's entry holds, whether the secret is in the database, and what the executor had really
/// brought.
struct Leaks {
    request: String,
    events: Vec<Happening>,
    observation: String,
    on_disk: bool,
    brought: Vec<u8>,
}

async fn hostile_output(redact: bool) -> Leaks {
    let server = ModelServer::always(Reply::text("noted"));
    let secrets = vec![("TEST_TOKEN".into(), SECRET.into())];
    let mut bench = Bench::new(Setup { secrets, redact, ..Setup::default() }.model(&server)).await;
    let filler = "0123456789".repeat(1 << 20);
    bench.world.put("big.txt", format!("{SECRET} {ANSI} {BIDI}\n{filler}\n{SECRET} {ANSI} {BIDI}"));
    // And while it runs, with the secret cut in two.
    bench.world.hook(|_, io| {
        let out = io.out.clone();
        Box::pin(async move {
            let piece = |text: &str| text.as_bytes().to_vec().into();
            // The other stream comes between.
            out.send(Chunk::Stdout(piece(&SECRET[..5]))).await.ok();
            out.send(Chunk::Stderr(piece("\n"))).await.ok();
            for rest in [&SECRET[5..], " said"] {
                out.send(Chunk::Stdout(piece(rest))).await.ok();
            }
            None
        })
    });
    let (scope, mut context) = bench.context("read it").await;
    let tool = Toy::read("big.txt");
    let seen = done(&bench, &scope, &context, &tool).await;
    context.push(seen);
    let provider = bench.provider(&server, Wire::Anthropic, 100);
    bench.kernel.converse(&scope, &context, &*provider, &[]).await.unwrap();
    raw(&bench).checkpoint().await.unwrap();
    let file = std::fs::read(bench.database()).unwrap();
    let entries = bench.entries().await;
    let observation =
        entries.iter().find(|recorded| recorded.entry.fact.name() == "observation").unwrap().text();
    let brought = tool.brought.lock().unwrap().concat();
    Leaks {
        request: strings(&server.requests()[0].json()),
        events: bench.happened(),
        observation,
        on_disk: file.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()),
        brought,
    }
}

/// All strings of a document, as they are behind JSON's escapes.
fn strings(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(items) => items.iter().map(strings).collect(),
        serde_json::Value::Object(fields) => fields.values().map(strings).collect(),
        _ => String::new(),
    }
}

#[tokio::test]
async fn no_output_unscreened() {
    let leaks = hostile_output(true).await;
    let deceptive =
        |text: &str| text.chars().any(|c| matches!(c, '\u{1b}' | '\u{7}' | '\u{202e}' | '\u{200b}'));
    for text in [&leaks.request, &leaks.observation] {
        assert!(!text.contains(SECRET) && text.contains("[redacted:TEST_TOKEN]"));
        assert!(!deceptive(text) && text.contains("␛[2J") && text.contains("⟨U+202E⟩"));
        assert!(text.len() < 64 << 10, "{} bytes", text.len());
        assert!(text.contains("bytes left out"));
    }
    let shown = format!("{:?}", leaks.events);
    assert!(!shown.contains(SECRET));
    let results = leaks.events.iter().filter_map(|event| match event {
        Happening::Result { text, summary, .. } => Some(format!("{summary}{text}")),
        _ => None,
    });
    let results: Vec<String> = results.collect();
    assert_eq!(results.len(), 1);
    assert!(results.iter().all(|text| !deceptive(text) && text.len() < 64 << 10));
    let live: String = leaks
        .events
        .iter()
        .filter_map(|event| match event {
            Happening::Output { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(live, "\n[redacted:TEST_TOKEN] said");
    assert!(!leaks.on_disk);
    // Of a file that it may show a part of, not even the tool sees the secret.
    let concluded = String::from_utf8(leaks.brought).unwrap();
    assert!(!concluded.contains(SECRET) && concluded.contains(ANSI) && concluded.len() > 10 << 20);
    // Control: the executor really brought it, and without the redactor it goes everywhere.
    let open = hostile_output(false).await;
    let brought = str::from_utf8(&open.brought).unwrap();
    assert!(
        brought.contains(SECRET)
            && brought.contains(ANSI)
            && brought.contains(BIDI)
            && brought.len() > 10 << 20
    );
    assert!(open.request.contains(SECRET) && open.observation.contains(SECRET) && open.on_disk);
    assert!(format!("{:?}", open.events).contains(SECRET));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn journal_before_effect() {
    let bench = Bench::new(Setup::default()).await;
    let other = raw(&bench);
    let looks: Arc<Mutex<Vec<(u64, u64)>>> = Arc::default();
    let seen = looks.clone();
    // At the moment of performing, a second connection counts the intents of this effect, and of one never
    // begun.
    bench.world.hook(move |effect, _| {
        let (other, seen) = (other.clone(), seen.clone());
        Box::pin(async move {
            let count = async |id: String| {
                let sql = "SELECT count(*) FROM entry WHERE type = 'intent' AND effect = ?1";
                other.read(move |db| Ok(db.query_row(sql, params![id], |row| row.get(0))?)).await.unwrap()
            };
            let never = bailey_protocol::EffectId::new(1, [9; 10]);
            let counted = (count(effect.id.to_string()).await, count(never.to_string()).await);
            seen.lock().unwrap().push(counted);
            None
        })
    });
    let (scope, context) = bench.context("go").await;
    done(&bench, &scope, &context, &Toy::run("echo hi")).await;
    assert_eq!(*looks.lock().unwrap(), [(1, 0)]);
    // A journal that takes no intent: nothing runs.
    refuse_entries(&bench, "NEW.type = 'intent'").await;
    let refused = bench.kernel.call(&scope, &context.provenance(), &Toy::run("write b x"), &call("c2")).await;
    assert!(matches!(refused, Err(Refused::Begin(_))), "{refused:?}");
    assert_eq!(bench.world.targets(), ["echo hi"]);
    assert_eq!(bench.world.seen("b"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn budget_before_call() {
    // Each reply uses 1,500 tokens: the third call finds none left.
    let asks = async |limit: u64| {
        let server = ModelServer::always(Reply::Message(Message::text("hi").costs(900, 600)));
        let bench = Bench::new(Setup { limit, ..Setup::default() }.model(&server)).await;
        let (scope, context) = bench.context("go").await;
        let provider = bench.provider(&server, Wire::Anthropic, 1000);
        let mut refused = 0;
        for _ in 0..4 {
            match bench.kernel.converse(&scope, &context, &*provider, &[]).await {
                Ok(_) => {}
                Err(Refused::Begin(bailey_journal::BeginError::Budget(_))) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
        (server.requests().len(), refused)
    };
    assert_eq!(asks(3000).await, (2, 2));
    assert_eq!(asks(1_000_000).await, (4, 0), "control: with tokens left every call goes out");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn budget_before_call_for_twenty_at_once() {
    // Every reply is held back, so that all reservations stand at the same time.
    let at_once = async |limit: u64| {
        let gate = Gate::default();
        let server = ModelServer::always(Reply::Held(gate.clone(), Message::text("hi")));
        let bench = Arc::new(Bench::new(Setup { limit, ..Setup::default() }.model(&server)).await);
        let (scope, context) = bench.context("go").await;
        let refused = Arc::new(AtomicUsize::new(0));
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let (bench, scope, context) = (bench.clone(), scope.clone(), context.clone());
            let provider = bench.provider(&server, Wire::Anthropic, 1000);
            let refused = refused.clone();
            running.spawn(async move {
                if bench.kernel.converse(&scope, &context, &*provider, &[]).await.is_err() {
                    refused.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        // What is not refused stands at the server.
        while refused.load(Ordering::SeqCst) + server.requests().len() < 20 {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        let sent = server.requests().len();
        gate.open();
        running.join_all().await;
        (sent, server.requests().len())
    };
    let (sent, in_all) = at_once(5500).await;
    // One call reserves 1,000 for its reply and less than 100 for its request.
    assert_eq!((sent, in_all), (5, 5));
    assert_eq!(at_once(1_000_000).await, (20, 20), "control");
}

#[tokio::test]
async fn fail_closed() {
    // No rules: nothing is allowed.
    let bench = Bench::new(Setup { rules: String::new(), ..Setup::default() }).await;
    let (scope, context) = bench.context("go").await;
    let denied = done(&bench, &scope, &context, &Toy::run("echo hi")).await;
    assert!(!denied.is_ok() && denied.text().starts_with("denied: no rule allows this"), "{}", denied.text());
    assert_eq!(bench.world.spans(), []);
    assert_eq!(bench.facts("denied").await.len(), 1);

    // Control: with the default rules the same call runs.
    let bench = Bench::new(Setup::default()).await;
    let (scope, context) = bench.context("go").await;
    assert!(done(&bench, &scope, &context, &Toy::run("echo hi")).await.is_ok());

    // An executor's error is no success.
    bench.world.hook(|_, _| Box::pin(async { Some(Outcome::failed("the walls do not stand")) }));
    let failed = done(&bench, &scope, &context, &Toy::run("echo hi")).await;
    assert!(!failed.is_ok() && failed.text().contains("the walls do not stand"));
    bench.world.hook(|_, _| Box::pin(async { None }));

    // A journal that cannot be written stops everything that has a side effect.
    refuse_entries(&bench, "1").await;
    let before = bench.world.spans().len();
    for tool in [Toy::run("write c x"), Toy::read("a")] {
        let refused = bench.kernel.call(&scope, &context.provenance(), &tool, &call("c3")).await;
        assert!(refused.is_err(), "{refused:?}");
    }
    let said = bench.kernel.accept(&bench.connection, "more".into()).await;
    assert!(matches!(said, Err(Refused::Journal(_))));
    assert_eq!(bench.world.spans().len(), before);
}
