//! A new kind of action, tried: a patch of at most four files is applied to a copy, which still compiles, and
//! one scenario runs there, from the rule to the outcome.

use crate::{cargo, check, root, target_dir};
use anyhow::{Context as _, Result, bail};
use std::{fs, process::Command};

/// The files that a new kind may touch: its own, the list of actions, the list of routes, and its scenario.
const FILES_MAX: usize = 4;

pub(crate) fn run() -> Result<()> {
    let patch = root().join("xtask/new-kind.patch");
    let text = fs::read_to_string(&patch)?;
    let files: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("+++ b/")).collect();
    if files.len() > FILES_MAX {
        bail!("{} touches {} files, and {FILES_MAX} at most: {files:?}", patch.display(), files.len());
    }
    let copy = target_dir().join("new-kind");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    let tracked = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output()?.stdout;
    for path in String::from_utf8(tracked)?.split('\0').filter(|path| !path.is_empty()) {
        let (from, to) = (root().join(path), copy.join(path));
        // A link, or a file that was removed and is still tracked.
        if !from.symlink_metadata().is_ok_and(|about| about.is_file()) {
            continue;
        }
        fs::create_dir_all(to.parent().context("a path has no directory")?)?;
        fs::copy(&from, &to)?;
    }
    check(
        Command::new("git")
            .arg("apply")
            .arg(&patch)
            .current_dir(&copy)
            .env("GIT_CEILING_DIRECTORIES", target_dir()),
    )?;
    let in_copy = |arguments: &[&str]| {
        let mut command = cargo(arguments);
        command.current_dir(&copy).env("CARGO_TARGET_DIR", target_dir().join("new-kind-target"));
        check(&mut command)
    };
    in_copy(&["check", "--quiet", "--locked", "--workspace"])?;
    in_copy(&["test", "--quiet", "--locked", "--package", "bailey-kernel", "--test", "ping"])?;
    fs::remove_dir_all(&copy)?;
    println!("new-kind: {} files: {}", files.len(), files.join(", "));
    Ok(())
}
