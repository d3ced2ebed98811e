//! The message that is being written: text, cursor, and the earlier messages behind the arrow keys. It knows
//! no terminal.

use super::{keys::Key, message::Message};
use unicode_segmentation::UnicodeSegmentation as _;

/// The longest message, in bytes.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// A message that is being written.
#[derive(Debug, Default)]
pub(super) struct Line {
    message: Message,
    /// In bytes, between grapheme clusters (UAX #29): the characters that a person sees.
    cursor: usize,
    earlier: Vec<Message>,
    /// Which earlier message is shown; `None` for the draft.
    at: Option<usize>,
    draft: Message,
}

/// The action that a key asks for beyond editing the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    Submit(Message),
    Complete,
    Redraw,
    Leave,
    Stop,
}

impl Line {
    /// An empty line, with messages of earlier conversations, of which nothing says what was pasted.
    pub(super) fn new(earlier: Vec<String>) -> Self {
        Self { earlier: earlier.into_iter().map(Message::pasted).collect(), ..Self::default() }
    }

    pub(super) fn text(&self) -> &str {
        self.message.text()
    }

    /// The text before the cursor.
    pub(super) fn before(&self) -> &str {
        self.text().get(..self.cursor).unwrap_or_default()
    }

    /// Replaces the whole message.
    fn set(&mut self, message: Message) {
        self.cursor = message.text().len();
        self.message = message;
    }

    /// Puts a message back, above the text that is being written.
    pub(super) fn give_back(&mut self, mut message: Message) {
        if !self.text().is_empty() {
            message.insert(message.text().len(), "\n", false);
            message.append(&self.message);
        }
        self.set(message);
    }

    /// Replaces the last `bytes` bytes before the cursor with a text.
    pub(super) fn replace_before(&mut self, bytes: usize, text: &str) {
        let from = self.cursor.saturating_sub(bytes);
        if self.text().is_char_boundary(from) {
            self.message.remove(from..self.cursor);
            // A file's name with blanks could name another file.
            self.message.insert(from, text, true);
            self.cursor = from + text.len();
        }
    }

    pub(super) fn clear(&mut self) {
        self.set(Message::default());
        self.at = None;
    }

    pub(super) fn remember(&mut self, message: &Message) {
        if self.earlier.last().is_none_or(|last| last.text() != message.text()) {
            self.earlier.push(message.clone());
        }
    }

    pub(super) fn key(&mut self, key: Key) -> Wish {
        match key {
            Key::Char(c) => self.insert(c.encode_utf8(&mut [0; 4]), false),
            Key::Paste(text) => self.insert(&text.replace("\r\n", "\n").replace('\r', "\n"), true),
            Key::NewLine => self.insert("\n", false),
            Key::Enter => return self.enter(),
            Key::Tab => return Wish::Complete,
            Key::Redraw => return Wish::Redraw,
            Key::Escape => return Wish::Stop,
            Key::Eof if self.text().is_empty() => return Wish::Leave,
            Key::Eof | Key::Delete => self.remove(self.cursor, self.right()),
            Key::Backspace => self.remove(self.left(), self.cursor),
            Key::KillBefore => self.remove(self.line_start(), self.cursor),
            Key::KillAfter => self.remove(self.cursor, self.line_end()),
            Key::KillWord => self.remove(self.word_left(), self.cursor),
            Key::Left => self.cursor = self.left(),
            Key::Right => self.cursor = self.right(),
            Key::WordLeft => self.cursor = self.word_left(),
            Key::WordRight => self.cursor = self.word_right(),
            Key::Home => self.cursor = self.line_start(),
            Key::End => self.cursor = self.line_end(),
            Key::Up => self.up(),
            Key::Down => self.down(),
        }
        Wish::Nothing
    }

    fn enter(&mut self) -> Wish {
        // A backslash at the end asks for one more line.
        if let Some(text) = self.text().strip_suffix('\\') {
            self.cursor = text.len();
            self.message.remove(self.cursor..self.cursor + 1);
            self.insert("\n", false);
            return Wish::Nothing;
        }
        let message = std::mem::take(&mut self.message);
        self.clear();
        Wish::Submit(message)
    }

    /// Inserts text at the cursor. It keeps line feeds and tabs and drops all other control characters.
    fn insert(&mut self, text: &str, is_pasted: bool) {
        let text: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
        if self.text().len() + text.len() <= MESSAGE_BYTES_MAX {
            self.message.insert(self.cursor, &text, is_pasted);
            self.cursor += text.len();
        }
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.message.remove(from..to);
        self.cursor = from;
    }

    fn left(&self) -> usize {
        self.before().grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        self.after().graphemes(true).next().map_or(self.cursor, |cluster| self.cursor + cluster.len())
    }

    fn after(&self) -> &str {
        self.text().get(self.cursor..).unwrap_or_default()
    }

    fn word_left(&self) -> usize {
        let before = self.before().trim_end();
        before.char_indices().rev().find(|(_, c)| c.is_whitespace()).map_or(0, |(at, c)| at + c.len_utf8())
    }

    fn word_right(&self) -> usize {
        let after = self.after();
        let blanks = after.len() - after.trim_start().len();
        let word = after.trim_start().find(char::is_whitespace).unwrap_or(after.len() - blanks);
        self.cursor + blanks + word
    }

    fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.after().find('\n').map_or(self.text().len(), |at| self.cursor + at)
    }

    /// Moves to the line above; from the first line, to the message before.
    fn up(&mut self) {
        let start = self.line_start();
        if start > 0 {
            let column = self.before().get(start..).unwrap_or_default().graphemes(true).count();
            self.cursor = start - 1;
            self.cursor = self.column(column);
            return;
        }
        let at = self.at.unwrap_or(self.earlier.len());
        let Some(message) = at.checked_sub(1).and_then(|at| self.earlier.get(at)).cloned() else { return };
        if self.at.is_none() {
            self.draft = std::mem::take(&mut self.message);
        }
        self.at = Some(at - 1);
        self.set(message);
    }

    /// Moves to the line below; from the last line, to the message after.
    fn down(&mut self) {
        let end = self.line_end();
        if end < self.text().len() {
            let column = self.before().get(self.line_start()..).unwrap_or_default().graphemes(true).count();
            self.cursor = end + 1;
            self.cursor = self.column(column);
            return;
        }
        let Some(at) = self.at else { return };
        match self.earlier.get(at + 1).cloned() {
            Some(message) => {
                self.at = Some(at + 1);
                self.set(message);
            }
            None => {
                self.at = None;
                let draft = std::mem::take(&mut self.draft);
                self.set(draft);
            }
        }
    }

    /// The place `column` characters into the cursor's line, or the line's end.
    fn column(&self, column: usize) -> usize {
        let start = self.line_start();
        let line = self.text().get(start..self.line_end()).unwrap_or_default();
        line.grapheme_indices(true).nth(column).map_or(start + line.len(), |(at, _)| start + at)
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Line, Wish};

    fn typed(line: &mut Line, text: &str) {
        text.chars().for_each(|c| assert_eq!(line.key(Key::Char(c)), Wish::Nothing));
    }

    #[test]
    fn words_and_lines_are_edited_in_the_middle() {
        let mut line = Line::default();
        typed(&mut line, "one tvo");
        line.key(Key::Left);
        line.key(Key::Backspace);
        typed(&mut line, "w");
        assert_eq!(line.text(), "one two");
        line.key(Key::Home);
        line.key(Key::WordRight);
        line.key(Key::KillAfter);
        line.key(Key::NewLine);
        typed(&mut line, "ünd");
        line.key(Key::KillWord);
        assert_eq!(line.text(), "one\n");
        line.key(Key::Up);
        assert_eq!(line.before(), "");
    }

    #[test]
    fn a_letter_of_several_characters_is_one_step() {
        let mut line = Line::default();
        typed(&mut line, "e\u{301}👨\u{200d}👩\u{200d}👧x\ney");
        line.key(Key::Left);
        line.key(Key::Up);
        assert_eq!(line.before(), "e\u{301}");
        line.key(Key::Delete);
        assert_eq!(line.text(), "e\u{301}x\ney");
        line.key(Key::Backspace);
        assert_eq!(line.text(), "x\ney");
    }

    #[test]
    fn a_backslash_at_the_end_asks_for_one_more_line() {
        let mut line = Line::default();
        typed(&mut line, "one\\");
        assert_eq!(line.key(Key::Enter), Wish::Nothing);
        typed(&mut line, "two");
        assert!(matches!(line.key(Key::Enter), Wish::Submit(message) if message.text() == "one\ntwo"));
        assert_eq!(line.text(), "");
    }

    #[test]
    fn the_draft_comes_back_after_the_earlier_messages() {
        let mut line = Line::new(vec!["first".into(), "second".into()]);
        typed(&mut line, "draft");
        line.key(Key::Up);
        assert_eq!(line.text(), "second");
        line.key(Key::Up);
        line.key(Key::Up);
        assert_eq!(line.text(), "first");
        line.key(Key::Down);
        line.key(Key::Down);
        assert_eq!(line.text(), "draft");
    }

    #[test]
    fn a_paste_brings_lines_and_no_controls() {
        let mut line = Line::default();
        line.key(Key::Paste("a\r\nb\u{1b}[2J\u{7}\tc".into()));
        assert_eq!(line.text(), "a\nb[2J\tc");
        assert_eq!(line.key(Key::Eof), Wish::Nothing);
        line.clear();
        assert_eq!(line.key(Key::Eof), Wish::Leave);
    }
}
