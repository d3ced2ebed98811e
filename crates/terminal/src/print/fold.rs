//! Text for a terminal, broken between words.

use unicode_width::UnicodeWidthStr as _;

/// The text in lines of at most `cells` cells. Lines after a break begin with `indent` blanks, which are not
/// counted. Text between backticks is never broken, so that the user can copy a command as it is. The text's
/// own line ends stay.
pub fn fold(text: &str, cells: usize, indent: usize) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| folded(line, cells, indent)).collect();
    lines.join("\n")
}

fn folded(line: &str, cells: usize, indent: usize) -> String {
    let mut is_quoted = false;
    let pieces = line.split(|c| {
        is_quoted ^= c == '`';
        c == ' ' && !is_quoted
    });
    let (mut folded, mut used) = (String::new(), 0);
    for (number, piece) in pieces.enumerate() {
        let width = piece.width();
        if number > 0 && used + 1 + width > cells {
            folded.push_str(&format!("\n{:indent$}", ""));
            used = 0;
        } else if number > 0 {
            folded.push(' ');
            used += 1;
        }
        folded.push_str(piece);
        used += width;
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn words_stay_whole_and_what_is_quoted_stays_together() {
        assert_eq!(fold("one two three", 80, 4), "one two three");
        assert_eq!(fold("one two three", 8, 4), "one two\n    three");
        assert_eq!(fold("say `cargo fetch` now", 8, 0), "say\n`cargo fetch`\nnow");
        assert_eq!(fold("a mistake\n  | [table]", 11, 0), "a mistake\n  | [table]");
        assert_eq!(fold("ein überlanges Wort", 7, 0), "ein\nüberlanges\nWort");
    }
}
