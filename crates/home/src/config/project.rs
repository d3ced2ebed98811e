//! The settings that a project may change: names of a closed list, and only if its owner trusted this exact
//! content.

use super::{Config, ConfigError, Document};
use crate::{home::Home, project, trust::TrustState};
use std::path::Path;

impl Config {
    /// Narrows the configuration by the project's own settings, if they exist and are trusted. Otherwise the
    /// returned line says which settings Bailey does not obey, and how to change that.
    ///
    /// # Errors
    /// When trusted settings name something outside the closed list.
    pub fn narrow(&mut self, home: &Home, root: &Path) -> anyhow::Result<Option<String>> {
        let text = match project::settings(root) {
            Ok(None) => return Ok(None),
            Ok(Some(text)) => text,
            // A malicious repository must not keep the user from working.
            Err(error) => {
                return Ok(Some(format!("not used: {error:#}")));
            }
        };
        let standing = TrustState::of(home, root, &text)?;
        let document = Document::parse(&root.join(project::SETTINGS), text);
        if standing == TrustState::Trusted {
            self.obey(&document?)?;
            return Ok(None);
        }
        let sets = match &document {
            Ok(document) if document.names().is_empty() => return Ok(None),
            Ok(document) => document.names().join(", "),
            Err(_) => "what is no TOML".into(),
        };
        // Bailey does not advise to trust settings that cannot be trusted as they are.
        let obeyed = document.and_then(|document| self.clone().obey(&document));
        if let Err(mistake) = obeyed {
            return Ok(Some(format!(
                "not used: {mistake}; so `{root}/{}`, which sets {sets}, cannot be trusted as it is",
                project::SETTINGS,
                root = root.display()
            )));
        }
        let why = match standing {
            TrustState::Changed => "it changed after you trusted it",
            _ => "you have not trusted it",
        };
        let root = root.display();
        Ok(Some(format!(
            "not used: `{root}/{}`, which sets {sets}: {why}; look at it with `bailey trust show -C '{root}'`, then \
             `bailey trust add -C '{root}'`",
            project::SETTINGS
        )))
    }

    /// Obeys a project's settings: only names of a closed list, and limits only downwards.
    ///
    /// # Errors
    /// When the settings name anything else.
    pub fn obey(&mut self, document: &Document) -> Result<(), ConfigError> {
        let table: toml::Table = document.read()?;
        for (name, value) in &table {
            match (name.as_str(), value) {
                ("model", toml::Value::String(model)) => self.project_model(document, model)?,
                ("limits", toml::Value::Table(limits)) => self.project_limits(document, limits)?,
                ("approvals", toml::Value::Table(approvals)) => {
                    if self.approvals.narrow(document, approvals)? {
                        self.came_from(document, "approvals.review");
                    }
                }
                ("model" | "limits" | "approvals", _) => {
                    return Err(document.mistake(name, format!("`{name}` is of the wrong type")));
                }
                (name, _) => {
                    return Err(document.mistake(
                        name,
                        format!(
                            "a project may not set `{name}`, only `model`, `limits` and `approvals.review`; \
                             endpoints, commands, paths, headers, variables and trust belong in your own \
                             config.toml"
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Takes the project's model. A project may choose only among the models of providers that the user
    /// configured.
    fn project_model(&mut self, document: &Document, model: &str) -> Result<(), ConfigError> {
        let provider = model.split_once('/').map(|(provider, _)| provider);
        if !provider.is_some_and(|provider| self.providers.contains_key(provider)) {
            return Err(document.mistake(
                "model",
                format!(
                    "`model` is `{model}`, but a project can only name PROVIDER/MODEL of a provider that you configured"
                ),
            ));
        }
        if self.model.is_none() {
            self.model = Some(model.to_owned());
            self.came_from(document, "model");
        }
        Ok(())
    }

    fn project_limits(&mut self, document: &Document, limits: &toml::Table) -> Result<(), ConfigError> {
        for (name, value) in limits {
            let key = format!("limits.{name}");
            let value = value.as_integer().and_then(|value| u64::try_from(value).ok());
            let value =
                value.ok_or_else(|| document.mistake(&key, format!("`{key}` must be a whole number")))?;
            if !["session_tokens", "turn_tokens", "tool_calls", "command_seconds"].contains(&name.as_str()) {
                return Err(document.mistake(
                    &key,
                    format!(
                        "a project may not set `{key}`, only session_tokens, turn_tokens, tool_calls and \
                         command_seconds, and only to lower values"
                    ),
                ));
            }
            if value == 0 {
                return Err(document
                    .mistake(&key, format!("`{key}` must be 1 or more, because 0 would stop all work")));
            }
            if self.lower(name, value) {
                self.came_from(document, &key);
            }
        }
        Ok(())
    }

    pub(super) fn came_from(&mut self, document: &Document, key: &str) {
        if let Some((_, origin)) = document.keys().find(|(known, _)| *known == key) {
            self.origins.note(key, origin);
        }
    }
}
