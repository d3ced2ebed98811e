//! What the pages of a torn database still hold.
//!
//! SQLite finds a row by the tree over it: where an inner page, the schema or the header is gone, it finds
//! none of those below, although they are there. Here each page is looked at by itself, so that what is lost
//! is what stood on it. Nothing that is read is believed: whoever asks knows by other means (a hash) whether
//! a row is one of theirs.
//!
//! The shapes are those of SQLite's file format (sections 1.6, 2.1 and 4): databases with pages of 4,096
//! bytes and nothing reserved in them, as all of Bailey's are.

use crate::{StoreError, open::beside};
use rusqlite::types::Value;
use std::{
    collections::HashMap,
    fs::File,
    io::{self, ErrorKind},
    os::unix::fs::FileExt as _,
    path::Path,
    sync::Arc,
};

/// SQLite's own size of a page, in bytes, which no database of Bailey's changes.
const PAGE: usize = 4096;
const PAGE_BYTES: u64 = PAGE as u64;
/// What the first page has before its rows, in bytes.
const HEADER: usize = 100;
/// How much of a row lies on its own page, in bytes: of a table's, of an index's, and at least.
const TABLE_LOCAL_MAX: usize = PAGE - 35;
const INDEX_LOCAL_MAX: usize = (PAGE - 12) * 64 / 255 - 23;
const LOCAL_MIN: usize = (PAGE - 12) * 32 / 255 - 23;
/// The longest row that is read, in bytes, and the most columns that one has: more than any of Bailey's.
const ROW_BYTES_MAX: u64 = 256 << 20;
const COLUMNS_MAX: usize = 64;
/// The heads of a log and of each page in it, in bytes.
const LOG_HEAD: usize = 32;
const FRAME_HEAD: usize = 24;
/// How a log begins; with the last bit its sums are over numbers that begin with their highest byte.
const LOG_MAGIC: u32 = 0x377f_0682;

/// A database file that SQLite may not be able to read any more, with its log as far as that holds.
#[derive(Debug)]
pub struct Torn {
    file: File,
    log: Option<File>,
    /// Where in the log the newest image of a page stands.
    newer: HashMap<u32, u64>,
    /// How many pages the file has.
    pages: u32,
}

/// The address of a row: its page, and its offset in that page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowAddress {
    page: u32,
    at: u16,
}

/// What a column of a row holds, with its length in bytes where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing, as the column has that is the row's number.
    Null,
    /// A whole number.
    Integer,
    /// Another number.
    Real,
    /// Text.
    Text(u64),
    /// Bytes.
    Blob(u64),
}

impl Torn {
    /// Opens the file and the log beside it, and writes to neither.
    ///
    /// # Errors
    /// `Access`, when the file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let access = |source| StoreError::Access { path: path.into(), source: Arc::new(source) };
        let file = File::open(path).map_err(access)?;
        let length = file.metadata().map_err(access)?.len();
        let log = match File::open(beside(path, "-wal")) {
            Ok(log) => Some(log),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(access(error)),
        };
        let newer = log.as_ref().map(log_of).unwrap_or_default();
        let pages = u32::try_from(length.div_ceil(PAGE_BYTES)).unwrap_or(u32::MAX);
        Ok(Self { file, log, newer, pages })
    }

    /// Calls for each row that a page seems to hold: where it stands, its number where it has one, and what
    /// its columns are.
    pub fn each(&self, mut found: impl FnMut(RowAddress, Option<i64>, &[Kind])) {
        let mut beyond: Vec<u32> = self.newer.keys().copied().filter(|page| *page > self.pages).collect();
        beyond.sort_unstable();
        for page in (1..=self.pages).chain(beyond) {
            let Some(bytes) = self.page(page) else { continue };
            for at in cells(&bytes, page) {
                if let Some(cell) = Cell::read(&bytes, at, page)
                    && let Some((columns, _)) = cell.columns()
                {
                    let kinds: Vec<Kind> = columns.iter().map(|serial| kind(*serial)).collect();
                    found(RowAddress { page, at }, cell.rowid, &kinds);
                }
            }
        }
    }

    /// The columns of the row at a place; none where it cannot be read as one.
    #[must_use]
    pub fn row(&self, place: RowAddress) -> Option<Vec<Value>> {
        let bytes = self.page(place.page)?;
        let cell = Cell::read(&bytes, place.at, place.page)?;
        let (columns, mut at) = cell.columns()?;
        let record = self.whole(&cell)?;
        let mut values = Vec::with_capacity(columns.len());
        for serial in columns {
            let length = usize::try_from(length(serial)).ok()?;
            let end = at.checked_add(length)?;
            values.push(value(serial, record.get(at..end)?)?);
            at = end;
        }
        Some(values)
    }

    /// All bytes of a row: those on its page, and those on the pages that it goes on.
    fn whole(&self, cell: &Cell<'_>) -> Option<Vec<u8>> {
        let mut bytes = cell.local.to_vec();
        let mut next = cell.next;
        while (bytes.len() as u64) < cell.length {
            let page = self.page(next?)?;
            let (head, rest) = page.split_first_chunk::<4>()?;
            let missing = cell.length - bytes.len() as u64;
            let part = usize::try_from(missing).map_or(rest.len(), |missing| missing.min(rest.len()));
            bytes.extend_from_slice(rest.get(..part)?);
            next = Some(u32::from_be_bytes(*head)).filter(|page| *page != 0);
        }
        Some(bytes)
    }

    /// A page as the newest transaction left it; what the file does not reach is zero, what the disk does not
    /// give is no page.
    fn page(&self, number: u32) -> Option<Box<[u8; PAGE]>> {
        let mut bytes = Box::new([0; PAGE]);
        match (&self.log, self.newer.get(&number)) {
            (Some(log), Some(at)) => fill(log, &mut *bytes, *at).ok()?,
            _ if number == 0 || number > self.pages => return None,
            _ => fill(&self.file, &mut *bytes, u64::from(number - 1) * PAGE_BYTES).ok()?,
        };
        Some(bytes)
    }
}

/// Where the rows of a page begin, as its head says.
fn cells(bytes: &[u8; PAGE], page: u32) -> impl Iterator<Item = u16> {
    let head = if page == 1 { HEADER } else { 0 };
    let first = match bytes.get(head) {
        Some(0x0d | 0x0a) => Some(head + 8),
        // The inner pages of an index hold rows of their own.
        Some(0x02) => Some(head + 12),
        _ => None,
    };
    let count = number(bytes, head + 3).filter(|_| first.is_some()).unwrap_or(0);
    let list = first.unwrap_or(PAGE);
    (0..usize::from(count)).map_while(move |cell| number(bytes, list + 2 * cell))
}

fn number(bytes: &[u8; PAGE], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|number| u16::from_be_bytes(*number))
}

/// A row as far as its own page has it.
struct Cell<'a> {
    rowid: Option<i64>,
    /// Of the whole row, in bytes.
    length: u64,
    local: &'a [u8],
    /// The page where it goes on.
    next: Option<u32>,
}

impl<'a> Cell<'a> {
    fn read(bytes: &'a [u8; PAGE], at: u16, page: u32) -> Option<Self> {
        let head = if page == 1 { HEADER } else { 0 };
        let kind = *bytes.get(head)?;
        let mut rest = bytes.get(usize::from(at)..)?;
        if kind == 0x02 {
            rest = rest.get(4..)?;
        }
        let length = varint(&mut rest)?;
        let (rowid, most) = match kind {
            0x0d => (Some(varint(&mut rest)?.cast_signed()), TABLE_LOCAL_MAX),
            _ => (None, INDEX_LOCAL_MAX),
        };
        if length > ROW_BYTES_MAX {
            return None;
        }
        let length_here = usize::try_from(length).ok()?;
        if length_here <= most {
            return Some(Self { rowid, length, local: rest.get(..length_here)?, next: None });
        }
        let part = LOCAL_MIN + (length_here - LOCAL_MIN) % (PAGE - 4);
        let part = if part <= most { part } else { LOCAL_MIN };
        let next = rest.get(part..)?.first_chunk().map(|page| u32::from_be_bytes(*page));
        Some(Self { rowid, length, local: rest.get(..part)?, next })
    }

    /// What its columns are, and where the first of them begins. All of Bailey's say so on the first page.
    fn columns(&self) -> Option<(Vec<u64>, usize)> {
        let mut rest = self.local;
        let head = usize::try_from(varint(&mut rest)?).ok()?;
        let own = self.local.len() - rest.len();
        let mut rest = self.local.get(own..head)?;
        let mut columns = Vec::new();
        while !rest.is_empty() {
            columns.push(varint(&mut rest)?);
            if columns.len() > COLUMNS_MAX {
                return None;
            }
        }
        let length = columns.iter().try_fold(head as u64, |sum, serial| sum.checked_add(length(*serial)))?;
        (!columns.is_empty() && length == self.length).then_some((columns, head))
    }
}

/// A number of one to nine bytes, the highest bits first.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for place in 0..9 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if place == 8 {
            return Some(value << 8 | u64::from(*byte));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn kind(serial: u64) -> Kind {
    match serial {
        0 => Kind::Null,
        7 => Kind::Real,
        12.. if serial.is_multiple_of(2) => Kind::Blob((serial - 12) / 2),
        12.. => Kind::Text((serial - 13) / 2),
        _ => Kind::Integer,
    }
}

fn length(serial: u64) -> u64 {
    match (serial, kind(serial)) {
        (1..=4, _) => serial,
        (5, _) => 6,
        (6 | 7, _) => 8,
        (_, Kind::Text(length) | Kind::Blob(length)) => length,
        _ => 0,
    }
}

fn value(serial: u64, bytes: &[u8]) -> Option<Value> {
    let whole = || {
        let sign = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) { -1 } else { 0 };
        bytes.iter().fold(sign, |value: i64, byte| value << 8 | i64::from(*byte))
    };
    Some(match kind(serial) {
        Kind::Null => Value::Null,
        Kind::Integer if serial == 9 => Value::Integer(1),
        Kind::Integer => Value::Integer(if serial == 8 { 0 } else { whole() }),
        Kind::Real => Value::Real(f64::from_bits(whole().cast_unsigned())),
        Kind::Text(_) => Value::Text(std::str::from_utf8(bytes).ok()?.to_owned()),
        Kind::Blob(_) => Value::Blob(bytes.to_vec()),
    })
}

/// Where the newest image of each page stands in a log, up to its last transaction that was ended. Each image
/// has a sum that goes on from that of the one before, as it is noted there: so one that is torn hides
/// itself, and none of the others.
fn log_of(log: &File) -> HashMap<u32, u64> {
    let (mut committed, mut open) = (HashMap::new(), Vec::new());
    let mut head = [0; LOG_HEAD];
    if fill(log, &mut head, 0).is_err() {
        return committed;
    }
    let is_little = word(&head, 0) & !1 != LOG_MAGIC || word(&head, 0) & 1 == 0;
    let mut sum = Some((word(&head, 24), word(&head, 28)));
    let mut salts = Some((word(&head, 16), word(&head, 20)));
    if sums(is_little, (0, 0), head.get(..24).unwrap_or_default()) != sum.unwrap_or_default() {
        // It was torn there: the first image cannot be checked then, and says what the others must be.
        (sum, salts) = (None, None);
    }
    let mut frame = [0; FRAME_HEAD + PAGE];
    let mut at = LOG_HEAD as u64;
    while fill(log, &mut frame, at).is_ok_and(|read| read == frame.len()) {
        let (head, page) = frame.split_at(FRAME_HEAD);
        let (number, size) = (word(head, 0), word(head, 4));
        let found = (word(head, 16), word(head, 20));
        let of = (word(head, 8), word(head, 12));
        let is_of = salts.is_none_or(|salts| salts == of);
        let is_whole = sum.is_some_and(|sum| {
            sums(is_little, sums(is_little, sum, head.get(..8).unwrap_or_default()), page) == found
        });
        if is_of && is_whole && number > 0 {
            salts = Some(of);
            open.push((number, at + FRAME_HEAD as u64));
            if size > 0 {
                committed.extend(open.drain(..));
            }
        }
        sum = Some(found);
        at += frame.len() as u64;
    }
    committed
}

/// The two sums of a log, gone on over these bytes (SQLite's file format, 4.2).
fn sums(is_little: bool, (mut one, mut other): (u32, u32), bytes: &[u8]) -> (u32, u32) {
    let (pairs, _) = bytes.as_chunks::<8>();
    for pair in pairs {
        let [a, b, c, d, e, f, g, h] = *pair;
        let (left, right) = match is_little {
            true => (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])),
            false => (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])),
        };
        one = one.wrapping_add(left).wrapping_add(other);
        other = other.wrapping_add(right).wrapping_add(one);
    }
    (one, other)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_be_bytes(*word))
}

/// Reads as much as there is; how much that was.
fn fill(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    let mut read = 0;
    while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
