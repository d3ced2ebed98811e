//! `cargo xtask cedar`: decisions beside those of the `cedar-policy` crate, in a workspace of its own.

use crate::{check, root};
use anyhow::Result;
use std::process::Command;

/// Builds the comparison in release and runs it: agreement on random rules, and times for 25, 200 and 1,000
/// of them.
pub(crate) fn run() -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    check(Command::new(cargo).args(["run", "--quiet", "--release"]).current_dir(root().join("cedar")))
}
