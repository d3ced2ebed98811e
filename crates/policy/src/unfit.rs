//! Why an allow for a command does not cover one that looks like it: for people who ask.

use crate::{
    Facts,
    command::{self, CommandPrefix, Invocation},
    fit::Fit,
    programs::Programs,
    rule::{Answer, Rule},
    subject::Resource,
};
use alloc::{format, string::String};
use bailey_protocol::{Action, Command};

/// Why none of an allow's command prefixes fits for certain, where one may: what binds in doubt hears such a
/// command, what frees does not. `None` where another condition, or another program, is the reason.
pub(crate) fn why(
    rule: &Rule,
    facts: &Facts<'_>,
    resources: &[Resource<'_>],
    known: Programs,
) -> Option<String> {
    let Action::Exec(command) = &facts.effect.effect().action else { return None };
    let prefixes = rule.matches.command.as_deref().filter(|_| rule.answer == Answer::Allow)?;
    let mut all = resources.iter().filter_map(|resource| resource.words.as_ref());
    let best = |words: &Invocation| prefixes.iter().map(|prefix| prefix.fit(words)).max();
    let doubtful = all.find(|words| best(words) == Some(Fit::Maybe))?;
    match doubtful {
        Invocation::Hidden => {
            let is_meant = |prefix: &CommandPrefix| match command::line(command) {
                Some(line) => line.contains(prefix.program()),
                None => command.argv.first().is_some_and(|named| names(prefix, named)),
            };
            prefixes.iter().any(is_meant).then(|| unknown(command, known))
        }
        Invocation::Known { words, hidden, .. } => {
            let named = words.first()?;
            let near = |prefix: &&CommandPrefix| names(prefix, named) && prefix.fit(doubtful) == Fit::Maybe;
            Some(of(prefixes.iter().find(near)?, words, hidden))
        }
    }
}

/// Whether a prefix speaks of this program, or of some file of its name.
fn names(prefix: &CommandPrefix, program: &str) -> bool {
    let rest = program.strip_suffix(prefix.program());
    rest.is_some_and(|directory| directory.is_empty() || directory.ends_with('/'))
}

/// Why one prefix only may fit a known command.
fn of(prefix: &CommandPrefix, words: &[String], hidden: &[usize]) -> String {
    let named = words.first().map_or("", String::as_str);
    if named != prefix.program() && named.contains('/') {
        return format!(
            "`{named}` is some file of that name, and maybe not `{}`: an allow has to name it by its path, `{named}`",
            prefix.program()
        );
    }
    let open = hidden.iter().find(|place| !prefix.reaches(**place)).or(hidden.first());
    let shown = |place: &usize| (words.get(*place), words.get(..=*hidden.last().unwrap_or(place)));
    match open.map(shown) {
        Some((Some(word), Some(to))) => format!(
            "`{word}` makes `{named}` run something else, which `{prefix}` does not cover: an allow has to name it, `{}`",
            to.join(" ")
        ),
        Some(_) => {
            format!("`{named}` reads from its standard input what it runs: no allow covers that by name")
        }
        None => format!(
            "an allow is for commands that begin with `{prefix}`, with no option before or between its words"
        ),
    }
}

/// Why nobody can tell what a command runs.
fn unknown(command: &Command, known: Programs) -> String {
    let tail = "no allow covers that by name";
    if let Some(variable) = command::steering(command, known) {
        return format!("its variable `{variable}` may make it run something else: {tail}");
    }
    let program = command.argv.first().map_or("", String::as_str);
    match command::line(command) {
        Some(line) => match command::plain_commands(line) {
            None => format!(
                "its shell line is more than plain words, whole quotes and `; & | && ||`, and what it runs is not known for \
                 certain: {tail}"
            ),
            Some(_) => format!("a part of its shell line runs what its arguments or the shell say: {tail}"),
        },
        None => format!("what `{program}` runs is among its arguments, and is not known for certain: {tail}"),
    }
}
