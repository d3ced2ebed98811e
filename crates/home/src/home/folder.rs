//! The place of a session's own folder. It is in the home, or, if the home's file system can hold no layer,
//! on another file system.
//!
//! The changes of a session lie in the upper layer of an overlay. The kernel accepts no such layer on another
//! overlay (a container's own files), and none on a server's files (NFS). In these cases, Bailey makes the
//! folder in the first place of [`ELSEWHERE`] that can hold it, with a link from the home. So a layer is on a
//! file system from its first byte on, and the end of a process, however it comes, loses no data. Bailey
//! tells the user how long that file system itself lasts.

use super::{Home, make_private};
use anyhow::{Context as _, Result, bail};
use bailey_protocol::SessionId;
use rustix::fs::{XattrFlags, statfs, statvfs};
use std::{
    fs::{self, File},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    sync::Once,
    time::Duration,
};

/// The places for layers that the home cannot hold, the best first. A disk outlives a restart, memory does
/// not.
const ELSEWHERE: [&str; 3] = ["/var/tmp", "/tmp", "/dev/shm"];

/// In the home: the directory of marks, one for each session that keeps nothing, under the session's name.
/// Bailey need not look at the other sessions, of which a home may hold thousands. In such a session's own
/// folder: a file that says the same, because a mark may come back with a copy of the home's files.
pub const SCRATCH: &str = "scratch";

/// How often a process tries to lock a mark that another process holds, and the pause between two tries.
const HOLDS_MAX: usize = 50;
const HOLD_PAUSE: Duration = Duration::from_millis(20);

/// How well a file system suits layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// It holds layers, and outlives a restart.
    Layers,
    /// It holds layers if it keeps users' attributes (Linux 6.6 and newer), until the machine or the
    /// container stops.
    UntilTheEnd,
    /// It cannot hold layers, for this reason.
    None(&'static str),
    /// Not known. If it keeps users' attributes, setting up the walls shows whether it holds layers.
    Unknown,
}

const TMPFS: i64 = 0x0102_1994;

/// File systems by the number that `statfs` gives (linux/magic.h).
const FILE_SYSTEMS: &[(i64, &str, Holds)] = &[
    (0xef53, "ext4", Holds::Layers),
    (0x9123_683e, "btrfs", Holds::Layers),
    (0x5846_5342, "xfs", Holds::Layers),
    (0xf2f5_2010, "f2fs", Holds::Layers),
    (TMPFS, "tmpfs", Holds::UntilTheEnd),
    (0x2fc1_2fc1, "zfs", Holds::Unknown),
    (0x6573_5546, "FUSE", Holds::None("served by another program")),
    (0x794c_7630, "overlayfs", Holds::None("as a container's own files do")),
    (0x6969, "NFS", Holds::None("on a server, where locks are not to be relied on either")),
    (0xff53_4d42, "SMB", Holds::None("on a server, where locks are not to be relied on either")),
    (0xfe53_4d42, "SMB", Holds::None("on a server, where locks are not to be relied on either")),
    (0x0102_1997, "9p", Holds::None("on another machine's disk")),
    (0x4d44, "FAT", Holds::None("which keeps no owners")),
    (0x8584_58f6, "ramfs", Holds::None("which keeps no attributes")),
];

/// A file system's name, and whether it can hold layers.
pub fn file_system(at: &Path) -> Option<(String, Holds)> {
    // The type of the field depends on the platform.
    let number = statfs(at).ok()?.f_type as i64;
    let known = FILE_SYSTEMS.iter().find(|(known, ..)| *known == number);
    Some(match known {
        Some((_, name, holds)) => ((*name).to_owned(), *holds),
        None => (format!("a file system of kind {number:#x}"), Holds::Unknown),
    })
}

/// A session's own folder.
#[derive(Debug)]
pub struct Folder {
    /// The absolute and canonical path. The folder is ours alone.
    pub path: PathBuf,
    /// A remark for the user about the folder's place.
    pub remark: Option<String>,
}

impl Home {
    /// Returns a session's own folder, and makes it if needed. For a session that keeps nothing, the home
    /// gets no link to the folder.
    ///
    /// # Errors
    /// When the folder cannot be made, no place holds a layer, or the folder was elsewhere and is gone.
    pub fn session(&self, id: SessionId, is_scratch: bool) -> Result<Folder> {
        self.sweep();
        let link = self.link(id);
        if let Ok(target) = fs::read_link(&link) {
            return found(&self.root, id, target);
        }
        let known = file_system(&self.root);
        let (name, why) = match &known {
            None | Some((_, Holds::Layers)) => return self.within(id, is_scratch),
            Some((_, Holds::UntilTheEnd | Holds::Unknown)) if keeps_attributes(&self.root) => {
                return self.within(id, is_scratch);
            }
            Some((name, Holds::None(why))) => (name, *why),
            Some((name, Holds::UntilTheEnd | Holds::Unknown)) => (name, "which keeps no attributes"),
        };
        if link.exists() {
            bail!(
                "`{}` was made on another file system; it lies on {name} now, {why}, and no session can go on there: put the \
                 home back on a disk, and name it with --home DIR or BAILEY_HOME",
                link.display()
            );
        }
        let usable = |holds: &Holds| matches!(holds, Holds::Layers | Holds::UntilTheEnd);
        let path = self.linked(id, elsewhere(&self.root, name, why, usable)?, is_scratch)?;
        let remark = remark(&self.root, name, &path);
        Ok(Folder { path, remark: Some(remark) })
    }

    /// Makes a session's folder outside of the home, for a session that works in that folder: an agent cannot
    /// reach files in the home.
    ///
    /// # Errors
    /// The errors of [`Home::session`].
    pub fn session_apart(&self, id: SessionId, is_scratch: bool) -> Result<PathBuf> {
        self.sweep();
        let (name, _) = file_system(&self.root).unwrap_or_else(|| ("a file system".into(), Holds::Unknown));
        // Any file system will do: no layer is mounted over these files.
        let place = elsewhere(&self.root, &name, "in Bailey's home", |_| true)?;
        self.linked(id, place, is_scratch)
    }

    /// A session's folder in the home itself.
    fn within(&self, id: SessionId, is_scratch: bool) -> Result<Folder> {
        let path = self.link(id);
        self.make(id, &path, is_scratch)?;
        Ok(Folder { path, remark: None })
    }

    /// A session's folder in a place, with a link to it from the home.
    fn linked(&self, id: SessionId, place: PathBuf, is_scratch: bool) -> Result<PathBuf> {
        let path = place.join(id.to_string());
        self.make(id, &path, is_scratch)?;
        if !is_scratch {
            let link = self.link(id);
            link.parent().map_or(Ok(()), make_private)?;
            symlink(&path, &link).with_context(|| format!("cannot make `{}`", link.display()))?;
        }
        Ok(path)
    }

    /// Whether a session has a folder, here or elsewhere.
    pub fn has_folder(&self, id: SessionId) -> bool {
        self.sweep();
        fs::symlink_metadata(self.link(id)).is_ok() || !self.elsewhere(id).is_empty()
    }

    /// A session's own folder, if the session has one.
    ///
    /// # Errors
    /// When the folder exists, but cannot be used.
    pub fn existing(&self, id: SessionId) -> Result<Option<Folder>> {
        self.give_up_lost(id)?;
        match fs::symlink_metadata(self.link(id)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => self.session(id, false).map(Some),
        }
    }

    /// Removes the link to a session's folder elsewhere, when that folder is gone.
    pub fn give_up_lost(&self, id: SessionId) -> Result<()> {
        let link = self.link(id);
        let is_lost = fs::read_link(&link).is_ok_and(|target| !target.exists());
        if is_lost {
            fs::remove_file(&link)?;
        }
        Ok(())
    }

    /// Removes a session's folder, once nothing of the session runs any more.
    pub fn remove_session(&self, id: SessionId, folder: &Folder) -> Result<()> {
        let path = &folder.path;
        bailey_sandbox::remove(path).with_context(|| format!("`{}` could not be removed", path.display()))?;
        let link = self.link(id);
        if fs::symlink_metadata(&link).is_ok_and(|found| found.is_symlink()) {
            fs::remove_file(link)?;
        }
        Ok(())
    }

    /// The folders of a session in the other places, whether or not the home links to them.
    pub fn elsewhere(&self, id: SessionId) -> Vec<PathBuf> {
        let places = places().into_iter().filter(|place| is_open(place) && is_private(place));
        places.map(|place| place.join(id.to_string())).filter(|path| is_owned(path)).collect()
    }

    /// Removes the folders of processes that kept nothing and were killed, together with the process that was
    /// to remove them. Each process does this once.
    fn sweep(&self) {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let places: Vec<_> =
                places().into_iter().filter(|place| is_owned(place) && is_open(place)).collect();
            swept(&self.root.join(SCRATCH), |id| {
                let elsewhere = places.iter().map(|place| place.join(id.to_string()));
                [self.link(id)].into_iter().chain(elsewhere).filter(|folder| is_owned(folder)).collect()
            });
        });
    }

    /// Makes a session's folder. If the session keeps nothing, the process marks it first and then makes the
    /// folder itself. If the session is kept, the process makes the folder first and then looks for a mark of
    /// another process. So when two processes begin at the same moment, one of them learns of the other.
    fn make(&self, id: SessionId, path: &Path, is_scratch: bool) -> Result<()> {
        let marks = self.root.join(SCRATCH);
        if !is_scratch {
            make_private(path)?;
            return unmark(&marks, id, path);
        }
        mark(&marks, id)?;
        path.parent().map_or(Ok(()), make_private)?;
        let made = fs::DirBuilder::new().mode(0o700).create(path);
        let made = made.and_then(|()| File::create(path.join(SCRATCH)));
        made.map(drop).with_context(|| {
            format!("session {id} was taken up meanwhile, or `{}` cannot be made", path.display())
        })
    }

    /// A file in a session's own folder, if the session has one.
    pub fn of_session(&self, id: SessionId, name: &str) -> PathBuf {
        self.link(id).join(name)
    }

    fn link(&self, id: SessionId) -> PathBuf {
        self.root.join("sessions").join(id.to_string())
    }
}

/// Marks a session. This process keeps the mark locked until it ends, however it ends. A process that finds
/// an unlocked mark removes the folder and the mark.
fn mark(marks: &Path, id: SessionId) -> Result<()> {
    make_private(marks)?;
    let path = marks.join(id.to_string());
    loop {
        let file = File::create(&path).with_context(|| format!("cannot make `{}`", path.display()))?;
        hold(&file, id)?;
        // Another process may have found the mark unlocked, and removed it.
        if is_named(&file, &path) {
            std::mem::forget(file);
            return Ok(());
        }
    }
}

/// Removes the mark of a session that was thrown away and is now taken up again.
fn unmark(marks: &Path, id: SessionId, folder: &Path) -> Result<()> {
    let path = marks.join(id.to_string());
    let Ok(mark) = File::open(&path) else { return Ok(()) };
    hold(&mark, id)?;
    for path in [folder.join(SCRATCH), path] {
        match fs::remove_file(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            removed => removed.with_context(|| format!("cannot remove `{}`", path.display()))?,
        }
    }
    // The process that held the mark may have removed the folder with it.
    make_private(folder)
}

/// Locks a mark. A sweeping process holds a mark only for a moment, so this tries several times.
fn hold(mark: &File, id: SessionId) -> Result<()> {
    let is_held = (0..HOLDS_MAX).any(|tried| {
        if tried > 0 {
            std::thread::sleep(HOLD_PAUSE);
        }
        mark.try_lock().is_ok()
    });
    anyhow::ensure!(is_held, "session {id} is in use, or what it left is being removed: try again later");
    Ok(())
}

/// Removes marked folders that no process uses any more. A later start tries again to remove those that
/// cannot go now.
fn swept(marks: &Path, folders: impl Fn(SessionId) -> Vec<PathBuf>) {
    // A command that only Landlock confines may have taken the access rights away.
    is_open(marks);
    for entry in fs::read_dir(marks).into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(SessionId::parse) else { continue };
        let path = entry.path();
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        if !found.is_file() {
            continue;
        }
        if found.mode() & 0o400 == 0 {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).ok();
        }
        let Ok(mark) = File::open(&path) else { continue };
        // A process that takes the session up again may have removed the mark meanwhile.
        if mark.try_lock().is_err() || !is_named(&mark, &path) {
            continue;
        }
        if folders(id).iter().all(|folder| is_cleared(folder)) {
            fs::remove_file(&path).ok();
        }
    }
}

/// Removes a folder of a session that keeps nothing. Returns whether its mark can go. A folder without its
/// own `scratch` file is kept, unless it is empty: then its process was killed before it could write that
/// file.
fn is_cleared(folder: &Path) -> bool {
    if !is_open(folder) {
        return false;
    }
    if folder.join(SCRATCH).symlink_metadata().is_ok_and(|found| found.is_file()) {
        return bailey_sandbox::remove(folder).is_ok();
    }
    fs::remove_dir(folder).ok();
    true
}

/// Whether an open file is still the file at this path.
fn is_named(file: &File, path: &Path) -> bool {
    let [found, named] = [file.metadata(), fs::symlink_metadata(path)];
    found.is_ok_and(|found| named.is_ok_and(|named| (found.dev(), found.ino()) == (named.dev(), named.ino())))
}

/// Restores the access rights to a directory of ours, which a command that only Landlock confines may have
/// taken away.
fn is_open(dir: &Path) -> bool {
    let is_closed = fs::symlink_metadata(dir).is_ok_and(|found| found.mode() & 0o700 != 0o700);
    !is_closed || fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).is_ok()
}

/// Finds a folder again that lies elsewhere. Other users can write in that place, so the folder counts only
/// if it is ours alone.
fn found(root: &Path, id: SessionId, target: PathBuf) -> Result<Folder> {
    if !target.parent().is_some_and(is_private) || !target.is_dir() {
        bail!(
            "the changes of session {id} were in `{}` and are gone, as after a restart; its messages are \
             kept: `bailey sessions fork {id}` continues from them with the project as it is, \
             `bailey sessions rm {id}` removes the session",
            target.display()
        );
    }
    let (name, _) = file_system(root).unwrap_or_else(|| ("an unknown file system".into(), Holds::Unknown));
    let remark = remark(root, &name, &target);
    Ok(Folder { path: target, remark: Some(remark) })
}

/// The directory for such folders in the first place that can hold them.
fn elsewhere(root: &Path, name: &str, why: &str, is_usable: impl Fn(&Holds) -> bool) -> Result<PathBuf> {
    let usable = ELSEWHERE.iter().find_map(|place| {
        let place = fs::canonicalize(place).ok().filter(|place| is_safe_to_share(place))?;
        let (_, holds) = file_system(&place)?;
        let dir = is_usable(&holds).then(|| own_in(&place))??;
        keeps_attributes(&dir).then_some(dir)
    });
    usable.with_context(|| {
        format!(
            "`{}` lies on {name}, {why}, and cannot hold a session's layer there; nor can {}: name a home on a disk, with \
             --home DIR or BAILEY_HOME; for a container, a volume, such as: docker run -v bailey:/root/.bailey …",
            root.display(),
            ELSEWHERE.join(", ")
        )
    })
}

/// Our directory in a place where everybody can write: an existing one, or a new one. If another user took
/// its name, the directory gets a name that cannot be foreseen.
fn own_in(place: &Path) -> Option<PathBuf> {
    let made = |name: String| {
        let dir = place.join(name);
        fs::DirBuilder::new().mode(0o700).create(&dir).is_ok().then_some(dir)
    };
    let mut random = [0; 8];
    mine_in(place).into_iter().find(|dir| is_private(dir)).or_else(|| made(mine())).or_else(|| {
        getrandom::fill(&mut random).ok()?;
        made(format!("{}-{:016x}", mine(), u64::from_ne_bytes(random)))
    })
}

/// Our directories that hold sessions of any home. No sandbox sees them.
pub fn places() -> Vec<PathBuf> {
    let places = ELSEWHERE.iter().filter_map(|place| fs::canonicalize(place).ok());
    places.flat_map(|place| mine_in(&place)).collect()
}

fn mine_in(place: &Path) -> Vec<PathBuf> {
    let is_mine =
        |name: &str| name.strip_prefix(&mine()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    let names = fs::read_dir(place)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| is_mine(name)).map(|name| place.join(name)).filter(|dir| is_owned(dir)).collect()
}

fn mine() -> String {
    format!("bailey-{}", rustix::process::geteuid().as_raw())
}

fn remark(root: &Path, name: &str, folder: &Path) -> String {
    let free = statvfs(folder).map_or(0, |stat| stat.f_bavail.saturating_mul(stat.f_frsize) >> 20);
    let lasts = match file_system(folder) {
        Some((_, Holds::UntilTheEnd)) => format!(
            "in memory, with {free} MiB free: it outlives Bailey, but no restart of the machine or the container"
        ),
        _ => format!("with {free} MiB free: it stays until something cleans that place up"),
    };
    format!(
        "`{}` lies on {name}, which can hold no session's layer, so the changes of this session are in \
         `{}`, {lasts}. Apply what you want to keep; a home on a disk (--home DIR or BAILEY_HOME) keeps all \
         of it",
        root.display(),
        folder.display()
    )
}

/// Whether no other user can replace our directory in this place by one of theirs.
fn is_safe_to_share(place: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    // Even if users cannot rename each other's files there, the owner of the place can rename all of them.
    fs::metadata(place).is_ok_and(|about| {
        [0, me].contains(&about.uid()) && (about.mode() & 0o1000 != 0 || about.mode() & 0o022 == 0)
    })
}

/// Whether a directory is ours alone. This also makes a directory of ours private again, because a command
/// that only Landlock confines can change its mode.
fn is_private(dir: &Path) -> bool {
    let can_others_write = fs::symlink_metadata(dir).is_ok_and(|found| found.mode() & 0o022 != 0);
    is_owned(dir) && !can_others_write && make_private(dir).is_ok()
}

fn is_owned(dir: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(dir).is_ok_and(|found| found.is_dir() && found.uid() == me)
}

/// Whether the file system keeps users' own attributes. An overlay without privileges uses them to note
/// deleted files.
fn keeps_attributes(dir: &Path) -> bool {
    const TRIAL: &str = "user.bailey.trial";
    let set = rustix::fs::setxattr(dir, TRIAL, b"1", XattrFlags::empty());
    rustix::fs::removexattr(dir, TRIAL).ok();
    set.is_ok()
}

#[cfg(test)]
mod tests {
    use super::{Home, SCRATCH, mark, swept, unmark};
    use bailey_protocol::SessionId;
    use std::{fs, path::PathBuf};

    /// The places of a home, with a session for each number.
    struct Yard(tempfile::TempDir);

    impl Yard {
        fn id(number: u128) -> SessionId {
            SessionId::parse(&format!("01a21fd2-bcc6-78fd-8631-{number:012x}")).unwrap()
        }

        fn marks(&self) -> PathBuf {
            self.0.path().join(SCRATCH)
        }

        fn folder(&self, number: u128) -> PathBuf {
            self.0.path().join(Self::id(number).to_string())
        }

        /// Makes a mark and a folder as a killed process leaves them.
        fn dead(&self, number: u128, says_so: bool) -> PathBuf {
            let folder = self.folder(number);
            fs::create_dir_all(folder.join("copy/project")).unwrap();
            if says_so {
                fs::write(folder.join(SCRATCH), "").unwrap();
            }
            fs::create_dir_all(self.marks()).unwrap();
            fs::write(self.marks().join(Self::id(number).to_string()), "").unwrap();
            folder
        }

        fn sweep(&self) -> Vec<String> {
            swept(&self.marks(), |id| {
                let folder = self.0.path().join(id.to_string());
                folder.exists().then_some(folder).into_iter().collect()
            });
            let left = fs::read_dir(self.marks()).unwrap();
            left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        }
    }

    #[test]
    fn a_folder_of_which_nothing_is_kept_goes_when_nobody_has_it_any_more() {
        let yard = Yard(tempfile::tempdir().unwrap());
        let (dead, half, gone) = (yard.dead(1, true), yard.dead(2, false), yard.dead(3, true));
        fs::remove_dir_all(half.join("copy")).unwrap();
        fs::remove_dir_all(&gone).unwrap();
        let living = yard.dead(4, true);
        mark(&yard.marks(), Yard::id(4)).unwrap();
        assert_eq!(yard.sweep(), [Yard::id(4).to_string()]);
        assert!(!dead.exists() && !half.exists());
        assert!(living.exists(), "the control: somebody has it");
    }

    /// One process looks at a session without a folder, and another one takes the session up at the same
    /// moment. One of them learns of the other, and no folder belongs to both.
    #[test]
    fn of_two_who_begin_one_is_told_of_the_other() {
        let place = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(place.path()).unwrap();
        fs::create_dir(root.join("sessions")).unwrap();
        let home = Home { user: root.clone(), root, agent: None };
        home.session(Yard::id(1), false).unwrap();
        let told = home.session(Yard::id(1), true).unwrap_err();
        assert!(format!("{told:#}").contains("was taken up meanwhile"), "{told:#}");
        home.session(Yard::id(2), true).unwrap();
        let told = home.session(Yard::id(2), false).unwrap_err();
        assert!(format!("{told:#}").contains("is in use"), "{told:#}");
        assert!(home.has_folder(Yard::id(1)) && home.has_folder(Yard::id(2)));
    }

    #[test]
    fn a_mark_that_comes_back_takes_nothing_that_is_kept() {
        let yard = Yard(tempfile::tempdir().unwrap());
        let again = yard.dead(1, true);
        unmark(&yard.marks(), Yard::id(1), &again).unwrap();
        assert_eq!(yard.sweep(), [""; 0]);
        // An old copy of the home's files has this effect.
        yard.dead(1, false);
        assert_eq!(yard.sweep(), [""; 0]);
        assert!(again.join("copy/project").exists());
        mark(&yard.marks(), Yard::id(1)).unwrap();
        assert!(unmark(&yard.marks(), Yard::id(1), &again).is_err(), "somebody has it");
    }
}
