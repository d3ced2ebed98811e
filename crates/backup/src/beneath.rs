//! Opens files of a copy so that the kernel itself keeps each step beneath the copy's folder (openat2(2)). A
//! user who made a copy, or can write there, may have replaced any part of a path with a link, even while the
//! copy is read.

use anyhow::{Context as _, Result, bail};
use rustix::{
    fd::OwnedFd,
    fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2},
    io::Errno,
};
use std::{
    fs::File,
    path::{Path, PathBuf},
};

/// The opened folder of a copy.
#[derive(Debug)]
pub(super) struct Beneath {
    folder: OwnedFd,
    path: PathBuf,
}

impl Beneath {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(CWD, path, flags, Mode::empty()).with_context(|| {
            format!("`{}` is not a folder that can be read; name the folder of a backup", path.display())
        })?;
        Ok(Self { folder, path: path.to_path_buf() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The full path of a name in the copy, for messages.
    pub(super) fn shown(&self, path: &Path) -> PathBuf {
        self.path.join(path)
    }

    /// Opens a plain file.
    ///
    /// # Errors
    /// When the path is not a plain file, does not exist, or leads through a link.
    pub(super) fn file(&self, path: &Path) -> Result<File> {
        let shown = self.shown(path);
        let shown = shown.display();
        // Without `NONBLOCK`, opening a pipe would wait for its other end.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let is_none = || format!("`{shown}` is not a file, and a backup has only files; use another backup");
        let file = match openat2(&self.folder, path, flags, Mode::empty(), resolve) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT | Errno::NOTDIR) => {
                bail!("`{shown}` is missing: the backup is damaged, so use another one")
            }
            Err(Errno::LOOP) => bail!(
                "`{shown}` is a link, or lies behind one, and a backup has no links; use another backup, or \
                 replace the link with its target"
            ),
            // The error of a socket, or of a device that does not exist.
            Err(Errno::NXIO | Errno::NODEV) => bail!(is_none()),
            Err(error) => return Err(error).with_context(|| format!("cannot read `{shown}`")),
        };
        if !file.metadata()?.is_file() {
            bail!(is_none());
        }
        Ok(file)
    }
}
