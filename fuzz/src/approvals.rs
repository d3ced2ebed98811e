//! What a human grants beyond one exact command.

use bailey_policy::Pattern;
use bailey_protocol::{Action, Command, Limits, WsPath};
use std::collections::BTreeMap;

/// Programs that are there to run others, or code.
const LAUNCHERS: [&str; 11] =
    ["sh", "bash", "env", "xargs", "sudo", "python3", "perl", "node", "nohup", "timeout", "awk"];
/// Words by which `find` runs others, or writes.
const OF_FIND: [&str; 9] =
    ["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"];

/// Two commands, a line each, with a tab between their words. The pattern around the first covers it; of the
/// second it covers only what begins with the same program, and none that runs others.
pub(crate) fn pattern(text: &str) {
    let mut lines = text.splitn(2, '\n').map(command);
    let (Some(asked), Some(other)) = (lines.next(), lines.next()) else { return };
    let Ok(pattern) = Pattern::around(&Action::Exec(asked.clone())) else { return };
    assert!(pattern.covers(&Action::Exec(asked.clone())), "{asked:?} is not covered by {pattern}");
    let written = serde_json::to_string(&pattern).expect("it can be written");
    assert_eq!(serde_json::from_str::<Pattern>(&written).ok().as_ref(), Some(&pattern), "{written}");
    for command in
        [&asked, &other].into_iter().filter(|command| pattern.covers(&Action::Exec((*command).clone())))
    {
        let program = first(command);
        assert_eq!(program, first(&asked), "{pattern} covers {command:?}");
        assert!(!LAUNCHERS.contains(&program.as_str()), "{pattern} covers {command:?}");
        let runs = command.argv.iter().any(|word| OF_FIND.contains(&word.as_str()));
        assert!(program != "find" || !runs, "{pattern} covers {command:?}");
        assert!(
            Pattern::around(&Action::Exec(command.clone())).is_ok(),
            "{pattern} covers {command:?}, which has none of its own"
        );
    }
}

fn command(line: &str) -> Command {
    Command {
        argv: line.split('\t').map(ToOwned::to_owned).collect(),
        cwd: WsPath("/p".into()),
        env: BTreeMap::new(),
        stdin: None,
        network: false,
        background: false,
        limits: Limits::default(),
    }
}

/// The first word, of a shell's line that of the line, where `git""` is `git`. A sign before it, such as `&`,
/// is a mistake to every shell.
fn first(command: &Command) -> String {
    match command.argv.as_slice() {
        [shell, dash_c, line] if dash_c == "-c" && is_shell(shell) => {
            let line = line.trim_start_matches(|sign: char| sign.is_whitespace() || "&|;".contains(sign));
            let ends = |sign: char| sign.is_whitespace() || "&|;<>()".contains(sign);
            line.split(ends).next().unwrap_or_default().replace(['"', '\'', '\\'], "")
        }
        [program, ..] => program.clone(),
        [] => String::new(),
    }
}

fn is_shell(program: &str) -> bool {
    ["sh", "bash", "dash", "zsh", "ksh", "ash"].contains(&program.rsplit('/').next().unwrap_or(program))
}
