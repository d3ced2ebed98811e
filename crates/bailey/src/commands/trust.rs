//! `bailey trust`: whether a repository's own settings are used.

use crate::{
    cli::Trust,
    clock,
    config::{Config, Document},
    home::Home,
    print::{Printer, Style},
    project,
    trust::{self, TrustState},
};
use anyhow::{Context as _, Result, bail};
use bailey_journal::{Clock as _, SystemClock};
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

pub(super) fn run(home: &Home, command: Trust, printer: &Printer) -> Result<ExitCode> {
    match command {
        Trust::Show { all: true, .. } => all(home, printer),
        Trust::Show { directory, .. } => show(home, directory.as_deref(), printer),
        Trust::Add { directory } => add(home, directory.as_deref(), printer),
        Trust::Rm { directory } => remove(home, directory.as_deref(), printer),
    }
}

fn all(home: &Home, printer: &Printer) -> Result<ExitCode> {
    let all = trust::all(home)?;
    if all.is_empty() && !printer.is_json() {
        printer.note("no repository's settings are trusted");
    }
    for trusted in &all {
        if printer.is_json() {
            printer.json(trusted);
        } else {
            printer.line(format!(
                "{}  {}",
                printer.paint(Style::Dim, &clock::local(trusted.since)),
                printer.paint(Style::Plain, &trusted.project.display().to_string())
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(home: &Home, directory: Option<&Path>, printer: &Printer) -> Result<ExitCode> {
    let (root, _) = project::find(directory, home)?;
    let file = root.join(project::SETTINGS);
    let Some(text) = project::settings(&root)? else {
        if printer.is_json() {
            printer.json(&json!({ "project": root, "file": file, "standing": null }));
        } else {
            printer
                .line(format!("there is no `{}`", printer.paint(Style::Plain, &file.display().to_string())));
        }
        return Ok(ExitCode::SUCCESS);
    };
    let standing = TrustState::of(home, &root, &text)?;
    let mistake = closed_list(home, &file, &text).err().map(|error| format!("{error:#}"));
    if printer.is_json() {
        printer.json(&json!({
            "project": root, "file": file, "standing": standing, "settings": text, "mistake": mistake,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    let (style, says) = match standing {
        TrustState::Trusted => (Style::Green, "trusted, and used"),
        TrustState::Changed => (Style::Yellow, "changed since you trusted it: not used"),
        TrustState::Unknown => (Style::Yellow, "not trusted: not used"),
    };
    printer.line(format!(
        "{}  {}",
        printer.paint(Style::Bold, &file.display().to_string()),
        printer.paint(style, says)
    ));
    text.lines().for_each(|line| printer.line(printer.paint(Style::Dim, &format!("  {line}"))));
    match mistake {
        Some(mistake) => printer.note(&format!("these settings cannot be trusted: {mistake}")),
        None if standing != TrustState::Trusted => {
            printer.note(&format!("to use these settings: bailey trust add -C '{}'", root.display()));
        }
        None => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn add(home: &Home, directory: Option<&Path>, printer: &Printer) -> Result<ExitCode> {
    let (root, _) = project::find(directory, home)?;
    let file = root.join(project::SETTINGS);
    let Some(text) = project::settings(&root)? else {
        bail!("there is no `{}` that could be trusted", file.display());
    };
    closed_list(home, &file, &text)?;
    let trusted = trust::add(home, &root, &text, SystemClock.now())?;
    if printer.is_json() {
        printer.json(&trusted);
        return Ok(ExitCode::SUCCESS);
    }
    printer.line(format!(
        "{} {}",
        printer.paint(Style::Green, "trusted, until it changes:"),
        printer.paint(Style::Plain, &file.display().to_string())
    ));
    text.lines().for_each(|line| printer.line(printer.paint(Style::Dim, &format!("  {line}"))));
    Ok(ExitCode::SUCCESS)
}

fn remove(home: &Home, directory: Option<&Path>, printer: &Printer) -> Result<ExitCode> {
    // A project that is gone can still be forgotten, by the path that `show --all` says.
    let root = match project::find(directory, home) {
        Ok((root, _)) => root,
        Err(error) => directory.filter(|dir| dir.is_absolute()).map(PathBuf::from).ok_or(error)?,
    };
    let was_trusted = trust::remove(home, &root)?;
    if printer.is_json() {
        printer.json(&json!({ "project": root, "was_trusted": was_trusted }));
    } else if was_trusted {
        let gone = format!("not used any more: `{}`", root.join(project::SETTINGS).display());
        printer.line(printer.paint(Style::Plain, &gone));
    } else {
        bail!("`{}` was not trusted; `bailey trust show --all` lists those that are", root.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a project may set all of this: what it may not cannot be trusted either.
fn closed_list(home: &Home, file: &Path, text: &str) -> Result<()> {
    let document = Document::parse(file, text.to_owned())?;
    Config::load(home)?.obey(&document).context("only names of a closed list can be trusted")
}
