//! What the screen took out of results: which known secrets, and of the result of what. Whoever guesses a
//! secret learns by it that the guess was right, so a session's hits are counted here, from its entries.

use crate::{Fact, Journal, JournalError, Recorded, project::FAMILY};
use bailey_protocol::{Digest, SessionId};
use bailey_store::{StoreError, params};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The known secrets that were taken out of one result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Masked {
    /// Their names.
    pub secrets: BTreeSet<String>,
    /// The digest of what was asked for; none where that held a secret itself.
    pub of: Option<Digest>,
    /// Whether nothing of the result was shown, because of how many there were before.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub withheld: bool,
}

/// How many hits these are: the same secret in the result of the same call again is the same hit, because
/// nothing new is learnt by it. What was asked for with a secret in it is one each time: whoever can write a
/// secret need not look for it.
pub fn hits<'a>(masked: impl IntoIterator<Item = &'a Masked>) -> usize {
    let (mut known, mut written) = (BTreeSet::new(), 0);
    for masked in masked {
        match masked.of {
            Some(of) => known.extend(masked.secrets.iter().map(|secret| (secret, of.to_string()))),
            None => written += masked.secrets.len(),
        }
    }
    known.len() + written
}

impl Journal {
    /// What was taken out of the results of a session, and of its sub-agents'.
    ///
    /// # Errors
    /// When the journal cannot be read, or an entry is of an unknown version.
    pub async fn masked(&self, session: SessionId) -> Result<Vec<Masked>, JournalError> {
        let found = self.store().read(move |db| {
            let mut statement = db.prepare_cached(&format!(
                "{FAMILY} SELECT body FROM entry WHERE session IN (SELECT id FROM family) AND type = 'observation'
                 AND archive IS NULL AND json_extract(CAST(body AS TEXT), '$.masked') IS NOT NULL ORDER BY seq",
            ))?;
            let rows = statement.query_map(params![session.to_string()], |row| row.get::<_, Vec<u8>>(0))?;
            rows.map(|row| of_entry(&row?)).collect::<Result<Vec<_>, StoreError>>()
        });
        Ok(found.await?.into_iter().flatten().collect())
    }
}

fn of_entry(body: &[u8]) -> Result<Option<Masked>, StoreError> {
    let entry = serde_json::from_slice(body)
        .map_err(|error| StoreError::custom(format!("an entry cannot be read: {error}")))?;
    let recorded = Recorded { entry, payload: None };
    Ok(match recorded.entry.fact {
        Fact::Observation { masked, .. } => masked,
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Masked, hits};
    use bailey_protocol::Digest;

    fn masked(secrets: &[&str], of: Option<&str>) -> Masked {
        let secrets = secrets.iter().map(|name| (*name).to_owned()).collect();
        Masked { secrets, of: of.map(|of| Digest::of(of.as_bytes())), withheld: false }
    }

    #[test]
    fn the_same_secret_in_the_same_result_is_one_hit() {
        let file = masked(&["A"], Some("read x"));
        assert_eq!(hits([&file, &file, &file]), 1);
        assert_eq!(hits([&file, &masked(&["A"], Some("read y"))]), 2);
        assert_eq!(hits([&file, &masked(&["A", "B"], Some("read x"))]), 2);
    }

    #[test]
    fn what_was_asked_with_a_secret_in_it_is_a_hit_each_time() {
        let written = masked(&["A"], None);
        assert_eq!(hits([&written, &written]), 2);
    }
}
