//! Messages that are said twice: who does not know whether one was heard says it again, under the same name.

use crate::{Completion, Connection, Kernel, Refused};
use bailey_journal::{Fact, Query, Recorded};
use bailey_protocol::{Happening, Inbound};

impl Kernel {
    /// Whether this message was accepted before, as its name says. Then whoever said it is told so, with what
    /// the model answered, and nothing else is to be done.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn is_repeated(&self, connection: &Connection, inbound: &Inbound) -> Result<bool, Refused> {
        let Some(key) = &inbound.key else { return Ok(false) };
        let session = connection.session;
        let Some(accepted) = self.journal().accepted_as(session, key).await? else { return Ok(false) };
        let query = Query { session: Some(session), after: accepted.0, ..Query::default() };
        let mut entries = self.journal().entries(query).await?;
        let end = entries.iter().position(|it| matches!(it.entry.fact, Fact::TurnEnded { .. }));
        let ended = end.and_then(|end| entries.drain(end..).next()).and_then(|end| match end.entry.fact {
            Fact::TurnEnded { reason, .. } => Some(reason),
            _ => None,
        });
        let text = entries.iter().rev().find_map(said).unwrap_or_default();
        self.tell(&self.turn_of(connection), Happening::Repeated { key: key.clone(), ended, text }).await?;
        Ok(true)
    }
}

/// What a model said to the person.
fn said(recorded: &Recorded) -> Option<String> {
    if !matches!(recorded.entry.fact, Fact::Reply { .. }) {
        return None;
    }
    let answer: Completion = serde_json::from_str(&recorded.text()).ok()?;
    Some(answer.text).filter(|text| !text.is_empty())
}
