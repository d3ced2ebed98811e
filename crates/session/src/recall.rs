//! The view of a session when it goes on, and of its changes after each turn.

use crate::{Host, HostError};
use bailey_kernel::{Refused, Segment};
use bailey_protocol::{Happening, RecalledLine, Seq};
use bailey_tools::tool_name;

/// How many lines of the earlier conversation are shown.
const LINES_MAX: usize = 12;
/// The longest text of one line, in bytes.
const TEXT_BYTES_MAX: usize = 4 << 10;
/// How many paths are compared after each turn.
const COMPARED_MAX: usize = 300;
/// How many changed paths are told one by one.
const COUNTS_MAX: usize = 100;

impl Host {
    /// Tells the end of the earlier conversation and the changes that wait, when the session goes on.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn recall(&mut self) -> Result<(), HostError> {
        let mut lines: Vec<RecalledLine> = self.context.segments().iter().flat_map(lines_of).collect();
        let left_out = lines.len().saturating_sub(LINES_MAX);
        lines.drain(..left_out);
        if lines.is_empty() {
            return Ok(());
        }
        let scope = self.kernel.turn_of(&self.connection);
        let left_out = u32::try_from(left_out).unwrap_or(u32::MAX);
        self.kernel.tell(&scope, Happening::Recalled { lines, left_out }).await?;
        self.tell_changed().await
    }

    /// The newest result of a call in the context.
    pub(crate) fn newest_result(&self) -> Option<Seq> {
        let is_result = |segment: &&Segment| matches!(segment, Segment::Observation(_) | Segment::Late(_));
        self.context.segments().iter().rev().find(is_result).map(Segment::entry)
    }

    /// Compares the session with the project, and tells how many changes wait. A comparison that cannot be
    /// made tells nothing.
    ///
    /// # Errors
    /// When the journal cannot be read or written.
    pub(crate) async fn tell_changed(&mut self) -> Result<(), HostError> {
        // The journal keeps each comparison, so a session that changed very much is only counted.
        let touched = self.kernel.journal().touched(self.session).await?.len();
        if touched > COMPARED_MAX {
            let files = u32::try_from(touched).unwrap_or(u32::MAX);
            self.changed = Some(Happening::Changed { files, counts: Vec::new(), branches: 0 });
            return self.tell_changed_again().await;
        }
        let changes = match self.compare(&[]).await {
            Ok(changes) => changes,
            Err(error @ (HostError::Journal(_) | HostError::Refused(Refused::Journal(_)))) => {
                return Err(error);
            }
            Err(_) => return Ok(()),
        };
        let files = u32::try_from(changes.changes.len()).unwrap_or(u32::MAX);
        let counts = changes.changes.iter().take(COUNTS_MAX).map(|change| change.count.clone()).collect();
        let moved = changes.branches.iter().filter(|branch| branch.refused.is_none());
        let branches = u32::try_from(moved.count()).unwrap_or(u32::MAX);
        self.changed = Some(Happening::Changed { files, counts, branches });
        self.tell_changed_again().await
    }

    /// Tells the changes as they were found last, for front ends that came since.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub(crate) async fn tell_changed_again(&self) -> Result<(), HostError> {
        let Some(changed) = self.changed.clone() else { return Ok(()) };
        let scope = self.kernel.turn_of(&self.connection);
        Ok(self.kernel.tell(&scope, changed).await?)
    }
}

fn lines_of(segment: &Segment) -> Vec<RecalledLine> {
    let cut = |text: &str| match text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)) {
        Some(head) if head.len() < text.len() => format!("{head} …"),
        _ => text.to_owned(),
    };
    match segment {
        Segment::User(message) if !message.is_pinned() => {
            vec![RecalledLine::Person { text: cut(message.text()) }]
        }
        Segment::Reply(reply) if !reply.answer().text.trim().is_empty() => {
            vec![RecalledLine::Model { text: cut(reply.answer().text.trim()) }]
        }
        Segment::Observation(seen) => {
            let first = seen.text().lines().next().unwrap_or_default();
            vec![RecalledLine::Call {
                text: cut(&format!("{} {first}", tool_name(seen.tool()))),
                ok: seen.is_ok(),
            }]
        }
        Segment::Note(note) => vec![RecalledLine::Model { text: cut(note.text()) }],
        Segment::User(_) | Segment::Reply(_) | Segment::Late(_) | Segment::Guide(_) => Vec::new(),
    }
}
