//! The organisation's rules: files of the machine's administrator, in force for everybody on it.

use super::{Parsed, RuleFileError, Texts};
use std::{
    format,
    fs::{File, Metadata},
    os::unix::fs::MetadataExt as _,
    path::Path,
    string::ToString,
};

/// Where they lie.
pub const ORGANISATION: &str = "/etc/bailey/policy";

/// Reads the rules of the organisation, all of its tier; a directory that does not exist has none. The files,
/// their directory and all above it must belong to `owner` or root, and be writable by nobody else: who can
/// write there could take a prohibition away.
///
/// # Errors
/// At the first mistake, or when somebody else could change the rules.
pub fn load_organisation(dir: &Path, owner: u32) -> Result<Parsed, RuleFileError> {
    let real = match std::fs::canonicalize(dir) {
        Ok(real) => real,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Parsed::default()),
        Err(source) => return Err(RuleFileError::Read { file: dir.display().to_string(), source }),
    };
    for place in real.ancestors() {
        let read = |source| RuleFileError::Read { file: place.display().to_string(), source };
        let about = std::fs::symlink_metadata(place).map_err(read)?;
        // In a directory like /tmp nobody can move what is somebody else's.
        let is_sticky = about.mode() & 0o1000 != 0 && place != real;
        guarded(place, &about, owner, is_sticky)?;
    }
    let check = |path: &Path, opened: &File| {
        let read = |source| RuleFileError::Read { file: path.display().to_string(), source };
        guarded(path, &opened.metadata().map_err(read)?, owner, false)
    };
    Texts::of_checked_dir(&real, check)?.parse_of(true)
}

fn guarded(path: &Path, about: &Metadata, owner: u32, is_sticky: bool) -> Result<(), RuleFileError> {
    let is_owned = about.uid() == 0 || about.uid() == owner;
    if is_owned && (is_sticky || about.mode() & 0o022 == 0) {
        return Ok(());
    }
    let why = format!("it belongs to user {} and has mode {:o}", about.uid(), about.mode() & 0o7777);
    Err(RuleFileError::Unguarded { path: path.display().to_string(), why })
}
