//! `bailey policy test`: the examples that rules carry, and which of them the rules do not keep.

use crate::{
    compose,
    home::Home,
    print::{Printer, Style},
};
use anyhow::Result;
use bailey_policy::{
    Policy,
    file::{Example, word},
};
use bailey_replay::Draft;
use serde_json::json;
use std::{path::PathBuf, process::ExitCode};

pub(super) fn run(home: &Home, files: &[PathBuf], printer: &Printer) -> Result<ExitCode> {
    let (policy, parsed) = if files.is_empty() {
        compose::rules(home)?
    } else {
        let mut draft = Draft::of(home)?;
        files.iter().try_for_each(|file| draft.lay(file))?;
        draft.remark(printer);
        draft.read(printer)?
    };
    let failed = parsed.examples.iter().filter(|example| !tried(&policy, example, printer)).count();
    let all = parsed.examples.len();
    if !printer.is_json() {
        let told = match (all, failed) {
            (0, _) => "no rule has examples; see `bailey policy test --help`".to_owned(),
            (_, 0) => format!("{all} examples hold"),
            _ => format!("{failed} of {all} examples fail"),
        };
        printer.line(printer.paint(Style::Bold, &told));
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Tries one example and prints what came of it; whether it holds.
fn tried(policy: &Policy, example: &Example, printer: &Printer) -> bool {
    let tried = example.attempt(policy);
    let (expected, is) = (word(example.expected), word(tried.answer));
    let holds = tried.mistake.is_none();
    if printer.is_json() {
        printer.json(&json!({
            "example": example.text, "role": example.role.name(), "rule": example.rule, "at": example.place(),
            "expected": expected, "verdict": is, "ok": holds, "reasons": tried.reasons,
        }));
        return holds;
    }
    let (mark, style) = if holds { ("✓", Style::Green) } else { ("✗", Style::Red) };
    let verdict = if holds { is.to_owned() } else { format!("{is}, not {expected}") };
    let (mark, verdict) = (printer.paint(style, mark), printer.paint(style, &verdict));
    let rule = printer.paint(Style::Dim, &format!("({})", example.rule));
    printer.line(format!("{mark} {}: {verdict} {rule}", printer.paint(Style::Plain, &example.text)));
    if !holds {
        printer.line(printer.paint(Style::Dim, &format!("    {}", example.place())));
        tried.reasons.iter().for_each(|why| printer.line(printer.paint(Style::Dim, &format!("    {why}"))));
    }
    holds
}
