//! The end of a session that nothing is kept of. The warden does it, because the runtime has bound itself by then.

use std::{fs, io, os::unix::fs::PermissionsExt as _, path::Path};

/// Removes a folder that sessions worked in, when nothing of them lives.
///
/// # Errors
/// When a part of it cannot be removed.
pub fn remove(folder: &Path) -> io::Result<()> {
    open_up(folder)?;
    fs::remove_dir_all(folder)
}

/// An overlay's work directory has no permission bits, and a command may take them from its own: their owner cannot empty
/// those before it gives them back. No link is followed.
fn open_up(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}
