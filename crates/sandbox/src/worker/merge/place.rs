//! One path of a merge goes from one whole state to another, or stays.
//!
//! The new state is made under a passing name in the same directory, then *exchanged* with the old one: what
//! was displaced is looked at afterwards, and if it is not the expected state (somebody wrote it in the last
//! instant) the exchange is taken back. A passing name therefore holds either a finished
//! new state or a displaced old one; unfinished writes have `.part` at its end. A merge that was killed
//! is settled by looking at them.

use super::disk::{Disk, Sink, is_unsupported, write_all};
use super::{conflict, digest};
use crate::worker::attributes::{self, Attributes};
use crate::worker::beneath::{Root, look, names};
use crate::worker::error::plain;
use crate::worker::state::{Seen, State, Unreadable, copy, open_file, see, state_of};
use bailey_protocol::{Digest, FileKind, MergeState, file_state};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, Stat, openat};
use rustix::io::Errno;

/// What a path shall be.
pub(super) enum Want {
    Nothing,
    Directory {
        mode: u32,
    },
    Symlink(Vec<u8>),
    File {
        mode: u32,
        source: FileSource,
    },
    /// A file of these bytes.
    Text {
        mode: u32,
        bytes: Vec<u8>,
    },
}

impl Want {
    /// Whether what is wanted is of the kind of what is there, and that kind has attributes.
    fn is_like(&self, now: &State) -> bool {
        matches!(
            (self, now.kind),
            (Self::File { .. } | Self::Text { .. }, FileKind::File)
                | (Self::Directory { .. }, FileKind::Directory)
        )
    }
}

/// Where the bytes of a file come from.
pub(super) struct FileSource {
    pub(super) dir: OwnedFd,
    pub(super) name: String,
}

/// One path to be put in place.
pub(super) struct Placement<'a> {
    pub(super) disk: &'a Disk,
    pub(super) project: &'a Root,
    /// Its name on the way, which no other path and no other merge has.
    pub(super) passing: String,
    /// Relative to the project.
    pub(super) at: &'a str,
    /// The state it must be in.
    pub(super) from: Option<Digest>,
    /// The state it ends in; `want` is how to make it.
    pub(super) to: Option<Digest>,
    pub(super) want: Want,
    /// Its extended attributes where none of its kind stands there; else what stands there keeps its own.
    pub(super) attributes: Attributes,
}

/// Why a path did not get its new state.
enum PlacementFailure {
    Conflict(MergeState),
    Failed(String),
}

impl From<Errno> for PlacementFailure {
    fn from(errno: Errno) -> Self {
        Self::Failed(plain(errno))
    }
}

impl From<Unreadable> for PlacementFailure {
    fn from(why: Unreadable) -> Self {
        Self::Failed(why.to_string())
    }
}

/// How far a placement has come.
pub(super) enum PlacementProgress<'a> {
    /// It is where it ends.
    Over(MergeState),
    /// Its new content stands beside it, and is to be on the disk before it takes its place.
    Staged(Box<Staged<'a>>),
}

/// A file whose new content has its passing name.
pub(super) struct Staged<'a> {
    here: Here<'a>,
    now: Option<Seen>,
}

impl<'a> Placement<'a> {
    /// Does all of it, or in a batch what comes before the wait for the disk.
    pub(super) fn begin(self) -> PlacementProgress<'a> {
        self.place().unwrap_or_else(|stop| PlacementProgress::Over(stop.into()))
    }

    fn place(mut self) -> Result<PlacementProgress<'a>, PlacementFailure> {
        let (dir, name) = match self.project.parent(self.at) {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if self.to.is_none() => {
                return Ok(PlacementProgress::Over(MergeState::Already));
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                return Err(conflict_because("its directory is not there"));
            }
            Err(Errno::XDEV) => return Err(conflict_because("something is mounted there")),
            Err(errno) => return Err(errno.into()),
        };
        // It may be large, and is of no use once it is staged.
        let want = std::mem::replace(&mut self.want, Want::Nothing);
        let here = Here { place: self, dir, name };
        let Placement { disk, from, to, .. } = &here.place;
        here.settle()?;
        let now = see(&here.dir, name.as_ref(), 0)?;
        let state = now.as_ref().map(|now| now.state.digest);
        if state == *to {
            return Ok(PlacementProgress::Over(MergeState::Already));
        }
        if state != *from {
            return Ok(PlacementProgress::Over(conflict(&now.map(|now| now.state), *from)));
        }
        match (&now, &want) {
            (None, Want::Nothing) => return Ok(PlacementProgress::Over(MergeState::Already)),
            (Some(now), Want::Nothing) => here.remove(&now.state)?,
            (Some(now), Want::Directory { mode }) if now.state.kind == FileKind::Directory => {
                disk.chmod(&here.dir, name, *mode)?;
            }
            _ => {
                here.stage(&want, now.as_ref())?;
                let waits = disk.is_batch && matches!(want, Want::File { .. } | Want::Text { .. });
                let staged = Staged { here, now };
                return if waits {
                    Ok(PlacementProgress::Staged(Box::new(staged)))
                } else {
                    staged.put().map(PlacementProgress::Over)
                };
            }
        }
        disk.sync(&here.dir)?;
        Ok(PlacementProgress::Over(MergeState::Done))
    }
}

impl Staged<'_> {
    /// Puts it in its place.
    pub(super) fn finish(self) -> MergeState {
        self.put().unwrap_or_else(MergeState::from)
    }

    /// Takes away what was staged, because it cannot be known to be on the disk.
    pub(super) fn give_up(self, errno: Errno) -> MergeState {
        // What stays is settled by the next merge of this path.
        self.here.place.disk.unlink(&self.here.dir, &self.here.place.passing).ok();
        PlacementFailure::from(errno).into()
    }

    fn put(&self) -> Result<MergeState, PlacementFailure> {
        match &self.now {
            None => self.here.publish()?,
            Some(now) => self.here.replace(now)?,
        }
        self.here.place.disk.sync(&self.here.dir)?;
        Ok(MergeState::Done)
    }
}

impl From<PlacementFailure> for MergeState {
    fn from(stop: PlacementFailure) -> Self {
        match stop {
            PlacementFailure::Conflict(state) => state,
            PlacementFailure::Failed(reason) => Self::Failed { reason },
        }
    }
}

/// A path's directory, opened.
struct Here<'a> {
    place: Placement<'a>,
    dir: OwnedFd,
    name: &'a str,
}

impl Here<'_> {
    /// Cleans up after a merge that was killed at this path.
    fn settle(&self) -> Result<(), PlacementFailure> {
        let Placement { disk, from, to, .. } = &self.place;
        let part = self.part();
        if self.state(&part).ok().flatten().is_some_and(|state| state.kind != FileKind::Directory) {
            disk.unlink(&self.dir, &part)?;
        }
        let Some(left) = self.state(&self.place.passing)? else { return Ok(()) };
        let ours = Some(left.digest) == *from || Some(left.digest) == *to;
        let now = digest(&self.state(self.name)?);
        // An empty directory holds nothing to lose, whatever its mode.
        if ours || (left.kind == FileKind::Directory && self.is_empty(&self.place.passing)?) {
            return Ok(self.discard(&left)?);
        }
        // Somebody's last write was displaced, and the merge died before it looked.
        if now.is_none() {
            return Ok(disk.rename_new(&self.dir, &self.place.passing, self.name)?);
        }
        if now == *to {
            disk.exchange(&self.dir, &self.place.passing, self.name)?;
            return match self.state(&self.place.passing)? {
                Some(ours) if Some(ours.digest) == *to => Ok(self.discard(&ours)?),
                _ => Err(self.both_kept()),
            };
        }
        Err(self.both_kept())
    }

    /// Writes a file and gives it the passing name, where it has the state that the path shall have.
    fn write(
        &self,
        mode: u32,
        attributes: &Attributes,
        pour: impl FnOnce(&mut Sink<'_>) -> Result<Digest, PlacementFailure>,
    ) -> Result<(), PlacementFailure> {
        let Placement { disk, to, .. } = &self.place;
        let part = self.part();
        let mut sink = disk.create(&self.dir, &part)?;
        let written = pour(&mut sink)
            .and_then(|state| sink.set(attributes).map(|()| state).map_err(|errno| attributes_lost(&errno)));
        let written =
            written.and_then(|state| sink.finish(mode).map(|()| state).map_err(PlacementFailure::from));
        if written.as_ref().ok().map(|state| Some(*state)) != Some(*to) {
            disk.unlink(&self.dir, &part)?;
            return Err(written.err().unwrap_or_else(stale_source));
        }
        disk.rename(&self.dir, &part, &self.place.passing).map_err(|errno| {
            disk.unlink(&self.dir, &part).ok();
            errno.into()
        })
    }

    /// Makes the new state under the passing name.
    fn stage(&self, want: &Want, now: Option<&Seen>) -> Result<(), PlacementFailure> {
        let of_directory;
        let attributes = match now.filter(|now| want.is_like(&now.state)) {
            Some(now) if now.state.kind == FileKind::File => &now.attributes,
            Some(_) => {
                of_directory = self.attributes().map_err(|errno| attributes_lost(&errno))?;
                &of_directory
            }
            None => &self.place.attributes,
        };
        let Placement { disk, to, .. } = &self.place;
        match want {
            Want::Nothing => {}
            Want::Directory { mode } => disk.mkdir_with(&self.dir, &self.place.passing, *mode, attributes)?,
            Want::Symlink(target) => disk.symlink(&self.dir, &self.place.passing, target)?,
            Want::File { mode, source } => {
                let (from, stat) = open_file(&source.dir, source.name.as_ref())?;
                let size = u64::try_from(stat.st_size).unwrap_or_default();
                return self.write(*mode, attributes, |sink| {
                    copy(from, size, *mode, sink).map_err(PlacementFailure::from)
                });
            }
            Want::Text { mode, bytes } => {
                return self.write(*mode, attributes, |sink| {
                    write_all(sink, bytes)?;
                    Ok(file_state(*mode, bytes))
                });
            }
        }
        match self.state(&self.place.passing).map_err(|why| self.failed(why))? {
            Some(staged) if Some(staged.digest) == *to => Ok(()),
            Some(staged) => {
                self.discard(&staged)?;
                Err(stale_source())
            }
            None => Err(PlacementFailure::Failed("what was prepared for it vanished".into())),
        }
    }

    /// Gives the new state a name that nothing had.
    fn publish(&self) -> Result<(), PlacementFailure> {
        let disk = self.place.disk;
        let mut result = disk.rename_new(&self.dir, &self.place.passing, self.name);
        if result.is_err_and(is_unsupported) {
            result = match look(&self.dir, self.name.as_ref()) {
                Ok(None) => disk.rename(&self.dir, &self.place.passing, self.name),
                Ok(Some(_)) => Err(Errno::EXIST),
                Err(errno) => Err(errno),
            };
        }
        result.map_err(|errno| match errno {
            Errno::EXIST => self.failed(conflict_because("something came into being there meanwhile")),
            other => self.failed(other),
        })
    }

    /// Exchanges the new state with the old one, `now`.
    fn replace(&self, now: &Seen) -> Result<(), PlacementFailure> {
        let Placement { disk, from, .. } = &self.place;
        self.may_replace(now).map_err(|stop| self.failed(stop))?;
        match disk.exchange(&self.dir, &self.place.passing, self.name) {
            // Without an exchange (NFS), a write in the last instant would be lost; the backup holds the
            // rest.
            Err(errno) if is_unsupported(errno) && now.state.kind != FileKind::Directory => {
                let renamed = self.still_from().and_then(|()| {
                    disk.rename(&self.dir, &self.place.passing, self.name).map_err(PlacementFailure::from)
                });
                return renamed.map_err(|stop| self.failed(stop));
            }
            result => result.map_err(|errno| self.failed(errno))?,
        }
        // What cannot be read now, for somebody writes it, is not what was expected.
        let Ok(displaced) = self.state(&self.place.passing) else { return self.take_back() };
        if digest(&displaced) == *from && displaced.is_none_or(|old| self.discard(&old).is_ok()) {
            return Ok(());
        }
        self.take_back()
    }

    /// Whether the path is in the state it must be in, and nothing lies in it.
    fn may_replace(&self, now: &Seen) -> Result<(), PlacementFailure> {
        let filled = now.state.kind == FileKind::Directory && !self.is_empty(self.name)?;
        // What a look does not tell is found when the exchange is done.
        let is_as_seen =
            look(&self.dir, self.name.as_ref())?.is_some_and(|stat| is_unchanged(&stat, &now.stat));
        if filled || !is_as_seen {
            self.still_from()?;
        }
        if filled { Err(not_empty()) } else { Ok(()) }
    }

    fn still_from(&self) -> Result<(), PlacementFailure> {
        let again = self.state(self.name)?;
        if digest(&again) == self.place.from {
            return Ok(());
        }
        Err(PlacementFailure::Conflict(conflict(&again, self.place.from)))
    }

    /// Takes away what was staged, as nothing comes of it. Only for where the passing name still has that,
    /// and nothing of the project's.
    fn failed(&self, why: impl Into<PlacementFailure>) -> PlacementFailure {
        if let Ok(Some(staged)) = self.state(&self.place.passing) {
            // What stays is settled by the next merge of this path.
            self.discard(&staged).ok();
        }
        why.into()
    }

    /// Removes the old state, `now`.
    fn remove(&self, now: &State) -> Result<(), PlacementFailure> {
        let Placement { disk, from, .. } = &self.place;
        if now.kind == FileKind::Directory {
            return match disk.rmdir(&self.dir, self.name) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => Err(not_empty()),
                other => Ok(other?),
            };
        }
        match disk.rename_new(&self.dir, self.name, &self.place.passing) {
            Err(errno) if is_unsupported(errno) => return Ok(disk.unlink(&self.dir, self.name)?),
            result => result?,
        }
        let moved = self.state(&self.place.passing);
        if moved.as_ref().is_ok_and(|moved| digest(moved) == *from) {
            return Ok(disk.unlink(&self.dir, &self.place.passing)?);
        }
        disk.rename_new(&self.dir, &self.place.passing, self.name).map_err(|_| self.both_kept())?;
        Err(PlacementFailure::Conflict(conflict(&moved?, *from)))
    }

    /// Undoes an exchange that displaced something unexpected.
    fn take_back(&self) -> Result<(), PlacementFailure> {
        let Placement { disk, from, to, .. } = &self.place;
        disk.exchange(&self.dir, &self.place.passing, self.name)?;
        match self.state(&self.place.passing)? {
            Some(ours) if Some(ours.digest) == *to => self.discard(&ours)?,
            _ => return Err(self.both_kept()),
        }
        Err(PlacementFailure::Conflict(conflict(&self.state(self.name)?, *from)))
    }

    fn discard(&self, left: &State) -> Result<(), Errno> {
        match left.kind {
            FileKind::Directory => self.place.disk.rmdir(&self.dir, &self.place.passing),
            _ => self.place.disk.unlink(&self.dir, &self.place.passing),
        }
    }

    /// The attributes of what stands there now, a file or a directory.
    fn attributes(&self) -> Result<Attributes, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        attributes::of(openat(&self.dir, self.name, flags, Mode::empty())?)
    }

    fn state(&self, name: &str) -> Result<Option<State>, Unreadable> {
        state_of(&self.dir, name.as_ref())
    }

    fn is_empty(&self, name: &str) -> Result<bool, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(names(openat(&self.dir, name, flags, Mode::empty())?, 1)?.0.is_empty())
    }

    fn part(&self) -> String {
        format!("{}.part", self.place.passing)
    }

    fn both_kept(&self) -> PlacementFailure {
        conflict_because(&format!(
            "somebody wrote it during the merge; `{}` beside it holds a version, too",
            self.place.passing
        ))
    }
}

/// Whether nothing tells that it was written since.
fn is_unchanged(now: &Stat, then: &Stat) -> bool {
    let of = |stat: &Stat| {
        let written = (stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec);
        (stat.st_dev, stat.st_ino, stat.st_mode, stat.st_size, written)
    };
    of(now) == of(then)
}

fn conflict_because(reason: &str) -> PlacementFailure {
    PlacementFailure::Conflict(MergeState::Conflict { reason: reason.into() })
}

fn not_empty() -> PlacementFailure {
    conflict_because("the directory is not empty")
}

fn attributes_lost(errno: &Errno) -> PlacementFailure {
    PlacementFailure::Failed(format!("its extended attributes cannot be kept: {}", plain(*errno)))
}

fn stale_source() -> PlacementFailure {
    PlacementFailure::Failed("what was to be put there is not what was shown; look at the diff again".into())
}
