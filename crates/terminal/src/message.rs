//! The text of a message, with the parts of it that were pasted.
//!
//! Only words of the user name pictures: words that were typed or completed, and a paste that is one word as
//! a whole. Words of a longer paste may be somebody else's, so they name nothing.

use super::keys::Key;
use bailey_protocol::ImageKind;
use std::ops::Range;

/// More characters than this at once were not typed, where a terminal does not mark pastes.
const TYPED_AT_ONCE_MAX: usize = 8;

/// A message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Message {
    text: String,
    /// The pasted parts in bytes, in order, without overlap.
    pasted: Vec<Range<usize>>,
}

impl Message {
    /// A text of which it is not known who wrote it.
    pub(super) fn pasted(text: String) -> Self {
        let mut message = Self::default();
        message.insert(0, &text, true);
        message
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Inserts text. Text that is typed within a paste belongs to the paste. One word is never a paste.
    pub(super) fn insert(&mut self, at: usize, text: &str, is_pasted: bool) {
        self.text.insert_str(at, text);
        let length = text.len();
        for part in &mut self.pasted {
            if part.start >= at {
                *part = part.start + length..part.end + length;
            } else if part.end > at {
                part.end += length;
            }
        }
        if is_pasted && text.split_whitespace().nth(1).is_some() {
            let is_within = |part: &Range<usize>| part.start <= at && at + length <= part.end;
            if !self.pasted.iter().any(is_within) {
                let place = self.pasted.partition_point(|part| part.start < at);
                self.pasted.insert(place, at..at + length);
            }
        }
    }

    pub(super) fn remove(&mut self, removed: Range<usize>) {
        let length = removed.len();
        let moved =
            |at: usize| if at <= removed.start { at } else { at.saturating_sub(length).max(removed.start) };
        self.pasted.iter_mut().for_each(|part| *part = moved(part.start)..moved(part.end));
        self.pasted.retain(|part| !part.is_empty());
        self.text.replace_range(removed, "");
    }

    /// Puts another message behind this one.
    pub(super) fn append(&mut self, message: &Self) {
        let end = self.text.len();
        self.text.push_str(&message.text);
        self.pasted.extend(message.pasted.iter().map(|part| part.start + end..part.end + end));
    }

    /// The pictures that the user names: words that begin with `@`, and absolute paths.
    pub(super) fn pictures(&self) -> Vec<String> {
        self.paths(false)
    }

    /// The paths of pictures that stand in a longer paste, or touch it.
    pub(super) fn pasted_pictures(&self) -> Vec<String> {
        self.paths(true)
    }

    fn paths(&self, is_pasted: bool) -> Vec<String> {
        let quotes = |c: char| matches!(c, '"' | '\'' | '`' | '(' | ')' | ',' | ';' | ':' | '!' | '?');
        let mut paths = Vec::new();
        let mut at = 0;
        for piece in self.text.split_inclusive(char::is_whitespace) {
            let whole = at..at + piece.trim_end().len();
            at += piece.len();
            let word =
                piece.trim_end().trim_start_matches(quotes).trim_end_matches(|c| quotes(c) || c == '.');
            let path = word.strip_prefix('@').or(word.starts_with('/').then_some(word));
            let touches = self.pasted.iter().any(|part| part.start < whole.end && whole.start < part.end);
            let path = path.filter(|path| touches == is_pasted && ImageKind::is_named(path));
            paths.extend(path.filter(|path| !path.contains("://")).map(str::to_owned));
        }
        paths.dedup();
        paths
    }
}

/// Makes pastes of many characters that came at once: a terminal that marks no pastes sends them like this.
pub(super) fn unmarked(keys: Vec<Key>) -> Vec<Key> {
    let is_letter = |key: &Key| matches!(key, Key::Char(_));
    let runs = keys.chunk_by(|one, next| is_letter(one) && is_letter(next));
    let run = |keys: &[Key]| match keys {
        [Key::Char(_), ..] if keys.len() > TYPED_AT_ONCE_MAX => {
            let letters = keys.iter().filter_map(|key| if let Key::Char(c) = key { Some(*c) } else { None });
            vec![Key::Paste(letters.collect())]
        }
        keys => keys.to_vec(),
    };
    runs.flat_map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::{Message, unmarked};
    use crate::keys::Key;

    /// A message of parts, each with the way in which it came.
    fn message(parts: &[(&str, bool)]) -> Message {
        let mut message = Message::default();
        for (text, is_pasted) in parts {
            message.insert(message.text().len(), text, *is_pasted);
        }
        message
    }

    #[test]
    fn a_message_names_its_pictures() {
        let text =
            "see @docs/shot.png and '/tmp/x.JPG', not https://x.example/a.png, logo.png or @photo.txt.";
        assert_eq!(message(&[(text, false)]).pictures(), ["docs/shot.png", "/tmp/x.JPG"]);
        assert_eq!(message(&[("look at (@one.webp).", false)]).pictures(), ["one.webp"]);
    }

    /// Control: the same words, typed.
    #[test]
    fn a61_a_longer_paste_names_no_picture_however_it_is_joined_and_changed() {
        let paste = "please look\nat @x.png and /home/me/y.png";
        assert_eq!(message(&[(paste, false)]).pictures(), ["x.png", "/home/me/y.png"]);
        for parts in [
            &[(paste, true)][..],
            &[("explain: ", false), (paste, true), (" thanks", false)],
            &[("explain @", false), ("x.png a", true)],
            &[("a @x", true), (".png", false)],
            &[("see this: a @x", true), (".png", true)],
        ] {
            let found = message(parts);
            assert!(found.pictures().is_empty(), "{parts:?}");
            assert!(!found.pasted_pictures().is_empty(), "{parts:?}");
        }
        // Text that is typed within it, and text that is removed, changes nothing.
        let mut joined = message(&[("one ", false), (paste, true)]);
        joined.insert(9, " @z.png ", false);
        joined.remove(0..6);
        joined.remove(2..4);
        assert!(joined.pictures().is_empty(), "{joined:?}");
        let mut both = message(&[("typed @a.png\n", false)]);
        both.append(&joined);
        both.insert(0, "@b.png ", false);
        assert_eq!(both.pictures(), ["b.png", "a.png"]);
    }

    #[test]
    fn a_paste_that_is_one_path_names_a_picture() {
        assert_eq!(message(&[("see ", false), ("/tmp/x.png", true)]).pictures(), ["/tmp/x.png"]);
        assert_eq!(message(&[("see @", false), ("x.png\n", true), ("now", false)]).pictures(), ["x.png"]);
        let around = message(&[("two words", true), (" @x.png ", false), ("two more", true)]);
        assert_eq!(around.pictures(), ["x.png"]);
    }

    #[test]
    fn many_characters_at_once_are_a_paste() {
        let keys = |text: &str| text.chars().map(Key::Char).collect::<Vec<_>>();
        let mut read = keys("see @x.png");
        read.push(Key::Enter);
        assert_eq!(unmarked(read), [Key::Paste("see @x.png".into()), Key::Enter]);
        assert_eq!(unmarked(keys("see @x")), keys("see @x"));
    }
}
