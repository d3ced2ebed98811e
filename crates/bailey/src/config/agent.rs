//! What holds for a named agent: a model and tools of its own, and limits of the home's that are lower for it.

use super::{Config, ConfigError, Document};
use crate::{agents::Settings, compose, home::Home};
use bailey_protocol::WsPath;
use std::io;

impl Config {
    /// Takes what the owner says of the agent that works, where it is a named one.
    ///
    /// # Errors
    /// At the first name that is none.
    pub(super) fn agent(&mut self, home: &Home) -> Result<(), ConfigError> {
        if home.agent.is_none() {
            return Ok(());
        }
        let path = home.agent_settings();
        // One that was removed a moment ago is no agent with all tools.
        let gone = || ConfigError::Read { path: path.clone(), source: io::ErrorKind::NotFound.into() };
        let document = Document::open(&path)?.ok_or_else(gone)?;
        let Settings { model, tools, limits } = document.read()?;
        if let Some(model) = model {
            self.find(&model).map_err(|error| document.mistake("model", error.to_string()))?;
            self.model = Some(model);
            self.came_from(&document, "model");
        }
        if let Some(tools) = &tools {
            let all = compose::toolbox(self, &WsPath::from("/"));
            if let Some(wrong) = tools.iter().find(|name| all.find(name).is_none()) {
                let message = format!("there is no tool `{wrong}`: `bailey tools list` names all");
                return Err(document.mistake("tools", message));
            }
        }
        self.tools = tools;
        for (name, value) in [
            ("session_tokens", limits.session_tokens),
            ("turn_tokens", limits.turn_tokens),
            ("tool_calls", limits.tool_calls),
            ("command_seconds", limits.command_seconds),
        ] {
            if value.is_some_and(|value| self.lower(name, value)) {
                self.came_from(&document, &format!("limits.{name}"));
            }
        }
        Ok(())
    }
}
