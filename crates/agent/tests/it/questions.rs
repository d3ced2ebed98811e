//! Calls that wait for a human inside a turn.

use crate::{
    restore::{cut, restore, restored, told_of},
    support::{ASK_DEPLOY, Table, assert_every_call_has_its_result, table_with},
};
use bailey_agent::{Brain as _, Loop, Patience, PendingCalls, TurnEnd};
use bailey_journal::{Fact, Purpose, QuestionState, Recorded};
use bailey_kernel::{CallOutcome, Restored};
use bailey_llm::Wire;
use bailey_protocol::{Answer, ApprovalId, Happening};
use bailey_testkit::{Bench, FakeClock, ModelServer, Reply, Setup};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

async fn asking() -> Table {
    table_with([], Setup::default().rule(ASK_DEPLOY)).await
}

fn deploy(what: &str) -> Value {
    json!({ "argv": ["deploy", what], "reads": [], "writes": [] })
}

/// The next question that front ends are told of.
async fn question(table: &mut Table) -> ApprovalId {
    next_question(&mut table.bench.events).await
}

async fn next_question(events: &mut tokio::sync::mpsc::Receiver<bailey_protocol::Event>) -> ApprovalId {
    loop {
        if let Happening::Ask { id, .. } = events.recv().await.unwrap().happening {
            return id;
        }
    }
}

/// Answers as the session host does.
async fn answer(hands: &bailey_agent::Hands, by: &bailey_kernel::Connection, id: ApprovalId, answer: Answer) {
    let why = "a test".to_owned();
    hands.kernel.answer(by, id, answer, "owner", &why).await.unwrap();
}

#[tokio::test]
async fn yes_runs_it_and_no_tells_why_not() {
    for (given, text) in [(Answer::Yes, "exit code: 127"), (Answer::No, "not approved: a test")] {
        let mut table = asking().await;
        let hands = table.hands.clone();
        let context = table.context.clone();
        let running = tokio::spawn(async move {
            let call = bailey_testkit::tool_call("d", "command.run", &deploy("a"));
            hands.calls(&context, &[call], 99).await.unwrap()
        });
        let id = question(&mut table).await;
        assert_eq!(table.bench.world.spans(), []);
        answer(&table.hands, &table.bench.connection, id, given).await;
        let seen = running.await.unwrap();
        assert!(seen[0].text().contains(text), "{}", seen[0].text());
        assert_eq!(table.bench.world.spans().len(), usize::from(given == Answer::Yes));
    }
}

#[tokio::test]
async fn answers_in_any_order_reach_their_calls() {
    let mut table = asking().await;
    let (hands, context) = (table.hands.clone(), table.context.clone());
    let running = tokio::spawn(async move {
        let call = |id: &str| bailey_testkit::tool_call(id, "command.run", &deploy(id));
        hands.calls(&context, &[call("a"), call("b"), call("c")], 99).await.unwrap()
    });
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(question(&mut table).await);
    }
    for id in ids.iter().rev() {
        answer(&table.hands, &table.bench.connection, *id, Answer::Yes).await;
    }
    let seen = running.await.unwrap();
    for (seen, id) in seen.iter().zip(["a", "b", "c"]) {
        assert!(seen.text().contains(&format!("$ deploy {id}")), "{}", seen.text());
    }
}

/// A server may call a later call by the same name.
#[tokio::test]
async fn a_yes_to_a_call_that_was_not_done_after_all_is_good_for_no_later_one() {
    let mut table = asking().await;
    table.bench.world.put("a.sh", "echo harmless");
    let (hands, context) = (table.hands.clone(), table.context.clone());
    let calling = || {
        let (hands, context) = (hands.clone(), context.clone());
        tokio::spawn(async move {
            let call = bailey_testkit::tool_call("d", "command.run", &deploy("a.sh"));
            hands.calls(&context, &[call], 99).await.unwrap()
        })
    };
    let running = calling();
    let id = question(&mut table).await;
    table.bench.world.put("a.sh", "echo harmful");
    answer(&table.hands, &table.bench.connection, id, Answer::Yes).await;
    let seen = running.await.unwrap();
    assert!(seen[0].text().contains("not what it was"), "{}", seen[0].text());
    table.bench.world.put("a.sh", "echo harmless");
    let running = calling();
    let asked = tokio::time::timeout(Duration::from_secs(10), question(&mut table)).await;
    let again = asked.expect("it is done on the yes of before");
    assert_ne!(again, id);
    // The control: one that is done is done on its own yes.
    answer(&table.hands, &table.bench.connection, again, Answer::Yes).await;
    running.await.unwrap();
    assert_eq!(table.bench.world.targets(), ["deploy a.sh"]);
}

#[tokio::test]
async fn a_yes_for_the_session_is_not_asked_again() {
    let mut table = asking().await;
    let (hands, context) = (table.hands.clone(), table.context.clone());
    let running = tokio::spawn(async move {
        let call = |id: &str| bailey_testkit::tool_call(id, "command.run", &deploy("a"));
        hands.calls(&context, &[call("1")], 99).await.unwrap();
        hands.calls(&context, &[call("2")], 99).await.unwrap()
    });
    let id = question(&mut table).await;
    answer(&table.hands, &table.bench.connection, id, Answer::YesForSession).await;
    running.await.unwrap();
    assert_eq!(table.bench.world.targets(), ["deploy a", "deploy a"]);
    assert_eq!(table.bench.facts("asked").await.len(), 1);
}

#[tokio::test]
async fn cancelling_ends_the_wait() {
    let mut table = asking().await;
    let (hands, context) = (table.hands.clone(), table.context.clone());
    let running = tokio::spawn(async move {
        let call = bailey_testkit::tool_call("d", "command.run", &deploy("a"));
        hands.calls(&context, &[call], 99).await.unwrap()
    });
    question(&mut table).await;
    table.hands.scope.cancel().cancel();
    let seen = running.await.unwrap();
    assert!(seen[0].text().contains("before answering"), "{}", seen[0].text());
    assert_eq!(table.bench.world.spans(), []);
}

/// A model that asks for a deployment, works on while that waits, and answers.
fn deploying() -> [Reply; 4] {
    [
        Reply::calls([("d", "command_run", json!({ "argv": ["deploy", "a"] }))]),
        Reply::calls([("w", "command_run", json!({ "command": "echo meanwhile" }))]),
        Reply::text("I wait for the deployment."),
        Reply::text("done"),
    ]
}

async fn impatient(script: impl IntoIterator<Item = Reply>, at_end: bool) -> Table {
    let mut table = table_with(script, Setup::default().rule(ASK_DEPLOY)).await;
    table.hands.patience = Patience { call: Duration::ZERO, at_end };
    table
}

#[tokio::test]
async fn the_model_works_on_while_a_question_waits_and_is_woken_by_the_answer() {
    for (given, late) in [(Answer::Yes, "exit code: 127"), (Answer::No, "not approved: a test")] {
        let mut table = impatient(deploying(), true).await;
        let (hands, mut context) = (table.hands.clone(), table.context.clone());
        let running = tokio::spawn(async move {
            let end = Loop::default().turn(&hands, &mut context).await.unwrap();
            (end, context)
        });
        let id = question(&mut table).await;
        // It has said that it waits, and nothing more comes of it.
        while table.server.requests().len() < 3 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(table.bench.world.targets(), ["echo meanwhile"], "nothing waits for the answer");
        answer(&table.hands, &table.bench.connection, id, given).await;
        let (end, context) = running.await.unwrap();
        assert_eq!(end, TurnEnd::Answered);
        assert!(table.request(1).contains("a person is asked"), "{}", table.request(1));
        assert!(!table.request(2).contains(late), "{}", table.request(2));
        let woken = table.request(3);
        assert!(woken.contains("of the call d of `command_run`") && woken.contains(late), "{woken}");
        assert_eq!(table.bench.world.targets().len(), if given == Answer::Yes { 2 } else { 1 });
        assert_every_call_has_its_result(&context);
        // The journal holds it as the model saw it.
        assert_eq!(restore(&table.bench).await.segments(), context.segments());
    }
}

#[tokio::test]
async fn a_question_that_nobody_answers_runs_out_and_is_a_no() {
    let clock = Arc::new(FakeClock::default());
    let setup = Setup { clock: clock.clone(), ..Setup::default().rule(ASK_DEPLOY) };
    let mut table = table_with(deploying(), setup).await;
    table.hands.patience = Patience { call: Duration::ZERO, at_end: true };
    let (hands, mut context) = (table.hands.clone(), table.context.clone());
    let running = tokio::spawn(async move { Loop::default().turn(&hands, &mut context).await.unwrap() });
    let id = question(&mut table).await;
    clock.advance(Duration::from_secs(299));
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(!running.is_finished(), "it is open for five minutes");
    clock.advance(Duration::from_secs(1));
    assert_eq!(running.await.unwrap(), TurnEnd::Answered);
    assert!(table.request(3).contains("not approved: nobody answered in time"), "{}", table.request(3));
    assert_eq!(table.bench.world.targets(), ["echo meanwhile"]);
    let late = table.bench.kernel.answer(&table.bench.connection, id, Answer::Yes, "owner", "").await;
    assert!(late.is_err(), "a late yes counts for nothing");
}

#[tokio::test]
async fn what_ran_out_is_asked_once_more_and_its_yes_counts() {
    let clock = Arc::new(FakeClock::default());
    let setup = Setup { clock: clock.clone(), ..Setup::default().rule(ASK_DEPLOY) };
    let script = deploying().into_iter().chain([Reply::text("now it is done")]);
    let mut table = table_with(script, setup).await;
    table.hands.patience = Patience { call: Duration::ZERO, at_end: false };
    let (hands, mut context) = (table.hands.clone(), table.context.clone());
    assert_eq!(Loop::default().turn(&hands, &mut context).await.unwrap(), TurnEnd::Waiting);
    let id = question(&mut table).await;
    let scope = table.hands.scope.clone();
    assert!(table.bench.kernel.ask_again(&scope, id).await.is_err(), "it is still open");
    clock.advance(Duration::from_secs(300));
    table.bench.kernel.ask_again(&scope, id).await.unwrap();
    let again = question(&mut table).await;
    assert_ne!(again, id);
    answer(&table.hands, &table.bench.connection, again, Answer::Yes).await;
    Loop::default().turn(&hands, &mut context).await.unwrap();
    assert_eq!(table.bench.world.targets(), ["echo meanwhile", "deploy a"]);
    assert!(table.bench.kernel.ask_again(&scope, again).await.is_err(), "it was answered");
}

/// Some servers number the calls of each reply anew: the yes was taken for the later call of that name, and
/// lost.
#[tokio::test]
async fn what_is_asked_once_more_is_its_own_call_where_a_later_one_has_its_name() {
    let clock = Arc::new(FakeClock::default());
    let setup = Setup { clock: clock.clone(), ..Setup::default().rule(ASK_DEPLOY) };
    let deploy = |what: &str| Reply::calls([("c", "command_run", json!({ "argv": ["deploy", what] }))]);
    let script = [deploy("one"), deploy("two"), Reply::text("I wait."), Reply::text("now it is done")];
    let mut table = table_with(script, setup).await;
    table.hands.patience = Patience { call: Duration::ZERO, at_end: false };
    let (hands, mut context) = (table.hands.clone(), table.context.clone());
    assert_eq!(Loop::default().turn(&hands, &mut context).await.unwrap(), TurnEnd::Waiting);
    let (first, _second) = (question(&mut table).await, question(&mut table).await);
    let scope = table.hands.scope.clone();
    clock.advance(Duration::from_secs(300));
    table.bench.kernel.ask_again(&scope, first).await.unwrap();
    let again = question(&mut table).await;
    answer(&table.hands, &table.bench.connection, again, Answer::Yes).await;
    Loop::default().turn(&hands, &mut context).await.unwrap();
    assert_eq!(table.bench.world.targets(), ["deploy one"]);
    assert_eq!(table.bench.facts("asked").await.len(), 3, "nothing else was asked");
}

/// One whose yes came to nothing was taken up again at each step, and the model was asked as often, until the
/// budget was used up.
#[tokio::test]
async fn a_yes_to_what_was_asked_once_more_is_followed_once() {
    for is_there in [true, false] {
        let clock = Arc::new(FakeClock::default());
        let setup = Setup { clock: clock.clone(), ..Setup::default().rule(ASK_DEPLOY) };
        let script = deploying().into_iter().chain((0..5).map(|_| Reply::text("so it is")));
        let mut table = table_with(script, setup).await;
        table.hands.patience = Patience { call: Duration::ZERO, at_end: false };
        let (mut hands, mut context) = (table.hands.clone(), table.context.clone());
        Loop::default().turn(&hands, &mut context).await.unwrap();
        let id = question(&mut table).await;
        clock.advance(Duration::from_secs(300));
        table.bench.kernel.ask_again(&hands.scope, id).await.unwrap();
        let again = question(&mut table).await;
        answer(&hands, &table.bench.connection, again, Answer::Yes).await;
        if !is_there {
            hands.tools = hands.tools.now().among(&["fs.read".to_owned()]).into();
        }
        let before = table.server.requests().len();
        Loop::default().turn(&hands, &mut context).await.unwrap();
        // What ran out is told first, and what came of the yes.
        assert_eq!(table.server.requests().len() - before, 1, "{is_there}");
        assert_eq!(table.bench.world.targets().len(), if is_there { 2 } else { 1 }, "the control");
        let questions = table.bench.kernel.journal().questions(None).await.unwrap();
        let standing = questions.iter().find(|question| question.id == again).unwrap().standing;
        assert_eq!(standing, if is_there { QuestionState::Used } else { QuestionState::No });
    }
}

/// A yes that came right before a turn was cancelled was followed at the next message.
#[tokio::test]
async fn a_turn_that_is_cancelled_takes_a_yes_back_that_nothing_began_on() {
    for is_cancelled in [true, false] {
        let mut table = impatient(deploying().into_iter().chain([Reply::text("so it is")]), true).await;
        let (hands, mut context) = (table.hands.clone(), table.context.clone());
        let tools = hands.tools.clone();
        let id = {
            let mut hands = hands.clone();
            hands.patience.at_end = false;
            assert_eq!(Loop::default().turn(&hands, &mut context).await.unwrap(), TurnEnd::Waiting);
            question(&mut table).await
        };
        answer(&hands, &table.bench.connection, id, Answer::YesForSession).await;
        if is_cancelled {
            hands.scope.cancel().cancel();
            assert_eq!(Loop::default().turn(&hands, &mut context).await.unwrap(), TurnEnd::Cancelled);
        }
        // Whoever comes back in another process finds it taken back, too.
        let standing = table.bench.kernel.journal().questions(None).await.unwrap()[0].standing;
        assert_eq!(standing, if is_cancelled { QuestionState::No } else { QuestionState::YesForSession });
        let scope = table.bench.scope();
        let mut next = bailey_agent::Hands { scope, tools, ..hands };
        next.patience.at_end = false;
        Loop::default().turn(&next, &mut context).await.unwrap();
        let done = table.bench.world.targets();
        assert_eq!(done.iter().any(|target| target == "deploy a"), !is_cancelled, "{done:?}");
    }
}

/// Of what had run out the model was told that it was not approved; once it was let happen all the same, a
/// kill left it at that.
#[tokio::test]
async fn what_was_asked_once_more_and_let_happen_is_told_after_a_kill() {
    for given in [Answer::Yes, Answer::YesForSession] {
        let clock = Arc::new(FakeClock::default());
        let setup = Setup { clock: clock.clone(), ..Setup::default().rule(ASK_DEPLOY) };
        let script = deploying().into_iter().chain((0..5).map(|_| Reply::text("so it is")));
        let mut table = table_with(script, setup).await;
        table.hands.patience = Patience { call: Duration::ZERO, at_end: false };
        let (hands, mut context) = (table.hands.clone(), table.context.clone());
        Loop::default().turn(&hands, &mut context).await.unwrap();
        let id = question(&mut table).await;
        clock.advance(Duration::from_secs(300));
        // It is told that it ran out.
        Loop::default().turn(&hands, &mut context).await.unwrap();
        table.bench.kernel.ask_again(&hands.scope, id).await.unwrap();
        let again = question(&mut table).await;
        answer(&hands, &table.bench.connection, again, given).await;
        let answered = table.bench.entries().await.len() as u64;
        Loop::default().turn(&hands, &mut context).await.unwrap();
        let entries = table.bench.entries().await;
        let begun = entries.iter().rfind(|it| {
            matches!(&it.entry.fact, Fact::Intent { purpose: Purpose::Act, call: Some(call), .. } if call.0 == "d")
        });
        // Of one for longer who comes back finds out.
        assert_eq!(begun.is_some(), given == Answer::Yes);
        let begun = begun.map_or(u64::MAX, |begun| begun.entry.seq.0);
        let Table { bench, hands, .. } = table;
        drop(hands);
        let home = bench.close();
        let last = entries.len() as u64;
        for after in [answered, begun, begun.saturating_add(1)].into_iter().filter(|after| *after <= last) {
            let model = ModelServer::start([Reply::text("seen"), Reply::text("seen")]);
            let setup = Setup { clock: clock.clone(), ..Setup::default() };
            let bench =
                Bench::over(cut(home.path(), after).await, setup.rule(ASK_DEPLOY).model(&model)).await;
            let Restored { mut context, waiting, asked, .. } = restored(&bench).await;
            let mut hands = crate::support::hands(&bench, &model, Wire::Anthropic, bench.scope());
            hands.waiting = PendingCalls::of(waiting, asked);
            Loop::default().turn(&hands, &mut context).await.unwrap();
            // The control: what had not begun is done now.
            let done = if after < begun { vec!["deploy a"] } else { Vec::new() };
            assert_eq!(bench.world.targets(), done, "{given:?} after {after}");
            let shown = told_of(&context);
            let last = shown.iter().rfind(|text| text.starts_with("late: ")).unwrap();
            let words = if after == begun { "may have happened" } else { "exit code: 127" };
            assert!(last.contains(words), "{given:?} after {after} of {begun}: {shown:#?}");
        }
    }
}

#[tokio::test]
async fn an_answer_given_after_the_process_ended_is_good_for_that_action_once() {
    for (given, done) in [(Answer::Yes, 1), (Answer::No, 0)] {
        let mut table = impatient(deploying(), false).await;
        let (hands, mut context) = (table.hands.clone(), table.context.clone());
        assert_eq!(Loop::default().turn(&hands, &mut context).await.unwrap(), TurnEnd::Waiting);
        let id = question(&mut table).await;
        drop(hands);
        let Table { bench, server, hands, .. } = table;
        drop(hands);
        // Another process answers, a third goes on.
        let setup = || Setup::default().rule(ASK_DEPLOY).model(&server);
        let second = Bench::over(bench.close(), setup()).await;
        second.kernel.answer(&second.connection, id, given, "owner", "a test").await.unwrap();
        let third = Bench::over(second.close(), setup()).await;
        let Restored { mut context, waiting, asked, .. } = restored(&third).await;
        assert_eq!(waiting.len(), 1, "{given:?}");
        let mut hands = crate::support::hands(&third, &server, Wire::Anthropic, third.scope());
        hands.waiting = PendingCalls::of(waiting, asked);
        assert_eq!(Loop::default().turn(&hands, &mut context).await.unwrap(), TurnEnd::Answered);
        assert_eq!(third.world.targets(), vec!["deploy a"; done], "{given:?}");
        assert_every_call_has_its_result(&context);
        drop(hands);
        // It is used up, and nothing is left to be done.
        let last = Bench::over(third.close(), setup()).await;
        assert_eq!(restored(&last).await.waiting, []);
        let call = bailey_testkit::tool_call("d", "command.run", &deploy("a"));
        let hands = crate::support::hands(&last, &server, Wire::Anthropic, last.scope());
        let tool = hands.tools.find("command.run").unwrap();
        let step = last.kernel.call(&hands.scope, &context.provenance(), &*tool, &call).await.unwrap();
        assert!(matches!(step, CallOutcome::Waiting(_)), "the same call is asked anew: {step:?}");
    }
}

#[tokio::test]
async fn what_was_let_happen_late_is_not_done_again_after_a_kill() {
    for given in [Answer::Yes, Answer::YesForSession] {
        let mut table = impatient(deploying(), true).await;
        let (hands, mut context) = (table.hands.clone(), table.context.clone());
        let running = tokio::spawn(async move { Loop::default().turn(&hands, &mut context).await.unwrap() });
        let id = question(&mut table).await;
        while table.server.requests().len() < 3 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        answer(&table.hands, &table.bench.connection, id, given).await;
        assert_eq!(running.await.unwrap(), TurnEnd::Answered);
        let entries = table.bench.entries().await;
        let last =
            |is_it: &dyn Fn(&Recorded) -> bool| entries.iter().rfind(|it| is_it(it)).unwrap().entry.seq.0;
        let begun = last(
            &|it| matches!(&it.entry.fact, Fact::Intent { purpose: Purpose::Act, call: Some(call), .. } if call.0 == "d"),
        );
        let told = last(&|it| matches!(&it.entry.fact, Fact::Observation { call, .. } if call.0 == "d"));
        assert!(begun + 1 < told, "{given:?}: its end is seen before it is told");
        let Table { bench, hands, .. } = table;
        drop(hands);
        let home = bench.close();
        for after in begun - 1..=told {
            let model = ModelServer::start([Reply::text("seen"), Reply::text("seen")]);
            let setup = Setup::default().rule(ASK_DEPLOY).model(&model);
            let bench = Bench::over(cut(home.path(), after).await, setup).await;
            let Restored { mut context, waiting, asked, .. } = restored(&bench).await;
            // The control: what had not begun still waits for its yes.
            assert_eq!(waiting.len(), usize::from(after < begun), "{given:?} after {after}");
            let mut hands = crate::support::hands(&bench, &model, Wire::Anthropic, bench.scope());
            hands.waiting = PendingCalls::of(waiting, asked);
            Loop::default().turn(&hands, &mut context).await.unwrap();
            let done = if after < begun { vec!["deploy a"] } else { Vec::new() };
            assert_eq!(bench.world.targets(), done, "{given:?} after {after}");
            let shown = told_of(&context);
            let late: Vec<_> = shown.iter().filter(|text| text.starts_with("late: ")).collect();
            assert_eq!(late.len(), 1, "{given:?} after {after}: {shown:#?}");
            let is_unsure = late.iter().any(|text| text.contains("may have happened"));
            assert_eq!(is_unsure, after == begun, "{given:?} after {after}: {late:?}");
        }
    }
}

#[tokio::test]
async fn cancelling_a_turn_that_only_waits_withdraws_its_questions() {
    let mut table = impatient(deploying(), true).await;
    let (hands, mut context) = (table.hands.clone(), table.context.clone());
    let running = tokio::spawn(async move { Loop::default().turn(&hands, &mut context).await.unwrap() });
    let id = question(&mut table).await;
    while table.server.requests().len() < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    table.hands.scope.cancel().cancel();
    assert_eq!(running.await.unwrap(), TurnEnd::Cancelled);
    let late = table.bench.kernel.answer(&table.bench.connection, id, Answer::Yes, "owner", "").await;
    assert!(late.is_err(), "nobody waits for it any more");
}
