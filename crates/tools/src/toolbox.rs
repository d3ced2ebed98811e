//! The registry: finds a tool by any of its names, and says what there is instead when there is none.

use crate::{
    agent_adapt::AgentAdapt, agent_run::AgentRun, command_run::CommandRun, config::ToolConfig,
    fs_edit::FsEdit, fs_exists::FsExists, fs_list::FsList, fs_patch::FsPatch, fs_read::FsRead,
    fs_write::FsWrite, git_run::GitRun, message_send::MessageSend, process_log::ProcessLog,
    process_stop::ProcessStop, search_glob::SearchGlob, search_grep::SearchGrep, test_run::TestRun,
    typed::Parsed, web_fetch::WebFetch, web_request::WebRequest,
};
use bailey_kernel::Tool;
use bailey_protocol::{Kind, ToolSpec, spell::meant};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The tools of a session.
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    specs: Vec<ToolSpec>,
    names: BTreeMap<String, usize>,
}

impl Toolbox {
    /// The built-in tools.
    #[must_use]
    pub fn built_in(config: ToolConfig) -> Self {
        let config = Arc::new(config);
        Self::new(vec![
            Arc::new(Parsed::new(FsRead)),
            Arc::new(Parsed::new(FsWrite)),
            Arc::new(Parsed::new(FsEdit)),
            Arc::new(Parsed::new(FsPatch)),
            Arc::new(Parsed::new(FsList(config.clone()))),
            Arc::new(Parsed::new(FsExists)),
            Arc::new(Parsed::new(SearchGrep(config.clone()))),
            Arc::new(Parsed::new(SearchGlob(config.clone()))),
            Arc::new(Parsed::new(CommandRun(config.clone()))),
            Arc::new(Parsed::new(GitRun(config.clone()))),
            Arc::new(Parsed::new(TestRun(config))),
            Arc::new(Parsed::new(WebFetch)),
            Arc::new(Parsed::new(WebRequest)),
            Arc::new(Parsed::new(ProcessLog)),
            Arc::new(Parsed::new(ProcessStop)),
            Arc::new(Parsed::new(MessageSend)),
            Arc::new(Parsed::new(AgentRun)),
            Arc::new(Parsed::new(AgentAdapt)),
        ])
    }

    fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let specs: Vec<ToolSpec> = tools.iter().map(|tool| tool.spec()).collect();
        let mut names = BTreeMap::new();
        for (index, spec) in specs.iter().enumerate() {
            for name in std::iter::once(&spec.name).chain(&spec.aliases) {
                names.entry(ToolSpec::plain_name(name)).or_insert(index);
            }
        }
        Self { tools, specs, names }
    }

    /// These tools and more. A tool whose name is taken is left out: no source replaces a built-in tool.
    #[must_use]
    pub(crate) fn with(&self, more: Vec<Arc<dyn Tool>>) -> Self {
        let mut taken: BTreeSet<String> = self.names.keys().cloned().collect();
        let mut tools = self.tools.clone();
        tools.extend(more.into_iter().filter(|tool| taken.insert(ToolSpec::plain_name(&tool.spec().name))));
        Self::new(tools)
    }

    /// Some of these tools, for a sub-agent: those that name the kinds of action they come to. One that has
    /// `agent.run` among them can give on what it was given, and no more.
    ///
    /// # Errors
    /// The first name that is none of a tool that a sub-agent can have.
    pub fn only(&self, names: &[String]) -> Result<Self, String> {
        let find = |name: &String| {
            let found = self.find(name).filter(|tool| tool.kinds().is_some());
            found
                .cloned()
                .ok_or_else(|| format!("a sub-agent can have no tool `{name}`: {}", self.unavailable(name)))
        };
        let mut tools: Vec<Arc<dyn Tool>> = names.iter().map(find).collect::<Result<_, _>>()?;
        let mut seen = BTreeSet::new();
        tools.retain(|tool| seen.insert(tool.spec().name));
        Ok(Self::new(tools))
    }

    /// Those of these tools that are named so.
    #[must_use]
    pub fn among(&self, names: &[String]) -> Self {
        let wanted: BTreeSet<usize> =
            names.iter().filter_map(|name| self.names.get(&ToolSpec::plain_name(name)).copied()).collect();
        Self::new(wanted.into_iter().filter_map(|index| self.tools.get(index).cloned()).collect())
    }

    /// The kinds of action that these tools come to.
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        let kinds: BTreeSet<Kind> =
            self.tools.iter().filter_map(|tool| tool.kinds()).flatten().copied().collect();
        kinds.into_iter().collect()
    }

    /// The tool of this name or alias. Case does not matter, and `.` is the same as `_`: providers that allow
    /// no dot in a name get `fs_read` for `fs.read`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.names.get(&ToolSpec::plain_name(name)).and_then(|index| self.tools.get(*index))
    }

    /// What the model is told of each, in a fixed order.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.specs.clone()
    }

    /// The answer to a call of a tool that is not here, as JSON:
    /// `{"unavailable": name, "why": …, "available": [names], "did_you_mean": name or null}`.
    #[must_use]
    pub fn unavailable(&self, name: &str) -> String {
        let shown: String = name.chars().take(100).collect();
        // As a model must write them: a name with a dot is refused by its server.
        let wired = |name: &str| ToolSpec::wire_name(name);
        let available: Vec<String> = self.specs.iter().map(|spec| wired(&spec.name)).collect();
        json!({
            "unavailable": shown,
            "why": "this session has no tool of that name",
            "available": available,
            "did_you_mean": self.nearest(&shown).map(wired),
        })
        .to_string()
    }

    /// The tool with the most similar name, when a typing error or a missing prefix explains the difference.
    fn nearest(&self, name: &str) -> Option<&str> {
        let name = ToolSpec::plain_name(name);
        let known = meant(&name, self.names.keys().map(String::as_str))?;
        let index = self.names.get(known)?;
        self.specs.get(*index).map(|spec| spec.name.as_str())
    }
}
