use super::Markdown;
use crate::{
    print::Color,
    print::{Printer, Style},
};

/// Rows with marks for styles: `*bold*`, `{code}`, `~dim~`.
fn check(text: &str, cells: usize, expected: &[&str]) {
    let printer = Printer::new(false, Color::Never);
    // The text is drawn the same, however it is cut.
    for size in [1, 3, text.len().max(1)] {
        let mut markdown = Markdown::default();
        let mut rows = Vec::new();
        let chars: Vec<char> = text.chars().collect();
        for piece in chars.chunks(size) {
            rows.extend(markdown.push(&printer, &piece.iter().collect::<String>(), cells));
        }
        if markdown.is_open() {
            rows.extend(markdown.end(&printer, cells));
        }
        let marked = |(style, text): &(Style, String)| match style {
            Style::Bold => format!("*{text}*"),
            Style::Code => format!("{{{text}}}"),
            Style::Dim => format!("~{text}~"),
            Style::Italic => format!("/{text}/"),
            _ => text.clone(),
        };
        let drawn: Vec<String> = rows.iter().map(|row| row.iter().map(marked).collect()).collect();
        assert_eq!(drawn, expected, "in pieces of {size}");
    }
}

#[test]
fn headings_lists_quotes_and_rules() {
    check("# Title\n\ntext\n", 40, &["*Title*", "", "text"]);
    check("- one\n  * two\n10. ten\n", 40, &["• one", "  • two", "10. ten"]);
    check("> said\n---\n", 40, &["~▏ said~", &format!("~{}~", "─".repeat(40))]);
    check("#hashtag and 3.5 and -x\n", 40, &["#hashtag and 3.5 and -x"]);
}

#[test]
fn bold_and_code_within_a_line() {
    check("a **b c** `d*` __e__ x_y_z 2 * 3 * 4\n", 60, &["a *b c* {d*} *e* x_y_z 2 * 3 * 4"]);
    check("open **bold and `code\n", 60, &["open **bold and `code"]);
    check("\\*kept\\* \\n\n", 60, &["*kept* \\n"]);
    check("an *it is* _so_ 2*3 x*y\n", 60, &["an /it is/ /so/ 2*3 x*y"]);
}

#[test]
fn a_links_address_stays_visible() {
    check("a [text](https://x.invalid/a) b\n", 60, &["a text~ (https://x.invalid/a)~ b"]);
    check("[https://x.invalid](https://x.invalid)\n", 60, &["https://x.invalid"]);
    check("[text] (no) [a](b c) [](x)\n", 60, &["[text] (no) [a](b c) [](x)"]);
}

#[test]
fn a_table_is_drawn_in_columns_when_it_has_ended() {
    let text = "| Name | Price |\n|:-----|------:|\n| **pen** | 1.5 |\n| desk | 120 |\nafter\n";
    let rows = ["*Name*  *Price*", "~────  ─────~", "*pen*     1.5", "desk    120", "after"];
    check(text, 40, &rows);
    // Without room, the cells are wrapped and none is cut.
    let text = "| a | b |\n|---|---|\n| one two three four | five six seven |\n";
    check(
        text,
        20,
        &["*a*          *b*", "~─────────  ─────────~", "one two    five six", "three      seven", "four"],
    );
    check("|no table\n", 40, &["|no table"]);
}

#[test]
fn a_fence_keeps_what_is_in_it() {
    check(
        "```rust\nlet **a** = 1;\n# no heading\n```\nafter\n",
        40,
        &["  ~rust~", "  let{ **a** = }1{;}", "  {# no heading}", "after"],
    );
    check("~~~~\n```\n~~~~\nx\n", 40, &["  {```}", "x"]);
}

#[test]
fn lists_wrap_below_their_text() {
    check("- one two three four\n", 12, &["• one two ", "  three four"]);
}

#[test]
fn control_characters_are_shown_and_a_line_without_end_is_not_held() {
    check("a\u{1b}[2Jb\u{202e}\n", 40, &["a␛[2Jb⟨U+202E⟩"]);
    let printer = Printer::new(false, Color::Never);
    let mut markdown = Markdown::default();
    let rows = markdown.push(&printer, &"x".repeat(100_000), 80);
    assert!(rows.len() > 50, "{}", rows.len());
}
