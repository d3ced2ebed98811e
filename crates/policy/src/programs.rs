//! What a program's arguments can make it run: read off a table, to sort commands for people.
//!
//! An allow for a program does not cover the options by which that program runs another one, unless the rule names them;
//! and what a human grants for a whole pattern of commands never reaches through an interpreter, a launcher or such an
//! option. It is never the wall: with the table emptied, the same commands run inside the same walls.

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

    /// Whether a variable of this name can make programs run something else.
    pub(crate) fn is_steering(self, variable: &str) -> bool {
        variable == "PATH" || !self.0.is_empty() && table::STEERING.iter().any(|part| variable.contains(part))
    }

    /// What a program is for; `None` for one that is not in the table.
    pub(crate) fn nature(self, program: &str) -> Option<Nature> {
        self.find(program).map(|found| found.nature)
    }

    /// Whether a program's first operand says what it does.
    pub(crate) fn has_subcommands(self, program: &str) -> bool {
        self.find(program).is_some_and(|found| found.has_subcommands)
    }

    /// The place of the first word that tells the program to run something else, or of the end where that is read from
    /// standard input. The first word is the program.
    pub(crate) fn hidden_at(self, words: &[String]) -> Option<usize> {
        let (program, arguments) = words.split_first()?;
        let found = self.find(program)?;
        let mut operands = 0_usize;
        for (place, word) in arguments.iter().enumerate() {
            let is_option = word.len() > 1 && word.starts_with('-');
            if found.runs(word, is_option, operands) {
                return Some(place + 1);
            }
            operands += usize::from(!is_option);
        }
        let only_asks = ["--version", "-V", "--help", "-h"];
        let asks = matches!(arguments, [only] if only_asks.contains(&only.as_str()));
        let reads_code = found.nature == Nature::Interpreter && operands == 0 && !asks;
        reads_code.then_some(words.len())
    }

    fn find(self, program: &str) -> Option<&'static Program> {
        let name = program.rsplit('/').next().unwrap_or(program);
        let named = |name| self.0.iter().find(|found| found.names.contains(&name));
        // `python3.12`, `gcc-13`: a version behind a known name.
        let versioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        named(name).or_else(|| named(versioned).filter(|_| !versioned.is_empty()))
    }
}

impl Program {
    /// Whether a word tells it to run something else, after so many operands.
    fn runs(&self, word: &str, is_option: bool, operands: usize) -> bool {
        let is_first = !is_option && operands == 0;
        let is_stdin = self.nature == Nature::Interpreter && is_first && ["-", "/dev/stdin"].contains(&word);
        let has = |options: &[&str]| is_option && options.iter().any(|option| is(word, option));
        let by_option = has(self.options) || operands == 0 && has(self.globals);
        let by_operand = is_first && self.subcommands.contains(&word);
        // Options of `tar` need no dash in its first argument.
        let by_bundle = is_first && self.names.contains(&"tar") && word.contains(['I', 'F']);
        let by_script = is_first && self.nature == Nature::Sed && !is_plain_sed(word);
        let by_part = self.contains.iter().any(|part| word.contains(part));
        is_stdin || by_option || by_operand || by_bundle || by_script || by_part
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
