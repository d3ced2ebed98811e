//! Questions to a human: asked, answered once, good for exactly what was shown.

use crate::support::{ASK_DEPLOY, Toy, asked, call, done};
use bailey_journal::QUESTIONS_MAX;
use bailey_kernel::{CallOutcome, JournalError, NewSession, Refused};
use bailey_llm::Wire;
use bailey_policy::{Caveat, Condition, Glob, file};
use bailey_protocol::{Answer, CardPart, Digest, Happening, Kind, Profile, SessionId};
use bailey_testkit::{Bench, FakeClock, ModelServer, Reply, Setup};
use std::{sync::Arc, time::Duration};

async fn bench() -> Bench {
    Bench::new(Setup::default().rule(ASK_DEPLOY)).await
}

#[tokio::test]
async fn a_yes_lets_the_shown_effect_run_once() {
    let mut bench = bench().await;
    let (scope, context) = bench.context("go").await;
    let tool = Toy::run("deploy a");
    let id = asked(&bench, &scope, &context, &tool).await;
    assert_eq!(bench.world.spans(), []);
    let cards: Vec<_> = bench
        .happened()
        .into_iter()
        .filter_map(|event| match event {
            Happening::Ask { id, card, call } => Some((id, card, call)),
            _ => None,
        })
        .collect();
    let [(asked_id, card, Some(asked_call))] = cards.as_slice() else { panic!("{cards:?}") };
    assert_eq!((*asked_id, asked_call), (id, &call("c1").id));
    assert!(card.reasons[0].contains("deployments are looked at"), "{card:?}");
    bench.kernel.answer(&bench.connection, id, Answer::Yes, "owner", "fine").await.unwrap();
    let step = bench.kernel.resume(&scope, &context.provenance(), id, &tool, &call("c1")).await.unwrap();
    assert!(matches!(step, CallOutcome::Done(_)));
    assert_eq!(bench.world.targets(), ["deploy a"]);
    // Once: neither the question nor the yes is good again.
    let again = bench.kernel.resume(&scope, &context.provenance(), id, &tool, &call("c1")).await;
    assert!(matches!(again, Err(Refused::NoQuestion(_))));
    let second = asked(&bench, &scope, &context, &tool).await;
    assert_ne!(second, id);
    assert_eq!(bench.world.targets(), ["deploy a"]);
}

/// One turn asked two hundred questions: who is asked so often says yes to be rid of them.
#[tokio::test]
async fn a_session_has_so_many_open_questions_and_the_next_call_waits_for_room() {
    let bench = bench().await;
    let (scope, context) = bench.context("go").await;
    let tool = Toy::run("deploy a");
    let mut open = Vec::new();
    for _ in 0..QUESTIONS_MAX {
        open.push(asked(&bench, &scope, &context, &tool).await);
    }
    // With no room in time it is refused, and its model is told why.
    let because = context.provenance();
    let refused = bench.kernel.call(&scope, &because, &tool, &call("c1")).await.unwrap();
    let CallOutcome::Done(observation) = refused else { panic!("{refused:?}") };
    assert!(observation.text().contains("questions of this session wait"), "{}", observation.text());
    let count = async || bench.journal.questions(Some(scope.session())).await.unwrap().len();
    assert_eq!(count().await, QUESTIONS_MAX);
    // The next one does not wait once more for the same.
    let begin = std::time::Instant::now();
    drop(bench.kernel.call(&scope, &because, &tool, &call("c1")).await.unwrap());
    assert!(begin.elapsed() < Duration::from_millis(250), "{:?}", begin.elapsed());
    // That is so of this session: in another one a call waits for room as the first one here did.
    let other = SessionId::new(1_767_000_000_000, [8; 10]);
    let (workspace, principal, model) = (Bench::WORKSPACE.into(), "owner".into(), "test/model".into());
    let new = NewSession { agent: None, confined: None, workspace, principal, model };
    bench.journal.open_session(other, new).await.unwrap();
    let connection = bench.registrar.connect(other, Bench::WORKSPACE.into(), bench.sender.clone());
    let there = bench.kernel.turn_of(&connection);
    for _ in 0..QUESTIONS_MAX {
        asked(&bench, &there, &context, &tool).await;
    }
    for waits in [true, false] {
        let begin = std::time::Instant::now();
        drop(bench.kernel.call(&there, &because, &tool, &call("c1")).await.unwrap());
        assert_eq!(begin.elapsed() >= Duration::from_millis(300), waits, "{:?}", begin.elapsed());
    }
    let answer =
        async |id| bench.kernel.answer(&bench.connection, id, Answer::No, "owner", "").await.unwrap();
    answer(open[0]).await;
    asked(&bench, &scope, &context, &tool).await;
    // Where one is answered meanwhile, the call that waits is asked about.
    let call = call("c1");
    let waits = bench.kernel.call(&scope, &because, &tool, &call);
    let later = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        answer(open[1]).await;
    };
    let (step, ()) = tokio::join!(waits, later);
    assert!(matches!(step.unwrap(), CallOutcome::Waiting(_)));
    assert_eq!(count().await, QUESTIONS_MAX + 2);
}

#[tokio::test]
async fn a_no_and_silence_let_nothing_run() {
    let bench = bench().await;
    let (scope, context) = bench.context("go").await;
    let tool = Toy::run("deploy a");
    for answer in [Some(Answer::No), None] {
        let id = asked(&bench, &scope, &context, &tool).await;
        if let Some(answer) = answer {
            bench.kernel.answer(&bench.connection, id, answer, "owner", "").await.unwrap();
        }
        let step = bench.kernel.resume(&scope, &context.provenance(), id, &tool, &call("c1")).await;
        assert!(matches!(step, Err(Refused::Journal(JournalError::NotGranted(_)))), "{step:?}");
    }
    assert_eq!(bench.world.spans(), []);
}

#[tokio::test]
async fn the_first_of_two_answers_counts() {
    let bench = bench().await;
    let (scope, context) = bench.context("go").await;
    let tool = Toy::run("deploy a");
    let id = asked(&bench, &scope, &context, &tool).await;
    bench.kernel.answer(&bench.connection, id, Answer::No, "owner", "").await.unwrap();
    let late = bench.kernel.answer(&bench.connection, id, Answer::Yes, "owner", "").await;
    assert!(matches!(late, Err(Refused::Journal(JournalError::Settled(_)))));
    assert!(bench.kernel.resume(&scope, &context.provenance(), id, &tool, &call("c1")).await.is_err());
    assert_eq!(bench.facts("answered").await.len(), 1);
    assert_eq!(bench.world.spans(), []);
}

#[tokio::test]
async fn a_yes_for_the_session_is_for_this_exact_action() {
    let bench = bench().await;
    let (scope, context) = bench.context("go").await;
    let tool = Toy::run("deploy a");
    let id = asked(&bench, &scope, &context, &tool).await;
    bench.kernel.answer(&bench.connection, id, Answer::YesForSession, "owner", "").await.unwrap();
    bench.kernel.resume(&scope, &context.provenance(), id, &tool, &call("c1")).await.unwrap();
    // Not asked again.
    done(&bench, &scope, &context, &tool).await;
    done(&bench, &scope, &context, &Toy::run("deploy a")).await;
    assert_eq!(bench.world.targets(), ["deploy a", "deploy a", "deploy a"]);
    // One byte more is another action.
    asked(&bench, &scope, &context, &Toy::run("deploy ab")).await;
    asked(&bench, &scope, &context, &Toy::run("deploy b")).await;
    assert_eq!(bench.world.spans().len(), 3);
    // It lasts over a restart, for this session.
    let again = Bench::over(bench.close(), Setup::default().rule(ASK_DEPLOY)).await;
    let (scope, context) = again.context("go").await;
    done(&again, &scope, &context, &tool).await;
    // And not over a change of the rules.
    let changed = Setup::default().rule(ASK_DEPLOY).rule(&ASK_DEPLOY.replace("ask-deploy", "ask-again"));
    let changed = Bench::over(again.close(), changed).await;
    let (scope, context) = changed.context("go").await;
    asked(&changed, &scope, &context, &tool).await;
}

#[tokio::test]
async fn another_sessions_connection_answers_nothing() {
    let bench = bench().await;
    let (scope, context) = bench.context("go").await;
    let tool = Toy::run("deploy a");
    let id = asked(&bench, &scope, &context, &tool).await;
    let other = SessionId::new(2, [2; 10]);
    let new = NewSession {
        agent: None,
        confined: None,
        workspace: "/w".into(),
        principal: "owner".into(),
        model: "m".into(),
    };
    bench.journal.open_session(other, new).await.unwrap();
    let foreign = bench.registrar.connect(other, "/w".into(), bench.sender.clone());
    let answered = bench.kernel.answer(&foreign, id, Answer::Yes, "owner", "").await;
    assert!(matches!(answered, Err(Refused::Journal(JournalError::Settled(_)))), "{answered:?}");
    assert!(bench.facts("answered").await.is_empty());
    // The control: the session's own can.
    bench.kernel.answer(&bench.connection, id, Answer::Yes, "owner", "").await.unwrap();
    bench.kernel.resume(&scope, &context.provenance(), id, &tool, &call("c1")).await.unwrap();
    assert_eq!(bench.world.targets(), ["deploy a"]);
}

#[tokio::test]
async fn a_yes_is_about_the_files_that_a_command_names_as_they_were() {
    let bench = bench().await;
    let (scope, context) = bench.context("go").await;
    bench.world.put("deploy.sh", "echo harmless");
    let tool = Toy::run("deploy deploy.sh");
    // Once: another file by then is not run. The control: the same file is.
    for (then, runs) in [("echo harmful", 0), ("echo harmful", 1)] {
        let id = asked(&bench, &scope, &context, &tool).await;
        bench.kernel.answer(&bench.connection, id, Answer::Yes, "owner", "").await.unwrap();
        bench.world.put("deploy.sh", then);
        let step = bench.kernel.resume(&scope, &context.provenance(), id, &tool, &call("c1")).await.unwrap();
        let CallOutcome::Done(seen) = step else { panic!("{step:?}") };
        assert_eq!(bench.world.spans().len(), runs, "{}", seen.text());
        assert_eq!(
            seen.text().contains("not what it was when the human was asked"),
            runs == 0,
            "{}",
            seen.text()
        );
    }
    // For the session: as long as it is that file.
    let id = asked(&bench, &scope, &context, &tool).await;
    bench.kernel.answer(&bench.connection, id, Answer::YesForSession, "owner", "").await.unwrap();
    bench.kernel.resume(&scope, &context.provenance(), id, &tool, &call("c1")).await.unwrap();
    done(&bench, &scope, &context, &tool).await;
    assert_eq!(bench.world.spans().len(), 3);
    bench.world.put("deploy.sh", "echo other");
    asked(&bench, &scope, &context, &tool).await;
    bench.world.put("deploy.sh", "echo harmful");
    done(&bench, &scope, &context, &tool).await;
    assert_eq!(bench.world.spans().len(), 4, "what was approved is approved");
    // The control: where nobody looks at the file, another one runs on that yes.
    bench.world.blind();
    bench.world.put("deploy.sh", "echo before");
    let id = asked(&bench, &scope, &context, &tool).await;
    bench.kernel.answer(&bench.connection, id, Answer::Yes, "owner", "").await.unwrap();
    bench.world.put("deploy.sh", "echo after");
    bench.kernel.resume(&scope, &context.provenance(), id, &tool, &call("c1")).await.unwrap();
    assert_eq!(bench.world.spans().len(), 5);
}

/// Rules that ask before commands that count, and one that asks before those that count long.
const ASK_COUNT: &str = r#"
[[rule]]
name = "ask-count"
answer = "review"
reason = "counting is looked at"
match = { command = ["wc", "grep"] }

[[rule]]
name = "ask-long"
answer = "review"
reason = "what counts long is looked at"
match = { command = "wc --long" }
"#;

/// A13: a yes for a pattern covers what its card says and nothing else; each case beside one that it covers.
#[tokio::test]
async fn a_yes_for_a_pattern_covers_what_its_card_says() {
    let mut bench = Bench::new(Setup::default().rule(ASK_COUNT).rule(ASK_DEPLOY)).await;
    let (scope, context) = bench.context("go").await;
    // Where there is no pattern, none can be said yes to, and the question stays open.
    let tool = Toy::run("deploy a");
    let id = asked(&bench, &scope, &context, &tool).await;
    let none = bench.kernel.answer(&bench.connection, id, Answer::YesForPattern, "owner", "").await;
    assert!(matches!(none, Err(Refused::Journal(JournalError::NoAnswer(..)))), "{none:?}");
    bench.kernel.answer(&bench.connection, id, Answer::No, "owner", "").await.unwrap();
    bench.happened();

    let tool = Toy::run("wc -c");
    let id = asked(&bench, &scope, &context, &tool).await;
    let offered = bench.happened().into_iter().find_map(|event| match event {
        Happening::Ask { card, .. } => card.pattern,
        _ => None,
    });
    assert!(offered.unwrap().contains("every `wc …`"));
    bench.kernel.answer(&bench.connection, id, Answer::YesForPattern, "owner", "").await.unwrap();
    bench.kernel.resume(&scope, &context.provenance(), id, &tool, &call("c1")).await.unwrap();
    for line in ["wc -c", "wc --bytes a"] {
        done(&bench, &scope, &context, &Toy::run(line)).await;
    }
    assert_eq!(bench.world.spans().len(), 3);
    // Another command, and one that another rule asks about besides.
    for line in ["grep log", "./wc a", "wc --long"] {
        asked(&bench, &scope, &context, &Toy::run(line)).await;
    }
    // Another program of that name.
    done(&bench, &scope, &context, &Toy::run("wc a")).await;
    bench.world.put("wc", "another wc");
    asked(&bench, &scope, &context, &Toy::run("wc a")).await;
    let stored = bench.facts("answered").await;
    assert!(format!("{stored:?}").contains("YesForPattern"), "{stored:?}");
    // Over a restart it lasts, over a change of the rules it does not.
    let setup = Setup::default().rule(ASK_COUNT).rule(ASK_DEPLOY);
    let again = Bench::over(bench.close(), setup.clone()).await;
    let (scope, context) = again.context("go").await;
    done(&again, &scope, &context, &Toy::run("wc b")).await;
    let changed =
        Bench::over(again.close(), setup.rule(&ASK_DEPLOY.replace("ask-deploy", "ask-again"))).await;
    let (scope, context) = changed.context("go").await;
    asked(&changed, &scope, &context, &Toy::run("wc b")).await;
}

/// A yes is its asker's: what a sub-agent was granted is neither its parent's nor the next one's, and the
/// reverse.
#[tokio::test]
async fn a_yes_is_good_for_whoever_asked() {
    let rules = format!("{ASK_DEPLOY}{ASK_COUNT}");
    let narrowing = file::parse("project.toml", &rules, file::Format::Toml).unwrap().rules;
    for (answer, line, same) in [
        (Answer::YesForSession, "deploy a", "deploy a"),
        (Answer::YesForPattern, "wc -c", "wc b"),
        (Answer::Yes, "deploy a", "deploy a"),
    ] {
        for first in 0..3 {
            let bench = Bench::new(Setup { narrowing: narrowing.clone(), ..Setup::default() }).await;
            let (parent, context) = bench.context("go").await;
            let mut askers = vec![parent.clone()];
            for _ in 0..2 {
                let runs = Condition {
                    action: Some(vec![Kind::Exec]),
                    path: Some(vec![Glob::new("{workspace}/**").unwrap()]),
                    network: Some(false),
                    ..Condition::default()
                };
                let expires = bench.journal.clock().now().checked_add(Duration::from_secs(60)).ok();
                let caveat =
                    Caveat { scope: Some(vec![runs]), expires, operations: Some(9), ..Caveat::default() };
                let token = bench.kernel.mint_token(&parent, caveat).await.unwrap();
                askers.push(parent.confined(token, None));
            }
            let id = asked(&bench, &askers[first], &context, &Toy::run(line)).await;
            bench.kernel.answer(&bench.connection, id, answer, "owner", "").await.unwrap();
            for other in (0..3).filter(|other| *other != first) {
                asked(&bench, &askers[other], &context, &Toy::run(same)).await;
            }
            assert_eq!(bench.world.spans(), [], "{answer:?} of {first}");
            done(&bench, &askers[first], &context, &Toy::run(same)).await;
            assert_eq!(bench.world.targets(), [same], "control: {answer:?} of {first}");
        }
    }
}

/// A yes that lasts is for the system calls that the walls left when it was given.
#[tokio::test]
async fn a_yes_is_for_the_walls_that_it_was_asked_under() {
    let list = |text: &[u8]| Some(Digest::of(text));
    let walls = [
        (Profile::Strict, None),
        (Profile::Standard, None),
        (Profile::Custom, list(b"a list")),
        (Profile::Custom, list(b"another list")),
    ];
    let setup = |profile| Setup { profile, ..Setup::default().rule(ASK_DEPLOY).rule(ASK_COUNT) };
    for then in walls {
        let bench = Bench::new(setup(then)).await;
        let (scope, context) = bench.context("go").await;
        for (line, answer) in [("deploy a", Answer::YesForSession), ("wc -c", Answer::YesForPattern)] {
            let id = asked(&bench, &scope, &context, &Toy::run(line)).await;
            bench.kernel.answer(&bench.connection, id, answer, "owner", "").await.unwrap();
        }
        let mut home = bench.close();
        for now in walls {
            let bench = Bench::over(home, setup(now)).await;
            let (scope, context) = bench.context("go").await;
            for line in ["deploy a", "wc b"] {
                if now == then {
                    done(&bench, &scope, &context, &Toy::run(line)).await;
                } else {
                    asked(&bench, &scope, &context, &Toy::run(line)).await;
                }
            }
            assert_eq!(bench.world.targets().len(), if now == then { 2 } else { 0 }, "{then:?} {now:?}");
            home = bench.close();
        }
    }
}

/// Under compliance no yes lasts, none stands in for another, and each needs a reason; without it, the same
/// answers do.
#[tokio::test]
async fn under_compliance_a_human_answers_each_question_with_a_reason() {
    for compliance in [true, false] {
        let setup = Setup { compliance, ..Setup::default().rule(ASK_COUNT) };
        let mut bench = Bench::new(setup).await;
        let (scope, context) = bench.context("go").await;
        let tool = Toy::run("wc -c");
        let id = asked(&bench, &scope, &context, &tool).await;
        let card = bench.happened().into_iter().find_map(|event| match event {
            Happening::Ask { card, .. } => Some(card),
            _ => None,
        });
        let card = card.unwrap();
        assert_eq!((card.once, card.reasoned, card.pattern.is_some()), (compliance, compliance, !compliance));
        for (answer, why) in
            [(Answer::YesForSession, "fine"), (Answer::YesForPattern, "fine"), (Answer::Yes, " ")]
        {
            let given = bench.kernel.answer(&bench.connection, id, answer, "owner", why).await;
            if compliance {
                assert!(
                    matches!(given, Err(Refused::Journal(JournalError::NoAnswer(..)))),
                    "{answer:?}: {given:?}"
                );
            } else {
                given.unwrap();
                break;
            }
        }
        if compliance {
            bench.kernel.answer(&bench.connection, id, Answer::Yes, "owner", "it only looks").await.unwrap();
        }
        bench.kernel.resume(&scope, &context.provenance(), id, &tool, &call("c1")).await.unwrap();
        match compliance {
            true => drop(asked(&bench, &scope, &context, &Toy::run("wc -c")).await),
            false => drop(done(&bench, &scope, &context, &Toy::run("wc -c")).await),
        }
    }
}

/// What is asked once more is asked on today's terms, not on those of the day on which it ran out.
#[tokio::test]
async fn what_is_asked_once_more_is_asked_under_the_compliance_of_today() {
    for compliance in [true, false] {
        let clock = Arc::new(FakeClock::default());
        let setup = Setup { clock: clock.clone(), ..Setup::default().rule(ASK_COUNT) };
        let bench = Bench::new(setup.clone()).await;
        let (scope, context) = bench.context("go").await;
        let id = asked(&bench, &scope, &context, &Toy::run("wc -c")).await;
        clock.advance(Duration::from_secs(300));
        bench.kernel.settlement(&scope, id).await.unwrap();
        let mut bench = Bench::over(bench.close(), Setup { compliance, ..setup }).await;
        let (scope, _) = bench.context("go").await;
        bench.happened();
        bench.kernel.ask_again(&scope, id).await.unwrap();
        let shown = bench.happened().into_iter().find_map(|event| match event {
            Happening::Ask { id, card, .. } => Some((id, card)),
            _ => None,
        });
        let (again, card) = shown.unwrap();
        assert_eq!((card.once, card.reasoned, card.pattern), (compliance, compliance, None));
        for answer in [Answer::YesForPattern, Answer::YesForSession, Answer::Yes] {
            let given = bench.kernel.answer(&bench.connection, again, answer, "owner", "").await;
            let is_taken = !compliance && answer == Answer::YesForSession;
            assert_eq!(given.is_ok(), is_taken, "{compliance}, {answer:?}: {given:?}");
            if is_taken {
                break;
            }
        }
        if compliance {
            bench.kernel.answer(&bench.connection, again, Answer::Yes, "owner", "it looks").await.unwrap();
        }
    }
}

/// Attack A64: the card of the next small step says what all of them came to.
#[tokio::test]
async fn a64_a_card_says_what_the_session_came_to_so_far() {
    let server = ModelServer::always(Reply::text("go on"));
    let mut bench = Bench::new(Setup::default().rule(ASK_DEPLOY).model(&server)).await;
    let (scope, context) = bench.context("go").await;
    let so_far = |bench: &mut Bench| {
        let cards = bench.happened().into_iter().filter_map(|event| match event {
            Happening::Ask { card, .. } => Some(card),
            _ => None,
        });
        let parts = cards.flat_map(|card| card.parts).filter_map(|part| match part {
            CardPart::Field { name, value, .. } if name == "this session so far" => Some(value),
            _ => None,
        });
        parts.collect::<Vec<_>>()
    };
    asked(&bench, &scope, &context, &Toy::run("deploy a")).await;
    assert_eq!(so_far(&mut bench), Vec::<String>::new(), "nothing was done before");
    let provider = bench.provider(&server, Wire::Anthropic, 100);
    for at in 0..3 {
        done(&bench, &scope, &context, &Toy::run(&format!("write f{at} x"))).await;
        bench.kernel.converse(&scope, &context, &*provider, &[]).await.unwrap();
    }
    asked(&bench, &scope, &context, &Toy::run("deploy b")).await;
    let url = server.base_url();
    let host = url.split_once("://").unwrap().1.split('/').next().unwrap();
    let [value] = so_far(&mut bench).try_into().unwrap();
    let rest = value.strip_prefix("sent ").unwrap();
    let (bytes, rest) = rest.split_once(" bytes to ").unwrap();
    let bodies: usize = server.requests().iter().map(|request| request.body.len()).sum();
    assert!(
        bytes.parse::<usize>().unwrap() > bodies && bytes.parse::<usize>().unwrap() < bodies + 1000,
        "{value}"
    );
    assert_eq!(rest, format!("{host}; 0 changes and 3 commands, which changed 3 files"));
}
