//! Extended attributes that belong to users (`user.*`), without the overlay's own.
//!
//! An apply gives what it replaces its own ones again and takes none from the layer: programs of the host obey some.

use rustix::fd::AsFd;
use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
use rustix::io::{Errno, Result};
use std::collections::BTreeMap;

/// What a kernel allows for one list of names, and for one value.
const BYTES_MAX: usize = 1 << 16;
/// What most lists of names fit into.
const LIST_BYTES: usize = 256;
const OF_USERS: &[u8] = b"user.";
const OF_THE_OVERLAY: &[u8] = b"user.overlay.";

/// Values by name.
pub(super) type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

/// The attributes of an opened file or directory; none where the file system has none.
pub(super) fn of(fd: impl AsFd) -> Result<Attributes> {
    let mut names = vec![0; LIST_BYTES];
    let mut listed = flistxattr(&fd, names.as_mut_slice());
    if listed == Err(Errno::RANGE) {
        names.resize(BYTES_MAX, 0);
        listed = flistxattr(&fd, names.as_mut_slice());
    }
    let length = match listed {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP) => return Ok(Attributes::new()),
        Err(errno) => return Err(errno),
    };
    let names = names.get(..length).unwrap_or_default();
    let is_of_users = |name: &&[u8]| name.starts_with(OF_USERS) && !name.starts_with(OF_THE_OVERLAY);
    let mut found = Attributes::new();
    for name in names.split(|byte| *byte == 0).filter(is_of_users) {
        let mut value = vec![0; BYTES_MAX];
        match fgetxattr(&fd, name, value.as_mut_slice()) {
            Ok(length) => value.truncate(length),
            // Gone since the list was made.
            Err(Errno::NODATA) => continue,
            Err(errno) => return Err(errno),
        }
        found.insert(name.to_vec(), value);
    }
    Ok(found)
}

/// Sets them on what is opened, whatever it has besides.
pub(super) fn set(fd: impl AsFd, attributes: &Attributes) -> Result<()> {
    attributes
        .iter()
        .try_for_each(|(name, value)| fsetxattr(&fd, name.as_slice(), value, XattrFlags::empty()))
}
