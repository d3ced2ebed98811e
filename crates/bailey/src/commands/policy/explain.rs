//! `bailey policy explain`: one action, every rule about its kind, and the verdict; or what an entry of the
//! journal says of one, and what the rules of today would.

use super::line;
use crate::{
    cli::{Does, Explain, Role as Asker},
    clock,
    config::Config,
    exit::Mistyped,
    home::Home,
    print::{Printer, Style},
    program, project,
};
use anyhow::{Context as _, Result, bail};
use bailey_journal::{Clock as _, Fact, SystemClock, fact::Stored};
use bailey_policy::{
    Answer, Considered, ExtensionReply, Facts, Judged, Places, Policy, RuleOutcome, Verdict,
    file::{Terms, request, usual_role},
};
use bailey_protocol::{
    Action, Blob, Cost, Effect, EffectId, Labels, Role, Sealed, SessionId, ToolEffect, ToolUse,
    Verdict as Said, WsPath,
};
use serde::Deserialize;
use serde_json::json;
use std::{
    path::{Component, Path, PathBuf},
    process::ExitCode,
};

/// An example for each mistake.
const SUCH_AS: &str = "bailey policy explain exec -- cargo test";

pub(super) async fn run(home: &Home, asked: Explain, printer: &Printer) -> Result<ExitCode> {
    let (policy, _) = super::in_force(home)?;
    match asked.entry {
        Some(seq) => entry(home, &policy, seq, asked.all, printer).await,
        None => {
            let (root, workspace) = project::find(asked.directory.as_deref(), home)?;
            let mut config = Config::load(home)?;
            printer.notes(config.narrow(home, &root)?);
            let policy = policy.with_rules(config.approvals.narrowing());
            let action = action(&asked, &root, &config)?;
            let role = match asked.role {
                Some(Asker::Owner) => Role::Owner,
                Some(Asker::Agent) => Role::Agent,
                Some(Asker::Operator) => Role::Operator,
                Some(Asker::User) => Role::User,
                Some(Asker::Guest) => Role::Guest,
                Some(Asker::Plugin) => Role::Plugin,
                None => usual_role(&action),
            };
            let effect = Effect {
                id: EffectId::new(0, [0; 10]),
                session: SessionId::new(0, [0; 10]),
                parent: None,
                call: None,
                role,
                action,
                labels: Labels::default(),
                cost: Cost::default(),
            };
            explain(home, &policy, effect, &workspace.0, asked.all, printer)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// One line of an export.
#[derive(Deserialize)]
struct Exported {
    entry: Stored,
    payload: Option<Blob>,
}

async fn entry(home: &Home, policy: &Policy, seq: u64, every: bool, printer: &Printer) -> Result<ExitCode> {
    let journal = crate::commands::journal(home, printer).await?;
    let lines = journal.export(seq.saturating_sub(1), 1).await?;
    let found = lines.first().filter(|(found, _)| *found == seq);
    let (_, text) =
        found.with_context(|| format!("the journal has no entry {seq}: see `bailey audit log`"))?;
    let Exported { entry, payload } = serde_json::from_str(text).context("the entry cannot be read")?;
    let question =
        || payload.as_ref().and_then(|payload| serde_json::from_slice::<Question>(&payload.0).ok());
    let asked = match &entry.fact {
        Fact::Asked { .. } => question().unwrap_or_default(),
        _ => Question::default(),
    };
    let (verdict, reasons) = match &entry.fact {
        Fact::Asked { .. } => ("asked about", &asked.reasons),
        Fact::Intent { reasons, .. } => ("let through", reasons),
        Fact::Denied { reasons, .. } => ("denied", reasons),
        Fact::Judged { reasons, verdict, .. } => match verdict {
            Said::Allowed | Said::Approved => ("allowed", reasons),
            Said::Asked => ("to be asked about", reasons),
            Said::Denied => ("denied", reasons),
        },
        other => bail!(
            "entry {seq} is a `{}`, which is not a decision: only `intent`, `asked`, `denied` and `judged` \
             entries are; `bailey audit log` shows them",
            other.name()
        ),
    };
    if printer.is_json() {
        printer.json(&json!({ "entry": seq, "then": verdict, "reasons": reasons }));
    } else {
        let time = clock::local_second(entry.time);
        printer.line(printer.paint(Style::Bold, &format!("then, {time}: {verdict}")));
        reasons.iter().for_each(|reason| printer.line(printer.paint(Style::Plain, &format!("  {reason}"))));
        printer.line("");
        printer.line(printer.paint(Style::Bold, "by today's rules:"));
    }
    let effect: Option<Effect> = match &entry.fact {
        Fact::Asked { .. } => asked.effect,
        _ => payload.and_then(|payload| serde_json::from_slice(&payload.0).ok()),
    };
    let Some(effect) = effect else {
        printer.note("the journal no longer holds the whole action, so it cannot be judged again");
        return Ok(ExitCode::SUCCESS);
    };
    let workspace = match entry.session {
        Some(session) => journal.session(&session.to_string()).await?.workspace.0,
        None => String::new(),
    };
    explain(home, policy, effect, &workspace, every, printer)?;
    Ok(ExitCode::SUCCESS)
}

/// A question as its entry holds it: the card's reasons, and the effect that waits.
#[derive(Default, Deserialize)]
struct Question {
    #[serde(default)]
    reasons: Vec<String>,
    effect: Option<Effect>,
}

fn explain(
    home: &Home,
    policy: &Policy,
    effect: Effect,
    workspace: &str,
    every: bool,
    printer: &Printer,
) -> Result<()> {
    let places = Places {
        workspace: workspace.into(),
        user_home: home.user.display().to_string(),
        bailey_home: home.root.display().to_string(),
        programs: program::kept(&Config::load(home)?)?,
        project: None,
    };
    let sealed = Sealed::new(effect).map_err(anyhow::Error::msg)?;
    let facts = Facts::new(&sealed, SystemClock.now(), &places);
    let (decided, asked) = match policy.judge(&facts) {
        Judged::Decided(decided) => (decided, Vec::new()),
        Judged::Asks(inquiry) => {
            let asked: Vec<String> = inquiry.extensions().map(|extension| extension.name.clone()).collect();
            // What they would say, nobody knows before they are asked.
            let pass =
                || Some(ExtensionReply::Said { answer: Answer::Pass, reason: "it would be asked".into() });
            (inquiry.conclude(|_| pass()), asked)
        }
    };
    let considered = policy.consider(&facts);
    let (word, style) = match &decided.verdict {
        Verdict::Allow(_) => ("allow", Style::Green),
        Verdict::Review(_) => ("review", Style::Yellow),
        Verdict::Deny(_) => ("deny", Style::Red),
    };
    let effect = sealed.effect();
    let (kind, target) = (effect.action.kind().name(), effect.action.target());
    let does = match &effect.action {
        Action::Tool(ToolUse { effect: Some(does), .. }) => Some(does.name()),
        _ => None,
    };
    if printer.is_json() {
        let rules: Vec<_> = considered
            .iter()
            .map(|it| {
                json!({ "rule": it.rule.name, "tier": it.rule.tier, "answer": it.rule.answer, "heard": it.heard,
                        "why": it.why, "text": it.rule.text })
            })
            .collect();
        let reasons: Vec<String> = decided.reasons.iter().map(ToString::to_string).collect();
        printer.json(&json!({
            "action": kind, "target": target, "role": effect.role.name(), "verdict": word, "reasons": reasons,
            "rules": rules, "extensions": asked, "effect": does, "policy": policy.digest(),
        }));
        return Ok(());
    }
    let does = does.map(|does| format!(" ({does})")).unwrap_or_default();
    printer.line(
        printer.paint(Style::Bold, &format!("{kind} {target}{does}, asked by the {}", effect.role.name())),
    );
    let is_silent = |it: &&Considered<'_>| it.heard == RuleOutcome::Silent && it.why.is_none();
    let silent = considered.iter().filter(is_silent).count();
    for it in considered.iter().filter(|it| every || !is_silent(it)) {
        let after = match it.heard {
            RuleOutcome::Spoke => "",
            RuleOutcome::Excepted => "  — one of its exceptions fits",
            RuleOutcome::Silent => "  — does not fit",
            RuleOutcome::NotAsked => "  — not asked any more",
        };
        let mark = if it.heard == RuleOutcome::Spoke { "→" } else { " " };
        printer.line(format!("{mark} {}", line(printer, it.rule, after)));
        if let Some(why) = &it.why {
            printer.line(printer.paint(Style::Dim, &format!("      {why}")));
        }
    }
    if silent > 0 && !every {
        let rules = if silent == 1 { "1 rule does".into() } else { format!("{silent} rules do") };
        printer.note(&format!("{rules} not fit (--all shows them)"));
    }
    let then = match asked.as_slice() {
        [] => String::new(),
        names => format!(" as far as the rules go; then it asks {}", names.join(", ")),
    };
    printer.line(format!("{} {}{then}", printer.paint(Style::Bold, "verdict:"), printer.paint(style, word)));
    for reason in &decided.reasons {
        printer.line(printer.paint(Style::Dim, &format!("  {reason}")));
    }
    Ok(())
}

/// The action that the words name. Paths become what they lead to, as the walls would make them.
fn action(asked: &Explain, root: &Path, config: &Config) -> Result<Action> {
    let start = std::fs::canonicalize(asked.directory.as_deref().unwrap_or(Path::new(".")))?;
    let path = |text: &str| WsPath(resolved(&start.join(text)).display().to_string());
    let model = |name: &str| {
        let (provider, found, model) = config.find(name).map_err(|error| error.to_string())?;
        let request = request("POST", &found.base_url);
        Ok(Action::Model { provider: provider.into(), model: model.into(), request })
    };
    let effect = asked.effect.map(|does| match does {
        Does::Read => ToolEffect::Read,
        Does::Write => ToolEffect::Write,
        Does::Egress => ToolEffect::Egress,
        Does::Destructive => ToolEffect::Destructive,
    });
    let terms = Terms {
        path: &path,
        here: Some(WsPath(root.display().to_string())),
        start: WsPath(start.display().to_string()),
        limits: config.command.clone(),
        network: asked.network,
        model: &model,
        effect,
    };
    terms.action(&asked.action).map_err(|why| Mistyped(format!("{why}; such as: {SUCH_AS}")).into())
}

/// What a path leads to: links are followed as far as it exists, and the rest is taken by the letter. Only
/// names are looked at.
fn resolved(path: &Path) -> PathBuf {
    for there in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (std::fs::canonicalize(there), path.strip_prefix(there)) {
            return rest.components().fold(real, |mut path, part| {
                match part {
                    Component::ParentDir => {
                        path.pop();
                    }
                    Component::Normal(name) => path.push(name),
                    Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
                }
                path
            });
        }
    }
    path.to_path_buf()
}
