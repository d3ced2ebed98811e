//! The end of a process in the background: told once, whatever moment the session is taken up at.

use crate::{
    restore::{cut, restored, told_of},
    support::{ASK_DEPLOY, hands},
};
use bailey_agent::{Brain as _, Hands, Loop, Patience, TurnEnd};
use bailey_journal::{Fact, Purpose, Recorded};
use bailey_kernel::{Chunk, Context};
use bailey_llm::Wire;
use bailey_protocol::{Answer, Enforced, Happening};
use bailey_testkit::{Bench, ModelServer, Reply, Setup};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio::sync::Notify;

const PATIENCE: Duration = Duration::from_secs(60);
/// The rules ask about this program.
const ASKED: &str = "deploy";
const END: &str = "process 1 has ended; exit code: 127";

fn setup() -> Setup {
    Setup::default().rule(ASK_DEPLOY)
}

/// Two turns; between them the process that the first one began ends. Answers what the model saw, the folder
/// and the entries.
async fn recorded(program: &'static str) -> (Vec<String>, TempDir, Vec<Recorded>) {
    let begin = Reply::calls([("c1", "command_run", json!({ "argv": [program, "it"], "background": true }))]);
    let waits = (program == ASKED).then(|| Reply::text("I wait"));
    let rest = [
        Reply::text("it runs"),
        Reply::calls([("c2", "command_run", json!({ "command": "true" }))]),
        Reply::text("done"),
    ];
    let server = ModelServer::start([begin].into_iter().chain(waits).chain(rest));
    let mut bench = Bench::new(setup().model(&server)).await;
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    bench.world.hook(move |effect, io| {
        let (out, wait) = (io.out.clone(), wait.clone());
        Box::pin(async move {
            if effect.action.target().contains(program) {
                out.send(Chunk::Begun(Enforced::default())).await.unwrap();
                wait.notified().await;
            }
            None
        })
    });
    let (scope, mut context) = bench.context("begin").await;
    let patience = Patience { call: Duration::ZERO, at_end: true };
    let hands = Hands { patience, ..hands(&bench, &server, Wire::Anthropic, scope) };
    let mut events = std::mem::replace(&mut bench.events, tokio::sync::mpsc::channel(1).1);
    let turns = async {
        turn(&hands, &mut context).await;
        go.notify_one();
        let over = async {
            while !hands.kernel.processes(hands.scope.session()).is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, over).await.unwrap();
        context.push(bench.say("go on").await.1);
        turn(&hands, &mut context).await;
    };
    let answering = async {
        let mut asked = None;
        while let Some(event) = events.recv().await {
            match event.happening {
                Happening::Ask { id, .. } => asked = Some(id),
                // The model works on meanwhile, and says so.
                Happening::Text { .. } => {
                    let Some(id) = asked.take() else { continue };
                    hands.kernel.answer(&bench.connection, id, Answer::Yes, "owner", "").await.unwrap();
                }
                _ => {}
            }
        }
    };
    tokio::select! {
        () = turns => {}
        () = answering => panic!("the events ended"),
    }
    let entries = bench.entries().await;
    let seen = told_of(&context);
    drop(hands);
    (seen, bench.close(), entries)
}

async fn turn(hands: &Hands, context: &mut Context) {
    assert_eq!(Loop::default().turn(hands, context).await.unwrap(), TurnEnd::Answered);
}

/// How often it is said that the process runs no more.
fn ends(seen: &[String]) -> usize {
    let words = [END, "ended with the session", "may have happened"];
    let its = seen.iter().filter(|text| !text.starts_with("c2 "));
    its.filter(|text| words.iter().any(|words| text.contains(words))).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_is_told_once_whatever_entry_a_session_is_taken_up_after() {
    for program in ["serve", ASKED] {
        let (seen, home, entries) = recorded(program).await;
        assert_eq!((ends(&seen), seen.len()), (1, if program == ASKED { 11 } else { 9 }), "{seen:#?}");
        let place =
            |is_it: &dyn Fn(&Recorded) -> bool| entries.iter().find(|it| is_it(it)).unwrap().entry.seq.0;
        let begun = place(
            &|it| matches!(&it.entry.fact, Fact::Intent { purpose: Purpose::Act, call: Some(call), .. } if call.0 == "c1"),
        );
        let told = place(&|it| matches!(it.entry.fact, Fact::Observation { .. }) && it.text().contains(END));
        for after in 3..=entries.len() as u64 {
            let bench = Bench::over(cut(home.path(), after).await, setup()).await;
            let first = restored(&bench).await;
            let shown = told_of(&first.context);
            assert_eq!(ends(&shown), usize::from(after >= begun), "{program} after {after}: {shown:#?}");
            assert!(
                after < told || shown.iter().any(|text| text.contains(END)),
                "{program} after {after}: {shown:#?}"
            );
            let second = restored(&bench).await;
            assert_eq!(told_of(&second.context), shown, "{program} after {after}");
            assert_eq!(second.waiting, first.waiting, "{program} after {after}");
            let is_both = !first.waiting.is_empty() && ends(&shown) > 0;
            assert!(!is_both, "it is told, and waited for: {program} after {after}");
        }
        let bench = Bench::over(cut(home.path(), entries.len() as u64).await, setup()).await;
        assert_eq!(told_of(&restored(&bench).await.context), seen, "{program}");
    }
}
