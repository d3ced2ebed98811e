//! `bailey guide`: the guides of `docs/`, which are a part of this program.

use crate::{
    front,
    print::{Printer, Style},
};
use anyhow::Result;
use serde_json::json;
use std::process::ExitCode;

/// Each guide with its text, the first steps first.
const GUIDES: [(&str, &str); 18] = [
    ("quickstart", include_str!("../../../../docs/quickstart.md")),
    ("install", include_str!("../../../../docs/install.md")),
    ("chat", include_str!("../../../../docs/chat.md")),
    ("approvals", include_str!("../../../../docs/approvals.md")),
    ("models", include_str!("../../../../docs/models.md")),
    ("repositories", include_str!("../../../../docs/repositories.md")),
    ("network", include_str!("../../../../docs/network.md")),
    ("policy", include_str!("../../../../docs/policy.md")),
    ("sandbox", include_str!("../../../../docs/sandbox.md")),
    ("daemon", include_str!("../../../../docs/daemon.md")),
    ("channels", include_str!("../../../../docs/channels.md")),
    ("web", include_str!("../../../../docs/web.md")),
    ("mcp", include_str!("../../../../docs/mcp.md")),
    ("extensions", include_str!("../../../../docs/extensions.md")),
    ("audit", include_str!("../../../../docs/audit.md")),
    ("troubleshooting", include_str!("../../../../docs/troubleshooting.md")),
    ("limits", include_str!("../../../../docs/security/limits.md")),
    ("threat-model", include_str!("../../../../docs/security/threat-model.md")),
];

/// The names of the guides.
pub(crate) fn names() -> [&'static str; GUIDES.len()] {
    GUIDES.map(|(name, _)| name)
}

/// Prints a guide; without a name, the list of them.
pub(super) fn run(name: Option<&str>, printer: &Printer) -> Result<ExitCode> {
    let Some((name, text)) = GUIDES.iter().find(|(known, _)| Some(*known) == name) else {
        for (name, text) in GUIDES {
            let title = text.lines().next().unwrap_or_default().trim_start_matches("# ");
            match printer.is_json() {
                true => printer.json(&json!({ "guide": name, "title": title })),
                false => {
                    let name = printer.paint(Style::Bold, &format!("{name:<16}"));
                    printer.line(format!("{name}{}", printer.paint(Style::Plain, title)));
                }
            }
        }
        return Ok(ExitCode::SUCCESS);
    };
    match printer.is_json() {
        true => printer.json(&json!({ "guide": name, "text": text })),
        false => front::print_markdown(printer, &linked(&joined(text))),
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes one line of each paragraph and each item, so that a terminal of any width can fold it.
fn joined(text: &str) -> String {
    let mut out = String::new();
    let (mut is_code, mut is_open) = (false, false);
    for line in text.lines() {
        let start = line.trim_start();
        let is_fence = start.starts_with("```");
        let is_own = is_code || is_fence || start.is_empty() || line.starts_with("    ");
        let is_row = is_own || start.starts_with(['#', '|', '>', '!']);
        let is_item =
            start.starts_with("- ") || start.split_once(". ").is_some_and(|(number, _)| is_number(number));
        if !out.is_empty() {
            out.push(if is_open && !is_row && !is_item { ' ' } else { '\n' });
        }
        out.push_str(if is_open && !is_row && !is_item { start } else { line });
        is_code ^= is_fence;
        is_open = !is_row;
    }
    out.push('\n');
    out
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Names the command that prints a guide in the place of a link to it. A link within the guide is its text
/// alone, and a picture is left out.
fn linked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, label, address, after)) = next_link(rest) {
        let file = address.split('#').next().unwrap_or_default();
        let name = file.rsplit('/').next().and_then(|file| file.strip_suffix(".md"));
        let command = name.filter(|name| names().contains(name)).map(|name| format!("`bailey guide {name}`"));
        match (before.strip_suffix('!'), command) {
            (Some(before), _) => out.push_str(before),
            (None, Some(command)) if label.ends_with(".md") => out.extend([before, &command]),
            (None, Some(command)) => out.extend([before, label, " (", &command, ")"]),
            (None, None) if address.starts_with('#') => out.extend([before, label]),
            (None, None) => out.extend([before, "[", label, "](", address, ")"]),
        }
        rest = after;
    }
    out + rest
}

/// The text before the next link, its label, its address, and the text after it.
fn next_link(text: &str) -> Option<(&str, &str, &str, &str)> {
    let (head, tail) = text.split_once("](")?;
    let (before, label) = head.rsplit_once('[')?;
    let (address, after) = tail.split_once(')')?;
    Some((before, label, address, after))
}

#[cfg(test)]
mod tests {
    use super::{GUIDES, joined, linked, names};
    use std::{fs, path::Path};

    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
    }

    #[test]
    fn every_guide_is_a_part_of_the_program() {
        for entry in fs::read_dir(root().join("docs")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "md") {
                let name = path.file_stem().unwrap().to_str().unwrap();
                assert!(names().contains(&name), "{name}");
            }
        }
        assert!(GUIDES.iter().map(|(_, text)| text.len()).sum::<usize>() < 200 << 10);
    }

    /// An installed program has no `docs/`. Claims and man pages are read beside the source.
    #[test]
    fn messages_name_guides_that_are_there() {
        let mut folders = vec![root().join("crates")];
        let (mut named, guide) = (0, ["bailey", " guide "].concat());
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let is_source = path.components().any(|part| part.as_os_str() == "src");
                if path.is_dir() {
                    folders.push(path);
                } else if is_source && path.extension().is_some_and(|end| end == "rs") {
                    let text = fs::read_to_string(&path).unwrap();
                    let code = text.split("#[cfg(test)]").next().unwrap();
                    // The help of a command is a comment of three slashes.
                    let is_code = |line: &&str| {
                        let start = line.trim_start();
                        !start.starts_with("//") || start.starts_with("/// ") && !start.contains("`docs/")
                    };
                    let code: Vec<&str> = code.lines().filter(is_code).collect();
                    for part in code.join("\n").split(&guide).skip(1) {
                        let name = part.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap();
                        assert!(name.is_empty() || names().contains(&name), "{}: {name}", path.display());
                        named += 1;
                    }
                    for line in code {
                        let names_file = |name: &&str| line.contains(&format!("docs/{name}.md"));
                        let is_path = !line.contains("include_str!") && names().iter().any(names_file);
                        assert!(!is_path, "{}: {line}", path.display());
                    }
                }
            }
        }
        assert!(named > 5);
    }

    #[test]
    fn links_between_guides_name_the_command() {
        let text = "See [models.md](models.md#keys), [the limits](security/limits.md) and [below](#below).\n\
                    ![A picture](page/a.png) [site](https://x.example/)";
        assert_eq!(
            linked(text),
            "See `bailey guide models`, the limits (`bailey guide limits`) and below.\n [site](https://x.example/)"
        );
    }

    #[test]
    fn paragraphs_and_items_are_one_line() {
        let text = "# Title\n\none\ntwo\n- a\n  b\n- c\n\n    code\n    more\n\n| a |\n|---|\n```sh\nx\ny\n```\nend\n";
        let expected =
            "# Title\n\none two\n- a b\n- c\n\n    code\n    more\n\n| a |\n|---|\n```sh\nx\ny\n```\nend\n";
        assert_eq!(joined(text), expected);
    }
}
