//! Where secrets live and how they are named, zeroised, matched and redacted.
//!
//! A [`Vault`] holds names and [`Secret`]s. A [`Redactor`] made from it replaces every known value, in the
//! encodings that programs print by accident, wrapped over lines or quoted, and every credential of a known
//! shape by a mark such as `[redacted:GITHUB_TOKEN]`, in whole texts and in streams alike. [`neutralise`]
//! makes control, bidirectional and invisible characters visible.
//!
//! Two forms of keeping them are here as text: `.env` ([`parse_dotenv`]) and the [`Sealed`] store; whoever
//! owns the files reads and writes them. A third lies in the kernel: [`Keyring`].
//!
//! What this crate refuses to be: a reader of the environment (the names and values come in as arguments), or
//! a wall. A program that *wants* to smuggle a value past the redactor can reverse or encrypt it; what keeps
//! secrets from such a program is that they never enter its sandbox.
//!
//! Read `redactor` first; `scan` is its heart, `patterns` what it searches for, `view` how a text is read,
//! `escape` what it undoes.

mod dotenv;
mod escape;
mod guard;
mod keyring;
mod known;
mod mark;
mod neutralise;
mod own;
mod patterns;
mod pem;
mod redactor;
mod scan;
mod sealed;
mod secret;
mod shape;
mod vault;
mod view;

pub use dotenv::{
    DOTENV_BYTES_MAX, DotenvError, EnvFileError, parse_dotenv, read_env_file, set as set_in_dotenv,
    unset as unset_in_dotenv,
};
pub use guard::Guarded;
pub use keyring::{Keyring, KeyringError};
pub use mark::{Marks, has_mark, marks};
pub use neutralise::{meant, neutralise, show_spaces};
pub use own::{Characters, OwnShape, OwnShapeError};
pub use redactor::{Redacted, Redactor, StreamRedactor};
pub use sealed::{Key, Needs, SEAL_RANDOM, SEALED_BYTES_MAX, Sealed, SealedError};
pub use secret::Secret;
pub use vault::{Vault, is_secret_name};
