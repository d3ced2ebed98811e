//! A call that a model wrote as text, because its server did not read it as one.

use bailey_tools::Toolbox;
use serde_json::Value;

/// How models begin a call in their own formats.
const MARKS: [&str; 14] = [
    "<tool_call",
    "<|tool_call",
    "<tool_code",
    "<function=",
    "<function_call",
    "<functioncall",
    "<invoke name=",
    "[TOOL_CALLS]",
    "[TOOL_REQUEST]",
    "<|python_tag|>",
    "<\u{ff5c}tool\u{2581}call",
    "<|tool\u{2581}call",
    "```tool_c",
    "to=functions.",
];
/// How far behind the mark the tool's name stands, in bytes.
const NAME_WITHIN: usize = 200;

/// The tool that an answer calls in its text.
pub(crate) fn called(text: &str, tools: &Toolbox) -> Option<String> {
    let specs = tools.specs();
    let names = || specs.iter().flat_map(|spec| [spec.name.clone(), spec.name.replace('.', "_")]);
    let marked =
        MARKS.iter().filter_map(|mark| text.find(mark).map(|at| (at, at + mark.len() + NAME_WITHIN)));
    let near = |(from, to): (usize, usize)| {
        let part = text.get(from..text.floor_char_boundary(to)).unwrap_or_default();
        // Words about a call have no arguments behind them.
        let has_arguments =
            part.contains('{') || ["<function=", "<invoke name="].iter().any(|mark| part.starts_with(mark));
        names().find(|name| has_arguments && part.contains(name.as_str()))
    };
    marked.into_iter().find_map(near).or_else(|| {
        let call: Value = serde_json::from_str(bare(text)).ok()?;
        let call = call.get("function").filter(|function| function.is_object()).unwrap_or(&call);
        let name =
            ["name", "tool", "tool_name", "function"].iter().find_map(|field| call.get(field)?.as_str())?;
        let has_arguments =
            ["arguments", "parameters", "input", "args"].iter().any(|field| call.get(field).is_some());
        (has_arguments && tools.find(name).is_some()).then(|| name.to_owned())
    })
}

/// A text without the fence of code around it.
fn bare(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.map_or(text, |inner| inner.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).trim())
}

#[cfg(test)]
mod tests {
    use super::called;
    use bailey_protocol::Limits;
    use bailey_tools::{ToolConfig, Toolbox};

    #[test]
    fn calls_that_servers_left_in_the_text_are_seen() {
        let (workspace, start, shell) = ("/w".into(), "/w".into(), "/bin/sh".into());
        let tools = Toolbox::built_in(ToolConfig {
            workspace,
            start,
            shell,
            limits: Limits::default(),
            max_wall_ms: 1000,
        });
        for text in [
            "<tool_call>\n{\"name\": \"fs_read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>",
            "I look.\n[TOOL_CALLS][{\"name\": \"fs_read\", \"arguments\": {}}]",
            "<function=command_run><parameter=command>ls</parameter></function>",
            "<\u{ff5c}tool\u{2581}calls\u{2581}begin\u{ff5c}>function fs_list {}",
            "{\"name\": \"fs.read\", \"arguments\": {\"path\": \"a\"}}",
            "```json\n{\"function\": \"fs_read\", \"parameters\": {}}\n```",
            "{\"type\": \"function\", \"function\": {\"name\": \"fs_read\", \"arguments\": \"{}\"}}",
        ] {
            assert!(called(text, &tools).is_some(), "{text}");
        }
        for text in [
            "Models write `<tool_call>` before a call.",
            "I write `<tool_call>` before a call of fs_read.",
            "I used fs_read and all is well.",
            "{\"name\": \"bailey\", \"version\": 1}",
            "{\"name\": \"fs_read\"}",
            "",
        ] {
            assert_eq!(called(text, &tools), None, "{text}");
        }
    }
}
