//! Rule files: one model, two spellings, and mistakes that say where they are.

use crate::support::{answer, decide, read};
use bailey_policy::{
    Answer, Condition, Glob, HostGlob, Policy, Tier, built_in_rules,
    file::{FILE_BYTES_MAX, FILES_MAX, Format, RuleFileError, load, load_dir, load_organisation, parse},
};
use bailey_protocol::{Kind, MergeKind, Role};

const TOML: &str = r#"
[[rule]]
name = "big"
answer = "require_review"
reason = "a big one"
priority = -5
tier = "project"
match = { action = ["change", "exec"], path = "src/**", role = "agent", network = false, max_size = "10 MiB" }
[[rule.except]]
host = "*.example.com"
direction = ["apply", "undo"]
[[rule.except]]
command = "cargo test"
max_wall = "5m"
max_memory = 1024
revealed = true
"#;

const YAML: &str = r#"
rules:
  - name: big
    answer: review
    reason: a big one
    priority: -5
    tier: project
    match:
      action: [change, exec]
      path: "src/**"
      role: agent
      network: false
      max_size: 10 MiB
    except:
      - host: "*.example.com"
        direction: [apply, undo]
      - {command: cargo test, max_wall: 5m, max_memory: 1024, revealed: true}
"#;

#[test]
fn two_spellings_one_model() {
    let toml = parse("a.toml", TOML, Format::Toml).unwrap();
    let yaml = parse("a.yaml", YAML, Format::Yaml).unwrap();
    assert_eq!(toml.rules, yaml.rules);
    let [rule] = toml.rules.as_slice() else { panic!("one rule") };
    assert_eq!((rule.name.as_str(), rule.text.as_str(), rule.priority), ("big", "a big one", -5));
    assert_eq!((rule.tier, rule.answer), (Tier::Project, Answer::Review));
    assert_eq!(
        rule.matches,
        Condition {
            action: Some(vec![Kind::Change, Kind::Exec]),
            path: Some(vec![Glob::new("src/**").unwrap()]),
            role: Some(vec![Role::Agent]),
            network: Some(false),
            max_size: Some(10 << 20),
            ..Condition::default()
        }
    );
    assert_eq!(rule.except[0].host, Some(vec![HostGlob::new("*.example.com").unwrap()]));
    assert_eq!(rule.except[0].direction, Some(vec![MergeKind::Apply, MergeKind::Undo]));
    assert_eq!((rule.except[1].max_wall, rule.except[1].max_memory), (Some(300_000), Some(1024)));
}

/// The whole text that a user sees for a mistake.
fn mistake(format: Format, text: &str) -> String {
    let name = if format == Format::Toml { "p/a.toml" } else { "p/a.yaml" };
    parse(name, text, format).unwrap_err().to_string()
}

/// A TOML rule whose `match` is this.
fn matching(condition: &str) -> String {
    mistake(Format::Toml, &format!("[[rule]]\nname = \"a\"\nanswer = \"deny\"\nmatch = {{ {condition} }}\n"))
}

/// A YAML rule with this line in its `match`.
fn matching_yaml(line: &str) -> String {
    mistake(Format::Yaml, &format!("rule:\n  - name: a\n    answer: deny\n    match:\n      {line}\n"))
}

#[test]
fn unknown_action() {
    assert_eq!(
        matching(r#"action = ["read", "serach"]"#),
        "p/a.toml:4:29: unknown action `serach`: did you mean `search`?\n  | match = { action = [\"read\", \"serach\"] }"
    );
    assert_eq!(
        matching_yaml("action: serach"),
        "p/a.yaml:5:15: unknown action `serach`: did you mean `search`?\n  |       action: serach"
    );
    assert!(matching(r#"action = "foreign""#).contains("unknown action `foreign`"));
}

#[test]
fn unknown_field() {
    let text = matching(r#"paht = "x""#);
    assert!(
        text.starts_with("p/a.toml:4:11: unknown field `paht`, expected one of `action`, `path`"),
        "{text}"
    );
    assert!(text.contains("; did you mean `path`?\n  | match = { paht = \"x\" }"), "{text}");
    let text = matching_yaml("paht: x");
    assert!(text.starts_with("p/a.yaml:5:7: unknown field `paht`"), "{text}");
    assert!(text.contains("; did you mean `path`?\n  |       paht: x"), "{text}");
    let text = mistake(Format::Toml, "[[rul]]\nname = \"a\"\n");
    assert!(text.starts_with("p/a.toml:1:3: unknown field `rul`"), "{text}");
    let text =
        mistake(Format::Toml, "[[rule]]\nname = \"a\"\nanswer = \"deny\"\nmatch = {}\nreasn = \"x\"\n");
    assert!(text.contains("did you mean `reason`?"), "{text}");
}

#[test]
fn a_glob_without_quotes() {
    assert_eq!(
        matching_yaml("path: *.key"),
        "p/a.yaml:5:13: what begins with `*` stands in quotes in YAML, as in `\"*.key\"`\n  |       path: *.key"
    );
    assert!(matching_yaml("path: '*.key'\n      paht: x").contains("unknown field `paht`"), "a control");
}

#[test]
fn unknown_unit() {
    assert_eq!(
        matching(r#"max_size = "10 kb""#),
        "p/a.toml:4:22: unknown unit `kb`: did you mean `KB`?\n  | match = { max_size = \"10 kb\" }"
    );
    assert!(matching(r#"max_size = "10 Mi""#).contains("unknown unit `Mi`: there are `B`, `KiB`"));
    assert!(matching(r#"max_wall = "10""#).contains("`10` has no unit: write `ms`, `s`, `m` or `h`"));
    assert!(matching("max_wall = 10").contains("p/a.toml:4:22: invalid type: integer `10`"));
    assert!(matching("max_size = -1").contains("`-1` is negative"));
    assert!(matching("max_size = 1.5").contains("a size such as `10 MiB`"));
    assert!(matching(r#"max_size = "99999999 TiB""#).contains("too large"));
    assert_eq!(
        matching_yaml("max_wall: 10"),
        "p/a.yaml:5:7: invalid type: integer `10`, expected a time with its unit, such as `10 m`\n  |       max_wall: 10"
    );
    assert!(matching_yaml("max_wall: 10 H").contains("unknown unit `H`: did you mean `h`?"));
}

#[test]
fn malformed_globs_and_hosts() {
    assert_eq!(
        matching(r#"path = "{worksapce}/x""#).lines().next().unwrap(),
        "p/a.toml:4:18: `{worksapce}/x`: unknown variable `{worksapce}`: there are `{workspace}`, `{home}`, `{bailey}` and \
         `{programs}`"
    );
    assert!(matching(r#"path = "~/x""#).contains("write `{home}`"));
    assert!(matching(r#"path = "!x""#).contains("use `except`"));
    assert!(matching(r#"path = "a/../b""#).contains("canonical paths have none"));
    assert!(matching(r#"host = "https://example.com/""#).contains("without scheme or path"));
    assert!(matching(r#"command = "  ""#).contains("name of a program"));
}

#[test]
fn a_field_without_a_value_is_a_mistake() {
    let text = matching_yaml("path:");
    assert!(text.starts_with("p/a.yaml:5:"), "{text}");
    assert!(
        parse("a.yaml", "rule:\n  - {name: a, answer: deny, match: {}}\n", Format::Yaml).is_ok(),
        "control"
    );
}

#[test]
fn a_rule_needs_its_parts() {
    let text = mistake(Format::Toml, "[[rule]]\nname = \"a\"\nanswer = \"deny\"\n");
    assert!(text.starts_with("p/a.toml:1:1: missing field `match`"), "{text}");
    let text = mistake(Format::Yaml, "rule:\n  - name: a\n    match: {}\n");
    assert!(text.starts_with("p/a.yaml:3:5: missing field `answer`\n"), "{text}");
    assert!(matching("role = \"root\"").contains("unknown role `root`: there are `owner`, `operator`"));
}

#[test]
fn a_file_cannot_claim_a_higher_tier() {
    for tier in ["built-in", "organisation"] {
        let text = mistake(
            Format::Toml,
            &format!("[[rule]]\nname = \"a\"\nanswer = \"deny\"\nmatch = {{}}\ntier = \"{tier}\"\n"),
        );
        assert!(
            text.starts_with("p/a.toml:5:8: tier `") && text.contains("cannot be claimed by a file"),
            "{text}"
        );
    }
    let rules = parse("a.toml", "[[rule]]\nname = \"a\"\nanswer = \"deny\"\nmatch = {}\n", Format::Toml)
        .unwrap()
        .rules;
    assert_eq!(rules[0].tier, Tier::User);
}

#[test]
fn priority_has_bounds() {
    let with = |priority: i32| {
        parse(
            "a.toml",
            &format!("[[rule]]\nname = \"a\"\nanswer = \"deny\"\nmatch = {{}}\npriority = {priority}\n"),
            Format::Toml,
        )
    };
    assert!(with(1000).is_ok() && with(-1000).is_ok());
    assert!(with(1001).unwrap_err().to_string().starts_with("a.toml:5:12: priority `1001`"));
    assert!(with(100_000).is_err());
}

#[test]
fn names_are_unique_over_all_files() {
    let file = "[[rule]]\nname = \"a\"\nanswer = \"deny\"\nmatch = {}\n";
    let error = load(&[("1.toml", file), ("2.toml", file)]).unwrap_err().to_string();
    assert!(error.starts_with("2.toml:1:1: a rule named `a` is already at 1.toml:1"), "{error}");
    assert_eq!(load(&[("1.toml", file)]).unwrap().rules.len(), 1, "control");
}

#[test]
fn broken_syntax_and_duplicate_keys() {
    assert!(mistake(Format::Toml, "[[rule]\n").starts_with("p/a.toml:1:"));
    assert!(mistake(Format::Yaml, "rule: [\n").starts_with("p/a.yaml:"));
    let text = mistake(Format::Toml, "[[rule]]\nname = \"a\"\nname = \"b\"\n");
    assert!(text.starts_with("p/a.toml:3:1: duplicate key"), "{text}");
    let text = mistake(Format::Yaml, "rule:\n  - name: a\n    name: b\n");
    assert!(text.starts_with("p/a.yaml:3:5:") && text.contains("duplicate"), "{text}");
    let shown = mistake(Format::Toml, "x = \"\u{1b}[31m\"\n");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn limits_of_size_and_number() {
    let large = "#".repeat(FILE_BYTES_MAX + 1);
    assert!(matches!(parse("a.toml", &large, Format::Toml), Err(RuleFileError::TooLarge(_))));
    assert!(parse("a.toml", &large[1..], Format::Toml).is_ok(), "control");
    let files: Vec<_> = (0..=FILES_MAX).map(|i| (format!("{i}.toml"), "")).collect();
    assert!(matches!(load(&files), Err(RuleFileError::TooManyFiles(_))));
    assert!(load(&files[1..]).is_ok(), "control");
    assert!(matches!(load(&[("notes.txt", "")]), Err(RuleFileError::Format(_))));
    let mut bomb = String::from("a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (name, last) in ('b'..='k').zip('a'..) {
        bomb.push_str(&format!(
            "{name}: &{name} [*{last},*{last},*{last},*{last},*{last},*{last},*{last},*{last}]\n"
        ));
    }
    assert!(parse("bomb.yaml", &bomb, Format::Yaml).is_err());
}

#[test]
fn a_directory_is_read_in_order() {
    let dir = std::env::temp_dir().join(format!("bailey-policy-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).unwrap();
    write("20.yaml", "rule:\n  - {name: second, answer: deny, match: {}}\n");
    write("10.toml", "[[rule]]\nname = \"first\"\nanswer = \"deny\"\nmatch = {}\n");
    write("notes.txt", "not a rule");
    let parsed = load_dir(&dir).unwrap();
    let names: Vec<_> = parsed.rules.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names, ["first", "second"]);
    assert!(parsed.warnings[0].to_string().contains("notes.txt: ignored"));
    write("30.toml", "rule = 3\n");
    assert!(load_dir(&dir).unwrap_err().to_string().contains("30.toml:1:8"), "{:?}", load_dir(&dir));
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(load_dir(&dir).unwrap().rules, []);
}

#[test]
fn odd_rules_are_warned_about() {
    let warned = |rest: &str| {
        let text = format!("[[rule]]\nname = \"a\"\nanswer = \"deny\"\n{rest}\n");
        let parsed = parse("a.toml", &text, Format::Toml).unwrap();
        parsed.warnings.iter().map(|warning| warning.text.clone()).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(
        warned(r#"match = { action = "model", path = "x" }"#),
        "rule `a` can never speak: none of its actions has a `path`"
    );
    assert!(warned(r#"match = { action = "read", command = "git" }"#).contains("has a `command`"));
    let allowed = |command: &str| {
        let text = format!("[[rule]]\nname = \"a\"\nanswer = \"allow\"\nmatch = {{ command = {command} }}\n");
        let parsed = parse("a.toml", &text, Format::Toml).unwrap();
        parsed.warnings.iter().map(|warning| warning.text.clone()).collect::<Vec<_>>().join("; ")
    };
    assert!(allowed("[\"make\", \"bash\"]").contains("never allows `bash`"));
    let both = allowed("[\"make\", \"python3\", \"env\"]");
    assert!(
        both.contains("never allows `env`") && both.contains("`-m`") && both.contains("`python3 -c`"),
        "{both}"
    );
    assert_eq!(allowed("[\"python3 -m\", \"make\"]"), "", "control: what runs is named");
    assert!(warned("match = {}\nexcept = { path = [] }").contains("never fits"));
    assert!(warned("match = { tag = [] }").contains("the list `tag` of its `match` is empty"));
    assert_eq!(
        warned("match = {}\npriority = 3"),
        "the priority of rule `a` does nothing: its answer is `deny`"
    );
    assert_eq!(
        warned(r#"match = { action = "change", max_size = "1 MiB" }"#),
        "rule `a` speaks against what keeps to its `max_size`, and not against what exceeds it: write `max_size` into \
         its `except`"
    );
    assert_eq!(
        warned(
            r#"match = { action = "change" }
except = { max_size = "1 MiB" }"#
        ),
        ""
    );
    assert_eq!(warned(r#"match = { action = ["model", "read"], path = "x" }"#), "");
    assert!(warned("match = { method = [] }").contains("the list `method` of its `match` is empty"));
    assert!(warned("match = {}\nexcept = { url_path = [] }").contains("its list `url_path` is empty"));
    for except in [
        "{}",
        r#"{ role = "*" }"#,
        r#"{ action = "exec" }"#,
        r#"{ action = ["read", "exec"], role = "*" }"#,
        r#"[{ path = "x" }, {}]"#,
    ] {
        let text = warned(&format!("match = {{ action = \"exec\", command = \"git\" }}\nexcept = {except}"));
        assert_eq!(text, "rule `a` can never speak: an `except` covers all of its `match`", "{except}");
    }
    for except in [r#"{ role = "agent" }"#, r#"{ action = "read" }"#, r#"{ role = "*", path = "x" }"#] {
        let text = warned(&format!("match = {{ action = \"exec\", command = \"git\" }}\nexcept = {except}"));
        assert_eq!(text, "", "control: {except}");
    }
    let text = warned("match = { role = \"agent\" }\nexcept = { role = \"agent\" }");
    assert_eq!(text, "rule `a` can never speak: an `except` is the same as its `match`");
}

/// Both are paths of URLs, and joined they would fit where one does; all other fields fit where all do.
#[test]
fn paths_and_repositories_do_not_stand_in_one_condition() {
    let both = r#"url_path = "/x", repository = "a/b""#;
    let text = matching(both);
    assert!(text.starts_with("p/a.toml:4:"), "{text}");
    assert!(text.contains("`url_path` and `repository` in one condition"), "{text}");
    let text = matching_yaml("url_path: /x\n      repository: a/b");
    assert!(text.contains("`url_path` and `repository` in one condition"), "{text}");
    let except = format!("[[rule]]\nname = \"a\"\nanswer = \"deny\"\nmatch = {{}}\nexcept = {{ {both} }}\n");
    let text = mistake(Format::Toml, &except);
    assert!(text.starts_with("p/a.toml:5:") && text.contains("in one condition"), "{text}");
    let text = matching(r#"method = ["GET", "PUT"], repository = "a/b""#);
    assert!(text.contains("git fetches with `GET` and `POST`"), "{text}");
    assert!(matching(r#"repository = "a/b?""#).contains("is no repository"));
    for one in [r#"url_path = "/x""#, r#"repository = "a/b""#] {
        let text = format!("[[rule]]\nname = \"a\"\nanswer = \"deny\"\nmatch = {{ {one} }}\n");
        assert!(parse("a.toml", &text, Format::Toml).is_ok(), "control: {one}");
    }
}

/// What the language has and the product does not set: the warning says what a decision then makes of it.
#[test]
fn what_nothing_sets_is_warned_about_and_frees_nothing() {
    let parsed = |says: &str, rest: &str| {
        let text = format!("[[rule]]\nname = \"a\"\nanswer = \"{says}\"\n{rest}\n");
        parse("a.toml", &text, Format::Toml).unwrap()
    };
    let decided = |says: &str, rest: &str| {
        let all = parsed("allow", "match = {}").rules;
        let others = if says == "allow" { Vec::new() } else { all };
        let policy = Policy::new(vec![], [others, parsed(says, rest).rules].concat());
        answer(&decide(&policy, Role::Agent, read("/home/ann/proj/a")))
    };
    for (field, means, denied) in
        [("tag", "never fits", false), ("mode", "always binds", true), ("state", "always binds", true)]
    {
        let condition = format!("match = {{ {field} = \"x\" }}");
        let warnings = parsed("deny", &condition).warnings;
        let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
        assert!(warning.text.contains(&format!("nothing in this version sets a `{field}`")), "{warning}");
        assert!(warning.text.ends_with(means), "{warning}");
        assert_eq!(decided("allow", &condition), Answer::Deny, "{field} frees nothing");
        assert_eq!(decided("deny", &condition) == Answer::Deny, denied, "{field}");
        let except = format!("match = {{}}\nexcept = {{ {field} = \"x\" }}");
        let warnings = parsed("deny", &except).warnings;
        assert!(
            matches!(warnings.as_slice(), [one] if one.text.contains("the one in `except`")),
            "{warnings:?}"
        );
        assert_eq!(decided("deny", &except), Answer::Deny, "{field} lifts nothing");
    }
    assert_eq!(parsed("deny", "match = { role = \"agent\" }").warnings, [], "control");
}

/// The first example that fails, as its writer is told.
fn failing(name: &str, text: &str) -> Option<String> {
    let format = Format::of(name).unwrap();
    let parsed = parse(name, text, format).unwrap();
    let policy = Policy::new(built_in_rules(), parsed.rules.clone());
    parsed.check(&policy).err().map(|mistake| mistake.to_string())
}

#[test]
fn examples_are_checked_with_their_place() {
    let toml = |lists: &str| {
        format!(
            "[[rule]]\nname = \"a\"\nanswer = \"allow\"\nmatch = {{ action = \"read\" }}\nexamples = {{ {lists} }}\n"
        )
    };
    assert_eq!(
        failing("a.toml", &toml(r#"allow = ["read x"], ask = ["read .env"], deny = ["exec ls"]"#)),
        None
    );
    assert_eq!(
        failing("a.toml", &toml(r#"allow = ["read x", "exec ls -l"]"#)).unwrap(),
        "a.toml:5:33: example `exec ls -l` of rule `a`: deny, not allow: no rule allows this (built-in rule `default`: \
         deny)\n  | examples = { allow = [\"read x\", \"exec ls -l\"] }"
    );
    let yaml = "rule:\n  - name: a\n    answer: allow\n    match: {action: read}\n    examples:\n      ask: [read x]\n";
    let told = failing("a.yaml", yaml).unwrap();
    assert!(
        told.starts_with("a.yaml:6:13: example `read x` of rule `a`: allow, not ask: rule `a` (user"),
        "{told}"
    );
    let table = r#"deny = [{ do = "exec ls", network = true, role = "guest" }], allow = [{ do = "read x", role = "plugin" }]"#;
    assert_eq!(failing("a.toml", &toml(table)), None);
}

#[test]
fn an_example_that_cannot_be_read_is_a_mistake() {
    let wrong = |example: &str| {
        let list = format!("allow = [{example}]");
        mistake(
            Format::Toml,
            &format!("[[rule]]\nname = \"a\"\nanswer = \"deny\"\nmatch = {{}}\nexamples = {{ {list} }}\n"),
        )
    };
    let told = wrong("\"fly away\"");
    assert!(told.starts_with("p/a.toml:5:23: unknown action `fly`: write read, stat"), "{told}");
    assert!(wrong("\"\"").contains("no action is named"));
    assert!(wrong("\"read a b\"").contains("`read` takes one path"));
    assert!(wrong("\"exec\"").contains("`exec` needs a command"));
    assert!(wrong("\"exec sh -c 'x\"").contains("nothing closes the '"));
    assert!(wrong("{ do = \"read x\", rol = \"agent\" }").contains("did you mean `role`?"));
    assert!(wrong("3").contains("a line such as `read src/main.rs`"));
}

#[test]
fn examples_are_no_part_of_the_digest() {
    let rule = "[[rule]]\nname = \"a\"\nanswer = \"allow\"\nmatch = { action = \"read\" }\n";
    let digest =
        |text: &str| Policy::new(vec![], parse("a.toml", text, Format::Toml).unwrap().rules).digest();
    assert_eq!(digest(rule), digest(&format!("{rule}examples = {{ allow = [\"read x\"] }}\n")));
}

/// Rules of the organisation are read from where nobody else can write.
#[test]
fn the_organisations_rules_are_the_administrators_alone() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let dir = std::env::temp_dir().join(format!("bailey-organisation-{}", std::process::id()));
    let rules = dir.join("policy");
    std::fs::create_dir_all(&rules).unwrap();
    let own = std::fs::metadata(&dir).unwrap().uid();
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let file = rules.join("10.toml");
    std::fs::write(&file, "[[rule]]\nname = \"a\"\nanswer = \"deny\"\nmatch = {}\n").unwrap();
    for (path, bits) in [(&dir, 0o755), (&rules, 0o755), (&file, 0o644)] {
        mode(path, bits);
    }
    let told = |owner| {
        load_organisation(&rules, owner).map(|parsed| parsed.rules[0].tier).map_err(|it| it.to_string())
    };
    assert_eq!(told(own), Ok(Tier::Organisation));
    for place in [&dir, &rules, &file] {
        let before = std::fs::metadata(place).unwrap().mode();
        for writable in [0o020, 0o002] {
            mode(place, before | writable);
            let why = told(own).unwrap_err();
            assert!(why.starts_with(&format!("`{}` could be changed", place.display())), "{why}");
        }
        mode(place, before);
    }
    if own != 0 {
        assert!(told(own + 1).is_err(), "another's");
    } else {
        std::os::unix::fs::chown(&file, Some(12_345), None).unwrap();
        let why = told(0).unwrap_err();
        assert!(why.contains("it belongs to user 12345 and has mode 644"), "{why}");
        std::os::unix::fs::chown(&file, Some(0), None).unwrap();
    }
    assert_eq!(told(own), Ok(Tier::Organisation), "control");
    let tier = "[[rule]]\nname = \"a\"\nanswer = \"deny\"\nmatch = {}\ntier = \"project\"\n";
    std::fs::write(&file, tier).unwrap();
    assert!(told(own).unwrap_err().contains("rules of the organisation have no `tier` of their own"));
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(load_organisation(&rules, own).unwrap().rules, []);
}
