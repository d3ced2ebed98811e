//! The places where Bailey itself keeps secrets: `.env` of its home, the sealed store beside it, and the
//! kernel's keyring.

use crate::{
    config::{Config, Store},
    home::{Home, wait_for, write_private},
    prompt,
};
use anyhow::{Context as _, Result, bail};
use bailey_protocol::shell_word;
use bailey_secrets::{
    DOTENV_BYTES_MAX, Key, Keyring, KeyringError, Needs, SEAL_RANDOM, SEALED_BYTES_MAX, Sealed, Secret,
    parse_dotenv, read_env_file, set_in_dotenv, unset_in_dotenv,
};
use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};
use zeroize::Zeroizing;

/// The lock file in a home. A process that changes a store waits for it.
const LOCK: &str = "secrets.lock";

/// The advice when the user cannot type a passphrase.
const NO_TERMINAL: &str =
    "name a key file as `key_file` under [secrets] in config.toml, or in BAILEY_KEY_FILE";

/// The stores of one home.
#[derive(Debug, Clone, Copy)]
pub struct Stores<'a> {
    home: &'a Home,
    config: &'a Config,
}

impl<'a> Stores<'a> {
    /// The stores of this home.
    pub fn new(home: &'a Home, config: &'a Config) -> Self {
        Self { home, config }
    }

    /// The names in each store. This never asks the user.
    ///
    /// # Errors
    /// When a store cannot be read, or others can read it.
    pub fn names(self) -> Result<Vec<(String, Store)>> {
        let env = read_env_file(&self.home.env_file())?.unwrap_or_default();
        let env = env.into_iter().filter(|(_, secret)| !secret.expose().is_empty());
        let mut names: Vec<_> = env.map(|(name, _)| (name, Store::Env)).collect();
        if let Some(sealed) = self.sealed()? {
            names.extend(sealed.names().iter().map(|name| (name.clone(), Store::Sealed)));
        }
        names.extend(self.kept()?.into_iter().map(|(name, _)| (name, Store::Keyring)));
        Ok(names)
    }

    /// The secrets that can be read without asking the user: `.env`, the sealed store if a key file opens it,
    /// and the keyring.
    ///
    /// # Errors
    /// When a store cannot be read, others can read it, or the key file is the wrong one.
    pub fn open(self) -> Result<Vec<(String, Secret)>> {
        let mut secrets = read_env_file(&self.home.env_file())?.unwrap_or_default();
        if let Some(sealed) = self.sealed()?
            && sealed.needs() == Needs::File
        {
            secrets.extend(self.unseal(&sealed)?);
        }
        secrets.extend(self.kept()?);
        Ok(secrets)
    }

    /// The secrets of the sealed store, if it needs a passphrase and holds any of these names. This asks the
    /// user for the passphrase.
    ///
    /// # Errors
    /// When there is no user to ask, or the passphrase is wrong.
    pub fn open_by_passphrase(self, wanted: &[&str]) -> Result<Vec<(String, Secret)>> {
        match self.sealed()? {
            Some(sealed)
                if sealed.needs() == Needs::Passphrase
                    && sealed.names().iter().any(|name| wanted.contains(&name.as_str())) =>
            {
                self.unseal(&sealed)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Stores a secret.
    ///
    /// # Errors
    /// When the store cannot be read or written, or cannot hold the secret.
    pub fn set(self, store: Store, name: &str, secret: Secret) -> Result<()> {
        let _alone = self.alone()?;
        match store {
            Store::Env => {
                let path = self.env_file();
                let text = self.env_text()?;
                let text = set_in_dotenv(&text, name, &secret)
                    .with_context(|| format!("`{name}` cannot be stored in `{}`", path.display()))?;
                write_private(&path, text.as_bytes())
            }
            Store::Sealed => {
                let sealed = self.sealed()?;
                let key = self.key(sealed.as_ref().map(Sealed::needs))?;
                let mut secrets = self.opened(sealed.as_ref(), &key)?;
                secrets.retain(|(known, _)| known != name);
                secrets.push((name.into(), secret));
                self.seal(&secrets, &key)
            }
            Store::Keyring => {
                let text = self.keyring().read()?.unwrap_or_default();
                Ok(self.keyring().write(&set_in_dotenv(&text, name, &secret)?)?)
            }
        }
    }

    /// Removes a secret. Returns whether it was there.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub fn remove(self, store: Store, name: &str) -> Result<bool> {
        let _alone = self.alone()?;
        if !self.names()?.iter().any(|(known, place)| known == name && *place == store) {
            return Ok(false);
        }
        match store {
            Store::Env => {
                let text = self.env_text()?;
                let text = unset_in_dotenv(&text, name)?;
                write_private(&self.env_file(), text.as_bytes())?;
            }
            Store::Sealed => {
                let sealed = self.sealed()?;
                let key = self.key(sealed.as_ref().map(Sealed::needs))?;
                let mut secrets = self.opened(sealed.as_ref(), &key)?;
                secrets.retain(|(known, _)| known != name);
                self.seal(&secrets, &key)?;
            }
            Store::Keyring => {
                let text = self.keyring().read()?.unwrap_or_default();
                self.keyring().write(&unset_in_dotenv(&text, name)?)?;
            }
        }
        Ok(true)
    }

    /// Locks the stores. Bailey reads and writes a store as a whole: of two changes at once, one would be
    /// lost.
    fn alone(self) -> Result<File> {
        wait_for(&self.home.root.join(LOCK))
    }

    /// The path of `.env`, or the file that it leads to if it is a link.
    fn env_file(self) -> PathBuf {
        let path = self.home.env_file();
        fs::canonicalize(&path).unwrap_or(path)
    }

    /// The keyring of this home. Each home has its own place in it, as it has its own files.
    fn keyring(self) -> Keyring {
        Keyring::of(&self.home.root.display().to_string())
    }

    /// The secrets in the keyring. Empty if there is no keyring.
    fn kept(self) -> Result<Vec<(String, Secret)>> {
        match self.keyring().read() {
            Ok(text) => Ok(parse_dotenv(&text.unwrap_or_default())?),
            Err(KeyringError::Unavailable(_)) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn env_text(self) -> Result<Zeroizing<String>> {
        // Check the mode and form first: Bailey does not overwrite a file that is wrong.
        read_env_file(&self.home.env_file())?;
        Ok(private_text(&self.home.env_file(), DOTENV_BYTES_MAX)?.unwrap_or_default())
    }

    fn sealed(self) -> Result<Option<Sealed>> {
        let path = self.home.sealed();
        let Some(text) = private_text(&path, SEALED_BYTES_MAX)? else { return Ok(None) };
        Sealed::parse(&text).map(Some).with_context(|| format!("`{}`", path.display()))
    }

    fn opened(self, sealed: Option<&Sealed>, key: &Key) -> Result<Vec<(String, Secret)>> {
        let open = |sealed: &Sealed| sealed.open(key);
        sealed.map_or(Ok(Vec::new()), open).with_context(|| format!("`{}`", self.home.sealed().display()))
    }

    fn unseal(self, sealed: &Sealed) -> Result<Vec<(String, Secret)>> {
        self.opened(Some(sealed), &self.key(Some(sealed.needs()))?)
    }

    fn seal(self, secrets: &[(String, Secret)], key: &Key) -> Result<()> {
        let mut random = [0; SEAL_RANDOM];
        fill(&mut random)?;
        write_private(&self.home.sealed(), Sealed::seal(secrets, key, &random)?.as_bytes())
    }

    /// The key that a store asks for. For a new store, the configuration decides, and a missing key file is
    /// made.
    fn key(self, needs: Option<Needs>) -> Result<Key> {
        let file = self.config.secrets.key_file.as_deref();
        match (needs, file) {
            (Some(Needs::Passphrase), _) => {
                Ok(Key::Passphrase(prompt::secret("the passphrase of the sealed store", NO_TERMINAL)?))
            }
            (Some(Needs::File), None) => bail!(
                "`{}` was sealed with a key file: name it as `key_file` under [secrets] in config.toml, or in BAILEY_KEY_FILE",
                self.home.sealed().display()
            ),
            (_, Some(file)) => match private_text(file, 1 << 10)? {
                Some(text) => Ok(Key::File(Secret::new(text.to_string()))),
                None if needs.is_none() => new_key_file(file),
                None => {
                    bail!("the key file `{}` is not there: bring it back, or name another", file.display())
                }
            },
            (None, None) => {
                let first = prompt::secret("a passphrase for the new sealed store", NO_TERMINAL)?;
                if first.expose().is_empty() {
                    bail!("an empty passphrase protects nothing");
                }
                if prompt::secret("the same again", NO_TERMINAL)?.expose() != first.expose() {
                    bail!("the two differ; nothing was stored");
                }
                Ok(Key::Passphrase(first))
            }
        }
    }
}

fn new_key_file(path: &Path) -> Result<Key> {
    let mut random = Zeroizing::new([0; 32]);
    fill(random.as_mut_slice())?;
    let text = Key::file_text(&random);
    write_private(path, text.as_bytes())?;
    Ok(Key::File(Secret::new(text.to_string())))
}

fn fill(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))
}

/// The text of a file that only its owner can reach. `None` if the file does not exist.
fn private_text(path: &Path, bytes_max: usize) -> Result<Option<Zeroizing<String>>> {
    let cannot = || format!("cannot read `{}`", path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(cannot),
    };
    let mode = file.metadata().with_context(cannot)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let path = path.display().to_string();
        bail!(
            "`{path}` can be reached by other users (mode {mode:03o}); run: chmod 600 {}",
            shell_word(&path)
        );
    }
    let mut text = Zeroizing::new(String::with_capacity(bytes_max + 1));
    file.take(bytes_max as u64 + 1).read_to_string(&mut text).with_context(cannot)?;
    if text.len() > bytes_max {
        bail!("`{}` is longer than {bytes_max} bytes", path.display());
    }
    Ok(Some(text))
}

/// Whether the environment of this process has a value for a name.
pub fn is_in_environment(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}
