//! A question on the terminal and the line that the user types as an answer.
//!
//! Only text that the user typed after the question was shown is an answer. Pasted text is not an answer: the
//! terminal marks it, and all of it is thrown away, however it is cut into reads. For a terminal that does
//! not mark pastes, a line counts only when nothing else came in the same read. A single key answers a card
//! only when it came alone and the user was not in the middle of typing.

use super::{
    keys::Key,
    terminal::{PAUSE, Read, Terminal, answered, typed_at},
    text::width,
};
use crate::print::Printer;
use bailey_secrets::neutralise;
use std::{io, time::Duration};
use tokio::time::timeout;

/// Keys that follow an answer this soon belong to it.
const REST: Duration = Duration::from_millis(250);

/// The longest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 4096;

const PASTED: &str = "\n  Pasted text does not count as an answer: type the answer.\n";
const PASTING: &str = "\n  Pasted text does not count as an answer. Wait for the end of the paste, then \
    type; Ctrl-C answers no.\n";
const TOGETHER: &str = "\n  More text came with it, as in a paste, so it does not count: type the answer.\n";

/// The keyboard, while questions are asked. Dropping it restores the terminal's settings.
#[derive(Debug)]
pub(super) struct Prompt {
    terminal: Terminal,
    is_echoing: bool,
}

impl Prompt {
    /// Takes the keyboard of the controlling terminal.
    ///
    /// # Errors
    /// When there is no terminal, or it cannot be set up.
    pub(super) fn open(printer: &Printer) -> io::Result<Self> {
        let terminal = Terminal::open()?;
        terminal.keys(!printer.is_dumb()).map_err(io::Error::other)?;
        let is_echoing = terminal.was_echoing();
        Ok(Self { terminal, is_echoing })
    }

    pub(super) fn terminal(&self) -> &Terminal {
        &self.terminal
    }

    /// Asks, and waits for a line that is typed after the question. `None` when the terminal is gone, or on
    /// Ctrl-D when nothing was typed.
    ///
    /// # Errors
    /// When the terminal cannot be read or written to.
    pub(super) async fn line(&self, question: &str) -> io::Result<Option<String>> {
        Ok(match self.key_or_line(question, None).await? {
            Some(Typing::Key(key)) => Some(key.to_string()),
            Some(Typing::Line(line)) => Some(line),
            None => None,
        })
    }

    /// The same, but a key may answer at once, or mean nothing.
    ///
    /// # Errors
    /// As [`Prompt::line`].
    pub(super) async fn key_or_line(
        &self,
        question: &str,
        pressed: Option<&dyn Fn(char) -> Pressed>,
    ) -> io::Result<Option<Typing>> {
        // Text that was typed before the question was seen is not an answer to it.
        let mut typed = Typed { is_told: self.terminal.drain(), ..Typed::default() };
        let mut is_word = false;
        if typed.is_told {
            self.terminal.write(PASTING).await?;
        }
        self.terminal.write(question).await?;
        loop {
            let before = typed_at();
            let Some(read) = self.terminal.read_keys().await? else { return Ok(None) };
            let was_typing = before.is_some_and(|at| at.elapsed() < PAUSE);
            if let Some(pressed) = pressed {
                // These belong to the text that the user was typing when the question came.
                if was_typing && read.keys.iter().all(|key| matches!(key, Key::Char(_))) && !read.is_cut {
                    continue;
                }
                match typed.single(&read).map(|key| (key, pressed(key))) {
                    Some((key, Pressed::Answers)) if !is_word => {
                        // The rest of a word, such as `yes`, is no message.
                        while let Ok(Ok(Some(_))) = timeout(REST, self.terminal.read_keys()).await {}
                        answered();
                        self.terminal.write(&format!("{}\n", shown(key))).await?;
                        return Ok(Some(Typing::Key(key)));
                    }
                    // The person may be typing words: from now on an answer wants Enter.
                    Some((_, Pressed::Nothing)) => {
                        is_word = true;
                        continue;
                    }
                    Some((_, Pressed::Answers | Pressed::Begins)) | None => {}
                }
            }
            let step = typed.take(read);
            let echo = std::mem::take(&mut typed.echo);
            if self.is_echoing {
                self.terminal.write(&echo).await?;
            }
            match step {
                Step::More => {}
                Step::Closed => return Ok(None),
                Step::Line(line) => {
                    self.terminal.write("\n").await?;
                    return Ok(Some(Typing::Line(line)));
                }
                Step::Refused(why) => {
                    // The bytes that follow may hold the end of the paste, or the beginning of a paste.
                    typed.is_told = self.terminal.drain();
                    let why = match why {
                        _ if typed.is_told => PASTING,
                        PASTING => PASTED,
                        why => why,
                    };
                    self.terminal.write(&format!("{why}{question}")).await?;
                }
            }
        }
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        self.terminal.lines();
    }
}

/// The meaning of a key that comes alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pressed {
    /// It is the answer.
    Answers,
    /// It begins a line.
    Begins,
    /// It is no answer, and begins no line.
    Nothing,
}

/// The answer to a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typing {
    /// One key.
    Key(char),
    /// A line.
    Line(String),
}

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// There is no whole line yet.
    More,
    /// A line that was typed.
    Line(String),
    /// The input is not an answer, for this reason.
    Refused(&'static str),
    /// Ctrl-D, and nothing was typed.
    Closed,
}

/// A line that is being typed.
#[derive(Debug, Default)]
pub(super) struct Typed {
    text: String,
    /// The text that the terminal must still show.
    echo: String,
    /// Whether the user was told about the paste that has not ended.
    is_told: bool,
}

impl Typed {
    /// The only key of a read, when nothing was typed before it and no paste is open.
    pub(super) fn single(&self, read: &Read) -> Option<char> {
        let is_alone = self.text.is_empty() && !self.is_told && !read.is_cut && !read.is_pasting;
        match read.keys.as_slice() {
            [Key::Char(key)] if is_alone => Some(*key),
            _ => None,
        }
    }

    /// Takes the keys of one read.
    pub(super) fn take(&mut self, read: Read) -> Step {
        let mut keys = read.keys.into_iter();
        let step = loop {
            match keys.next() {
                None => break Step::More,
                Some(Key::Paste(_)) => break Step::Refused(PASTED),
                Some(Key::Enter | Key::NewLine) => break Step::Line(std::mem::take(&mut self.text)),
                Some(Key::Eof) if self.text.is_empty() => break Step::Closed,
                Some(Key::Char(c)) => self.add(c),
                Some(Key::Backspace) => {
                    self.cut_to(self.text.char_indices().next_back().map_or(0, |(at, _)| at))
                }
                Some(Key::KillBefore) => self.cut_to(0),
                Some(Key::KillWord) => {
                    let words = self.text.trim_end();
                    self.cut_to(words.rfind(char::is_whitespace).map_or(0, |at| at + 1));
                }
                Some(_) => {}
            }
        };
        let was_told = std::mem::replace(&mut self.is_told, read.is_pasting);
        let is_alone = keys.next().is_none() && !read.is_cut;
        let step = match step {
            Step::More if read.is_pasting && !was_told => Step::Refused(PASTING),
            Step::Line(_) | Step::Closed if !is_alone => Step::Refused(TOGETHER),
            step => step,
        };
        if matches!(step, Step::Refused(_)) {
            self.text.clear();
        }
        step
    }

    fn add(&mut self, c: char) {
        if self.text.len() + c.len_utf8() <= ANSWER_BYTES_MAX {
            self.text.push(c);
            self.echo += &shown(c);
        }
    }

    /// Removes the text after the first `bytes` bytes.
    fn cut_to(&mut self, bytes: usize) {
        let gone: usize = self.text.drain(bytes..).map(|c| width(&shown(c))).sum();
        self.echo += &"\u{8} \u{8}".repeat(gone);
    }
}

/// A character as the terminal may show it.
fn shown(c: char) -> String {
    neutralise(c.encode_utf8(&mut [0; 4])).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{ANSWER_BYTES_MAX, PASTED, PASTING, Read, Step, TOGETHER, Typed};
    use crate::keys::Keys;

    /// The result of each read.
    fn steps(reads: &[&str]) -> Vec<Step> {
        let (mut keys, mut typed) = (Keys::new(), Typed::default());
        reads.iter().map(|read| typed.take(Read::of(&mut keys, read.as_bytes()))).collect()
    }

    fn line(text: &str) -> Step {
        Step::Line(text.into())
    }

    #[test]
    fn a_typed_line_is_an_answer() {
        assert_eq!(steps(&["y\r"]), [line("y")]);
        assert_eq!(steps(&["n", "o", " w", "hy", "\r"])[4], line("no why"));
        assert_eq!(steps(&["yes\u{7f}\u{7f}\u{7f}n\u{15}s x\u{17}\u{17}y\n"]), [line("y")]);
        assert_eq!(steps(&["\u{4}"]), [Step::Closed]);
    }

    #[test]
    fn a59_a_single_key_answers_only_when_it_comes_alone() {
        let single = |before: &[&str], read: &str| {
            let (mut keys, mut typed) = (Keys::new(), Typed::default());
            for read in before {
                typed.take(Read::of(&mut keys, read.as_bytes()));
            }
            typed.single(&Read::of(&mut keys, read.as_bytes()))
        };
        assert_eq!(single(&[], "y"), Some('y'));
        for read in ["y\r", "yy", "\u{1b}[200~y", "y\u{1b}", "\u{1b}[200~y\u{1b}[201~"] {
            assert_eq!(single(&[], read), None, "{read:?}");
        }
        // In the middle of a paste, and after another letter.
        assert_eq!(single(&["\u{1b}[200~a"], "y"), None);
        assert_eq!(single(&["b"], "y"), None);
    }

    #[test]
    fn a59_a_paste_is_no_answer_wherever_it_is_cut() {
        let paste = "\u{1b}[200~y\ry\n\u{1b}[201~";
        assert_eq!(steps(&[paste]), [Step::Refused(PASTED)]);
        for cut in 1..paste.len() {
            for read in steps(&[&paste[..cut], &paste[cut..]]) {
                assert!(matches!(read, Step::More | Step::Refused(_)), "cut at {cut}: {read:?}");
            }
        }
        let bytes: Vec<String> = paste.chars().map(String::from).collect();
        let reads: Vec<&str> = bytes.iter().map(String::as_str).chain(["y", "\r"]).collect();
        let steps = steps(&reads);
        // The control: the same letter after the paste is an answer.
        let (last, paste) = steps.split_last().unwrap();
        assert_eq!(*last, line("y"));
        assert!(paste.iter().all(|read| matches!(read, Step::More | Step::Refused(_))), "{paste:?}");
        assert!(
            paste.contains(&Step::Refused(PASTING)) && paste.contains(&Step::Refused(PASTED)),
            "{paste:?}"
        );
    }

    #[test]
    fn a59_a_paste_without_an_end_answers_nothing() {
        let reads = steps(&["\u{1b}[200~y\r", "y\r", "y", "\r"]);
        assert_eq!(reads, [Step::Refused(PASTING), Step::More, Step::More, Step::More]);
    }

    #[test]
    fn a59_what_is_typed_around_a_paste_does_not_become_an_answer_with_it() {
        assert_eq!(steps(&["y\u{1b}[200~es\u{1b}[201~\r"]), [Step::Refused(PASTED)]);
        assert_eq!(steps(&["y\r\u{1b}[200~"]), [Step::Refused(TOGETHER)]);
        assert_eq!(
            steps(&["y", "\u{1b}[200~x\u{1b}[201~", "\r"]),
            [Step::More, Step::Refused(PASTED), line("")]
        );
    }

    #[test]
    fn a59_lines_that_come_in_one_piece_are_no_answer() {
        for read in ["y\ny\n", "y\rls", "\ry\r", "y\r\u{1b}", "y\r\u{1b}[A", "x\ny\n"] {
            assert_eq!(steps(&[read]), [Step::Refused(TOGETHER)], "{read:?}");
        }
    }

    #[test]
    fn a59_what_is_typed_shows_nothing_that_acts_and_ends_somewhere() {
        let (mut keys, mut typed) = (Keys::new(), Typed::default());
        typed.take(Read::of(&mut keys, "a\u{202e}\u{9b}31m\u{1b}]52;c;eQ==\u{7}漢\u{7f}".as_bytes()));
        assert!(!typed.echo.replace('\u{8}', "").chars().any(char::is_control), "{:?}", typed.echo);
        assert!(!typed.echo.contains('\u{202e}'), "{:?}", typed.echo);
        for _ in 0..100 {
            typed.take(Read::of(&mut keys, &[b'x'; 4096]));
        }
        assert!(typed.text.len() <= ANSWER_BYTES_MAX);
    }
}
