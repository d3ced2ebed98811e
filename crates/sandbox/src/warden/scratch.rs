//! The end of a session that nothing is kept of. The warden does it, because the runtime has bound itself by
//! then.

use crate::worker::remove_all;
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::{io, path::Path};

/// Removes a folder that sessions worked in, when nothing of them lives. A command may have taken permissions
/// away, as an overlay does from its work directory, and made directories of any depth. No link is followed.
///
/// # Errors
/// When a part of it cannot be removed.
pub fn remove(folder: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(io::Error::other("that is no folder of a session"));
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = openat(CWD, parent, flags, Mode::empty())?;
    Ok(remove_all(&parent, name)?)
}
