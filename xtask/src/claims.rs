//! `cargo xtask claims`: each claim names the tests that attack it, and the rendered list is the list.

use crate::root;
use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// The claims, and the page that is made of them.
const CLAIMS: &str = "docs/security/claims.toml";
const PAGE: &str = "docs/security/claims.md";
/// A document whose tables end in a column of tests.
const THREATS: &str = "docs/security/threat-model.md";

/// The longest line of the page, in characters.
const WIDTH: usize = 110;

const HEAD: &str = "\
# Claims

Each claim below is held by tests that attack it. If a wall stops an attack, the test has a *control*: the
same probe succeeds in the same run without that wall. Claims of other kinds have another counterpart:

- Decisions, permits, budgets, the screen, cards, the chain and parsers are code. Their tests also show that
  the allowed case works.
- Tests of crashes and races count the cases that they met. In the same run, a simpler way of doing it loses
  or leaks.
- If a machine cannot give the walls, the test looks for the refusal, and that no command ran.
- Tests about keys search all output and all files of Bailey for the key.

*Prove* names the lines of `bailey prove` that try the claim against your own installation, or says why that
command cannot try it. [limits.md](limits.md) lists what Bailey does not claim.

This page is made from [claims.toml](claims.toml) by `cargo xtask claims --write`.
";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    claim: String,
    how: String,
    #[serde(default)]
    prove: Vec<String>,
    untried: Option<String>,
    tests: Vec<String>,
    note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    claim: Vec<Claim>,
}

/// Checks that each named test exists and that the page is the list, or writes the page.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let write = match options {
        [] => false,
        ["--write"] => true,
        _ => bail!("`claims` takes --write only"),
    };
    let text = fs::read_to_string(root().join(CLAIMS)).with_context(|| format!("cannot read {CLAIMS}"))?;
    let Claims { claim: claims } = toml::from_str(&text).with_context(|| CLAIMS.to_owned())?;
    let known = tests()?;
    let named: BTreeSet<&str> = claims.iter().flat_map(|claim| &claim.tests).map(String::as_str).collect();
    all_there(CLAIMS, &named, &known)?;
    if let Some(bare) = claims.iter().find(|claim| claim.tests.is_empty()) {
        bail!("{CLAIMS}: no test attacks the claim `{}`", bare.claim);
    }
    let threats =
        fs::read_to_string(root().join(THREATS)).with_context(|| format!("cannot read {THREATS}"))?;
    all_there(THREATS, &in_tables(&threats), &known)?;
    let (page, path) = (page(&claims), root().join(PAGE));
    if write {
        return Ok(fs::write(path, page)?);
    }
    if fs::read_to_string(&path).ok().as_deref() != Some(page.as_str()) {
        bail!("{PAGE} is not {CLAIMS}, rendered: run `cargo xtask claims --write`");
    }
    Ok(())
}

fn all_there(document: &str, named: &BTreeSet<&str>, known: &BTreeSet<String>) -> Result<()> {
    let missing: Vec<&str> = named.iter().filter(|name| !known.contains(**name)).copied().collect();
    if named.is_empty() || !missing.is_empty() {
        bail!("{document} names {} tests, of which these are not there: {}", named.len(), missing.join(", "));
    }
    println!("claims: {} tests named in {document}, all there", named.len());
    Ok(())
}

/// The claims as a page.
fn page(claims: &[Claim]) -> String {
    let mut page = HEAD.to_owned();
    for Claim { claim, how, prove, untried, tests, note } in claims {
        let quoted =
            |names: &[String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let tried = match untried {
            Some(why) => format!("no: {why}"),
            None => quoted(prove),
        };
        let note = note.as_ref().map(|note| format!(" {note}")).unwrap_or_default();
        // Writing into a String does not fail.
        write!(page, "\n**{}**\n\n", wrapped(&format!("{claim}."), 4)).ok();
        for (name, text) in [("How", how), ("Prove", &tried), ("Tests", &format!("{}.{note}", quoted(tests)))]
        {
            writeln!(page, "- {}", wrapped(&format!("{name}: {text}"), 2).replace('\n', "\n  ")).ok();
        }
    }
    page
}

/// The text in lines that leave so many columns free.
fn wrapped(text: &str, free: usize) -> String {
    let (mut lines, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > WIDTH - free {
            lines.push('\n');
            column = 0;
        } else if column > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += width;
    }
    lines
}

/// The names in backticks in the last column of each table row.
fn in_tables(text: &str) -> BTreeSet<&str> {
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let tests = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    let quoted = tests.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    quoted.filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')).collect()
}

/// The functions of all sources.
fn tests() -> Result<BTreeSet<String>> {
    let mut sources = Vec::new();
    for folder in ["crates", "lab", "xtask"] {
        collect(&root().join(folder), &mut sources)?;
    }
    let mut known = BTreeSet::new();
    for source in sources {
        functions(&fs::read_to_string(&source)?, &mut known);
    }
    Ok(known)
}

fn functions(source: &str, known: &mut BTreeSet<String>) {
    for line in source.lines() {
        let line = line.trim_start();
        let line = line.strip_prefix("async ").unwrap_or(line);
        if let Some(rest) = line.strip_prefix("fn ") {
            known.insert(rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect());
        }
    }
}

fn collect(dir: &Path, into: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, into)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Claim, in_tables, page};

    #[test]
    fn names_are_read_from_the_last_column() {
        let text = "| claim | `not_this` | `one_test`, `another` |\n|---|---|---|\nplain `text`\n";
        assert_eq!(in_tables(text).into_iter().collect::<Vec<_>>(), ["another", "one_test"]);
    }

    #[test]
    fn a_claim_is_a_paragraph_with_its_mechanism_its_lines_and_its_tests() {
        let claim = Claim {
            claim: "It holds".into(),
            how: "word ".repeat(40),
            prove: vec!["a.b".into()],
            untried: None,
            tests: vec!["one".into(), "two".into()],
            note: Some("Seen.".into()),
        };
        let page = page(&[claim]);
        assert!(page.ends_with("- Prove: `a.b`\n- Tests: `one`, `two`. Seen.\n"), "{page}");
        assert!(page.contains("\n**It holds.**\n\n- How: word"), "{page}");
        assert!(page.lines().all(|line| line.chars().count() <= 110));
    }
}
