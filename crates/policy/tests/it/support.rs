//! Short ways to say who does what under which rules.

use bailey_policy::{
    Answer, Caller, Caveat, CommandPrefix, Condition, Decided, Extension, ExtensionReply, Facts, Glob,
    HostGlob, Judged, Late, Places, Policy, Rule, Tier, Token, ToolGlob, Verdict, built_in_rules,
    file::{Format, parse},
};
use bailey_protocol::{
    Action, Adaptation, Blob, Command, Cost, Digest, Effect, EffectId, FileChange, HttpRequest, Isolation,
    Kind, Labels, Limits, Merge, MergeFile, MergeKind, Relay, Role, SandboxId, Sealed, SessionId, Timestamp,
    TokenId, ToolEffect, ToolUse, WsPath,
};

pub(crate) fn places() -> Places {
    Places {
        workspace: "/home/ann/proj".into(),
        user_home: "/home/ann".into(),
        bailey_home: "/home/ann/.bailey".into(),
        programs: vec!["/opt/bailey/bin/bailey".into(), "/home/ann/proj/target/bailey".into()],
        project: None,
    }
}

pub(crate) fn sealed(role: Role, action: Action) -> Sealed {
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
    Sealed::new(effect).unwrap()
}

pub(crate) fn decide_in(
    policy: &Policy,
    places: &Places,
    revealed: &[WsPath],
    role: Role,
    action: Action,
) -> Decided {
    let effect = sealed(role, action);
    policy.decide(&Facts { revealed, ..Facts::new(&effect, Timestamp::UNIX_EPOCH, places) })
}

pub(crate) fn decide(policy: &Policy, role: Role, action: Action) -> Decided {
    decide_in(policy, &places(), &[], role, action)
}

/// What the verdict is, as a rule's answer.
pub(crate) fn answer(decided: &Decided) -> Answer {
    match decided.verdict {
        Verdict::Allow(_) => Answer::Allow,
        Verdict::Review(_) => Answer::Review,
        Verdict::Deny(_) => Answer::Deny,
    }
}

pub(crate) fn isolation(decided: &Decided) -> &Isolation {
    match &decided.verdict {
        Verdict::Allow(proof) => proof.isolation(),
        Verdict::Review(proof) => proof.isolation(),
        Verdict::Deny(_) => panic!("a denial has no isolation: {:?}", decided.reasons),
    }
}

pub(crate) fn said(decided: &Decided, rule: &str) -> bool {
    decided.reasons.iter().any(|reason| reason.rule == rule)
}

/// The rules of a new home under the built-in ones.
pub(crate) fn standard() -> Policy {
    let parsed = parse("default.toml", bailey_policy::DEFAULT_RULES, Format::Toml).unwrap();
    assert_eq!(parsed.warnings, []);
    let policy = Policy::new(built_in_rules(), parsed.rules.clone());
    assert!(parsed.examples.len() > 5);
    parsed.check(&policy).unwrap();
    policy
}

pub(crate) fn rule(name: &str, answer: Answer) -> Rule {
    Rule {
        name: name.into(),
        tier: Tier::User,
        priority: 0,
        answer,
        matches: Condition::default(),
        except: vec![],
        text: format!("because of {name}"),
    }
}

impl Brief for Rule {}

/// Rules in one line.
pub(crate) trait Brief: Into<Rule> {
    fn at(self, tier: Tier) -> Rule {
        Rule { tier, ..self.into() }
    }
    fn weighs(self, priority: i16) -> Rule {
        Rule { priority, ..self.into() }
    }
    fn on(self, matches: Condition) -> Rule {
        Rule { matches, ..self.into() }
    }
    fn unless(self, except: impl Into<Vec<Condition>>) -> Rule {
        Rule { except: except.into(), ..self.into() }
    }
}

pub(crate) fn kind(kind: Kind) -> Condition {
    Condition { action: Some(vec![kind]), ..Condition::default() }
}

pub(crate) fn path(globs: &[&str]) -> Condition {
    Condition {
        path: Some(globs.iter().map(|glob| Glob::new(glob).unwrap()).collect()),
        ..Condition::default()
    }
}

pub(crate) fn host(globs: &[&str]) -> Condition {
    Condition {
        host: Some(globs.iter().map(|glob| HostGlob::new(glob).unwrap()).collect()),
        ..Condition::default()
    }
}

pub(crate) fn command(prefixes: &[&str]) -> Condition {
    Condition {
        command: Some(prefixes.iter().map(|text| CommandPrefix::new(text).unwrap()).collect()),
        ..Condition::default()
    }
}

pub(crate) fn read(path: &str) -> Action {
    Action::Read { path: path.into() }
}

pub(crate) fn search(root: &str) -> Action {
    Action::Search { root: root.into(), pattern: Some("x".into()), glob: None }
}

pub(crate) fn change(paths: &[&str]) -> Action {
    Action::Change { files: paths.iter().map(|path| file_change(path, 3)).collect() }
}

pub(crate) fn file_change(path: &str, size: usize) -> FileChange {
    FileChange { path: path.into(), base: None, new: Some(Blob(vec![b'x'; size])) }
}

pub(crate) fn adapt(path: &str, size: usize) -> Action {
    Action::Adapt(Adaptation { path: path.into(), old: None, new: Some(Blob(vec![b'x'; size])) })
}

pub(crate) fn merge(direction: MergeKind, paths: &[&str]) -> Action {
    let file = |path: &&str| MergeFile::whole(WsPath::from(*path), None, None);
    Action::Merge(Merge::of_files(direction, None, paths.iter().map(file).collect()))
}

pub(crate) fn exec(argv: &[&str]) -> Action {
    Action::Exec(Command {
        argv: argv.iter().map(ToString::to_string).collect(),
        cwd: "/home/ann/proj".into(),
        env: Default::default(),
        stdin: None,
        network: false,
        background: false,
        limits: Limits::default(),
    })
}

pub(crate) fn exec_network(argv: &[&str]) -> Action {
    match exec(argv) {
        Action::Exec(command) => Action::Exec(Command { network: true, ..command }),
        other => other,
    }
}

pub(crate) fn request(url: &str) -> HttpRequest {
    HttpRequest { method: "GET".into(), url: url.into(), headers: vec![], body: Blob::default() }
}

pub(crate) fn http(url: &str) -> Action {
    Action::Http(request(url))
}

pub(crate) fn relay(method: &str, url: &str, length: Option<u64>) -> Action {
    Action::Relay(Relay { method: method.into(), url: url.into(), length, number: 1, key: None })
}

pub(crate) fn tool(name: &str, effect: ToolEffect) -> Action {
    Action::Tool(ToolUse::judged(name.into(), Some(effect), "{}".into()))
}

pub(crate) fn tools(globs: &[&str]) -> Condition {
    Condition {
        tool: Some(globs.iter().map(|glob| ToolGlob::new(glob).unwrap()).collect()),
        ..Condition::default()
    }
}

pub(crate) fn model() -> Action {
    let request = HttpRequest { method: "POST".into(), ..request("https://api.example.com/v1/messages") };
    Action::Model { provider: "example".into(), model: "large".into(), request }
}

/// So many random cases, unless `PROPTEST_CASES` asks for another number.
pub(crate) fn config(cases: u32) -> proptest::test_runner::Config {
    let given = proptest::test_runner::Config { failure_persistence: None, ..Default::default() };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => given,
        None => proptest::test_runner::Config { cases, ..given },
    }
}

/// So many seconds after the beginning of time.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(crate) fn sandbox(number: u8) -> SandboxId {
    SandboxId::new(1, [number; 10])
}

/// A token for all reads, from second 10 until second 40, in sandbox 1, minted under this policy, with 3
/// operations.
pub(crate) fn token(policy: &Policy) -> Token {
    let caveat = Caveat {
        scope: Some(vec![kind(Kind::Read)]),
        not_before: Some(at(10)),
        expires: Some(at(40)),
        sandbox: Some(sandbox(1)),
        ..Caveat::default()
    };
    Token { id: TokenId::new([7; 16]), policy: policy.digest(), caveats: vec![caveat], operations_left: 3 }
}

/// What the agent asks for at second 20 in sandbox 1, with whatever there is besides the rules.
pub(crate) struct Asked<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) action: Action,
    pub(crate) token: Option<Token>,
    pub(crate) caller: Caller,
    pub(crate) now: Timestamp,
    pub(crate) newest: Timestamp,
}

impl<'a> Asked<'a> {
    pub(crate) fn new(policy: &'a Policy, action: Action) -> Self {
        let caller = Caller { sandbox: Some(sandbox(1)), ..Caller::default() };
        Self { policy, action, token: None, caller, now: at(20), newest: at(20) }
    }

    /// The decision, and the names of the extensions that were asked.
    pub(crate) fn decide(self, reply: impl Fn(&str) -> Option<ExtensionReply>) -> (Decided, Vec<String>) {
        let (effect, places) = (sealed(Role::Agent, self.action), places());
        let facts = Facts {
            token: self.token.as_ref(),
            caller: &self.caller,
            newest: self.newest,
            ..Facts::new(&effect, self.now, &places)
        };
        let mut asked = Vec::new();
        let decided = match self.policy.judge(&facts) {
            Judged::Decided(decided) => decided,
            Judged::Asks(inquiry) => inquiry.conclude(|extension| {
                asked.push(extension.name.clone());
                reply(&extension.name)
            }),
        };
        (decided, asked)
    }

    /// The decision where no extension is asked.
    pub(crate) fn alone(self) -> Decided {
        let (decided, asked) = self.decide(|_| None);
        assert!(asked.is_empty(), "{asked:?} was asked");
        decided
    }
}

/// An extension for reads.
pub(crate) fn extension(name: &str) -> Extension {
    Extension { name: name.into(), kinds: vec![Kind::Read], late: Late::Deny, program: Digest::of(b"x.py") }
}

/// What an extension says.
pub(crate) fn says(answer: Answer) -> Option<ExtensionReply> {
    Some(ExtensionReply::Said { answer, reason: format!("it says {}", answer.name()) })
}
