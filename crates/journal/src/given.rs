//! The entries of the chain about a yes, a stop and a revealed file. An effect begins by
//! these entries, and by no row beside the chain. Somebody who can write the file can change
//! a row, and nothing else changes with it.

use crate::{
    Terms, chain,
    fact::{Fact, Stored},
};
use bailey_protocol::{ApprovalId, Digest, SessionId, event::Answer};
use bailey_store::{OptionalExtension as _, StoreError, Tx, params};

/// The entries of the whole home that an effect's beginning looks for, as their index knows them.
const OF_HOME: &str = "type IN ('policy_adopted', 'stopped', 'released', 'restored', 'salvaged')";

/// A question and its newest answer, as their own entries hold them.
pub(crate) struct Given {
    pub(crate) session: SessionId,
    /// The digest of the effect that waits.
    pub(crate) effect: Digest,
    /// The digest of its action alone.
    pub(crate) action: Option<Digest>,
    pub(crate) call: Option<String>,
    pub(crate) terms: Terms,
    pub(crate) answer: Answer,
    /// Whether an effect has begun on it, where it is good for one alone.
    pub(crate) is_used: bool,
}

impl Given {
    /// `None` where the chain holds no such question or no answer to it, or where a later entry voids it.
    pub(crate) fn read(tx: &Tx<'_>, id: ApprovalId) -> Result<Option<Self>, StoreError> {
        let row = tx.query_row("SELECT asked FROM approval WHERE id = ?1", params![id.to_string()], |row| {
            row.get::<_, u64>(0)
        });
        let Some(asked) = row.optional()?.map(|seq| chained(tx, seq)).transpose()?.flatten() else {
            return Ok(None);
        };
        let (seq, session) = (asked.seq.0, asked.session);
        let (Some(session), Fact::Asked { approval, digest, action, call, terms, .. }) =
            (session, asked.fact)
        else {
            return Ok(None);
        };
        if approval != id || is_void(tx, seq)? {
            return Ok(None);
        }
        let about = |name: &str| {
            let found =
                tx.query_row(&newest(name), params![session.to_string(), seq, id.to_string()], |row| {
                    row.get::<_, u64>(0)
                });
            found.optional()
        };
        let answered = about("answered")?.map(|seq| chained(tx, seq)).transpose()?.flatten();
        let Some(Fact::Answered { approval, answer, .. }) = answered.map(|entry| entry.fact) else {
            return Ok(None);
        };
        let call = call.map(|call| call.0);
        // For a yes that stays, each effect of a long session would walk over all that began before it.
        let is_used = answer == Answer::Yes && about("intent")?.is_some();
        let given = Self { session, effect: digest, action, call, terms, answer, is_used };
        Ok(Some(given).filter(|_| approval == id))
    }
}

/// The newest entry of a type after another one of its session that names a question. The type stands in the
/// text, because the index over answers holds these alone.
fn newest(name: &str) -> String {
    format!(
        "SELECT seq FROM entry WHERE session = ?1 AND seq > ?2 AND type = '{name}'
         AND json_extract(CAST(body AS TEXT), '$.approval') = ?3 ORDER BY seq DESC LIMIT 1"
    )
}

/// Since when everything is stopped by the newest entry that stops or releases; none where that one releases.
pub(crate) fn stopped(tx: &Tx<'_>) -> Result<Option<String>, StoreError> {
    let sql = format!(
        "SELECT type, json_extract(CAST(body AS TEXT), '$.time') FROM entry
         WHERE {OF_HOME} AND type IN ('stopped', 'released') ORDER BY seq DESC LIMIT 1"
    );
    let newest =
        tx.query_row(&sql, params![], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
    Ok(newest.optional()?.filter(|(name, _)| name == "stopped").map(|(_, time)| time))
}

/// Whether an entry after this one voids the questions asked before it.
fn is_void(tx: &Tx<'_>, asked: u64) -> Result<bool, StoreError> {
    let sql = format!("SELECT 1 FROM entry WHERE {OF_HOME} AND type <> 'released' AND seq > ?1 LIMIT 1");
    Ok(tx.query_row(&sql, params![asked], |_| Ok(())).optional()?.is_some())
}

/// An entry that is the one the chain was written with: its hash fits it and the entry before.
fn chained(tx: &Tx<'_>, seq: u64) -> Result<Option<Stored>, StoreError> {
    let row = tx.query_row("SELECT body, hash FROM entry WHERE seq = ?1", params![seq], |row| {
        Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, Vec<u8>>(1)?))
    });
    let Some((body, hash)) = row.optional()? else { return Ok(None) };
    let before = chain::hash_of(tx, seq.saturating_sub(1))?;
    let is_whole = chain::link(&before, &body).0.as_slice() == hash.as_slice();
    Ok(is_whole.then(|| serde_json::from_slice(&body).ok()).flatten())
}

#[cfg(test)]
mod tests {
    use super::{OF_HOME, newest};
    use crate::schema::MIGRATIONS;
    use bailey_store::{in_memory, params_from_iter};

    /// An effect begins under the lock that every write waits for.
    #[test]
    fn what_an_effect_begins_by_is_found_however_long_the_journal_is() {
        let plan = |sql: &str, bound: &[&str]| {
            in_memory(MIGRATIONS, |tx| {
                let sql = format!("EXPLAIN QUERY PLAN {sql}");
                let rows = tx.query_all(&sql, params_from_iter(bound), |row| row.get::<_, String>(3))?;
                Ok(rows.join("; "))
            })
            .unwrap()
        };
        let answers = plan(&newest("answered"), &["s", "1", "a"]);
        assert!(answers.contains("entry_of_answers (session=? AND seq>?)"), "{answers}");
        let others = plan(&newest("intent"), &["s", "1", "a"]);
        assert!(others.contains("entry_by_session"), "the control: {others}");
        let home = plan(&format!("SELECT 1 FROM entry WHERE {OF_HOME} AND seq > ?1"), &["1"]);
        assert!(home.contains("entry_of_home (type=? AND seq>?)"), "{home}");
    }
}
