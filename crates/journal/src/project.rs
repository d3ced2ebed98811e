//! The projections: what each kind of entry changes in the tables beside the chain. Written in the
//! transaction of their entry, and the same functions again when they are rebuilt from the chain.

use crate::{
    Terms, budget,
    fact::{Parent, Purpose, Under},
};
use bailey_protocol::{
    ApprovalId, Digest, EffectId, Kind, SessionId, Timestamp, TokenId, TurnId, WsPath, event::Answer,
    number::Seq,
};
use bailey_store::{StoreError, Tx, params};

/// The longest title, in characters.
const TITLE_CHARS_MAX: usize = 80;

/// The tables, each with the columns that name a row.
pub(crate) const TABLES: &[&str] = &[
    "state",
    "session",
    "effect",
    "approval",
    "touched",
    "revealed",
    "token",
    "token_use",
    "spent",
    "reserved",
];

/// A session, `?1`, and the conversations of all sub-agents below it: what a statement begins with that is
/// about `family`.
pub(crate) const FAMILY: &str = "WITH RECURSIVE family (id) AS (
    SELECT ?1 UNION SELECT session.id FROM session JOIN family ON session.parent = family.id
)";

/// A session's rows lie in these, by the column `session`.
const OF_SESSION: &[&str] = &["effect", "approval", "touched", "revealed", "token"];

pub(crate) fn adopted(tx: &mut Tx<'_>, policy: &str) -> Result<(), StoreError> {
    tx.execute("INSERT OR REPLACE INTO state (name, value) VALUES ('policy', ?1)", params![policy])?;
    void(tx)
}

/// No question, no yes and no token of before counts any more: other rules are in force, or entries are
/// missing by which one of them may have been used up.
pub(crate) fn void(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE approval SET state = 'void' WHERE state IN ('open', 'yes', 'session', 'pattern')",
        params![],
    )?;
    tx.execute("UPDATE token SET live = 0 WHERE live", params![])?;
    Ok(())
}

/// The name of the state that holds the newest time of any entry: a clock behind it was put back.
pub(crate) const NEWEST: &str = "newest";

/// An entry has this time. It is kept in one width, so that the order of its letters is that of time.
pub(crate) fn dated(tx: &mut Tx<'_>, time: Timestamp) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO state (name, value) VALUES (?1, ?2)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE value < excluded.value",
        params![NEWEST, format!("{time:.9}")],
    )?;
    Ok(())
}

pub(crate) fn token_minted(tx: &mut Tx<'_>, token: TokenId, session: SessionId) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO token (id, session, live) VALUES (?1, ?2, 1)",
        params![token.to_string(), session.to_string()],
    )?;
    Ok(())
}

pub(crate) fn token_ended(tx: &mut Tx<'_>, token: TokenId) -> Result<(), StoreError> {
    tx.execute("UPDATE token SET live = 0 WHERE id = ?1", params![token.to_string()])?;
    Ok(())
}

/// One use, of each count.
pub(crate) fn used(tx: &mut Tx<'_>, under: &Under) -> Result<(), StoreError> {
    for count in &under.counts {
        tx.execute(
            "INSERT INTO token_use (count, token, used) VALUES (?1, ?2, 1)
             ON CONFLICT (count) DO UPDATE SET used = used + 1",
            params![count.to_string(), under.token.to_string()],
        )?;
    }
    Ok(())
}

/// The name of the state that an older program's journal has until every projection is made anew: the rows
/// that it wrote may follow from its entries by other rules. No entry makes it, so that it is gone then.
pub(crate) const STALE: &str = "stale";

/// The name of the state that bars everything.
pub(crate) const STOPPED: &str = "stopped";

/// Everything is stopped: what was said yes to before is asked anew once it may go on.
pub(crate) fn stopped(tx: &mut Tx<'_>, now: Timestamp) -> Result<(), StoreError> {
    void(tx)?;
    tx.execute(
        "INSERT OR REPLACE INTO state (name, value) VALUES (?1, ?2)",
        params![STOPPED, now.to_string()],
    )?;
    Ok(())
}

pub(crate) fn released(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    tx.execute("DELETE FROM state WHERE name = ?1", params![STOPPED])?;
    Ok(())
}

/// The name of the state that an extension is in.
pub(crate) fn of_extension(name: &str) -> String {
    format!("extension:{name}")
}

/// The state of an extension that is not asked any more; of one that was started again it is the time of its
/// crash.
pub(crate) const DISABLED: &str = "disabled";

pub(crate) fn extension_crashed(tx: &mut Tx<'_>, name: &str, now: Timestamp) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO state (name, value) VALUES (?1, ?2)
         ON CONFLICT (name) DO UPDATE SET value = ?2 WHERE value <> ?3",
        params![of_extension(name), now.to_string(), DISABLED],
    )?;
    Ok(())
}

pub(crate) fn extension_disabled(tx: &mut Tx<'_>, name: &str) -> Result<(), StoreError> {
    tx.execute(
        "INSERT OR REPLACE INTO state (name, value) VALUES (?1, ?2)",
        params![of_extension(name), DISABLED],
    )?;
    Ok(())
}

pub(crate) fn extension_enabled(tx: &mut Tx<'_>, name: &str) -> Result<(), StoreError> {
    tx.execute("DELETE FROM state WHERE name = ?1", params![of_extension(name)])?;
    Ok(())
}

/// Sessions that are in an archive are in no table. The days up to then count no more: their sums would miss
/// what left.
pub(crate) fn archived(
    tx: &mut Tx<'_>,
    sessions: &[SessionId],
    until: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    for session in sessions {
        removed(tx, *session)?;
    }
    dated(tx, until)?;
    budget::forget_days(tx, until, now)
}

pub(crate) fn opened(
    tx: &mut Tx<'_>,
    id: SessionId,
    now: Timestamp,
    workspace: &WsPath,
    principal: &str,
    model: &str,
) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO session (id, workspace, principal, model, opened, updated) VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
        params![
            id.to_string(),
            workspace.0,
            principal,
            model,
            now.to_string()
        ],
    )?;
    Ok(())
}

/// The conversation of a sub-agent.
pub(crate) fn delegated(
    tx: &mut Tx<'_>,
    id: SessionId,
    now: Timestamp,
    parent: &Parent,
    workspace: &WsPath,
    model: &str,
    task: &str,
) -> Result<(), StoreError> {
    opened(tx, id, now, workspace, "agent", model)?;
    let Parent { session, part } = parent;
    tx.execute(
        "UPDATE session SET parent = ?2, part = ?3, title = ?4 WHERE id = ?1",
        params![id.to_string(), session.to_string(), (*part).min(i64::MAX as u64), title(task)],
    )?;
    Ok(())
}

/// The first line of a text, as far as a title takes it.
pub(crate) fn title(text: &str) -> String {
    text.lines().next().unwrap_or("").chars().take(TITLE_CHARS_MAX).collect()
}

pub(crate) fn resumed(tx: &mut Tx<'_>, id: SessionId, now: Timestamp, model: &str) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE session SET model = ?2, updated = ?3 WHERE id = ?1",
        params![id.to_string(), model, now.to_string()],
    )?;
    Ok(())
}

/// `text` is the message as it is stored.
pub(crate) fn accepted(
    tx: &mut Tx<'_>,
    session: SessionId,
    turn: TurnId,
    now: Timestamp,
    text: &str,
) -> Result<(), StoreError> {
    let new = tx.execute(
        "UPDATE session SET turn = ?2 WHERE id = ?1 AND turn IS NOT ?2",
        params![session.to_string(), turn.to_string()],
    )?;
    if new > 0 {
        budget::turn(tx, session)?;
    }
    let title = title(text);
    tx.execute(
        "UPDATE session SET updated = ?2, title = CASE title WHEN '' THEN ?3 ELSE title END WHERE id = ?1",
        params![session.to_string(), now.to_string(), title],
    )?;
    Ok(())
}

/// Whether it is new.
pub(crate) fn revealed(tx: &mut Tx<'_>, session: SessionId, path: &str) -> Result<bool, StoreError> {
    let new = tx.execute(
        "INSERT OR IGNORE INTO revealed (session, path) VALUES (?1, ?2)",
        params![session.to_string(), path],
    )?;
    Ok(new == 1)
}

pub(crate) fn asked(
    tx: &mut Tx<'_>,
    id: ApprovalId,
    session: SessionId,
    asked: &NewQuestion,
) -> Result<(), StoreError> {
    let action = asked.action.map(|digest| digest.to_string()).unwrap_or_default();
    let terms = serde_json::to_string(&asked.terms)
        .map_err(|error| StoreError::custom(format!("the terms of a question: {error}")))?;
    tx.execute(
        "INSERT INTO approval (id, session, digest, action_digest, state, asked, until, call, named, terms)
         VALUES (?1, ?2, ?3, ?4, 'open', ?5, ?6, ?7, ?8, ?9)",
        params![
            id.to_string(),
            session.to_string(),
            asked.effect.to_string(),
            action,
            asked.entry.0,
            asked.until.map(|until| until.to_string()),
            asked.call,
            asked.terms.named.map(|named| named.to_string()),
            terms
        ],
    )?;
    Ok(())
}

/// A question to a human that begins to wait.
#[derive(Debug, Clone)]
pub(crate) struct NewQuestion {
    /// The digest of the effect that waits, or of the card.
    pub(crate) effect: Digest,
    /// The digest of its action alone.
    pub(crate) action: Option<Digest>,
    /// The question's own entry.
    pub(crate) entry: Seq,
    /// When it runs out.
    pub(crate) until: Option<Timestamp>,
    /// The tool call that waits, as it is stored.
    pub(crate) call: Option<String>,
    /// What an answer can be and covers.
    pub(crate) terms: Terms,
}

pub(crate) fn answered(tx: &mut Tx<'_>, id: ApprovalId, answer: Answer) -> Result<(), StoreError> {
    tx.execute("UPDATE approval SET state = ?2 WHERE id = ?1", params![id.to_string(), state_of(answer)])?;
    Ok(())
}

/// How a question's row stands that was answered so, and on which nothing has begun.
pub(crate) fn state_of(answer: Answer) -> &'static str {
    match answer {
        Answer::Yes => "yes",
        Answer::YesForSession => "session",
        Answer::YesForPattern => "pattern",
        Answer::No => "no",
    }
}

/// A yes is used up; one for the rest of the session, or for a pattern, stays.
pub(crate) fn burnt(tx: &mut Tx<'_>, id: ApprovalId) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE approval SET state = 'burnt' WHERE id = ?1 AND state = 'yes'",
        params![id.to_string()],
    )?;
    Ok(())
}

/// An effect that begins.
pub(crate) struct NewEffect<'a> {
    pub(crate) id: EffectId,
    pub(crate) session: SessionId,
    pub(crate) kind: Kind,
    pub(crate) target: &'a str,
    pub(crate) purpose: Purpose,
    pub(crate) call: Option<String>,
}

pub(crate) fn begun(tx: &mut Tx<'_>, seq: Seq, effect: &NewEffect<'_>) -> Result<(), StoreError> {
    let purpose = match effect.purpose {
        Purpose::Act => "act",
        Purpose::Need => "need",
        Purpose::Own => "own",
    };
    tx.execute(
        "INSERT INTO effect (id, session, kind, target, purpose, call, intent)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            effect.id.to_string(),
            effect.session.to_string(),
            effect.kind.name(),
            effect.target,
            purpose,
            effect.call,
            seq.0
        ],
    )?;
    Ok(())
}

/// A session that was removed has no rows any more.
pub(crate) fn removed(tx: &mut Tx<'_>, session: SessionId) -> Result<(), StoreError> {
    let id = session.to_string();
    tx.execute(
        "DELETE FROM token_use WHERE token IN (SELECT id FROM token WHERE session = ?1)",
        params![id],
    )?;
    for table in OF_SESSION {
        tx.execute(&format!("DELETE FROM {table} WHERE session = ?1"), params![id])?;
    }
    tx.execute("DELETE FROM session WHERE id = ?1", params![id])?;
    budget::removed(tx, session)?;
    for child in children(tx, &id)? {
        removed(tx, child)?;
    }
    Ok(())
}

/// The conversations of a session's sub-agents.
fn children(tx: &Tx<'_>, session: &str) -> Result<Vec<SessionId>, StoreError> {
    let mut statement = tx.prepare_cached("SELECT id FROM session WHERE parent = ?1")?;
    let rows = statement.query_map(params![session], |row| row.get::<_, String>(0))?;
    let names = rows.collect::<Result<Vec<_>, _>>()?;
    Ok(names.iter().filter_map(|name| SessionId::parse(name)).collect())
}
