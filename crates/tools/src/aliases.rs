//! The names that other agents' tools have, for tools and for their parameters. Models have learnt them and
//! write them here, too. Each stands in the one table below.

use bailey_protocol::ToolSpec;

/// A parameter, and the names that other agents have for it.
type Parameter = (&'static str, &'static [&'static str]);

/// One tool of ours.
struct Row {
    tool: &'static str,
    names: &'static [&'static str],
    parameters: &'static [Parameter],
}

const FILE: Parameter = (
    "path",
    &["file_path", "filename", "file", "absolute_path", "relative_path", "target_file", "path_to_file"],
);
const DIRECTORY: Parameter = (
    "path",
    &[
        "dir",
        "directory",
        "folder",
        "dir_path",
        "directory_path",
        "folder_path",
        "absolute_path",
        "relative_path",
        "relative_workspace_path",
        "target_directory",
        "file_path",
        "root",
    ],
);
const CWD: Parameter =
    ("cwd", &["workdir", "work_dir", "working_dir", "working_directory", "dir", "directory", "current_dir"]);
const TIMEOUT: Parameter = ("timeout_s", &["timeout_seconds", "timeout_secs", "timeout_sec"]);

/// Where two parameters share a name, the value decides. A name that has another meaning elsewhere is not
/// here: `timeout` is in milliseconds for some agents and in seconds for others.
const TABLE: [Row; 18] = [
    Row {
        tool: "fs.read",
        names: &["read_file", "read", "readfile", "view", "view_file", "file_read", "open_file", "cat"],
        parameters: &[
            FILE,
            ("offset", &["start_line", "line_start"]),
            ("limit", &["num_lines", "max_lines"]),
        ],
    },
    Row {
        tool: "fs.write",
        names: &[
            "write_file",
            "write",
            "writefile",
            "write_to_file",
            "create_file",
            "file_write",
            "save_file",
        ],
        parameters: &[
            FILE,
            ("content", &["contents", "file_text", "file_content", "file_contents", "text", "data", "body"]),
        ],
    },
    Row {
        tool: "fs.edit",
        names: &["edit_file", "str_replace", "edit", "replace", "search_replace", "file_edit", "editfile"],
        parameters: &[
            FILE,
            ("old", &["old_string", "old_str", "old_text", "old_content", "search", "find", "find_text"]),
            (
                "new",
                &[
                    "new_string",
                    "new_str",
                    "new_text",
                    "new_content",
                    "replace",
                    "replacement",
                    "replace_text",
                ],
            ),
            ("replace_all", &["all", "replace_all_occurrences"]),
        ],
    },
    Row {
        tool: "fs.patch",
        names: &["apply_patch", "patch"],
        parameters: &[("patch", &["input", "diff", "patch_text", "patch_content", "unified_diff"])],
    },
    Row {
        tool: "fs.list",
        names: &["list_dir", "list_files", "ls", "list_directory", "list", "listdir"],
        parameters: &[DIRECTORY],
    },
    Row {
        tool: "fs.exists",
        names: &["file_exists", "path_exists", "exists"],
        parameters: &[FILE, DIRECTORY],
    },
    Row {
        tool: "search.grep",
        names: &[
            "grep",
            "search_files",
            "grep_search",
            "search_file_content",
            "search_content",
            "ripgrep",
            "rg",
        ],
        parameters: &[
            ("pattern", &["regex", "regexp", "query", "search", "search_pattern"]),
            DIRECTORY,
            ("glob", &["include", "include_pattern", "file_pattern", "glob_pattern", "file_glob"]),
            ("ignore_case", &["case_insensitive", "i"]),
        ],
    },
    Row {
        tool: "search.glob",
        names: &["glob", "find_files", "file_search", "glob_search", "find_file"],
        parameters: &[
            ("pattern", &["glob", "glob_pattern", "file_pattern", "query", "name_pattern"]),
            DIRECTORY,
        ],
    },
    Row {
        tool: "command.run",
        names: &[
            "run_command",
            "execute_command",
            "shell",
            "bash",
            "run_shell_command",
            "shell_command",
            "run_terminal_cmd",
            "run_terminal_command",
            "run_in_terminal",
            "execute_bash",
            "run_bash",
            "exec_command",
            "container_exec",
            "local_shell",
            "execute",
            "exec",
            "terminal",
        ],
        parameters: &[
            ("command", &["cmd", "command_line", "shell_command", "bash_command", "script", "input"]),
            ("argv", &["command", "cmd", "args", "arguments"]),
            CWD,
            TIMEOUT,
            ("env", &["environment", "env_vars"]),
            ("background", &["run_in_background", "is_background"]),
        ],
    },
    Row {
        tool: "git.run",
        names: &["git", "run_git", "git_command"],
        parameters: &[("args", &["argv", "arguments", "command", "cmd"]), CWD, TIMEOUT],
    },
    Row {
        tool: "test.run",
        names: &["run_tests", "run_test", "runtests"],
        parameters: &[("filter", &["test", "test_name", "name", "pattern"]), TIMEOUT],
    },
    Row {
        tool: "web.fetch",
        names: &["fetch", "webfetch", "fetch_url", "fetch_webpage", "read_url"],
        parameters: &[("url", &["uri", "link", "address"]), ("save_to", &["output_path", "save_path"])],
    },
    Row {
        tool: "web.request",
        names: &["http_request"],
        parameters: &[("method", &["http_method"]), ("url", &["uri"]), ("body", &["data", "payload"])],
    },
    Row { tool: "process.log", names: &[], parameters: &[("process", &["process_id", "number", "id"])] },
    Row { tool: "process.stop", names: &[], parameters: &[("process", &["process_id", "number", "id"])] },
    Row {
        tool: "message.send",
        names: &["send_message", "message_user", "notify_user"],
        parameters: &[
            ("text", &["message", "content", "body"]),
            ("file", &["path", "file_path", "attachment", "media"]),
            ("to", &["recipient", "target"]),
        ],
    },
    Row { tool: "agent.run", names: &["task"], parameters: &[("task", &["prompt", "instructions"])] },
    Row { tool: "agent.adapt", names: &[], parameters: &[] },
];

/// The other names of a tool.
pub(crate) fn names(tool: &str) -> Vec<String> {
    row(tool).into_iter().flat_map(|row| row.names).map(|name| (*name).to_owned()).collect()
}

/// The one name of the built-in tool that a model called by this name. Any other name stays as it is.
#[must_use]
pub fn tool_name(written: &str) -> &str {
    let plain = ToolSpec::plain_name(written);
    let is_its = |row: &&Row| {
        std::iter::once(&row.tool).chain(row.names).any(|name| ToolSpec::plain_name(name) == plain)
    };
    TABLE.iter().find(is_its).map_or(written, |row| row.tool)
}

/// Those of a tool's parameters that this name may mean, by the table and by how names are spelled elsewhere
/// (`filePath`, `file-path`).
pub(crate) fn meanings<'a>(
    tool: &str,
    parameters: &'a [String],
    written: &str,
) -> impl Iterator<Item = &'a String> {
    let known: &[Parameter] = row(tool).map_or(&[], |row| row.parameters);
    let meant = bare(written);
    parameters.iter().filter(move |real| {
        let others = known.iter().filter(|(name, _)| name == real).flat_map(|(_, others)| *others);
        bare(real) == meant || others.into_iter().any(|other| bare(other) == meant)
    })
}

#[cfg(test)]
pub(crate) fn tools() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|row| row.tool)
}

#[cfg(test)]
pub(crate) fn parameters(tool: &str) -> &'static [Parameter] {
    row(tool).map_or(&[], |row| row.parameters)
}

fn row(tool: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.tool == tool)
}

/// A name without the parts that differ between the ways to spell it.
fn bare(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}
