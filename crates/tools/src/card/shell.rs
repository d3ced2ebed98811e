//! Whether a shell makes other words of those that it is given: of what stands on the card a file's name
//! cannot be told then.

/// What is expanded within double quotes, too.
const EXPANDED: &[char] = &['$', '`', '\\'];
/// What ends a word.
const ENDS: &[char] = &[' ', '\t', '\n', ';', '|', '&', '<', '>', '(', ')'];
/// What takes a word for a shell's line once more, besides shells.
const EVAL: &str = "eval";

/// Programs that give a word to a shell, or make other words of it themselves, and options by which one that
/// looks for files does.
const HANDING_ON: &[&str] = &[
    "-exec", "-execdir", "-ok", "-okdir", "env", "flock", "parallel", "runuser", "script", "su", "watch",
    "xargs",
];

/// Whether a word of a shell's line among these arguments, or on the standard input, may name a file that is
/// not seen: it has a pattern, a variable, a backslash, or quotes that are not around the whole of it.
pub(super) fn is_expanded(argv: &[String], stdin: Option<&str>) -> bool {
    let shell = argv.iter().position(|word| is_shell(name(word)));
    let mut after = argv.iter().skip(shell.map_or(argv.len(), |shell| shell + 1));
    let is_option = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
    after.any(is_option) && after.any(|line| has_expansion(line))
        || hands_on(argv.iter().map(String::as_str)) && argv.iter().any(|word| has_expansion(word))
        || shell.is_some() && stdin.is_some_and(has_expansion)
}

fn hands_on<'a>(mut words: impl Iterator<Item = &'a str>) -> bool {
    words.any(|word| HANDING_ON.contains(&name(word)))
}

fn name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "dash" | "ash" | "zsh" | "ksh" | "mksh" | "busybox" | "fish")
}

fn has_expansion(line: &str) -> bool {
    // What is quoted for this shell is a line of another one.
    let mut words = line.split(|c: char| ENDS.contains(&c) || matches!(c, '\'' | '"'));
    let is_nested = words.clone().any(|word| word == EVAL || is_shell(name(word))) || hands_on(&mut words);
    let mut rest = line;
    let mut word = String::new();
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '\'' | '"' => {
                let Some((quoted, after)) = rest.split_once(c) else { return true };
                // `--glob='*.rs'` is an option, and no file's name.
                let begins = word.is_empty() || word.starts_with('-') && word.ends_with('=');
                let is_apart = begins && after.chars().next().is_none_or(|c| ENDS.contains(&c));
                let is_expanded = c == '"' && quoted.contains(EXPANDED);
                if !is_apart || is_expanded || is_nested && !is_plain(quoted) {
                    return true;
                }
                (rest, word) = (after, String::new());
            }
            c if ENDS.contains(&c) => word.clear(),
            '*' | '?' => return true,
            c if EXPANDED.contains(&c) => return true,
            '~' if word.is_empty() => return true,
            ']' if word.contains('[') => return true,
            '}' if word.contains('{') && word.contains([',', '.']) => return true,
            c => word.push(c),
        }
    }
    false
}

/// Whether a line within a line has nothing that is expanded.
fn is_plain(line: &str) -> bool {
    !line.contains(EXPANDED) && !line.contains(['\'', '"', '*', '?', '[', '{', '~'])
}
