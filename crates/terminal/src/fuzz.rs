//! Entry points for the fuzz targets: the input that a terminal sends and the text that it shows.

use super::{
    card::{draw, draw_brief},
    keys::{Key, Keys},
    markdown::Markdown,
    prompt::{Step, Typed},
    terminal::Read,
};
use crate::{print::Color, print::Printer};
use bailey_protocol::Card;

/// Bytes from a terminal, in two reads: no key is a control character, and a paste is bounded.
pub fn keys(bytes: &[u8]) {
    answers(bytes);
    let mut keys = Keys::default();
    let (first, second) = bytes.split_at(bytes.len() / 2);
    for key in keys.push(first).into_iter().chain(keys.push(second)) {
        match key {
            Key::Char(c) => assert!(!c.is_control(), "{c:?} is no character to type"),
            Key::Paste(text) => assert!(text.len() <= 3 * bytes.len(), "a paste of more than came"),
            _ => {}
        }
    }
}

/// A model's text, drawn while it comes, in a narrow window: nothing in a row acts on the terminal.
pub fn markdown(text: &str) {
    let printer = Printer::new(false, Color::Never);
    let mut markdown = Markdown::default();
    let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
    let mut rows = markdown.push(&printer, first, 20);
    rows.extend(markdown.open(&printer, 20));
    rows.extend(markdown.push(&printer, second, 20));
    rows.extend(markdown.end(&printer, 20));
    for (_, span) in rows.iter().flatten() {
        assert!(!span.chars().any(char::is_control), "a control character in {span:?}");
    }
}

/// A stored card: its drawing does not act on a terminal, and no text in it draws a line that looks like
/// another part.
pub fn card(text: &str) {
    let Ok(card) = serde_json::from_str::<Card>(text) else { return };
    let printer = Printer::new(false, Color::Never);
    let brief = draw_brief(&printer, &card, 40);
    assert!(!brief.chars().any(|c| c != '\n' && c.is_control()), "{brief:?}");
    for size in [None, Some((40, 10))] {
        let drawn = draw(&printer, &card, size);
        let acts = |c: char| c != '\n' && c.is_control();
        assert!(!drawn.chars().any(acts), "{drawn:?}");
        let rest = drawn.lines().skip(2).filter(|line| !line.is_empty() && !line.starts_with("  "));
        // A card that is higher than the terminal repeats its beginning at its end.
        assert!(rest.count() <= usize::from(size.is_some()), "{drawn:?}");
    }
}

/// Bytes from a terminal while a question is open, in two reads: an answer is bounded, does not act on a
/// terminal, and no part of it was pasted.
fn answers(bytes: &[u8]) {
    let (mut keys, mut typed) = (Keys::new(), Typed::default());
    let (first, second) = bytes.split_at(bytes.len() / 2);
    for piece in [first, second] {
        let read = Read::of(&mut keys, piece);
        let is_pasted = read.is_cut || read.keys.iter().any(|key| matches!(key, Key::Paste(_)));
        if let Step::Line(line) = typed.take(read) {
            assert!(!is_pasted, "{line:?} came with a paste");
            assert!(line.len() <= bytes.len() && !line.contains(char::is_control), "{line:?}");
        }
    }
}
