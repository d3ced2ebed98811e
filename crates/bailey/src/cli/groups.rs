//! The help of the whole program: its commands in groups, in the order in which people meet them.

use crate::print::fold;
use clap::Command;

/// Each group with its commands.
pub(super) const GROUPS: [(&str, &[&str]); 5] = [
    ("Work with the agent", &["chat", "run", "sessions", "approvals", "schedule", "estop"]),
    ("Set up", &["init", "doctor", "config", "models", "secrets", "agent", "soul", "tools", "mcp", "trust"]),
    ("Rules and record", &["policy", "audit", "replay", "budget", "prove"]),
    (
        "In the background",
        &["start", "stop", "status", "reload", "logs", "ps", "web", "channels", "backup", "restore"],
    ),
    ("More", &["guide", "sandbox", "prewarm", "completions", "man", "version", "update"]),
];

/// The width of the help, and where the right column begins, in cells.
const WIDTH: usize = 98;
const INDENT: usize = 14;

/// The heading of the options that every command takes.
const OPTIONS: &str = "General options:";

/// The same command, whose help has the groups.
pub(super) fn add(root: Command) -> Command {
    let help = help(&root);
    root.override_help(help)
}

fn help(root: &Command) -> String {
    let about = root.get_about().map(ToString::to_string).unwrap_or_default();
    let about = fold(&format!("{about}."), WIDTH, 0);
    let mut help = format!(
        "{about}\n\nUsage: bailey [OPTIONS] [COMMAND]\n       bailey [OPTIONS of chat]     begins a conversation; `--continue` \
         goes on with the last one\n"
    );
    for (title, names) in GROUPS {
        help.push_str(&format!("\n{title}:\n"));
        for name in names {
            let about = root.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let about = fold(about.lines().next().unwrap_or_default(), WIDTH - INDENT, INDENT);
            help.push_str(&format!("  {name:<12}{about}\n"));
        }
    }
    help.push_str("  help        Print the help of a command: bailey help run\n\n");
    let bare = root.clone().mut_subcommands(|sub| sub.hide(true)).render_help().to_string();
    help.push_str(bare.find(OPTIONS).and_then(|at| bare.get(at..)).unwrap_or(&bare));
    help
}
