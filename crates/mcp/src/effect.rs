//! The effect that the owner is proposed for a server's tool.

use bailey_peers::Described;
use bailey_protocol::ToolEffect;

/// Words of a tool's name, or at the beginning of its description, that tell an effect.
const WORDS: [(ToolEffect, &[&str]); 4] = [
    (
        ToolEffect::Destructive,
        &[
            "clear",
            "delete",
            "destroy",
            "drop",
            "erase",
            "force",
            "forget",
            "kill",
            "purge",
            "remove",
            "reset",
            "revoke",
            "truncate",
            "uninstall",
            "wipe",
        ],
    ),
    (
        ToolEffect::Egress,
        &[
            "browse", "buy", "call", "comment", "deploy", "download", "email", "fetch", "http", "invite",
            "invoke", "mail", "merge", "message", "notify", "order", "pay", "post", "publish", "push",
            "release", "reply", "request", "send", "share", "submit", "transfer", "tweet", "upload", "url",
        ],
    ),
    (
        ToolEffect::Write,
        &[
            "add", "append", "apply", "branch", "checkout", "commit", "copy", "create", "edit", "execute",
            "insert", "make", "modify", "move", "new", "patch", "put", "rename", "replace", "run", "save",
            "set", "start", "stop", "store", "sync", "toggle", "update", "upsert", "write",
        ],
    ),
    (
        ToolEffect::Read,
        &[
            "calculate",
            "check",
            "compare",
            "convert",
            "count",
            "current",
            "describe",
            "diff",
            "echo",
            "find",
            "get",
            "info",
            "list",
            "load",
            "log",
            "look",
            "lookup",
            "now",
            "query",
            "read",
            "resolve",
            "search",
            "show",
            "stat",
            "status",
            "sum",
            "time",
            "tree",
            "view",
        ],
    ),
];

/// The effect of a tool by the stricter of its hint and its words. Without a known word it is `Unclear`: a
/// hint alone is the server's word on itself.
#[must_use]
pub fn proposed(tool: &Described) -> ToolEffect {
    let first = tool.description.split_whitespace().next().unwrap_or_default();
    let told = words(&tool.name).chain(words(first)).filter_map(|word| of(&word)).max();
    told.map_or(ToolEffect::Unclear, |told| told.max(tool.hint.unwrap_or(told)))
}

/// The words of a name, in small letters: `readFile`, `read_file`, `Reads`.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && was_small) {
            words.push(String::new());
        }
        if letter.is_alphanumeric() {
            words.last_mut().into_iter().for_each(|word| word.extend(letter.to_lowercase()));
        }
        was_small = letter.is_lowercase();
    }
    words.into_iter().filter(|word| !word.is_empty())
}

fn of(word: &str) -> Option<ToolEffect> {
    let is = |known: &&str| {
        let rest = word.strip_prefix(known.trim_end_matches('e'));
        matches!(rest, Some("" | "e" | "s" | "es" | "ed" | "ing")) && word.len() >= known.len()
    };
    WORDS.iter().find(|(_, known)| known.iter().any(is)).map(|(effect, _)| *effect)
}

#[cfg(test)]
mod tests {
    use super::proposed;
    use bailey_peers::Described;
    use bailey_protocol::ToolEffect::{Destructive, Egress, Read, Unclear, Write};
    use serde_json::json;

    #[test]
    fn the_stricter_of_hint_and_words_is_proposed() {
        for (name, description, hint, effect) in [
            ("read_file", "Read a file.", None, Read),
            ("readFile", "", None, Read),
            ("read_file", "", Some(Destructive), Destructive),
            ("delete_entities", "", Some(Read), Destructive),
            ("entities", "Deletes all of them.", Some(Read), Destructive),
            ("send_email", "", Some(Read), Egress),
            ("create_issue", "", None, Write),
            ("frobnicate", "", None, Unclear),
            ("frobnicate", "", Some(Read), Unclear),
            ("settings", "", None, Unclear),
        ] {
            let schema = json!({ "type": "object" });
            let tool = Described { name: name.into(), description: description.into(), schema, hint };
            assert_eq!(proposed(&tool), effect, "{name}");
        }
    }
}
