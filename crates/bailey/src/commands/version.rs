//! `bailey version`.

use crate::print::Printer;
use anyhow::Result;
use serde_json::json;
use std::process::ExitCode;

pub(super) fn run(printer: &Printer) -> Result<ExitCode> {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let (version, target) = (env!("CARGO_PKG_VERSION"), env!("BAILEY_TARGET"));
    let (commit, rustc) = (env!("BAILEY_COMMIT"), env!("BAILEY_RUSTC"));
    let features: Vec<&str> = env!("BAILEY_FEATURES").split(',').filter(|name| !name.is_empty()).collect();
    if printer.is_json() {
        printer.json(&json!({
            "version": version, "commit": commit, "target": target, "profile": profile, "rustc": rustc,
            "features": features,
            "journal": bailey_journal::fact::ENTRY_VERSION, "events": bailey_protocol::event::EVENT_VERSION,
        }));
    } else {
        let features =
            if features.is_empty() { String::new() } else { format!(", with {}", features.join(", ")) };
        printer.line(format!("bailey {version} ({commit}, {target}, {profile}, {rustc}{features})"));
    }
    Ok(ExitCode::SUCCESS)
}
