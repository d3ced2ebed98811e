//! `bailey policy`.

use crate::{
    cli::Policy,
    compose,
    home::Home,
    print::{Printer, Style},
};
use anyhow::Result;
use serde_json::json;
use std::process::ExitCode;

pub(super) fn run(home: &Home, command: Policy, printer: &Printer) -> Result<ExitCode> {
    let Policy::Check = command;
    let (policy, warnings) = compose::policy(home)?;
    if printer.is_json() {
        printer.json(&json!({ "ok": true, "digest": policy.digest(), "warnings": warnings }));
        return Ok(ExitCode::SUCCESS);
    }
    for warning in &warnings {
        printer.line(printer.paint(Style::Yellow, &format!("warning: {warning}")));
    }
    printer.line(format!("the rules are well formed (policy {})", policy.digest().short()));
    Ok(ExitCode::SUCCESS)
}
