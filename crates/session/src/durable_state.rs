//! The notes of a bound process: the state that it must not forget.
//!
//! A bound process cannot make files, so the notes lie in two files that it writes in turns: one file stays
//! whole while the process writes the other.

use anyhow::{Context as _, Result, bail};
use bailey_protocol::Digest;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    cell::{Cell, RefCell},
    fs::{File, OpenOptions},
    io::Read as _,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

/// The names of the two files.
const NAMES: [&str; 2] = ["notes.0", "notes.1"];
/// The largest size of one file, in bytes. A larger file is neither read nor written.
const BYTES_MAX: u64 = 64 << 20;

/// The notes, and their number in the order of writing.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Numbered<T> {
    number: u64,
    #[serde(flatten)]
    notes: T,
}

/// The notes and the files they lie in.
#[derive(Debug)]
pub struct DurableState<T> {
    files: [File; 2],
    next: Cell<usize>,
    notes: RefCell<Numbered<T>>,
}

impl<T: Clone + Default + Serialize + DeserializeOwned> DurableState<T> {
    /// The paths of the two files.
    pub fn paths(folder: &Path) -> [PathBuf; 2] {
        NAMES.map(|name| folder.join(name))
    }

    /// Opens the notes and continues with the newest whole ones.
    ///
    /// # Errors
    /// When a file cannot be opened, is too large, or is whole and has content that this program does not
    /// understand. A torn file is no error: the notes that were written before it count.
    pub fn open(folder: &Path) -> Result<Self> {
        let open = |path: PathBuf| {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path);
            file.with_context(|| format!("cannot open `{}`", path.display()))
        };
        let [one, other] = Self::paths(folder);
        let files = [open(one)?, open(other)?];
        // The process before this one may be about to end. The lock makes sure that one process at a time
        // has the notes.
        rustix::fs::flock(&files[0], FlockOperation::LockExclusive).context("the notes cannot be locked")?;
        for (file, path) in files.iter().zip(Self::paths(folder)) {
            // Older notes are no substitute: the work since then would be done again.
            if file.metadata()?.len() > BYTES_MAX {
                bail!(
                    "`{}` has more than {} MiB, which is not read: move both notes away to begin anew",
                    path.display(),
                    BYTES_MAX >> 20
                );
            }
        }
        let [one, other] = Self::paths(folder);
        let [one, other] = [read(&files[0], &one)?, read(&files[1], &other)?];
        let number = |notes: &Option<Numbered<T>>| notes.as_ref().map(|notes| notes.number);
        let (next, newest) = if number(&one) > number(&other) { (1, one) } else { (0, other) };
        Ok(Self { files, next: Cell::new(next), notes: RefCell::new(newest.unwrap_or_default()) })
    }

    /// The newest whole notes, as they are now: another process may have them.
    ///
    /// # Errors
    /// When a file cannot be read, or is whole and has content that this program does not understand.
    pub fn peek(folder: &Path) -> Result<T> {
        let of = |path: PathBuf| match File::open(&path) {
            Ok(file) => read::<T>(&file, &path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot open `{}`", path.display())),
        };
        let [one, other] = Self::paths(folder).map(of);
        let newest = [one?, other?].into_iter().flatten().max_by_key(|notes| notes.number);
        Ok(newest.unwrap_or_default().notes)
    }

    /// Reads the notes.
    pub fn get<V>(&self, get: impl FnOnce(&T) -> V) -> V {
        get(&self.notes.borrow().notes)
    }

    /// Changes the notes. When this returns, they are on disk.
    ///
    /// # Errors
    /// When the notes cannot be written, or would be too large. Then nothing has changed.
    pub fn change(&self, change: impl FnOnce(&mut T)) -> Result<()> {
        let mut notes = self.notes.borrow().clone();
        change(&mut notes.notes);
        notes.number += 1;
        let body = serde_json::to_vec(&notes)?;
        let mut bytes = format!("{}\n", Digest::of(&body)).into_bytes();
        bytes.extend(body);
        if bytes.len() as u64 > BYTES_MAX {
            bail!("the notes would have more than {} MiB, and could not be read again", BYTES_MAX >> 20);
        }
        let file = if self.next.get() == 0 { &self.files[0] } else { &self.files[1] };
        let write = || {
            file.set_len(0)?;
            file.write_all_at(&bytes, 0)?;
            file.sync_data()
        };
        write().context("the notes cannot be written")?;
        self.next.set(1 - self.next.get());
        *self.notes.borrow_mut() = notes;
        Ok(())
    }
}

/// Reads one file; `None` when it is torn or still empty.
fn read<T: DeserializeOwned>(file: &File, path: &Path) -> Result<Option<Numbered<T>>> {
    let mut bytes = Vec::new();
    file.take(BYTES_MAX)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read `{}`", path.display()))?;
    let Some((digest, body)) = bytes.iter().position(|byte| *byte == b'\n').map(|at| bytes.split_at(at))
    else {
        return Ok(None);
    };
    let body = body.get(1..).unwrap_or_default();
    if Digest::of(body).to_string().as_bytes() != digest {
        return Ok(None);
    }
    // Here, too, older notes are no substitute.
    let notes = serde_json::from_slice(body).with_context(|| {
        format!(
            "`{}` is whole, and this Bailey does not understand it: a newer one wrote it; run that one, or move both notes away to begin anew",
            path.display()
        )
    })?;
    Ok(Some(notes))
}

#[cfg(test)]
mod tests {
    use super::{DurableState, NAMES};
    use serde::{Deserialize, Serialize};
    use std::fs;

    #[derive(Default, Clone, Serialize, Deserialize)]
    struct Notes {
        cursor: i64,
    }

    #[derive(Debug, Default, Clone, Serialize, Deserialize)]
    struct Words {
        words: String,
    }

    /// Older notes are no substitute: the work since then would be done again.
    #[test]
    fn what_is_whole_and_not_understood_is_told_and_kept() {
        #[derive(Default, Clone, Serialize, Deserialize)]
        struct Newer {
            words: u64,
        }
        let folder = tempfile::tempdir().unwrap();
        DurableState::<Words>::open(folder.path())
            .unwrap()
            .change(|notes| notes.words = "older".into())
            .unwrap();
        let newest = folder.path().join(NAMES[1]);
        let newer = DurableState::<Newer>::open(folder.path());
        assert!(newer.is_err(), "what it does not understand either way");
        let there = tempfile::tempdir().unwrap();
        DurableState::<Newer>::open(there.path()).unwrap().change(|notes| notes.words = 7).unwrap();
        let text = fs::read_to_string(there.path().join(NAMES[0])).unwrap();
        let body = text.split_once('\n').unwrap().1.replace("\"number\":1", "\"number\":2");
        fs::write(&newest, format!("{}\n{body}", bailey_protocol::Digest::of(body.as_bytes()))).unwrap();
        let error = DurableState::<Words>::open(folder.path()).unwrap_err();
        assert!(error.to_string().contains("notes.1` is whole"), "{error:#}");
        // The control: a torn file is passed over.
        fs::write(&newest, format!("x{body}")).unwrap();
        let book = DurableState::<Words>::open(folder.path()).unwrap();
        assert_eq!(book.get(|notes| notes.words.clone()), "older");
    }

    #[test]
    fn what_could_not_be_read_again_is_not_written_and_what_is_too_large_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let open = || DurableState::<Words>::open(folder.path());
        let book = open().unwrap();
        book.change(|notes| notes.words = "kept".into()).unwrap();
        let most = usize::try_from(super::BYTES_MAX).unwrap();
        let error = book.change(|notes| notes.words = "x".repeat(most)).unwrap_err();
        assert!(error.to_string().contains("64 MiB"), "{error:#}");
        book.get(|notes| assert_eq!(notes.words, "kept"));
        drop(book);
        assert_eq!(open().unwrap().get(|notes| notes.words.clone()), "kept");
        let file = fs::OpenOptions::new().write(true).open(folder.path().join(NAMES[0])).unwrap();
        file.set_len(super::BYTES_MAX + 1).unwrap();
        let error = open().unwrap_err();
        assert!(error.to_string().contains("notes.0") && error.to_string().contains("64 MiB"), "{error:#}");
    }

    #[test]
    fn torn_notes_are_those_of_before() {
        let folder = tempfile::tempdir().unwrap();
        let cursor = || DurableState::open(folder.path()).unwrap().get(|notes: &Notes| notes.cursor);
        assert_eq!(cursor(), 0);
        for at in 1..6 {
            DurableState::open(folder.path()).unwrap().change(|notes: &mut Notes| notes.cursor = at).unwrap();
            assert_eq!(cursor(), at);
        }
        // The newest is torn, at each byte.
        let newest = NAMES.map(|name| folder.path().join(name));
        let newest = newest
            .iter()
            .max_by_key(|path| fs::read_to_string(path).unwrap().contains("\"cursor\":5"))
            .unwrap();
        let whole = fs::read(newest).unwrap();
        for length in 0..whole.len() {
            fs::write(newest, &whole[..length]).unwrap();
            assert_eq!(cursor(), 4, "after {length} bytes");
        }
        fs::write(newest, &whole).unwrap();
        assert_eq!(cursor(), 5);
    }
}
