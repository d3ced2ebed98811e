//! The kinds of channels: a table with a line for each.

use crate::Channel;
use anyhow::Result;
use bailey_home::{
    config::{Channel as Configured, Config, ConfigError, Document},
    home::Home,
};
use bailey_protocol::{Uplink, UplinkServer};
use std::sync::Arc;

/// Every kind. A new one is a file, and a line here.
const KINDS: &[Kind] = &[
    crate::telegram::KIND,
    crate::webhook::KIND,
    #[cfg(any(test, feature = "examples"))]
    crate::ntfy::KIND,
    #[cfg(any(test, feature = "examples"))]
    crate::ntfy::OVER_WEBSOCKET,
];

/// A kind of channel.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name in config.toml.
    pub name: &'static str,
    /// The URL of the platform's server, unless `base_url` names another. `None`: the owner names it.
    pub url: Option<&'static str>,
    /// The methods of requests to that server.
    pub methods: &'static [&'static str],
    /// The place of the key.
    pub key: KeyPlace,
    /// Further servers of the platform.
    pub also: &'static [Server],
    /// Whether the owner's servers bring messages to the page's address, signed with the key.
    pub is_inbound: bool,
    /// The codec.
    pub channel: fn() -> Arc<dyn Channel>,
}

/// The place of the key in requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlace {
    /// In the path, where [`KEY`](crate::KEY) stands.
    Path,
    /// In a header, behind a text such as `Bearer `.
    Header(&'static str, &'static str),
    /// Each body is signed with it, as Standard Webhooks has it.
    Signature,
}

/// A further server of a platform, such as one that keeps files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Server {
    /// Its URL.
    pub url: &'static str,
    /// The methods of requests to it.
    pub methods: &'static [&'static str],
    /// Whether the key goes there, too.
    pub takes_key: bool,
}

impl Kind {
    /// The kind of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// Whether messages can be sent to a person by their id, so that results of schedules can come there.
    #[must_use]
    pub fn writes_to_people(&self) -> bool {
        (self.channel)().alone("1").is_some()
    }

    /// The way to the servers of a configured channel.
    pub(crate) fn uplink(&self, name: &str, configured: &Configured) -> Uplink {
        let owned = |methods: &[&str]| methods.iter().map(|method| (*method).to_owned()).collect();
        let also = |server: &Server| UplinkServer {
            url: server.url.to_owned(),
            methods: owned(server.methods),
            takes_key: server.takes_key,
        };
        let (header, prefix) = match self.key {
            KeyPlace::Header(header, prefix) => (Some(header.to_owned()), prefix.to_owned()),
            KeyPlace::Path | KeyPlace::Signature => (None, String::new()),
        };
        let url = configured.base_url.as_deref().or(self.url).unwrap_or_default();
        Uplink {
            header,
            prefix,
            methods: owned(self.methods),
            also: self.also.iter().map(also).collect(),
            ..Uplink::new(name, url, &configured.key_env)
        }
    }
}

/// Checks that each configured channel is of a kind, and has all that its kind asks for.
///
/// # Errors
/// The mistake, with its place in the document.
pub fn check(config: &Config, document: &Document) -> Result<(), ConfigError> {
    for (name, channel) in &config.channels {
        let mistake =
            |key: &str, message: String| document.mistake(&format!("channels.{name}.{key}"), message);
        let Some(kind) = Kind::of(&channel.kind) else {
            let known: Vec<String> = KINDS.iter().map(|kind| format!("`{}`", kind.name)).collect();
            let message = format!("`{}` is no kind of channel: there are {}", channel.kind, known.join(", "));
            return Err(mistake("kind", message));
        };
        if kind.url.or(channel.base_url.as_deref()).is_none() {
            return Err(mistake("base_url", "name the server that answers are sent to".to_owned()));
        }
    }
    Ok(())
}

/// A fault that keeps a channel from work, and is seen only when a person writes there.
pub fn faults(config: &Config) -> Vec<String> {
    let of_channel = |(name, channel): (&String, &Configured)| {
        let place = channel.workspace.display();
        let no_place =
            (!channel.workspace.is_dir()).then(|| format!("the workspace `{place}` is not a directory"));
        let no_model = channel.model.as_ref().and_then(|model| config.find(model).err());
        let why = no_place.into_iter().chain(no_model.map(|why| format!("{why:#}")));
        why.map(|why| format!("channel `{name}`: {why}")).collect::<Vec<_>>()
    };
    config.channels.iter().flat_map(of_channel).collect()
}

/// Reads the configuration of a home whose channels are to run.
///
/// # Errors
/// As [`Config::load`], and of [`check`].
pub fn load(home: &Home) -> Result<Config> {
    let config = Config::load(home)?;
    // Without a file there is no channel.
    if let Some(document) = Document::open(&home.config())? {
        check(&config, &document)?;
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::{KINDS, check};
    use bailey_home::{
        config::{Config, Document},
        home::Home,
    };
    use std::collections::BTreeSet;

    fn checked(channel: &str) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let home = Home { root: folder.path().into(), user: folder.path().into(), agent: None };
        let text = format!("[channels.a]\nkey_env = \"A_KEY\"\nworkspace = \"/w\"\n{channel}\n");
        let document = Document::parse("config.toml".as_ref(), text).unwrap();
        let config = Config::of(&home, &document).map_err(|error| error.to_string())?;
        check(&config, &document).map_err(|error| error.to_string())
    }

    #[test]
    fn a_kind_that_is_not_there_is_told_with_its_place_and_those_that_are() {
        let why = checked("kind = \"telegramm\"").unwrap_err();
        assert!(why.starts_with("config.toml:4:1: `telegramm` is no kind of channel"), "{why}");
        assert!(why.contains("there are `telegram`, `webhook`"), "{why}");
        assert!(checked("kind = 7").unwrap_err().starts_with("config.toml:4:"));
        let why = checked("kind = \"webhook\"").unwrap_err();
        assert!(why.contains("name the server that answers are sent to"), "{why}");
        // The controls.
        checked("kind = \"telegram\"").unwrap();
        checked("kind = \"webhook\"\nbase_url = \"https://ci.example.org\"").unwrap();
    }

    #[test]
    fn kinds_have_names_of_their_own_and_servers_that_rules_can_judge() {
        let names: BTreeSet<&str> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KINDS.len());
        for kind in KINDS {
            let also = kind.also.iter().map(|server| (server.url, server.methods));
            for (url, methods) in kind.url.map(|url| (url, kind.methods)).into_iter().chain(also) {
                assert!(url.starts_with("https://") && !methods.is_empty(), "{url}");
            }
        }
    }
}
