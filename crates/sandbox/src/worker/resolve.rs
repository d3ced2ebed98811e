//! Named paths to canonical ones. What comes out is judged and then opened without following any symlink,
//! so a race between the two is refused at open time (GT-9).

use super::error::Error;
use bailey_kernel::Route;
use bailey_protocol::Action;
use rustix::fs::{AtFlags, CWD, FileType, readlinkat, statat};
use rustix::io::Errno;
use std::path::{Component, Path, PathBuf};

/// Symlinks followed in one path, as in the kernel (path_resolution(7)).
const LINKS_MAX: usize = 40;
/// Bytes of a path (PATH_MAX).
const PATH_MAX: usize = 4096;

/// The action with every path absolute and canonical; what does not exist keeps the name it would get.
pub(super) fn resolve(mut action: Action, workspace: &str) -> Result<Action, Error> {
    if Route::of(&action) != Some(Route::Walls) {
        return Err(Error::Unfit { kind: action.kind().name() });
    }
    // A merge moves a symlink itself, so only the directory that holds it is resolved.
    let find: fn(&str, &str) -> Result<String, Error> =
        if matches!(action, Action::Merge(_)) { entry } else { canonical };
    let mut failed = None;
    action.change_paths(|path| match find(&path.0, workspace) {
        Ok(found) => path.0 = found,
        Err(error) => drop(failed.get_or_insert(error)),
    });
    if let Some(error) = failed {
        return Err(error);
    }
    if let Action::Exec(command) = &action {
        must_be_directory(&command.cwd.0)?;
    }
    Ok(action)
}

/// The canonical form of a name, symlinks followed to the end.
pub(super) fn canonical(name: &str, workspace: &str) -> Result<String, Error> {
    check(name)?;
    let mut walk = Walk { found: PathBuf::from("/"), absent: false, links: 0 };
    walk.along(&Path::new(workspace).join(name), name)?;
    match walk.found.into_os_string().into_string() {
        Ok(path) if path.len() <= PATH_MAX => Ok(path),
        Ok(_) => Err(Error::path(name, "is longer than a path may be")),
        Err(_) => Err(Error::path(name, "leads to a name that is not UTF-8")),
    }
}

/// The same, but the last part is taken as it is.
fn entry(name: &str, workspace: &str) -> Result<String, Error> {
    let (parent, last) = name.trim_end_matches('/').rsplit_once('/').unwrap_or((".", name));
    if matches!(last, "" | "." | "..") {
        return Err(Error::path(name, "does not name an entry of a directory"));
    }
    let parent = canonical(if parent.is_empty() { "/" } else { parent }, workspace)?;
    Ok(format!("{}/{last}", parent.trim_end_matches('/')))
}

fn check(name: &str) -> Result<(), Error> {
    match name {
        "" => Err(Error::path(name, "is empty; name a file or a directory")),
        _ if name.len() > PATH_MAX => Err(Error::path("the path", "is longer than 4096 bytes")),
        _ if name.contains('\0') => Err(Error::path("the path", "holds a NUL byte")),
        _ => Ok(()),
    }
}

fn must_be_directory(path: &str) -> Result<(), Error> {
    let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_err(Error::system("start in", path))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Ok(()),
        _ => Err(Error::path(path, "is not a directory, so no command can start there")),
    }
}

struct Walk {
    found: PathBuf,
    /// Whether `found` does not exist; the rest of the name is then taken literally.
    absent: bool,
    links: usize,
}

impl Walk {
    fn along(&mut self, path: &Path, name: &str) -> Result<(), Error> {
        for part in path.components() {
            match part {
                Component::RootDir => {
                    *self = Self { found: PathBuf::from("/"), absent: false, links: self.links }
                }
                Component::CurDir | Component::Prefix(_) => {}
                Component::ParentDir if self.absent => {
                    return Err(Error::path(name, "goes up from a directory that does not exist"));
                }
                Component::ParentDir => {
                    self.found.pop();
                }
                Component::Normal(part) => self.into(part, name)?,
            }
        }
        Ok(())
    }

    fn into(&mut self, part: &std::ffi::OsStr, name: &str) -> Result<(), Error> {
        let next = self.found.join(part);
        if self.absent {
            self.found = next;
            return Ok(());
        }
        let kind = match statat(CWD, &next, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => FileType::from_raw_mode(stat.st_mode),
            Err(Errno::NOENT) => {
                self.absent = true;
                self.found = next;
                return Ok(());
            }
            Err(errno) => return Err(Error::system("resolve", name)(errno)),
        };
        if kind != FileType::Symlink {
            self.found = next;
            return Ok(());
        }
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(Error::path(name, "goes through too many symbolic links"));
        }
        let target = readlinkat(CWD, &next, Vec::new()).map_err(Error::system("resolve", name))?;
        let target: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(target.as_bytes());
        self.along(Path::new(target), name)
    }
}
