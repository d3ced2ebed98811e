//! Reading the journal back: sessions, transcripts, the trail.

use crate::{
    Journal, JournalError,
    begin::state,
    chain::{self, Broken, Verified},
    fact::{Confined, Fact, Recorded},
    project::{FAMILY, title},
};
use bailey_protocol::{Digest, SessionId, Speaker, Timestamp, Touched, TurnId, WsPath, number::Seq};
use bailey_store::{OptionalExtension as _, Row, SqlResult, StoreError, Tx, params};

/// A session as its projection holds it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SessionInfo {
    /// Its name.
    pub id: SessionId,
    /// The project.
    pub workspace: WsPath,
    /// Whose it is.
    pub principal: String,
    /// The model it last used.
    pub model: String,
    /// When it began.
    pub opened: Timestamp,
    /// When something last happened.
    pub updated: Timestamp,
    /// The first line of its first message; without any, of its first command.
    pub title: String,
    /// Tokens used so far.
    pub tokens_used: u64,
    /// Whether it has commands of the owner's and no message to an agent.
    pub is_of_commands: bool,
}

/// What to read.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Entries of this session only.
    pub session: Option<SessionId>,
    /// Entries after this one.
    pub after: u64,
    /// The last so many of them; none: all.
    pub last: Option<u32>,
    /// The first so many of what is left; none: all.
    pub first: Option<u32>,
}

/// The columns of a [`SessionInfo`]. Where no message gave a title, the session is called after its first
/// command: such are those of commands without an agent.
const SESSION: &str = "
    SELECT id, workspace, principal, model, opened, updated,
    CASE title WHEN '' THEN ifnull(
        (SELECT target FROM entry JOIN effect ON effect.id = entry.effect
         WHERE entry.session = session.id AND type = 'intent' AND kind = 'exec' ORDER BY seq LIMIT 1), '')
    ELSE title END,
    (SELECT used FROM spent WHERE account = 'session:' || session.id AND unit = 'tokens'),
    title = '' AND EXISTS (
        SELECT 1 FROM entry JOIN effect ON effect.id = entry.effect
        WHERE entry.session = session.id AND type = 'intent' AND kind = 'exec')
    FROM session";

/// How many of a session's last digits are shown.
const SHOWN_DIGITS: usize = 8;

/// The fewest digits that name a session.
const NAME_DIGITS_MIN: usize = 4;
/// The fewest digits of a piece of the whole name.
const WHOLE_DIGITS_MIN: usize = 12;

impl Journal {
    /// All sessions, the newest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn sessions(&self) -> Result<Vec<SessionInfo>, JournalError> {
        Ok(self
            .store()
            .read(|db| {
                let mut statement =
                    db.prepare_cached(&format!("{SESSION} WHERE parent IS NULL ORDER BY updated DESC"))?;
                let rows = statement.query_map(params![], session)?;
                let mut sessions = Vec::new();
                for row in rows {
                    sessions.push(row??);
                }
                Ok(sessions)
            })
            .await?)
    }

    /// Entries in order, each with its payload. Beware of long journals: this reads them into memory; page
    /// with `after` and `last`.
    ///
    /// # Errors
    /// When the journal cannot be read, or an entry is of an unknown version.
    pub async fn entries(&self, query: Query) -> Result<Vec<Recorded>, JournalError> {
        let look = move |db: &Tx<'_>| {
            // Forwards where all are wanted or the first, so that a page costs a page.
            let mut statement = db.prepare_cached(match query.last {
                None => {
                    "SELECT body, bytes FROM entry LEFT JOIN payload USING (seq)
                     WHERE seq > ?1 AND archive IS NULL AND (?2 IS NULL OR session = ?2) AND ?3 < 0 ORDER BY seq LIMIT ?4"
                }
                Some(_) => {
                    "SELECT body, bytes FROM (
                        SELECT entry.seq AS seq, body, bytes FROM entry LEFT JOIN payload USING (seq)
                        WHERE entry.seq > ?1 AND archive IS NULL AND (?2 IS NULL OR session = ?2)
                        ORDER BY entry.seq DESC LIMIT ?3
                     ) ORDER BY seq LIMIT ?4"
                }
            })?;
            let [last, first] = [query.last, query.first].map(|many| many.map_or(-1, i64::from));
            let session = query.session.map(|id| id.to_string());
            let rows = statement.query_map(params![query.after, session, last, first], stored_row)?;
            rows.map(|row| recorded(row?)).collect()
        };
        // The newest alone is what every session looks at, and is not worth a connection.
        Ok(match query.last {
            Some(1) => self.store().glance(look).await?,
            _ => self.store().read(look).await?,
        })
    }

    /// What came into a session as text, and into the conversations of its sub-agents, with the intents that
    /// brought it, in the journal's order: the newest of it, up to so many bytes; and whether that is all. Of
    /// intents the payload is left out.
    ///
    /// # Errors
    /// When the journal cannot be read, or an entry is of an unknown version.
    pub async fn sources(
        &self,
        session: SessionId,
        bytes_max: usize,
    ) -> Result<(Vec<Recorded>, bool), JournalError> {
        Ok(self
            .store()
            .read(move |db| {
                // Their numbers first: what is sorted with its bytes is held whole.
                let numbers = format!(
                    "{FAMILY} SELECT seq FROM entry WHERE session IN (SELECT id FROM family)
                     AND type IN ('accepted', 'pinned', 'guide', 'observation', 'intent', 'offered') ORDER BY seq DESC",
                );
                let numbers = db.query_all(&numbers, params![session.to_string()], |row| row.get::<_, u64>(0))?;
                let mut statement = db.prepare_cached(
                    "SELECT body, CASE type WHEN 'intent' THEN NULL ELSE bytes END FROM entry LEFT JOIN payload USING (seq) WHERE seq = ?1",
                )?;
                let mut left = bytes_max;
                let (mut found, mut is_all) = (Vec::new(), true);
                for number in numbers {
                    let row: Recorded = recorded(statement.query_row(params![number], stored_row)?)?;
                    let bytes = row.payload.as_ref().map_or(0, Vec::len);
                    let Some(rest) = left.checked_sub(bytes) else {
                        is_all = false;
                        break;
                    };
                    left = rest;
                    found.push(row);
                }
                found.reverse();
                Ok((found, is_all))
            })
            .await?)
    }

    /// What happened, without what was said: the first `first` entries after `after`, of which replies alone
    /// have their payload, for the counts in it. It does not grow with what tools bring.
    ///
    /// # Errors
    /// When the journal cannot be read, or an entry is of an unknown version.
    pub async fn outline(&self, after: u64, first: u32) -> Result<Vec<Recorded>, JournalError> {
        Ok(self
            .store()
            .read(move |db| {
                let mut statement = db.prepare_cached(
                    "SELECT body, CASE type WHEN 'reply' THEN (SELECT bytes FROM payload WHERE payload.seq = entry.seq) END
                     FROM entry WHERE seq > ?1 AND archive IS NULL ORDER BY seq LIMIT ?2",
                )?;
                let rows = statement.query_map(params![after, first], stored_row)?;
                rows.map(|row| recorded(row?)).collect()
            })
            .await?)
    }

    /// The last `last` effects that were decided, of one session or of all: each by the entries that say so
    /// (a question, a denial, an intent), and before them what was revealed to its session.
    ///
    /// # Errors
    /// When the journal cannot be read, or an entry is of an unknown version.
    pub async fn decided(
        &self,
        session: Option<SessionId>,
        last: u32,
    ) -> Result<Vec<Recorded>, JournalError> {
        Ok(self
            .store()
            .read(move |db| {
                let mut statement = db.prepare_cached(
                    "WITH decided AS (
                        SELECT seq, session FROM entry WHERE type IN ('intent', 'denied', 'asked', 'judged')
                        AND (?1 IS NULL OR session = ?1) ORDER BY seq DESC LIMIT ?2
                     )
                     SELECT body, bytes FROM entry LEFT JOIN payload USING (seq)
                     WHERE seq IN (SELECT seq FROM decided)
                        OR type = 'revealed' AND session IN (SELECT session FROM decided) ORDER BY seq",
                )?;
                let session = session.map(|id| id.to_string());
                let rows = statement.query_map(params![session, last], stored_row)?;
                rows.map(|row| recorded(row?)).collect()
            })
            .await?)
    }

    /// Writes entries as JSON lines, each as it is stored, with its hash and payload.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn export(&self, after: u64, limit: u32) -> Result<Vec<(u64, String)>, JournalError> {
        Ok(self
            .store()
            .read(move |db| {
                let mut statement = db.prepare_cached(
                    "SELECT entry.seq, body, hash, bytes FROM entry LEFT JOIN payload USING (seq)
                     WHERE entry.seq > ?1 AND archive IS NULL ORDER BY entry.seq LIMIT ?2",
                )?;
                let rows = statement.query_map(params![after, limit], |row| {
                    let seq: u64 = row.get(0)?;
                    let body: Vec<u8> = row.get(1)?;
                    let hash: [u8; 32] = row.get(2)?;
                    let payload: Option<Vec<u8>> = row.get(3)?;
                    Ok((seq, export_line(&body, Digest(hash), payload.as_deref())))
                })?;
                rows.collect::<Result<Vec<_>, _>>().map_err(Into::into)
            })
            .await?)
    }

    /// Checks every link of the chain, every payload, and every archive.
    ///
    /// # Errors
    /// [`JournalError::Broken`] names the first entry that does not fit, [`JournalError::Archives`] each
    /// archive that is not as it was written, once the chain itself holds.
    pub async fn verify(&self) -> Result<Verified, JournalError> {
        let verified = self.verify_chain().await?;
        self.verify_archives(&verified.archives).await?;
        Ok(verified)
    }

    /// The same without a look into the archives: the hashes of what they hold are here. A copy of the
    /// journal alone holds by it.
    ///
    /// # Errors
    /// [`JournalError::Broken`] names the first entry that does not fit.
    pub async fn verify_chain(&self) -> Result<Verified, JournalError> {
        let found: Result<Verified, Broken> = self.store().read(|db| chain::verify(db, 0)).await?;
        Ok(found?)
    }

    /// The same for the newest `count` entries, which costs the same however long the journal is.
    ///
    /// # Errors
    /// [`JournalError::Broken`] names the first entry that does not fit.
    pub async fn verify_tail(&self, count: u64) -> Result<Verified, JournalError> {
        // On the connection that writes: no write is begun before this came out well.
        let look = move |db: &Tx<'_>| chain::verify(db, chain::last(db)?.saturating_sub(count));
        let found: Result<Verified, Broken> = self.store().glance(look).await?;
        Ok(found?)
    }

    /// Checks each page of the file, and that every index and every table beside the chain has what belongs
    /// into it: the walk over the chain goes from entry to entry, and comes by none of these.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] says what is damaged; others when the journal cannot be read.
    pub async fn verify_pages(&self) -> Result<(), JournalError> {
        let found = self.store().integrity().await?;
        let Some(first) = found.first() else { return Ok(()) };
        let mut detail = first.split_whitespace().collect::<Vec<_>>().join(" ");
        if found.len() > 1 {
            detail.push_str(&format!("; and {} more", found.len() - 1));
        }
        Err(StoreError::Corrupt { path: self.store().path().to_path_buf(), detail }.into())
    }

    /// The policy in force; none before the first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn policy(&self) -> Result<Option<Digest>, JournalError> {
        let policy = self.store().glance(|db| state(db, "policy")).await?;
        Ok(policy.as_deref().and_then(Digest::parse))
    }

    /// What the session's layer holds, with what the project held there when the session first touched it.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn touched(&self, session: SessionId) -> Result<Vec<Touched>, JournalError> {
        Ok(self
            .store()
            .read(move |db| {
                let mut statement = db.prepare_cached(
                    "SELECT path, base, unsure FROM touched WHERE session = ?1 ORDER BY path",
                )?;
                let rows = statement.query_map(params![session.to_string()], |row| {
                    let base: Option<String> = row.get(1)?;
                    Ok(Touched {
                        path: WsPath(row.get(0)?),
                        base: base.as_deref().and_then(Digest::parse),
                        unsure: row.get(2)?,
                    })
                })?;
                rows.collect::<Result<Vec<_>, _>>().map_err(Into::into)
            })
            .await?)
    }

    /// The entry by which a message of this name was accepted in this session, where it was.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn accepted_as(&self, session: SessionId, key: &str) -> Result<Option<Seq>, JournalError> {
        let key = self.redactor().redact(key).text.into_owned();
        Ok(self
            .store()
            .glance(move |db| {
                let mut said = db.prepare_cached(
                    "SELECT seq FROM entry
                     WHERE session = ?1 AND type = 'accepted' AND json_extract(CAST(body AS TEXT), '$.key') = ?2",
                )?;
                let seq = said.query_row(params![session.to_string(), key], |row| row.get(0).map(Seq));
                Ok(seq.optional()?)
            })
            .await?)
    }

    /// The turn of a session that began and has no end yet.
    ///
    /// # Errors
    /// As [`Journal::last_turn`].
    pub async fn open_turn(&self, session: SessionId) -> Result<Option<TurnId>, JournalError> {
        Ok(self.last_turn(session).await?.and_then(|(_, open)| open))
    }

    /// Where the last turn of a session ended, or began; and that turn, where it has no end yet.
    ///
    /// # Errors
    /// When the journal cannot be read, or an entry is of an unknown version.
    pub async fn last_turn(&self, session: SessionId) -> Result<Option<(Seq, Option<TurnId>)>, JournalError> {
        let last = self.store().glance(move |db| {
            let mut statement = db.prepare_cached(
                "SELECT body, NULL FROM entry WHERE session = ?1 AND type IN ('accepted', 'turn_ended') AND archive IS NULL
                 ORDER BY seq DESC LIMIT 1",
            )?;
            let mut rows = statement.query_map(params![session.to_string()], stored_row)?;
            rows.next().map(|row| recorded(row?)).transpose()
        });
        Ok(last.await?.map(|last: Recorded| match last.entry.fact {
            Fact::Accepted { turn, .. } => (last.entry.seq, Some(turn)),
            _ => (last.entry.seq, None),
        }))
    }

    /// Where the last turn of a session ended, and why; `None` when no turn has ended.
    ///
    /// # Errors
    /// When the journal cannot be read, or an entry is of an unknown version.
    pub async fn last_end(&self, session: SessionId) -> Result<Option<(Seq, String)>, JournalError> {
        let last = self.store().glance(move |db| {
            let mut statement = db.prepare_cached(
                "SELECT body, NULL FROM entry WHERE session = ?1 AND type = 'turn_ended' AND archive IS NULL
                 ORDER BY seq DESC LIMIT 1",
            )?;
            let mut rows = statement.query_map(params![session.to_string()], stored_row)?;
            rows.next().map(|row| recorded(row?)).transpose()
        });
        Ok(last.await?.and_then(|last: Recorded| match last.entry.fact {
            Fact::TurnEnded { reason, .. } => Some((last.entry.seq, reason)),
            _ => None,
        }))
    }

    /// The person who said the last message of a session; `None` for the owner at a terminal.
    ///
    /// # Errors
    /// When the journal cannot be read, or an entry is of an unknown version.
    pub async fn speaker(&self, session: SessionId) -> Result<Option<Speaker>, JournalError> {
        let last = self.store().glance(move |db| {
            let mut statement = db.prepare_cached(
                "SELECT body, NULL FROM entry WHERE session = ?1 AND type = 'accepted' AND archive IS NULL
                 ORDER BY seq DESC LIMIT 1",
            )?;
            let mut rows = statement.query_map(params![session.to_string()], stored_row)?;
            rows.next().map(|row| recorded(row?)).transpose()
        });
        Ok(last.await?.and_then(|last: Recorded| match last.entry.fact {
            Fact::Accepted { by, .. } => by,
            _ => None,
        }))
    }

    /// Whether the journal was brought back from a copy since this entry: what had begun by then may have
    /// ended where the copy was made.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn is_restored_since(&self, at: Seq) -> Result<bool, JournalError> {
        let restored = self.store().glance(move |db| {
            let sql = "SELECT EXISTS (SELECT 1 FROM entry WHERE seq > ?1 AND type = 'restored')";
            Ok(db.prepare_cached(sql)?.query_row(params![at.0], |row| row.get(0))?)
        });
        Ok(restored.await?)
    }

    /// Masked files that the human revealed for this session.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn revealed(&self, session: SessionId) -> Result<Vec<WsPath>, JournalError> {
        Ok(self
            .store()
            .glance(move |db| {
                // A row that no entry says was never shown to a person.
                let mut statement = db.prepare_cached(
                    "SELECT path FROM revealed WHERE session = ?1 AND EXISTS (
                         SELECT 1 FROM entry WHERE entry.session = ?1 AND type = 'revealed'
                             AND json_extract(CAST(body AS TEXT), '$.path') = revealed.path
                     ) ORDER BY path",
                )?;
                let rows = statement.query_map(params![session.to_string()], |row| row.get(0).map(WsPath))?;
                rows.collect::<Result<Vec<_>, _>>().map_err(Into::into)
            })
            .await?)
    }

    /// Which named agent works in a session; none where it is the home's own.
    ///
    /// # Errors
    /// When the journal cannot be read, or an entry is of an unknown version.
    pub async fn agent_of(&self, session: SessionId) -> Result<Option<String>, JournalError> {
        Ok(self.beginning(session, "agent").await?.and_then(|fact| match fact {
            Fact::Agent { agent } => Some(agent),
            _ => None,
        }))
    }

    /// What a session's agent may, where it acts by a token; none where it acts by the rules.
    ///
    /// # Errors
    /// When the journal cannot be read, or an entry is of an unknown version.
    pub async fn confined(&self, session: SessionId) -> Result<Option<Confined>, JournalError> {
        Ok(self.beginning(session, "confined").await?.and_then(|fact| match fact {
            Fact::Confined(confined) => Some(confined),
            _ => None,
        }))
    }

    /// What stands right behind a session's beginning, and holds for good.
    async fn beginning(&self, session: SessionId, name: &'static str) -> Result<Option<Fact>, JournalError> {
        let found = self.store().glance(move |db| {
            let mut statement = db.prepare_cached(
                "SELECT body, NULL FROM (
                    SELECT type, body, archive FROM entry WHERE session = ?1 ORDER BY seq LIMIT 4
                 ) WHERE type = ?2 AND archive IS NULL",
            )?;
            let mut rows = statement.query_map(params![session.to_string(), name], stored_row)?;
            rows.next().map(|row| recorded(row?)).transpose()
        });
        Ok(found.await?.map(|found: Recorded| found.entry.fact))
    }

    /// One session, by its whole name, the end of it, or any piece of the digits that are shown; at least
    /// four digits, of which only one session has them.
    ///
    /// # Errors
    /// [`JournalError::ShortSession`] when fewer than four digits are given, [`JournalError::NoSuchSession`]
    /// when none fits, [`JournalError::SeveralSessions`] when several do, [`JournalError::Archived`] when it
    /// is in an archive.
    pub async fn session(&self, name: &str) -> Result<SessionInfo, JournalError> {
        self.named(name, true).await
    }

    /// The same, or the conversation of a sub-agent, of which there is nothing to do but to read it.
    ///
    /// # Errors
    /// As for [`Journal::session`].
    pub async fn conversation(&self, name: &str) -> Result<SessionInfo, JournalError> {
        self.named(name, false).await
    }

    async fn named(&self, name: &str, is_own: bool) -> Result<SessionInfo, JournalError> {
        let (name, asked) = (name.to_ascii_lowercase(), name.to_owned());
        let look = move |db: &Tx<'_>| {
            let ids = "SELECT id FROM session WHERE parent IS NULL OR NOT ?1 ORDER BY updated DESC";
            let ids = db.query_all(ids, params![is_own], |row| row.get::<_, String>(0))?;
            let fitting = fitting(&ids, &name);
            let [only] = fitting.as_slice() else { return Ok(Err(fitting)) };
            Ok(Ok(db.query_row(&format!("{SESSION} WHERE id = ?1"), params![only], session)??))
        };
        match self.store().read(look).await? {
            Ok(found) => Ok(found),
            Err(none) if none.is_empty() => {
                let missing = match asked.len() < NAME_DIGITS_MIN {
                    true => JournalError::ShortSession(asked.clone()),
                    false => JournalError::NoSuchSession(asked.clone()),
                };
                Err(self.archived_session(&asked).await?.unwrap_or(missing))
            }
            Err(several) => {
                let sessions = several.iter().map(|id| shown(id)).collect::<Vec<_>>().join(", ");
                Err(JournalError::SeveralSessions { name: asked, sessions })
            }
        }
    }
}

/// The sessions that are named so: by the end of a name or the beginning of the digits that are shown, else
/// by any piece of these, else by a piece of the whole name that tells more than its time.
fn fitting(ids: &[String], name: &str) -> Vec<String> {
    if name.len() < NAME_DIGITS_MIN {
        return Vec::new();
    }
    let by = |fits: &dyn Fn(&String) -> bool| ids.iter().filter(|id| fits(id)).cloned().collect::<Vec<_>>();
    let found = by(&|id| id.ends_with(name) || shown(id).starts_with(name));
    let found = if found.is_empty() { by(&|id| shown(id).contains(name)) } else { found };
    // All sessions of some minutes begin alike.
    let is_long = name.len() >= WHOLE_DIGITS_MIN;
    if found.is_empty() && is_long { by(&|id| id.contains(name)) } else { found }
}

/// The digits of a session's name that are shown.
fn shown(id: &str) -> &str {
    id.get(id.len().saturating_sub(SHOWN_DIGITS)..).unwrap_or(id)
}

pub(crate) fn stored_row(row: &Row<'_>) -> SqlResult<(Vec<u8>, Option<Vec<u8>>)> {
    Ok((row.get(0)?, row.get(1)?))
}

pub(crate) fn recorded((body, payload): (Vec<u8>, Option<Vec<u8>>)) -> Result<Recorded, StoreError> {
    let entry = serde_json::from_slice(&body)
        .map_err(|error| StoreError::custom(format!("an entry cannot be read: {error}")))?;
    Ok(Recorded { entry, payload })
}

fn session(row: &Row<'_>) -> SqlResult<Result<SessionInfo, StoreError>> {
    let id: String = row.get(0)?;
    let (opened, updated): (String, String) = (row.get(4)?, row.get(5)?);
    let info = || {
        Some(SessionInfo {
            id: SessionId::parse(&id)?,
            workspace: WsPath(row.get(1).ok()?),
            principal: row.get(2).ok()?,
            model: row.get(3).ok()?,
            opened: opened.parse().ok()?,
            updated: updated.parse().ok()?,
            title: title(&row.get::<_, String>(6).ok()?),
            tokens_used: row.get::<_, Option<u64>>(7).ok()?.unwrap_or(0),
            is_of_commands: row.get(8).ok()?,
        })
    };
    Ok(info().ok_or_else(|| StoreError::custom(format!("the session `{id}` cannot be read"))))
}

fn export_line(body: &[u8], hash: Digest, payload: Option<&[u8]>) -> String {
    let body = String::from_utf8_lossy(body);
    let payload = payload.map(|bytes| bailey_protocol::Blob(bytes.to_vec()));
    let payload = serde_json::to_string(&payload).unwrap_or_else(|_| "null".into());
    // The body stands verbatim, so that whoever reads the line can hash it.
    format!("{{\"hash\":\"{hash}\",\"entry\":{body},\"payload\":{payload}}}")
}

#[cfg(test)]
mod tests {
    use super::fitting;

    #[test]
    fn any_piece_of_the_digits_that_are_shown_names_a_session_where_it_is_unambiguous() {
        let ids = ["0197a1b2-0000-7000-8000-0000cab47edb", "0197a1b2-0000-7000-8000-00007edb9999"]
            .map(String::from);
        let found = |name: &str| fitting(&ids, name);
        for name in [ids[0].as_str(), "cab4", "cab47edb", "ab47", "0000cab47edb"] {
            assert_eq!(found(name), [ids[0].clone()], "{name}");
        }
        assert_eq!(found("edb9"), [ids[1].clone()]);
        assert_eq!(found("7edb").len(), 2, "the end of one and the beginning of the other");
        // The controls: too little, and what is not shown.
        assert!(found("cab").is_empty() && found("").is_empty() && found("0197a1b2").is_empty());
    }
}
