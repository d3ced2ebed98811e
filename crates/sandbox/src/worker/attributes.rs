//! Extended attributes that belong to users (`user.*`), without the overlay's own, and access control lists.
//!
//! An apply gives what it replaces its own ones again and takes none from the layer: programs of the host
//! obey some. Without its list (acl(5)) a file would be open to its whole group as far as the list lets
//! anybody in, since that is what its mode says then.

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
const LISTS: [&[u8]; 2] = [b"system.posix_acl_access", b"system.posix_acl_default"];
/// Of an access control list (Linux: `posix_acl_xattr.h`): bytes before its entries, of each entry, and
/// before the number in it.
const LIST_HEAD_BYTES: usize = 4;
const ENTRY_BYTES: usize = 8;
const NUMBER_AT: usize = 4;
/// Tags of entries for one user and one group.
const OF_SOMEBODY: [u16; 2] = [2, 8];

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
    let is_own = |name: &&[u8]| {
        (name.starts_with(OF_USERS) && !name.starts_with(OF_THE_OVERLAY)) || LISTS.contains(name)
    };
    let mut found = Attributes::new();
    for name in names.split(|byte| *byte == 0).filter(is_own) {
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

/// Whether there is an access control list that names somebody who has no number inside: nobody can set it
/// from there.
pub(super) fn names_others(attributes: &Attributes) -> bool {
    let is_other = |entry: &[u8]| {
        let tag = entry.first_chunk().map(|tag| u16::from_le_bytes(*tag));
        tag.is_some_and(|tag| OF_SOMEBODY.contains(&tag))
            && entry.get(NUMBER_AT..).is_none_or(|number| number.iter().all(|byte| *byte == u8::MAX))
    };
    let lists = LISTS.iter().filter_map(|name| attributes.get(*name));
    lists.filter_map(|list| list.get(LIST_HEAD_BYTES..)).any(|list| list.chunks(ENTRY_BYTES).any(is_other))
}
