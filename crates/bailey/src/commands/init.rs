//! `bailey init`: a commented configuration and the default rules. It asks nothing and overwrites nothing.

use crate::{
    config::TEMPLATE,
    home::{Home, make_private},
    print::{Printer, Style},
};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::{
    fs::OpenOptions,
    io::{ErrorKind, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    process::ExitCode,
};

const ENV: &str =
    "# Keys, one NAME=value a line. Read by Bailey alone: never given to a command, a log or a model.
# ANTHROPIC_API_KEY=
# OPENAI_API_KEY=
";

pub(super) fn run(home: &Home, printer: &Printer) -> Result<ExitCode> {
    make_private(&home.policy())?;
    let files = [
        (home.config(), TEMPLATE),
        (home.policy().join("default.toml"), bailey_policy::DEFAULT_RULES),
        (home.env_file(), ENV),
    ];
    for (path, content) in files {
        let made = write_new(&path, content)?;
        if printer.is_json() {
            printer.json(&json!({ "file": path, "made": made }));
        } else {
            let what = if made { "made" } else { "kept" };
            printer.line(format!("{what}  {}", printer.paint(Style::Plain, &path.display().to_string())));
        }
    }
    if !printer.is_json() {
        printer.line("\nNext: put a key into .env (or the environment), then, in a repository:");
        printer.line("  bailey run \"make the tests pass\"");
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a file of mode 600 unless it is there.
fn write_new(path: &Path, content: &str) -> Result<bool> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            file.write_all(content.as_bytes())
                .with_context(|| format!("cannot write `{}`", path.display()))?;
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot make `{}`", path.display())),
    }
}
