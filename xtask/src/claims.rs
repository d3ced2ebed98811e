//! Every claim names the test that attacks it: a claim whose test is gone is no claim.

use crate::root;
use anyhow::{Context as _, Result, bail};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The documents whose tables end in a column of tests.
const DOCUMENTS: &[&str] = &["SECURITY.md", "docs/THREAT_MODEL.md"];

/// Checks that each test that the documents name is there.
pub(crate) fn run() -> Result<()> {
    let mut sources = Vec::new();
    for folder in ["crates", "xtask"] {
        collect(&root().join(folder), &mut sources)?;
    }
    let mut known = BTreeSet::new();
    for source in sources {
        functions(&fs::read_to_string(&source)?, &mut known);
    }
    for document in DOCUMENTS {
        let text =
            fs::read_to_string(root().join(document)).with_context(|| format!("cannot read {document}"))?;
        let named = named(&text);
        let missing: Vec<&str> = named.iter().filter(|name| !known.contains(**name)).copied().collect();
        if named.is_empty() || !missing.is_empty() {
            bail!(
                "{document} names {} tests, of which these are not there: {}",
                named.len(),
                missing.join(", ")
            );
        }
        println!("claims: {} tests named in {document}, all there", named.len());
    }
    Ok(())
}

/// The names in backticks in the last column of each table row.
fn named(text: &str) -> BTreeSet<&str> {
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let tests = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    let quoted = tests.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    quoted.filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')).collect()
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
    use super::named;

    #[test]
    fn names_are_read_from_the_last_column() {
        let text = "| claim | `not_this` | `one_test`, `another` |\n|---|---|---|\nplain `text`\n";
        assert_eq!(named(text).into_iter().collect::<Vec<_>>(), ["another", "one_test"]);
    }
}
