//! Databases that are damaged, with their logs.

use bailey_store::Torn;
use std::{env, fs, path::PathBuf, process};

/// Whatever a file and its log hold, every row that is found has its columns or cannot be read. The first
/// four bytes say how many of the last are the log's.
pub(crate) fn database(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk::<4>() else { return };
    let log = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX).min(rest.len());
    let (file, log) = rest.split_at(rest.len() - log);
    let shared = PathBuf::from("/dev/shm");
    let folder = if shared.is_dir() { shared } else { env::temp_dir() };
    let path = folder.join(format!("bailey-fuzz-{}.db", process::id()));
    let beside = path.with_extension("db-wal");
    fs::write(&path, file).expect("it can be written");
    fs::write(&beside, log).expect("it can be written");
    let torn = Torn::open(&path).expect("it can be opened");
    let mut places = Vec::new();
    torn.each(|place, _, kinds| places.push((place, kinds.len())));
    for (place, columns) in places {
        assert!(torn.row(place).is_none_or(|row| row.len() == columns));
    }
    fs::remove_file(&path).ok();
    fs::remove_file(&beside).ok();
}
