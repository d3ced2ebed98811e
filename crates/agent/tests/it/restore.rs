//! Coming back after a crash at any moment: a turn is recorded, its journal is cut after each entry in turn,
//! and the session is taken up from what is left.

use crate::support::{ASK_DEPLOY, assert_every_call_has_its_result, hands, interject, observations, toolbox};
use bailey_agent::{Brain as _, Loop, TurnEnd};
use bailey_journal::{Fact, Purpose, Recorded};
use bailey_kernel::{Context, Instruction, Restored, Segment};
use bailey_llm::Wire;
use bailey_protocol::{Answer, Happening, Integrity};
use bailey_store::{Grade, Migration, Store, params};
use bailey_testkit::{Bench, ModelServer, Reply, Setup};
use serde_json::json;
use std::{collections::BTreeMap, path::Path};
use tempfile::TempDir;

const BLOB: &[u8] = b"\xff\xfe binary hunter2-Zq9!xv7Lm \xff";

fn setup() -> Setup {
    let secrets = vec![("TEST_TOKEN".into(), "hunter2-Zq9!xv7Lm".into())];
    Setup { secrets, ..Setup::default() }.rule(ASK_DEPLOY)
}

/// A turn with reads, an edit, a command that prints a secret in bytes that are no text, a message in its
/// middle, a question, an unknown tool and an answer. Answers the folder and the entries.
async fn recorded() -> (TempDir, Vec<Recorded>) {
    let server = ModelServer::start([
        Reply::calls([
            ("r", "fs_read", json!({ "path": "a.txt" })),
            ("e", "fs_edit", json!({ "path": "b.txt", "old": "one", "new": "two" })),
            ("c", "command_run", json!({ "command": "cat blob" })),
        ]),
        Reply::calls([
            ("d", "command_run", json!({ "argv": ["deploy", "it"] })),
            ("n", "no_such_tool", json!({})),
            ("f", "command_run", json!({ "command": "false" })),
        ]),
        Reply::text("done"),
    ]);
    let mut bench = Bench::new(setup().model(&server)).await;
    bench.world.put("a.txt", "alpha");
    bench.world.put("b.txt", "one");
    bench.world.put("blob", BLOB);
    let (scope, mut context) = bench.context("the first message").await;
    let hands = hands(&bench, &server, Wire::Anthropic, scope);
    let mut events = std::mem::replace(&mut bench.events, tokio::sync::mpsc::channel(1).1);
    let answering = async {
        while let Some(event) = events.recv().await {
            match event.happening {
                Happening::Ask { id, .. } => {
                    let answer = Answer::Yes;
                    hands.kernel.answer(&bench.connection, id, answer, "owner", "").await.unwrap();
                }
                Happening::Call { call, .. } if call.0 == "e" => {
                    interject(&bench, &hands.news, "a message in the middle").await;
                }
                _ => {}
            }
        }
    };
    let brain = Loop::default();
    tokio::select! {
        end = brain.turn(&hands, &mut context) => assert_eq!(end.unwrap(), TurnEnd::Answered),
        () = answering => panic!("the events ended"),
    }
    assert_every_call_has_its_result(&context);
    let entries = bench.entries().await;
    drop(hands);
    (bench.close(), entries)
}

/// Copies a journal and cuts it after an entry: projections, too, are what they were then.
pub(crate) async fn cut(home: &Path, after: u64) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["journal.db", "journal.db-wal"] {
        if home.join(name).exists() {
            std::fs::copy(home.join(name), copy.path().join(name)).unwrap();
        }
    }
    let store = Store::open(
        &copy.path().join("journal.db"),
        &[Migration { version: bailey_journal::SCHEMA_VERSION, sql: "" }],
    )
    .unwrap();
    let field = |name: &str, kind: &str, of: &str| {
        format!(
            "SELECT 1 FROM entry WHERE type = '{kind}' AND json_extract(CAST(body AS TEXT), '$.{name}') = {of}"
        )
    };
    let asked = field("approval", "asked", "approval.id");
    let answered = field("approval", "answered", "approval.id");
    let begun = field("approval", "intent", "approval.id");
    let statements = [
        "DELETE FROM payload WHERE seq > ?1".to_owned(),
        "DELETE FROM entry WHERE seq > ?1".to_owned(),
        "DELETE FROM effect WHERE intent > ?1".to_owned(),
        "UPDATE effect SET outcome = NULL WHERE outcome > ?1".to_owned(),
        "DELETE FROM touched WHERE seq > ?1".to_owned(),
        format!("DELETE FROM approval WHERE ?1 > 0 AND NOT EXISTS ({asked})"),
        // As the newest answer says that is left: a row that says more than its entry lets nothing begin.
        format!(
            "UPDATE approval SET state = (SELECT CASE json_extract(CAST(body AS TEXT), '$.answer')
                 WHEN 'yes' THEN 'yes' WHEN 'yes_for_session' THEN 'session' WHEN 'yes_for_pattern' THEN 'pattern'
                 ELSE 'no' END
             FROM entry WHERE type = 'answered' AND json_extract(CAST(body AS TEXT), '$.approval') = approval.id
             ORDER BY seq DESC LIMIT 1)
             WHERE ?1 > 0 AND EXISTS ({answered}) AND NOT EXISTS ({begun})"
        ),
        format!("UPDATE approval SET state = 'open' WHERE ?1 > 0 AND NOT EXISTS ({answered})"),
        "DELETE FROM spent WHERE ?1 > 0".to_owned(),
        "DELETE FROM reserved WHERE ?1 > 0".to_owned(),
    ];
    let run = move |tx: &mut bailey_store::Tx<'_>| {
        for sql in &statements {
            tx.execute(sql, params![after])?;
        }
        Ok(())
    };
    store.write(Grade::Full, run).await.unwrap();
    copy
}

pub(crate) async fn restore(bench: &Bench) -> Context {
    restored(bench).await.context
}

pub(crate) async fn restored(bench: &Bench) -> Restored {
    let tools = toolbox();
    let find = |name: &str| tools.find(name).cloned();
    let instruction = Instruction::fixed("You are a test.");
    bench.kernel.restore(&bench.lock(), &bench.scope(), instruction, &find).await.unwrap()
}

/// What the whole record says became of each call: where its effect began and ended, and its observation.
#[derive(Default)]
struct Fate {
    begun: Option<u64>,
    ended: Option<u64>,
    observed: Option<(u64, String)>,
}

fn fates(entries: &[Recorded]) -> BTreeMap<String, Fate> {
    let mut fates: BTreeMap<String, Fate> = BTreeMap::new();
    let mut effects = BTreeMap::new();
    for recorded in entries {
        let seq = recorded.entry.seq.0;
        match &recorded.entry.fact {
            Fact::Intent { purpose: Purpose::Act, call: Some(call), .. } => {
                fates.entry(call.0.clone()).or_default().begun = Some(seq);
                effects.insert(recorded.entry.effect, call.0.clone());
            }
            Fact::Outcome { .. } => {
                if let Some(call) = effects.get(&recorded.entry.effect) {
                    fates.entry(call.clone()).or_default().ended = Some(seq);
                }
            }
            Fact::Observation { call, .. } => {
                fates.entry(call.0.clone()).or_default().observed = Some((seq, recorded.text()));
            }
            _ => {}
        }
    }
    fates
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_cut_after_any_entry_can_be_taken_up() {
    let (home, entries) = recorded().await;
    let fates = fates(&entries);
    let names: Vec<&str> = entries.iter().map(|recorded| recorded.entry.fact.name()).collect();
    assert!(
        ["asked", "answered", "observation", "reply"].iter().all(|name| names.contains(name)),
        "{names:?}"
    );
    let mut told =
        BTreeMap::from([("not begun", 0), ("may have happened", 0), ("concluded", 0), ("waits", 0)]);
    // From the session's opening on.
    for after in 3..=entries.len() as u64 {
        let server = ModelServer::start([Reply::text("where was I")]);
        let bench = Bench::over(cut(home.path(), after).await, setup().model(&server)).await;
        let mut context = restore(&bench).await;

        // Nothing was done again.
        assert_eq!(bench.world.spans(), [], "after entry {after}");
        // No accepted message is lost.
        let said: Vec<&str> = context
            .segments()
            .iter()
            .filter_map(|segment| match segment {
                Segment::User(message) => Some(message.text()),
                _ => None,
            })
            .collect();
        let accepted = entries
            .iter()
            .filter(|recorded| recorded.entry.seq.0 <= after && recorded.entry.fact.name() == "accepted");
        let accepted: Vec<String> = accepted.map(Recorded::text).collect();
        assert_eq!(said, accepted, "after entry {after}");
        // Every call has a result, and the right one.
        assert_every_call_has_its_result(&context);
        for (call, text) in observations(&context) {
            let fate = &fates[call];
            let before = |seq: Option<u64>| seq.is_some_and(|seq| seq <= after);
            match &fate.observed {
                Some((seq, as_it_was)) if *seq <= after => assert_eq!(text, as_it_was),
                _ if before(fate.ended) => {
                    assert!(!text.contains("may have happened") && !text.contains("not begun"), "{text}");
                    // What an edit had read is not stored, so its diff cannot be shown again.
                    let as_it_was = fate.observed.as_ref().map(|(_, text)| text.as_str());
                    assert!(call == "e" || Some(text) == as_it_was, "{call}: {text}");
                    *told.entry("concluded").or_default() += 1;
                }
                _ if before(fate.begun) => {
                    assert!(text.contains("it may have happened"), "{call} after {after}: {text}");
                    *told.entry("may have happened").or_default() += 1;
                }
                // It is the one that a human is asked about, and was not begun either.
                _ if call == "d" && text.contains("a person is asked") => {
                    *told.entry("waits").or_default() += 1;
                }
                _ => {
                    assert!(text.contains("it was not begun"), "{call} after {after}: {text}");
                    *told.entry("not begun").or_default() += 1;
                }
            }
        }
        assert!(!format!("{context:?}").contains("hunter2"));
        // No loose ends are left, and a second look sees the same.
        assert_eq!(bench.facts("intent").await.len(), bench.facts("outcome").await.len());
        bench.journal.verify().await.unwrap();
        assert_eq!(told_of(&restore(&bench).await), told_of(&context), "after entry {after}");
        // And the session goes on.
        if context.segments().is_empty() {
            continue;
        }
        let hands = hands(&bench, &server, Wire::Anthropic, bench.scope());
        assert_eq!(Loop::default().turn(&hands, &mut context).await.unwrap(), TurnEnd::Answered);
        assert_eq!(bench.world.spans(), []);
    }
    assert!(told.values().all(|count| *count > 0), "{told:?}");
}

/// A context as the model sees it.
pub(crate) fn told_of(context: &Context) -> Vec<String> {
    let shown = |segment: &Segment| match segment {
        Segment::User(message) => format!("user: {}", message.text()),
        Segment::Note(note) => format!("note: {}", note.text()),
        Segment::Guide(guide) => format!("guide: {}", guide.text()),
        Segment::Reply(reply) => format!("reply: {:?}", reply.answer()),
        Segment::Observation(seen) => format!("{} {}: {}", seen.call(), seen.is_ok(), seen.text()),
        Segment::Late(late) => format!("late: {}", late.text()),
    };
    context.segments().iter().map(shown).collect()
}

#[tokio::test]
async fn a_restored_context_is_the_one_that_was() {
    let (home, entries) = recorded().await;
    let bench = Bench::over(cut(home.path(), entries.len() as u64).await, setup()).await;
    let context = restore(&bench).await;
    assert_eq!(bench.entries().await.len(), entries.len(), "nothing had to be tied up");
    let shown = told_of(&context);
    assert_eq!(shown.first().unwrap(), "user: the first message");
    assert_eq!(shown.len(), 2 + 3 + 6, "{shown:#?}");
}

const ONLINE: &str = "\n[[rule]]\nname = \"online\"\nanswer = \"allow\"\npriority = 1\nmatch = { action = \"exec\", network = true }\n";

#[tokio::test]
async fn what_was_cut_off_after_it_had_asked_the_world_comes_from_there() {
    // Control: the same without a way to the network.
    for (network, integrity) in [(false, Integrity::Workspace), (true, Integrity::External)] {
        let call = ("c", "command_run", json!({ "command": "true", "network": network }));
        let server = ModelServer::start([Reply::calls([call]), Reply::text("done")]);
        let mut bench = Bench::new(setup().rule(ONLINE).model(&server)).await;
        let (scope, mut context) = bench.context("go").await;
        let mut events = std::mem::replace(&mut bench.events, tokio::sync::mpsc::channel(1).1);
        tokio::spawn(async move { while events.recv().await.is_some() {} });
        let hands = hands(&bench, &server, Wire::Anthropic, scope);
        assert_eq!(Loop::default().turn(&hands, &mut context).await.unwrap(), TurnEnd::Answered);
        let entries = bench.entries().await;
        drop(hands);
        let home = bench.close();
        let is_end = |kind: &'static str| entries.iter().filter(move |it| it.entry.fact.name() == kind);
        let (begun, ended) = (is_end("intent").nth(1).unwrap(), is_end("outcome").nth(1).unwrap());
        for after in [begun.entry.seq.0, ended.entry.seq.0] {
            let bench = Bench::over(cut(home.path(), after).await, setup().rule(ONLINE)).await;
            let context = restore(&bench).await;
            let Some(Segment::Observation(seen)) = context.segments().last() else { panic!("{context:?}") };
            assert_eq!(seen.labels().integrity, integrity, "{network} {after}");
        }
    }
}
