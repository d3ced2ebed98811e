//! The words of a text that may be names of files: as a shell parts them, and in the other ways in which
//! programs read what they are given. One too many is a look at nothing; one that is missed is a file that
//! changes unseen.

/// What parts words of a shell, besides blanks.
const OPERATORS: &[char] = &[';', '|', '&', '<', '>', '(', ')', '`'];
/// What parts an option from its value, and values of a list from each other.
const WITHIN: &[char] = &['=', ',', ':', '@'];
/// What parts words besides, where a text is no shell's line.
const BESIDES: &[char] = &['{', '}', '\'', '"', '$'];
/// Letters of options that may stand before a value in one word: `-nfx.sed`.
const LETTERS_MAX: usize = 8;

/// The words of one text, itself among them.
pub(super) fn of(text: &str) -> Vec<String> {
    let is_blank = |c: char| c.is_whitespace();
    let loose = text.split(|c| is_blank(c) || OPERATORS.contains(&c) || BESIDES.contains(&c));
    // A name may have blanks in quotes, and what parts options without them.
    let quoted = text.split(['\'', '"']);
    let bare = text.split(|c| is_blank(c) || OPERATORS.contains(&c) || matches!(c, '\'' | '"'));
    let apart = std::iter::once(text).chain(loose).chain(quoted).chain(bare).map(str::to_owned);
    apart.chain(of_shell(text)).flat_map(with_values).filter(|word| !word.is_empty()).collect()
}

/// A word, what stands in it behind an option's name, and between the marks of a list.
fn with_values(word: String) -> Vec<String> {
    let mut all: Vec<String> =
        if word.contains(WITHIN) { word.split(WITHIN).map(str::to_owned).collect() } else { Vec::new() };
    if word.starts_with('-') && !word.starts_with("--") {
        let tails = word.char_indices().skip(2).take(LETTERS_MAX);
        all.extend(tails.filter_map(|(at, _)| word.get(at..)).map(str::to_owned));
    }
    all.push(word);
    all
}

/// The words of a shell's line, without their quotes (POSIX.1-2024, 2.2 and 2.3). What would be expanded
/// stays as it is.
fn of_shell(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut chars = line.chars();
    // The quote that is open, of a text that may end in it.
    let mut within = None;
    while let Some(c) = chars.next() {
        let word = words.last_mut();
        match (within, c) {
            (Some(quote), c) if c == quote => within = None,
            (None, '\'' | '"') => within = Some(c),
            (None, '\\') => word.into_iter().for_each(|word| word.extend(chars.next())),
            (Some('"'), '\\') => {
                let next = chars.next();
                let is_kept = next.is_none_or(|next| !matches!(next, '$' | '`' | '"' | '\\' | '\n'));
                word.into_iter()
                    .for_each(|word| word.extend(is_kept.then_some('\\').into_iter().chain(next)));
            }
            (None, ' ' | '\t' | '\n') => words.push(String::new()),
            (None, c) if OPERATORS.contains(&c) => words.push(String::new()),
            (_, c) => word.into_iter().for_each(|word| word.push(c)),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::of_shell;

    #[test]
    fn a_shells_words_are_those_that_it_gives() {
        for line in [
            r#"a 'b c' "d e" f\ g"#,
            r#"'it'\''s' "it's" 'a"b' "a\"b" "c\d" "\$e""#,
            "one\ttwo\nthree\u{a0}four\u{b}five",
            "x;y|z&w",
        ] {
            let words: Vec<String> = of_shell(line).into_iter().filter(|word| !word.is_empty()).collect();
            let spaced = line.replace([';', '|', '&'], " ");
            let told = std::process::Command::new("sh")
                .args(["-c", &format!("printf '%s\\0' {}", spaced.replace('\n', " "))])
                .output()
                .unwrap();
            let told = String::from_utf8(told.stdout).unwrap();
            let told: Vec<&str> = told.split_terminator('\0').collect();
            assert_eq!(words, told, "{line}");
        }
    }
}
