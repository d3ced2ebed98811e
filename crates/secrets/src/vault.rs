//! Names and their secrets.

use crate::Secret;
use std::collections::BTreeMap;

/// Endings of a variable's name, in upper case, that say its value is a secret.
const ENDINGS: &[&str] = &[
    "_API_KEY",
    "_APIKEY",
    "_ACCESS_KEY",
    "_PRIVATE_KEY",
    "_SECRET_KEY",
    "_SIGNING_KEY",
    "_ENCRYPTION_KEY",
    "_TOKEN",
    "_SECRET",
    "_PASSWORD",
    "_PASSWD",
    "_PASSPHRASE",
    "_PASS",
    "_PWD",
    "_PAT",
];

/// Parts of a name that say so wherever they stand.
const PARTS: &[&str] = &["_SECRET_", "SECRET_KEY", "PRIVATE_KEY_"];

/// Whole names that say so and fit no ending.
const NAMES: &[&str] = &[
    "API_KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSPHRASE",
    "PGPASSWORD",
    "MYSQL_PWD",
    "DATABASE_URL",
    "REDIS_URL",
    "MONGODB_URI",
    "AUTH_TOKEN",
];

/// Endings of a name that say its value only tells where a secret lies.
const POINTERS: &[&str] = &["_FILE", "_PATH", "_DIR", "_NAME", "_ENV", "_SOCK"];

/// Whether a variable of this name is taken for a secret: `*_API_KEY`, `*_TOKEN`, `*_SECRET*`, `*_PASSWORD`
/// and their kin, in any case, but not `*_FILE` or `*_PATH`.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    if POINTERS.iter().any(|ending| name.ends_with(ending)) {
        return false;
    }
    NAMES.contains(&name.as_str())
        || name.starts_with("SECRET_")
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || PARTS.iter().any(|part| name.contains(part))
}

/// Every secret that this process holds, by name. Values are zeroised when it is dropped.
#[derive(Debug, Default)]
pub struct Vault {
    secrets: BTreeMap<String, Secret>,
    /// Other values of these names, which are in use nowhere here and are secrets all the same.
    hidden: Vec<(String, Secret)>,
}

impl Vault {
    /// Takes from an environment the variables that [`is_secret_name`] knows and those named in `also`. Empty
    /// values are no secrets.
    #[must_use]
    pub fn from_env(pairs: impl IntoIterator<Item = (String, String)>, also: &[&str]) -> Self {
        let named = |name: &str| is_secret_name(name) || also.contains(&name);
        pairs.into_iter().filter(|(name, _)| named(name)).map(|(name, value)| (name, value.into())).collect()
    }

    /// Adds a secret, or replaces the one of that name; an empty one is left out.
    pub fn insert(&mut self, name: String, secret: Secret) {
        if !secret.expose().is_empty() {
            self.secrets.insert(name, secret);
        }
    }

    /// Adds a value that another one of its name stands before: it is not for use, and is known where it
    /// shows.
    pub fn hide(&mut self, name: String, secret: Secret) {
        if !secret.expose().is_empty() {
            self.hidden.push((name, secret));
        }
    }

    /// The secret of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Secret> {
        self.secrets.get(name)
    }

    /// Every name of one that is for use, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.secrets.keys().map(String::as_str)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Secret)> {
        let hidden = self.hidden.iter().map(|(name, secret)| (name.as_str(), secret));
        self.secrets.iter().map(|(name, secret)| (name.as_str(), secret)).chain(hidden)
    }
}

impl Extend<(String, Secret)> for Vault {
    fn extend<I: IntoIterator<Item = (String, Secret)>>(&mut self, pairs: I) {
        pairs.into_iter().for_each(|(name, secret)| self.insert(name, secret));
    }
}

impl FromIterator<(String, Secret)> for Vault {
    fn from_iter<I: IntoIterator<Item = (String, Secret)>>(pairs: I) -> Self {
        let mut vault = Self::default();
        vault.extend(pairs);
        vault
    }
}
