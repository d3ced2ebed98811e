//! Entries for the fuzz targets into the parsers of a server's messages. Only the feature `fuzz` has them.
//! Each fails when a promise is broken.

use crate::{client, content, proposed};
use bailey_peers::NAME_BYTES_MAX;
use rmcp::model::{CallToolResult, Tool};

/// A tool as a server describes it, and the result of a call, as JSON: a name is one that every provider
/// takes, and a result is text.
pub fn server(bytes: &[u8]) {
    if let Ok(tool) = serde_json::from_slice::<Tool>(bytes) {
        let name = client::plain(&tool.name, NAME_BYTES_MAX);
        assert!(name.len() <= NAME_BYTES_MAX && name.is_ascii(), "{name}");
        let tool = client::of(name, tool);
        assert!(proposed(&tool) >= tool.hint.unwrap_or(bailey_protocol::ToolEffect::Read));
    }
    if let Ok(result) = serde_json::from_slice::<CallToolResult>(bytes) {
        // Each part of it is shown or named.
        let parts = result.content.len();
        assert!(content::report(result).text.matches('\n').count() + 1 >= parts);
    }
}
