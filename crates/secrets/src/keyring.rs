//! One text in the kernel's keyring of this user: in the machine's memory, never on a disk, gone when it
//! starts anew.
//!
//! Why the kernel's, and no desktop's: it is there on every Linux without a daemon, a bus or a session, and
//! costs two system calls. A Secret Service needs all three, which a server has not, and some 40 crates to
//! talk to.

use linux_keyutils::{KeyError, KeyPermissionsBuilder, KeyRing, KeyRingIdentifier, Permission};
use zeroize::Zeroizing;

/// The most bytes that a key of the kernel holds.
const TEXT_BYTES_MAX: usize = 32_767;

/// A place in the keyring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyring {
    description: String,
}

/// The keyring cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyringError {
    /// There is none for this process: the kernel has none, or a container forbids it.
    #[error(
        "this kernel has no keyring for you, or a container keeps it from you ({0:?}); use another store: `env` or `sealed`"
    )]
    Unavailable(KeyError),
    /// The user has too many keys, or too long ones.
    #[error(
        "your keyring has no room for it: `cat /proc/key-users` shows how much you may keep (root sets \
         kernel.keys.maxbytes); or use another store: `env` or `sealed`"
    )]
    Full,
    /// More than the kernel keeps in one key.
    #[error("{0} bytes of secrets are too many: the keyring keeps {TEXT_BYTES_MAX}; use the store `sealed`")]
    TooLong(usize),
    /// Something else put it there, or took its rights away.
    #[error(
        "the key `{description}` in your keyring cannot be used ({error:?}); `keyctl show @u` shows it, \
             `keyctl purge user {description}` removes it"
    )]
    Refused {
        /// The key's description.
        description: String,
        /// What the kernel said.
        error: KeyError,
    },
}

impl Keyring {
    /// The place of this name, which is seen by whoever may list the user's keys.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self { description: format!("bailey:{name}") }
    }

    /// What it holds; none where there is nothing.
    ///
    /// # Errors
    /// When there is no keyring, or the key cannot be read.
    pub fn read(&self) -> Result<Option<Zeroizing<String>>, KeyringError> {
        let key = match ring()?.search(&self.description) {
            Ok(key) => key,
            Err(KeyError::KeyDoesNotExist | KeyError::KeyRevoked | KeyError::KeyExpired) => return Ok(None),
            Err(error) => return Err(self.error(error)),
        };
        let mut bytes = Zeroizing::new(key.read_to_vec().map_err(|error| self.error(error))?);
        match String::from_utf8(std::mem::take(&mut *bytes)) {
            Ok(text) => Ok(Some(Zeroizing::new(text))),
            Err(error) => {
                drop(Zeroizing::new(error.into_bytes()));
                Err(self.error(KeyError::InvalidArguments))
            }
        }
    }

    /// Puts this text in its place; an empty one takes it away.
    ///
    /// # Errors
    /// When there is no keyring, or no room in it.
    pub fn write(&self, text: &str) -> Result<(), KeyringError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(KeyringError::TooLong(text.len()));
        }
        let ring = ring()?;
        let error = |error| self.error(error);
        if text.is_empty() {
            return match ring.search(&self.description) {
                Err(KeyError::KeyDoesNotExist) => Ok(()),
                found => ring.unlink_key(found.map_err(error)?).map_err(error),
            };
        }
        let key = ring.add_key(&self.description, text).map_err(error)?;
        // The user's own processes read it, also those whose session keyring does not lead to the user's.
        let own = KeyPermissionsBuilder::builder().posessor(Permission::ALL).user(Permission::ALL).build();
        key.set_perms(own).map_err(error)
    }

    fn error(&self, error: KeyError) -> KeyringError {
        match error {
            KeyError::QuotaExceeded => KeyringError::Full,
            error => KeyringError::Refused { description: self.description.clone(), error },
        }
    }
}

/// The user's own keyring: what lies there is for all of their processes, and for nobody else's.
fn ring() -> Result<KeyRing, KeyringError> {
    KeyRing::from_special_id(KeyRingIdentifier::User, true).map_err(KeyringError::Unavailable)
}
