//! `bailey soul`: the personality, and whether it is what the owner accepted.

use crate::{
    cli::Soul,
    home::Home,
    identity::{self, SoulState},
    print::{Printer, Style},
};
use anyhow::Result;
use bailey_kernel::Paper;
use serde_json::json;
use std::process::ExitCode;

pub(super) fn run(home: &Home, command: &Soul, printer: &Printer) -> Result<ExitCode> {
    let text = identity::read_soul(home)?;
    if matches!(command, Soul::Accept) {
        identity::accept(home, text.as_deref())?;
    }
    let standing = identity::standing(home, text.as_deref())?;
    let path = home.paper(Paper::Soul);
    if printer.is_json() {
        printer.json(&json!({ "file": path, "standing": standing, "text": text }));
        return Ok(ExitCode::SUCCESS);
    }
    let (style, says) = match standing {
        SoulState::None => (Style::Dim, "there is none, and no session needs one"),
        SoulState::Accepted => (Style::Green, "accepted, until it changes"),
        SoulState::Unknown => (Style::Yellow, "never accepted, so no session begins"),
        SoulState::Changed => (Style::Yellow, "not what you accepted, so no session begins"),
        SoulState::Gone => (Style::Yellow, "gone since you accepted it, so no session begins"),
    };
    printer.line(format!(
        "{}  {}",
        printer.paint(Style::Bold, &path.display().to_string()),
        printer.paint(style, says)
    ));
    for line in text.iter().flat_map(|text| text.lines()) {
        printer.line(printer.paint(Style::Plain, &format!("  {line}")));
    }
    if !matches!(standing, SoulState::None | SoulState::Accepted) {
        printer.note("if this is what you want, accept it with `bailey soul accept`");
    }
    Ok(ExitCode::SUCCESS)
}
