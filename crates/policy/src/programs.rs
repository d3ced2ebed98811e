//! What a program's arguments can make it run: read off a table, to sort commands for people.
//!
//! An allow for a program does not cover the options by which that program runs another one, unless the rule
//! names them; and what a human grants for a whole pattern of commands never reaches through an interpreter,
//! a launcher or such an option. It is never the wall: with the table emptied, the same commands run inside
//! the same walls.

#[rustfmt::skip]
mod table;

use alloc::{string::String, vec::Vec};

/// What is known of programs.
#[derive(Debug, Clone, Copy)]
pub struct Programs(&'static [Program]);

/// One line of the table.
#[derive(Debug)]
struct Program {
    names: &'static [&'static str],
    nature: Nature,
    /// Options by which something else runs, or is loaded, or by which it writes where nobody looks.
    options: &'static [&'static str],
    /// The same, of those that stand before the first operand.
    globals: &'static [&'static str],
    /// First operands by which something else runs.
    subcommands: &'static [&'static str],
    /// Parts of any argument by which something else runs.
    contains: &'static [&'static str],
    /// Whether its first operand says what it does.
    has_subcommands: bool,
    /// Options that take a value, which may be the next word. Of a program with subcommands: those before the
    /// first operand.
    values: &'static [&'static str],
    /// Options of the same places that never take the next word. Of one that is in neither list, both is
    /// thought possible.
    flags: &'static [&'static str],
    /// Options by which one that only looks writes files.
    writes: &'static [&'static str],
    /// How many operands it only reads; a further one is written.
    operands_max: usize,
    /// Whether files of the project or of the user's home can tell it what to run: hooks, filters, pagers,
    /// proxy commands.
    obeys: bool,
}

/// What a word of a command has to do with the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// It is an operand, or the value of the option before it.
    Word,
    /// It is an option, and its value, if it has one, is part of it.
    Nothing,
    /// It is an option, and the next word is its value.
    Next,
    /// It is an option, and the next word may be its value.
    Maybe,
}

/// What a program is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nature {
    /// One purpose of its own.
    Plain,
    /// `sed`: one purpose, but for some commands of its scripts.
    Sed,
    /// To run what files of the project say.
    Builder,
    /// To run code.
    Interpreter,
    /// To run the program that its arguments name.
    Launcher,
}

impl Programs {
    /// The table.
    pub const KNOWN: Self = Self(table::KNOWN);
    /// A table without a line, to show that no wall depends on it.
    pub const NONE: Self = Self(&[]);

    /// Whether a variable may make programs run something else: any may that is not known to be harmless.
    pub(crate) fn is_steering(self, variable: &str, value: &str) -> bool {
        // Shells evaluate what some of them hold, and `..` leads out of where translations lie.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:=+/@ ".contains(c);
        let is_harmless =
            || table::HARMLESS.contains(&variable) && value.chars().all(is_plain) && !value.contains("..");
        variable == "PATH" || !self.0.is_empty() && !is_harmless()
    }

    /// What a program is for; `None` for one that is not in the table.
    pub(crate) fn nature(self, program: &str) -> Option<Nature> {
        self.find(program).map(|found| found.nature)
    }

    /// Options of an interpreter by which it runs something other than the file that it is given; none of
    /// other programs.
    #[cfg(feature = "std")]
    pub(crate) fn code_options(self, program: &str) -> &'static [&'static str] {
        let interpreter = self.find(program).filter(|found| found.nature == Nature::Interpreter);
        interpreter.map_or(&[], |found| found.options)
    }

    /// Whether a program's first operand says what it does.
    pub(crate) fn has_subcommands(self, program: &str) -> bool {
        self.find(program).is_some_and(|found| found.has_subcommands)
    }

    /// What each argument has to do with the next one. The first word is the program.
    pub(crate) fn takes(self, words: &[String]) -> Vec<Takes> {
        let (Some(program), arguments) = (words.first(), words.get(1..).unwrap_or_default()) else {
            return Vec::new();
        };
        let found = self.find(program);
        let has_subcommands = found.is_some_and(|found| found.has_subcommands);
        let (mut all, mut before, mut is_begun) = (Vec::with_capacity(arguments.len()), Takes::Nothing, true);
        for word in arguments {
            let known = found.filter(|_| is_begun || !has_subcommands);
            let own = match before {
                Takes::Next => Takes::Word,
                // Where this is a value, it takes nothing.
                Takes::Maybe if takes(word, known) == Takes::Next => Takes::Maybe,
                _ => takes(word, known),
            };
            is_begun &= own != Takes::Word || matches!(before, Takes::Next | Takes::Maybe);
            all.push(own);
            before = own;
        }
        all
    }

    /// The places of the words that tell the program to run something else, or that of the end where it is
    /// read from standard input. The first word is the program; `takes` is what each of the others takes.
    pub(crate) fn hidden(self, words: &[String], takes: &[Takes]) -> Vec<usize> {
        let mut hidden = Vec::new();
        let Some((program, arguments)) = words.split_first() else { return hidden };
        let Some(found) = self.find(program) else { return hidden };
        // What may run any code runs no more by further words, and most of them are that code's.
        let is_any_code = found.nature == Nature::Interpreter && found.contains.is_empty();
        // Whether no operand came yet; what may be an option's value may be no operand.
        let (mut is_begun, mut before) = (true, Takes::Nothing);
        for (place, (word, own)) in arguments.iter().zip(takes).enumerate() {
            let is_operand = *own == Takes::Word && before != Takes::Next;
            let at = At { is_begun, is_operand, is_argument_one: place == 0 };
            if found.runs(word, at) {
                hidden.push(place + 1);
                if is_any_code {
                    return hidden;
                }
            }
            is_begun &= !is_operand || before == Takes::Maybe;
            before = *own;
        }
        let only_asks = ["--version", "-V", "--help", "-h"];
        let asks = matches!(arguments, [only] if only_asks.contains(&only.as_str()));
        let reads_code = found.nature == Nature::Interpreter && is_begun && !asks;
        if reads_code && hidden.is_empty() {
            hidden.push(words.len());
        }
        hidden
    }

    /// Whether files that whoever gave the command may have written can tell the program what to run.
    pub(crate) fn obeys(self, program: &str) -> bool {
        self.find(program).is_some_and(|found| found.obeys)
    }

    /// The place of the first word by which a program that only looks writes a file. The first word is the
    /// program; `takes` is what each of the others takes.
    pub(crate) fn writes_at(self, words: &[String], takes: &[Takes]) -> Option<usize> {
        let (program, arguments) = words.split_first()?;
        let found = self.find(program)?;
        let (mut operands, mut is_ended) = (0, false);
        for (place, (word, own)) in arguments.iter().zip(takes).enumerate() {
            // `uniq +1` skips characters, and `+out` is a file; behind `--` everything is one.
            let is_file =
                word.strip_prefix('+').is_some_and(|rest| !rest.bytes().all(|b| b.is_ascii_digit()));
            operands += usize::from(is_ended || is_file || *own == Takes::Word);
            let is_option = !is_ended && word.len() > 1 && word.starts_with('-');
            is_ended |= word == "--";
            if operands > found.operands_max
                || is_option && found.writes.iter().any(|option| is(word, option))
            {
                return Some(place + 1);
            }
        }
        None
    }

    fn find(self, program: &str) -> Option<&'static Program> {
        let name = program.rsplit('/').next().unwrap_or(program);
        let named = |name| self.0.iter().find(|found| found.names.contains(&name));
        // `python3.12`, `gcc-13`: a version behind a known name.
        let versioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        named(name).or_else(|| named(versioned).filter(|_| !versioned.is_empty()))
    }
}

/// Modules of Python that run a project's own tests.
const TEST_RUNNERS: [&str; 2] = ["unittest", "pytest"];

/// Options of `git config` that only look.
const LOOKS: [&str; 14] = [
    "--global",
    "--local",
    "--system",
    "--worktree",
    "--get",
    "--get-all",
    "--get-regexp",
    "--list",
    "-l",
    "--show-origin",
    "--show-scope",
    "--name-only",
    "--null",
    "-z",
];

/// What a command runs whose hidden words are known to run no other program by themselves: a runner of the
/// project's own tests (`python3 -m unittest`), which may do what any program of the project may; or git's
/// settings, looked at or set for a name that no program obeys (`git config user.name`). `None` for all else.
pub(crate) fn wraps<'a>(words: &'a [String], hidden: &[usize]) -> Option<&'a str> {
    let ([place], program) = (hidden, words.first()?) else { return None };
    let (word, rest) = (words.get(*place)?.as_str(), words.get(place + 1..)?);
    let version = |c: char| c.is_ascii_digit() || c == '.';
    match (program.trim_end_matches(version), word) {
        ("python", "-m") => rest.first().map(String::as_str).filter(|module| TEST_RUNNERS.contains(module)),
        ("git", "config") if is_look(rest) => Some("git"),
        _ => None,
    }
}

/// Whether these arguments of `git config` look at settings, or set who a person is.
fn is_look(arguments: &[String]) -> bool {
    let (options, operands): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(String::as_str).partition(|word| word.starts_with('-'));
    let is_name = |key: &str| matches!(key, "user.name" | "user.email");
    let only_looks = match operands.as_slice() {
        [] | [_] | ["get", _] => operands != ["edit"],
        ["set", key, _] | [key, _] => is_name(key),
        _ => false,
    };
    only_looks && options.iter().all(|option| LOOKS.contains(option))
}

/// Where a word stands.
#[derive(Debug, Clone, Copy)]
struct At {
    /// There may be no operand before it.
    is_begun: bool,
    /// It is no option, and for all that is known no option's value.
    is_operand: bool,
    /// It is the first argument.
    is_argument_one: bool,
}

impl Program {
    /// Whether a word tells it to run something else.
    fn runs(&self, word: &str, at: At) -> bool {
        let is_first = at.is_operand && at.is_begun;
        // What is said after a subcommand is said of a file, too.
        let is_file = is_first || at.is_operand && self.has_subcommands;
        let is_stdin = self.nature == Nature::Interpreter && is_file && ["-", "/dev/stdin"].contains(&word);
        let is_option = word.len() > 1 && word.starts_with('-');
        let has = |options: &[&str]| is_option && options.iter().any(|option| is(word, option));
        let by_option = has(self.options) || at.is_begun && has(self.globals);
        let by_operand = is_first && self.subcommands.contains(&word);
        // Options of `tar` need no dash in its first argument.
        let is_bundle = at.is_argument_one && at.is_operand && self.names.contains(&"tar");
        let by_bundle = is_bundle && word.contains(['I', 'F']);
        let by_script = is_first && self.nature == Nature::Sed && !is_plain_sed(word);
        let by_part = self.contains.iter().any(|part| word.contains(part));
        is_stdin || by_option || by_operand || by_bundle || by_script || by_part
    }

    /// What several letters after one dash take: `-xvC DIR`, `-xCDIR`.
    fn bundle(&self, letters: &str) -> Takes {
        let has = |options: &[&str], letter: char| {
            options.iter().any(|option| option.strip_prefix('-').is_some_and(|own| own.chars().eq([letter])))
        };
        for (place, letter) in letters.char_indices() {
            match (has(self.values, letter), has(self.flags, letter)) {
                (true, _) if place + letter.len_utf8() == letters.len() => return Takes::Next,
                (true, _) => return Takes::Nothing,
                (_, true) => {}
                _ if place > 0 && letter.is_ascii_digit() => {}
                _ => return Takes::Maybe,
            }
        }
        Takes::Nothing
    }
}

/// What a word takes, by what is known of its program.
fn takes(word: &str, program: Option<&Program>) -> Takes {
    // `+nightly` of `cargo`, `+x` of shells: never with a value.
    if word.starts_with('+') && word.len() > 1 || word == "--" {
        return Takes::Nothing;
    }
    let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else { return Takes::Word };
    if word.contains('=') {
        return Takes::Nothing;
    }
    let Some(program) = program else { return Takes::Maybe };
    match (program.values.contains(&word), program.flags.contains(&word)) {
        (true, _) => Takes::Next,
        (_, true) => Takes::Nothing,
        // An abbreviation may be one of an option that the lists do not have.
        _ if word.starts_with("--") => Takes::Maybe,
        _ => program.bundle(letters),
    }
}

/// Whether a word is an option, in any of the ways in which programs read it.
fn is(word: &str, option: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    if let Some(long) = option.strip_prefix("--") {
        let given = name.strip_prefix("--").unwrap_or_default();
        return !given.is_empty() && long.starts_with(given);
    }
    match option.strip_prefix('-') {
        Some(letter) if letter.len() == 1 => !word.starts_with("--") && word.contains(letter),
        // Some programs take their long names with two dashes as well as with one.
        _ => name == option || name.strip_prefix('-') == Some(option),
    }
}

/// Whether a script of `sed` only prints, deletes or substitutes: `s/a/b/g`, `1,5p`, `$d`.
fn is_plain_sed(script: &str) -> bool {
    if script.chars().all(|c| c.is_ascii_digit() || ",$;pdq= ".contains(c)) {
        return true;
    }
    let mut chars = script.chars();
    let (Some('s'), Some(delimiter)) = (chars.next(), chars.next()) else { return false };
    let parts: Vec<&str> = chars.as_str().split(delimiter).collect();
    let is_flag = |c: char| c.is_ascii_digit() || "gpiI".contains(c);
    matches!(parts.as_slice(), [_, _, flags] if flags.chars().all(is_flag))
        && !delimiter.is_alphanumeric()
        && !script.contains(['\\', '\n', ';'])
}
