//! The sealed store: names and secrets in one file that is of no use without its key.
//!
//! Version 1, five lines of text:
//!
//! ```text
//! bailey-sealed 1
//! passphrase SALT            or: key-file
//! NAME,NAME
//! NONCE
//! CIPHERTEXT
//! ```
//!
//! The ciphertext is XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03) over the secrets as [`parse_dotenv`]
//! reads them; the four lines above it are authenticated with it. The key is a key file's 32 bytes, or
//! Argon2id (RFC 9106) of a passphrase with 64 MiB, 3 passes and 1 lane: fixed by the version, so that a
//! forged file cannot ask for more. Names are not secret: `list` needs no key. All of it is Base64 (RFC 4648)
//! where it is not text. Randomness is the caller's.

use crate::{DotenvError, Secret, dotenv, parse_dotenv};
use argon2::{Algorithm, Argon2, Params, Version};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305,
    aead::{Aead as _, Payload},
};
use std::fmt::Write as _;
use thiserror::Error;
use zeroize::Zeroizing;

/// The largest sealed file that is read, in bytes.
pub const SEALED_BYTES_MAX: usize = 128 << 10;
/// Random bytes that [`Sealed::seal`] takes: a salt and a nonce.
pub const SEAL_RANDOM: usize = SALT + NONCE;

const MAGIC: &str = "bailey-sealed 1";
const SALT: usize = 16;
const NONCE: usize = 24;
const KEY: usize = 32;

/// What a store is sealed with.
#[derive(Debug)]
pub enum Key {
    /// Something that a human knows.
    Passphrase(Secret),
    /// A key file's text: 32 bytes in Base64.
    File(Secret),
}

/// Which key a sealed store asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The passphrase that it was sealed with.
    Passphrase,
    /// The key file that it was sealed with.
    File,
}

/// A sealed store, as its file says.
#[derive(Debug, Clone)]
pub struct Sealed {
    header: String,
    salt: Option<Vec<u8>>,
    names: Vec<String>,
    nonce: [u8; NONCE],
    ciphertext: Vec<u8>,
}

/// Why a sealed store cannot be used. It never holds a part of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SealedError {
    /// The text is none.
    #[error("this is no sealed store, or one of a newer Bailey: {0}")]
    Form(&'static str),
    /// The key is not the one, or the file was changed: nobody can tell which.
    #[error(
        "it cannot be opened: the passphrase or key file is not the one that it was sealed with, or it was changed"
    )]
    Key,
    /// A key file does not hold a key.
    #[error("a key file holds 32 bytes in Base64 and nothing else")]
    KeyFile,
    /// What was inside cannot be read, or a secret cannot be written.
    #[error(transparent)]
    Inside(#[from] DotenvError),
}

impl Sealed {
    /// Takes a file's text apart.
    ///
    /// # Errors
    /// [`SealedError::Form`].
    pub fn parse(text: &str) -> Result<Self, SealedError> {
        let form = SealedError::Form;
        if text.len() > SEALED_BYTES_MAX {
            return Err(form("it is larger than 128 KiB"));
        }
        let lines: Vec<&str> = text.lines().collect();
        let [magic, key, names, nonce, ciphertext] = lines.as_slice() else {
            return Err(form("it has not five lines"));
        };
        if *magic != MAGIC {
            return Err(form("its first line is another"));
        }
        let bytes = |text: &str| STANDARD.decode(text).map_err(|_| form("a part is not Base64"));
        let salt = match key.split_once(' ') {
            Some(("passphrase", salt)) => Some(bytes(salt)?),
            None if *key == "key-file" => None,
            _ => return Err(form("it names no key")),
        };
        Ok(Self {
            header: header(key, names, nonce),
            salt,
            names: names.split(',').filter(|name| !name.is_empty()).map(Into::into).collect(),
            nonce: bytes(nonce)?.try_into().map_err(|_| form("its nonce has another length"))?,
            ciphertext: bytes(ciphertext)?,
        })
    }

    /// The names of what is inside, as written down beside it; `open` proves them.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Which key it asks for.
    #[must_use]
    pub fn needs(&self) -> Needs {
        if self.salt.is_some() { Needs::Passphrase } else { Needs::File }
    }

    /// What is inside.
    ///
    /// # Errors
    /// When the key is not the one, or the file was changed.
    pub fn open(&self, key: &Key) -> Result<Vec<(String, Secret)>, SealedError> {
        let cipher = cipher(key, self.salt.as_deref())?;
        let payload = Payload { msg: &self.ciphertext, aad: self.header.as_bytes() };
        let plain = cipher.decrypt(&self.nonce.into(), payload).map_err(|_| SealedError::Key)?;
        let plain = Zeroizing::new(plain);
        let text = std::str::from_utf8(&plain).map_err(|_| SealedError::Form("it holds no text"))?;
        Ok(parse_dotenv(text)?)
    }

    /// Seals secrets; the answer is the new file's text. `random` must be new each time.
    ///
    /// # Errors
    /// When a name or value cannot be stored, or the key file holds no key.
    pub fn seal(
        secrets: &[(String, Secret)],
        key: &Key,
        random: &[u8; SEAL_RANDOM],
    ) -> Result<String, SealedError> {
        let (salt, nonce) = random.split_at(SALT);
        let salt = matches!(key, Key::Passphrase(_)).then_some(salt);
        let mut plain = Zeroizing::new(String::new());
        for (name, secret) in secrets {
            plain = dotenv::set(&plain, name, secret)?;
        }
        let names: Vec<&str> = secrets.iter().map(|(name, _)| name.as_str()).collect();
        let said = match salt {
            Some(salt) => format!("passphrase {}", STANDARD.encode(salt)),
            None => "key-file".into(),
        };
        let mut text = header(&said, &names.join(","), &STANDARD.encode(nonce));
        let nonce: [u8; NONCE] = nonce.try_into().map_err(|_| SealedError::Form("its nonce"))?;
        let payload = Payload { msg: plain.as_bytes(), aad: text.as_bytes() };
        let sealed = cipher(key, salt)?.encrypt(&nonce.into(), payload).map_err(|_| SealedError::Key)?;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", STANDARD.encode(sealed));
        Ok(text)
    }
}

impl Key {
    /// The text of a new key file, from 32 random bytes.
    #[must_use]
    pub fn file_text(random: &[u8; KEY]) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(random) + "\n")
    }
}

fn header(key: &str, names: &str, nonce: &str) -> String {
    format!("{MAGIC}\n{key}\n{names}\n{nonce}\n")
}

fn cipher(key: &Key, salt: Option<&[u8]>) -> Result<XChaCha20Poly1305, SealedError> {
    let mut bytes = Zeroizing::new([0_u8; KEY]);
    match (key, salt) {
        (Key::Passphrase(passphrase), Some(salt)) => {
            let params = Params::new(64 << 10, 3, 1, Some(KEY)).map_err(|_| SealedError::Key)?;
            Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
                .hash_password_into(passphrase.expose().as_bytes(), salt, bytes.as_mut_slice())
                .map_err(|_| SealedError::Form("its salt has another length"))?;
        }
        (Key::File(text), None) => {
            let decoded = STANDARD.decode(text.expose().trim()).map_err(|_| SealedError::KeyFile)?;
            let decoded = Zeroizing::new(decoded);
            if decoded.len() != KEY {
                return Err(SealedError::KeyFile);
            }
            bytes.copy_from_slice(&decoded);
        }
        _ => return Err(SealedError::Key),
    }
    XChaCha20Poly1305::new_from_slice(bytes.as_slice()).map_err(|_| SealedError::Key)
}
