//! Extensions of the policy, as a decision sees them: who is to be asked, and what became of it.
//!
//! An extension is a program of the owner's choosing that judges some kinds of action. Running it, and the
//! clock that it is held to, are somebody else's; here its answers are facts, and all that is not an answer
//! is a denial.

use crate::{rule::Answer, shape::beginning};
use alloc::{string::String, vec::Vec};
use bailey_protocol::{Digest, Kind, Timestamp};
use serde::{Deserialize, Serialize};

/// Within so many milliseconds after a crash, another one disables an extension.
pub const CRASH_WINDOW_MS: i64 = 30_000;

/// Characters of an extension's reason that are kept.
const REASON_CHARS: usize = 500;

/// An extension that is part of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Extension {
    /// Its name, which reasons carry.
    pub name: String,
    /// The kinds of action that it judges. While it is disabled, they are denied.
    pub kinds: Vec<Kind>,
    /// What it counts as when it does not answer in time.
    pub late: Late,
    /// Names what runs: its command, its files, and how it is run. Another program is another policy.
    pub program: Digest,
}

/// What an extension counts as when it does not answer in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Late {
    /// As a denial.
    #[default]
    Deny,
    /// As a question to a human.
    Review,
    /// As nothing. This fails open: whoever can make it slow has taken it away.
    Pass,
}

/// An extension's reply to a question, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtensionReply {
    /// It answered in time.
    Said {
        /// What.
        answer: Answer,
        /// Why, in its own words; the first 500 characters are kept, and none that acts on a terminal.
        reason: String,
    },
    /// It did not answer in time.
    Late,
    /// It crashed, or could not be started.
    Crashed,
    /// What it answered cannot be read, or answers what it was not asked.
    Garbled,
    /// What there is to judge does not fit into one question.
    TooLong,
    /// It is disabled.
    Disabled,
    /// It does not run, and may not be started: why.
    Barred(String),
}

impl Extension {
    /// What a reply, or none at all, counts as, and why.
    pub(crate) fn count(&self, reply: Option<ExtensionReply>) -> (Answer, String) {
        let failed = |text: &str| (Answer::Deny, text.into());
        match reply {
            Some(ExtensionReply::Said { answer, reason }) => (answer, beginning(&reason, REASON_CHARS)),
            Some(ExtensionReply::Late) => {
                let answer = match self.late {
                    Late::Deny => Answer::Deny,
                    Late::Review => Answer::Review,
                    Late::Pass => Answer::Pass,
                };
                (answer, "it did not answer in time".into())
            }
            Some(ExtensionReply::Crashed) => failed("it crashed"),
            Some(ExtensionReply::Garbled) => failed("its answer cannot be read"),
            Some(ExtensionReply::TooLong) => failed("this is too long for it to be asked about"),
            Some(ExtensionReply::Disabled) => failed("it is disabled until you enable it again"),
            Some(ExtensionReply::Barred(why)) => {
                (Answer::Deny, beginning(&alloc::format!("it is not started: {why}"), REASON_CHARS))
            }
            None => failed("nobody asked it"),
        }
    }
}

/// Whether an extension may be asked, kept by whoever runs it: a crash is followed by one restart, a second
/// crash soon after disables it, and only a human enables it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Health {
    /// It never crashed since it was enabled.
    #[default]
    Well,
    /// It crashed, then, and was started again.
    Restarted(Timestamp),
    /// It is disabled.
    Disabled,
}

impl Health {
    /// After a crash, or a start that failed, at this time: it may be started again unless this is
    /// [`Health::Disabled`].
    #[must_use]
    pub fn crashed(self, now: Timestamp) -> Self {
        match self {
            Self::Well => Self::Restarted(now),
            // A clock that was put back makes the window longer, never shorter.
            Self::Restarted(then) if now.duration_since(then).as_millis() > i128::from(CRASH_WINDOW_MS) => {
                Self::Restarted(now)
            }
            Self::Restarted(_) | Self::Disabled => Self::Disabled,
        }
    }

    /// After a human enabled it.
    #[must_use]
    pub fn enabled(self) -> Self {
        Self::Well
    }

    /// Whether it must not be asked, which denies its kinds.
    #[must_use]
    pub fn is_disabled(self) -> bool {
        self == Self::Disabled
    }
}
