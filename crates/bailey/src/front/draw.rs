//! Draws what happens for a person.

use super::{
    ask::{diff_lines, one_line},
    spent::Spent,
};
use crate::print::{Printer, Style};
use bailey_protocol::{CallId, Happening, Verdict};
use std::{
    collections::HashMap,
    io::IsTerminal as _,
    time::{Duration, Instant},
};

/// The longest target that is shown on a line, in characters.
const TARGET_CHARS_MAX: usize = 100;
/// Stands before each line of the model's text.
const BAR: &str = "│ ";
/// Diff lines shown below an edit; the whole diff comes at the end.
const DIFF_LINES_MAX: usize = 40;

/// A call as far as it is known.
#[derive(Debug)]
struct Call {
    tool: String,
    target: String,
    verdict: Option<Verdict>,
    reasons: Vec<String>,
    since: Instant,
}

/// The state of one turn's drawing.
pub(super) struct Drawing<'a> {
    printer: &'a Printer,
    verbose: bool,
    workspace: String,
    calls: HashMap<CallId, Call>,
    /// Whether the last thing printed was text without an end of line.
    in_text: bool,
    spent: Spent,
    live: bool,
    live_drawn: bool,
}

impl<'a> Drawing<'a> {
    pub(super) fn new(printer: &'a Printer, verbose: bool) -> Self {
        Self {
            printer,
            verbose,
            workspace: String::new(),
            calls: HashMap::new(),
            in_text: false,
            spent: Spent::default(),
            live: std::io::stdout().is_terminal() && !printer.is_json(),
            live_drawn: false,
        }
    }

    pub(super) fn draw(&mut self, happening: &Happening) {
        self.erase_live();
        match happening {
            Happening::Session { session, workspace, model, resumed } => {
                self.workspace = format!("{workspace}/");
                let again = if *resumed { " (resumed)" } else { "" };
                self.line(
                    Style::Dim,
                    &format!("bailey · {model} · {workspace} · session {}{again}", short(session)),
                );
            }
            Happening::Text { text } => self.text(text),
            Happening::Call { call, tool, target } => {
                let target = target.clone();
                let call_of = Call {
                    tool: tool.clone(),
                    target,
                    verdict: None,
                    reasons: Vec::new(),
                    since: Instant::now(),
                };
                self.calls.insert(call.clone(), call_of);
            }
            Happening::Decided { call: Some(call), target, verdict, reasons, .. } => {
                if let Some(call) = self.calls.get_mut(call) {
                    // Inside the workspace the path below it says enough.
                    call.target = target.strip_prefix(&self.workspace).unwrap_or(target).to_owned();
                    call.verdict = Some(*verdict);
                    call.reasons.clone_from(reasons);
                }
            }
            Happening::Output { text, .. } if self.verbose => {
                for line in text.lines() {
                    self.line(Style::Dim, &format!("    {line}"));
                }
            }
            Happening::Result { call, ok, summary, text, duration_ms, enforced } => {
                self.result(call, *ok, summary, text, *duration_ms);
                if let Some(lost) =
                    enforced.as_ref().map(|walls| walls.out_no_routes).filter(|lost| *lost > 0)
                {
                    self.line(Style::Red, &format!("    no way to the network: {} refused", packets(lost)));
                }
            }
            Happening::Notice { text } => self.line(Style::Yellow, text),
            Happening::Usage { usage, cost } => self.spent.add(usage, cost.as_ref()),
            Happening::End { reason, .. } => self.ended(reason),
            Happening::Accepted
            | Happening::Heard { .. }
            | Happening::Failed { .. }
            | Happening::Decided { .. }
            | Happening::Output { .. }
            | Happening::Ask { .. }
            | Happening::Answered { .. }
            | Happening::Diff { .. }
            | Happening::Merged { .. } => {}
        }
    }

    /// Says what runs and for how long, on a terminal, once it takes over a second.
    pub(super) fn tick(&mut self) {
        if !self.live || self.in_text {
            return;
        }
        let longest = self.calls.values().max_by_key(|call| call.since.elapsed());
        if let Some(call) = longest.filter(|call| call.since.elapsed() > Duration::from_secs(1)) {
            let text =
                format!("  … {} {} ({} s)", call.tool, cut(&call.target), call.since.elapsed().as_secs());
            self.printer.part(format!("\r\x1b[K{}", self.printer.paint(Style::Dim, &text)));
            self.live_drawn = true;
        }
    }

    pub(super) fn end(&mut self) {
        self.erase_live();
        self.end_text();
    }

    fn erase_live(&mut self) {
        if std::mem::take(&mut self.live_drawn) {
            self.printer.part("\r\x1b[K");
        }
    }

    fn text(&mut self, text: &str) {
        // The bar is what the model cannot draw: a line without it is Bailey's own.
        for piece in text.split_inclusive('\n') {
            if !self.in_text {
                self.printer.part(self.printer.paint(Style::Cyan, BAR));
            }
            self.printer.part(self.printer.paint(Style::Plain, piece));
            self.in_text = !piece.ends_with('\n');
        }
    }

    fn end_text(&mut self) {
        if std::mem::take(&mut self.in_text) {
            self.printer.line("");
        }
    }

    fn line(&mut self, style: Style, text: &str) {
        self.end_text();
        self.printer.line(self.printer.paint(style, text));
    }

    fn result(&mut self, call: &CallId, ok: bool, summary: &str, text: &str, duration_ms: u64) {
        self.end_text();
        let Some(call) = self.calls.remove(call) else { return };
        let denied = call.verdict == Some(Verdict::Denied);
        let (mark, style) = match (denied, ok) {
            (true, _) => ("✗", Style::Red),
            (false, true) => ("✓", Style::Green),
            (false, false) => ("!", Style::Yellow),
        };
        let verdict = match call.verdict {
            Some(Verdict::Allowed) => "allowed",
            Some(Verdict::Approved) => "approved",
            Some(Verdict::Asked) => "not approved",
            Some(Verdict::Denied) => "DENIED",
            None => "not run",
        };
        let printer = self.printer;
        printer.line(format!(
            "  {} {} {}  {}",
            printer.paint(style, mark),
            printer.paint(Style::Bold, &call.tool),
            printer.paint(Style::Plain, &cut(&call.target)),
            printer.paint(Style::Dim, &format!("{verdict} · {}", duration(duration_ms))),
        ));
        if !ok || denied {
            let why = if denied { call.reasons.join("; ") } else { summary.to_owned() };
            printer.line(printer.paint(Style::Dim, &format!("    {}", one_line(&why))));
        }
        if ok && let Some(diff) = diff_of(&call.tool, text) {
            diff_lines(printer, diff).iter().take(DIFF_LINES_MAX).for_each(|line| printer.line(line));
        }
    }

    fn ended(&mut self, reason: &str) {
        self.end_text();
        let text = match reason {
            "limit" => {
                "the turn reached its limit of tool calls and pauses here; resume the session to go on".into()
            }
            "cancelled" => "cancelled".into(),
            _ => self.spent.to_string(),
        };
        self.line(Style::Dim, &text);
    }
}

/// The Diff Card of an edit: what the model and the person both see.
fn diff_of<'a>(tool: &str, text: &'a str) -> Option<&'a str> {
    let edits = matches!(tool, "fs.edit" | "fs.write" | "fs.patch");
    let start = edits.then(|| text.find("--- "))??;
    text.get(start..)
}

/// The last digits of a session's name, which are random; the first ones are the time.
pub(crate) fn short(session: &bailey_protocol::SessionId) -> String {
    let name = session.to_string();
    name.get(name.len() - 8..).unwrap_or(&name).to_owned()
}

fn cut(target: &str) -> String {
    let line = one_line(target);
    match line.char_indices().nth(TARGET_CHARS_MAX) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or(&line)),
        None => line,
    }
}

/// A line of the model's text, behind the bar.
pub(crate) fn barred(printer: &Printer, line: &str) -> String {
    format!("{}{}", printer.paint(Style::Cyan, BAR), printer.paint(Style::Plain, line))
}

/// `1 packet`, `2 packets`.
pub(crate) fn packets(count: u64) -> String {
    if count == 1 { "1 packet".into() } else { format!("{count} packets") }
}

fn duration(ms: u64) -> String {
    if ms < 1000 { format!("{ms} ms") } else { format!("{}.{} s", ms / 1000, ms % 1000 / 100) }
}
