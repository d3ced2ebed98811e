//! Git's index and files that it cannot read, inside.
//!
//! A masked file has the size and the time of the one it covers, so git takes it for unchanged without
//! reading it; but not when its entry in the index is of other looks (the file was touched, or changed, since
//! git looked; or it is so young that its stand-in was made older), nor when the file is as young as the
//! index ("racy git", Documentation/technical/racy-git.txt): then git reads. So before a command, such
//! entries are given the looks of what stands there and the bit by which git assumes a file to be unchanged.
//! It is done to the session's own copy of the index, in its layer, under git's own lock; the objects that
//! entries name stay, so a commit holds the file as it was.

use super::index::{HASHES, INDEX_BYTES_MAX, IndexEntry, entries};
use bailey_protocol::Digest;
use rustix::fs::{FileType, Mode, OFlags, fstat};
use sha1::Digest as _;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

/// Where fields of an entry lie (Documentation/gitformat-index.txt); each is of four bytes, in the network's
/// order.
const MODIFIED: usize = 8;
const MODIFIED_NANOSECONDS: usize = 12;
const SIZE: usize = 36;
const OBJECT: usize = 40;

/// Bits of an entry's flags, after its object's name.
const ASSUMED_UNCHANGED: u16 = 0x8000;
const STAGE: u16 = 0x3000;

/// The longest `.git` file that is read.
const GITFILE_BYTES_MAX: u64 = 4096;

/// Settles the entries of all `covered` files, and lets git look again at those that are `revealed` by now.
/// Paths are absolute, of files beneath `project`. What cannot be settled stays as it is: git then says that
/// it cannot read.
pub(crate) fn settle(project: &Path, covered: &[PathBuf], revealed: &[PathBuf]) {
    let mut repositories: BTreeMap<PathBuf, Wanted> = BTreeMap::new();
    for (paths, is_covered) in [(covered, true), (revealed, false)] {
        for path in paths {
            let Some((git, name)) = repository(project, path) else { continue };
            let wanted = repositories.entry(git).or_default();
            if is_covered {
                wanted.covered.extend(Looks::of(path).map(|looks| (name, looks)));
            } else {
                wanted.revealed.insert(name);
            }
        }
    }
    for (git, wanted) in repositories {
        // Another command of the session may be at work on it; it has seen to these entries itself when it
        // began.
        drop(settle_one(&git, &wanted));
    }
}

/// What is to become of the entries of one repository.
#[derive(Default)]
struct Wanted {
    covered: BTreeMap<Vec<u8>, Looks>,
    revealed: BTreeSet<Vec<u8>>,
}

impl Wanted {
    /// Whether a file was revealed, or a directory that it lies in.
    fn reveals(&self, path: &[u8]) -> bool {
        let ends = path.iter().enumerate().filter(|(_, letter)| **letter == b'/').map(|(end, _)| end);
        let above = ends.chain([path.len()]).filter_map(|end| path.get(..end));
        !self.revealed.is_empty() && above.into_iter().any(|above| self.revealed.contains(above))
    }
}

/// What git remembers of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Looks {
    modified: u32,
    nanoseconds: u32,
    size: u32,
}

impl Looks {
    fn of(path: &Path) -> Option<Self> {
        let stat = path.symlink_metadata().ok()?;
        // Git keeps the lower 32 bits.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as git does")]
        let looks = Self {
            modified: stat.mtime() as u32,
            nanoseconds: stat.mtime_nsec() as u32,
            size: stat.size() as u32,
        };
        Some(looks)
    }
}

/// The directory of the repository that a file lies in, and the file's name there.
fn repository(project: &Path, file: &Path) -> Option<(PathBuf, Vec<u8>)> {
    for top in file.ancestors().skip(1).take_while(|top| top.starts_with(project)) {
        let git = top.join(".git");
        let Ok(found) = git.symlink_metadata() else { continue };
        let name = file.strip_prefix(top).ok()?.as_os_str().as_bytes().to_vec();
        return if found.is_dir() { Some((git, name)) } else { Some((linked(top, &git)?, name)) };
    }
    None
}

/// Where a `.git` file says that the repository is.
fn linked(top: &Path, git: &Path) -> Option<PathBuf> {
    let mut text = Vec::new();
    open(git).ok()?.take(GITFILE_BYTES_MAX).read_to_end(&mut text).ok()?;
    let path = text.strip_prefix(b"gitdir: ")?;
    Some(top.join(std::ffi::OsStr::from_bytes(path.trim_ascii_end())))
}

/// Opens a regular file, and waits for nothing.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file.into()),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn settle_one(git: &Path, wanted: &Wanted) -> io::Result<()> {
    let path = git.join("index");
    if !is_to_do(&path, wanted)? {
        return Ok(());
    }
    let lock = git.join("index.lock");
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&lock)?;
    // Read once more: it may have changed before it was locked.
    let written = Index::read(&path).and_then(|index| {
        new.set_permissions(fs::Permissions::from_mode(index.mode))?;
        new.write_all(&index.settled(wanted))
    });
    written.and_then(|()| fs::rename(&lock, &path)).inspect_err(|_| drop(fs::remove_file(&lock)))
}

fn is_to_do(path: &Path, wanted: &Wanted) -> io::Result<bool> {
    let index = Index::read(path)?;
    Ok(index.entries.iter().any(|entry| index.is_to_do(entry, wanted)))
}

/// An index as it lies on disk.
struct Index {
    bytes: Vec<u8>,
    /// Bytes of an object's name, and of the sum at the end.
    hash: usize,
    /// Whether there is a sum; git can be told to leave it away.
    is_summed: bool,
    entries: Vec<IndexEntry>,
    /// When it was written, as git compares it.
    modified: u32,
    /// Permission bits.
    mode: u32,
}

impl Index {
    /// Reads an index; one whose sum is wrong, or of a form that is not known, is left alone.
    fn read(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        let stat = file.metadata()?;
        let mut bytes = Vec::new();
        file.take(INDEX_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > INDEX_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let known = HASHES.iter().find_map(|hash| {
            let (body, end) = bytes.split_at_checked(bytes.len().checked_sub(*hash)?)?;
            let is_summed = end.iter().any(|byte| *byte != 0);
            (!is_summed || sum(body, *hash) == end).then_some(())?;
            Some((*hash, is_summed, entries(&bytes, *hash)?))
        });
        let (hash, is_summed, entries) = known.ok_or(io::ErrorKind::InvalidData)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as git does")]
        let modified = stat.mtime() as u32;
        Ok(Self { bytes, hash, is_summed, entries, modified, mode: stat.mode() & 0o777 })
    }

    /// Whether git would read a covered file, or would not look at a revealed one.
    fn is_to_do(&self, entry: &IndexEntry, wanted: &Wanted) -> bool {
        if self.flags(entry) & STAGE != 0 {
            return false;
        }
        if wanted.reveals(&entry.path) {
            return self.flags(entry) & ASSUMED_UNCHANGED != 0;
        }
        wanted.covered.get(&entry.path).is_some_and(|looks| {
            let same =
                (self.number(entry, MODIFIED), self.number(entry, SIZE)) == (looks.modified, looks.size);
            !same || self.is_racy(entry)
        })
    }

    fn is_racy(&self, entry: &IndexEntry) -> bool {
        self.modified <= self.number(entry, MODIFIED)
    }

    /// The same index with these entries settled. Others that are racy are marked as git itself marks them:
    /// it is written anew, and would no longer look as young as they are.
    fn settled(mut self, wanted: &Wanted) -> Vec<u8> {
        for entry in std::mem::take(&mut self.entries) {
            let flags = self.flags(&entry);
            let is_to_do = self.is_to_do(&entry, wanted);
            match wanted.covered.get(&entry.path).filter(|_| is_to_do) {
                Some(looks) => {
                    self.put(&entry, MODIFIED, &looks.modified.to_be_bytes());
                    self.put(&entry, MODIFIED_NANOSECONDS, &looks.nanoseconds.to_be_bytes());
                    self.put(&entry, SIZE, &looks.size.to_be_bytes());
                    self.put(&entry, OBJECT + self.hash, &(flags | ASSUMED_UNCHANGED).to_be_bytes());
                }
                None if is_to_do => {
                    self.put(&entry, SIZE, &[0; 4]);
                    self.put(&entry, OBJECT + self.hash, &(flags & !ASSUMED_UNCHANGED).to_be_bytes());
                }
                None if self.is_racy(&entry) => self.put(&entry, SIZE, &[0; 4]),
                None => {}
            }
        }
        if self.is_summed {
            let (body, _) = self.bytes.split_at(self.bytes.len() - self.hash);
            let sum = sum(body, self.hash);
            self.bytes.truncate(self.bytes.len() - self.hash);
            self.bytes.extend(sum);
        }
        self.bytes
    }

    fn number(&self, entry: &IndexEntry, field: usize) -> u32 {
        let bytes = self.bytes.get(entry.at + field..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }

    fn flags(&self, entry: &IndexEntry) -> u16 {
        let bytes = self.bytes.get(entry.at + OBJECT + self.hash..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u16::from_be_bytes(*bytes))
    }

    fn put(&mut self, entry: &IndexEntry, field: usize, value: &[u8]) {
        let at = entry.at + field;
        if let Some(place) = self.bytes.get_mut(at..at + value.len()) {
            place.copy_from_slice(value);
        }
    }
}

/// The sum that ends an index: of as many bytes as object names have.
fn sum(body: &[u8], hash: usize) -> Vec<u8> {
    if hash == 20 { sha1::Sha1::digest(body).to_vec() } else { Digest::of(body).0.to_vec() }
}
