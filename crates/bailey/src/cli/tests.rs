//! The command line as a whole: one shape of help, examples that are true, documents that agree with the
//! program.

use super::{
    Cli, EXIT_CODES, SHOWN, command, completed, examples::EXAMPLES, groups::GROUPS, suggested, talked,
};
use clap::{Command, FromArgMatches as _};
use std::ffi::OsString;

fn leaves<'a>(command: &'a Command, above: &[&'a str], into: &mut Vec<(Vec<&'a str>, &'a Command)>) {
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set()) {
        let words: Vec<&str> = above.iter().copied().chain([sub.get_name()]).collect();
        if sub.has_subcommands() {
            leaves(sub, &words, into);
        } else {
            into.push((words, sub));
        }
    }
}

#[test]
fn the_command_line_is_well_formed() {
    command().debug_assert();
}

#[test]
fn every_command_stands_in_one_group_of_the_help() {
    let mut command = command();
    let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    grouped.sort_unstable();
    let mut known: Vec<&str> =
        command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(Command::get_name).collect();
    known.retain(|name| *name != "help");
    known.sort_unstable();
    assert_eq!(grouped, known);
    let help = command.render_help().to_string();
    for part in ["Work with the agent:", "  run         Give the agent a task", "--home <DIR>", "Exit codes:"]
    {
        assert!(help.contains(part), "{part}: {help}");
    }
    assert!(!help.contains("Commands:"), "{help}");
    let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(wide.is_empty(), "{wide:?}");
}

/// A group by itself shows what is there, and `bailey` by itself begins a conversation, but for scripts.
#[test]
fn a_missing_command_is_the_one_that_shows_something() {
    let completed = |typed: &[&str], is_here| {
        let typed: Vec<std::ffi::OsString> = typed.iter().map(Into::into).collect();
        let error = command().try_get_matches_from(&typed).unwrap_err();
        let (found, is_bare) = completed(&error, &typed, is_here)?;
        let (name, below) = found.subcommand()?;
        Some((name.to_owned(), below.subcommand_name().map(str::to_owned), is_bare))
    };
    for (group, shows) in SHOWN {
        let meant = Some((group.to_owned(), Some(shows.to_owned()), false));
        assert_eq!(completed(&["bailey", "--json", group], false), meant);
        assert_eq!(completed(&["bailey", group, "--json"], true), meant);
    }
    let talk = Some(("chat".to_owned(), None, true));
    assert_eq!(
        (completed(&["bailey"], true), completed(&["bailey", "--home", "x"], true)),
        (talk.clone(), talk)
    );
    // The controls: without a terminal, and with another mistake.
    for typed in [&["bailey"][..], &["bailey", "--home", "sessions"]] {
        assert_eq!(completed(typed, false), None);
    }
    assert_eq!(completed(&["bailey", "sessions", "lst"], true), None);
}

/// Options of `bailey chat` need no command; other mistakes stay mistakes.
#[test]
fn options_of_a_conversation_need_no_command() {
    let typed =
        |words: &[&str]| -> Vec<OsString> { ["bailey"].iter().chain(words).map(Into::into).collect() };
    let talked = |words: &[&str]| {
        let typed = typed(words);
        talked(&command().try_get_matches_from(&typed).unwrap_err(), &typed)
    };
    let same = |words: &[&str], chat: &[&str]| {
        let (bare, chat) =
            (talked(words).unwrap().unwrap(), command().try_get_matches_from(typed(chat)).unwrap());
        let parsed = |matches| format!("{:?}", Cli::from_arg_matches(matches).unwrap().command);
        assert_eq!(parsed(&bare), parsed(&chat), "{words:?}");
    };
    same(&["--continue"], &["chat", "--continue"]);
    same(&["--home", "x", "--resume", "aa4f"], &["chat", "--home", "x", "--resume", "aa4f"]);
    same(&["--handoff=3,4", "-m", "a/b"], &["--handoff=3,4", "chat", "-m", "a/b"]);
    assert!(talked(&["-m"]).unwrap().unwrap_err().to_string().contains("value is required"));
    for words in [&["run", "--nope", "x"][..], &["rnu"], &["--versoin"]] {
        assert!(talked(words).is_none(), "{words:?}");
    }
    let said = |words: &[&str]| {
        let typed = typed(words);
        suggested(command().try_get_matches_from(&typed).unwrap_err(), &typed).to_string()
    };
    assert!(said(&["rnu", "x"]).contains("'run'"), "{}", said(&["rnu", "x"]));
    assert!(said(&["secrets", "ste"]).contains("'set'"), "{}", said(&["secrets", "ste"]));
    assert!(!said(&["frobnicate"]).contains("tip"), "the control");
}

#[test]
fn a_command_that_was_renamed_is_found_by_its_old_name() {
    for (old, new) in [
        (&["bailey", "page", "link"][..], &["bailey", "web", "link"][..]),
        (&["bailey", "pool", "list"], &["bailey", "prewarm", "list"]),
        (&["bailey", "audit", "salvage"], &["bailey", "audit", "recover"]),
    ] {
        let parsed = |words: &[&str]| format!("{:?}", command().try_get_matches_from(words).unwrap());
        assert_eq!(parsed(old), parsed(new));
    }
}

#[test]
fn every_command_says_what_it_does_and_shows_an_example() {
    let command = command();
    let mut all = Vec::new();
    leaves(&command, &[], &mut all);
    assert!(all.len() > 20, "{}", all.len());
    let without: Vec<String> = all
        .iter()
        .filter(|(words, sub)| {
            let listed = EXAMPLES.iter().any(|(known, _)| known == words);
            sub.get_about().is_none() || !listed
        })
        .map(|(words, _)| words.join(" "))
        .collect();
    assert!(without.is_empty(), "add an example in cli/examples.rs, and a first line, for: {without:?}");
    let gone: Vec<_> =
        EXAMPLES.iter().filter(|(words, _)| !all.iter().any(|(known, _)| known == words)).collect();
    assert!(gone.is_empty(), "there is no such command: {gone:?}");
    for (words, sub) in all {
        for argument in sub.get_arguments().filter(|argument| !argument.is_hide_set()) {
            assert!(argument.get_help().is_some(), "{words:?}: {}", argument.get_id());
        }
    }
}

#[test]
fn every_example_is_a_command_that_the_parser_takes() {
    for (words, examples) in EXAMPLES {
        for (typed, _) in *examples {
            let typed = typed.rsplit(" | ").next().unwrap().split(" > ").next().unwrap();
            let mut parts: Vec<String> = Vec::new();
            for (number, part) in typed.split('"').enumerate() {
                match number % 2 {
                    0 => parts.extend(part.split_whitespace().map(Into::into)),
                    _ => parts.push(part.into()),
                }
            }
            let parsed = command().try_get_matches_from(&parts);
            assert!(parsed.is_ok(), "{words:?}: {typed}: {}", parsed.unwrap_err());
        }
    }
}

#[test]
fn the_exit_codes_of_the_help_are_those_of_the_program() {
    use crate::exit;
    let said: Vec<u8> = EXIT_CODES.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let mut said_sorted = said.clone();
    said_sorted.sort_unstable();
    let mut known = vec![
        exit::DONE,
        exit::FAILED,
        exit::WRONG,
        exit::DENIED,
        exit::MODEL,
        exit::JOURNAL,
        exit::CONFLICT,
        exit::PAUSED,
        exit::CANCELLED,
        exit::HUNG_UP,
        exit::UNREAD,
        exit::TERMINATED,
    ];
    known.sort_unstable();
    assert_eq!(said_sorted, known);
}
