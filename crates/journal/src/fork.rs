//! Forking a session: another one that begins with what was said up to an entry.

use crate::{
    Entry, Fact, Journal, JournalError, Query, Recorded, SessionInfo, chain, fact::Payload, project,
};
use bailey_protocol::{Image, SessionId, number::Seq};
use bailey_store::Grade;
use std::collections::BTreeMap;

impl Journal {
    /// Begins the session `id` as `from` stood after its entry `at` (its newest where none is named): its
    /// messages, the model's replies and the results of calls are copied, so that neither session needs the
    /// other. Tokens that the other session used do not count here. Gives the entry that the fork was made
    /// at.
    ///
    /// # Errors
    /// [`JournalError::NoEntry`] when `at` is no entry of `from`; others when it cannot be read or written.
    pub async fn fork_session(
        &self,
        id: SessionId,
        from: &SessionInfo,
        at: Option<u64>,
    ) -> Result<Seq, JournalError> {
        let mut entries = self.entries(Query { session: Some(from.id), ..Query::default() }).await?;
        if let Some(at) = at {
            if !entries.iter().any(|recorded| recorded.entry.seq.0 == at) {
                return Err(JournalError::NoEntry { session: from.id, at });
            }
            entries.retain(|it| it.entry.seq.0 <= at || is_for_good(&it.entry.fact));
        }
        let newest = at.map(Seq).or_else(|| entries.last().map(|recorded| recorded.entry.seq));
        let at = newest.ok_or(JournalError::NoEntry { session: from.id, at: 0 })?;
        let (redactor, now) = self.pen();
        let SessionInfo { id: other, workspace, principal, model, .. } = from.clone();
        let copied = entries.iter().filter(|recorded| is_copied(recorded));
        let copies: Vec<(Seq, Entry)> = copied.map(|it| (it.entry.seq, copy(id, it))).collect();
        self.write(Grade::Normal, move |tx| {
            project::opened(tx, id, now, &workspace, &principal, &model)?;
            let forked = Fact::SessionForked { from: other, at, workspace, principal, model };
            chain::append(tx, &redactor, now, &Entry::of(id, forked))?;
            let mut numbers: BTreeMap<Seq, Seq> = BTreeMap::new();
            for (old, mut entry) in copies.clone() {
                renumber(&mut entry.fact, &numbers);
                numbers.insert(old, chain::append(tx, &redactor, now, &entry)?);
                if let (Fact::Accepted { turn, .. }, Some(Payload::Text(text))) =
                    (&entry.fact, &entry.payload)
                {
                    project::accepted(tx, id, *turn, now, text)?;
                }
            }
            Ok(at)
        })
        .await
    }
}

/// Whose the session is and what that one may stand behind its beginning, and are no words of the
/// conversation.
fn is_for_good(fact: &Fact) -> bool {
    matches!(fact, Fact::Agent { .. } | Fact::Confined(_))
}

/// Whether a fork has it, too.
fn is_copied(recorded: &Recorded) -> bool {
    is_for_good(&recorded.entry.fact) || is_said(recorded)
}

/// Whether it is part of the conversation.
fn is_said(recorded: &Recorded) -> bool {
    matches!(
        recorded.entry.fact,
        Fact::Accepted { .. }
            | Fact::Image { .. }
            | Fact::Reply { .. }
            | Fact::Observation { .. }
            | Fact::Pinned { .. }
            | Fact::Unpinned { .. }
            | Fact::Unsaid { .. }
            | Fact::Guide { .. }
            | Fact::Shortened { .. }
            | Fact::Summary { .. }
    )
}

/// What names entries that were copied names their copies; what names others goes on naming those.
fn renumber(fact: &mut Fact, numbers: &BTreeMap<Seq, Seq>) {
    let new = |old: &Seq| numbers.get(old).copied().unwrap_or(*old);
    match fact {
        Fact::Unpinned { entry } | Fact::Unsaid { entry } => *entry = new(entry),
        Fact::Shortened { entries, .. } => entries.iter_mut().for_each(|entry| *entry = new(entry)),
        Fact::Summary { replaces, labels, .. } => {
            replaces.iter_mut().for_each(|entry| *entry = new(entry));
            labels.sources = labels.sources.iter().map(new).collect();
        }
        Fact::Accepted { labels, .. }
        | Fact::Image { labels, .. }
        | Fact::Reply { labels, .. }
        | Fact::Observation { labels, .. }
        | Fact::Pinned { labels }
        | Fact::Guide { labels, .. } => labels.sources = labels.sources.iter().map(new).collect(),
        _ => {}
    }
}

fn copy(id: SessionId, recorded: &Recorded) -> Entry {
    // A result is about an effect where it tells that one's end.
    let effect = recorded.entry.effect.filter(|_| matches!(recorded.entry.fact, Fact::Observation { .. }));
    let image = || Image::of(recorded.payload.clone()?);
    let payload = match &recorded.entry.fact {
        Fact::Image { .. } => image().map(Payload::Image),
        _ => Some(Payload::Text(recorded.text())),
    };
    let entry = Entry { payload, ..Entry::of(id, recorded.entry.fact.clone()) };
    Entry { effect, ..entry }
}
