//! The agent's own file of the home: compared with what it must hold, and then replaced whole.
//!
//! The runtime has no way to a file of the home; it says what the file must hold and what it shall hold, and
//! never where it is. Whatever else stands in its place is refused. Whoever is killed on the way leaves the
//! old text or the new one, and maybe a file beside it, which the next change takes away.

use crate::wire::Swapped;
use bailey_protocol::AGENT_FILE_BYTES_MAX;
use rustix::{
    fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat, renameat, unlinkat},
    io::Errno,
};
use std::{
    fs::File,
    io::{Read as _, Write as _},
    path::Path,
};

/// A place in a change at which a test ends everything, as kill -9 does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CrashPoint {
    /// Nothing was done yet.
    Asked,
    /// The new text lies beside the file.
    Beside,
    /// It has taken the file's place, and may not be on disk.
    Renamed,
    /// All is done, and nobody was told.
    Done,
}

/// Whoever wants a change, as far as the change hears of them.
pub(super) trait Asker {
    /// Whether they still wait for what comes of it.
    fn waits(&self) -> bool;

    /// The change came so far.
    fn reached(&self, step: CrashPoint);
}

/// Puts `new` in the place of `old`; where both are the same, only says whether the file holds it. None: no
/// file.
pub(super) fn swap(path: &Path, old: Option<&[u8]>, new: Option<&[u8]>, asker: &impl Asker) -> Swapped {
    match try_swap(path, old, new, asker) {
        Ok(true) => Swapped::Done,
        Ok(false) => Swapped::Differs,
        Err(reason) => Swapped::Refused(format!("`{}` {reason}", path.display())),
    }
}

fn try_swap(path: &Path, old: Option<&[u8]>, new: Option<&[u8]>, asker: &impl Asker) -> Result<bool, String> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err("has no folder".into());
    };
    if new.is_some_and(|new| new.len() > AGENT_FILE_BYTES_MAX) {
        return Err(format!("can hold {AGENT_FILE_BYTES_MAX} bytes at most"));
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(CWD, folder, flags, Mode::empty()).map_err(cannot("be found"))?;
    // One session after the other: between the look and the change, no other one has changed it.
    flock(&folder, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        Errno::WOULDBLOCK => "is just being changed by another session: try again".into(),
        error => cannot("be locked")(error),
    })?;
    if read(&folder, name)?.as_deref() != old {
        return Ok(false);
    }
    if old == new {
        return Ok(true);
    }
    asker.reached(CrashPoint::Asked);
    // Whoever takes the session up looks under the same lock: what they found is not changed after it.
    if !asker.waits() {
        return Err("was not changed: nobody waits for it any more".into());
    }
    let beside = format!(".{name}.new");
    match unlinkat(&folder, &beside, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(cannot("be written")(error)),
    }
    match new {
        Some(new) => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = openat(&folder, &beside, flags, Mode::RUSR | Mode::WUSR);
            let mut file = File::from(file.map_err(cannot("be written"))?);
            let written = file.write_all(new).and_then(|()| file.sync_all());
            written.map_err(|error| format!("cannot be written: {error}"))?;
            asker.reached(CrashPoint::Beside);
            renameat(&folder, &beside, &folder, name).map_err(cannot("be written"))?;
        }
        None => unlinkat(&folder, name, AtFlags::empty()).map_err(cannot("be removed"))?,
    }
    asker.reached(CrashPoint::Renamed);
    // Whoever looks finds the new text from now on: where the disk fails here, it is not for the journal to
    // say that nothing was done.
    let _ = rustix::fs::fsync(&folder);
    asker.reached(CrashPoint::Done);
    Ok(true)
}

/// What the agent's own file holds; none where it is not there. For whoever reads it before it is bound.
///
/// # Errors
/// When something else stands there, or it is too long; the words go on from the file's name.
pub fn read_own(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err("has no folder".into());
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    read(&openat(CWD, folder, flags, Mode::empty()).map_err(cannot("be found"))?, name)
}

/// What the file holds; none where it is not there.
///
/// # Errors
/// When something else stands there, or it is longer than what is ours: nothing of that is read or replaced.
fn read(folder: &impl std::os::fd::AsFd, name: &str) -> Result<Option<Vec<u8>>, String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(folder, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => {
            return Err("is a link, which is never followed: put a file there, or nothing".into());
        }
        Err(error) => return Err(cannot("be read")(error)),
    };
    let about = fstat(&file).map_err(cannot("be read"))?;
    if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
        return Err("is no file: put a file there, or nothing".into());
    }
    if about.st_uid != rustix::process::geteuid().as_raw() {
        return Err("belongs to somebody else: take it away".into());
    }
    if about.st_nlink != 1 {
        return Err("has another name (a hard link): take one of them away".into());
    }
    let mut text = Vec::new();
    let most = u64::try_from(AGENT_FILE_BYTES_MAX).unwrap_or(u64::MAX);
    let read = File::from(file).take(most + 1).read_to_end(&mut text);
    read.map_err(|error| format!("cannot be read: {error}"))?;
    if text.len() > AGENT_FILE_BYTES_MAX {
        return Err(format!("is longer than {AGENT_FILE_BYTES_MAX} bytes: shorten it"));
    }
    Ok(Some(text))
}

fn cannot(what: &'static str) -> impl Fn(Errno) -> String {
    move |error| format!("cannot {what}: {error}")
}

#[cfg(test)]
mod tests;
