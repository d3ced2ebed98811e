//! `bailey version`.

use crate::print::Printer;
use anyhow::Result;
use serde_json::json;
use std::process::ExitCode;

pub(super) fn run(printer: &Printer) -> Result<ExitCode> {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let (version, target) = (env!("CARGO_PKG_VERSION"), env!("BAILEY_TARGET"));
    let (commit, rustc) = (env!("BAILEY_COMMIT"), env!("BAILEY_RUSTC"));
    if printer.is_json() {
        printer.json(&json!({
            "version": version, "commit": commit, "target": target, "profile": profile, "rustc": rustc,
            "journal": bailey_journal::fact::ENTRY_VERSION, "events": bailey_protocol::event::EVENT_VERSION,
        }));
    } else {
        printer.line(format!("bailey {version} ({commit}, {target}, {profile}, {rustc})"));
    }
    Ok(ExitCode::SUCCESS)
}
