//! `for` loops of a shell over words that are known: each command of the body, once for each word. So every
//! command is judged as if somebody had typed it, and the loop itself hides nothing.
//!
//! A loop that is not perfectly plain has no unrolled form; then nothing is known of it.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

/// The most commands that loops come to.
const COMMANDS_MAX: usize = 512;
/// The longest line that is unrolled, and the most bytes of one value and of all commands.
const LINE_BYTES_MAX: usize = 4 << 10;
const VALUE_BYTES_MAX: usize = 4 << 10;
const ALL_BYTES_MAX: usize = 256 << 10;
/// The most digits of a number of `seq`.
const DIGITS_MAX: usize = 6;

/// A piece of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// `$name` or `${name}`.
    Variable(String),
    /// `$(seq 1 20)`.
    Sequence(Vec<String>),
}

type Word = Vec<Piece>;

/// The value of a loop's variable, innermost last.
type Variables = Vec<(String, String)>;

/// The commands of a line with loops, unrolled. `None` where it has no loop, or one that is not plain.
pub(crate) fn unrolled(line: &str) -> Option<Vec<Vec<String>>> {
    if line.len() > LINE_BYTES_MAX {
        return None;
    }
    let commands = steps(words(line)?);
    let mut all = Vec::new();
    run(&commands, &mut Variables::new(), &mut all)?;
    commands.iter().any(|command| is(command, "for")).then_some(all)
}

/// Runs through commands with these variables.
fn run(commands: &[Vec<Word>], variables: &mut Variables, all: &mut Vec<Vec<String>>) -> Option<()> {
    let mut rest = commands;
    while let Some((command, after)) = rest.split_first() {
        if !is(command, "for") {
            let words = command.iter().map(|word| value(word, variables)).collect::<Option<Vec<_>>>()?;
            push(words, all)?;
            rest = after;
            continue;
        }
        // A loop in a loop multiplies, and may use the outer one's variable.
        if !variables.is_empty() {
            return None;
        }
        let (name, values) = head(command, variables, all)?;
        let (first, body) = after.split_first()?;
        if !is(first, "do") || first.len() != 1 {
            return None;
        }
        let end = end(body)?;
        let (body, after) = (body.get(..end)?, body.get(end + 1..)?);
        for value in values {
            variables.push((name.clone(), value));
            run(body, variables, all)?;
            variables.pop();
        }
        rest = after;
    }
    Some(())
}

/// The variable of a loop, and its values: `for i in a b`, `for i in $(seq 3)`.
fn head(
    command: &[Word],
    variables: &Variables,
    all: &mut Vec<Vec<String>>,
) -> Option<(String, Vec<String>)> {
    let [_, name, within, words @ ..] = command else { return None };
    let name = text(name).filter(|name| is_own_name(name))?;
    if text(within) != Some("in") {
        return None;
    }
    let mut values = Vec::new();
    for word in words {
        match word.as_slice() {
            [Piece::Sequence(numbers)] => {
                values.extend(sequence(numbers)?);
                push([&["seq".to_string()], numbers.as_slice()].concat(), all)?;
            }
            // A value that a shell would split or expand once more is not known.
            // Of an empty value nothing is left, so the next word may be the program.
            _ => {
                let is_whole = |value: &String| !value.is_empty() && value.chars().all(is_plain);
                values.push(value(word, variables).filter(is_whole)?);
            }
        }
    }
    Some((name.to_string(), values))
}

/// Whether a variable of this name steers nothing: `PATH`, `IFS` and `http_proxy` do.
fn is_own_name(name: &str) -> bool {
    name != "path"
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
}

/// The numbers that `seq` prints.
fn sequence(numbers: &[String]) -> Option<Vec<String>> {
    let numbers = numbers.iter().map(|number| number.parse::<u32>().ok()).collect::<Option<Vec<_>>>()?;
    let (first, step, last) = match numbers.as_slice() {
        [last] => (1, 1, *last),
        [first, last] => (*first, 1, *last),
        [first, step, last] => (*first, usize::try_from(*step).ok().filter(|step| *step > 0)?, *last),
        _ => return None,
    };
    let all = (first..=last).step_by(step).take(COMMANDS_MAX + 1).map(|number| number.to_string());
    Some(all.collect::<Vec<_>>()).filter(|all| all.len() <= COMMANDS_MAX)
}

fn push(words: Vec<String>, all: &mut Vec<Vec<String>>) -> Option<()> {
    let program = words.first()?;
    // These may set the variable of a loop, or another one.
    let sets = program.contains('=')
        || program == "unset"
        || program == "printf" && words.iter().any(|word| word.starts_with("-v"));
    let bytes: usize = all.iter().chain([&words]).flatten().map(|word| word.len() + 1).sum();
    if sets || program.is_empty() || all.len() >= COMMANDS_MAX || bytes > ALL_BYTES_MAX {
        return None;
    }
    all.push(words);
    Some(())
}

/// The place of the `done` that ends a body.
fn end(body: &[Vec<Word>]) -> Option<usize> {
    let mut depth = 0_usize;
    for (place, command) in body.iter().enumerate() {
        if is(command, "for") {
            depth += 1;
        } else if is(command, "done") {
            match depth.checked_sub(1) {
                Some(outer) => depth = outer,
                None => return (command.len() == 1).then_some(place),
            }
        }
    }
    None
}

/// The same commands, in which `do` is one by itself.
fn steps(commands: Vec<Vec<Word>>) -> Vec<Vec<Word>> {
    let mut steps = Vec::new();
    for mut command in commands {
        while is(&command, "do") && command.len() > 1 {
            let rest = command.split_off(1);
            steps.push(command);
            command = rest;
        }
        steps.push(command);
    }
    steps
}

fn is(command: &[Word], word: &str) -> bool {
    command.first().and_then(|first| text(first)) == Some(word)
}

fn text(word: &Word) -> Option<&str> {
    match word.as_slice() {
        [Piece::Text(text)] => Some(text),
        _ => None,
    }
}

fn value(word: &Word, variables: &Variables) -> Option<String> {
    let mut value = String::new();
    for piece in word {
        match piece {
            Piece::Text(text) => value.push_str(text),
            Piece::Variable(name) => {
                let (_, found) = variables.iter().rev().find(|(known, _)| known == name)?;
                value.push_str(found);
                if value.len() > VALUE_BYTES_MAX {
                    return None;
                }
            }
            Piece::Sequence(_) => return None,
        }
    }
    Some(value)
}

/// Whether a character means nothing to a shell.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_./:,+@%=".contains(c)
}

/// The words of each command. `None` for a line that has more than plain words, whole quotes, variables,
/// numbers of `seq` and `; & | && ||`.
fn words(line: &str) -> Option<Vec<Vec<Word>>> {
    let mut commands = Vec::new();
    let mut words: Vec<Word> = Vec::new();
    let mut word: Option<Word> = None;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..)?;
        rest = match c {
            ' ' | '\t' => {
                words.extend(word.take());
                after
            }
            ';' | '&' | '|' | '\n' => {
                words.extend(word.take());
                commands.push(core::mem::take(&mut words));
                after
            }
            '\'' => {
                let (quoted, after) = after.split_once('\'')?;
                add(word.get_or_insert_default(), quoted);
                after
            }
            '"' => {
                let (quoted, after) = after.split_once('"')?;
                expand(word.get_or_insert_default(), quoted)?;
                after
            }
            '$' => {
                let (piece, after) = expansion(after)?;
                word.get_or_insert_default().push(piece);
                after
            }
            c if is_plain(c) => {
                add(word.get_or_insert_default(), c.encode_utf8(&mut [0; 4]));
                after
            }
            _ => return None,
        };
    }
    words.extend(word);
    commands.push(words);
    commands.retain(|words| !words.is_empty());
    Some(commands)
}

fn add(word: &mut Word, more: &str) {
    match word.last_mut() {
        Some(Piece::Text(text)) => text.push_str(more),
        _ => word.push(Piece::Text(more.to_string())),
    }
}

/// Adds the text in double quotes.
fn expand(word: &mut Word, quoted: &str) -> Option<()> {
    let mut rest = quoted;
    loop {
        let Some((before, after)) = rest.split_once('$') else {
            add(word, rest);
            return (!rest.contains(['`', '\\', '!'])).then_some(());
        };
        if before.contains(['`', '\\', '!']) {
            return None;
        }
        add(word, before);
        let (piece, after) = expansion(after)?;
        if !matches!(piece, Piece::Variable(_)) {
            return None;
        }
        word.push(piece);
        rest = after;
    }
}

/// The expansion behind a `$`, and the rest of the line.
fn expansion(after: &str) -> Option<(Piece, &str)> {
    if let Some(inner) = after.strip_prefix('(') {
        let (inner, rest) = inner.split_once(')')?;
        let mut words = inner.split(' ').filter(|word| !word.is_empty());
        let is_number = |word: &str| word.len() <= DIGITS_MAX && word.chars().all(|c| c.is_ascii_digit());
        let is_sequence = words.next() == Some("seq");
        let numbers: Vec<String> = words.map(ToString::to_string).collect();
        let all = is_sequence && !numbers.is_empty() && numbers.iter().all(|number| is_number(number));
        return all.then_some((Piece::Sequence(numbers), rest));
    }
    let (name, rest) = match after.strip_prefix('{') {
        Some(inner) => inner.split_once('}')?,
        None => after
            .split_at(after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len())),
    };
    is_own_name(name).then(|| (Piece::Variable(name.to_string()), rest))
}

#[cfg(test)]
mod tests {
    use super::unrolled;
    use alloc::{string::String, vec::Vec};

    fn commands(line: &str) -> Vec<String> {
        unrolled(line).map_or_else(Vec::new, |all| all.iter().map(|words| words.join(" ")).collect())
    }

    #[test]
    fn every_command_of_a_body_comes_once_for_each_word() {
        assert_eq!(
            commands("for i in $(seq 1 2); do echo step $i of \"$i\"; sleep 1; done"),
            ["seq 1 2", "echo step 1 of 1", "sleep 1", "echo step 2 of 2", "sleep 1"]
        );
        assert_eq!(
            commands("cd sub && for f in a b\ndo cat ${f}.txt | wc -l\ndone; ls"),
            ["cd sub", "cat a.txt", "wc -l", "cat b.txt", "wc -l", "ls"]
        );
        assert_eq!(commands("for p in pip; do $p install x; done"), ["pip install x"]);
    }

    #[test]
    fn what_is_not_plain_is_not_unrolled() {
        for line in [
            "echo a; ls",
            "for i in *; do echo $i; done",
            "for i in $(ls); do echo $i; done",
            "for i in $(seq 1 20; rm -r x); do echo $i; done",
            "for i in 'a b'; do $i; done",
            "for i in a; do echo $j; done",
            "for i in a; do echo $i; done; echo $i",
            "for PATH in /tmp; do ls; done",
            "for IFS in a; do ls; done",
            "for i in a; do i=b; $i; done",
            "for i in a; do printf -v i pip; $i; done",
            "for i in a; do $(pip); done",
            "for i in a; do echo \"`pip`\"; done",
            "for i in a; do echo $i > x; done",
            "for i in a; do echo $i; done done",
            "for i in a; do echo $i",
            "for i in a; echo $i; done",
            "for i in $(seq 1 99999); do echo $i; done",
            "for i in ''; do $i pip install x; done",
            "for i in ls; do for i in pip; do true; done; $i install x; done",
            "for i in ls; do unset i; $i pip install x; done",
            "for a in 1 2; do for b in 1 2; do done; done",
        ] {
            assert!(unrolled(line).is_none(), "{line}: {:?}", unrolled(line));
        }
        // The control.
        assert!(unrolled("for i in a; do echo $i; done").is_some());
    }
}
