//! What a page tells its reader to type, and what of it was typed.

use anyhow::{Context as _, Result, ensure};
use std::{collections::BTreeSet, fs};

/// What a command begins with.
const COMMANDS: [&str; 6] = ["bailey ", "sudo ", "git ", "journalctl ", "systemctl ", "/"];

pub(super) struct Page {
    name: &'static str,
    text: String,
    /// Commands that nobody typed yet.
    left: BTreeSet<String>,
}

impl Page {
    pub(super) fn open(name: &'static str) -> Result<Self> {
        let text = fs::read_to_string(crate::root().join("docs").join(name)).context(name)?;
        let left = commands(&text).into_iter().collect();
        Ok(Self { name, text, left })
    }

    /// A command is typed: the page must have it.
    pub(super) fn has(&mut self, command: &str) -> Result<()> {
        ensure!(commands(&self.text).iter().any(|it| it == command), "{} has no `{command}`", self.name);
        self.left.remove(command);
        Ok(())
    }

    /// The block of TOML that begins with this line.
    pub(super) fn toml(&self, first: &str) -> Result<String> {
        let (_, block) = self
            .text
            .split_once(&format!("```toml\n   {first}\n"))
            .with_context(|| format!("{} has no `{first}`", self.name))?;
        let lines = block.lines().take_while(|line| line.trim() != "```");
        Ok(std::iter::once(first.to_owned())
            .chain(lines.map(|line| line.trim().to_owned()))
            .fold(String::new(), |text, line| text + &line + "\n"))
    }

    /// What of the page nobody typed; `others` are not typed on purpose.
    pub(super) fn end(mut self, others: &[&str]) -> Option<String> {
        self.left.retain(|command| !others.contains(&command.as_str()));
        let left = format!("{} has commands that nobody typed: {:#?}", self.name, self.left);
        (!self.left.is_empty()).then_some(left)
    }
}

/// The commands of a page: indented lines, and what stands between backticks, where it begins like one.
fn commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut is_fenced = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        if is_fenced {
            continue;
        }
        if line.starts_with("    ") {
            commands.push(line.split("  #").next().unwrap_or_default().trim().to_owned());
        } else {
            commands.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    commands.retain(|command| COMMANDS.iter().any(|word| command.starts_with(word)));
    commands
}

#[cfg(test)]
mod tests {
    use super::commands;

    #[test]
    fn commands_of_a_page() {
        let page = "Write `bailey start` or `base_url`:\n\n       bailey init      # says\n\n```toml\n   [backup]\n```\n| `/stop` | x |\n";
        assert_eq!(commands(page), ["bailey start", "bailey init", "/stop"]);
    }
}
