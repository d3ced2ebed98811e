//! A file of which a part of the change is applied: its backup, with lines from the layer spliced in.

use super::LAYER_CHANGED;
use super::backup::{Backup, Record};
use super::place::{Source, Want};
use crate::worker::beneath::look;
use crate::worker::error::errno;
use crate::worker::layer::Layer;
use crate::worker::read::size;
use crate::worker::state::{MODE_BITS, Unreadable, open_file, state_of};
use bailey_protocol::Part;
use rustix::fs::fstat;
use std::fs::File;
use std::io::Read;

/// The largest file of which a part can be applied, in bytes; a diff holds the text of none that is larger.
const BYTES_MAX: u64 = 1 << 20;

/// What the part comes to. It is made of the backup and not of the project, so that a second run after a kill makes the same
/// of it; its digest is compared when it is written.
pub(super) fn want(layer: &Layer, backup: &Backup, record: &Record, part: &Part) -> Result<Want, String> {
    let Some((old_mode, old)) = backup.file(record)? else {
        return Err("only a file that the project holds can be changed in part".into());
    };
    let (dir, name) = layer.upper.parent(record.path.as_str()).map_err(|_| LAYER_CHANGED.to_owned())?;
    let state = state_of(&dir, name.as_ref()).ok().flatten();
    if state.is_none_or(|state| state.digest != part.of) {
        return Err(LAYER_CHANGED.into());
    }
    let new_mode = look(&dir, name.as_ref()).ok().flatten().map(|stat| stat.st_mode & MODE_BITS);
    if part.mode != old_mode && Some(part.mode) != new_mode {
        return Err("its mode is neither the project's nor the layer's".into());
    }
    let old = read(&old)?;
    let new = read(&Source { dir, name: name.into() })?;
    match part.compose(&old, &new) {
        Some(bytes) => Ok(Want::Text { mode: part.mode, bytes }),
        None => Err("what was picked of it does not fit".into()),
    }
}

fn read(source: &Source) -> Result<Vec<u8>, String> {
    let bytes = || {
        let (fd, _) = open_file(&source.dir, source.name.as_ref())?;
        if size(&fstat(&fd)?) > BYTES_MAX {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        File::from(fd).take(BYTES_MAX).read_to_end(&mut bytes).map_err(|error| errno(&error))?;
        Ok(Some(bytes))
    };
    let bytes = bytes().map_err(|why: Unreadable| why.to_string())?;
    bytes.ok_or_else(|| "it is too large to be changed in part".into())
}
