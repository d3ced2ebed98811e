//! What people write: rule files and their own catalogue of models.

use bailey_llm::Catalogue;
use bailey_policy::{
    Answer, Facts, Places, Policy, Verdict, built_in_rules,
    file::{Format, parse},
};
use bailey_protocol::{Action, Cost, Effect, EffectId, Labels, Limits, Role, Sealed, SessionId, Timestamp};

/// A catalogue that can be read knows what its models cost.
pub(crate) fn catalogue(text: &str) {
    match Catalogue::with(Some(text)) {
        Ok(catalogue) => {
            let (url, model) = ("https://api.anthropic.com", "claude-haiku-4-5");
            assert!(!catalogue.prices(url, model).is_empty(), "the shipped price is gone");
            let _ = catalogue.window_tokens("http://127.0.0.1:11434", model);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Rules as TOML.
pub(crate) fn rules_in_toml(text: &str) {
    rules(text, Format::Toml);
}

/// Rules as YAML.
pub(crate) fn rules_in_yaml(text: &str) {
    rules(text, Format::Yaml);
}

/// Whatever a file's rules say, they judge the same way each time, and what the built-in rules deny stays
/// denied.
fn rules(text: &str, format: Format) {
    let parsed = match parse("rules", text, format) {
        Ok(parsed) => parsed,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let (alone, with) =
        (Policy::new(built_in_rules(), Vec::new()), Policy::new(built_in_rules(), parsed.rules.clone()));
    assert_eq!(with.digest(), Policy::new(built_in_rules(), parsed.rules).digest());
    let places = Places {
        workspace: "/home/ann/project".into(),
        user_home: "/home/ann".into(),
        bailey_home: "/home/ann/.bailey".into(),
        ..Places::default()
    };
    for (role, action) in actions() {
        let effect = sealed(role, action);
        let facts = Facts::new(&effect, Timestamp::UNIX_EPOCH, &places);
        let (before, after) = (alone.decide(&facts), with.decide(&facts));
        let is_denied = |verdict: &Verdict| matches!(verdict, Verdict::Deny(_));
        let by_a_rule =
            before.reasons.iter().any(|reason| reason.answer == Answer::Deny && reason.rule != "default");
        if is_denied(&before.verdict) && by_a_rule {
            assert!(is_denied(&after.verdict), "a file lifted a built-in rule");
        }
    }
}

fn actions() -> Vec<(Role, Action)> {
    let read = |path: &str| Action::Read { path: path.into() };
    let command = bailey_protocol::Command {
        argv: ["git", "push", "--force"].map(String::from).into(),
        cwd: "/home/ann/project/sub".into(),
        env: [("A".into(), "b".into())].into(),
        stdin: None,
        network: true,
        background: false,
        limits: Limits::default(),
    };
    let request = bailey_protocol::HttpRequest {
        method: "POST".into(),
        url: "https://api.example.com:8443/v1".into(),
        headers: Vec::new(),
        body: "{}".into(),
    };
    let file = |path: &str| bailey_protocol::FileChange { path: path.into(), base: None, new: None };
    vec![
        (Role::Agent, read("/home/ann/project/.env")),
        (Role::Owner, read("/home/ann/.bailey/config.toml")),
        (Role::Agent, Action::Change { files: vec![file("/home/ann/project/a"), file("/etc/passwd")] }),
        (Role::Agent, Action::Exec(command)),
        (Role::Agent, Action::Http(request)),
    ]
}

fn sealed(role: Role, action: Action) -> Sealed {
    let effect = Effect {
        id: EffectId::new(1, [1; 10]),
        session: SessionId::new(1, [2; 10]),
        parent: None,
        call: None,
        role,
        action,
        labels: Labels::default(),
        cost: Cost::default(),
    };
    Sealed::new(effect).expect("an effect can be written as JSON")
}
