//! The system calls that commands may make: a named profile, or one that the owner wrote in Bailey's home.

use super::{Config, ConfigError, Document};
use crate::home::Home;
use bailey_protocol::Profile;
use bailey_sandbox::Calls;
use serde::Deserialize;
use std::path::PathBuf;
use toml::Spanned;

/// The shape of `profiles/NAME.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    /// The named profile that this profile starts from.
    base: Spanned<String>,
    /// Further calls that it allows.
    #[serde(default)]
    allow: Vec<Spanned<String>>,
    /// Calls that it takes away.
    #[serde(default)]
    deny: Vec<Spanned<String>>,
}

impl Config {
    /// Chooses the system calls of commands by the name of a profile.
    ///
    /// # Errors
    /// When there is no such profile, at the first mistake in the owner's file, or when the owner's file has
    /// the name of one of Bailey's own profiles.
    pub fn choose_calls(&mut self, home: &Home, name: &str) -> Result<(), ConfigError> {
        self.calls = match Profile::of_name(name) {
            Some(profile) => {
                // An owner who wrote a profile of this name expects Bailey to use it.
                let of_owner = home.profiles().join(format!("{name}.toml"));
                if of_owner.exists() {
                    return Err(ConfigError::NamedProfile { own: name.into(), of_owner });
                }
                Calls::named(profile)
            }
            None => of_file(&place(home, name)?, name)?,
        };
        self.profile = name.into();
        Ok(())
    }

    /// Chooses the profile that the configuration names.
    pub(super) fn choose_configured(
        &mut self,
        home: &Home,
        document: Option<&Document>,
    ) -> Result<(), ConfigError> {
        let name = self.profile.clone();
        self.choose_calls(home, &name).map_err(|error| match (&error, document) {
            (ConfigError::NoProfile { .. }, Some(document)) => {
                document.mistake("sandbox.profile", error.to_string())
            }
            _ => error,
        })
    }
}

/// The owner's own file of this name, in Bailey's home and nowhere else.
fn place(home: &Home, name: &str) -> Result<PathBuf, ConfigError> {
    let folder = home.profiles();
    let is_name = !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_".contains(&c));
    let path = folder.join(format!("{name}.toml"));
    if is_name && path.is_file() {
        return Ok(path);
    }
    Err(ConfigError::NoProfile { name: name.into(), folder })
}

fn of_file(path: &std::path::Path, name: &str) -> Result<Calls, ConfigError> {
    let Some(document) = Document::open(path)? else {
        return Err(ConfigError::NoProfile { name: name.into(), folder: path.into() });
    };
    let file: ProfileFile = document.read()?;
    let base = Profile::of_name(file.base.get_ref()).ok_or_else(|| {
        let message = format!(
            "`{}` is no profile to begin with: strict, standard or standard-net",
            file.base.get_ref()
        );
        document.mistake_at(file.base.span().start, message)
    })?;
    let mut calls = Calls::custom(name, base);
    for call in &file.allow {
        calls
            .allow(call.get_ref())
            .map_err(|error| document.mistake_at(call.span().start, error.to_string()))?;
    }
    for call in &file.deny {
        calls
            .deny(call.get_ref())
            .map_err(|error| document.mistake_at(call.span().start, error.to_string()))?;
    }
    Ok(calls)
}
