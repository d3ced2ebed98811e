//! Run a command inside the walls.

use super::{Description, Resource};
use crate::{Blob, WsPath, number::decimal};
use alloc::{collections::BTreeMap, format, string::String, vec::Vec};
use serde::{Deserialize, Serialize};

/// A command: the arguments for `execve`, the directory, the environment, the input and the limits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Command {
    /// The program and its arguments. A program name without a slash is looked up in the PATH inside the
    /// walls.
    pub argv: Vec<String>,
    /// The directory in which it starts.
    pub cwd: WsPath,
    /// Variables on top of the few that every command gets (PATH, HOME, USER, TMPDIR, locale).
    pub env: BTreeMap<String, String>,
    /// Its standard input; `None` means an empty input.
    pub stdin: Option<Blob>,
    /// Whether it asks for a way to the network.
    pub network: bool,
    /// The limits on the resources that it uses.
    pub limits: Limits,
    /// Whether it keeps running after the call that started it, until it is stopped or its session ends.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub background: bool,
}

impl Command {
    pub(super) fn describe(&self) -> Description<'_> {
        let argv: usize = self.argv.iter().map(|word| word.len() + 1).sum();
        let env: usize = self.env.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
        Description {
            resources: [Resource::Command(self)].into(),
            argument_bytes: argv + env,
            content_bytes: self.stdin.as_ref().map_or(0, |stdin| stdin.0.len()),
            ..Description::default()
        }
    }

    /// The arguments in one line, each quoted for a POSIX shell where it needs to be. `sh -c LINE` is shown
    /// as the line.
    #[must_use]
    pub fn line(&self) -> String {
        if let [shell, dash_c, line] = self.argv.as_slice()
            && dash_c == "-c"
            && matches!(shell.as_str(), "sh" | "bash" | "/bin/sh" | "/bin/bash")
        {
            return line.clone();
        }
        self.argv.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
    }
}

/// One word of a POSIX shell's line. The word is put in quotes when it is empty or holds a character that
/// the shell may treat as special.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The resources that one command may use. The sandbox reports for each limit whether it was enforced or
/// watched.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limits {
    /// Wall-clock time in milliseconds, then SIGTERM and, after a grace time, SIGKILL.
    #[serde(with = "decimal")]
    pub wall_ms: u64,
    /// Memory of the whole process tree in bytes.
    #[serde(with = "decimal")]
    pub memory_bytes: u64,
    /// Bytes that the session's layer, home and temporary files may take together.
    #[serde(with = "decimal")]
    pub disk_bytes: u64,
    /// Processes and threads.
    pub pids: u32,
    /// Bytes kept of each of standard output and standard error; the rest is counted and dropped.
    #[serde(with = "decimal")]
    pub output_bytes: u64,
}

impl Default for Limits {
    /// 10 minutes, 4 GiB of memory, 8 GiB of disk, 512 processes, 1 MiB of output.
    fn default() -> Self {
        Self {
            wall_ms: 600_000,
            memory_bytes: 4 << 30,
            disk_bytes: 8 << 30,
            pids: 512,
            output_bytes: 1 << 20,
        }
    }
}
