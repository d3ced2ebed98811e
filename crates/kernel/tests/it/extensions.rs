//! How an extension is started: an effect under a token, each refusal beside a start that nothing stands
//! against.

use crate::support::{Toy, done, raw};
use bailey_journal::Fact;
use bailey_kernel::{
    BoxFuture, Context, Door, NewSession, Output, Permit, Scope, Seal,
    extension::{Answer, ExtensionOutcome, ExtensionReply},
    program::{Duty, Program, Programs, STARTS_MAX},
};
use bailey_policy::{DEFAULT_RULES, Extension, Late, Policy, Reviewing, Tier, built_in_rules, file};
use bailey_protocol::{
    Action, Command, Digest, Isolation, Kind, Limits, Outcome, Profile, Report, SessionId, Status,
};
use bailey_store::{Store, params};
use bailey_testkit::{Bench, Setup};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use tokio::sync::oneshot;

/// Somebody who starts one program in its mind, and says allow to everything.
struct Troupe {
    seal: Seal,
    raw: Store,
    stage: Mutex<Played>,
}

struct Played {
    program: Program,
    /// Of those that were started: their words and walls, and how many intents of it were on disk then.
    starts: Vec<(Vec<String>, Profile, u64)>,
    /// The one that runs.
    ended: Option<oneshot::Sender<Output>>,
    asked: usize,
}

impl Troupe {
    fn new(bench: &Bench) -> Arc<Self> {
        let program = Program {
            command: judge("/opt/judge.py"),
            isolation: Isolation { profile: Profile::Strict, ..Isolation::default() },
            digest: Digest::of(b"judge"),
            duty: Duty::Judge,
        };
        let stage = Mutex::new(Played { program, starts: Vec::new(), ended: None, asked: 0 });
        Arc::new(Self { seal: bench.journal.seal(), raw: raw(bench), stage })
    }

    /// It ends, and nobody was asking it.
    fn leave(&self) {
        let outcome =
            Outcome { status: Status::Done, enforced: None, duration_ms: 1, report: Report::Nothing };
        self.stage.lock().unwrap().ended.take().unwrap().send(Output::new(outcome)).unwrap();
    }

    fn starts(&self) -> usize {
        self.stage.lock().unwrap().starts.len()
    }

    fn now(&self, change: impl FnOnce(&mut Program)) {
        change(&mut self.stage.lock().unwrap().program);
    }
}

impl Programs for Troupe {
    fn runs(&self, _: &str) -> bool {
        self.stage.lock().unwrap().ended.is_some()
    }

    fn program<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Option<Program>> {
        Box::pin(async { Some(self.stage.lock().unwrap().program.clone()) })
    }

    fn start<'a>(
        &'a self,
        _: &'a str,
        permit: Permit,
        _: Option<Door>,
        ended: oneshot::Sender<Output>,
    ) -> BoxFuture<'a, Result<(), ExtensionOutcome>> {
        Box::pin(async move {
            let redeemed = permit.redeem(&self.seal).unwrap();
            let sql = "SELECT count(*) FROM entry WHERE type = 'intent' AND effect = ?1";
            let id = redeemed.effect.id.to_string();
            let known =
                self.raw.read(move |db| Ok(db.query_row(sql, params![id], |row| row.get(0))?)).await.unwrap();
            let Action::Exec(command) = redeemed.effect.action else { panic!("no command") };
            let mut stage = self.stage.lock().unwrap();
            stage.starts.push((command.argv, redeemed.isolation.profile, known));
            stage.ended = Some(ended);
            Ok(())
        })
    }

    fn ask<'a>(&'a self, _: &'a str, question: Value) -> BoxFuture<'a, Result<ExtensionOutcome, Value>> {
        Box::pin(async move {
            let mut stage = self.stage.lock().unwrap();
            if stage.ended.is_none() {
                return Err(question);
            }
            stage.asked += 1;
            let reply = ExtensionReply::Said { answer: Answer::Allow, reason: String::new() };
            Ok(ExtensionOutcome { reply, told: String::new() })
        })
    }

    fn end<'a>(&'a self, _: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async {
            if self.runs("") {
                self.leave();
            }
        })
    }
}

fn judge(script: &str) -> Command {
    Command {
        argv: vec!["python3".into(), script.into()],
        cwd: "/home/ann/.bailey/sessions/1/nothing".into(),
        env: BTreeMap::new(),
        stdin: None,
        network: false,
        background: false,
        limits: Limits { wall_ms: u64::MAX, ..Limits::default() },
    }
}

/// The default rules with others, one of the organisation's, and an extension that judges commands.
fn policy(rules: &str) -> Policy {
    let parsed = file::parse("test.toml", &format!("{DEFAULT_RULES}\n{rules}"), file::Format::Toml).unwrap();
    let extension = Extension {
        name: "x".into(),
        kinds: vec![Kind::Exec],
        late: Late::Deny,
        program: Digest::of(b"judge"),
    };
    Policy::new(built_in_rules(), parsed.rules).with_extensions(vec![extension])
}

struct Play {
    bench: Bench,
    troupe: Arc<Troupe>,
    scope: Scope,
    context: Context,
}

impl Play {
    async fn new(policy: Policy) -> Self {
        let bench = Bench::new(Setup::default()).await;
        bench.registrar.adopt(policy).await.unwrap();
        let troupe = Troupe::new(&bench);
        bench.registrar.programs(troupe.clone());
        let (scope, context) = bench.context("go").await;
        Self { bench, troupe, scope, context }
    }

    /// What becomes of a command that the extension judges.
    async fn run(&self) -> String {
        self.run_in(&self.scope).await
    }

    async fn run_in(&self, scope: &Scope) -> String {
        done(&self.bench, scope, &self.context, &Toy::run("echo hi")).await.text().to_owned()
    }

    /// The refused starts: what would have run, and why not.
    async fn refused(&self) -> Vec<(String, String)> {
        let denied = self.bench.facts("denied").await.into_iter();
        let start = |fact| match fact {
            Fact::Denied { target, reasons, .. } if target.starts_with("python3") => {
                Some((target, reasons.join("; ")))
            }
            _ => None,
        };
        denied.filter_map(start).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_is_started_by_an_entry_under_a_token_and_finished_when_it_ends() {
    let play = Play::new(policy("")).await;
    assert!(!play.run().await.contains("denied"));
    assert!(!play.run().await.contains("denied"));
    {
        let stage = play.troupe.stage.lock().unwrap();
        let words = vec!["python3".to_owned(), "/opt/judge.py".to_owned()];
        assert_eq!(stage.starts, [(words, Profile::Strict, 1)], "once, as declared, and after its entry");
        assert_eq!(stage.asked, 2, "about the two commands, and not about its own start");
    }
    let intents = play.bench.facts("intent").await;
    let Fact::Intent { target, under: Some(under), .. } = &intents[0] else { panic!("{intents:?}") };
    assert_eq!(target, "python3 /opt/judge.py");
    let minted = play.bench.facts("token_minted").await;
    let [Fact::TokenMinted { token, operations, holder, .. }] = &minted[..] else { panic!("{minted:?}") };
    assert_eq!((under.token, *operations, holder.as_str()), (*token, STARTS_MAX, "the extension `x`"));
    assert_eq!(crate::support::open_intents(&play.bench).await, 1, "it runs");
    play.bench.kernel.end_programs(&play.scope).await.unwrap();
    assert_eq!(crate::support::open_intents(&play.bench).await, 0);
    assert_eq!(play.bench.facts("token_ended").await.len(), 1);
    assert!(play.run().await.contains("it is not started: the session has ended"));
    assert_eq!(play.troupe.starts(), 1);
}

#[tokio::test]
async fn a_session_that_asks_no_extension_has_no_entry_of_one() {
    let play = Play::new(policy("")).await;
    done(&play.bench, &play.scope, &play.context, &Toy::read("/home/ann/project/a")).await;
    play.bench.kernel.end_programs(&play.scope).await.unwrap();
    assert_eq!((play.troupe.starts(), play.bench.facts("token_minted").await.len()), (0, 0));
}

#[tokio::test]
async fn one_whose_starts_are_used_up_is_not_started_again() {
    let play = Play::new(policy("")).await;
    for _ in 0..STARTS_MAX {
        // The control: as long as there is one left.
        assert!(!play.run().await.contains("denied"));
        play.troupe.leave();
    }
    for _ in 0..2 {
        let text = play.run().await;
        assert!(text.contains("it is not started") && text.contains("its operations are used up"), "{text}");
    }
    assert_eq!(play.troupe.starts() as u64, STARTS_MAX);
    let refused = play.refused().await;
    assert!(refused.len() == 1 && refused[0].1.contains("used up"), "said once: {refused:?}");
}

/// What becomes of a command after its extension has ended, and something else has happened.
async fn again(between: impl AsyncFnOnce(&Play) -> Option<Scope>) -> (Play, String) {
    let play = Play::new(policy("")).await;
    assert!(!play.run().await.contains("denied"));
    play.troupe.leave();
    let scope = between(&play).await.unwrap_or_else(|| play.scope.clone());
    let text = play.run_in(&scope).await;
    (play, text)
}

#[tokio::test]
async fn what_the_token_is_not_for_is_not_started_again() {
    // The control of all that follow: nothing has happened.
    let (play, text) = again(async |_| None).await;
    assert!(!text.contains("denied") && play.troupe.starts() == 2, "{text}");
    let elsewhere = async |play: &Play| {
        let other = SessionId::new(2, [2; 10]);
        let new = NewSession {
            agent: None,
            confined: None,
            workspace: "/other".into(),
            principal: "owner".into(),
            model: "m".into(),
        };
        play.bench.journal.open_session(other, new).await.unwrap();
        let connection = play.bench.registrar.connect(other, "/other".into(), play.bench.sender.clone());
        Some(play.bench.kernel.turn_of(&connection))
    };
    let others = async |play: &Play| {
        play.troupe.now(|program| program.command = judge("/opt/other.py"));
        None
    };
    let limits = async |play: &Play| {
        play.troupe.now(|program| program.command.limits.pids += 1);
        None
    };
    let changed = async |play: &Play| {
        play.troupe.now(|program| program.digest = Digest::of(b"another"));
        None
    };
    let rules = async |play: &Play| {
        play.bench
            .registrar
            .adopt(policy("[[rule]]\nname = \"n\"\nanswer = \"deny\"\nmatch = { command = \"n\" }\n"))
            .await
            .unwrap();
        None
    };
    let and_back = async |play: &Play| {
        rules(play).await;
        play.bench.registrar.adopt(policy("")).await.unwrap();
        None
    };
    let cases = [
        (again(elsewhere).await, "it was minted in another session"),
        (again(others).await, "this is beyond its scope"),
        (again(limits).await, "this is beyond its scope"),
        (again(changed).await, "is not what it was when this session began"),
        (again(rules).await, "the rules changed since it was minted"),
        (again(and_back).await, "the rules changed since it was minted"),
    ];
    for ((play, text), why) in cases {
        assert!(text.contains("denied") && text.contains(why), "{why}: {text}");
        assert_eq!(play.troupe.starts(), 1, "{why}");
        let refused = play.refused().await;
        assert!(refused.len() == 1 && refused[0].1.contains(why), "{why}: {refused:?}");
    }
}

#[tokio::test]
async fn its_declaration_stands_in_for_the_owners_rules_and_for_no_binding_one() {
    let rule = |answer: &str| {
        format!(
            "[[rule]]\nname = \"no-python\"\nanswer = \"{answer}\"\nmatch = {{ command = \"python3\" }}\n"
        )
    };
    for answer in ["deny", "review"] {
        let play = Play::new(policy(&rule(answer))).await;
        assert!(!play.run().await.contains("denied"), "the control: a rule of the owner's own files");
        let mut rules = file::parse("house.toml", &rule(answer), file::Format::Toml).unwrap().rules;
        rules.iter_mut().for_each(|rule| rule.tier = bailey_policy::Tier::Organisation);
        let play = Play::new(policy("").with_rules(rules)).await;
        let text = play.run().await;
        assert!(text.contains("it is not started") && text.contains("no-python"), "{answer}: {text}");
        assert!(play.troupe.starts() == 0 && play.refused().await.len() == 1);
        assert!(play.bench.journal.questions(None).await.unwrap().is_empty(), "nobody is asked");
    }
}

#[tokio::test]
async fn a_review_of_what_agents_run_is_none_of_what_the_owner_declared() {
    let reviewed = Reviewing::BeforeExecute.rules(Tier::Organisation, None);
    let play = Play::new(policy("").with_rules(reviewed)).await;
    crate::support::asked(&play.bench, &play.scope, &play.context, &Toy::run("echo hi")).await;
    play.bench.kernel.start_programs(&play.scope).await.unwrap();
    assert_eq!((play.troupe.starts(), play.refused().await), (1, Vec::new()));
}
