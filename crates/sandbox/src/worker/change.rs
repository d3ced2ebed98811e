//! Change: files written, created or deleted in the session's view of the workspace.
//!
//! All bases are compared before anything is written, and every new content is on disk under another name
//! before the first file gets it, so that a full disk or a wrong base changes nothing.

use super::beneath::{Root, ancestors, split, type_of};
use super::error::{Error, errno};
use super::read::{below, noun, size};
use super::state::{MODE_BITS, content_digest, open_file};
use bailey_protocol::{ChangedFile, Digest, FileChange};
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, fchmod, mkdirat, openat, renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;

const FILES_MAX: usize = 1_000;
/// Permission bits of a new file.
const NEW_MODE: u32 = 0o644;
/// Passing names that are tried in one directory.
const PASSING_MAX: usize = 100_000;

/// Writes all files or, when one base does not match, none. `touched` of the result is left to a scan.
pub(super) fn change(root: &Root, files: &[FileChange]) -> Result<Vec<ChangedFile>, Error> {
    check_paths(files)?;
    let olds = files.iter().map(|file| check_base(root, file)).collect::<Result<Vec<_>, _>>()?;
    let mut made = Vec::new();
    let staged = stage_all(root, files, &olds, &mut made);
    let staged = staged.inspect_err(|_| remove_made(root, &made))?;
    for (file, staged) in files.iter().zip(staged) {
        publish(root, file, staged)?;
    }
    let changed = |(file, old): (&FileChange, &Option<Old>)| ChangedFile {
        path: file.path.clone(),
        old: old.as_ref().map(|old| old.digest),
        new: file.new.as_ref().map(|new| Digest::of(&new.0)),
        touched: None,
    };
    Ok(files.iter().zip(&olds).map(changed).collect())
}

struct Old {
    digest: Digest,
    mode: u32,
}

/// One action names each file once, and no file that is another's directory.
fn check_paths(files: &[FileChange]) -> Result<(), Error> {
    if files.len() > FILES_MAX {
        return Err(Error::Request(format!("a change may name {FILES_MAX} files at most")));
    }
    let mut seen = BTreeSet::new();
    for file in files {
        let at = below(&file.path)?;
        if at.is_empty() {
            return Err(Error::path(&file.path.0, "is a directory"));
        }
        if !seen.insert(at) {
            return Err(Error::path(&file.path.0, "is named twice in one change"));
        }
    }
    match files
        .iter()
        .find(|file| below(&file.path).is_ok_and(|at| ancestors(at).any(|dir| seen.contains(dir))))
    {
        Some(file) => Err(Error::path(&file.path.0, "lies in a path that the same change makes a file")),
        None => Ok(()),
    }
}

fn check_base(root: &Root, file: &FileChange) -> Result<Option<Old>, Error> {
    let path = &file.path.0;
    let old = current(root, file)?;
    match (&file.base, &old) {
        (None, None) if file.new.is_none() => {
            Err(Error::path(path, "does not exist, so it cannot be deleted"))
        }
        (None, None) => Ok(old),
        (None, Some(_)) => Err(Error::path(path, "exists already; read it first, then change it")),
        (Some(_), None) => Err(Error::path(path, "does not exist any more")),
        (Some(base), Some(found)) if *base == found.digest => Ok(old),
        (Some(_), Some(_)) => {
            Err(Error::path(path, "holds something else than what the change starts from; read it again"))
        }
    }
}

fn current(root: &Root, file: &FileChange) -> Result<Option<Old>, Error> {
    let path = &file.path.0;
    let at = below(&file.path)?;
    match root.stat(at).map_err(Error::system("change", path))? {
        None => return Ok(None),
        Some(stat) if type_of(&stat) == FileType::RegularFile => {}
        Some(stat) => return Err(Error::path(path, format!("is {}, not a regular file", noun(&stat)))),
    }
    let (dir, name) = root.parent(at).map_err(Error::system("change", path))?;
    let unreadable = |why: super::state::Unreadable| Error::path(path, format!("cannot be compared: {why}"));
    let (fd, stat) = open_file(dir, name.as_ref()).map_err(unreadable)?;
    let digest = content_digest(fd, size(&stat)).map_err(unreadable)?;
    Ok(Some(Old { digest, mode: stat.st_mode & MODE_BITS }))
}

/// A new content under a passing name beside its file.
struct Staged {
    dir: OwnedFd,
    name: String,
}

fn stage_all(
    root: &Root,
    files: &[FileChange],
    olds: &[Option<Old>],
    made: &mut Vec<String>,
) -> Result<Vec<Option<Staged>>, Error> {
    let mut all: Vec<Option<Staged>> = Vec::new();
    for (file, old) in files.iter().zip(olds) {
        let staged = match &file.new {
            None => Ok(None),
            Some(new) => {
                let mode = old.as_ref().map_or(NEW_MODE, |old| old.mode & 0o777);
                stage(root, file, &new.0, mode, made).map(Some)
            }
        };
        match staged {
            Ok(staged) => all.push(staged),
            Err(error) => {
                all.iter().flatten().for_each(Staged::remove);
                return Err(error);
            }
        }
    }
    Ok(all)
}

fn stage(
    root: &Root,
    file: &FileChange,
    content: &[u8],
    mode: u32,
    made: &mut Vec<String>,
) -> Result<Staged, Error> {
    let path = &file.path.0;
    let (parent, _) = split(below(&file.path)?);
    make_parents(root, parent, made).map_err(Error::system("make the directory of", path))?;
    let dir = root.dir(parent).map_err(Error::system("open the directory of", path))?;
    let (staged, sink) = Staged::create(dir).map_err(Error::system("write", path))?;
    let written = Staged::fill(sink, content, mode).inspect_err(|_| staged.remove());
    written.map_err(Error::system("write", path))?;
    Ok(staged)
}

impl Staged {
    /// Takes the first name that is free: another worker's, or one left by a worker that was killed, is never
    /// touched.
    fn create(dir: OwnedFd) -> Result<(Self, File), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for number in 0..PASSING_MAX {
            let name = format!(".bailey-change-{number}");
            match openat(&dir, &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(fd) => return Ok((Self { dir, name }, File::from(fd))),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::EXIST)
    }

    fn fill(mut sink: File, content: &[u8], mode: u32) -> Result<(), Errno> {
        sink.write_all(content).map_err(|error| errno(&error))?;
        fchmod(&sink, Mode::from_raw_mode(mode))
    }

    fn remove(&self) {
        unlinkat(&self.dir, &self.name, AtFlags::empty()).ok();
    }
}

fn publish(root: &Root, file: &FileChange, staged: Option<Staged>) -> Result<(), Error> {
    let path = &file.path.0;
    let failed = |errno| Error::system("write", path)(errno);
    let (dir, name) = root.parent(below(&file.path)?).map_err(failed)?;
    let Some(staged) = staged else {
        return unlinkat(dir, name, AtFlags::empty()).map_err(Error::system("delete", path));
    };
    // A directory put there meanwhile makes both fail; a symlink is replaced, never followed.
    let result = match file.base {
        None => renameat_with(&staged.dir, &staged.name, &dir, name, RenameFlags::NOREPLACE),
        Some(_) => renameat(&staged.dir, &staged.name, &dir, name),
    };
    result.inspect_err(|_| staged.remove()).map_err(failed)
}

fn make_parents(root: &Root, parent: &str, made: &mut Vec<String>) -> Result<(), Errno> {
    let mut dirs: Vec<&str> = ancestors(parent).collect();
    dirs.reverse();
    dirs.push(parent);
    for at in dirs {
        let (above, name) = split(at);
        // By its path alone: what lies above may be nobody's to list.
        if name.is_empty() || root.stat(at)?.is_some() {
            continue;
        }
        mkdirat(root.dir(above)?, name, Mode::from_raw_mode(0o755))?;
        made.push(at.into());
    }
    Ok(())
}

fn remove_made(root: &Root, made: &[String]) {
    for at in made.iter().rev() {
        if let Ok((dir, name)) = root.parent(at) {
            unlinkat(dir, name, AtFlags::REMOVEDIR).ok();
        }
    }
}
