//! A second evaluator, as naive as can be, that must agree with the real one on random rules and actions. It
//! takes rules one by one, spells every glob out as a whole path and matches by plain recursion.

use crate::{
    random::{Case, Draw, JUDGED, World},
    support::*,
};
use bailey_policy::{
    Answer::{self, Allow, Deny, Pass, Review},
    Condition, Glob, HostGlob, Places, Rule, Tier, ToolGlob,
};
use bailey_protocol::{Action, Kind, ToolEffect, WsPath};
use std::{collections::BTreeMap, sync::Mutex};

/// 0: no, 1: maybe, 2: yes.
type Fit = u8;

struct Thing<'a> {
    path: Option<&'a str>,
    tree: bool,
    size: Option<u64>,
    marks: bool,
    words: Option<Option<Vec<&'static str>>>,
}

fn things(case: &Case) -> Vec<Thing<'_>> {
    let thing = |path, tree, size| Thing { path, tree, size, marks: false, words: None };
    match &case.action {
        Action::Read { path } | Action::Stat { path } | Action::List { path } => {
            vec![thing(Some(&path.0), false, None)]
        }
        Action::Search { root, .. } | Action::Diff { root, .. } => vec![thing(Some(&root.0), true, None)],
        Action::Change { files } => {
            let size = |blob: &bailey_protocol::Blob| blob.0.len() as u64;
            files
                .iter()
                .map(|file| thing(Some(&file.path.0), false, Some(file.new.as_ref().map_or(0, size))))
                .collect()
        }
        Action::Merge(merge) => {
            let marked = |file: &bailey_protocol::MergeFile| !file.marks.is_empty();
            let files = merge.files.iter();
            files
                .map(|file| Thing { marks: marked(file), ..thing(Some(&file.path.0), false, None) })
                .collect()
        }
        Action::Exec(command) => case
            .words
            .iter()
            .map(|words| Thing { words: Some(words.clone()), ..thing(Some(&command.cwd.0), false, None) })
            .collect(),
        Action::Http(request) | Action::Model { request, .. } => {
            vec![thing(None, false, Some(request.body.0.len() as u64))]
        }
        Action::Relay(relay) => vec![thing(None, false, Some(relay.length.unwrap_or(u64::MAX)))],
        Action::Tool(tool) => vec![thing(None, false, Some(tool.args.len() as u64))],
        Action::Adapt(adaptation) => {
            let size = adaptation.new.as_ref().map_or(0, |new| new.0.len() as u64);
            vec![thing(Some(&adaptation.path.0), false, Some(size))]
        }
        other => panic!("not generated: {other:?}"),
    }
}

pub(crate) fn naive(rules: &[Rule], case: &Case, world: &World) -> Answer {
    let (places, things) = (places(), things(case));
    let speaking = |thing: &Thing<'_>, rule: &&Rule| speaks(rule, case, thing, &places, world);
    let denied = |rule: &Rule| rule.answer == Deny && things.iter().any(|thing| speaking(thing, &rule));
    let binds = |rule: &&Rule| matches!(rule.tier, Tier::BuiltIn | Tier::Organisation);
    if rules.iter().filter(binds).any(denied) {
        return Deny;
    }
    let valid = token_holds(case, &things, &places, world);
    if !valid && (world.caller.is_confined || rules.iter().any(denied)) {
        return Deny;
    }
    let asked = if !valid && JUDGED.contains(&case.action.kind()) { world.says.as_slice() } else { &[] };
    let extensions = |answer| asked.iter().any(|said| said.unwrap_or(Deny) == answer);
    if extensions(Deny) {
        return Deny;
    }
    let mut worst = Pass;
    for thing in &things {
        let heard = rules.iter().filter(|rule| !valid || binds(rule));
        let heard: Vec<&Rule> = heard.filter(|rule| speaking(thing, rule)).collect();
        let top = |answer, tier| {
            let of = heard.iter().filter(|rule| rule.answer == answer && rule.tier == tier);
            of.map(|rule| rule.priority).max()
        };
        let opens = [Tier::BuiltIn, Tier::Organisation, Tier::User];
        let opened = opens.into_iter().any(|tier| top(Allow, tier).is_some() || top(Review, tier).is_some());
        let stands = |tier| top(Review, tier).is_some() && top(Review, tier) >= top(Allow, tier);
        let answer = match () {
            () if !(opened || valid || extensions(Allow) || extensions(Review)) => Deny,
            () if extensions(Review) || Tier::ALL.into_iter().any(stands) => Review,
            () => Allow,
        };
        worst = worst.max(answer);
    }
    worst
}

/// Whether a token holds: a dozen questions, one after the other.
fn token_holds(case: &Case, things: &[Thing<'_>], places: &Places, world: &World) -> bool {
    let Some(token) = &world.token else { return false };
    let (mut bounded, mut ends) = (false, false);
    for caveat in &token.caveats {
        if caveat.not_before.is_some_and(|time| time > at(20))
            || caveat.expires.is_some_and(|time| time <= at(20))
        {
            return false;
        }
        if caveat.sandbox.is_some() && caveat.sandbox != world.caller.sandbox {
            return false;
        }
        ends |= caveat.expires.is_some();
        if let Some(scope) = &caveat.scope {
            bounded = true;
            for thing in things {
                let covers = |condition: &Condition| fit(condition, case, thing, places, world) == 2;
                if !scope.iter().any(covers) {
                    return false;
                }
            }
        }
    }
    bounded && ends && world.of_today && token.operations_left > 0 && world.newest <= at(20)
}

fn speaks(rule: &Rule, case: &Case, thing: &Thing<'_>, places: &Places, world: &World) -> bool {
    let fit = |condition: &Condition| fit(condition, case, thing, places, world);
    match rule.answer {
        // It is allowed by its name alone.
        Allow if case.action.kind() == Kind::Adapt && rule.matches.action.is_none() => false,
        Allow => fit(&rule.matches) == 2 && rule.except.iter().all(|except| fit(except) == 0),
        Review | Deny => fit(&rule.matches) > 0 && rule.except.iter().all(|except| fit(except) < 2),
        Pass => false,
    }
}

fn fit(condition: &Condition, case: &Case, thing: &Thing<'_>, places: &Places, world: &World) -> Fit {
    let mut fits = vec![2];
    let sure = |yes: bool| if yes { 2 } else { 0 };
    if let Some(kinds) = &condition.action {
        fits.push(sure(kinds.contains(&case.action.kind())));
    }
    if let Some(roles) = &condition.role {
        fits.push(sure(roles.contains(&case.role)));
    }
    let member = |own: &Vec<String>, given: Option<&str>| match given {
        None => u8::from(!own.is_empty()),
        Some(given) => sure(own.iter().any(|own| own == given)),
    };
    if let Some(own) = &condition.trust {
        let own = own.iter().map(|trust| trust.name().to_string()).collect();
        fits.push(member(&own, world.caller.trust.map(|trust| trust.name())));
    }
    fits.extend(
        condition.tag.as_ref().map(|own| sure(own.iter().any(|tag| world.caller.tags.contains(tag)))),
    );
    fits.extend(condition.mode.as_ref().map(|own| member(own, world.mode)));
    fits.extend(condition.state.as_ref().map(|own| member(own, world.state)));
    if let Some(network) = condition.network {
        let asks = match &case.action {
            Action::Exec(command) => command.network,
            Action::Http(_) | Action::Relay(_) | Action::Model { .. } => true,
            _ => false,
        };
        fits.push(if matches!(case.action, Action::Tool(_)) { 1 } else { sure(network == asks) });
    }
    let tool = match &case.action {
        Action::Tool(tool) => Some(tool),
        _ => None,
    };
    if let Some(globs) = &condition.tool {
        let named = |glob: &ToolGlob| tool.is_some_and(|tool| name_matches(&glob.to_string(), &tool.name));
        fits.push(sure(globs.iter().any(named)));
    }
    if let Some(own) = &condition.effect {
        fits.push(match tool.and_then(|tool| tool.effect) {
            Some(ToolEffect::Unclear) => u8::from(!own.is_empty()),
            Some(effect) => sure(own.contains(&effect)),
            None => 0,
        });
    }
    if let Some(directions) = &condition.direction {
        fits.push(sure(
            matches!(&case.action, Action::Merge(merge) if directions.contains(&merge.direction)),
        ));
    }
    if let Some(own) = condition.revealed {
        fits.push(sure(thing.path.is_some_and(|path| world.revealed.contains(&WsPath::from(path)) == own)));
    }
    if let Some(own) = condition.marks {
        fits.push(sure(thing.path.is_some() && thing.marks == own));
    }
    let (url, method) = match &case.action {
        Action::Http(request) | Action::Model { request, .. } => {
            (Some(request.url.as_str()), request.method.as_str())
        }
        Action::Relay(relay) => (Some(relay.url.as_str()), relay.method.as_str()),
        _ => (None, ""),
    };
    if let Some(methods) = &condition.method {
        let names = |name: &str| methods.iter().any(|own| own.as_str() == name);
        fits.push(match method {
            "WEBSOCKET" if names("GET") && !names(method) => 1,
            _ => sure(names(method)),
        });
    }
    if let Some(globs) = &condition.host {
        let named = |glob: &HostGlob| url.is_some_and(|url| host_matches(&glob.to_string(), url));
        fits.push(sure(globs.iter().any(named)));
    }
    if let Some(globs) = &condition.url_path {
        let one = |url: &str| globs.iter().map(|glob| asked_fit(&glob.to_string(), url)).max().unwrap_or(0);
        fits.push(url.map_or(0, one));
    }
    let limits = match &case.action {
        Action::Exec(command) => Some(&command.limits),
        _ => None,
    };
    if let Some(max) = condition.max_wall {
        fits.push(sure(limits.is_some_and(|limits| limits.wall_ms <= max)));
    }
    if let Some(max) = condition.max_memory {
        fits.push(sure(limits.is_some_and(|limits| limits.memory_bytes <= max)));
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
            match (own[0] == words[0], words[0].ends_with(&format!("/{}", own[0]))) {
                (true, _) if arguments => 2,
                (named, filed) => u8::from((named || filed) && says(&own[1..], &words[1..], true)),
            }
        }
    }
}

/// Whether words are said among options: of git, two that every reader knows, and only before its subcommand.
fn says(own: &[String], words: &[&str], before: bool) -> bool {
    let (Some((first, rest)), Some((word, after))) = (own.split_first(), words.split_first()) else {
        return own.is_empty();
    };
    if first == word && says(rest, after, before && word.starts_with('-')) {
        return true;
    }
    let without = || says(own, after, before);
    let with_value = || says(own, after.get(1..).unwrap_or_default(), before);
    match *word {
        "-C" if before => with_value(),
        "--no-pager" if before => without(),
        word if word.contains('=') => without(),
        word if word.starts_with('-') => without() || with_value(),
        _ => false,
    }
}

/// A host spelled out with its port, and compared from behind.
fn host_matches(glob: &str, url: &str) -> bool {
    let (scheme, rest) = url.split_once("://").unwrap();
    let given = rest.split(['/', '?', '#']).next().unwrap();
    let spelled = |text: &str, port: &str| {
        let text = text.to_lowercase();
        let (name, port) = match text.rsplit_once(':') {
            Some((name, own)) if !own.contains(']') => (name.to_string(), own.to_string()),
            _ => (text.clone(), port.to_string()),
        };
        (name.trim_end_matches('.').to_string(), port)
    };
    let (name, port) = spelled(given, if scheme == "http" { "80" } else { "443" });
    let (wanted, own_port) = spelled(glob, "");
    let is_named = match wanted.as_str() {
        "*" => true,
        wanted if wanted.starts_with("*.") => name.ends_with(&wanted[1..]) && !name.starts_with('.'),
        wanted => name == wanted,
    };
    is_named && (own_port.is_empty() || own_port == port)
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

/// The path of a URL, without its last slash.
fn url_path(url: &str) -> String {
    let rest = url.split_once("://").unwrap().1.split(['?', '#']).next().unwrap();
    format!("/{}", rest.split_once('/').map_or("", |(_, path)| path.trim_end_matches('/')))
}

/// A query that a rule has is the one behind the URL's path, or nobody is certain; it belongs to one page.
fn asked_fit(glob: &str, url: &str) -> Fit {
    let page = |glob: &str| {
        if glob == "/" {
            url_fit(glob, &url_path(url))
        } else {
            url_fit(glob.trim_end_matches('/'), &url_path(url))
        }
    };
    let (before, _) = url.split_once('#').unwrap_or((url, ""));
    match (glob.split_once('?'), before.split_once('?')) {
        (None, _) => url_fit(glob, &url_path(url)),
        (Some((glob, own)), Some((_, query))) if own == query => page(glob),
        (Some((glob, _)), _) => page(glob).min(1),
    }
}

/// Of what is encoded, or has an empty name, nobody is certain.
fn url_fit(glob: &str, path: &str) -> Fit {
    match glob {
        "/**" => 2,
        "/" => {
            if path == "/" {
                2
            } else {
                1
            }
        }
        _ if path.contains('%') || path.contains("//") => 1,
        _ => glob_fit(glob, path, false, &places()),
    }
}

/// Takes away all rules without which both evaluators still differ.
fn smallest(mut rules: Vec<Rule>, case: &Case, world: &World) -> Vec<Rule> {
    for place in (0..rules.len()).rev() {
        let mut fewer = rules.clone();
        fewer.remove(place);
        if answer(&world.decide(&fewer, case)) != naive(&fewer, case, world) {
            rules = fewer;
        }
    }
    rules
}

/// Four threads share the cases, each new at every run, and print what was decided.
#[test]
fn a_naive_evaluator_agrees_on_100_000_rule_sets() {
    let counts: Mutex<BTreeMap<&str, u64>> = Mutex::default();
    let quarter = || {
        for _ in 0..25_000 {
            let seed = rand_seed();
            let mut draw = Draw::new(seed);
            let (rules, case, world) = (draw.rules(), draw.case(), draw.world());
            let decided = world.decide(&rules, &case);
            let (verdict, expected) = (answer(&decided), naive(&rules, &case, &world));
            if verdict != expected {
                let rules = smallest(rules, &case, &world);
                panic!("seed {seed}: {verdict:?}, not {expected:?}\n{rules:#?}\n{case:#?}\n{world:#?}");
            }
            let mut counts = counts.lock().unwrap();
            *counts.entry(verdict.name()).or_default() += 1;
            let token = match decided.token {
                Some(Ok(())) => "valid token",
                Some(Err(_)) => "invalid token",
                None => "no token",
            };
            *counts.entry(token).or_default() += 1;
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(quarter)).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let counts = counts.into_inner().unwrap();
    let sets: u64 = ["allow", "review", "deny"].iter().map(|verdict| counts[verdict]).sum();
    println!("{sets} random rule sets: {counts:?}");
    assert_eq!(sets, 100_000);
    assert!(counts.values().all(|count| count * 50 > sets), "each kind of case was met: {counts:?}");
}

/// A number that nobody knew before.
fn rand_seed() -> u64 {
    use std::hash::BuildHasher as _;
    std::collections::hash_map::RandomState::new().hash_one(0)
}
