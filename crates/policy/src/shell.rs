//! Words of a shell's own, as lists: data to be reviewed as data. A name of theirs says nothing of what runs.

use alloc::string::String;

/// Words after which it runs what we would have to understand first.
#[rustfmt::skip]
pub(crate) const KEYWORDS: &[&str] = &[
    "!", "[[", "{", "}", "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case",
    "esac", "select", "function", "coproc", "alias", "trap", "export", "declare", "readonly", "enable",
];

/// Words that run what the others say, evaluate it, or change what those after them mean. `read` and `local`
/// have no form that is missed: a plain line expands nothing, so no other word of it can use what they set.
#[rustfmt::skip]
const OPAQUE: &[&str] = &[
    "-", "autoload", "bind", "bindkey", "compctl", "compgen", "complete", "compopt", "disable", "emulate", "fc",
    "float", "foreach", "functions", "getopts", "integer", "let", "local", "mapfile", "nameref", "nocorrect",
    "noglob", "print", "private", "r", "read", "readarray", "repeat", "sched", "setopt", "shopt", "typeset",
    "unfunction", "unhash", "unsetopt", "vared", "zargs", "zcompile", "zformat", "zle", "zmodload",
    "zparseopts", "zpty", "zregexparse", "zselect", "zsocket", "zstyle", "zsystem", "ztcp",
];

/// Words that take numbers, jobs or places, which shells evaluate as far as into the index of an array.
#[rustfmt::skip]
const EVALUATING: &[&str] = &[
    "bg", "break", "caller", "cd", "chdir", "continue", "dirs", "disown", "exit", "fg", "history", "kill",
    "limit", "logout", "popd", "pushd", "return", "shift", "suspend", "times", "type", "ulimit", "umask",
    "whence", "where", "which",
];

/// Whether the first word of a shell's plain command is the shell's own, and what it makes of the others is
/// not known.
pub(crate) fn hides(words: &[String]) -> bool {
    let Some((own, arguments)) = words.split_first() else { return false };
    let all = |is_known: fn(&str) -> bool| arguments.iter().all(|word| is_known(word));
    match own.as_str() {
        "hash" => !all(|word| word == "-r" || is_name(word)),
        "jobs" => !all(|word| is_number(word) || is_flags(word, "lnprs")),
        // With `-k` words become variables, with `-A` an array such as zsh's `path` is set.
        "set" => !all(|word| is_flags(word, "efouvx") || SETTINGS.contains(&word)),
        // Without a PATH, programs are looked for in the current directory.
        "unset" => !all(|word| is_flags(word, "fv") || is_name(word) && !word.eq_ignore_ascii_case("path")),
        "wait" => !all(|word| is_number(word) || is_flags(word, "fn")),
        own if OPAQUE.contains(&own) => true,
        own => EVALUATING.contains(&own) && arguments.iter().any(|word| word.contains(['$', '`'])),
    }
}

const SETTINGS: &[&str] = &["errexit", "noglob", "nounset", "pipefail", "verbose", "xtrace"];

fn is_name(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)) && !word.starts_with('-')
}

fn is_number(word: &str) -> bool {
    word.trim_start_matches('%').chars().all(|c| c.is_ascii_digit())
}

fn is_flags(word: &str, letters: &str) -> bool {
    let given = word.strip_prefix(['-', '+']);
    given.is_some_and(|given| !given.is_empty() && given.chars().all(|letter| letters.contains(letter)))
}
