//! `bailey update`: which version this is, and how to get the next one. It asks no server and changes
//! nothing: the owner chooses the program that replaces this one.

use crate::{
    client::Client,
    home::Home,
    print::{Printer, Style},
};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::{env, path::Path, process::ExitCode};

/// Where releases lie.
const RELEASES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/releases");

pub(super) fn run(home: Option<&Home>, printer: &Printer) -> Result<ExitCode> {
    let program = env::current_exe().context("cannot find this program's own file")?;
    let version = env!("CARGO_PKG_VERSION");
    let steps = steps(&program, home.is_some_and(Client::is_there));
    if printer.is_json() {
        let commands: Vec<&str> = steps.iter().map(|(command, _)| command.as_str()).collect();
        printer.json(&json!({
            "version": version, "program": program, "releases": RELEASES, "commands": commands,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    let program = program.display().to_string();
    printer.line(format!("bailey {version}, {}", printer.paint(Style::Plain, &program)));
    printer.line(format!("releases: {RELEASES}"));
    printer.line("");
    for (command, what) in steps {
        let command = printer.paint(Style::Bold, &command);
        printer.line(format!("  {command}  {}", printer.paint(Style::Dim, what)));
    }
    printer.note("sessions, settings and keys stay; `bailey guide install` says more of upgrades");
    Ok(ExitCode::SUCCESS)
}

/// The commands that bring the next version, by the place of this one.
fn steps(program: &Path, has_daemon: bool) -> Vec<(String, &'static str)> {
    let mut steps = vec![("bailey backup".to_owned(), "a newer journal is read by newer programs alone")];
    let is_cargo = program.components().any(|part| part.as_os_str() == ".cargo");
    let install = if is_cargo || program.components().any(|part| part.as_os_str() == "target") {
        ("git pull && cargo install --locked --path crates/bailey".to_owned(), "in your clone")
    } else if program.starts_with("/usr/bin") {
        ("sudo apt install ./bailey_VERSION_amd64.deb".to_owned(), "the package of the release")
    } else {
        let at = program.parent().and_then(Path::parent).unwrap_or(Path::new("/usr/local"));
        let tar = "sudo tar -xzf bailey-VERSION-x86_64-linux.tar.gz --strip-components=1 -C";
        (format!("{tar} {}", at.display()), "the archive of the release")
    };
    steps.push(install);
    if has_daemon {
        steps.push(("bailey stop && bailey start".to_owned(), "the daemon still runs the old version"));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::steps;
    use std::path::Path;

    #[test]
    fn the_way_to_the_next_version_is_that_of_this_one() {
        let install = |program: &str| steps(Path::new(program), false).pop().unwrap().0;
        assert!(install("/home/ann/.cargo/bin/bailey").contains("cargo install"));
        assert!(install("/usr/bin/bailey").starts_with("sudo apt install"));
        assert!(install("/opt/tools/bin/bailey").ends_with("-C /opt/tools"));
        let with_daemon = steps(Path::new("/usr/bin/bailey"), true);
        assert_eq!(with_daemon.last().unwrap().0, "bailey stop && bailey start");
    }
}
