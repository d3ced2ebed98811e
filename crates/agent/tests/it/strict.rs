//! Turns against servers as strict as the strictest real ones, on every wire. The test kit's server
//! refuses a request whose roles do not alternate, whose calls and results do not fit, or whose
//! names and parameters are not of the wire.

use crate::{
    restore::restore,
    support::{ASK_DEPLOY, hands, interject, observations},
};
use bailey_agent::{Brain as _, Hands, Loop, Models, Patience, Retry, Route, TurnEnd};
use bailey_kernel::{Context, Provider, Refused, Segment};
use bailey_llm::Wire;
use bailey_protocol::{Answer, Happening};
use bailey_testkit::{Bench, Call, Message, ModelServer, Reply, Setup};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

async fn turn(hands: &Hands, context: &mut Context) -> TurnEnd {
    let end = Loop::default().turn(hands, context).await;
    end.unwrap_or_else(|error| panic!("{error}"))
}

async fn said(bench: &Bench, context: &mut Context, text: &str) {
    let (_, message) = bench.say(text).await;
    context.push(message);
}

/// Replies that number their calls alike, call missing tools by names that no wire takes, give arguments of a
/// wrong form, and say nothing. The conversation goes on through each of them, also past a guide and a
/// message that came meanwhile.
#[tokio::test]
async fn a_conversation_goes_on_whatever_the_model_wrote() {
    for wire in Wire::ALL {
        let call = |id: &str, name: &str, arguments| Call { id: id.into(), name: name.into(), arguments };
        let reads = json!({ "path": "sub/a.txt" });
        let server = ModelServer::start([
            Reply::Message(Message {
                calls: vec![
                    call("call_0", "fs_read", reads.clone()),
                    call("call_0", "command_run<|channel|>commentary", json!("echo hi")),
                    call("functions.x:1", "no such tool", json!([1])),
                ],
                usage: (10, 5),
                ..Message::default()
            }),
            Reply::calls([("call_0", "fs_read", reads)]),
            Reply::text(""),
            Reply::text("done"),
            Reply::text("again"),
        ]);
        let mut bench = Bench::new(Setup::default().model(&server)).await;
        bench.world.put("sub/a.txt", "alpha");
        bench.world.put("sub/AGENTS.md", "Use tabs.");
        bench.world.put("AGENTS.md", "Be kind.");
        let (scope, mut context) = bench.context("please do it").await;
        let hands = hands(&bench, &server, wire, scope);
        hands.guides.refresh(&bench.kernel, &hands.scope, &mut context).await.unwrap();
        let mut events = std::mem::replace(&mut bench.events, tokio::sync::mpsc::channel(1).1);
        let interjecting = async {
            while let Some(event) = events.recv().await {
                if matches!(event.happening, Happening::Call { .. }) {
                    interject(&bench, &hands.news, "a message in the middle").await;
                    break;
                }
            }
            while events.recv().await.is_some() {}
        };
        tokio::select! {
            end = turn(&hands, &mut context) => assert_eq!(end, TurnEnd::Answered, "{wire:?}"),
            () = interjecting => unreachable!(),
        }
        said(&bench, &mut context, "and now?").await;
        assert_eq!(turn(&hands, &mut context).await, TurnEnd::Answered, "{wire:?}");
        assert_eq!(server.requests().len(), 5, "{wire:?}: no request was refused");
        let guides = context.segments().iter().filter(|segment| matches!(segment, Segment::Guide(_))).count();
        assert_eq!(guides, 2, "{wire:?}");
    }
}

/// A session whose journal holds a reply that an older Bailey could not send
/// back. Its server refused each later request.
#[tokio::test]
async fn a_session_that_was_stuck_at_a_bad_name_goes_on() {
    for wire in Wire::ALL {
        let bad = "command_run<|channel|>commentary";
        let server = ModelServer::start([
            Reply::calls([("call_0", bad, json!({})), ("call_0", "", json!({}))]),
            Reply::error(400, "invalid_request_error", "Invalid 'messages[2].tool_calls[0].function.name'"),
            Reply::text("here I am"),
        ]);
        let bench = Bench::new(Setup::default().model(&server)).await;
        let (scope, mut context) = bench.context("please do it").await;
        let hands = hands(&bench, &server, wire, scope);
        let stuck = Loop::default().turn(&hands, &mut context).await;
        assert!(matches!(stuck, Err(Refused::Model(_))), "{wire:?}: {stuck:?}");
        let mut context = restore(&bench).await;
        said(&bench, &mut context, "please go on").await;
        assert_eq!(turn(&hands, &mut context).await, TurnEnd::Answered, "{wire:?}");
        let kept = context.segments().iter().find_map(|segment| match segment {
            Segment::Reply(reply) => reply.answer().calls.first().map(|call| call.name.clone()),
            _ => None,
        });
        assert_eq!(kept.as_deref(), Some(bad), "{wire:?}: the journal holds the name as it came");
    }
}

/// From each wire to each other: a model that stands in, or that the person
/// turned to, is told the same conversation.
#[tokio::test]
async fn a_conversation_goes_on_with_a_model_of_another_wire() {
    let strange =
        || [("call:1/ä", "fs.read", json!({ "path": "a.txt" })), ("call:1/ö", "nothing", json!("x"))];
    for first in Wire::ALL {
        for second in Wire::ALL {
            let calls = Reply::calls(strange());
            let down = ModelServer::start([calls, Reply::error(529, "overloaded_error", "busy")]);
            let up = ModelServer::start([Reply::calls(strange()), Reply::text("done")]);
            let mut setup = Setup::default().model(&down);
            setup.models.push(up.base_url());
            let bench = Bench::new(setup).await;
            bench.world.put("a.txt", "alpha");
            let (scope, mut context) = bench.context("please do it").await;
            let mut hands = hands(&bench, &down, first, scope);
            hands.retry = Retry { attempts: 1, ..hands.retry };
            let second: Arc<dyn Provider> = bench.provider(&up, second, 1000);
            hands.models = Models::new(Route::new(bench.provider(&down, first, 1000), [second]));
            assert_eq!(turn(&hands, &mut context).await, TurnEnd::Answered, "{first:?}");
            assert_eq!((down.requests().len(), up.requests().len()), (2, 2), "{first:?}");
        }
    }
}

/// A question that is answered only after the turn went on. Its result
/// comes late, as words beside the person's.
#[tokio::test]
async fn a_late_answer_is_taken_by_every_wire() {
    for wire in Wire::ALL {
        let server = ModelServer::start([
            Reply::calls([("d", "command_run", json!({ "argv": ["deploy", "it"] }))]),
            Reply::text("it waits"),
            Reply::text("it is deployed"),
        ]);
        let mut bench = Bench::new(Setup::default().rule(ASK_DEPLOY).model(&server)).await;
        let (scope, mut context) = bench.context("deploy it").await;
        let mut hands = hands(&bench, &server, wire, scope);
        hands.patience = Patience { call: Duration::from_millis(1), at_end: true };
        let mut events = std::mem::replace(&mut bench.events, tokio::sync::mpsc::channel(1).1);
        let answering = async {
            let (mut asked, mut said) = (None, String::new());
            while let Some(event) = events.recv().await {
                match event.happening {
                    Happening::Ask { id, .. } => asked = Some(id),
                    Happening::Text { text } => {
                        said.push_str(&text);
                        let Some(id) = asked.filter(|_| said.ends_with("waits")) else { continue };
                        asked = None;
                        hands.kernel.answer(&bench.connection, id, Answer::Yes, "owner", "").await.unwrap();
                    }
                    _ => {}
                }
            }
        };
        tokio::select! {
            end = turn(&hands, &mut context) => assert_eq!(end, TurnEnd::Answered, "{wire:?}"),
            () = answering => unreachable!(),
        }
        assert_eq!(server.requests().len(), 3, "{wire:?}");
        let late = context.segments().iter().filter(|segment| matches!(segment, Segment::Late(_))).count();
        assert_eq!(late, 1, "{wire:?}");
    }
}

/// A server whose window Bailey does not know refuses in its own words. Bailey makes
/// room until the server takes the request.
#[tokio::test]
async fn room_is_made_whatever_a_server_calls_too_long() {
    // Those of known servers, three that were made up, and one that names the window.
    for words in [
        "Invalid request: Your request exceeded model token limit",
        "Trying to keep the first 9000 tokens when context the overflows",
        "`inputs` tokens + `max_new_tokens` must be small",
        "the payload is too large: cut some tokens",
        "sequence length above what fits",
        "more context than the engine can hold",
        "we take 8000 tokens, and you sent 20000: context window",
    ] {
        let calls = AtomicUsize::new(0);
        let server = ModelServer::by(move |request| {
            let json = request.json();
            if json.get("tools").is_none() {
                return Reply::text("They ran commands.");
            }
            match (request.body.len() > 34_000, calls.fetch_add(1, Ordering::SeqCst)) {
                (true, _) => Reply::error(400, "invalid_request_error", words),
                (false, n) if n > 12 => Reply::text("done"),
                (false, n) => {
                    Reply::calls([(format!("c{n}").as_str(), "fs_read", json!({ "path": "big.txt" }))])
                }
            }
        });
        let bench = Bench::new(Setup { limit: 1_000_000_000, ..Setup::default() }.model(&server)).await;
        bench.world.put("big.txt", "A line of a file that is long and says little.\n".repeat(90));
        let (scope, mut context) = bench.context("read it often").await;
        let hands = hands(&bench, &server, Wire::OpenAiChat, scope);
        assert_eq!(turn(&hands, &mut context).await, TurnEnd::Answered, "{words}");
        let refused = server.requests().iter().filter(|request| request.body.len() > 34_000).count();
        assert!(refused > 0, "control: {words}");
    }
}

/// A refusal in such words that means something else is told in the server's own words, and no smaller window
/// is learned of it.
#[tokio::test]
async fn a_refusal_that_only_sounds_like_too_long_is_told_as_it_is() {
    let words = "a stop sequence has a length that exceeds its limit";
    let read = Reply::calls([("c1", "fs_read", json!({ "path": "a.txt" }))]);
    let refused = Reply::error(400, "invalid_request_error", words);
    let server = ModelServer::start([read, refused, Reply::text("done")]);
    let bench = Bench::new(Setup::default().model(&server)).await;
    bench.world.put("a.txt", "alpha");
    let (scope, mut context) = bench.context("please do it").await;
    let hands = hands(&bench, &server, Wire::OpenAiChat, scope);
    let window = hands.budget(&context).unwrap().window;
    let error = Loop::default().turn(&hands, &mut context).await.unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
    assert_eq!(hands.budget(&context).unwrap().window, window);
    said(&bench, &mut context, "and now?").await;
    assert_eq!(turn(&hands, &mut context).await, TurnEnd::Answered);
}

/// A server that refuses a parameter is asked without it, once, and is not sent it again.
#[tokio::test]
async fn a_refused_parameter_is_sent_once() {
    let server = ModelServer::by(|request| match request.json().get("stream_options") {
        Some(_) => {
            Reply::error(422, "invalid_request_error", "stream_options: Extra inputs are not permitted")
        }
        None => Reply::text("done"),
    });
    let bench = Bench::new(Setup::default().model(&server)).await;
    let (scope, mut context) = bench.context("please do it").await;
    let hands = hands(&bench, &server, Wire::OpenAiChat, scope);
    assert_eq!(turn(&hands, &mut context).await, TurnEnd::Answered);
    said(&bench, &mut context, "and now?").await;
    assert_eq!(turn(&hands, &mut context).await, TurnEnd::Answered);
    let sent: Vec<bool> =
        server.requests().iter().map(|request| request.json().get("stream_options").is_some()).collect();
    assert_eq!(sent, [true, false, false]);
}

/// A model that makes one failing call for ever is told so at the third call, and the turn
/// pauses at the fifth. Control: where something changes between two calls, the second may
/// come to something else, and nothing pauses.
#[tokio::test]
async fn a_model_that_repeats_a_failing_call_is_told_and_stopped() {
    for (name, arguments) in [
        ("fs_read", json!({ "path": "missing.txt" })),
        ("str_replace_everything", json!({})),
        ("command_run", json!("{\"command\": ")),
    ] {
        let numbers = AtomicUsize::new(0);
        let (name_, arguments_) = (name.to_owned(), arguments.clone());
        let server = ModelServer::by(move |_| {
            let id = format!("c{}", numbers.fetch_add(1, Ordering::SeqCst));
            Reply::calls([(id.as_str(), name_.as_str(), arguments_.clone())])
        });
        let mut bench = Bench::new(Setup::default().model(&server)).await;
        let (scope, mut context) = bench.context("please do it").await;
        let hands = hands(&bench, &server, Wire::OpenAiChat, scope);
        let mut events = std::mem::replace(&mut bench.events, tokio::sync::mpsc::channel(1).1);
        let answering = async {
            while let Some(event) = events.recv().await {
                if let Happening::Ask { id, .. } = event.happening {
                    hands.kernel.answer(&bench.connection, id, Answer::No, "owner", "").await.unwrap();
                }
            }
        };
        tokio::select! {
            end = turn(&hands, &mut context) => assert_eq!(end, TurnEnd::Stuck, "{name}"),
            () = answering => unreachable!(),
        }
        assert_eq!(observations(&context).len(), 5, "{name}");
        let told = server.requests().iter().filter(|request| request.body.contains("3 times")).count();
        assert_eq!(told, 2, "{name}: from the third on");
    }
    let step = AtomicUsize::new(0);
    let server = ModelServer::by(move |_| {
        let n = step.fetch_add(1, Ordering::SeqCst);
        let id = format!("c{n}");
        match n {
            20.. => Reply::text("done"),
            n if n % 2 == 0 => Reply::calls([(id.as_str(), "command_run", json!({ "command": "false" }))]),
            n => Reply::calls([(
                id.as_str(),
                "fs_write",
                json!({ "path": "a.txt", "content": n.to_string() }),
            )]),
        }
    });
    let bench = Bench::new(Setup::default().model(&server)).await;
    let (scope, mut context) = bench.context("please do it").await;
    let hands = hands(&bench, &server, Wire::OpenAiChat, scope);
    assert_eq!(turn(&hands, &mut context).await, TurnEnd::Answered);
}

/// A reply that is no answer is asked for once more. A second such reply ends the turn without an answer.
#[tokio::test]
async fn no_answer_is_not_taken_for_one() {
    let cut = || Reply::Message(Message { stop: Some("max_tokens".into()), ..Message::text("half an ans") });
    let written = || {
        Reply::text("<tool_call>{\"name\": \"fs_read\", \"arguments\": {\"path\": \"a.txt\"}}</tool_call>")
    };
    let none = || Reply::Message(Message { stop: Some("tool_use".into()), ..Message::text("I look.") });
    let done = || Reply::text("done");
    for (script, end, requests) in [
        (vec![Reply::text(""), done()], TurnEnd::Answered, 2),
        (vec![Reply::text(""), Reply::text(" ")], TurnEnd::Unanswered, 2),
        (vec![cut(), done()], TurnEnd::Answered, 2),
        (vec![cut(), cut()], TurnEnd::Unanswered, 2),
        (vec![written()], TurnEnd::Unanswered, 1),
        (vec![none()], TurnEnd::Unanswered, 1),
        (vec![done()], TurnEnd::Answered, 1),
    ] {
        for wire in [Wire::Anthropic, Wire::OpenAiChat] {
            let server = ModelServer::start(script.clone());
            let mut bench = Bench::new(Setup::default().model(&server)).await;
            let (scope, mut context) = bench.context("please do it").await;
            let hands = hands(&bench, &server, wire, scope);
            assert_eq!(turn(&hands, &mut context).await, end, "{wire:?} {script:?}");
            assert_eq!(server.requests().len(), requests, "{wire:?} {script:?}");
            let notices = bench.happened().into_iter().filter_map(|event| match event {
                Happening::Notice { text } => Some(text),
                _ => None,
            });
            let says_how = notices.filter(|text| text.contains("--jinja")).count();
            assert_eq!(says_how > 0, requests == 1 && end == TurnEnd::Unanswered, "{wire:?} {script:?}");
        }
    }
}
