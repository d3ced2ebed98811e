//! The secrets: keys from the environment and from Bailey's own stores, and the redactor that keeps them out
//! of all output.

use crate::{config::Config, home::Home, print::Printer, stores::Stores};
use anyhow::Result;
use bailey_egress::BoundKey;
use bailey_protocol::Digest;
use bailey_secrets::{Redactor, Secret, Vault};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, sync::Arc};

/// The secrets and the redactor made from them.
#[derive(Clone)]
pub struct Keys {
    /// Holds the secrets by name.
    pub vault: Arc<Vault>,
    /// Masks them in texts.
    pub redactor: Redactor,
}

impl Keys {
    /// Loads the keys from the environment and from Bailey's own stores. It never reads a repository's
    /// store, and never prints a loaded key.
    ///
    /// # Errors
    /// When a store cannot be read, or others can read it.
    pub fn load(home: &Home, config: &Config, printer: &Printer) -> Result<Self> {
        Self::gather(home, config, printer, false)
    }

    /// The same for a turn: when a provider's key is sealed with a passphrase, this asks for the passphrase.
    ///
    /// # Errors
    /// The errors of [`Keys::load`]; or there is no human to ask, or the passphrase is wrong.
    pub fn unlocked(home: &Home, config: &Config, printer: &Printer) -> Result<Self> {
        Self::gather(home, config, printer, true)
    }

    fn gather(home: &Home, config: &Config, printer: &Printer, asks: bool) -> Result<Self> {
        let vault = vault(home, config, asks)?;
        let redactor = Redactor::with_shapes(&vault, &config.credentials);
        printer.hide(redactor.clone());
        Ok(Self { vault: Arc::new(vault), redactor })
    }

    /// Whether there is a value for this name.
    pub fn has(&self, name: &str) -> bool {
        self.vault.get(name).is_some_and(|secret: &Secret| !secret.expose().is_empty())
    }
}

/// Names of the keys that commands may use now, made from each key and its binding. A process that holds a
/// key can tell from them whether the key is still the owner's. No other reader learns a key from them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Named {
    /// Random text that goes into each name.
    pub salt: String,
    /// The names.
    pub names: BTreeSet<Digest>,
}

impl Named {
    /// The names of the keys that exist now.
    ///
    /// # Errors
    /// The errors of [`Keys::load`]; or there are no random numbers.
    pub fn now(home: &Home, config: &Config) -> Result<Self> {
        let vault = vault(home, config, false)?;
        let salt = super::new_session()?.to_string();
        let name = |key: &BoundKey| Some(key.name(vault.get(&key.secret)?, &salt));
        let names = config.network.keys.iter().filter_map(name).collect();
        Ok(Self { salt, names })
    }
}

/// The secrets of the environment and of the stores. When several have one name, the first one is used.
///
/// # Errors
/// The errors of [`Keys::load`].
fn vault(home: &Home, config: &Config, asks: bool) -> Result<Vault> {
    let of_providers = config.providers.values().filter_map(|p| p.key_env.as_deref());
    let of_commands = config.network.keys.iter().map(|key| key.secret.as_str());
    let of_channels = config.channels.values().map(|channel| channel.key_env.as_str());
    let of_collector = config.telemetry.key_env.as_deref();
    let named: Vec<&str> = of_providers.chain(of_commands).chain(of_channels).chain(of_collector).collect();
    let mut vault = Vault::from_env(
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
        &named,
    );
    let stores = Stores::new(home, config);
    let mut stored = stores.open()?;
    if asks {
        let is_there =
            |name: &str| vault.get(name).is_some() || stored.iter().any(|(stored, _)| stored == name);
        let wanted: Vec<&str> = named.into_iter().filter(|name| !is_there(name)).collect();
        stored.extend(stores.open_by_passphrase(&wanted)?);
    }
    for (name, secret) in stored {
        match vault.get(&name) {
            None => vault.insert(name, secret),
            Some(_) => vault.hide(name, secret),
        }
    }
    Ok(vault)
}
