//! Requests to the gate that it must refuse. They use a separate journal and separate rules, or go through
//! the session's kernel.

use super::{
    attack::{Attempt, Tried},
    fixture::Fixture,
    scratch_journal::TrialJournal,
};
use anyhow::{Context as _, Result};
use bailey_home::{config::Config, home::Home};
use bailey_journal::{Mint, SystemClock};
use bailey_kernel::Acted;
use bailey_policy::{Facts, Places, Policy, Verdict, built_in_rules, file};
use bailey_protocol::{
    Action, Answer, CallId, Command, Cost, Effect, EffectId, FileChange, Labels, Level, Report, Role, Sealed,
    SessionId, Status, WsPath,
};
use bailey_session::Opening;
use bailey_session::{
    compose::{self, OpenSession, Session},
    extensions::Extensions,
};
use std::{collections::BTreeMap, fs};

/// The request to the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// To change Bailey's own rules.
    Law,
    /// To run a command without a sandbox, by rules that allow it.
    Unwalled,
    /// To run a command behind less isolation than its tier wants.
    Tier,
    /// To use an approval twice.
    Once,
    /// To run a script that changed after its approval.
    Files,
    /// To ask a model beyond the budget.
    Budget,
    /// To begin an effect after an emergency stop.
    Stop,
    /// To begin an effect by a yes that came too late.
    Late,
    /// To begin an effect that was allowed by rules that are not in force any more.
    Rules,
    /// To use a token that this home did not sign.
    Forged,
    /// To use a token once more than it permits.
    Spent,
}

/// Rules that allow everything that the built-in rules leave to other rules, except a command that a human
/// is asked about.
const RULES: &str = r#"
[[rule]]
name = "all"
answer = "allow"
reason = "a rule that allows everything"
match = { action = ["read", "exec", "change", "model"] }

[[rule]]
name = "ask"
answer = "review"
reason = "a rule that asks"
match = { action = "exec", command = "deploy" }
"#;

pub(crate) async fn tried(fixture: &Fixture, check: Check) -> Result<Tried> {
    match check {
        Check::Law => law(fixture),
        Check::Unwalled => unwalled(fixture),
        Check::Tier => tier(fixture).await,
        Check::Files => files(fixture).await,
        Check::Once => TrialJournal::open(fixture, "once").await?.once().await,
        Check::Budget => TrialJournal::open(fixture, "budget").await?.budget().await,
        Check::Stop => TrialJournal::open(fixture, "stop").await?.stop().await,
        Check::Late => TrialJournal::open(fixture, "late").await?.late().await,
        Check::Rules => TrialJournal::open(fixture, "rules").await?.rules().await,
        Check::Forged => TrialJournal::open(fixture, "forged").await?.forged().await,
        Check::Spent => TrialJournal::open(fixture, "spent").await?.spent().await,
    }
}

/// A change of the rules, under rules that allow everything: with the built-in rules, and without them.
fn law(fixture: &Fixture) -> Result<Tried> {
    let path = WsPath(fixture.home.policy().join("new.toml").display().to_string());
    let change = Action::Change { files: vec![FileChange { path, base: None, new: Some("".into()) }] };
    let sealed = effect(compose::new_session()?, change, 0)?;
    let places = Places {
        workspace: fixture.project.display().to_string(),
        user_home: fixture.home.user.display().to_string(),
        bailey_home: fixture.home.root.display().to_string(),
        ..Places::default()
    };
    let asked = |built_in| -> Result<Attempt> {
        let policy = Policy::new(built_in, rules()?);
        let now = bailey_journal::Clock::now(&SystemClock);
        let decided = policy.decide(&Facts::new(&sealed, now, &places));
        let reason = decided.reasons.first().map(ToString::to_string).unwrap_or_default();
        Ok(match decided.verdict {
            Verdict::Deny(_) => Attempt::Refused(format!("denied: {reason}")),
            Verdict::Allow(_) | Verdict::Review(_) => Attempt::Reached(format!("not denied: {reason}")),
        })
    };
    Ok(Tried { attack: asked(built_in_rules())?, control: asked(Vec::new())? })
}

/// A command without walls, under rules that allow everything: with the policy that then asks a human, and
/// without it.
fn unwalled(fixture: &Fixture) -> Result<Tried> {
    let sealed = effect(compose::new_session()?, command(&["true"], fixture), 0)?;
    let places = Places { workspace: fixture.project.display().to_string(), ..Places::default() };
    let asked = |policy: &Policy| {
        let now = bailey_journal::Clock::now(&SystemClock);
        let decided = policy.decide(&Facts::new(&sealed, now, &places));
        let reason = decided.reasons.first().map(ToString::to_string).unwrap_or_default();
        match decided.verdict {
            Verdict::Allow(_) => Attempt::Reached(format!("allowed: {reason}")),
            Verdict::Review(_) => Attempt::Refused(format!("a human is asked: {reason}")),
            Verdict::Deny(_) => Attempt::Nothing(format!("denied: {reason}")),
        }
    };
    let policy = Policy::new(built_in_rules(), rules()?);
    let control = asked(&policy);
    Ok(Tried { attack: asked(&policy.without_walls()), control })
}

/// A command in a session whose tier wants more isolation than there is, and in a session whose tier does
/// not.
async fn tier(fixture: &Fixture) -> Result<Tried> {
    let ran = async |least: Level| -> Result<Attempt> {
        let home = Home { root: fixture.folder(least.name())?, user: fixture.home.user.clone(), agent: None };
        let mut config = Config::load(&home)?;
        config.tiers.internal = least;
        let workspace = WsPath(fixture.project.display().to_string());
        let opening = Opening::New(compose::new_session()?);
        let session = Session {
            is_bound: false,
            is_scratch: true,
            ..Session::new(&home, &config, fixture.keys.clone(), workspace, opening)
        };
        let OpenSession { host, .. } = compose::open(session).await?;
        let Acted::Done(output) = host.act(run(&["true"], &host.workspace().0)).await? else {
            return Ok(Attempt::Nothing("the gate does not let it through".into()));
        };
        Ok(match (&output.outcome().status, output.report()) {
            (Status::Failed { reason }, _) => Attempt::Refused(reason.clone()),
            (_, Report::Exec(report)) if report.exit == Some(0) => Attempt::Reached("it ran".into()),
            _ => Attempt::Nothing("it came to no end".into()),
        })
    };
    Ok(Tried { attack: ran(Level::Microvm).await?, control: ran(Level::Landlock).await? })
}

/// Through the session's own kernel: a command that a human approved, and whose script changes after that.
async fn files(fixture: &Fixture) -> Result<Tried> {
    let rules = fixture.home.policy();
    let ask = "[[rule]]\nname = \"ask\"\nanswer = \"review\"\nreason = \"a rule that asks\"\n\
               match = { action = \"exec\", command = \"sh\" }\n";
    fs::write(rules.join("ask.toml"), ask)?;
    let (policy, _) = compose::policy(&fixture.home, &Extensions::default())?;
    let (_, mint) = compose::journal(&fixture.home, &fixture.keys).await?;
    let policy = policy.with_profile(fixture.profile);
    mint.adopt(policy.digest()).await?;
    let attack = approved(fixture, &mint, true).await?;
    let control = approved(fixture, &mint, false).await?;
    Ok(Tried { attack, control })
}

async fn approved(fixture: &Fixture, mint: &Mint, is_changed: bool) -> Result<Attempt> {
    let script = fixture.project.join("task.sh");
    fs::write(&script, "echo as approved\n")?;
    let id = match fixture.host.act(command(&["sh", "task.sh"], fixture)).await? {
        Acted::Waiting(id) => id,
        Acted::Denied(reasons) => return Ok(Attempt::Nothing(reasons.join("; "))),
        Acted::Done(_) => return Ok(Attempt::Nothing("nobody was asked".into())),
    };
    mint.answer(fixture.host.session(), id, Answer::Yes, "prover", "").await?;
    if is_changed {
        fs::write(&script, "echo something else\n")?;
    }
    Ok(match fixture.kernel.act_approved(&fixture.host.owner(), id).await? {
        Acted::Denied(reasons) => Attempt::Refused(format!("denied: {}", reasons.join("; "))),
        Acted::Waiting(_) => Attempt::Refused("a human is asked anew".into()),
        Acted::Done(output) => match output.report() {
            Report::Exec(report) if report.exit == Some(0) => Attempt::Reached("it ran".into()),
            _ => Attempt::Nothing("it came to no end".into()),
        },
    })
}

pub(crate) fn rules() -> Result<Vec<bailey_policy::Rule>> {
    Ok(file::parse("prove.toml", RULES, file::Format::Toml).context("the prover's own rules")?.rules)
}

pub(crate) fn effect(session: SessionId, action: Action, tokens: u64) -> Result<Sealed> {
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    let effect = Effect {
        id: EffectId::new(0, random),
        session,
        parent: None,
        call: Some(CallId("call".into())),
        role: Role::Agent,
        action,
        labels: Labels::default(),
        cost: Cost::tokens(tokens),
    };
    Sealed::new(effect).map_err(|error| anyhow::anyhow!("{error}"))
}

fn command(argv: &[&str], fixture: &Fixture) -> Action {
    let Action::Exec(command) = run(argv, &fixture.host.workspace().0) else {
        return run(argv, "/");
    };
    Action::Exec(Command { limits: fixture.limits.clone(), ..command })
}

pub(crate) fn run(argv: &[&str], cwd: &str) -> Action {
    Action::Exec(Command {
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        cwd: cwd.into(),
        env: BTreeMap::new(),
        stdin: None,
        network: false,
        background: false,
        limits: bailey_protocol::Limits::default(),
    })
}
