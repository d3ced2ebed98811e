//! What a session came to so far: what it sent to each host, and what it changed. One small step after
//! another is judged by itself; a human who is asked about the next one sees the sum.

use crate::{Journal, JournalError};
use bailey_protocol::{Action, SessionId, action::Resource, number::decimal};
use bailey_secrets::Redactor;
use bailey_store::{StoreError, Tx, params};
use serde::{Deserialize, Serialize};

/// The most characters of a host that are kept.
const HOST_CHARS_MAX: usize = 255;

/// What an effect sends out, whatever comes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The host, with its port where the URL names one.
    pub host: String,
    /// The bytes of the URL and of the body; headers and keys, which the door puts in, are not counted.
    #[serde(with = "decimal")]
    pub bytes: u64,
}

impl Sent {
    /// What this action sends; none where it stays here.
    #[must_use]
    pub fn of(action: &Action) -> Option<Self> {
        let about = action.describe();
        let to = about.resources.iter().find_map(|resource| match resource {
            Resource::Host(to) => Some(to),
            _ => None,
        })?;
        // A number of bytes that is not known is counted when the request ends.
        let (url, body) = (to.url, to.bytes.unwrap_or(0));
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let host = host.chars().take(HOST_CHARS_MAX).collect::<String>().to_lowercase();
        Some(Self { host, bytes: body.saturating_add(url.len() as u64) })
    }
}

/// What a session, with its sub-agents, came to so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals {
    /// What was sent, the most first.
    pub sent: Vec<Sent>,
    /// Changes by tools that were begun.
    pub changes: u64,
    /// Commands that were begun.
    pub commands: u64,
    /// Files of the project that were changed, by tools and by commands.
    pub files: u64,
}

impl Journal {
    /// What a session came to so far, as far as its effects were begun. Entries of before this was counted
    /// are left out of what was sent.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn totals(&self, session: SessionId) -> Result<Totals, JournalError> {
        let (id, account) = (session.to_string(), sent_of(session));
        let totals = self.store().read(move |db| {
            let mut statement = db
                .prepare_cached("SELECT unit, used FROM spent WHERE account = ?1 ORDER BY used DESC, unit")?;
            let rows = statement
                .query_map(params![account], |row| Ok(Sent { host: row.get(0)?, bytes: row.get(1)? }))?;
            let sent = rows.collect::<Result<_, _>>()?;
            let count = |sql: &str| db.query_row(sql, params![id], |row| row.get::<_, u64>(0));
            Ok(Totals {
                sent,
                changes: count("SELECT count(*) FROM effect WHERE session = ?1 AND kind = 'change'")?,
                commands: count("SELECT count(*) FROM effect WHERE session = ?1 AND kind = 'exec'")?,
                files: count("SELECT count(*) FROM touched WHERE session = ?1")?,
            })
        });
        Ok(totals.await?)
    }
}

/// An effect of the session begins that sends this.
pub(crate) fn sent(
    tx: &mut Tx<'_>,
    redactor: &Redactor,
    session: SessionId,
    sent: &Sent,
) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO spent (account, unit, used) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET used = min(used, 9223372036854775807 - excluded.used) + excluded.used",
        params![sent_of(session), redactor.redact(&sent.host).text, sent.bytes.min(i64::MAX as u64)],
    )?;
    Ok(())
}

/// The same effect ended before anything left.
pub(crate) fn unsent(
    tx: &mut Tx<'_>,
    redactor: &Redactor,
    session: SessionId,
    sent: &Sent,
) -> Result<(), StoreError> {
    let host = redactor.redact(&sent.host).text;
    tx.execute(
        "UPDATE spent SET used = max(used - ?3, 0) WHERE account = ?1 AND unit = ?2",
        params![sent_of(session), host, sent.bytes.min(i64::MAX as u64)],
    )?;
    tx.execute(
        "DELETE FROM spent WHERE account = ?1 AND unit = ?2 AND used = 0",
        params![sent_of(session), host],
    )?;
    Ok(())
}

/// The account of what a session sent.
pub(crate) fn sent_of(session: SessionId) -> String {
    format!("sent:{session}")
}

#[cfg(test)]
mod tests {
    use super::Sent;
    use bailey_protocol::{Action, HttpRequest};

    #[test]
    fn the_host_is_the_one_that_is_reached() {
        for (url, host) in [
            ("https://api.example.com/v1/messages?x=1", "api.example.com"),
            ("https://API.example.com:8443", "api.example.com:8443"),
            ("http://trusted.example@evil.example/x@y", "evil.example"),
            ("nothing", "nothing"),
        ] {
            let request = HttpRequest {
                method: "POST".into(),
                url: url.into(),
                headers: Vec::new(),
                body: "12345".into(),
            };
            let sent = Sent::of(&Action::Http(request)).unwrap();
            assert_eq!((sent.host.as_str(), sent.bytes), (host, url.len() as u64 + 5));
        }
        assert_eq!(Sent::of(&Action::Read { path: "/w/a".into() }), None);
    }
}
