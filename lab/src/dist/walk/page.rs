//! The commands that a section of a guide has its reader type, and those of them that were typed.

use anyhow::{Context as _, Result, ensure};
use std::{collections::BTreeSet, fs};

/// The beginnings of commands.
const COMMANDS: [&str; 6] = ["bailey ", "sudo ", "git ", "journalctl ", "systemctl ", "/"];

/// A guide's file and the heading of one of its sections.
pub(super) type Name = (&'static str, &'static str);

pub(super) struct Page {
    name: Name,
    text: String,
    /// Commands that were not typed yet.
    left: BTreeSet<String>,
}

impl Page {
    pub(super) fn open(name: Name) -> Result<Self> {
        let (file, heading) = name;
        let guide = fs::read_to_string(xtask::root().join("docs").join(file)).context(file)?;
        let text = section(&guide, heading).with_context(|| format!("{file} has no `## {heading}`"))?;
        let (text, left) = (text.to_owned(), commands(text).into_iter().collect());
        Ok(Self { name, text, left })
    }

    /// A command is typed: the page must have it.
    pub(super) fn has(&mut self, command: &str) -> Result<()> {
        ensure!(commands(&self.text).iter().any(|it| it == command), "{} has no `{command}`", self.name.0);
        self.left.remove(command);
        Ok(())
    }

    /// The block of TOML that begins with this line.
    pub(super) fn toml(&self, first: &str) -> Result<String> {
        let (_, block) = self
            .text
            .split_once(&format!("```toml\n   {first}\n"))
            .with_context(|| format!("{} has no `{first}`", self.name.0))?;
        let lines = block.lines().take_while(|line| line.trim() != "```");
        Ok(std::iter::once(first.to_owned())
            .chain(lines.map(|line| line.trim().to_owned()))
            .fold(String::new(), |text, line| text + &line + "\n"))
    }

    /// The commands that were not typed; `others` are left out on purpose.
    pub(super) fn end(mut self, others: &[&str]) -> Option<String> {
        self.left.retain(|command| !others.contains(&command.as_str()));
        let left = format!("{} has commands that were not typed: {:#?}", self.name.0, self.left);
        (!self.left.is_empty()).then_some(left)
    }
}

/// The text under this heading, to the next heading of its level.
fn section<'a>(guide: &'a str, heading: &str) -> Option<&'a str> {
    let (_, rest) = guide.split_once(&format!("\n## {heading}\n"))?;
    rest.split("\n## ").next()
}

/// The commands of a page: indented lines and code between backticks, where they begin like one.
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
    use super::{commands, section};

    #[test]
    fn commands_of_a_page() {
        let page = "Write `bailey start` or `base_url`:\n\n       bailey init      # says\n\n```toml\n   [backup]\n```\n| `/stop` | x |\n";
        assert_eq!(commands(page), ["bailey start", "bailey init", "/stop"]);
    }

    #[test]
    fn a_section_ends_at_the_next_heading_of_its_level() {
        let guide = "# A\n\n## B\n\none\n\n### C\n\ntwo\n\n## D\n\nthree\n";
        assert_eq!(section(guide, "B"), Some("\none\n\n### C\n\ntwo\n"));
        assert_eq!(section(guide, "D"), Some("\nthree\n"));
        assert_eq!(section(guide, "C"), None);
    }
}
