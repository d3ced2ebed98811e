//! The backup folder of one apply: `NNNNNN` holds the old bytes of path number N, `index.json` what each path
//! was. The index is written last and by rename; while there is none, the project has not been touched.

use super::disk::{Disk, write_all};
use super::missing_parents;
use super::place::{FileSource, Want};
use crate::worker::attributes::{self, Attributes};
use crate::worker::beneath::Root;
use crate::worker::error::{Error, errno};
use crate::worker::layer::Layer;
use crate::worker::state::{Seen, Unreadable, copy, open_file, seen};
use bailey_protocol::{Blob, Digest, FileKind, Merge, MergeFile};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::io::Read;

const INDEX: &str = "index.json";
const INDEX_PART: &str = "index.json.part";
/// Characters of a folder's name that tell its merge from others.
const TAG_CHARS: usize = 12;
const INDEX_BYTES_MAX: u64 = 256 << 20;
/// What is compared and copied in one reading, in bytes.
const AT_ONCE_MAX: u64 = 1 << 16;

/// An apply's backup folder, with its index read.
pub(super) struct Backup {
    dir: OwnedFd,
    /// The end of the folder's name, which is the apply's and random.
    tag: String,
    records: BTreeMap<usize, PathBackup>,
}

/// One path that the apply may change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PathBackup {
    /// Its number in the merge.
    pub(super) n: usize,
    /// Relative to the project.
    pub(super) path: String,
    /// Its state before.
    pub(super) old: Option<Digest>,
    /// Its state after.
    pub(super) new: Option<Digest>,
    /// How to make the old state again; none when nothing was there.
    shape: Option<FileShape>,
    /// Directories made for it, the top first.
    pub(super) made: Vec<String>,
}

/// The kind, mode, target and attributes of a path, to make its old state again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FileShape {
    kind: FileKind,
    mode: u32,
    target: Option<Blob>,
    /// Extended attributes, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<(Blob, Blob)>,
}

impl PathBackup {
    pub(super) fn was_directory(&self) -> bool {
        self.shape.as_ref().is_some_and(|shape| shape.kind == FileKind::Directory)
    }

    /// The extended attributes that the path had.
    pub(super) fn attributes(&self) -> Attributes {
        let attributes = self.shape.iter().flat_map(|shape| &shape.attributes);
        attributes.map(|(name, value)| (name.0.clone(), value.0.clone())).collect()
    }
}

impl Backup {
    /// Makes the folder, or takes up the one that an interrupted run of the same merge made.
    pub(super) fn prepare(
        disk: &Disk,
        path: &str,
        layer: &Layer,
        merge: &Merge,
        paths: &[&str],
    ) -> Result<Self, Error> {
        let files = merge.files.as_slice();
        make_folder(disk, path)?;
        let dir = Root::open(path)?.dir("").map_err(Error::system("open", path))?;
        let tag = tag(path);
        if let Some(records) = read_index(&dir, path)? {
            let backup = Self { dir, tag, records };
            return backup.check(files, paths).map(|()| backup);
        }
        let project = &layer.project;
        // Whatever the request says, what must stay in the layer is not prepared.
        let also: Vec<&str> = merge.also.iter().filter_map(|path| path.relative_to(project.path())).collect();
        let may_leave = layer.survey(&also).entries;
        let named: BTreeSet<&str> = paths.iter().copied().collect();
        let mut there = HashSet::new();
        let mut records = BTreeMap::new();
        for (n, (file, at)) in files.iter().zip(paths).enumerate() {
            if file.base == file.new || !may_leave.contains_key(*at) {
                continue;
            }
            // What cannot be read is not prepared, and so not touched: its result will say so.
            let Ok(seen) = seen(project, at, AT_ONCE_MAX) else { continue };
            if seen.as_ref().map(|seen| seen.state.digest) != file.base {
                continue;
            }
            if !save(disk, &dir, n, project, at, seen.as_ref()).map_err(|why| failed(at, &why))? {
                continue;
            }
            let made = match file.new {
                Some(_) => missing_parents(project, at, &named, &mut there),
                None => Vec::new(),
            };
            let shape = seen.map(|seen| shape(project, at, seen)).transpose();
            let shape = shape.map_err(|why| failed(at, &why))?;
            records
                .insert(n, PathBackup { n, path: (*at).into(), old: file.base, new: file.new, shape, made });
        }
        write_index(disk, &dir, &records).map_err(Error::system("write the index of", path))?;
        Ok(Self { dir, tag, records })
    }

    /// Opens the folder of an apply. None when there is no index: then the apply touched nothing.
    pub(super) fn open(path: &str) -> Result<Option<Self>, Error> {
        let dir = match Root::open(path) {
            Err(Error::System { source: Errno::NOENT, .. }) => return Ok(None),
            root => root?.dir("").map_err(Error::system("open", path))?,
        };
        let records = read_index(&dir, path)?;
        Ok(records.map(|records| Self { dir, tag: tag(path), records }))
    }

    /// What was recorded for path number `n`; none when it was not in its base state.
    pub(super) fn record(&self, n: usize) -> Option<&PathBackup> {
        self.records.get(&n)
    }

    /// The name under which path number `n` passes into place: the same when the merge is run again or
    /// undone, and no other merge's.
    pub(super) fn passing(&self, n: usize) -> String {
        format!(".bailey-merge-{}-{n}", self.tag)
    }

    /// All records by path.
    pub(super) fn by_path(&self) -> BTreeMap<&str, &PathBackup> {
        self.records.values().map(|record| (record.path.as_str(), record)).collect()
    }

    /// How to make a path's old state again.
    pub(super) fn want(&self, record: &PathBackup) -> Result<Want, String> {
        let Some(shape) = &record.shape else { return Ok(Want::Nothing) };
        match (shape.kind, &shape.target) {
            (FileKind::Directory, _) => Ok(Want::Directory { mode: shape.mode }),
            (FileKind::Symlink, Some(target)) => Ok(Want::Symlink(target.0.clone())),
            (FileKind::File, _) => {
                let dir = self.dir.try_clone().map_err(|error| error.to_string())?;
                Ok(Want::File { mode: shape.mode, source: FileSource { dir, name: number(record.n) } })
            }
            _ => Err("its backup cannot be made into a file again".into()),
        }
    }

    /// The mode and the bytes that a path had as a file; none when it was none.
    pub(super) fn file(&self, record: &PathBackup) -> Result<Option<(u32, FileSource)>, String> {
        match self.want(record)? {
            Want::File { mode, source } => Ok(Some((mode, source))),
            _ => Ok(None),
        }
    }

    /// A folder belongs to one merge: another one's numbers would name other paths.
    fn check(&self, files: &[MergeFile], paths: &[&str]) -> Result<(), Error> {
        let fits = |record: &PathBackup| {
            let file = files.get(record.n).zip(paths.get(record.n));
            file.is_some_and(|(file, at)| {
                *at == record.path && file.base == record.old && file.new == record.new
            })
        };
        match self.records.values().find(|record| !fits(record)) {
            None => Ok(()),
            Some(record) => {
                Err(Error::path(&record.path, "is not part of this merge; its backup folder is another's"))
            }
        }
    }
}

/// What the index keeps of a state. A file's or directory's attributes are no part of a state: what is in its
/// place keeps them.
fn shape(project: &Root, at: &str, Seen { state, attributes, .. }: Seen) -> Result<FileShape, Unreadable> {
    let attributes = match state.kind {
        FileKind::Directory => attributes::of(project.dir(at)?)?,
        FileKind::File | FileKind::Symlink | FileKind::Other => attributes,
    };
    let attributes = attributes.into_iter().map(|(name, value)| (Blob(name), Blob(value))).collect();
    Ok(FileShape { kind: state.kind, mode: state.mode, target: state.target.map(Blob), attributes })
}

/// The end of a merge's folder, which no other merge has.
pub(super) fn tag(path: &str) -> String {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let start = name.char_indices().rev().nth(TAG_CHARS - 1).map_or(0, |(at, _)| at);
    name.get(start..).unwrap_or_default().to_owned()
}

fn make_folder(disk: &Disk, path: &str) -> Result<(), Error> {
    match Root::open(path) {
        Err(Error::System { source: Errno::NOENT, .. }) => {}
        other => return other.map(|_| ()),
    }
    let (parent, name) = path.trim_end_matches('/').rsplit_once('/').unwrap_or(("", ""));
    let parent = Root::open(if parent.is_empty() { "/" } else { parent })?;
    let made = parent.dir("").and_then(|parent| disk.mkdir(parent, name, 0o700));
    made.map_err(Error::system("make", path))
}

/// Copies a file's bytes into the folder. `false`: it changed meanwhile, so it must not be touched.
///
/// An earlier, killed run may have left a copy; it is replaced, which loses nothing: both have the base's
/// digest, and without an index nothing was touched yet.
fn save(
    disk: &Disk,
    dir: &OwnedFd,
    n: usize,
    project: &Root,
    at: &str,
    seen: Option<&Seen>,
) -> Result<bool, Unreadable> {
    let Some(Seen { state, content, .. }) = seen.filter(|seen| seen.state.kind == FileKind::File) else {
        // Nothing, a directory or a symlink: the index alone can make it again.
        return Ok(seen.is_none_or(|seen| seen.state.kind != FileKind::Other));
    };
    let part = format!("{}.part", number(n));
    let mut sink = match disk.create(dir, &part) {
        Err(Errno::EXIST) => {
            disk.unlink(dir, &part)?;
            disk.create(dir, &part)?
        }
        created => created?,
    };
    let copied = match content {
        Some(bytes) => write_all(&mut sink, bytes).map(|()| state.digest)?,
        None => {
            let (parent, name) = project.parent(at)?;
            let (from, stat) = open_file(parent, name.as_ref())?;
            let size = u64::try_from(stat.st_size).unwrap_or_default();
            copy(from, size, state.mode, &mut sink)?
        }
    };
    sink.finish(0o600)?;
    disk.rename(dir, &part, &number(n))?;
    Ok(copied == state.digest)
}

fn read_index(dir: &OwnedFd, path: &str) -> Result<Option<BTreeMap<usize, PathBackup>>, Error> {
    let fd = match open_file(dir, INDEX.as_ref()) {
        Ok((fd, _)) => fd,
        Err(Unreadable::System(Errno::NOENT)) => return Ok(None),
        Err(why) => return Err(failed(path, &why)),
    };
    let mut bytes = Vec::new();
    let read = File::from(fd).take(INDEX_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|error| Error::system("read", path)(errno(&error)))?;
    let records: Vec<PathBackup> = serde_json::from_slice(&bytes)
        .map_err(|error| Error::path(path, format!("holds an index that is not readable: {error}")))?;
    Ok(Some(records.into_iter().map(|record| (record.n, record)).collect()))
}

fn write_index(disk: &Disk, dir: &OwnedFd, records: &BTreeMap<usize, PathBackup>) -> Result<(), Errno> {
    let records: Vec<&PathBackup> = records.values().collect();
    let bytes = serde_json::to_vec(&records).map_err(|_| Errno::INVAL)?;
    unlink_if_there(disk, dir, INDEX_PART)?;
    let mut sink = disk.create(dir, INDEX_PART)?;
    write_all(&mut sink, &bytes)?;
    sink.finish(0o600)?;
    // Where there is an index, the copies that it tells of are on the disk.
    disk.flush(dir)?;
    disk.rename(dir, INDEX_PART, INDEX)?;
    disk.sync(dir)?;
    disk.flush(dir)
}

fn unlink_if_there(disk: &Disk, dir: &OwnedFd, name: &str) -> Result<(), Errno> {
    match disk.unlink(dir, name) {
        Err(Errno::NOENT) => Ok(()),
        result => result,
    }
}

fn number(n: usize) -> String {
    format!("{n:06}")
}

fn failed(path: &str, why: &Unreadable) -> Error {
    Error::path(path, format!("cannot be backed up: {why}"))
}
