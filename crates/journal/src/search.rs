//! Looking for words in the messages of people and the replies of models. It is a walk over the payloads from
//! the newest on, within bounds, and needs no index that would hold the words a second time.

use crate::{Fact, Journal, JournalError, retain::stored};
use bailey_protocol::{Integrity, SessionId, Speaker, Timestamp, number::Seq};
use bailey_store::{StoreError, Tx, params};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// The most bytes of messages and replies that one search reads.
const READ_BYTES_MAX: usize = 512 << 20;

/// Who said something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Voice {
    /// A model.
    Model,
    /// The owner. `is_data` when the message passes on words of others.
    Owner {
        /// Whether it counts as data.
        is_data: bool,
    },
    /// A person at a channel, or another source of messages.
    Speaker(Speaker),
}

/// A place where the words were said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The session; of a sub-agent's conversation, the session above it.
    pub session: SessionId,
    /// The entry.
    pub entry: Seq,
    /// When it was said.
    pub time: Timestamp,
    /// Who said it.
    pub by: Voice,
    /// All of the text.
    pub text: String,
}

impl Journal {
    /// Where these words were said, the newest first: the newest place of each session, of `most` sessions at
    /// most, and only of the sessions `of` where they are given. A text has the words when it has each of
    /// them, in any letter case. Also whether everything was looked through, or the bounds were reached.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn said(
        &self,
        words: &str,
        of: Option<HashSet<SessionId>>,
        most: usize,
    ) -> Result<(Vec<Said>, bool), JournalError> {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        Ok(self.store().read(move |tx| look(tx, &words, of.as_ref(), most)).await?)
    }
}

fn look(
    tx: &Tx<'_>,
    words: &[String],
    of: Option<&HashSet<SessionId>>,
    most: usize,
) -> Result<(Vec<Said>, bool), StoreError> {
    let parents: HashMap<String, String> = tx
        .query_all("SELECT id, parent FROM session WHERE parent IS NOT NULL", params![], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .into_iter()
        .collect();
    let mut statement = tx.prepare_cached(
        "SELECT seq, session, type, body, bytes FROM entry JOIN payload USING (seq)
         WHERE type IN ('accepted', 'reply') AND session IS NOT NULL AND archive IS NULL ORDER BY seq DESC",
    )?;
    let mut rows = statement.query_map(params![], |row| {
        let (seq, session, kind): (u64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (body, bytes): (Vec<u8>, Vec<u8>) = (row.get(3)?, row.get(4)?);
        Ok((seq, session, kind == "reply", body, bytes))
    })?;
    let mut found: Vec<Said> = Vec::new();
    let mut read = 0_usize;
    for row in rows.by_ref() {
        let (seq, session, by_model, body, bytes) = row?;
        read = read.saturating_add(bytes.len());
        if read > READ_BYTES_MAX || found.len() >= most {
            return Ok((found, false));
        }
        let Some(session) = SessionId::parse(parents.get(&session).unwrap_or(&session)) else { continue };
        if of.is_some_and(|of| !of.contains(&session)) || found.iter().any(|it| it.session == session) {
            continue;
        }
        let Some(text) = text(&bytes, by_model) else { continue };
        let plain = text.to_lowercase();
        if words.iter().all(|word| plain.contains(word.as_str())) {
            let entry = stored(&body)?;
            let by = match entry.fact {
                Fact::Accepted { by: Some(speaker), .. } => Voice::Speaker(speaker),
                Fact::Accepted { labels, .. } => {
                    Voice::Owner { is_data: labels.integrity == Integrity::External }
                }
                _ => Voice::Model,
            };
            found.push(Said { session, entry: Seq(seq), time: entry.time, by, text });
        }
    }
    Ok((found, true))
}

/// The words of a message, or of a model's reply.
fn text(bytes: &[u8], by_model: bool) -> Option<String> {
    if !by_model {
        return Some(String::from_utf8_lossy(bytes).into_owned());
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(mut reply)) => match reply.remove("text") {
            Some(Value::String(text)) => Some(text),
            _ => None,
        },
        _ => None,
    }
}
