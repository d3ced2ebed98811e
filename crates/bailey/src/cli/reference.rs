//! All of the help as one document, and as man pages: from the same source as what the program prints.

use clap::Command;
use std::fmt::Write as _;

const HEAD: &str = "# Commands

What `--help` says of each command, as one page: written by `bailey reference`, and held equal to the program by a test. Man pages come
from the same source: `bailey man DIR`.

Under `--json` a command prints one JSON object a line; the events of a turn are in [events.md](events.md). What goes wrong is said on
standard error: what, why, and how to mend it.
";

/// The document.
pub(crate) fn reference() -> String {
    let mut text = HEAD.to_owned();
    let mut command = super::command();
    command.build();
    section(&command, "", &mut text);
    text
}

fn section(command: &Command, above: &str, text: &mut String) {
    let name = format!("{above}{}", command.get_name());
    let mut help = command.clone();
    // Every command has the general options; one page says them once.
    if !above.is_empty() {
        help =
            help.mut_args(|argument| if argument.is_global_set() { argument.hide(true) } else { argument });
    }
    let help = help.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    // Writing to a string cannot fail.
    let _ = write!(text, "\n## {name}\n\n```text\n{}\n```\n", help.join("\n").trim_end());
    let shown = |sub: &&Command| !sub.is_hide_set() && sub.get_name() != "help";
    for sub in command.get_subcommands().filter(shown) {
        section(sub, &format!("{name} "), text);
    }
}
