//! The pinned messages of a session, for display: while a turn runs, the brain has the context.

use bailey_kernel::{Connection, Context, Kernel, Refused, Scope, Segment, UserMessage};
use bailey_protocol::{Happening, PinnedLine, Seq};

/// The pinned messages of a session, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Pins(Vec<PinnedLine>);

impl Pins {
    /// The pinned messages of a context.
    pub(crate) fn of(context: &Context) -> Self {
        let pinned = context.segments().iter().filter_map(|segment| match segment {
            Segment::User(message) if message.is_pinned() => Some(line(message)),
            _ => None,
        });
        Self(pinned.collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sends the current pins as an event.
    pub(crate) async fn tell(&self, kernel: &Kernel, scope: &Scope) -> Result<(), Refused> {
        kernel.tell(scope, Happening::Pinned { messages: self.0.clone() }).await
    }

    /// Pins these words, and returns the message for the context.
    pub(crate) async fn add(
        &mut self,
        kernel: &Kernel,
        connection: &Connection,
        scope: &Scope,
        text: &str,
    ) -> Result<UserMessage, Refused> {
        let message = kernel.pin(connection, text).await?;
        self.0.push(line(&message));
        self.tell(kernel, scope).await?;
        Ok(message)
    }

    /// Takes the pin off a message; the caller has to tell the context, too. A message that is not pinned
    /// stays as it is.
    pub(crate) async fn remove(
        &mut self,
        kernel: &Kernel,
        connection: &Connection,
        scope: &Scope,
        entry: Seq,
    ) -> Result<(), Refused> {
        if self.0.iter().any(|pinned| pinned.entry == entry) {
            kernel.unpin(connection, entry).await?;
            self.0.retain(|pinned| pinned.entry != entry);
        }
        self.tell(kernel, scope).await
    }
}

pub(crate) fn line(message: &UserMessage) -> PinnedLine {
    PinnedLine { entry: message.entry(), text: message.text().to_owned() }
}
