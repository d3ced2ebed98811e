//! Retention: which sessions nobody needs here any more, and how they leave for an archive.
//!
//! A session leaves whole, with those that it opened or that opened it. Of each of its entries the number and
//! the hash stay, so chain, tree and proofs go on as before; what concerns the home and no session stays in
//! any case. The file is on disk and was read back before the transaction that names it and empties its rows:
//! a crash leaves the rows, or the archive and its entry.

use crate::{
    Entry, Fact, Journal, JournalError, Recorded, SessionLock,
    archive::List,
    chain::{self, Broken},
    fact::{ArchiveFile, Payload, Stored},
    project,
    shelf::{self, ArchiveSummary, PART, Shelf},
};
use bailey_protocol::{Digest, SessionId, Timestamp, number::Seq};
use bailey_store::{Grade, StoreError, Tx, params};
use serde::Serialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Entries of the home, which never leave, though some name a session.
const OF_HOME: &str = "'genesis', 'policy_adopted', 'stopped', 'released', 'extension_failed', 'extension_disabled', \
    'extension_enabled', 'signing_begun', 'archived', 'archive_removed'";

/// An archive that the journal names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Archive {
    /// The entry that names it.
    pub entry: Seq,
    /// The file.
    #[serde(flatten)]
    pub file: ArchiveFile,
    /// How many sessions are in it.
    pub sessions: usize,
    /// The entry that says that the file went because there was no room; what it held cannot be read again.
    pub removed: Option<Seq>,
}

/// Why a session stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RetentionReason {
    /// It was used since, or one that belongs to it was.
    Recent,
    /// It has changes that can be applied, or taken back.
    Changes,
    /// A question of it is open, or a yes unused.
    Question,
    /// A capability token of it still holds.
    Token,
    /// An effect of it has no outcome: it may have happened, and its reservation stands.
    Unfinished,
    /// A process has it.
    InUse,
}

/// A session that nobody needs here any more, with those that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idle {
    /// The day (UTC) of its last entry.
    pub day: String,
    /// The sessions; each that is still in the list of sessions is to be locked before it leaves.
    pub sessions: Vec<SessionId>,
    /// How many entries.
    pub entries: u64,
    /// About how long they are, in bytes.
    pub bytes: u64,
}

/// What may leave, the oldest first, and how many sessions stay, by why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leaving {
    /// What may leave.
    pub idle: Vec<Idle>,
    /// What stays.
    pub kept: BTreeMap<RetentionReason, u64>,
}

impl Journal {
    /// What may leave: sessions that were last used before the day `before` (`2026-01-02`, UTC), and not
    /// today; those with changes to apply or to take back only if that was before the day `changes_before`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn leaving(
        &self,
        before: String,
        changes_before: Option<String>,
    ) -> Result<Leaving, JournalError> {
        let now = self.clock().now();
        Ok(self.store().read(move |tx| leaving(tx, now, &before, changes_before.as_deref())).await?)
    }

    /// The last day (UTC) before this one on which anything was written; none where there is none.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn last_day_before(&self, now: Timestamp) -> Result<Option<String>, JournalError> {
        let today = day_of(&now);
        let day = "substr(json_extract(CAST(body AS TEXT), '$.time'), 1, 10)";
        let sql = format!("SELECT max({day}) FROM entry WHERE archive IS NULL AND {day} < ?1");
        Ok(self.store().read(move |tx| Ok(tx.query_row(&sql, params![today], |row| row.get(0))?)).await?)
    }

    /// Moves sessions of one day into an archive on the shelf; none when one of them came to be needed
    /// meanwhile, and then all of them stay. The caller holds the lock of each that is in the list of
    /// sessions.
    ///
    /// # Errors
    /// When the file or the journal cannot be written; then nothing has left.
    pub async fn archive(
        &self,
        shelf: &Shelf,
        day: &str,
        sessions: &[SessionId],
        _locks: &[SessionLock],
    ) -> Result<Option<Archive>, JournalError> {
        self.checkpoint().await?;
        let line = self.line().await?.ok_or(JournalError::NoCheckpoint(0))?;
        // The last of the very line that goes into the file: another process may have signed more meanwhile.
        let signed = line.checkpoints.last().ok_or(JournalError::NoCheckpoint(0))?.statement();
        let signed = signed.map_err(|forged| JournalError::Unsigned(forged.to_string()))?;
        let name = self.next_name(shelf, day).await?;
        let (of, target) = (ids(sessions), shelf.part(&name)?);
        let written = self
            .store()
            .read(move |tx| Ok(ArchiveSummary::write(tx, target, &of, signed.entries, line.checkpoints)))
            .await??;
        if day_of(&written.until).as_str() > day {
            // Somebody came back to one of them since it was found idle.
            shelf.remove(&format!("{name}{PART}"))?;
            return Ok(None);
        }
        shelf.finish(&name, &written, &line.first)?;
        let (until, file) = (written.until, written.file(name.clone()));
        let fact = Fact::Archived { file: file.clone(), list: written.list, until };
        let entry = Entry { session: None, effect: None, fact, payload: Some(payload(sessions)) };
        let (redactor, now, list) = (self.redactor().clone(), self.clock().now(), written.list);
        let (of, gone) = (ids(sessions), sessions.to_vec());
        #[cfg(feature = "controls")]
        let crash = shelf.crash_at;
        let entered = self.write(Grade::Full, move |tx| {
            if needed(tx, &of, now)? || listed(tx, &of)? != list {
                return Ok(None);
            }
            let seq = chain::append(tx, &redactor, now, &entry)?;
            #[cfg(feature = "controls")]
            crate::shelf::CrashPoint::Entered.reach(crash);
            empty(tx, &of, seq)?;
            project::archived(tx, &gone, until, now)?;
            #[cfg(feature = "controls")]
            crate::shelf::CrashPoint::Emptied.reach(crash);
            Ok(Some(seq))
        });
        let Some(entry) = entered.await? else {
            shelf.remove(&name)?;
            return Ok(None);
        };
        #[cfg(feature = "controls")]
        crate::shelf::CrashPoint::Committed.reach(crash);
        // What left still stands in the write-ahead log; another process that reads it will move it later.
        self.store().checkpoint().await.ok();
        Ok(Some(Archive { entry, file, sessions: sessions.len(), removed: None }))
    }

    /// Removes an archive, and says so first. The hashes of what it held stay.
    ///
    /// # Errors
    /// When the entry cannot be written or the file not be removed.
    pub async fn remove_archive(&self, shelf: &Shelf, archive: &Archive) -> Result<(), JournalError> {
        let name = shelf::plain(&archive.file.name)?;
        let fact = Fact::ArchiveRemoved { archive: archive.entry, file: archive.file.clone() };
        self.append(Entry { session: None, effect: None, fact, payload: None }).await?;
        shelf.remove(name)
    }

    /// All archives that the journal names, the oldest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn archives(&self) -> Result<Vec<Archive>, JournalError> {
        let named = self.store().read(named).await?;
        Ok(named.into_iter().map(|(archive, _)| archive).collect())
    }

    /// All sessions that are in archives, and of which nothing is left here: an entry that somebody else
    /// wrote may name one that never left.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn archived_sessions(&self) -> Result<Vec<SessionId>, JournalError> {
        Ok(self.store().read(gone).await?)
    }

    /// What to say of a session by this name that is in an archive.
    pub(crate) async fn archived_session(&self, name: &str) -> Result<Option<JournalError>, JournalError> {
        let named = self.store().read(named).await?;
        let is_it = |id: &SessionId| name.len() >= 4 && id.to_string().ends_with(name);
        let found = named.iter().find(|(_, sessions)| sessions.iter().any(is_it));
        Ok(found.map(|(archive, _)| archive.holds(format!("the session `{name}`"))))
    }

    async fn next_name(&self, shelf: &Shelf, day: &str) -> Result<String, JournalError> {
        let taken: BTreeSet<String> =
            self.archives().await?.into_iter().map(|archive| archive.file.name).collect();
        let name =
            |n: u32| if n < 2 { format!("journal-{day}.jsonl") } else { format!("journal-{day}.{n}.jsonl") };
        Ok((1..).map(name).find(|name| !taken.contains(name) && !shelf.has(name)).unwrap_or_default())
    }
}

impl Archive {
    /// The error of whoever asks for something that it holds.
    pub(crate) fn holds(&self, what: String) -> JournalError {
        let how = match self.removed {
            None => "the file has all of it, one entry a line",
            Some(_) => "which was removed because there was no room (`journal.max_size_mib` in config.toml)",
        };
        JournalError::Archived { what, archive: self.file.name.clone(), how }
    }
}

/// What the chain says of archives, to compare with what left.
#[derive(Default)]
pub(crate) struct Archives {
    named: BTreeMap<u64, (ArchiveFile, Digest)>,
    removed: BTreeMap<Seq, Seq>,
}

impl Archives {
    pub(crate) fn hear(&mut self, seq: u64, fact: Fact) {
        match fact {
            Fact::Archived { file, list, .. } => drop(self.named.insert(seq, (file, list))),
            Fact::ArchiveRemoved { archive, .. } => drop(self.removed.insert(archive, Seq(seq))),
            _ => {}
        }
    }

    /// Whether exactly those entries are away that the chain says.
    pub(crate) fn finish(self, mut left: BTreeMap<u64, List>) -> Result<Vec<Archive>, Broken> {
        let mut archives = Vec::new();
        for (seq, (file, list)) in self.named {
            let here = left.remove(&seq).unwrap_or_default();
            if here.clone().digest() != list {
                let name = &file.name;
                let what =
                    format!("the entries that are said to be in `{name}` are not those that went into it");
                return Err(Broken { seq, what });
            }
            let entry = Seq(seq);
            archives.push(Archive { entry, file, sessions: 0, removed: self.removed.get(&entry).copied() });
        }
        Ok(archives)
    }
}

/// The sessions that an entry of an archive names.
pub(crate) fn sessions(recorded: &Recorded) -> Vec<SessionId> {
    recorded.payload.as_deref().and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
}

fn payload(sessions: &[SessionId]) -> Payload {
    Payload::Json(json!(sessions))
}

/// Sessions as a query takes them.
fn ids(sessions: &[SessionId]) -> String {
    json!(sessions).to_string()
}

fn named(tx: &Tx<'_>) -> Result<Vec<(Archive, Vec<SessionId>)>, StoreError> {
    let sql = "SELECT body, bytes FROM entry LEFT JOIN payload USING (seq)
               WHERE type IN ('archived', 'archive_removed') ORDER BY seq";
    let rows = tx.query_all(sql, params![], |row| {
        Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, Option<Vec<u8>>>(1)?))
    })?;
    let mut found: Vec<(Archive, Vec<SessionId>)> = Vec::new();
    for (body, payload) in rows {
        let recorded = Recorded { entry: stored(&body)?, payload };
        let of = sessions(&recorded);
        match recorded.entry.fact {
            Fact::Archived { file, .. } => {
                let archive = Archive { entry: recorded.entry.seq, file, sessions: of.len(), removed: None };
                found.push((archive, of));
            }
            Fact::ArchiveRemoved { archive, .. } => {
                let is_it = |(known, _): &&mut (Archive, Vec<SessionId>)| known.entry == archive;
                found.iter_mut().filter(is_it).for_each(|(it, _)| it.removed = Some(recorded.entry.seq));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// The sessions that archives name, without those that have an entry or a row here.
fn gone(tx: &Tx<'_>) -> Result<Vec<SessionId>, StoreError> {
    let here = format!(
        "SELECT id FROM session UNION
         SELECT session FROM entry WHERE session IS NOT NULL AND type NOT IN ({OF_HOME})"
    );
    let here: BTreeSet<String> = tx.query_all(&here, params![], |row| row.get(0))?.into_iter().collect();
    let all = named(tx)?.into_iter().flat_map(|(_, sessions)| sessions);
    Ok(all.filter(|id| !here.contains(&id.to_string())).collect())
}

pub(crate) fn stored(body: &[u8]) -> Result<Stored, StoreError> {
    serde_json::from_slice(body)
        .map_err(|error| StoreError::custom(format!("an entry cannot be read: {error}")))
}

/// A session as far as retention asks.
struct Candidate {
    day: String,
    entries: u64,
    bytes: u64,
    kept: Option<RetentionReason>,
}

fn leaving(
    tx: &Tx<'_>,
    now: Timestamp,
    before: &str,
    changes_before: Option<&str>,
) -> Result<Leaving, StoreError> {
    let today = day_of(&now);
    let parents: BTreeMap<String, String> = tx
        .query_all("SELECT id, parent FROM session WHERE parent IS NOT NULL", params![], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .into_iter()
        .collect();
    let mut families: BTreeMap<String, Vec<(SessionId, Candidate)>> = BTreeMap::new();
    for (id, last, entries, bytes) in counted(tx)? {
        let Some(session) = SessionId::parse(&id) else { continue };
        let body = "SELECT body FROM entry WHERE seq = ?1";
        let body: Vec<u8> = tx.query_row(body, params![last], |row| row.get(0))?;
        let is_old = |day: &str, limit: &str| day < limit && day < today.as_str();
        let mut day = day_of(&stored(&body)?.time);
        // A clock that was put back lets what was written before look younger than the last.
        if is_old(&day, before) {
            let latest = "SELECT max(substr(json_extract(CAST(body AS TEXT), '$.time'), 1, 10)) FROM entry WHERE session = ?1";
            day = day.max(tx.query_row(latest, params![id], |row| row.get(0))?);
        }
        let is_old = |limit: &str| is_old(&day, limit);
        let kept = match need(tx, &id, now)? {
            _ if !is_old(before) => Some(RetentionReason::Recent),
            Some(RetentionReason::Changes) if changes_before.is_some_and(is_old) => None,
            need => need,
        };
        let candidate = Candidate { day, entries, bytes, kept };
        families.entry(top(&parents, &id)).or_default().push((session, candidate));
    }
    Ok(sorted(families))
}

/// Each session of the journal with its last entry, how many there are, and how long they are.
fn counted(tx: &Tx<'_>) -> Result<Vec<(String, u64, u64, u64)>, StoreError> {
    let sql = format!(
        "SELECT session, max(seq), count(*), sum(length(body) + coalesce(length(bytes), 0))
         FROM entry LEFT JOIN payload USING (seq)
         WHERE session IS NOT NULL AND type NOT IN ({OF_HOME}) GROUP BY session"
    );
    Ok(tx.query_all(&sql, params![], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?)
}

fn sorted(families: BTreeMap<String, Vec<(SessionId, Candidate)>>) -> Leaving {
    let mut leaving = Leaving::default();
    for members in families.into_values() {
        if let Some(why) = members.iter().find_map(|(_, one)| one.kept) {
            *leaving.kept.entry(why).or_default() += members.len() as u64;
            continue;
        }
        let mut idle = Idle { day: String::new(), sessions: Vec::new(), entries: 0, bytes: 0 };
        for (session, one) in members {
            idle.day = idle.day.max(one.day);
            idle.sessions.push(session);
            (idle.entries, idle.bytes) = (idle.entries + one.entries, idle.bytes + one.bytes);
        }
        leaving.idle.push(idle);
    }
    leaving.idle.sort_by(|one, other| (&one.day, &one.sessions).cmp(&(&other.day, &other.sessions)));
    leaving
}

/// The session that stands above all that opened this one.
fn top(parents: &BTreeMap<String, String>, id: &str) -> String {
    let mut at = id;
    // As many steps as there are: a circle cannot be, and would not hang.
    for _ in 0..=parents.len() {
        match parents.get(at) {
            Some(parent) => at = parent,
            None => break,
        }
    }
    at.to_owned()
}

/// Whether a session has a yes that nothing was begun on yet. When its question would have run out says
/// nothing of it. One to a question about no effect, which has no action, is used up by being given.
const UNUSED: &str = "SELECT EXISTS (
    SELECT 1 FROM approval WHERE session = ?1 AND action_digest <> '' AND (
        state = 'yes' OR state IN ('session', 'pattern') AND NOT EXISTS (
            SELECT 1 FROM entry WHERE entry.session = ?1 AND type = 'intent'
                AND json_extract(CAST(body AS TEXT), '$.approval') = approval.id
        )
    )
)";

/// Why a session cannot leave, whenever it was used.
fn need(tx: &Tx<'_>, id: &str, now: Timestamp) -> Result<Option<RetentionReason>, StoreError> {
    let any = |sql: &str| tx.query_row(sql, params![id], |row| row.get::<_, bool>(0));
    if any("SELECT EXISTS (SELECT 1 FROM effect WHERE session = ?1 AND outcome IS NULL)")? {
        return Ok(Some(RetentionReason::Unfinished));
    }
    if any(UNUSED)? {
        return Ok(Some(RetentionReason::Question));
    }
    let until = "SELECT until FROM approval WHERE session = ?1 AND state = 'open'";
    let until = tx.query_all(until, params![id], |row| row.get::<_, Option<String>>(0))?;
    if until.into_iter().any(|until| is_ahead(until.as_deref(), now)) {
        return Ok(Some(RetentionReason::Question));
    }
    let expires = "SELECT json_extract(CAST(body AS TEXT), '$.expires') FROM entry
                   JOIN token ON token.id = json_extract(CAST(body AS TEXT), '$.token') AND token.live
                   WHERE entry.session = ?1 AND type = 'token_minted'";
    let expires = tx.query_all(expires, params![id], |row| row.get::<_, Option<String>>(0))?;
    if expires.into_iter().any(|expires| is_ahead(expires.as_deref(), now)) {
        return Ok(Some(RetentionReason::Token));
    }
    let has_changes = any("SELECT EXISTS (SELECT 1 FROM touched WHERE session = ?1)")?;
    Ok(has_changes.then_some(RetentionReason::Changes))
}

/// Whether a time is still to come; what has none has no end.
fn is_ahead(time: Option<&str>, now: Timestamp) -> bool {
    time.and_then(|time| time.parse::<Timestamp>().ok()).is_none_or(|time| time > now)
}

/// Whether one of the sessions came to be needed since it was found idle. Its changes were seen then.
fn needed(tx: &Tx<'_>, ids: &str, now: Timestamp) -> Result<bool, StoreError> {
    for id in tx.query_all("SELECT value FROM json_each(?1)", params![ids], |row| row.get::<_, String>(0))? {
        let opened = "SELECT EXISTS (SELECT 1 FROM session WHERE parent = ?1
                      AND id NOT IN (SELECT value FROM json_each(?2)))";
        if need(tx, &id, now)?.is_some_and(|why| why != RetentionReason::Changes)
            || tx.query_row(opened, params![id, ids], |row| row.get(0))?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The numbers and hashes of what would leave.
pub(crate) fn entries_of(tx: &Tx<'_>, ids: &str) -> Result<Vec<(u64, Digest)>, StoreError> {
    let sql = format!(
        "SELECT seq, hash FROM entry
         WHERE session IN (SELECT value FROM json_each(?1)) AND type NOT IN ({OF_HOME}) ORDER BY seq"
    );
    Ok(tx.query_all(&sql, params![ids], |row| Ok((row.get(0)?, Digest(row.get(1)?))))?)
}

fn listed(tx: &Tx<'_>, ids: &str) -> Result<Digest, StoreError> {
    let mut list = List::default();
    entries_of(tx, ids)?.iter().for_each(|(number, hash)| list.push(*number, hash));
    Ok(list.digest())
}

/// Takes out of the rows what is in the archive now.
fn empty(tx: &mut Tx<'_>, ids: &str, archive: Seq) -> Result<(), StoreError> {
    let of = format!("session IN (SELECT value FROM json_each(?1)) AND type NOT IN ({OF_HOME})");
    tx.execute(
        &format!("DELETE FROM payload WHERE seq IN (SELECT seq FROM entry WHERE {of})"),
        params![ids],
    )?;
    tx.execute(
        &format!(
            "UPDATE entry SET type = '', session = NULL, effect = NULL, body = x'', archive = ?2 WHERE {of}"
        ),
        params![ids, archive.0],
    )?;
    Ok(())
}

/// The day of a time, in UTC.
pub(crate) fn day_of(time: &Timestamp) -> String {
    time.to_string().chars().take(10).collect()
}
