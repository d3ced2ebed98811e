//! The pinned messages as the user sees them: by number, in the order in which they were pinned.

use super::{card::one_line, text::cut};
use bailey_protocol::{PinnedLine, Seq};

/// The longest piece of pinned words that is shown, in cells; `bailey sessions context` shows all of it.
const CELLS_MAX: usize = 200;

/// The pinned messages, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Pins(Vec<PinnedLine>);

impl Pins {
    /// Takes the messages that are pinned now and gives a line for each difference.
    pub(super) fn take(&mut self, now: &[PinnedLine]) -> Vec<String> {
        let before = std::mem::replace(&mut self.0, now.to_vec());
        let gone = before.iter().filter(|pin| !now.contains(pin));
        let gone = gone.map(|pin| format!("  unpinned: {}", shown(&pin.text)));
        let new = now.iter().enumerate().filter(|(_, pin)| !before.contains(pin));
        gone.chain(new.map(|(at, pin)| line(at, pin))).collect()
    }

    /// A line for each pinned message.
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.iter().enumerate().map(|(at, pin)| line(at, pin)).collect()
    }

    /// The message that the user means by this number; without a number, the only pinned message. Otherwise
    /// the text to show to the user.
    pub(super) fn find(&self, number: Option<&str>) -> Result<Seq, String> {
        let at = match (number.map(str::parse::<usize>), self.0.as_slice()) {
            (_, []) => return Err("  nothing is pinned; /pin TEXT pins something".into()),
            (None, [only]) => return Ok(only.entry),
            (Some(Ok(number)), pins) => number.checked_sub(1).and_then(|at| pins.get(at)),
            (Some(Err(_)) | None, _) => None,
        };
        at.map(|pin| pin.entry)
            .ok_or_else(|| format!("  /unpin takes the number of a pinned text, 1 to {}:", self.0.len()))
    }
}

fn line(at: usize, pin: &PinnedLine) -> String {
    format!("  pinned {}: {}", at + 1, shown(&pin.text))
}

fn shown(text: &str) -> String {
    cut(&one_line(text), CELLS_MAX)
}
