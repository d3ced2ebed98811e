//! Random rules, actions and circumstances, all of them of one small world in which they meet often.

use crate::support::*;
use bailey_policy::{
    Answer::{self, Allow, Deny, Pass, Review},
    Caller, Caveat, Condition, Decided, Extension, Facts, Glob, Judged, Method, Policy, Rule, Tier, Token,
    Trust, UrlGlob,
};
use bailey_protocol::{
    Action, Command, Digest, Kind, Limits, Marked, Merge, MergeKind, Role, Timestamp, TokenId, ToolEffect,
    ToolUse, WsPath,
};
use proptest::prelude::*;

/// An action, and for commands what a human reads in them: words, or nothing when they hide.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) role: Role,
    pub(crate) action: Action,
    pub(crate) words: Vec<Option<Vec<&'static str>>>,
}

/// What there is besides rules and an action.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) revealed: Vec<WsPath>,
    pub(crate) caller: Caller,
    pub(crate) mode: Option<&'static str>,
    pub(crate) state: Option<&'static str>,
    pub(crate) newest: Timestamp,
    /// Its policy is filled in when there is one.
    pub(crate) token: Option<Token>,
    /// Whether the token is one of this policy.
    pub(crate) of_today: bool,
    /// What each extension says; all of them judge reads, changes and commands.
    pub(crate) says: Vec<Option<Answer>>,
}

pub(crate) const JUDGED: [Kind; 3] = [Kind::Read, Kind::Change, Kind::Exec];

impl World {
    /// These rules as a policy, and the real decision.
    pub(crate) fn decide(&self, rules: &[Rule], case: &Case) -> Decided {
        let (binding, others): (Vec<_>, Vec<_>) =
            rules.iter().cloned().partition(|rule| rule.tier == Tier::BuiltIn);
        let named = |i| Extension { kinds: JUDGED.into(), ..extension(&format!("x{i}")) };
        let mut policy = Policy::new(binding, others);
        if !self.says.is_empty() {
            policy = policy.with_extensions((0..self.says.len()).map(named).collect());
        }
        let of = if self.of_today { policy.digest() } else { Digest::of(b"yesterday") };
        let token = self.token.clone().map(|token| Token { policy: of, ..token });
        let (effect, places) = (sealed(case.role, case.action.clone()), places());
        let facts = Facts {
            revealed: &self.revealed,
            caller: &self.caller,
            token: token.as_ref(),
            newest: self.newest,
            mode: self.mode,
            state: self.state,
            ..Facts::new(&effect, at(20), &places)
        };
        match policy.judge(&facts) {
            Judged::Decided(decided) => decided,
            Judged::Asks(inquiry) => inquiry.conclude(|asked| {
                let place: usize = asked.name[1..].parse().unwrap();
                self.says[place].and_then(says)
            }),
        }
    }
}

const PATHS: &[&str] = &[
    "/",
    "/home",
    "/home/ann",
    "/home/ann/proj",
    "/home/ann/proj/a",
    "/home/ann/proj/a/b.rs",
    "/home/ann/proj/b.rs",
    "/home/ann/proj/a/a/b.rs",
    "/home/ann/.bailey",
    "/home/ann/.bailey/a",
    "/opt/bailey/bin/bailey",
    "/tmp/a",
    "/home/ann/a",
];
const GLOBS: &[&str] = &[
    "/**",
    "/",
    "**",
    "*",
    "*.rs",
    "a",
    "a/",
    "a/**",
    "a/*",
    "**/a",
    "a/**/b.rs",
    "{workspace}/**",
    "{workspace}",
    "{workspace}/*",
    "{workspace}/?",
    "{home}/**",
    "{home}/a",
    "{home}/*/a",
    "{bailey}/**",
    "{bailey}",
    "{programs}",
    "/tmp/**",
    "/tmp",
    "/*/ann/**",
    "/**/b.rs",
    "/**/a/**/b*",
    "b?rs",
];

const TOOLS: &[&str] = &["send", "mail/send", "read", "x"];
const TOOL_GLOBS: &[&str] = &["*", "send", "*send", "mail/*", "r?ad", "y"];

const URLS: &[&str] = &[
    "https://example.com/",
    "http://example.com",
    "https://Api.Example.com:8443/v1?x#y",
    "https://example.com.:80/",
    "https://notexample.com/",
    "http://[::1]:8443/",
    "https://example.com/v1/x/",
    "https://example.com/v1?/v2",
    "https://example.com/v1?a=b",
    "https://example.com/v1/x?a=b",
    "https://example.com/v1/x?a=c&a=b#?a=b",
    "https://example.com?a=b#/v1",
    "https://example.com/v1?x?a=b",
    "https://example.com/v1??a=b",
    "https://example.com/v1/%2e%2e/x",
    "https://example.com/v1//x",
];
const URL_GLOBS: &[&str] =
    &["/**", "/", "/v1", "/v1/", "/v1/*", "/v2/**", "/*/x", "/v1?a=b", "/v1/?a=b", "/**?a=b", "/?a=b"];
const HOST_GLOBS: &[&str] = &[
    "*",
    "*:443",
    "*:8443",
    "example.com",
    "EXAMPLE.com.",
    "example.com:80",
    "*.example.com",
    "*.example.com:8443",
    "api.example.com",
    "[::1]",
];

/// Shell lines, with what a human reads in them.
type Line = (&'static [&'static str], &'static [Option<&'static str>]);
const LINES: &[Line] = &[
    (&["git", "status"], &[Some("git status")]),
    (&["git", "-C", "status", "push"], &[Some("git -C status push")]),
    (&["sh", "-c", "git --no-pager --odd push -q --force"], &[Some("git --no-pager --odd push -q --force")]),
    (
        &["/usr/bin/git", "-C", "--no-pager", "--odd=x", "status"],
        &[Some("/usr/bin/git -C --no-pager --odd=x status")],
    ),
    (&["git", "-C", ".", "bisect", "run", "x"], &[None]),
    (&["/usr/bin/git"], &[Some("/usr/bin/git")]),
    (
        &["sh", "-c", "git status && cargo test --all | rm x"],
        &[Some("git status"), Some("cargo test --all"), Some("rm x")],
    ),
    (&["sh", "-c", "git $(rm x)"], &[None]),
    (&["sh", "script.sh"], &[None]),
    (&["env", "git"], &[None]),
];

/// Draws from a seed: SplitMix64.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(end).unwrap()).unwrap()
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// Up to two of them.
    fn some<T: Clone>(&mut self, from: &[T]) -> Vec<T> {
        (0..self.below(3)).map(|_| self.pick(from)).collect()
    }

    /// One to three of them, in order, each once.
    fn subsequence<T: Clone>(&mut self, from: &[T]) -> Vec<T> {
        let mut places: Vec<_> = (0..=self.below(3)).map(|_| self.below(from.len())).collect();
        places.sort_unstable();
        places.dedup();
        places.into_iter().map(|place| from[place].clone()).collect()
    }

    fn maybe<T>(&mut self, chance: usize, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.percent(chance).then(|| draw(self))
    }

    pub(crate) fn condition(&mut self) -> Condition {
        let kinds = [
            Kind::Read,
            Kind::Stat,
            Kind::List,
            Kind::Search,
            Kind::Diff,
            Kind::Change,
            Kind::Merge,
            Kind::Exec,
            Kind::Http,
            Kind::Model,
            Kind::Adapt,
            Kind::Tool,
        ];
        Condition {
            action: self.maybe(40, |draw| draw.some(&kinds)),
            path: self.maybe(50, |draw| {
                draw.some(GLOBS).into_iter().map(|glob| Glob::new(glob).unwrap()).collect()
            }),
            command: self.maybe(10, |draw| {
                command(&draw.some(&[
                    "git",
                    "git status",
                    "git push",
                    "git push --force",
                    "git -C",
                    "/usr/bin/git",
                    "cargo test",
                    "rm",
                ]))
                .command
                .unwrap()
            }),
            tool: self.maybe(10, |draw| tools(&draw.some(TOOL_GLOBS)).tool.unwrap()),
            effect: self.maybe(10, |draw| draw.some(&ToolEffect::NAMED)),
            role: self.maybe(10, |draw| draw.some(&Role::ALL)),
            trust: self.maybe(10, |draw| draw.some(&Trust::ALL)),
            tag: self.maybe(10, |draw| draw.some(&["a", "b"].map(String::from))),
            mode: self.maybe(10, |draw| draw.some(&["strict", "explore"].map(String::from))),
            state: self.maybe(5, |draw| draw.some(&["red", "green"].map(String::from))),
            network: self.maybe(10, |draw| draw.percent(50)),
            direction: self.maybe(10, |draw| draw.some(&[MergeKind::Apply, MergeKind::Discard])),
            revealed: self.maybe(10, |draw| draw.percent(50)),
            marks: self.maybe(10, |draw| draw.percent(50)),
            max_size: self.maybe(10, |draw| draw.pick(&[0, 1, 2, 3, 7])),
            host: self.maybe(10, |draw| host(&draw.some(HOST_GLOBS)).host.unwrap()),
            method: self.maybe(10, |draw| {
                draw.some(&["GET", "PUT", "WEBSOCKET"])
                    .into_iter()
                    .map(|name| Method::new(name).unwrap())
                    .collect()
            }),
            url_path: self.maybe(10, |draw| {
                draw.some(URL_GLOBS).into_iter().map(|glob| UrlGlob::new(glob).unwrap()).collect()
            }),
            max_wall: self.maybe(10, |draw| draw.pick(&[0, 9, 10, 11])),
            max_memory: self.maybe(10, |draw| draw.pick(&[0, 9, 10, 11])),
        }
    }

    /// Up to seven rules.
    pub(crate) fn rules(&mut self) -> Vec<Rule> {
        let one = |(draw, i): (&mut Self, usize)| {
            let answer = draw.pick(&[Allow, Allow, Review, Deny, Pass]);
            Rule {
                tier: draw.pick(&Tier::ALL),
                priority: draw.pick(&[-1, 0, 1]),
                matches: draw.condition(),
                except: (0..draw.below(2)).map(|_| draw.condition()).collect(),
                ..rule(&format!("r{i}"), answer)
            }
        };
        (0..self.below(8)).map(|i| one((self, i))).collect()
    }

    pub(crate) fn case(&mut self) -> Case {
        let role = self.pick(&[Role::Owner, Role::Agent, Role::Agent, Role::Guest]);
        let mut words = Vec::new();
        let action = match self.below(13) {
            0 => read(self.pick(PATHS)),
            9 => Action::Stat { path: self.pick(PATHS).into() },
            10 => Action::List { path: self.pick(PATHS).into() },
            11 => Action::Diff { root: self.pick(PATHS).into(), also: Vec::new() },
            1 => search(self.pick(PATHS)),
            2 => {
                let size = self.below(4);
                let paths = self.subsequence(PATHS);
                Action::Change { files: paths.into_iter().map(|path| file_change(path, size)).collect() }
            }
            3 => {
                let mut merge =
                    merge(self.pick(&[MergeKind::Apply, MergeKind::Discard]), &self.subsequence(PATHS));
                if let Action::Merge(Merge { files, .. }) = &mut merge {
                    for file in files.iter_mut().filter(|_| self.percent(30)) {
                        file.marks = vec![Marked { mark: "[redacted:x]".into(), lines: vec![1] }];
                    }
                }
                merge
            }
            4 => model(),
            5 => http(self.pick(URLS)),
            12 => {
                let (method, length) =
                    (self.pick(&["GET", "PUT", "WEBSOCKET"]), self.pick(&[None, Some(1), Some(3)]));
                relay(method, self.pick(URLS), length)
            }
            7 => adapt(self.pick(PATHS), self.below(4)),
            6 => {
                let effects = [ToolEffect::NAMED.as_slice(), &[ToolEffect::Unclear]].concat();
                let args = self.pick(&["{}", "{\"a\": 1}"]).into();
                let (name, effect) = (self.pick(TOOLS).into(), Some(self.pick(&effects)));
                Action::Tool(ToolUse::judged(name, effect, args))
            }
            _ => {
                let (argv, lines) = self.pick(LINES);
                words = lines.iter().map(|line| line.map(|line| line.split(' ').collect())).collect();
                let limit = |draw: &mut Self| draw.pick(&[9, 10, 11]);
                let (wall_ms, memory_bytes) = (limit(self), limit(self));
                match if self.percent(50) { exec_network(argv) } else { exec(argv) } {
                    Action::Exec(command) => {
                        let limits = Limits { wall_ms, memory_bytes, ..command.limits };
                        Action::Exec(Command { limits, ..command })
                    }
                    other => other,
                }
            }
        };
        Case { role, action, words }
    }

    /// A token that often holds.
    pub(crate) fn token(&mut self) -> Token {
        let kinds = [
            Kind::Read,
            Kind::List,
            Kind::Change,
            Kind::Exec,
            Kind::Http,
            Kind::Model,
            Kind::Merge,
            Kind::Search,
            Kind::Tool,
        ];
        let broad =
            |draw: &mut Self| Condition { action: Some(draw.subsequence(&kinds)), ..Condition::default() };
        let condition = |draw: &mut Self| if draw.percent(80) { broad(draw) } else { draw.condition() };
        let caveat = |draw: &mut Self| Caveat {
            scope: draw.maybe(80, |draw| (0..=draw.below(3)).map(|_| condition(draw)).collect()),
            not_before: draw.maybe(30, |draw| draw.pick(&[at(10), at(20), at(20), at(21)])),
            expires: draw.maybe(90, |draw| draw.pick(&[at(20), at(21), at(40), at(40)])),
            sandbox: draw.maybe(30, |draw| draw.pick(&[sandbox(1), sandbox(1), sandbox(2)])),
            ..Caveat::default()
        };
        Token {
            id: TokenId::new([7; 16]),
            policy: Digest::of(b""),
            caveats: (0..self.pick(&[0, 1, 1, 1, 1, 2])).map(|_| caveat(self)).collect(),
            operations_left: self.pick(&[0, 1, 2, 3, 4]),
        }
    }

    pub(crate) fn world(&mut self) -> World {
        let saying = |draw: &mut Self| draw.maybe(90, |draw| draw.pick(&[Allow, Pass, Pass, Review, Deny]));
        World {
            revealed: if self.percent(50) { vec!["/home/ann/proj/b.rs".into()] } else { vec![] },
            caller: Caller {
                sandbox: self.pick(&[None, Some(sandbox(1)), Some(sandbox(1)), Some(sandbox(2))]),
                is_confined: self.percent(10),
                trust: self.maybe(80, |draw| draw.pick(&Trust::ALL)),
                tags: self.some(&["a", "b", "c"]).into_iter().map(String::from).collect(),
            },
            mode: self.maybe(70, |draw| draw.pick(&["strict", "explore", "debug"])),
            state: self.maybe(70, |draw| draw.pick(&["red", "green"])),
            newest: if self.percent(95) { at(20) } else { at(21) },
            token: self.maybe(60, Self::token),
            of_today: self.percent(95),
            says: (0..self.pick(&[0, 0, 1, 2])).map(|_| saying(self)).collect(),
        }
    }
}

fn drawn<T: std::fmt::Debug>(draw: fn(&mut Draw) -> T) -> impl Strategy<Value = T> {
    any::<u64>().prop_map(move |seed| draw(&mut Draw::new(seed)))
}

pub(crate) fn conditions() -> impl Strategy<Value = Condition> {
    drawn(Draw::condition)
}

pub(crate) fn rules() -> impl Strategy<Value = Vec<Rule>> {
    drawn(Draw::rules)
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    drawn(Draw::case)
}

pub(crate) fn tokens() -> impl Strategy<Value = Token> {
    drawn(Draw::token)
}

pub(crate) fn worlds() -> impl Strategy<Value = World> {
    drawn(Draw::world)
}
