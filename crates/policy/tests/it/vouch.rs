//! What a token may be minted for: what the rules wholly allow, and nothing of which they ask about or deny a
//! part.

use crate::{
    random::{Draw, World},
    support::*,
};
use bailey_policy::{
    Answer::{Allow, Deny, Review},
    Caveat, Condition, NotWholly, Policy, Rule, Tier,
};
use bailey_protocol::{Kind, Role, ToolEffect};

fn caveat(scope: Condition) -> Caveat {
    Caveat { scope: Some(vec![scope]), expires: Some(at(40)), operations: Some(9), ..Caveat::default() }
}

fn vouch(rules: Vec<Rule>, scope: Condition) -> Result<(), NotWholly> {
    Policy::new(vec![], rules).vouch(&caveat(scope), &places())
}

fn reads(globs: &[&str]) -> Condition {
    Condition { action: Some(vec![Kind::Read]), ..path(globs) }
}

fn runs(prefix: &str) -> Condition {
    Condition { action: Some(vec![Kind::Exec]), network: Some(false), ..command(&[prefix]) }
}

#[test]
fn the_default_rules_vouch_for_the_workspace_and_not_for_what_they_ask_about_or_deny() {
    let standard = standard();
    let vouch = |scope: Condition| standard.vouch(&caveat(scope), &places());
    let of = |kinds: &[Kind], globs: &[&str]| Condition { action: Some(kinds.into()), ..path(globs) };
    let files = [Kind::Read, Kind::Stat, Kind::List, Kind::Search, Kind::Change];
    assert_eq!(vouch(of(&files, &["{workspace}/**"])), Ok(()));
    assert_eq!(vouch(of(&files, &["src/lib.rs", "tests/**"])), Ok(()));
    let make = Condition { network: Some(false), ..of(&[Kind::Exec], &["{workspace}/**"]) };
    assert_eq!(vouch(make.clone()), Ok(()));
    assert_eq!(vouch(kind(Kind::Model)), Ok(()));
    let refused = |scope: Condition, what: &str| {
        let why = vouch(scope).unwrap_err().to_string();
        assert!(why.contains(what), "{why}");
    };
    refused(
        of(&[Kind::Read], &["{home}/notes.txt"]),
        "reads outside the workspace (user rule `outside-reads`)",
    );
    refused(of(&[Kind::Change], &["{home}/**"]), "writes outside the workspace");
    refused(of(&[Kind::Read], &["/**"]), "devices and the kernel's own files");
    refused(Condition { network: None, ..make }, "commands with a way to the network");
    refused(of(&[Kind::Http], &["{workspace}/**"]), "a server that you have not said yes to");
    refused(kind(Kind::Read), "reads outside the workspace");
    let merges = Condition { role: Some(vec![Role::Agent]), ..of(&[Kind::Merge], &["{workspace}/**"]) };
    refused(merges, "only you merge");
}

#[test]
fn a_scope_says_what_it_is_for() {
    let all = || vec![rule("all", Allow)];
    assert_eq!(vouch(all(), reads(&["src/**"])), Ok(()), "control");
    assert_eq!(vouch(all(), path(&["src/**"])), Err(NotWholly::Boundless));
    assert_eq!(vouch(all(), Condition { action: Some(vec![]), ..path(&["**"]) }), Err(NotWholly::Boundless));
    let policy = Policy::new(vec![], all());
    assert_eq!(policy.vouch(&Caveat::default(), &places()), Err(NotWholly::Boundless));
    for glob in ["*.rs", "src/*", "**/x", "a/**/b", "{programs}"] {
        assert_eq!(vouch(all(), reads(&[glob])), Err(NotWholly::Pattern(glob.into())));
    }
    let many: Vec<String> = (0..2000).map(|i| format!("/f{i}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(vouch(all(), reads(&many)), Err(NotWholly::TooMuch));
}

#[test]
fn a_part_that_is_denied_or_asked_about_is_a_refusal() {
    for answer in [Deny, Review] {
        let rules = |glob| vec![rule("all", Allow), rule("one", answer).on(path(&[glob]))];
        for glob in ["src/a.rs", "src/a/**", "**/a.rs", "src", "*.rs", "{workspace}/**", "src/*"] {
            assert!(vouch(rules(glob), reads(&["src/**"])).is_err(), "{answer:?} {glob}");
        }
        for glob in ["docs/**", "{home}/.config/**", "/tmp/**"] {
            assert_eq!(vouch(rules(glob), reads(&["src/**"])), Ok(()), "{answer:?} {glob}");
        }
        assert_eq!(vouch(rules("src/a.rs"), reads(&["src/b.rs"])), Ok(()));
        assert!(vouch(rules("src/a.rs"), reads(&["src/b.rs", "src/a.rs"])).is_err());
    }
    assert!(vouch(vec![rule("some", Allow).on(path(&["src/a/**"]))], reads(&["src/**"])).is_err());
}

#[test]
fn commands_are_vouched_for_by_their_words() {
    let denies = |what| vec![rule("all", Allow), rule("no", Deny).on(command(&[what]))];
    assert_eq!(vouch(denies("rm"), runs("cargo test")), Ok(()));
    for what in ["cargo", "cargo test", "cargo test --doc"] {
        assert!(vouch(denies(what), runs("cargo test")).is_err(), "{what}");
    }
    // A path may lead to the program that a rule names, with words that the scope leaves open.
    for (what, runs_what) in [("git push", "/usr/bin/git"), ("git push --force", "/usr/bin/git push")] {
        assert!(vouch(denies(what), runs(runs_what)).is_err(), "{what} {runs_what}");
        assert_eq!(vouch(denies(what), runs("/usr/bin/git status")), Ok(()), "control");
    }
    // So may a command that begins with options.
    for runs_what in ["git -C sub", "git --no-pager", "git --odd", "git -C sub push", "git"] {
        assert!(vouch(denies("git push"), runs(runs_what)).is_err(), "{runs_what}");
    }
    for runs_what in ["git -C push status", "git --no-pager status", "git status"] {
        assert_eq!(vouch(denies("git push"), runs(runs_what)), Ok(()), "control: {runs_what}");
    }
    assert!(vouch(denies("git push --force"), runs("git push -q")).is_err());
    // What it runs cannot be told, so it may be what is denied.
    assert!(vouch(denies("rm"), runs("find")).is_ok());
    assert!(vouch(denies("rm"), runs("python3")).is_err());
    let any = Condition { action: Some(vec![Kind::Exec]), ..Condition::default() };
    assert!(vouch(denies("rm"), any).is_err());
    let allows = |what| vec![rule("some", Allow).on(command(&[what]))];
    assert_eq!(vouch(allows("cargo"), runs("cargo test")), Ok(()));
    assert!(vouch(allows("cargo test"), runs("cargo")).is_err());
}

#[test]
fn tools_are_vouched_for_by_name_and_effect() {
    let of = |names: &[&str], effect| Condition {
        action: Some(vec![Kind::Tool]),
        effect: Some(vec![effect]),
        ..tools(names)
    };
    let (read, egress) = (ToolEffect::Read, ToolEffect::Egress);
    let standard = standard();
    let asked = |scope| standard.vouch(&caveat(scope), &places());
    assert_eq!(asked(of(&["get", "list"], read)), Ok(()));
    assert!(asked(of(&["send"], egress)).is_err());
    assert!(asked(of(&["odd"], ToolEffect::Unclear)).is_err(), "nobody knows what it does");
    assert!(asked(Condition { effect: None, ..of(&["get"], read) }).is_err(), "it may do anything");

    let rules = || vec![rule("all", Allow), rule("not", Deny).on(tools(&["mail_*"]))];
    assert_eq!(vouch(rules(), of(&["get"], read)), Ok(()));
    assert!(vouch(rules(), of(&["get", "mail_get"], read)).is_err());
    assert!(vouch(rules(), of(&["*"], read)).is_err() && vouch(rules(), of(&["m*"], read)).is_err());
    let small = vec![rule("small", Allow).on(Condition { max_size: Some(9), ..Condition::default() })];
    assert!(vouch(small.clone(), of(&["get"], read)).is_err(), "one of them may be larger");
    assert_eq!(vouch(small, Condition { max_size: Some(9), ..of(&["get"], read) }), Ok(()));
    let online = Condition { network: Some(true), ..Condition::default() };
    let offline = vec![rule("all", Allow), rule("offline", Deny).on(online)];
    assert!(vouch(offline, of(&["get"], read)).is_err(), "what it reaches, nobody knows");
}

#[test]
fn what_an_extension_judges_is_not_minted() {
    let policy = Policy::new(vec![], vec![rule("all", Allow)]);
    assert_eq!(policy.vouch(&caveat(reads(&["src/**"])), &places()), Ok(()), "control");
    let policy = policy.with_extensions(vec![extension("x")]);
    let why = policy.vouch(&caveat(reads(&["src/**"])), &places()).unwrap_err().to_string();
    assert!(why.contains("the extension `x` judges each of them"), "{why}");
}

/// Whatever the rules are, a token that was vouched for allows nothing that they would not.
#[test]
fn a_token_that_was_vouched_for_allows_nothing_that_the_rules_do_not() {
    let (mut vouched, mut used) = (0, 0);
    for seed in 0..6_000 {
        let mut draw = Draw::new(seed);
        let rules = draw.rules();
        let mut token = draw.token();
        token.operations_left = 3;
        token.caveats.truncate(1);
        for caveat in &mut token.caveats {
            *caveat = Caveat { expires: Some(at(40)), not_before: None, sandbox: None, ..caveat.clone() };
        }
        let (binding, others): (Vec<_>, Vec<_>) =
            rules.iter().cloned().partition(|rule| rule.tier == Tier::BuiltIn);
        let policy = Policy::new(binding, others);
        let is_vouched = |caveat: &Caveat| policy.vouch(caveat, &places()).is_ok();
        if token.caveats.is_empty() || !token.caveats.iter().all(is_vouched) {
            continue;
        }
        vouched += 1;
        for _ in 0..20 {
            let (case, mut world) = (draw.case(), draw.world());
            (world.of_today, world.newest, world.says, world.caller.is_confined) =
                (true, at(20), vec![], false);
            world.token = Some(token.clone());
            let with = world.decide(&rules, &case);
            let without = World { token: None, ..world.clone() }.decide(&rules, &case);
            used += usize::from(with.token == Some(Ok(())));
            assert!(
                answer(&with) != Allow || answer(&without) == Allow,
                "{seed}: {case:?} {world:?} {rules:#?} {:?}",
                without.reasons
            );
        }
    }
    assert!(vouched > 30 && used > 150, "{vouched} were vouched for, {used} times used");
}
