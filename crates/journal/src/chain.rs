//! The hash chain: how an entry is appended and how the chain is verified.
//!
//! `hash(n) = SHA-256 over ("bailey.journal.1", hash(n-1), body(n))`, each part preceded by its length; the
//! hash before the first entry is 32 zero bytes. A body is the JSON of [`Stored`] as it lies in the table: it
//! is never serialised again to be hashed.

use crate::{
    archive::List,
    clean::Clean,
    fact::{Commitment, ENTRY_VERSION, Entry, Fact, Loss, Payload, Recorded, Stored},
    project,
    retain::{Archive, Archives},
    sign::{Signatures, Vouched},
    stop,
    tree::{self, Forest},
};
use bailey_protocol::{Digest, SessionId, Timestamp, number::Seq};
use bailey_secrets::Redactor;
use bailey_store::{OptionalExtension as _, StoreError, Tx, params};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const DOMAIN: &[u8] = b"bailey.journal.1";

/// The chain's newest link; zero before genesis.
pub(crate) fn head(tx: &Tx<'_>) -> Result<(u64, Digest), StoreError> {
    let row = tx
        .query_row("SELECT seq, hash FROM entry ORDER BY seq DESC LIMIT 1", params![], |row| {
            Ok((row.get::<_, u64>(0)?, row.get::<_, [u8; 32]>(1)?))
        })
        .optional()?;
    Ok(row.map_or((0, Digest([0; 32])), |(seq, hash)| (seq, Digest(hash))))
}

/// How a journal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Newest {
    /// The newest entry's position.
    pub entry: u64,
    /// Its hash.
    pub hash: Digest,
    /// Since when everything is stopped, where it is.
    pub stopped: Option<Timestamp>,
}

/// How the journal at `path`, which is there, stands: for whoever only looks, and needs no key for it.
///
/// # Errors
/// When it cannot be read, or is newer than this program.
pub fn newest(path: &std::path::Path) -> Result<Newest, StoreError> {
    bailey_store::Database::open(path, crate::schema::MIGRATIONS)?.glance(|tx| {
        let (entry, hash) = head(tx)?;
        Ok(Newest { entry, hash, stopped: stop::since(tx)? })
    })
}

/// The position of the chain's newest link.
pub(crate) fn last(tx: &Tx<'_>) -> Result<u64, StoreError> {
    let last = tx.query_row("SELECT max(seq) FROM entry", params![], |row| row.get::<_, Option<u64>>(0))?;
    Ok(last.unwrap_or(0))
}

pub(crate) fn link(previous: &Digest, body: &[u8]) -> Digest {
    Digest::of_parts(&[DOMAIN, &previous.0, body])
}

pub(crate) fn commit_to(salt: &[u8], payload: &[u8]) -> Digest {
    Digest::of_parts(&[salt, payload])
}

/// Appends one entry, redacted, and answers its position.
pub(crate) fn append(
    tx: &mut Tx<'_>,
    redactor: &Redactor,
    now: Timestamp,
    entry: &Entry,
) -> Result<Seq, StoreError> {
    let (last, previous) = head(tx)?;
    let seq = last + 1;
    let payload = entry.payload.as_ref().map(|payload| payload_of(payload, redactor)).transpose()?;
    let salt = random::<16>()?;
    let stored = Stored {
        v: ENTRY_VERSION,
        seq: Seq(seq),
        time: now,
        session: entry.session,
        effect: entry.effect,
        payload: payload.as_ref().map(|bytes| Commitment {
            digest: commit_to(&salt, bytes),
            bytes: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        }),
        fact: entry.fact.clone(),
    };
    let body = body_of(&stored, redactor)?;
    tx.execute(
        "INSERT INTO entry (seq, type, session, effect, body, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            seq,
            entry.fact.name(),
            entry.session.map(|id| id.to_string()),
            entry.effect.map(|id| id.to_string()),
            body,
            link(&previous, &body).0
        ],
    )?;
    if let Some(bytes) = payload {
        tx.execute("INSERT INTO payload (seq, salt, bytes) VALUES (?1, ?2, ?3)", params![seq, salt, bytes])?;
    }
    project::dated(tx, now)?;
    tree::grow(tx, seq)?;
    Ok(Seq(seq))
}

/// At most so many entries after one, in order.
pub(crate) fn page(tx: &Tx<'_>, after: u64, limit: u64) -> Result<Vec<Recorded>, StoreError> {
    let mut statement = tx.prepare_cached(
        "SELECT body, bytes FROM entry LEFT JOIN payload USING (seq)
         WHERE seq > ?1 AND archive IS NULL ORDER BY seq LIMIT ?2",
    )?;
    let rows = statement.query_map(params![after, limit], |row| {
        Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, Option<Vec<u8>>>(1)?))
    })?;
    rows.map(|row| {
        let (body, payload) = row?;
        let unreadable = |error| StoreError::custom(format!("an entry cannot be read: {error}"));
        Ok(Recorded { entry: serde_json::from_slice(&body).map_err(unreadable)?, payload })
    })
    .collect()
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], StoreError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::custom(format!("no random numbers: {error}")))?;
    Ok(bytes)
}

/// The stored JSON, with every string past the redactor: before serialisation, because a secret with a quote
/// in it looks different inside JSON.
fn body_of(stored: &Stored, redactor: &Redactor) -> Result<Vec<u8>, StoreError> {
    let value = serde_json::to_value(stored).map_err(not_json)?;
    clean(&value, redactor)
}

fn payload_of(payload: &Payload, redactor: &Redactor) -> Result<Vec<u8>, StoreError> {
    match payload {
        Payload::Text(text) => Ok(redactor.redact(text).text.into_owned().into_bytes()),
        Payload::Json(value) => clean(value, redactor),
        Payload::Image(image) => Ok(image.bytes().to_vec()),
    }
}

fn clean(value: &Value, redactor: &Redactor) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(&Clean { value, redactor }).map_err(not_json)
}

fn not_json(error: serde_json::Error) -> StoreError {
    StoreError::custom(format!("entry cannot be serialised: {error}"))
}

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// How many entries the chain has.
    pub entries: u64,
    /// The newest entry's hash.
    pub head: Digest,
    /// The root of the tree over all entries; none where only the newest were looked at.
    pub root: Option<Digest>,
    /// Up to where it is signed; none where nothing is, or only the newest entries were looked at.
    pub signed: Option<Vouched>,
    /// Payloads that match what the chain holds of them.
    pub payloads: u64,
    /// Payloads that were erased; the chain still holds their digests.
    pub erased: u64,
    /// Archives that entries are in; none where only the newest were looked at.
    pub archives: Vec<Archive>,
    /// Entries that say that the journal was brought over from a torn database, with what was lost.
    pub salvages: Vec<(u64, Loss)>,
}

/// Where the chain is broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("journal broken at entry {seq}: {what}")]
pub struct Broken {
    /// The first entry that does not fit.
    pub seq: u64,
    /// What does not fit.
    pub what: String,
}

/// What is said of an entry that fits and says what this program has no word for.
const OF_A_NEWER: &str = "it is of a kind that this program does not know: a newer Bailey wrote it";

impl Broken {
    /// Whether a newer program wrote it.
    pub(crate) fn is_newer(&self) -> bool {
        self.what == OF_A_NEWER
    }

    /// What there is to do about it.
    pub(crate) fn advice(&self) -> &'static str {
        if self.is_newer() {
            "nothing was changed: use that one, or `bailey restore` a copy of before"
        } else {
            "`bailey audit recover` keeps what holds of it, `bailey restore` brings a backup back, or move it away to start a new one"
        }
    }
}

/// The error of an entry that cannot be read: of a newer program's, or not.
pub(crate) fn unreadable(seq: u64, body: &[u8], why: &serde_json::Error) -> Broken {
    #[derive(serde::Deserialize)]
    struct EntryShape {
        seq: u64,
        v: u32,
        #[serde(rename = "type")]
        name: String,
    }
    let is_shaped =
        |shape: EntryShape| shape.seq == seq && shape.v >= ENTRY_VERSION && !shape.name.is_empty();
    let what = match serde_json::from_slice(body).is_ok_and(is_shaped) {
        true => OF_A_NEWER.to_owned(),
        false => format!("it cannot be read: {why}"),
    };
    Broken { seq, what }
}

/// Walks the chain, from the entry after `from` (0: from genesis), and checks every link and every payload.
pub(crate) fn verify(tx: &Tx<'_>, from: u64) -> Result<Result<Verified, Broken>, StoreError> {
    let mut walk = ChainWalk::after(from, hash_of(tx, from)?);
    let mut whole = if from == 0 { Some(Whole::read(tx)?) } else { None };
    let mut statement = tx.prepare_cached(
        "SELECT entry.seq, body, hash, salt, bytes, type, session, effect, archive
         FROM entry LEFT JOIN payload USING (seq) WHERE seq > ?1 ORDER BY seq",
    )?;
    let mut rows = statement.query(params![from])?;
    while let Some(row) = rows.next()? {
        let link = Link {
            seq: row.get(0)?,
            body: row.get(1)?,
            hash: row.get(2)?,
            salt: row.get(3)?,
            payload: row.get(4)?,
            columns: Columns { name: row.get(5)?, session: row.get(6)?, effect: row.get(7)? },
        };
        let fact = match row.get(8)? {
            Some(archive) => walk.pass(&link, archive).map(|()| None),
            None => walk.step(&link).map(Some),
        };
        let fact = match fact {
            Ok(fact) => fact,
            Err(broken) => return Ok(Err(broken)),
        };
        if let Some(Fact::Archived { .. }) = fact {
            walk.archives.insert(link.seq);
        }
        if let Some(whole) = &mut whole
            && let Err(broken) = whole.step(tx, link.seq, &walk.previous, fact)?
        {
            return Ok(Err(broken));
        }
    }
    let entries = walk.expected - 1;
    if entries == 0 {
        return Ok(Err(Broken { seq: 1, what: "there is no genesis entry".into() }));
    }
    if let Some(later) = pointed_at(tx, from)?.filter(|later| *later > entries) {
        let what = format!("it is missing, though an effect still names entry {later}");
        return Ok(Err(Broken { seq: walk.expected, what }));
    }
    // The entry of an archive comes after what left for it, so it is among these, too; its list may go
    // further back.
    if let Some((archive, list)) = walk.left.iter().find(|(archive, _)| !walk.archives.contains(archive)) {
        let what = format!("it is said to be in an archive that entry {archive} names, which names none");
        return Ok(Err(Broken { seq: list.last, what }));
    }
    let ChainWalk { previous: head, payloads, erased, left, missing, salvages, .. } = walk;
    // Where only the newest are looked at, whose sub-agent a conversation is may stand before them.
    if from == 0
        && let Some(seq) = missing.into_values().flatten().min()
    {
        let what = "its payload is gone, and no entry says that it was removed".into();
        return Ok(Err(Broken { seq, what }));
    }
    let (mut root, mut signed, mut archives) = (None, None, Vec::new());
    if let Some(whole) = whole {
        match whole.finish(entries, left) {
            Ok(found) => (root, signed, archives) = (Some(found.0), found.1, found.2),
            Err(broken) => return Ok(Err(broken)),
        }
    }
    Ok(Ok(Verified { entries, head, root, signed, payloads, erased, archives, salvages }))
}

/// The hash of an entry; zero where there is none, as before genesis.
pub(crate) fn hash_of(tx: &Tx<'_>, seq: u64) -> Result<Digest, StoreError> {
    let hash = tx
        .query_row("SELECT hash FROM entry WHERE seq = ?1", params![seq], |row| row.get::<_, [u8; 32]>(0))
        .optional()?;
    Ok(hash.map_or(Digest([0; 32]), Digest))
}

/// The newest entry that anything beside the chain names: an end that was cut off shows there. Where only the
/// newest entries are looked at, the effects, which have no order of entries, are left out.
fn pointed_at(tx: &Tx<'_>, from: u64) -> Result<Option<u64>, StoreError> {
    let payload = tx.query_row("SELECT max(seq) FROM payload", params![], |row| row.get(0))?;
    let sql = "SELECT max(max(intent), max(coalesce(outcome, 0))) FROM effect";
    let effect = if from == 0 { tx.query_row(sql, params![], |row| row.get(0))? } else { None };
    Ok(Option::max(payload, effect))
}

/// What a walk of the whole chain gives: the root of the tree, what the signatures vouch for, and the
/// archives.
type ChainSummary = (Digest, Option<Vouched>, Vec<Archive>);

/// What is looked at besides, where the whole chain is walked: the tree over it, and what was signed of it.
struct Whole {
    forest: Forest,
    signatures: Signatures,
    archives: Archives,
}

impl Whole {
    fn read(tx: &Tx<'_>) -> Result<Self, StoreError> {
        let signatures = Signatures::read(tx)?;
        Ok(Self { forest: Forest::default(), signatures, archives: Archives::default() })
    }

    fn step(
        &mut self,
        tx: &Tx<'_>,
        seq: u64,
        hash: &Digest,
        fact: Option<Fact>,
    ) -> Result<Result<(), Broken>, StoreError> {
        match fact {
            Some(Fact::SigningBegun { key }) => self.signatures.begins(seq, key),
            Some(Fact::Salvaged(loss)) => self.signatures.lost(loss.lines),
            Some(fact) => self.archives.hear(seq, fact),
            None => {}
        }
        let fits = self.forest.push(tx, hash)?;
        Ok(fits.and_then(|()| self.signatures.compare(seq, || self.forest.root())))
    }

    fn finish(self, entries: u64, left: BTreeMap<u64, List>) -> Result<ChainSummary, Broken> {
        Ok((self.forest.root(), self.signatures.finish(entries)?, self.archives.finish(left)?))
    }
}

/// What queries go by; it must be what the entry says.
#[derive(PartialEq, Default)]
pub(crate) struct Columns {
    pub(crate) name: String,
    pub(crate) session: Option<String>,
    pub(crate) effect: Option<String>,
}

/// A row of an entry, with that of its payload.
pub(crate) struct Link {
    pub(crate) seq: u64,
    pub(crate) body: Vec<u8>,
    pub(crate) hash: Vec<u8>,
    pub(crate) salt: Option<Vec<u8>>,
    pub(crate) payload: Option<Vec<u8>>,
    pub(crate) columns: Columns,
}

/// The state of an entry's payload.
#[derive(PartialEq)]
enum PayloadState {
    Whole,
    Erased,
}

/// What a walk along the chain has seen so far, and what must come next.
pub(crate) struct ChainWalk {
    expected: u64,
    pub(crate) previous: Digest,
    payloads: u64,
    erased: u64,
    /// By session the entries whose payloads are gone, until an entry says that the session was removed, or
    /// that they were lost.
    pub(crate) missing: BTreeMap<Option<SessionId>, BTreeSet<u64>>,
    /// Sessions that were removed, with the entry that says so.
    pub(crate) removed: BTreeMap<SessionId, u64>,
    salvages: Vec<(u64, Loss)>,
    /// Whose sub-agents' conversations are which.
    parents: BTreeMap<SessionId, SessionId>,
    /// What left, by the entry that names its archive.
    left: BTreeMap<u64, List>,
    /// The entries that name an archive.
    archives: BTreeSet<u64>,
}

impl ChainWalk {
    pub(crate) fn after(from: u64, previous: Digest) -> Self {
        Self {
            expected: from + 1,
            previous,
            payloads: 0,
            erased: 0,
            missing: BTreeMap::new(),
            removed: BTreeMap::new(),
            salvages: Vec::new(),
            parents: BTreeMap::new(),
            left: BTreeMap::new(),
            archives: BTreeSet::new(),
        }
    }

    /// Of an entry in an archive only the hash is here: the next entry, the tree and the list of its archive
    /// hold it.
    pub(crate) fn pass(&mut self, at: &Link, archive: u64) -> Result<(), Broken> {
        let is_empty = at.body.is_empty() && at.payload.is_none() && at.columns == Columns::default();
        let hash = <[u8; 32]>::try_from(at.hash.as_slice()).ok().filter(|_| is_empty && archive > at.seq);
        let Some(hash) = hash.map(Digest).filter(|_| at.seq == self.expected) else {
            let what = "it is said to be in an archive, and is not as such an entry is".into();
            return Err(Broken { seq: self.expected, what });
        };
        self.left.entry(archive).or_default().push(at.seq, &hash);
        self.previous = hash;
        self.expected += 1;
        Ok(())
    }

    pub(crate) fn step(&mut self, at: &Link) -> Result<Fact, Broken> {
        let broken = |what: &str| Broken { seq: at.seq, what: what.into() };
        if at.seq != self.expected {
            return Err(Broken {
                seq: self.expected,
                what: format!("it is missing; the next one is {}", at.seq),
            });
        }
        let hash = link(&self.previous, &at.body);
        #[cfg(feature = "controls")]
        let hash = match bailey_protocol::broken::broken("chain") {
            true => Digest(at.hash.as_slice().try_into().unwrap_or_default()),
            false => hash,
        };
        if hash.0.as_slice() != at.hash.as_slice() {
            return Err(broken("its hash does not fit its content and the entry before it"));
        }
        let stored: Stored =
            serde_json::from_slice(&at.body).map_err(|error| unreadable(at.seq, &at.body, &error))?;
        let number = stored.seq.0;
        #[cfg(feature = "controls")]
        let number = match bailey_protocol::broken::broken("numbers") {
            true => at.seq,
            false => number,
        };
        if number != at.seq {
            return Err(broken("it says that it is another entry"));
        }
        if stored.v != ENTRY_VERSION {
            return Err(broken(&format!("it has version {}, this program reads {ENTRY_VERSION}", stored.v)));
        }
        let columns = Columns {
            name: stored.fact.name().to_owned(),
            session: stored.session.map(|id| id.to_string()),
            effect: stored.effect.map(|id| id.to_string()),
        };
        if columns != at.columns {
            return Err(broken("its columns say something else than it does"));
        }
        if self.payload(at, stored.payload.as_ref()).map_err(broken)? == PayloadState::Erased {
            self.erased += 1;
            self.missing.entry(stored.session).or_default().insert(at.seq);
        }
        self.account(at.seq, stored.session, &stored.fact);
        self.previous = hash;
        self.expected += 1;
        Ok(stored.fact)
    }

    /// What was removed with a session may be gone: its own payloads, and those of all sub-agents below it.
    /// So may what a salvage could not bring along, each by its number.
    fn account(&mut self, seq: u64, session: Option<SessionId>, fact: &Fact) {
        match (fact, session) {
            (Fact::Delegated { parent, .. }, Some(child)) => drop(self.parents.insert(child, parent.session)),
            (Fact::SessionRemoved { .. }, Some(removed)) => {
                let parents = &self.parents;
                // As many steps as there are: a circle cannot be, and would not hang.
                let is_of = |id: &SessionId| {
                    let above = std::iter::successors(Some(id), |id| parents.get(*id));
                    above.take(parents.len() + 1).any(|id| *id == removed)
                };
                self.missing.retain(|id, _| !id.as_ref().is_some_and(is_of));
                let all: Vec<SessionId> = parents.keys().copied().filter(is_of).chain([removed]).collect();
                self.removed.extend(all.into_iter().map(|id| (id, seq)));
            }
            (Fact::Salvaged(loss), _) => {
                self.missing.values_mut().for_each(|numbers| numbers.retain(|number| !loss.has(*number)));
                self.salvages.push((seq, loss.as_ref().clone()));
            }
            _ => {}
        }
    }

    fn payload(&mut self, at: &Link, commitment: Option<&Commitment>) -> Result<PayloadState, &'static str> {
        match (commitment, &at.payload, &at.salt) {
            (Some(commitment), Some(bytes), Some(salt)) if commit_to(salt, bytes) == commitment.digest => {
                self.payloads += 1;
                Ok(PayloadState::Whole)
            }
            (Some(_), Some(_), _) => Err("its payload is not the one that was written"),
            (Some(_), None, _) => Ok(PayloadState::Erased),
            (None, Some(_), _) => Err("it has a payload that was never written"),
            (None, None, _) => Ok(PayloadState::Whole),
        }
    }
}
