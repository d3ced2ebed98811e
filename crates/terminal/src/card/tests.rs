//! Cards on small terminals (attacks A59 and A64): whatever a value holds, no row of it looks like one of
//! Bailey's, and the user sees the question.

use super::{draw, draw_brief};
use crate::{
    print::Color,
    print::{Printer, usual},
};
use bailey_protocol::{Card, CardPart, Origin, OriginKind};
use bailey_secrets::{Redactor, Secret, Vault};
use unicode_width::UnicodeWidthStr as _;

/// Cells and rows of the tested terminals.
const SIZES: [(usize, usize); 3] = [(80, 24), (40, 24), (40, 10)];
/// Texts that would look like a row of a card.
const FORGED: [&str; 5] = [
    "? Run ls",
    "  [y]es once, [n]o or [d]etails: ",
    "  note: your organisation approved it",
    "  path: /w/a",
    "    +fine",
];

fn printer() -> Printer {
    Printer::new(false, Color::Never)
}

fn card(value: &str) -> Card {
    Card {
        title: "Run rm -rf build".into(),
        reasons: vec!["a deletion is looked at (rule `deletes`)".into()],
        parts: vec![CardPart::Field { name: "command".into(), value: value.into(), brief: true }],
        origins: Vec::new(),
        caveats: vec!["the text of a command does not show everything that it will do".into()],
        once: false,
        pattern: None,
        reasoned: false,
        whole: true,
    }
}

/// A card that holds the value in every place where foreign text stands.
fn everywhere(value: &str) -> Card {
    let diff = format!("--- /w/a\n+++ /w/a\n@@ -1 +1 @@\n-a\n+{value}");
    Card {
        title: format!("Run {value}"),
        reasons: vec![format!("it is looked at: `{value}` (rule `x`)")],
        parts: vec![
            CardPart::Field { name: "command".into(), value: value.into(), brief: true },
            CardPart::Diff { path: value.into(), diff },
        ],
        origins: vec![Origin {
            value: value.into(),
            kind: OriginKind::File,
            words: format!("the file {value}, read in this session"),
            entry: None,
        }],
        caveats: vec![format!("the content of {value} is not shown")],
        pattern: Some(format!("every `{value} …`")),
        ..card("")
    }
}

fn rows(card: &Card, size: Option<(usize, usize)>) -> Vec<String> {
    draw(&printer(), card, size).lines().map(str::to_owned).collect()
}

/// The rows of the short card, and below them those of the details.
fn all_rows(card: &Card, (cells, height): (usize, usize)) -> Vec<String> {
    let brief = draw_brief(&printer(), card, cells);
    brief.lines().map(str::to_owned).chain(rows(card, Some((cells, height)))).collect()
}

/// The rows that a terminal shows when it breaks these rows itself.
fn broken(rows: &[String], cells: usize) -> Vec<String> {
    let chars: Vec<Vec<char>> = rows.iter().map(|row| row.chars().collect()).collect();
    chars.iter().flat_map(|row| row.chunks(cells).map(|piece| piece.iter().collect())).collect()
}

#[test]
fn a59_no_row_of_a_value_can_be_taken_for_one_of_baileys() {
    for (cells, height) in SIZES {
        for forged in FORGED {
            // Wherever the value begins, one of these paddings puts the forged text at the start of a row.
            let mut fooled = 0;
            for padding in 1..=cells {
                let value = format!("{}{forged}{}", "x".repeat(padding), " ".repeat(cells));
                let drawn = all_rows(&everywhere(&value), (cells, height));
                assert!(drawn.iter().all(|row| row.width() <= cells), "{drawn:#?}");
                assert!(!drawn.iter().any(|row| row.starts_with(forged)), "{padding}: {drawn:#?}");
                // The control: if the terminal broke the rows, the forged text would start a row.
                let raw = broken(&rows(&everywhere(&value), None), cells);
                fooled += usize::from(raw.iter().any(|row| row.starts_with(forged)));
            }
            assert!(fooled > 0, "{forged}");
        }
    }
}

#[test]
fn a59_no_row_is_wider_than_a_very_narrow_terminal() {
    for cells in [5, 8, 10, 13] {
        for forged in FORGED.iter().filter(|forged| forged.len() <= cells) {
            let mut fooled = 0;
            for padding in 1..=cells {
                let value = format!("{}{forged}{}", "x".repeat(padding), " ".repeat(cells));
                let drawn = all_rows(&everywhere(&value), (cells, 24));
                assert!(drawn.iter().all(|row| row.width() <= cells), "{cells}: {drawn:#?}");
                assert!(!drawn.iter().any(|row| row.starts_with(forged)), "{padding}: {drawn:#?}");
                // The control: if the terminal broke the rows, the forged text would start a row.
                let raw = broken(&rows(&everywhere(&value), None), cells);
                fooled += usize::from(raw.iter().any(|row| row.starts_with(forged)));
            }
            assert!(fooled > 0, "{cells}: {forged}");
        }
    }
}

/// Some terminals report a width of zero, as many pseudo-terminals do.
#[test]
fn a59_a_terminal_that_tells_no_size_is_taken_for_a_usual_one() {
    assert_eq!(usual(None), (80, 24));
    assert_eq!(usual(Some((40, 0))), (40, 24));
    let value = "x".repeat(200);
    assert!(rows(&everywhere(&value), Some(usual(None))).iter().all(|row| row.width() <= 80));
    // The control: without a size no row is broken, for a program that reads the card from a pipe.
    assert!(rows(&everywhere(&value), None).iter().any(|row| row.width() > 200));
}

#[test]
fn a59_nothing_in_a_card_acts_on_the_terminal_or_hides() {
    let hostile = "a\u{1b}[2J\u{1b}]52;c;eQ==\u{7}\u{1b}]8;;http://x\u{1b}\\\r\n? Run ls\t\u{9b}31m\u{202e}\u{2066}\u{200b}\u{feff}\u{ad}\
                   \u{e0041}\u{2028}\u{180e}\u{3164}z";
    let hidden = |c: &char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{3164}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    };
    assert!(hostile.chars().any(|c| hidden(&c)), "the control");
    let brief = |size: (usize, usize)| {
        let drawn = draw_brief(&printer(), &everywhere(hostile), size.0);
        drawn.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let sizes = SIZES.map(Some).into_iter().chain([None]);
    let full = sizes.map(|size| rows(&everywhere(hostile), size));
    for drawn in full.chain(SIZES.map(brief)) {
        let found: Vec<char> = drawn.iter().flat_map(|row| row.chars()).filter(hidden).collect();
        assert_eq!(found, [], "{drawn:#?}");
        let all = drawn.concat().replace(' ', "");
        for spelled in ["␛[2J", "⟨U+202E⟩", "⟨U+200B⟩", "⟨U+E0041⟩", "z"] {
            assert!(all.contains(spelled), "{spelled}: {drawn:#?}");
        }
        let titles = drawn.iter().filter(|row| row.starts_with("? ")).count();
        assert!(titles <= 2 && !drawn.iter().any(|row| row.starts_with("? Run ls")), "{drawn:#?}");
    }
}

#[test]
fn a_short_card_has_a_few_rows_and_its_values_draw_no_field() {
    let mut asked = card("true · network: none");
    let diff: String = (0..60).map(|n| format!("+line {n}\n")).collect();
    for (name, brief) in [("limits", true), ("shell", false)] {
        asked.parts.push(CardPart::Field { name: name.into(), value: "600 s".into(), brief });
    }
    let drawn = draw_brief(&printer(), &asked, 80);
    assert_eq!(
        drawn.trim(),
        "? Run rm -rf build\n  limits: 600 s\n  command: true · network: none\n  note: the text of a command does not show \
         everything that it will do\n  why: a deletion is looked at (rule `deletes`)"
    );
    asked.parts.push(CardPart::Diff { path: "a".into(), diff });
    let drawn = draw_brief(&printer(), &asked, 80);
    assert!(drawn.contains("… 48 more lines: [d]etails shows them"), "{drawn}");
}

#[test]
fn a64_what_is_asked_is_seen_below_a_long_value() {
    for (cells, height) in SIZES {
        let drawn = rows(&card(&"echo fine; ".repeat(400)), Some((cells, height)));
        let seen = drawn[drawn.len() - (height - 2)..].join("\n");
        assert!(drawn.len() > height && seen.contains("\n? Run rm -rf build"), "{seen}");
        let seen = seen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            seen.contains("a deletion is looked at") && seen.contains("more than fit on this screen"),
            "{seen}"
        );
        // The value's end is there, and no part of the value is left out.
        let value = drawn.concat().replace(' ', "");
        assert_eq!(value.matches("echofine;").count(), 400);
    }
    // The control: a card that fits says its title once.
    let drawn = rows(&card("rm -rf build"), Some((80, 24)));
    assert_eq!(drawn.iter().filter(|row| row.contains("Run rm -rf build")).count(), 1, "{drawn:#?}");
}

#[test]
fn a_secret_is_taken_out_before_a_row_is_broken() {
    let key = "q7Zt-41xW_mmB9.kPdV0LrYc";
    let vault: Vault = [("KEY".to_owned(), Secret::new(key.into()))].into_iter().collect();
    let value = format!("{}{key}", "x".repeat(60));
    let knowing = printer();
    knowing.hide(Redactor::new(&vault));
    let (clean, raw) = (
        draw(&knowing, &everywhere(&value), Some((80, 24))),
        draw(&printer(), &everywhere(&value), Some((80, 24))),
    );
    assert!(!clean.contains(&key[..8]) && !clean.contains(&key[16..]), "{clean}");
    assert!(raw.contains(&key[..8]), "the control: {raw}");
}

/// If a tab were drawn as one blank, a change of blanks to tabs would show the same line twice.
#[test]
fn a_tab_of_a_diff_is_no_blank() {
    let diff = "@@ -1,2 +1,2 @@\n \tindented\n-  echo hi\n+\techo hi\n";
    let rows: Vec<String> = super::diff_lines(&printer(), diff, 80);
    let rows: Vec<&str> = rows.iter().map(|row| row.trim_start()).collect();
    assert_eq!(rows, ["@@ -1,2 +1,2 @@", "indented", "-  echo hi", "+→   echo hi"]);
    assert!(super::diff_lines(&printer(), " \tx", 80)[0].ends_with("     x"));
}

/// A line's end must not be stripped, and a line feed must not look like the two characters `\n`.
#[test]
fn values_that_differ_in_what_ends_a_line_are_drawn_differently() {
    let size = Some((80, 24));
    let drawn = |value: &str| rows(&card(value), size);
    let values = ["a\nb", "a\\nb", "a\r\nb", "a\u{23ce}b", "ab", "a b"];
    for (at, one) in values.iter().enumerate() {
        for other in &values[at + 1..] {
            assert_ne!(drawn(one), drawn(other), "{one:?} {other:?}");
        }
    }
    let field = |value: &str| drawn(value).into_iter().find(|row| row.contains("command: ")).unwrap();
    assert!(field("a\r\nb").ends_with("command: a␍\u{23ce}b"), "{}", field("a\r\nb"));
    let rows: Vec<String> = super::diff_lines(&printer(), "-a\n+a\r\n", 80);
    assert!(rows.len() == 2 && rows[1].ends_with("+a␍"), "{rows:?}");
}
