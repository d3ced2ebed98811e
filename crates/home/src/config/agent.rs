//! The settings of a named agent: a model and tools of its own, and limits that are lower than those of the
//! home.

use super::{Config, ConfigError, Document, McpServer, Peer};
use crate::{
    agents::{self, Settings},
    home::Home,
    schedules::Schedules,
};
use anyhow::{Context as _, Result};
use bailey_kernel::Standpoint;
use bailey_protocol::WsPath;
use bailey_tools::{ToolConfig, ToolSource, Toolbox, Tools};
use std::{collections::BTreeMap, io, sync::Arc};

impl Config {
    /// Checks the home's named agents: that each agent exists that a channel or a schedule names, and that
    /// Bailey can obey the owner's settings for each. The home's own agent works without settings.
    ///
    /// # Errors
    /// At the first agent that does not exist, or whose settings have a mistake.
    pub fn check_agents(&self, home: &Home) -> Result<()> {
        let of_channels = self.channels.iter().map(|(name, it)| ("channel", name, &it.agent));
        // Commands that need the schedules report that they cannot be read.
        let schedules = Schedules::of(home).map(|schedules| schedules.0).unwrap_or_default();
        let of_schedules = schedules.iter().map(|(name, it)| ("schedule", name, &it.agent));
        for (what, name, agent) in of_channels.chain(of_schedules) {
            home.of_agent(agent.as_deref()).with_context(|| format!("the {what} `{name}` is an agent's"))?;
        }
        for name in agents::names(home)? {
            Self::load(&home.of_agent(Some(&name))?)?;
        }
        Ok(())
    }

    /// Takes the owner's settings for the working agent, if it is a named one.
    ///
    /// # Errors
    /// At the first name that does not exist.
    pub(super) fn agent(&mut self, home: &Home) -> std::result::Result<(), ConfigError> {
        self.origins.of_home(&home.root);
        if home.agent.is_none() {
            return Ok(());
        }
        let path = home.agent_settings();
        // An agent that was removed a moment ago must not become an agent with all tools.
        let gone = || ConfigError::Read { path: path.clone(), source: io::ErrorKind::NotFound.into() };
        let document = Document::open(&path)?.ok_or_else(gone)?;
        let Settings { model, tools, limits } = document.read()?;
        if let Some(model) = model {
            self.find(&model).map_err(|error| document.mistake("model", error.to_string()))?;
            self.model = Some(model);
            self.came_from(&document, "model");
        }
        if let Some(tools) = &tools {
            let all = self.toolbox(&WsPath::from("/"), &Standpoint::default());
            // The names of a peer's tools are known when it runs.
            let is_peers = |name: &String| {
                name.split_once('.')
                    .is_some_and(|(peer, _)| self.peers.contains_key(peer) || self.mcp.contains_key(peer))
            };
            if let Some(wrong) = tools.iter().find(|name| all.find(name).is_none() && !is_peers(name)) {
                let message = format!("there is no tool `{wrong}`; `bailey tools list` shows all");
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

    /// Takes away the peers and MCP servers whose tools the working agent may not use.
    pub fn own_peers(&self) -> (BTreeMap<String, Peer>, BTreeMap<String, McpServer>) {
        let is_named = |peer: &str| {
            let of = |tool: &String| tool.split_once('.').is_some_and(|(of, _)| of == peer);
            self.tools.as_ref().is_none_or(|tools| tools.iter().any(of))
        };
        let (mut peers, mut servers) = (self.peers.clone(), self.mcp.clone());
        peers.retain(|name, _| is_named(name));
        servers.retain(|name, _| is_named(name));
        (peers, servers)
    }

    /// The tools of a session: the built-in ones, and those of sources.
    pub fn tools(
        &self,
        workspace: &WsPath,
        standpoint: &Standpoint,
        sources: Vec<Arc<dyn ToolSource>>,
    ) -> Tools {
        Tools::new(self.toolbox(workspace, standpoint), sources, self.tools.as_deref())
    }

    /// The built-in tools of this configuration in a session whose project is `workspace`: all tools, or the
    /// agent's own list.
    pub fn toolbox(&self, workspace: &WsPath, standpoint: &Standpoint) -> Toolbox {
        let all = Toolbox::built_in(ToolConfig {
            workspace: workspace.0.clone(),
            start: standpoint.start.as_ref().unwrap_or(workspace).0.clone(),
            shell: "/bin/sh".into(),
            limits: self.command.clone(),
            max_wall_ms: 3_600_000,
        });
        match &self.tools {
            Some(names) => all.among(names),
            None => all,
        }
    }
}
