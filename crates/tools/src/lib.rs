//! The built-in tools: what a model can ask for, and what it is told of it.
//!
//! A tool here is three pure functions ([`claims`](bailey_kernel::Tool::claims), `plan`, `conclude`) and a
//! description. It turns a model's arguments into one [`Action`](bailey_protocol::Action), and an executor's
//! output into text. It opens no file, starts no process, waits for nothing, and knows no time and no
//! environment: that is for executors, behind the gate.
//!
//! Read `typed` first: it is the shape that every tool has. Then `command_run` (a tool that acts at once) and
//! `fs_edit` (one that needs to read first). [`Toolbox`] finds a tool by any of its names;
//! [`Tools`] are those of a session, with the tools of its peers; [`card()`] shows
//! an action to the human who must judge it. Every file change is made by `change`, which refuses to write a
//! redaction mark over a secret.

mod agent_adapt;
mod agent_run;
mod aliases;
mod arguments;
mod card;
mod change;
mod command_run;
mod config;
mod diff;
mod edit;
mod exec;
mod fs_edit;
mod fs_exists;
mod fs_list;
mod fs_patch;
mod fs_read;
mod fs_write;
mod git_run;
mod limit;
mod message_send;
mod missing;
mod patch;
mod peer;
mod process;
mod process_log;
mod process_stop;
mod repair;
mod search_glob;
mod search_grep;
mod test_run;
mod toolbox;
mod tools;
mod typed;
mod unreached;
mod web;
mod web_fetch;
mod web_request;

pub use aliases::tool_name;
pub use card::card;
pub use config::ToolConfig;
pub use diff::difference;
pub use limit::{burst, limit, raise};
pub use message_send::{MESSAGE_PEER, OutgoingFile, OutgoingMessage, message_tools};
pub use peer::{PeerTool, ToolSource};
pub use toolbox::Toolbox;
pub use tools::Tools;
pub use unreached::Unreached;
