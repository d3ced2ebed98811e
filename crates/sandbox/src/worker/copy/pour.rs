//! The content of a file, with its holes.

use crate::worker::error::errno;
use rustix::fs::{SeekFrom, ftruncate, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read as _;

/// Copies what a file holds, and leaves holes where it has some. What changes meanwhile is copied again at
/// the next look.
pub(super) fn pour(source: &File, sink: &File, size: u64) -> Result<(), Errno> {
    let mut done = 0;
    while done < size {
        let data = match seek(source, SeekFrom::Data(done)) {
            // Nothing but a hole is left.
            Err(Errno::NXIO) => break,
            data => data?,
        };
        let end = seek(source, SeekFrom::Hole(data))?;
        seek(source, SeekFrom::Start(data))?;
        seek(sink, SeekFrom::Start(data))?;
        let (mut part, mut sink) = (source.take(end.saturating_sub(data)), sink);
        std::io::copy(&mut part, &mut sink).map_err(|error| errno(&error))?;
        // At the end of a file that became shorter there is no more.
        done = end.max(data + 1);
    }
    ftruncate(sink, size)
}
