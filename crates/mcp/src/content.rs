//! The result of a call, as text for the model. A server's text is foreign: it is screened by the kernel.

use bailey_protocol::CallReport;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// The result as text. A picture or a sound is named and not shown.
pub(crate) fn report(result: CallToolResult) -> CallReport {
    let ok = result.is_error != Some(true);
    let mut parts: Vec<String> = result.content.iter().map(block).collect();
    if let (Some(value), true) = (&result.structured_content, parts.is_empty()) {
        parts.push(value.to_string());
    }
    let text = match parts.is_empty() {
        true => "(no content)".into(),
        false => parts.join("\n"),
    };
    CallReport { ok, text, touched: Vec::new() }
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => not_shown("picture", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => not_shown("sound", &audio.mime_type, &audio.data),
        ContentBlock::ResourceLink(link) => format!("[link to {}: {}]", link.name, link.uri),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[{uri}]\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                not_shown(uri, mime_type.as_deref().unwrap_or("of an unknown kind"), blob)
            }
            _ => "[a resource of an unknown kind]".into(),
        },
        _ => "[content of an unknown kind]".into(),
    }
}

fn not_shown(name: &str, kind: &str, base64: &str) -> String {
    format!("[{name}, {kind}, {} bytes, not shown]", base64.len() / 4 * 3)
}
