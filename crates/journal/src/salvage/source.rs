//! What the pages of one database seem to hold of a journal. Nothing here is believed yet.

use crate::{
    JournalError,
    chain::{Columns, Link},
    checkpoint::Checkpoint,
    fact::Stored,
    project::{NEWEST, STOPPED},
};
use bailey_protocol::{Digest, Timestamp};
use bailey_store::{Kind, RowAddress, Torn, types::Value};
use std::path::{Path, PathBuf};

/// Of an entry's hash.
const HASH_BYTES: usize = 32;

/// A database, torn or a copy.
pub(super) struct Source {
    pub(super) path: PathBuf,
    torn: Torn,
    /// Rows that have the shape of an entry's, by number.
    entries: Vec<(u64, RowAddress)>,
    /// Rows that have the shape of a payload's, by number.
    payloads: Vec<(u64, RowAddress)>,
    /// With the first key of the line that each says it is of.
    pub(super) checkpoints: Vec<(String, Checkpoint)>,
    /// States with their names, among them what says when something was written last and whether everything
    /// is stopped.
    states: Vec<(String, String)>,
}

/// An entry's row, with the number of its archive where it is in one.
pub(super) struct EntryRow {
    pub(super) link: Link,
    pub(super) archive: Option<u64>,
}

impl Source {
    pub(super) fn read(path: &Path) -> Result<Self, JournalError> {
        let torn = Torn::open(path)?;
        let (mut entries, mut payloads) = (Vec::new(), Vec::new());
        let (mut signed, mut named) = (Vec::new(), Vec::new());
        torn.each(|place, number, kinds| {
            use Kind::{Blob, Integer, Null, Text};
            match (number.map(u64::try_from), kinds) {
                (
                    Some(Ok(number)),
                    [Null, Text(_), Text(_) | Null, Text(_) | Null, Blob(_), Blob(32)]
                    | [Null, Text(_), Text(_) | Null, Text(_) | Null, Blob(_), Blob(32), Null | Integer],
                ) => entries.push((number, place)),
                (Some(Ok(number)), [Null, Blob(16), Blob(_)]) => payloads.push((number, place)),
                (None, [Text(64), Integer, Integer, Text(_), Blob(64)]) => signed.push(place),
                // Other rows of this shape begin with a session's name or how a question stands, which are of
                // other lengths.
                (None, [Text(name), Text(_)]) if is_state(*name) => named.push(place),
                _ => {}
            }
        });
        entries.sort_unstable();
        payloads.sort_unstable();
        let checkpoints = signed.into_iter().filter_map(|place| checkpoint(torn.row(place)?)).collect();
        let states = named.into_iter().filter_map(|place| state(torn.row(place)?)).collect();
        Ok(Self { path: path.into(), torn, entries, payloads, checkpoints, states })
    }

    /// The hash of the first entry, by which checkpoints name the journal; none where that cannot be read.
    pub(super) fn journal(&self) -> Option<Digest> {
        let hash = self.entries(1).find_map(|place| self.entry(1, place))?.link.hash;
        hash.try_into().ok().map(Digest)
    }

    /// The highest number of an entry that can be read and says the same of itself, and when that was
    /// written.
    pub(super) fn newest(&self) -> Option<(u64, Timestamp)> {
        let says = |number: u64, place: RowAddress| {
            let found = self.entry(number, place)?;
            let stored: Stored = serde_json::from_slice(&found.link.body).ok()?;
            (stored.seq.0 == number).then_some((number, stored.time))
        };
        self.entries.iter().rev().find_map(|(number, place)| says(*number, *place))
    }

    /// The highest number of a row that is shaped like an entry, whether it can be read or not. None is far
    /// from what can be: a torn page may hold any number.
    pub(super) fn last(&self) -> u64 {
        let newest = self.newest().map_or(0, |(number, _)| number);
        let most = newest + self.entries.len() as u64;
        let is_one = |(number, place): &&(u64, RowAddress)| {
            *number <= most
                && self.entry(*number, *place).is_some_and(|found| found.link.hash.len() == HASH_BYTES)
        };
        self.entries.iter().rev().find(is_one).map_or(newest, |(number, _)| *number)
    }

    /// Up to when the states say that nothing is stopped: the time of the newest entry that they follow from.
    /// None where they say that everything is, and where they cannot be read.
    pub(super) fn going_until(&self) -> Option<Timestamp> {
        let named = |name| self.states.iter().filter(move |(other, _)| other == name).map(|(_, value)| value);
        if named(STOPPED).next().is_some() {
            return None;
        }
        named(NEWEST).map(|time| time.parse().unwrap_or(Timestamp::MIN)).min()
    }

    pub(super) fn entries(&self, number: u64) -> impl Iterator<Item = RowAddress> {
        places(&self.entries, number)
    }

    pub(super) fn payloads(&self, number: u64) -> impl Iterator<Item = RowAddress> {
        places(&self.payloads, number)
    }

    pub(super) fn entry(&self, number: u64, place: RowAddress) -> Option<EntryRow> {
        let mut row = self.torn.row(place)?.into_iter().skip(1);
        let name = text(row.next()?)?;
        let columns = Columns { name, session: text(row.next()?), effect: text(row.next()?) };
        let (Value::Blob(body), Value::Blob(hash)) = (row.next()?, row.next()?) else { return None };
        let archive = match row.next() {
            Some(Value::Integer(archive)) => u64::try_from(archive).ok(),
            _ => None,
        };
        Some(EntryRow { link: Link { seq: number, body, hash, salt: None, payload: None, columns }, archive })
    }

    /// A payload with its salt before it.
    pub(super) fn payload(&self, place: RowAddress) -> Option<(Vec<u8>, Vec<u8>)> {
        match <[Value; 3]>::try_from(self.torn.row(place)?).ok()? {
            [_, Value::Blob(salt), Value::Blob(bytes)] => Some((salt, bytes)),
            _ => None,
        }
    }
}

fn places(rows: &[(u64, RowAddress)], number: u64) -> impl Iterator<Item = RowAddress> {
    let first = rows.partition_point(|(other, _)| *other < number);
    let rest = rows.get(first..).unwrap_or_default();
    rest.iter().take_while(move |(other, _)| *other == number).map(|(_, place)| *place)
}

fn checkpoint(row: Vec<Value>) -> Option<(String, Checkpoint)> {
    match <[Value; 5]>::try_from(row).ok()? {
        [Value::Text(line), _, _, Value::Text(note), Value::Blob(signature)] => {
            Some((line, Checkpoint::of_parts(note, signature.try_into().ok()?)))
        }
        _ => None,
    }
}

/// Whether a name of this length may be that of a state which is looked for.
fn is_state(length: u64) -> bool {
    [NEWEST, STOPPED].iter().any(|name| name.len() as u64 == length)
}

fn state(row: Vec<Value>) -> Option<(String, String)> {
    match <[Value; 2]>::try_from(row).ok()? {
        [Value::Text(name), Value::Text(value)] => Some((name, value)),
        _ => None,
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}
