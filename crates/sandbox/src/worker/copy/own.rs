//! What an undo gives back to a session, written down before it begins: an undo that was cut off would leave
//! the project's old texts where the record says that project and copy are the same, and the next look would
//! bring them over the session's.

use super::record::{Looks, Record, replace};
use crate::worker::error::{Error, errno};
use bailey_protocol::WsPath;
use rustix::fs::{AtFlags, CWD, unlinkat};
use rustix::io::Errno;

/// Notes these paths beside the record, with what an undo before left, so that each look counts them as the
/// session's until [`forget`] is called.
pub(super) fn note(record: &str, own: &[WsPath]) -> Result<(), Error> {
    let path = beside(record);
    let mut all = noted(record)?;
    all.extend(own.iter().cloned());
    let text = serde_json::to_vec(&all).map_err(|_| Error::path(&path, "cannot be written"))?;
    replace(&path, &text)
}

/// Has each path that is noted be unlike anything in a record: then what the session has there, or has no
/// more, is its own doing.
pub(super) fn take_in(known: &mut Record, record: &str, project: &str) -> Result<(), Error> {
    let own = noted(record)?;
    let own = own.iter().filter_map(|path| path.relative_to(project)).filter(|at| !at.is_empty());
    known.extend(own.map(|at| (at.to_owned(), (Looks::UNLIKE_ANY, Looks::UNLIKE_ANY))));
    Ok(())
}

/// The undo is over, and a look has come to all of it since.
pub(super) fn forget(record: &str) -> Result<(), Error> {
    let path = beside(record);
    match unlinkat(CWD, &path, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        removed => removed.map_err(Error::system("remove", &path)),
    }
}

fn noted(record: &str) -> Result<Vec<WsPath>, Error> {
    let path = beside(record);
    match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::system("read", &path)(errno(&error))),
        Ok(text) => serde_json::from_slice(&text).map_err(|_| Error::path(&path, "is no list of paths")),
    }
}

fn beside(record: &str) -> String {
    format!("{record}.own")
}
