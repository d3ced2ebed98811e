//! A conversation as a Markdown file, for people. `bailey sessions export` writes the entries themselves.

use crate::{front::short, home::Home, print::Printer};
use anyhow::{Context as _, Result};
use bailey_journal::{Fact, Query, Recorded};
use bailey_kernel::Completion;
use bailey_protocol::{SessionId, ToolCall};
use bailey_tools::tool_name;
use std::{fs::OpenOptions, io::Write as _, os::unix::fs::OpenOptionsExt as _};

/// How many lines of a result are written.
const RESULT_LINES_MAX: usize = 40;
/// How many names are tried for a new file.
const NAMES_MAX: usize = 100;

/// Writes the conversation into the current directory. No file is written over.
///
/// # Errors
/// When the journal cannot be read, or no file can be made.
pub(super) async fn write(home: &Home, session: SessionId, printer: &Printer) -> Result<()> {
    let journal = crate::journal(home, printer).await?;
    let info = journal.session(&session.to_string()).await?;
    let entries = journal.entries(Query { session: Some(session), ..Query::default() }).await?;
    let mut text = format!("# {}\n\nSession {} in `{}`\n", info.title, short(&session), info.workspace);
    entries.iter().for_each(|recorded| text += &part(recorded));
    let text = printer.redact(&text);
    for number in 1..=NAMES_MAX {
        let more = if number == 1 { String::new() } else { format!("-{number}") };
        let name = format!("bailey-{}{more}.md", short(&session));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name) {
            Ok(mut file) => {
                file.write_all(text.as_bytes()).with_context(|| format!("cannot write `{name}`"))?;
                printer.note(&format!("the conversation is in `{name}`"));
                return Ok(());
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("cannot write `{name}`")),
        }
    }
    anyhow::bail!("there are {NAMES_MAX} exports of this session here already")
}

fn part(recorded: &Recorded) -> String {
    let text = recorded.text();
    match &recorded.entry.fact {
        Fact::Accepted { .. } => format!("\n## Person\n\n{}\n", text.trim()),
        Fact::Reply { .. } => {
            let Ok(answer) = serde_json::from_str::<Completion>(&text) else { return String::new() };
            let said = answer.text.trim();
            let said = if said.is_empty() { String::new() } else { format!("\n## Agent\n\n{said}\n") };
            let call = |call: &ToolCall| format!("\n- `{}` `{}`\n", tool_name(&call.name), call.arguments);
            let calls = answer.calls.iter().map(call);
            calls.fold(said, |all, call| all + &call)
        }
        Fact::Observation { .. } => {
            let lines = text.lines().count();
            let shown: Vec<&str> = text.lines().take(RESULT_LINES_MAX).collect();
            let more = lines.saturating_sub(RESULT_LINES_MAX);
            let more = if more > 0 { format!("\n… {more} more lines") } else { String::new() };
            // No line of the result ends the block.
            let fence = "`".repeat(longest_run(&text).max(2) + 1);
            format!("\n{fence}\n{}{more}\n{fence}\n", shown.join("\n"))
        }
        _ => String::new(),
    }
}

/// The longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
