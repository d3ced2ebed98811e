//! Servers that many people use, with the least rights that they work with.

use crate::{
    config::{McpServer, Sight},
    home::Home,
};

/// The names.
pub(super) const NAMES: [&str; 6] = ["fetch", "filesystem", "git-server", "github", "memory", "time"];

/// The server of a known name.
pub(super) fn server(name: &str, home: &Home) -> Option<McpServer> {
    let new = |words: &[&str]| McpServer::new(words.iter().map(|word| (*word).to_owned()).collect());
    let own = |file: &str| home.user.join(file).display().to_string();
    Some(match name {
        "fetch" => new(&["uvx", "mcp-server-fetch"]),
        "filesystem" => McpServer {
            workspace: Sight::Write,
            ..new(&["npx", "-y", "@modelcontextprotocol/server-filesystem", "."])
        },
        // `git.…` are built-in tools.
        "git-server" => McpServer { workspace: Sight::Write, ..new(&["uvx", "mcp-server-git"]) },
        "github" => McpServer {
            hosts: vec!["api.github.com".into()],
            keys: vec!["GITHUB_PERSONAL_ACCESS_TOKEN".into()],
            ..new(&["npx", "-y", "@modelcontextprotocol/server-github"])
        },
        "memory" => McpServer {
            env: [("MEMORY_FILE_PATH".to_owned(), own("memory.jsonl"))].into(),
            ..new(&["npx", "-y", "@modelcontextprotocol/server-memory"])
        },
        "time" => new(&["uvx", "mcp-server-time"]),
        _ => return None,
    })
}
