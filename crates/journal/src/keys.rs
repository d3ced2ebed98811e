//! The file `journal.key` beside the journal: the secret that signs the next checkpoint, and the newest
//! checkpoint.
//!
//! It has two slots of one size. A step writes the other slot, waits for the disk, and overwrites the slot it
//! came from with zeros: whenever the power goes, one slot is whole, and no secret outlives its checkpoint.
//! The newest checkpoint lies here too, so that a journal whose end was cut off is found without anybody's
//! help. Behind the slots stands the secret of capability tokens. The file is made and opened before its
//! process binds itself, and is never replaced.

use crate::{
    JournalError,
    chain::random,
    checkpoint::{Checkpoint, PublicKey, Secret},
};
use bailey_protocol::Digest;
use std::{
    fs::{File, OpenOptions, Permissions, TryLockError},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};
use zeroize::{Zeroize as _, Zeroizing};

/// The first bytes of a slot that is in use.
const MAGIC: &[u8; 16] = b"bailey.key.1\0\0\0\0";
/// How large a slot is, in bytes.
const SLOT: usize = 2048;
/// Behind what the sum is over.
const SUM: usize = SLOT - 32;
/// How large the file is, in bytes.
const SIZE: u64 = 2 * SLOT as u64;
/// The first bytes of what stands behind the slots: the secret of capability tokens.
const TOKENS: &[u8; 16] = b"bailey.tokens.1\0";
/// How large that is, in bytes: magic, secret, and the sum over both.
const TOKENS_SIZE: usize = 16 + 32 + 32;
/// How often a lock that another process has is tried again.
const AGAIN: Duration = Duration::from_millis(2);
/// How long it is tried: a step is done in milliseconds, on a slow disk in a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a slot holds.
pub(crate) struct State {
    /// The key that signed, or will sign, the first checkpoint.
    pub(crate) first: PublicKey,
    /// The number of the checkpoint that comes next.
    pub(crate) epoch: u64,
    /// Signs that one.
    pub(crate) secret: Secret,
    /// The one before it.
    pub(crate) newest: Option<Checkpoint>,
}

impl State {
    /// A new line of keys.
    pub(crate) fn begin() -> Result<Self, JournalError> {
        let secret = Secret::new(random()?);
        Ok(Self { first: PublicKey::of(&secret), epoch: 0, secret, newest: None })
    }
}

/// The file, open.
#[derive(Debug)]
pub(crate) struct KeyFile {
    path: PathBuf,
    file: File,
}

/// The lock of the file, given up when dropped.
pub(crate) struct KeyFileLock<'a>(&'a KeyFile);

impl Drop for KeyFileLock<'_> {
    fn drop(&mut self) {
        // The lock also goes with the file.
        self.0.file.unlock().ok();
    }
}

impl KeyFile {
    /// Opens the file, or makes it for its owner alone, without a key.
    pub(crate) fn open(path: &Path) -> Result<Self, JournalError> {
        let io = |source| JournalError::Io { path: path.to_path_buf(), source };
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path).map_err(io)?;
        let about = file.metadata().map_err(io)?;
        if about.permissions().mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600)).map_err(io)?;
        }
        if about.len() < SIZE {
            lengthen(&file).map_err(io)?;
        }
        Ok(Self { path: path.to_path_buf(), file })
    }

    /// What the file at `path` holds, without making one; none where there is none or nothing whole in it.
    pub(crate) fn look(path: &Path) -> Result<Option<State>, JournalError> {
        let io = |source| JournalError::Io { path: path.to_path_buf(), source };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(error)),
        };
        let keys = Self { path: path.to_path_buf(), file };
        keys.newest()
    }

    /// Its lock, where no other process is at it.
    pub(crate) fn try_lock(&self) -> Result<Option<KeyFileLock<'_>>, JournalError> {
        match self.file.try_lock() {
            Ok(()) => Ok(Some(KeyFileLock(self))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(self.io(error)),
        }
    }

    /// Waits until no other process is at it, but not for one that was stopped there.
    pub(crate) async fn lock(&self) -> Result<KeyFileLock<'_>, JournalError> {
        let free = async {
            loop {
                if let Some(held) = self.try_lock()? {
                    return Ok(held);
                }
                tokio::time::sleep(AGAIN).await;
            }
        };
        tokio::time::timeout(PATIENCE, free).await.unwrap_or_else(|_| Err(self.io(is_kept())))
    }

    /// What it holds; none before the first key.
    pub(crate) fn read(&self, _: &KeyFileLock<'_>) -> Result<Option<State>, JournalError> {
        self.newest()
    }

    fn newest(&self) -> Result<Option<State>, JournalError> {
        Ok(self.in_use()?.map(|(_, state)| state))
    }

    /// The slot that counts, and what it holds.
    fn in_use(&self) -> Result<Option<(usize, State)>, JournalError> {
        let mut found: Option<(usize, State)> = None;
        for slot in 0..2 {
            let state = parse(&*self.slot(slot)?);
            if let Some(state) = state
                && found.as_ref().is_none_or(|(_, found)| found.epoch < state.epoch)
            {
                found = Some((slot, state));
            }
        }
        Ok(found)
    }

    /// Makes the first key of a line.
    pub(crate) fn begin(&self, held: &KeyFileLock<'_>) -> Result<State, JournalError> {
        let state = State::begin()?;
        self.write(held, &state)?;
        Ok(state)
    }

    /// Puts another state in the place of all others, which are overwritten.
    pub(crate) fn write(&self, _: &KeyFileLock<'_>, state: &State) -> Result<(), JournalError> {
        let bytes = render(state)?;
        let place = self.in_use()?.map_or(0, |(slot, _)| 1 - slot);
        let at = |slot: usize| (slot * SLOT) as u64;
        let written = self.file.write_all_at(&*bytes, at(place)).and_then(|()| self.file.sync_data());
        written.map_err(|error| self.io(error))?;
        let erased = self.file.write_all_at(&[0; SLOT], at(1 - place)).and_then(|()| self.file.sync_data());
        erased.map_err(|error| self.io(error))
    }

    /// The secret of capability tokens, which stays; made when it is not there. One that is not whole any
    /// more is made anew, and no older token holds.
    pub(crate) fn tokens(&self, _: &KeyFileLock<'_>) -> Result<Secret, JournalError> {
        let mut bytes = Zeroizing::new([0; TOKENS_SIZE]);
        match self.file.read_exact_at(&mut *bytes, SIZE) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(self.io(error)),
        }
        if let Some(secret) = parse_tokens(&bytes) {
            return Ok(secret);
        }
        let secret = Secret::new(random()?);
        let (content, sum) = bytes.split_at_mut(TOKENS_SIZE - 32);
        let (magic, place) = content.split_at_mut(TOKENS.len());
        magic.copy_from_slice(TOKENS);
        place.copy_from_slice(secret.as_slice());
        sum.copy_from_slice(&Digest::of(content).0);
        let written = self.file.write_all_at(&*bytes, SIZE).and_then(|()| self.file.sync_data());
        written.map_err(|error| self.io(error))?;
        Ok(secret)
    }

    fn slot(&self, number: usize) -> Result<Zeroizing<[u8; SLOT]>, JournalError> {
        let mut bytes = Zeroizing::new([0; SLOT]);
        match self.file.read_exact_at(&mut *bytes, (number * SLOT) as u64) {
            Ok(()) => Ok(bytes),
            // Another process is just making it.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Zeroizing::new([0; SLOT])),
            Err(error) => Err(self.io(error)),
        }
    }

    fn io(&self, source: io::Error) -> JournalError {
        JournalError::Io { path: self.path.clone(), source }
    }
}

/// What stands in the way where another process keeps the lock beyond [`PATIENCE`].
fn is_kept() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "another process does not let go of it")
}

/// Gives it all the room it will ever need, so that a full disk stops no step. Of two processes that make it
/// at once one does so, and the other finds what the first has written meanwhile; it does not wait for one
/// that was stopped there.
fn lengthen(file: &File) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(AGAIN),
            Err(TryLockError::WouldBlock) => return Err(is_kept()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    let length = file.metadata()?.len();
    let missing = usize::try_from(SIZE.saturating_sub(length)).unwrap_or(0);
    let written = file.write_all_at(&vec![0; missing], length);
    file.unlock()?;
    written
}

/// Magic, first key, epoch, secret, length and text of the newest checkpoint; the sum over it at the end.
fn render(state: &State) -> Result<Zeroizing<[u8; SLOT]>, JournalError> {
    let mut newest = String::new();
    if let Some(checkpoint) = &state.newest {
        newest = serde_json::to_string(checkpoint).map_err(|error| JournalError::Json(error.to_string()))?;
    }
    let length = u32::try_from(newest.len()).unwrap_or(u32::MAX).to_be_bytes();
    let epoch = state.epoch.to_be_bytes();
    let parts: [&[u8]; 6] =
        [MAGIC, state.first.bytes(), &epoch, state.secret.as_slice(), &length, newest.as_bytes()];
    let mut bytes = Zeroizing::new([0; SLOT]);
    let (content, sum) = bytes.split_at_mut(SUM);
    let mut at = 0;
    for part in parts {
        let Some(room) = content.get_mut(at..at + part.len()) else {
            return Err(JournalError::Json("the checkpoint is too long for its place".into()));
        };
        room.copy_from_slice(part);
        at += part.len();
    }
    sum.copy_from_slice(&Digest::of(content).0);
    Ok(bytes)
}

fn parse_tokens(bytes: &[u8; TOKENS_SIZE]) -> Option<Secret> {
    let (content, sum) = bytes.split_at(TOKENS_SIZE - 32);
    let secret = content.strip_prefix(TOKENS)?;
    (Digest::of(content).0 == sum).then_some(Secret::new(secret.try_into().ok()?))
}

/// A slot that is in use and whole.
fn parse(bytes: &[u8; SLOT]) -> Option<State> {
    let (content, sum) = bytes.split_at(SUM);
    if Digest::of(content).0 != sum {
        return None;
    }
    let rest = content.strip_prefix(MAGIC)?;
    let (first, rest) = rest.split_first_chunk::<32>()?;
    let (epoch, rest) = rest.split_first_chunk::<8>()?;
    let (secret, rest) = rest.split_first_chunk::<32>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let newest = rest.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    let mut secret = *secret;
    let state = State {
        first: PublicKey::of_bytes(*first),
        epoch: u64::from_be_bytes(*epoch),
        secret: Secret::new(secret),
        newest: if newest.is_empty() { None } else { Some(serde_json::from_slice(newest).ok()?) },
    };
    secret.zeroize();
    Some(state)
}

#[cfg(test)]
mod tests;
