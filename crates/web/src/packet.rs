//! The requests of browsers as packets to the daemon.

use crate::{Answer, Ask, Wish};
pub(crate) use bailey_session::packet::{Asking, Refusable};

impl Asking for Ask {
    fn is_quick(&self) -> bool {
        // A program that watches the daemon by this request must not take a busy page for a page that is
        // gone.
        self.wish == Wish::Health
    }
}

impl Refusable for Answer {
    fn refused(why: String) -> Option<Self> {
        Some(Self::Refused(why))
    }
}
