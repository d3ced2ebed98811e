//! The tools of a session, which may change between the steps of a turn.

use crate::{PeerTool, ToolSource, Toolbox};
use bailey_kernel::{Redactor, Tool};
use bailey_protocol::ToolSpec;
use serde_json::Value;
use std::sync::{Arc, PoisonError, RwLock};

/// The most bytes of all descriptions of peers' tools: each request to the model has them. A tool that does
/// not fit is left out.
const BYTES_MAX: usize = 128 << 10;
/// The most tools of peers: servers take about 128 tools in all.
const TOOLS_MAX: usize = 100;
/// The longest name of a tool that every wire has as it is.
const NAME_BYTES_MAX: usize = 64;

/// The tools of a session: the built-in ones, and those of its sources as they were at the newest step. Cheap
/// to clone; clones share the newest step.
#[derive(Clone)]
pub struct Tools {
    built_in: Arc<Toolbox>,
    sources: Arc<[Arc<dyn ToolSource>]>,
    /// The names to which an agent is limited.
    only: Option<Arc<[String]>>,
    now: Arc<RwLock<Snapshot>>,
}

/// The tools of a step.
struct Snapshot {
    toolbox: Arc<Toolbox>,
    /// The tools of the sources, also those whose names were taken.
    of_peers: Vec<PeerTool>,
}

impl From<Toolbox> for Tools {
    /// Tools that never change.
    fn from(built_in: Toolbox) -> Self {
        Self::new(built_in, Vec::new(), None)
    }
}

impl Tools {
    /// The built-in tools beside those of sources. `only` limits the latter to tools of these names; `PEER.*`
    /// names all of one peer.
    #[must_use]
    pub fn new(built_in: Toolbox, sources: Vec<Arc<dyn ToolSource>>, only: Option<&[String]>) -> Self {
        let built_in = Arc::new(built_in);
        let now = Snapshot { toolbox: built_in.clone(), of_peers: Vec::new() };
        let now = Arc::new(RwLock::new(now));
        Self { built_in, sources: sources.into(), only: only.map(Arc::from), now }
    }

    /// The tools as they were at the newest step.
    #[must_use]
    pub fn now(&self) -> Arc<Toolbox> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).toolbox.clone()
    }

    /// Begins a step: asks each source for its tools, and takes keys out of their descriptions. Returns the
    /// tools of the sources when they have changed since the step before.
    pub async fn renew(&self, redactor: &Redactor) -> Option<Vec<PeerTool>> {
        let mut of_peers = Vec::new();
        for source in &*self.sources {
            of_peers.extend(source.tools().await);
        }
        if let Some(only) = &self.only {
            of_peers.retain(|tool| only.iter().any(|name| is_named(name, &tool.spec.name)));
        }
        of_peers.retain(|tool| tool.spec.name.len() <= NAME_BYTES_MAX);
        of_peers.truncate(TOOLS_MAX);
        of_peers.iter_mut().for_each(|tool| clean(&mut tool.spec, redactor));
        let mut left = BYTES_MAX;
        of_peers.retain(|tool| {
            let fits = left.checked_sub(bytes(tool));
            left = fits.unwrap_or(left);
            fits.is_some()
        });
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        if now.of_peers == of_peers {
            return None;
        }
        let tools = of_peers.iter().map(|tool| Arc::new(tool.clone()) as Arc<dyn Tool>).collect();
        *now = Snapshot { toolbox: Arc::new(self.built_in.with(tools)), of_peers: of_peers.clone() };
        Some(of_peers)
    }

    /// See [`Toolbox::find`].
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.now().find(name).cloned()
    }

    /// See [`Toolbox::specs`].
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.now().specs()
    }
}

/// Takes keys out of a description. A tool whose description held one is not called, for the peer knows
/// another description.
fn clean(spec: &mut ToolSpec, redactor: &Redactor) {
    for text in [&mut spec.summary, &mut spec.description] {
        *text = redactor.redact(text).text.into_owned();
    }
    clean_value(&mut spec.schema, redactor);
}

fn clean_value(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => *text = redactor.redact(text).text.into_owned(),
        Value::Array(values) => values.iter_mut().for_each(|it| clean_value(it, redactor)),
        Value::Object(fields) => fields.values_mut().for_each(|it| clean_value(it, redactor)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The bytes of a tool's description.
fn bytes(tool: &PeerTool) -> usize {
    let ToolSpec { name, summary, description, schema, .. } = &tool.spec;
    name.len() + summary.len() + description.len() + schema.to_string().len()
}

/// Whether an entry of an agent's list of tools names this tool.
fn is_named(entry: &str, tool: &str) -> bool {
    let plain = ToolSpec::plain_name(tool);
    match entry.strip_suffix(".*") {
        Some(peer) => plain.starts_with(&ToolSpec::plain_name(&format!("{peer}."))),
        None => plain == ToolSpec::plain_name(entry),
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, NAME_BYTES_MAX, Redactor, Tools, is_named};
    use crate::{PeerTool, ToolConfig, ToolSource, Toolbox};
    use bailey_kernel::BoxFuture;
    use bailey_protocol::{Limits, ToolEffect, ToolSpec};
    use serde_json::json;
    use std::sync::{Arc, Mutex};

    struct Source(Mutex<Vec<PeerTool>>);

    impl ToolSource for Source {
        fn tools(&self) -> BoxFuture<'_, Vec<PeerTool>> {
            let tools = self.0.lock().unwrap().clone();
            Box::pin(async { tools })
        }
    }

    fn tool(name: &str) -> PeerTool {
        let spec = ToolSpec {
            name: name.into(),
            aliases: Vec::new(),
            summary: "of a peer".into(),
            description: String::new(),
            schema: json!({ "type": "object" }),
        };
        PeerTool { peer: "p".into(), spec, effect: ToolEffect::Read }
    }

    #[tokio::test]
    async fn a_step_has_the_tools_of_its_beginning_and_no_source_takes_the_name_of_another_tool() {
        let config = ToolConfig {
            workspace: "/w".into(),
            start: "/w".into(),
            shell: "/bin/sh".into(),
            limits: Limits::default(),
            max_wall_ms: 1,
        };
        let source =
            Arc::new(Source(Mutex::new(vec![tool("fs.read"), tool("FS_Write"), tool("p.a"), tool("p_a")])));
        let tools = Tools::new(Toolbox::built_in(config), vec![source.clone()], None);
        let built_in = tools.specs().len();
        let redactor = Redactor::new(&bailey_secrets::Vault::default());
        assert!(tools.find("p.a").is_none(), "no step has begun");
        assert_eq!(tools.renew(&redactor).await.unwrap().len(), 4);
        assert_eq!(tools.specs().len(), built_in + 1);
        assert_ne!(tools.find("fs.read").unwrap().spec().summary, "of a peer");
        assert_eq!(tools.renew(&redactor).await, None, "nothing has changed");
        let key = ["ghp_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
        let mut telling = tool("p.a");
        telling.spec.description = format!("the key is {key}");
        telling.spec.schema = json!({ "type": "object", "properties": { "x": { "description": key } } });
        let plain = std::mem::replace(&mut *source.0.lock().unwrap(), vec![telling.clone()]);
        let told = tools.renew(&redactor).await.unwrap().remove(0).spec;
        assert!(!told.description.contains(&key) && !told.schema.to_string().contains(&key), "{told:?}");
        assert_ne!(told.digest(), telling.spec.digest(), "a call of it is refused");
        *source.0.lock().unwrap() = plain;
        tools.renew(&redactor).await.unwrap();
        let mut long = tool("p.long");
        long.spec.description = "x".repeat(BYTES_MAX);
        let of_long_name = tool(&format!("p.{}", "n".repeat(NAME_BYTES_MAX)));
        source.0.lock().unwrap().extend([long, of_long_name]);
        assert_eq!(tools.renew(&redactor).await, None, "what does not fit leaves the others");
        source.0.lock().unwrap().clear();
        assert!(tools.find("p.a").is_some(), "the step goes on with what it began with");
        assert_eq!(tools.renew(&redactor).await.unwrap().len(), 0);
        assert!(tools.find("p.a").is_none());
    }

    #[test]
    fn an_entry_names_one_tool_or_all_of_a_peer() {
        assert!(is_named("notes.*", "notes.add") && is_named("notes.add", "notes.add"));
        assert!(is_named("notes_add", "notes.add"));
        for (entry, tool) in [("notes.*", "notesx.add"), ("note.*", "notes.add"), ("*", "notes.add")] {
            assert!(!is_named(entry, tool), "{entry} {tool}");
        }
    }
}
