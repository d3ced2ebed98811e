//! A scope in words, as a person writes it on a line: `read,list:src`, `exec:cargo test`, `http:example.com`.

use crate::{
    command::CommandPrefix,
    condition::Condition,
    glob::{Glob, GlobError},
    host::HostGlob,
};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use bailey_protocol::Kind;

/// Most lines of one, and most bytes of all of them: with what else it says, a token's caveat is no longer
/// than one may be.
const LINES_MAX: usize = 8;
const BYTES_MAX: usize = 480;

/// The kinds that such a line may name: files, commands, requests. A model is whoever acts by the scope
/// anyway, and the others are the owner's or a human's each time.
const FILES: [Kind; 6] = [Kind::Read, Kind::Stat, Kind::List, Kind::Search, Kind::Diff, Kind::Change];

/// Why words are no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// A kind that is none, or none of these.
    #[error(
        "`{0}` is nothing to allow: read, stat, list, search, diff, change (each maybe with a path: `read,list:src`), exec (maybe with a \
         command: `exec:cargo test`), http (with a host: `http:example.com`)"
    )]
    Kind(String),
    /// Kinds in one line that are about different things.
    #[error("`{0}`: files, commands and requests stand in lines of their own")]
    Mixed(String),
    /// What it is about cannot be read.
    #[error("`{line}`: {why}")]
    What {
        /// The line.
        line: String,
        /// Why.
        why: String,
    },
    /// There is too much of it.
    #[error("this says too much: {LINES_MAX} lines with {BYTES_MAX} bytes at most")]
    TooLong,
}

/// Reads a scope: what at least one of the lines covers is within it. Files and commands are those of the
/// workspace, and commands have no way to the network.
///
/// # Errors
/// When a line cannot be read, or there are too many.
pub fn scope(lines: &[String]) -> Result<Vec<Condition>, ScopeError> {
    if lines.len() > LINES_MAX || lines.iter().map(String::len).sum::<usize>() > BYTES_MAX {
        return Err(ScopeError::TooLong);
    }
    lines.iter().map(|line| condition(line)).collect()
}

/// A file or folder of the workspace, with all that lies in it.
///
/// # Errors
/// When it is a pattern: whoever acts by a token is given files and whole folders. And when it names nothing,
/// which must not mean everything.
pub fn beneath(path: &str) -> Result<Glob, GlobError> {
    tree(&whole(path)?)
}

/// The path of a file or folder as it was written, without what says nothing; an empty one is where relative
/// paths begin. Brackets are a part of its name, as some frameworks have them.
///
/// # Errors
/// As [`beneath`].
pub fn whole(path: &str) -> Result<String, GlobError> {
    let plain = path.trim_end_matches("/**");
    if path.is_empty() {
        return Err(GlobError::Nothing);
    }
    if plain.contains(['*', '?', '{', '}', '\\']) {
        return Err(GlobError::NotWhole);
    }
    let names: Vec<&str> = plain.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    let root = if path.starts_with('/') { "/" } else { "" };
    if root.is_empty() && names.first().is_some_and(|name| name.starts_with('~')) {
        return Err(GlobError::Home);
    }
    Ok(format!("{root}{}", names.join("/")))
}

/// All that lies at a path, absolute or of the workspace, and beneath it, whatever characters its names have.
///
/// # Errors
/// When it is too long for a glob, or has a segment `..`.
pub fn tree(path: &str) -> Result<Glob, GlobError> {
    let mut literal = String::new();
    for c in path.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            literal.push('\\');
        }
        literal.push(c);
    }
    Glob::new(&match literal.as_str() {
        "" => "{workspace}/**".to_string(),
        "/" => "/**".to_string(),
        absolute if absolute.starts_with('/') => format!("{absolute}/**"),
        below => format!("{{workspace}}/{below}/**"),
    })
}

fn condition(line: &str) -> Result<Condition, ScopeError> {
    let (kinds, what) = match line.split_once(':') {
        // A variable of a script that is not set, for one: it must not mean everything.
        Some((_, what)) if what.trim().is_empty() => {
            let why = "nothing stands behind the colon: without one it is all of the workspace".to_string();
            return Err(ScopeError::What { line: line.to_string(), why });
        }
        Some((kinds, what)) => (kinds, Some(what.trim())),
        None => (line, None),
    };
    let kinds = kinds.split(',').map(kind).collect::<Result<Vec<Kind>, _>>()?;
    let bad = |why: String| ScopeError::What { line: line.to_string(), why };
    let path =
        |path: &str| beneath(path).map(|glob| Some([glob].into())).map_err(|error| bad(error.to_string()));
    let condition = Condition { action: Some(kinds.clone()), ..Condition::default() };
    match kinds.as_slice() {
        [Kind::Exec] => {
            let command = what.map(CommandPrefix::new).transpose().map_err(|error| bad(error.to_string()))?;
            let command = command.map(|command| [command].into());
            Ok(Condition { command, path: path(".")?, network: Some(false), ..condition })
        }
        [Kind::Http] => {
            let what = what.ok_or_else(|| bad("a request is allowed to a host".to_string()))?;
            let host = HostGlob::new(what).map_err(|error| bad(error.to_string()))?;
            Ok(Condition { host: Some([host].into()), ..condition })
        }
        kinds if kinds.iter().all(|kind| FILES.contains(kind)) => {
            Ok(Condition { path: path(what.unwrap_or("."))?, ..condition })
        }
        _ => Err(ScopeError::Mixed(line.to_string())),
    }
}

fn kind(name: &str) -> Result<Kind, ScopeError> {
    let allowed = FILES.into_iter().chain([Kind::Exec, Kind::Http]);
    let mut named = allowed.filter(|kind| kind.name() == name.trim());
    named.next().ok_or_else(|| ScopeError::Kind(name.trim().to_string()))
}

#[cfg(test)]
mod tests {
    use super::{ScopeError, scope};
    use crate::{Caveat, DEFAULT_RULES, Places, Policy, built_in_rules, file};
    use alloc::{
        string::{String, ToString},
        vec::Vec,
    };
    use serde_json::Value;

    fn read(lines: &[&str]) -> Result<Value, ScopeError> {
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        scope(&lines).map(|scope| {
            let mut scope = serde_json::to_value(scope).unwrap();
            let conditions = scope.as_array_mut().unwrap().iter_mut();
            conditions.for_each(|it| it.as_object_mut().unwrap().retain(|_, value| !value.is_null()));
            scope
        })
    }

    #[test]
    fn words_are_conditions_of_rules() {
        for (line, condition) in [
            ("read", r#"[{"action":["read"],"path":["{workspace}/**"]}]"#),
            ("read, list:src/", r#"[{"action":["read","list"],"path":["{workspace}/src/**"]}]"#),
            ("read:.", r#"[{"action":["read"],"path":["{workspace}/**"]}]"#),
            ("read:/", r#"[{"action":["read"],"path":["/**"]}]"#),
            ("read:/usr/include", r#"[{"action":["read"],"path":["/usr/include/**"]}]"#),
            ("change:docs/a.md", r#"[{"action":["change"],"path":["{workspace}/docs/a.md/**"]}]"#),
            (
                "exec:cargo test",
                r#"[{"action":["exec"],"command":[["cargo","test"]],"network":false,"path":["{workspace}/**"]}]"#,
            ),
            ("http:example.com:8443", r#"[{"action":["http"],"host":["example.com:8443"]}]"#),
        ] {
            let condition: Value = serde_json::from_str(condition).unwrap();
            assert_eq!(read(&[line]).unwrap(), condition, "{line}");
        }
        for line in ["", "merge", "model", "amend", "adapt", "tool", "net:example.com", "read,", "Read"] {
            assert!(matches!(read(&[line]), Err(ScopeError::Kind(_))), "{line}");
        }
        assert!(matches!(read(&["read,exec"]), Err(ScopeError::Mixed(_))));
        let nothing = ["read:", "change: ", "exec:", "exec: ", "http:"];
        for line in [
            &["read:src/*.rs", "read:{bailey}", "read:~/.ssh", "http", "http:https://example.com/"][..],
            &nothing,
        ]
        .concat()
        {
            assert!(matches!(read(&[line]), Err(ScopeError::What { .. })), "{line}: {:?}", read(&[line]));
        }
        assert_eq!(read(&["read"; 9]), Err(ScopeError::TooLong));
        assert_eq!(read(&[&"x".repeat(481)]), Err(ScopeError::TooLong));
    }

    /// What a new home's rules allow without a question can be given on, and what they ask about or deny
    /// cannot.
    #[test]
    fn the_rules_decide_what_can_be_given() {
        let rules = file::parse("default.toml", DEFAULT_RULES, file::Format::Toml).unwrap().rules;
        let policy = Policy::new(built_in_rules(), rules);
        let places = Places {
            workspace: "/home/ann/project".into(),
            user_home: "/home/ann".into(),
            bailey_home: "/home/ann/.bailey".into(),
            programs: Vec::new(),
            project: None,
        };
        let is_given = |line: &str| {
            let scope = scope(&[line.to_string()]).unwrap().into_iter();
            let scope =
                scope.map(|it| crate::Condition { role: Some([bailey_protocol::Role::Agent].into()), ..it });
            policy.vouch(&Caveat { scope: Some(scope.collect()), ..Caveat::default() }, &places).is_ok()
        };
        for (line, given) in [
            ("read,stat,list,search,diff", true),
            ("change:docs", true),
            ("exec:cargo test", true),
            ("exec", true),
            ("http:example.com", false),
            ("read:/home/ann/.ssh", false),
            ("read:/etc", false),
            ("read:/", false),
            ("change:/home/ann", false),
        ] {
            assert_eq!(is_given(line), given, "{line}");
        }
    }
}
