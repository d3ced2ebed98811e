//! The colours of code: comments, strings, numbers and common keywords. It knows no grammar;
//! a reader finds their way without one.

use crate::{
    print::{Printer, Style},
    text::{Span, span},
};

/// Words that begin or steer something in the languages that models write most.
const KEYWORDS: &[&str] = &[
    "as",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "def",
    "do",
    "done",
    "elif",
    "else",
    "end",
    "enum",
    "esac",
    "except",
    "export",
    "extends",
    "false",
    "fi",
    "finally",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "if",
    "impl",
    "import",
    "in",
    "interface",
    "let",
    "loop",
    "match",
    "mod",
    "mut",
    "new",
    "nil",
    "None",
    "not",
    "null",
    "or",
    "and",
    "package",
    "pass",
    "pub",
    "raise",
    "return",
    "self",
    "static",
    "struct",
    "switch",
    "then",
    "this",
    "throw",
    "trait",
    "true",
    "True",
    "False",
    "try",
    "type",
    "use",
    "val",
    "var",
    "void",
    "where",
    "while",
    "with",
    "yield",
];

/// A line of code in its language's colours.
pub(super) fn spans(printer: &Printer, language: &str, line: &str) -> Vec<Span> {
    let name = language.split([' ', ',', '{']).next().unwrap_or_default().to_lowercase();
    match name.as_str() {
        "" | "text" | "txt" | "plain" | "console" | "output" => {
            return vec![span(printer, Style::Code, line)];
        }
        "diff" | "patch" => {
            let style = match line.as_bytes().first() {
                Some(b'+') => Style::Green,
                Some(b'-') => Style::Red,
                Some(b'@') => Style::Cyan,
                _ => Style::Code,
            };
            return vec![span(printer, style, line)];
        }
        _ => {}
    }
    let comment = match name.as_str() {
        "sql" | "lua" | "haskell" | "hs" => "--",
        "python" | "py" | "sh" | "bash" | "shell" | "zsh" | "toml" | "yaml" | "yml" | "ruby" | "rb"
        | "dockerfile" | "make" | "makefile" | "perl" | "r" | "ini" => "#",
        _ => "//",
    };
    let mut spans: Vec<Span> = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let (style, length) = token(rest, comment, line.len() == rest.len() || !ends_word(line, rest));
        let (piece, after) = rest.split_at(length);
        let (_, piece) = span(printer, style, piece);
        match spans.last_mut() {
            Some((last, text)) if *last == style => text.push_str(&piece),
            _ => spans.push((style, piece)),
        }
        rest = after;
    }
    if spans.is_empty() { vec![span(printer, Style::Code, "")] } else { spans }
}

/// Whether the text before `rest` ends within a word.
fn ends_word(line: &str, rest: &str) -> bool {
    let before = line.get(..line.len() - rest.len()).unwrap_or_default();
    before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// The style and the length in bytes of the first piece.
fn token(rest: &str, comment: &str, begins_word: bool) -> (Style, usize) {
    if rest.starts_with(comment) {
        return (Style::Dim, rest.len());
    }
    let Some(first) = rest.chars().next() else { return (Style::Code, 0) };
    if matches!(first, '"' | '\'' | '`') {
        let mut is_escaped = false;
        let end = rest.char_indices().skip(1).find(|(_, c)| {
            let is_end = *c == first && !is_escaped;
            is_escaped = *c == '\\' && !is_escaped;
            is_end
        });
        // An apostrophe alone is no string.
        if let Some((at, c)) = end {
            return (Style::Green, at + c.len_utf8());
        }
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    match rest.get(..length) {
        Some(word) if begins_word && !word.is_empty() => {
            let is_number = first.is_ascii_digit();
            let style = match (is_number, KEYWORDS.contains(&word)) {
                (true, _) => Style::Yellow,
                (false, true) => Style::Cyan,
                (false, false) => Style::Code,
            };
            (style, length)
        }
        _ => (Style::Code, first.len_utf8()),
    }
}

#[cfg(test)]
mod tests {
    use super::spans;
    use crate::print::{Color, Printer, Style};

    fn styles(language: &str, line: &str) -> Vec<(Style, String)> {
        spans(&Printer::new(false, Color::Never), language, line)
    }

    #[test]
    fn strings_comments_and_keywords_have_colours_and_nothing_is_lost() {
        let line = "let it = \"a \\\" b\"; // don't";
        let found = styles("rust", line);
        assert!(found.contains(&(Style::Cyan, "let".into())), "{found:?}");
        assert!(found.contains(&(Style::Green, "\"a \\\" b\"".into())), "{found:?}");
        assert!(found.contains(&(Style::Dim, "// don't".into())), "{found:?}");
        for (language, line) in [("py", "x = 'a' # b"), ("sh", "it's 12 \u{e9}"), ("", "if"), ("rs", "")] {
            let text: String = styles(language, line).into_iter().map(|(_, text)| text).collect();
            assert_eq!(text, line);
        }
        assert_eq!(styles("diff", "+new")[0].0, Style::Green);
    }
}
