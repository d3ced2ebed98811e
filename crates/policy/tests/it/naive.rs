//! A second evaluator, as naive as can be, that must agree with the real one on random rules and actions. It
//! takes rules one by one, spells every glob out as a whole path and matches by plain recursion.

use crate::support::*;
use bailey_policy::{
    Answer::{self, Allow, Deny, Pass, Review},
    Condition, Glob, Places, Policy, Rule, Tier,
};
use bailey_protocol::{Action, Kind, MergeKind, Role, WsPath};
use proptest::{prelude::*, sample::select};

/// An action, and for commands what a human reads in them: words, or nothing when they hide.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) role: Role,
    pub(crate) action: Action,
    words: Vec<Option<Vec<&'static str>>>,
}

/// 0: no, 1: maybe, 2: yes.
type Fit = u8;

struct Thing<'a> {
    path: Option<&'a str>,
    tree: bool,
    size: Option<u64>,
    words: Option<Option<Vec<&'static str>>>,
}

fn things(case: &Case) -> Vec<Thing<'_>> {
    let thing = |path, tree, size| Thing { path, tree, size, words: None };
    match &case.action {
        Action::Read { path } => vec![thing(Some(&path.0), false, None)],
        Action::Search { root, .. } => vec![thing(Some(&root.0), true, None)],
        Action::Change { files } => {
            let size = |blob: &bailey_protocol::Blob| blob.0.len() as u64;
            files
                .iter()
                .map(|file| thing(Some(&file.path.0), false, Some(file.new.as_ref().map_or(0, size))))
                .collect()
        }
        Action::Merge(merge) => {
            merge.files.iter().map(|file| thing(Some(&file.path.0), false, None)).collect()
        }
        Action::Exec(command) => case
            .words
            .iter()
            .map(|words| Thing { words: Some(words.clone()), ..thing(Some(&command.cwd.0), false, None) })
            .collect(),
        Action::Http(request) | Action::Model { request, .. } => {
            vec![thing(None, false, Some(request.body.0.len() as u64))]
        }
        other => panic!("not generated: {other:?}"),
    }
}

fn naive(rules: &[Rule], case: &Case, places: &Places, revealed: &[WsPath]) -> Answer {
    let mut worst = Pass;
    for thing in things(case) {
        let speaking: Vec<&Rule> =
            rules.iter().filter(|rule| speaks(rule, case, &thing, places, revealed)).collect();
        let has = |answer, tier| speaking.iter().any(|rule| rule.answer == answer && rule.tier == tier);
        let top = |answer, tier| {
            speaking
                .iter()
                .filter(|rule| rule.answer == answer && rule.tier == tier)
                .map(|rule| rule.priority)
                .max()
        };
        let opens = [Tier::BuiltIn, Tier::Organisation, Tier::User];
        let opened = opens.into_iter().any(|tier| has(Allow, tier) || has(Review, tier));
        let mut answer = if opened { Allow } else { Deny };
        for tier in Tier::ALL {
            if opened && has(Review, tier) && !(has(Allow, tier) && top(Allow, tier) > top(Review, tier)) {
                answer = Review;
            }
        }
        if speaking.iter().any(|rule| rule.answer == Deny) {
            answer = Deny;
        }
        worst = worst.max(answer);
    }
    worst
}

fn speaks(rule: &Rule, case: &Case, thing: &Thing<'_>, places: &Places, revealed: &[WsPath]) -> bool {
    let fit = |condition: &Condition| fit(condition, case, thing, places, revealed);
    match rule.answer {
        Allow => fit(&rule.matches) == 2 && rule.except.iter().all(|except| fit(except) == 0),
        Review | Deny => fit(&rule.matches) > 0 && rule.except.iter().all(|except| fit(except) < 2),
        Pass => false,
    }
}

fn fit(condition: &Condition, case: &Case, thing: &Thing<'_>, places: &Places, revealed: &[WsPath]) -> Fit {
    let mut fits = vec![2];
    let sure = |yes: bool| if yes { 2 } else { 0 };
    if let Some(kinds) = &condition.action {
        fits.push(sure(kinds.contains(&case.action.kind())));
    }
    if let Some(roles) = &condition.role {
        fits.push(sure(roles.contains(&case.role)));
    }
    if let Some(network) = condition.network {
        let asks = match &case.action {
            Action::Exec(command) => command.network,
            Action::Http(_) | Action::Model { .. } => true,
            _ => false,
        };
        fits.push(sure(network == asks));
    }
    if let Some(directions) = &condition.direction {
        fits.push(sure(
            matches!(&case.action, Action::Merge(merge) if directions.contains(&merge.direction)),
        ));
    }
    if let Some(own) = condition.revealed {
        fits.push(sure(thing.path.is_some_and(|path| revealed.contains(&WsPath::from(path)) == own)));
    }
    if let Some(max) = condition.max_size {
        fits.push(sure(thing.size.is_some_and(|size| size <= max)));
    }
    if let Some(globs) = &condition.path {
        let each =
            |glob: &Glob| thing.path.map_or(0, |path| glob_fit(glob.as_str(), path, thing.tree, places));
        fits.push(globs.iter().map(each).max().unwrap_or(0));
    }
    if let Some(commands) = &condition.command {
        let json = serde_json::to_value(commands).unwrap();
        let own: Vec<Vec<String>> = serde_json::from_value(json).unwrap();
        fits.push(own.iter().map(|own| words_fit(own, &thing.words)).max().unwrap_or(0));
    }
    fits.into_iter().min().unwrap()
}

fn words_fit(own: &[String], words: &Option<Option<Vec<&str>>>) -> Fit {
    match words {
        None => 0,
        Some(None) => 1,
        Some(Some(words)) => {
            let arguments = words.len() >= own.len() && (1..own.len()).all(|i| own[i] == words[i]);
            match (arguments, own[0] == words[0], words[0].ends_with(&format!("/{}", own[0]))) {
                (true, true, _) => 2,
                (true, false, true) => 1,
                _ => 0,
            }
        }
    }
}

pub(crate) fn glob_fit(glob: &str, path: &str, tree: bool, places: &Places) -> Fit {
    if glob == "{programs}" {
        let inside = |program: &String| {
            tree && format!("{program}/").starts_with(&format!("{}/", path.trim_end_matches('/')))
        };
        let same = places.programs.iter().any(|program| program == path);
        return if same && !tree { 2 } else { u8::from(same || places.programs.iter().any(inside)) };
    }
    let relative = |glob: &str| match glob.trim_end_matches('/').contains('/') {
        true => format!("{}/{glob}", places.workspace),
        false => format!("{}/**/{glob}", places.workspace),
    };
    let whole = match glob.chars().next() {
        Some('/') => glob.to_string(),
        Some('{') => glob
            .replace("{workspace}", &places.workspace)
            .replace("{home}", &places.user_home)
            .replace("{bailey}", &places.bailey_home),
        _ => relative(glob),
    };
    let whole = if whole.ends_with('/') { format!("{whole}**") } else { whole };
    let pattern: Vec<&str> = whole.split('/').filter(|name| !name.is_empty()).collect();
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    let covers_tree = !tree || pattern.last() == Some(&"**");
    if covers(&pattern, &names) && covers_tree {
        return 2;
    }
    let folder = (0..names.len()).any(|length| covers(&pattern, &names[..length]));
    u8::from(folder || (tree && reaches(&pattern, &names)))
}

fn covers(pattern: &[&str], names: &[&str]) -> bool {
    match (pattern, names) {
        ([], []) => true,
        (["**", rest @ ..], _) if covers(rest, names) => true,
        (["**", ..], [_, names @ ..]) => covers(pattern, names),
        ([first, pattern @ ..], [name, names @ ..]) => name_matches(first, name) && covers(pattern, names),
        _ => false,
    }
}

/// Whether some path at or beneath the names can be covered.
fn reaches(pattern: &[&str], names: &[&str]) -> bool {
    match (pattern, names) {
        (_, []) => true,
        (["**", rest @ ..], [_, below @ ..]) => reaches(rest, names) || reaches(pattern, below),
        ([first, pattern @ ..], [name, names @ ..]) => name_matches(first, name) && reaches(pattern, names),
        ([], _) => false,
    }
}

fn name_matches(pattern: &str, name: &str) -> bool {
    match (pattern.chars().next(), name.chars().next()) {
        (None, None) => true,
        (Some('*'), _) if name_matches(&pattern[1..], name) => true,
        (Some('*'), Some(_)) => name_matches(pattern, &name[1..]),
        (Some(p), Some(n)) => (p == '?' || p == n) && name_matches(&pattern[1..], &name[1..]),
        _ => false,
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

fn some<T: std::fmt::Debug + Clone + 'static>(values: &'static [T]) -> impl Strategy<Value = Vec<T>> {
    proptest::collection::vec(select(values), 0..3)
}

fn maybe<S: Strategy>(chance: f64, strategy: S) -> impl Strategy<Value = Option<S::Value>> {
    proptest::option::weighted(chance, strategy)
}

pub(crate) fn conditions() -> impl Strategy<Value = Condition> {
    let kinds = &[Kind::Read, Kind::Search, Kind::Change, Kind::Merge, Kind::Exec, Kind::Http, Kind::Model];
    let globs =
        some(GLOBS).prop_map(|globs| globs.into_iter().map(|glob| Glob::new(glob).unwrap()).collect());
    let commands = some(&["git", "git status", "cargo test", "rm"]);
    (
        maybe(0.4, some(kinds)),
        maybe(0.5, globs),
        maybe(0.1, commands.prop_map(|texts| command(&texts).command.unwrap())),
        maybe(0.1, some(&[Role::Owner, Role::Agent])),
        maybe(0.1, any::<bool>()),
        maybe(0.1, some(&[MergeKind::Apply, MergeKind::Discard])),
        maybe(0.1, any::<bool>()),
        maybe(0.1, 0_u64..4),
    )
        .prop_map(|(action, path, command, role, network, direction, revealed, max_size)| Condition {
            action,
            path,
            command,
            role,
            network,
            direction,
            revealed,
            max_size,
            ..Condition::default()
        })
}

pub(crate) fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let rule = (
        select(vec![Allow, Allow, Review, Deny, Pass]),
        select(Tier::ALL.to_vec()),
        -1_i16..2,
        conditions(),
        proptest::collection::vec(conditions(), 0..2),
    );
    proptest::collection::vec(rule, 0..8).prop_map(|rules| {
        let named = rules.into_iter().enumerate();
        named
            .map(|(i, (answer, tier, priority, matches, except))| Rule {
                tier,
                priority,
                matches,
                except,
                ..rule_named(i, answer)
            })
            .collect()
    })
}

fn rule_named(i: usize, answer: Answer) -> Rule {
    rule(&format!("r{i}"), answer)
}

/// Shell lines, with what a human reads in them.
type Line = (&'static [&'static str], &'static [Option<&'static str>]);
const LINES: &[Line] = &[
    (&["git", "status"], &[Some("git status")]),
    (&["/usr/bin/git"], &[Some("/usr/bin/git")]),
    (
        &["sh", "-c", "git status && cargo test --all | rm x"],
        &[Some("git status"), Some("cargo test --all"), Some("rm x")],
    ),
    (&["sh", "-c", "git $(rm x)"], &[None]),
    (&["sh", "script.sh"], &[None]),
    (&["env", "git"], &[None]),
];

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let one = select(PATHS);
    let some_paths = proptest::sample::subsequence(PATHS.to_vec(), 1..4);
    let action = prop_oneof![
        one.clone().prop_map(read),
        one.prop_map(search),
        (some_paths.clone(), 0_usize..4).prop_map(|(paths, size)| Action::Change {
            files: paths.into_iter().map(|path| file_change(path, size)).collect(),
        }),
        (some_paths, select(vec![MergeKind::Apply, MergeKind::Discard]))
            .prop_map(|(paths, way)| merge(way, &paths)),
        Just(model()),
        Just(http("https://example.com/")),
    ];
    let command = (select(LINES), any::<bool>()).prop_map(|((argv, words), network)| {
        let words = words.iter().map(|line| line.map(|line| line.split(' ').collect())).collect();
        (if network { exec_network(argv) } else { exec(argv) }, words)
    });
    let both = prop_oneof![4 => action.prop_map(|action| (action, Vec::new())), 1 => command];
    (both, select(vec![Role::Owner, Role::Agent])).prop_map(|((action, words), role)| Case {
        role,
        action,
        words,
    })
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn a_naive_evaluator_agrees(rules in rules(), case in cases(), revealed in any::<bool>()) {
        let revealed: Vec<WsPath> = if revealed { vec!["/home/ann/proj/b.rs".into()] } else { vec![] };
        let (binding, others): (Vec<_>, Vec<_>) = rules.iter().cloned().partition(|rule| rule.tier == Tier::BuiltIn);
        let policy = Policy::new(binding, others);
        let decided = decide_in(&policy, &places(), &revealed, case.role, case.action.clone());
        prop_assert_eq!(answer(&decided), naive(&rules, &case, &places(), &revealed), "{:#?}", decided.reasons);
    }
}
