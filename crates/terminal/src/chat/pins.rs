//! `/pin` and `/unpin`.

use super::{Doing, Front};
use crate::print::Style;
use bailey_protocol::Op;

impl Front<'_> {
    /// Pins these words; without any, lists the pinned messages.
    pub(super) fn pin(&mut self, text: Option<String>) {
        if let Some(text) = text {
            return self.pin_or_unpin(Op::Pin { text });
        }
        let lines = self.drawing.pins.lines();
        if lines.is_empty() {
            self.note(Style::Plain, "  nothing is pinned; /pin TEXT pins something");
        }
        lines.iter().for_each(|line| self.note(Style::Plain, line));
    }

    /// Unpins the message with this number; without a number, unpins the only pinned message.
    pub(super) fn unpin(&mut self, number: Option<&str>) {
        match self.drawing.pins.find(number) {
            Ok(entry) => self.pin_or_unpin(Op::Unpin { entry }),
            Err(error) => {
                self.note(Style::Yellow, &error);
                let lines = self.drawing.pins.lines();
                lines.iter().for_each(|line| self.note(Style::Plain, line));
            }
        }
    }

    /// A running turn takes the op at its next step; a comparison or a merge cannot take it.
    fn pin_or_unpin(&mut self, op: Op) {
        match self.chat.as_ref().map(|chat| chat.doing) {
            Some(Doing::Nothing) => self.ask_for(op),
            Some(Doing::Turn) => self.send(op),
            Some(Doing::Op(_)) | None => self.note(Style::Yellow, super::BUSY),
        }
    }
}
