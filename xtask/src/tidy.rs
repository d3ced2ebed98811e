//! Hygiene of the repository: no keys or databases that a test left there, lines that fit a screen, plain
//! English.

use crate::root;
use anyhow::{Context as _, Result, bail};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The longest line of a comment or of Markdown, in characters.
const LINE_MAX: usize = 110;
/// Words that hide which thing a sentence is about, and how many of them there may be in 1,000.
const VAGUE: [&str; 4] = ["what", "whoever", "none", "nobody"];
const VAGUE_MAX: usize = 5;
/// The files that were written before that rule: the list may only shrink.
const EXEMPT: &str = "xtask/vague.txt";

/// Checks all files that git tracks.
pub(crate) fn run() -> Result<()> {
    let files = tracked()?;
    let exempt = fs::read_to_string(root().join(EXEMPT)).with_context(|| format!("cannot read {EXEMPT}"))?;
    let exempt: BTreeSet<&str> = exempt.lines().collect();
    let mut found = Vec::new();
    let mut vague = BTreeSet::new();
    for path in &files {
        let name = path.display().to_string();
        let Ok(bytes) = fs::read(root().join(path)) else { continue };
        if !is_fixture(path) {
            found.extend(
                secret(&bytes).map(|it| format!("{name}: {it} is not tracked outside of `fixtures`")),
            );
        }
        let Ok(text) = str::from_utf8(&bytes) else { continue };
        let Some(prose) = Prose::of(path, text) else { continue };
        found
            .extend(prose.long().map(|number| format!("{name}:{number}: longer than {LINE_MAX} characters")));
        if prose.is_vague() {
            vague.insert(name);
        }
    }
    let is_exempt = |name: &&String| exempt.contains(name.as_str());
    found.extend(vague.iter().filter(|name| !is_exempt(name)).map(|name| {
        format!("{name}: more than {VAGUE_MAX} of the words {} in 1,000: name the thing", VAGUE.join(", "))
    }));
    let clear = exempt.iter().filter(|name| !vague.contains(**name));
    found.extend(clear.map(|name| format!("{EXEMPT}: `{name}` needs no exemption any more: take it out")));
    if !found.is_empty() {
        bail!("{}", found.join("\n"));
    }
    println!("tidy: {} files, {} of them exempt from plain English", files.len(), exempt.len());
    Ok(())
}

fn tracked() -> Result<Vec<PathBuf>> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output()?;
    let names = String::from_utf8(listed.stdout)?;
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect())
}

fn is_fixture(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "fixtures")
}

/// The kind of file, where it is one that must not be tracked.
fn secret(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"SQLite format 3\0") {
        return Some("a database");
    }
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let is_head = line.starts_with("-----BEGIN ") && line.ends_with("PRIVATE KEY-----");
        let is_body = |body: &str| {
            body.len() >= 40
                && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
        };
        if is_head && lines.next().is_some_and(is_body) {
            return Some("a private key");
        }
    }
    None
}

/// The comments of a source, or a Markdown file.
struct Prose<'a> {
    /// Each line by its number in the file: whole, and the text that people read.
    lines: Vec<(usize, &'a str, &'a str)>,
}

impl<'a> Prose<'a> {
    fn of(path: &Path, text: &'a str) -> Option<Self> {
        let numbered = || text.lines().enumerate().map(|(number, line)| (number + 1, line));
        let mut is_code = false;
        let mut is_prose = move |line: &str| {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            !is_code && !is_fence
        };
        let lines: Vec<_> = match path.extension()?.to_str()? {
            "rs" => {
                let comment = |(number, line): (usize, &'a str)| {
                    let text = line.trim_start().strip_prefix("//")?;
                    Some((number, line, text.trim_start_matches(['/', '!'])))
                };
                numbered().filter_map(comment).filter(|(_, _, text)| is_prose(text)).collect()
            }
            "md" if !path.starts_with("fuzz/seeds") => {
                // Code is set in by four.
                let is_text = |line: &str| !line.starts_with("    ");
                numbered()
                    .filter(|(_, line)| is_prose(line) && is_text(line))
                    .map(|(number, line)| (number, line, line))
                    .collect()
            }
            _ => return None,
        };
        Some(Self { lines })
    }

    /// Lines that are too long. A row of a table cannot be broken, nor can a single word.
    fn long(&self) -> impl Iterator<Item = usize> {
        let is_long = |(_, whole, text): &&(usize, &str, &str)| {
            whole.chars().count() > LINE_MAX
                && !text.trim_start().starts_with('|')
                && text.split_whitespace().count() > 1
        };
        self.lines.iter().filter(is_long).map(|(number, ..)| *number)
    }

    fn is_vague(&self) -> bool {
        let text: Vec<&str> = self.lines.iter().map(|(_, _, text)| *text).collect();
        let text = text.join("\n");
        // Between backticks stands code.
        let words = text
            .split('`')
            .step_by(2)
            .flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '\''));
        let (mut all, mut vague) = (0, 0);
        for word in words.filter(|word| !word.is_empty()) {
            all += 1;
            vague += usize::from(VAGUE.contains(&word.to_lowercase().as_str()));
        }
        // One in a short file says nothing.
        vague > 1 && vague * 1_000 > VAGUE_MAX * all
    }
}

#[cfg(test)]
mod tests {
    use super::{Prose, secret};
    use std::path::Path;

    #[test]
    fn keys_and_databases_are_found_and_what_only_names_them_is_not() {
        let key = format!("-----BEGIN EC PRIVATE KEY-----\n{}\n", "MHcCAQEE".repeat(8));
        assert_eq!(secret(key.as_bytes()), Some("a private key"));
        assert_eq!(secret(b"SQLite format 3\0..."), Some("a database"));
        assert_eq!(secret(b"-----BEGIN PRIVATE KEY-----\ncannot be read\n"), None);
    }

    #[test]
    fn only_prose_is_judged() {
        let long = "word ".repeat(40);
        let text = format!("//! {long}\nlet a = 1; // {long}\n// ```\n// {long}\n// ```\n// | {long} |\n");
        let prose = Prose::of(Path::new("a.rs"), &text).unwrap();
        assert_eq!(prose.long().collect::<Vec<_>>(), [1]);
        let vague = "Whoever asks what it is, and what of it there is.\n\n    what what\n\n`what` what\n";
        assert!(Prose::of(Path::new("a.md"), vague).unwrap().is_vague());
        assert!(!Prose::of(Path::new("a.md"), "The client asks what it is.\n").unwrap().is_vague());
        assert!(Prose::of(Path::new("a.txt"), vague).is_none());
    }
}
