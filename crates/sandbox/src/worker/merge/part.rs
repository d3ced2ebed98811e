//! A file of which a part of the change is applied: its backup, with lines from the layer spliced in.

use super::backup::{Backup, PathBackup};
use super::disk::{Disk, write_all};
use super::place::{FileSource, Want};
use super::{LAYER_CHANGED, current, digest};
use crate::worker::attributes;
use crate::worker::beneath::look;
use crate::worker::error::errno;
use crate::worker::layer::Layer;
use crate::worker::read::size;
use crate::worker::state::{MODE_BITS, Unreadable, open_file, state_of};
use bailey_protocol::{Part, file_state};
use rustix::fs::fstat;
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;

/// The largest file of which a part can be applied, in bytes; a diff holds the text of none that is larger.
const BYTES_MAX: u64 = 1 << 20;

/// What the part comes to. It is made of the backup and not of the project, so that a second run after a kill
/// makes the same of it; its digest is compared when it is written.
pub(super) fn want(layer: &Layer, backup: &Backup, record: &PathBackup, part: &Part) -> Result<Want, String> {
    let Some((old_mode, old)) = backup.file(record)? else {
        return Err("only a file that the project holds can be changed in part".into());
    };
    let (dir, name) = layer.upper.parent(record.path.as_str()).map_err(|_| LAYER_CHANGED.to_owned())?;
    let state = state_of(&dir, name.as_ref()).ok().flatten();
    let is_rebased = part.rebases && digest(&state) == record.new;
    if !is_rebased && digest(&state) != Some(part.of) {
        return Err(LAYER_CHANGED.into());
    }
    let new_mode = look(&dir, name.as_ref()).ok().flatten().map(|stat| stat.st_mode & MODE_BITS);
    if part.mode != old_mode && Some(part.mode) != new_mode {
        return Err("its mode is neither the project's nor the layer's".into());
    }
    let old = read(&old)?;
    let new = read(&FileSource { dir, name: name.into() })?;
    if is_rebased {
        // An earlier run of the same merge came so far.
        return Ok(Want::Text { mode: part.mode, bytes: new });
    }
    match part.compose(&old, &new) {
        Some(bytes) => Ok(Want::Text { mode: part.mode, bytes }),
        None => Err("what was picked of it does not fit".into()),
    }
}

/// Gives the layer what a merge of both sides comes to, before the project gets it: whoever is killed in
/// between finds a layer that differs from the project by the session's changes and nothing else.
pub(super) fn rebase(
    disk: &Disk,
    layer: &Layer,
    backup: &Backup,
    record: &PathBackup,
    want: &Want,
) -> Result<(), String> {
    let Want::Text { mode, bytes } = want else { return Ok(()) };
    if Some(file_state(*mode, bytes)) != record.new {
        return Err("what was to be put there is not what was shown; look at the diff again".into());
    }
    // Where somebody writes the project's file meanwhile, both stay as they are.
    if digest(&current(&layer.project, &record.path)?) != record.old {
        return Ok(());
    }
    let replaced = || -> Result<(), Unreadable> {
        let (dir, name) = layer.upper.parent(&record.path)?;
        if digest(&state_of(&dir, name.as_ref())?) == record.new {
            return Ok(());
        }
        let (fd, _) = open_file(&dir, name.as_ref())?;
        let passing = backup.passing(record.n);
        match disk.unlink(&dir, passing.as_str()) {
            Err(Errno::NOENT) => {}
            result => result?,
        }
        let mut sink = disk.create(&dir, &passing)?;
        write_all(&mut sink, bytes)?;
        sink.set(&attributes::of(fd)?)?;
        sink.finish(*mode)?;
        Ok(disk.rename(&dir, &passing, name)?)
    };
    replaced().map_err(|why| format!("the session's own copy cannot be replaced: {why}"))
}

fn read(source: &FileSource) -> Result<Vec<u8>, String> {
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
