use super::{TEXT_CHARS_MAX, check};
use crate::config::Config;
use std::path::Path;

fn why(text: &str) -> String {
    check(Path::new("agent.toml"), text.into()).unwrap_err().to_string()
}

#[test]
fn it_says_four_things_and_nothing_else() {
    let whole = "# a comment\nname = \"Ada\"\nlanguage = \"de\"\nstyle = \"\"\"short,\nplain\"\"\"\nnotes = [\"works at night\"]\n";
    check(Path::new("agent.toml"), whole.into()).unwrap();
    check(Path::new("agent.toml"), String::new()).unwrap();
    let most = "\"".repeat(TEXT_CHARS_MAX / 2);
    check(Path::new("agent.toml"), format!("notes = ['{most}']\n")).unwrap();
    let long = "x".repeat(TEXT_CHARS_MAX + 1);
    for (text, expected) in [
        ("name = 3\n".to_owned(), "1:8"),
        ("name = \"a\"\nnmae = \"b\"\n".into(), "2:1"),
        ("notes = \"one\"\n".into(), "1:9"),
        ("notes = [\"a\", 3]\n".into(), "1:"),
        (format!("style = \"{long}\"\n"), "at most 400"),
        (format!("notes = [\"a\", \"{long}\"]\n"), "note 2 has 401 characters"),
        // What it is when it is written decides: a card shows that, and a line of a card has an end.
        (format!("notes = ['{}']\n", "\"".repeat(TEXT_CHARS_MAX / 2 + 1)), "note 1 has 402 characters"),
        (format!("notes = [{}]\n", "\"a\",".repeat(101)), "101 notes"),
        ("name = \"\\u001b[2J\"\n".into(), "control character"),
        ("name = ".into(), "1:"),
        ("[notes]\nx = 1\n".into(), "1:"),
    ] {
        let why = why(&text);
        assert!(why.contains(expected) && why.contains("agent.toml"), "{text}: {why}");
    }
}

/// Not even by its name does a setting get in.
#[test]
fn no_key_of_the_configuration_is_one_of_it() {
    let keys = Config::default().values();
    let top: std::collections::BTreeSet<&str> =
        keys.iter().filter_map(|(key, _)| key.split('.').next()).collect();
    assert!(top.len() > 8, "{top:?}");
    for key in top.into_iter().chain(["providers", "policy", "rule", "trust", "secrets", "extensions"]) {
        for text in [format!("{key} = \"x\"\n"), format!("[{key}]\nx = 1\n"), format!("[[{key}]]\nx = 1\n")] {
            assert!(why(&text).contains("unknown field"), "{text}: {}", why(&text));
        }
    }
}
