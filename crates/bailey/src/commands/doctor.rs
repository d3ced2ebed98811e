//! `bailey doctor`: whether everything that Bailey stands on is there, truly tried where it can be, each with
//! its fix.

mod host;
mod inside;
mod own;
mod providers;
mod tiers;

use crate::{
    config::Config,
    exit,
    home::Home,
    print::{Printer, Style, fold},
};
use anyhow::Result;
use bailey_protocol::Level;
use serde::Serialize;
use std::{
    io::IsTerminal as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Where the right column begins.
const INDENT: usize = 24;

/// How well a thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Grade {
    /// It is as it should be.
    Ok,
    /// Bailey works, but less well or less safely than it could.
    Warn,
    /// Bailey does not work.
    Fail,
}

/// What was found about one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// The thing.
    check: &'static str,
    grade: Grade,
    /// What is.
    says: String,
    /// How to get it right.
    fix: Option<String>,
    /// Details for an expert.
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<String>,
    /// Whether a newcomer needs it. JSON has every finding.
    #[serde(skip)]
    is_special: bool,
}

impl Finding {
    fn ok(check: &'static str, says: impl Into<String>) -> Self {
        Self { check, grade: Grade::Ok, says: says.into(), fix: None, details: None, is_special: false }
    }

    fn warn(check: &'static str, says: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { grade: Grade::Warn, fix: Some(fix.into()), ..Self::ok(check, says) }
    }

    fn fail(check: &'static str, says: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { grade: Grade::Fail, fix: Some(fix.into()), ..Self::ok(check, says) }
    }
}

/// Looks at all of it.
pub(super) async fn run(
    home: Option<PathBuf>,
    offline: bool,
    verbose: bool,
    printer: &Printer,
) -> Result<ExitCode> {
    let mut report = Report::new(printer, verbose);
    // Whether namespaces are wanted is the owner's to say, where that can be read.
    let config = Home::open(home.clone()).and_then(|home| Config::load(&home));
    let taken = config.map_or(Level::Native, |config| config.tiers.internal);
    report.add(host::kernel(host::read, can_be_made(), taken));
    report.add(vec![host::confinement()]);
    // What a person sets wrong is itself a finding, and hides nothing of the rest.
    let Some(home) = report.take(own::home(home)) else { return Ok(report.end()) };
    report.add(own::storage(&home));
    report.add(own::git(&home));
    let config = report.take(own::config(&home));
    report.add(own::rules(&home, config.as_ref()));
    report.add(own::journal(&home, config.as_ref(), printer).await);
    if let Some(config) = &config {
        report.add(own::keys(&home, config));
        match own::stop(&home) {
            Some(stop) => report.add(vec![stop]),
            None if offline => {}
            None => report.add(providers::asked(&home, printer).await),
        }
    }
    report.add(inside::tried(&home, &config.unwrap_or_default(), printer).await);
    Ok(report.end())
}

/// Whether namespaces can be made; where that cannot be tried, what the walls themselves say counts.
fn can_be_made() -> bool {
    bailey_sandbox::can_make_namespaces(Path::new("/proc/self/exe")).unwrap_or(true)
}

/// The walls' part of it: `bailey sandbox doctor`.
pub(super) async fn walls(home: &Home, printer: &Printer) -> Result<ExitCode> {
    let mut report = Report::new(printer, true);
    let config = Config::load(home)?;
    report.add(host::kernel(host::read, can_be_made(), config.tiers.internal));
    report.add(vec![host::confinement()]);
    report.add(inside::tried(home, &config, printer).await);
    Ok(report.end())
}

/// Prints findings as they come, so that a slow one does not hide the others.
struct Report<'a> {
    printer: &'a Printer,
    worst: Grade,
    /// Whether no model can be used.
    lacks_model: bool,
    is_terminal: bool,
    is_verbose: bool,
}

impl<'a> Report<'a> {
    fn new(printer: &'a Printer, is_verbose: bool) -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        Self { printer, worst: Grade::Ok, lacks_model: false, is_terminal, is_verbose }
    }

    fn take<T>(&mut self, (findings, value): (Vec<Finding>, Option<T>)) -> Option<T> {
        self.add(findings);
        value
    }

    fn add(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            self.worst = self.worst.max(finding.grade);
            self.lacks_model |= finding.check == own::MODEL_KEYS && finding.grade == Grade::Warn;
            if self.printer.is_json() {
                self.printer.json(&finding);
                continue;
            }
            if finding.is_special && !self.is_verbose {
                continue;
            }
            let (style, word) = match finding.grade {
                Grade::Ok => (Style::Green, "ok  "),
                Grade::Warn => (Style::Yellow, "warn"),
                Grade::Fail => (Style::Red, "FAIL"),
            };
            self.printer.line(format!(
                "{}  {}  {}",
                self.printer.paint(style, word),
                self.printer.paint(Style::Bold, &format!("{:<16}", finding.check)),
                self.printer.paint_lines(Style::Plain, &self.folded(&finding.says)).join("\n")
            ));
            let details = finding.details.filter(|_| self.is_verbose);
            for more in details.into_iter().chain(finding.fix.map(|fix| format!("fix: {fix}"))) {
                let more = self.folded(&more);
                let lines = self.printer.paint_lines(Style::Dim, &format!("{:INDENT$}{more}", ""));
                lines.iter().for_each(|line| self.printer.line(line));
            }
        }
    }

    /// Text for the right column: on a terminal folded to 80 columns, in a pipe on one line.
    fn folded(&self, text: &str) -> String {
        if self.is_terminal { fold(text, 80 - INDENT, INDENT) } else { text.to_owned() }
    }

    fn end(self) -> ExitCode {
        let (says, code) = match self.worst {
            Grade::Ok => ("everything that Bailey needs is there", exit::DONE),
            Grade::Warn if self.lacks_model => {
                ("the machine is ready, but no model can be used yet; run `bailey init`", exit::DONE)
            }
            Grade::Warn => ("Bailey can work; each `warn` line says what could be better", exit::DONE),
            Grade::Fail => ("Bailey cannot work yet; each `FAIL` line says what to do", exit::FAILED),
        };
        self.printer.note(says);
        ExitCode::from(code)
    }
}
