//! Draws the session's events for the user.

use super::{
    card::{diff_lines, one_line},
    markdown::Markdown,
    pins::Pins,
    screen::{Row, Screen},
    summary::{FinishedCall, Summary},
    text::{self, Span, cut, span, wrap},
};
use crate::print::{Printer, Style};
use bailey_protocol::{CallId, Happening, PathCount, RecalledLine, SessionId, Verdict, event::GuideState};
use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    time::{Duration, Instant},
};

/// The longest target that is shown, in characters. This is the limit where rows have no width.
const TARGET_CHARS_MAX: usize = 100;
/// The shortest target that is shown, however narrow the terminal is.
const TARGET_CHARS_MIN: usize = 16;
/// The mark before each row of the model's text.
const BAR: &str = "│ ";
/// The longest text about work that Bailey itself waits for, in cells.
const WAITING_CELLS_MAX: usize = 200;
/// How many lines of a command's output are shown when it fails.
const LAST_LINES_MAX: usize = 5;
/// How many bytes of one of a command's last lines are kept.
const LAST_BYTES_MAX: usize = 1024;
/// A line of output that is longer than this is shown in pieces.
const LINE_BYTES_MAX: usize = 16 << 10;
/// How many diff lines are shown below an edit. The whole diff comes at the end.
const DIFF_LINES_MAX: usize = 40;
/// Work that takes longer than this is shown while it runs.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many changed files are named after a turn.
const CHANGED_MAX: usize = 3;
/// How many rows of running calls are shown.
const RUNNING_ROWS_MAX: usize = 4;

/// The known state of a call.
#[derive(Debug)]
struct Call {
    tool: String,
    target: String,
    /// Whether the owner called it: its whole output is shown.
    own: bool,
    is_command: bool,
    verdict: Option<Verdict>,
    reasons: Vec<String>,
    since: Instant,
    /// The last lines that the call printed.
    last: VecDeque<String>,
    /// The beginning of the output's next line, when the whole output is shown.
    open: String,
}

/// The state of the drawing, from the session's opening to its end.
pub(super) struct Drawing<'a> {
    printer: &'a Printer,
    verbose: bool,
    workspace: String,
    calls: HashMap<CallId, Call>,
    said: Markdown,
    /// Whether text stands on an unfinished line that cannot be redrawn.
    in_line: bool,
    /// The work that Bailey itself waits for, and since when.
    waiting: Option<(String, Instant)>,
    /// The changes that were told last.
    told: String,
    /// The guides of which it was told that the model read them.
    guides: BTreeSet<String>,
    pub(super) pins: Pins,
    pub(super) summary: Summary,
}

impl<'a> Drawing<'a> {
    pub(super) fn new(printer: &'a Printer, verbose: bool) -> Self {
        Self {
            printer,
            verbose,
            workspace: String::new(),
            calls: HashMap::new(),
            said: Markdown::default(),
            in_line: false,
            waiting: None,
            told: String::new(),
            guides: BTreeSet::new(),
            pins: Pins::default(),
            summary: Summary::default(),
        }
    }

    /// The project's path.
    pub(super) fn project(&self) -> &str {
        self.workspace.trim_end_matches('/')
    }

    /// Draws one event.
    pub(super) fn draw(&mut self, screen: &mut Screen<'_>, happening: &Happening) {
        self.summary.take(happening);
        match happening {
            Happening::Session { session, workspace, model, resumed, .. } => {
                self.workspace = format!("{workspace}/");
                let again = if *resumed { " (resumed)" } else { "" };
                let text = format!("bailey · {model} · {workspace} · session {}{again}", short(session));
                self.line(screen, Style::Dim, &text);
            }
            Happening::Text { text } => self.text(screen, text),
            Happening::Call { call, tool, target, own } => self.called(call, tool, target, *own),
            Happening::Decided { call, action, target, verdict, reasons, .. } => {
                self.decided(call.as_ref(), action, target, *verdict, reasons);
            }
            Happening::Output { call, text } => self.output(screen, call, text),
            Happening::Result { call, ok, summary, text, duration_ms, enforced } => {
                self.result(screen, call, *ok, summary, text, *duration_ms);
                let lost = enforced.as_ref().map_or(0, |walls| walls.out_no_routes);
                if lost > 0 {
                    let text = format!("    no way to the network: {} refused", packets(lost));
                    self.line(screen, Style::Red, &text);
                }
            }
            Happening::Guide { path, state } => {
                let what = match state {
                    // It is no news in a pipe, and not twice.
                    GuideState::Read if !screen.is_live() && !self.verbose => return,
                    GuideState::Read if !self.guides.insert(path.clone()) => return,
                    GuideState::Read => "read",
                    GuideState::Changed => "changed; read again",
                    GuideState::Gone => "gone",
                };
                self.line(screen, Style::Dim, &format!("  {path}: {what}"));
            }
            Happening::Pinned { messages } => {
                let lines = self.pins.take(messages);
                lines.iter().for_each(|line| self.line(screen, Style::Dim, line));
            }
            Happening::Notice { text } | Happening::Unseen { text } => {
                self.waiting = None;
                self.line(screen, Style::Yellow, text);
            }
            Happening::Sent { to, text, file, .. } => {
                let whom = to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
                let file = file.as_ref().map(|file| format!(" [{}]", file.name)).unwrap_or_default();
                self.line(screen, Style::Cyan, &format!("  message{whom}: {}{file}", text.trim()));
            }
            Happening::Usage { .. } => {
                self.waiting = None;
                self.end_text(screen);
            }
            Happening::End { reason, error, took_ms, .. } => {
                self.ended(screen, reason, error.as_deref(), *took_ms);
            }
            Happening::Changed { files, counts, .. } => {
                self.waiting = None;
                if self.summary.is_chat {
                    self.changed(screen, *files, counts);
                }
            }
            Happening::Recalled { lines, left_out } => self.recalled(screen, lines, *left_out),
            Happening::Failed { op, error } if op == "answer" => {
                self.waiting = None;
                self.line(screen, Style::Yellow, &format!("  your answer was not accepted: {error}"));
            }
            Happening::Diff { .. }
            | Happening::Merged { .. }
            | Happening::Failed { .. }
            | Happening::Found { .. }
            | Happening::Shown { .. } => self.waiting = None,
            _ => {}
        }
    }

    /// The rows that still change: the model's unfinished line, and work that takes over a second.
    pub(super) fn rows(&self, screen: &Screen<'_>) -> Vec<Row> {
        let cells = screen.cells();
        let open = self.said.open(self.printer, cells.saturating_sub(text::width(BAR)));
        let mut rows: Vec<Row> = open.into_iter().map(|row| self.barred(row)).collect();
        let slow = |since: &Instant| since.elapsed() > PATIENCE;
        if let Some((what, since)) = self.waiting.as_ref().filter(|(_, since)| slow(since)) {
            rows.push(self.waits(&format!("{what} {}", seconds(*since)), cells));
        }
        let is_asked = |call: &&Call| call.verdict == Some(Verdict::Asked);
        let mut running: Vec<&Call> =
            self.calls.values().filter(|call| slow(&call.since) && !is_asked(call)).collect();
        running.sort_by_key(|call| call.since);
        for call in running.iter().take(RUNNING_ROWS_MAX) {
            let target = cut(&one_line(&call.target), (cells / 2).clamp(TARGET_CHARS_MIN, TARGET_CHARS_MAX));
            let last = call.last.back().map(|last| format!(": {}", last.trim_start())).unwrap_or_default();
            rows.push(self.waits(&format!("{} {target} {}{last}", call.tool, seconds(call.since)), cells));
        }
        if running.len() > RUNNING_ROWS_MAX {
            rows.push(self.waits(&format!("and {} more", running.len() - RUNNING_ROWS_MAX), cells));
        }
        rows
    }

    /// Prints a line of Bailey's own, wrapped.
    pub(super) fn line(&mut self, screen: &mut Screen<'_>, style: Style, text: &str) {
        self.end_text(screen);
        let indent = text.len() - text.trim_start().len();
        for row in wrap(&[span(self.printer, style, text)], screen.cells(), indent) {
            screen.line(&text::paint(self.printer, &row));
        }
    }

    /// Ends the line of the model's text.
    pub(super) fn end_text(&mut self, screen: &mut Screen<'_>) {
        if std::mem::take(&mut self.in_line) {
            screen.line("");
        }
        if self.said.is_open() {
            let rows = self.said.end(self.printer, screen.cells().saturating_sub(text::width(BAR)));
            rows.into_iter().for_each(|row| screen.line(&self.barred(row).painted));
        }
    }

    fn text(&mut self, screen: &mut Screen<'_>, text: &str) {
        self.waiting = None;
        if !screen.is_live() {
            return self.pieces(screen, text);
        }
        let rows = self.said.push(self.printer, text, screen.cells().saturating_sub(text::width(BAR)));
        rows.into_iter().for_each(|row| screen.line(&self.barred(row).painted));
    }

    /// Prints text at once, as the model writes it. The program that reads the pipe can draw it.
    fn pieces(&mut self, screen: &mut Screen<'_>, text: &str) {
        for piece in text.split_inclusive('\n') {
            if !self.in_line {
                screen.part(&self.printer.paint(Style::Cyan, BAR));
            }
            let line = piece.strip_suffix('\n');
            screen.part(&self.printer.paint(Style::Plain, line.unwrap_or(piece)));
            self.in_line = line.is_none();
            if !self.in_line {
                screen.part("\n");
            }
        }
    }

    /// Puts the bar before a row. The model cannot draw the bar: a row without it is Bailey's own.
    fn barred(&self, row: Vec<Span>) -> Row {
        let bar = std::iter::once((Style::Cyan, BAR.to_owned()));
        Row::of(self.printer, &bar.chain(row).collect::<Vec<_>>())
    }

    fn waits(&self, what: &str, cells: usize) -> Row {
        let (style, what) = span(self.printer, Style::Dim, &format!("  … {what}"));
        Row::of(self.printer, &[(style, cut(&what, cells))])
    }

    fn called(&mut self, call: &CallId, tool: &str, target: &str, own: bool) {
        self.waiting = None;
        let of = Call {
            tool: tool.to_owned(),
            target: target.to_owned(),
            own,
            is_command: false,
            verdict: None,
            reasons: Vec::new(),
            since: Instant::now(),
            last: VecDeque::new(),
            open: String::new(),
        };
        self.calls.insert(call.clone(), of);
    }

    fn decided(
        &mut self,
        call: Option<&CallId>,
        action: &str,
        target: &str,
        verdict: Verdict,
        reasons: &[String],
    ) {
        if let Some(call) = call.and_then(|call| self.calls.get_mut(call)) {
            // Inside the workspace, the path relative to it says enough.
            call.target = target.strip_prefix(&self.workspace).unwrap_or(target).to_owned();
            call.is_command = action == "exec";
            call.verdict = Some(verdict);
            call.reasons = reasons.to_vec();
            // The time that a human takes does not count as the call's time.
            call.since = Instant::now();
        } else if call.is_none() && matches!(verdict, Verdict::Allowed | Verdict::Approved) {
            let what = match action {
                "model" => "thinking".into(),
                "diff" => "comparing with the project".into(),
                "merge" => target.to_owned(),
                other => format!("{other} {target}"),
            };
            // A merge names all its files, and this text is redrawn again and again.
            let (_, what) = span(self.printer, Style::Dim, &what);
            self.waiting = Some((cut(&what, WAITING_CELLS_MAX), Instant::now()));
        }
    }

    fn output(&mut self, screen: &mut Screen<'_>, call: &CallId, text: &str) {
        if self.verbose || self.calls.get(call).is_some_and(|call| call.own) {
            self.printed(screen, call, text);
        }
        let Some(call) = self.calls.get_mut(call) else { return };
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        for line in lines.iter().rev().take(LAST_LINES_MAX).rev() {
            if call.last.len() == LAST_LINES_MAX {
                call.last.pop_front();
            }
            // The last line is redrawn again and again, and a row shows no more of it.
            let line = line.get(..line.floor_char_boundary(LAST_BYTES_MAX)).unwrap_or_default();
            call.last.push_back(line.to_owned());
        }
    }

    /// Prints a command's output line by line. The output comes in pieces that may end anywhere.
    fn printed(&mut self, screen: &mut Screen<'_>, call: &CallId, text: &str) {
        let mut whole =
            self.calls.get_mut(call).map(|call| std::mem::take(&mut call.open)).unwrap_or_default();
        whole.push_str(text);
        let end = whole.rfind('\n').map_or(0, |end| end + 1);
        let open = if whole.len() - end > LINE_BYTES_MAX { String::new() } else { whole.split_off(end) };
        whole.lines().for_each(|line| self.line(screen, Style::Dim, &format!("    {line}")));
        if let Some(call) = self.calls.get_mut(call) {
            call.open = open;
        }
    }

    fn result(
        &mut self,
        screen: &mut Screen<'_>,
        call: &CallId,
        ok: bool,
        summary: &str,
        text: &str,
        duration_ms: u64,
    ) {
        self.end_text(screen);
        if self.calls.get(call).is_some_and(|call| !call.open.is_empty()) {
            self.printed(screen, call, "\n");
        }
        let Some(call) = self.calls.remove(call) else { return };
        let is_shown = call.own;
        if is_shown {
            self.waiting = None;
        }
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
            // A call without an effect of its own: a look at a process, or work that is given to a sub-agent.
            None if ok || is_shown => "done",
            None => "not run",
        };
        let why = if denied { call.reasons.join("; ") } else { summary.to_owned() };
        let end = format!("  {verdict} · {}", duration(duration_ms));
        let (_, tool) = span(self.printer, Style::Bold, &call.tool);
        let taken = 5 + text::width(&tool) + text::width(&end);
        let room = screen.cells().saturating_sub(taken).clamp(TARGET_CHARS_MIN, TARGET_CHARS_MAX);
        let (_, target) = span(self.printer, Style::Plain, &one_line(&call.target));
        let row = [
            (style, format!("  {mark} ")),
            (Style::Bold, tool),
            (Style::Plain, format!(" {}", cut(&target, room))),
            (Style::Dim, end),
        ];
        screen.line(&text::paint(self.printer, &row));
        if !ok || denied {
            self.line(screen, Style::Dim, &format!("    {}", one_line(&why)));
        }
        if !ok && !denied && !self.verbose && !is_shown {
            let errors = last_errors(text);
            let last = if errors.is_empty() { Vec::from(call.last.clone()) } else { errors };
            for line in &last {
                self.line(screen, Style::Dim, &format!("    | {}", one_line(line)));
            }
        }
        // A command may go on without an answer of the network, and end well.
        if ok && let Some((_, refused)) = summary.split_once("; the network door refused ") {
            self.line(screen, Style::Yellow, &format!("    the network door refused {}", one_line(refused)));
        }
        if ok && let Some(diff) = diff_of(&call.tool, text) {
            let rows = diff_lines(self.printer, diff, screen.cells());
            rows.iter().take(DIFF_LINES_MAX).for_each(|row| screen.line(row));
            if rows.len() > DIFF_LINES_MAX {
                let all = if self.summary.is_chat { "/diff" } else { "`bailey sessions diff`" };
                let more = rows.len() - DIFF_LINES_MAX;
                self.line(screen, Style::Dim, &format!("    … {more} more lines: {all} shows all"));
            }
        }
        let refused = matches!(call.verdict, Some(Verdict::Denied | Verdict::Asked));
        let Call { tool, target, is_command, .. } = call;
        if is_shown {
            return;
        }
        self.summary.done(FinishedCall { tool, target, is_command, ok, end: why, refused });
    }

    /// Says which changes wait, unless that was said before.
    fn changed(&mut self, screen: &mut Screen<'_>, files: u32, counts: &[PathCount]) {
        let waiting = self.summary.waiting().unwrap_or_default();
        let named = counts.iter().take(CHANGED_MAX).map(|count| match (count.more, count.less) {
            (0, 0) => count.path.clone(),
            (more, less) => format!("{} +{more} −{less}", count.path),
        });
        let more = usize::try_from(files).unwrap_or(usize::MAX).saturating_sub(CHANGED_MAX);
        let more = (more > 0).then(|| format!("and {more} more"));
        let named: Vec<String> = named.chain(more).collect();
        let files = if named.is_empty() { String::new() } else { format!("  ({})", named.join(", ")) };
        let text = format!("  {waiting}{files}");
        if text != self.told && !waiting.is_empty() {
            self.line(screen, Style::Yellow, &text);
        }
        self.told = text;
    }

    /// Draws the end of the earlier conversation.
    fn recalled(&mut self, screen: &mut Screen<'_>, lines: &[RecalledLine], left_out: u32) {
        if left_out > 0 {
            let text = format!("  … {left_out} earlier lines: `bailey sessions show` has all of them");
            self.line(screen, Style::Dim, &text);
        }
        for line in lines {
            match line {
                RecalledLine::Person { text } => {
                    for (at, line) in text.lines().enumerate() {
                        let mark = if at == 0 { "› " } else { "  " };
                        self.line(screen, Style::Bold, &format!("{mark}{line}"));
                    }
                }
                RecalledLine::Model { text } => {
                    self.text(screen, text);
                    self.end_text(screen);
                }
                RecalledLine::Call { text, ok } => {
                    let mark = if *ok { "✓" } else { "!" };
                    self.line(screen, Style::Dim, &format!("  {mark} {}", one_line(text)));
                }
            }
        }
        self.line(screen, Style::Dim, "  ─── the session goes on here ───");
    }

    fn ended(&mut self, screen: &mut Screen<'_>, reason: &str, error: Option<&str>, took_ms: Option<u64>) {
        self.waiting = None;
        self.calls.clear();
        self.end_text(screen);
        match reason {
            "limit" | "budget" | "stuck" => {
                let how = match self.summary.session() {
                    Some(session) if !self.summary.is_chat => format!("bailey sessions resume {session}"),
                    _ => "say something".into(),
                };
                let text = match reason {
                    "limit" => format!("paused at the limit of tool calls; to continue: {how}"),
                    "stuck" => {
                        format!("paused, because the model repeats a call that fails; to continue: {how}")
                    }
                    _ => format!(
                        "paused, because the budget is used up (`bailey budget` shows the limits); to \
                         continue when there is more: {how}"
                    ),
                };
                self.line(screen, Style::Yellow, &text);
            }
            "cancelled" => self.line(screen, Style::Yellow, "cancelled"),
            "answered" if self.summary.is_chat => {
                let took = took_ms.map_or_else(|| self.summary.turn_took(), duration);
                let text = format!("  done in {took}");
                self.line(screen, Style::Dim, &text);
            }
            _ => {}
        }
        if let Some(error) = error.filter(|_| self.summary.is_chat) {
            self.line(screen, Style::Red, &format!("error: {error}"));
        }
    }
}

/// The last lines that a failed command wrote to its standard error, from the text that the model sees.
fn last_errors(text: &str) -> Vec<String> {
    let Some((_, errors)) = text.rsplit_once("--- stderr ---\n") else { return Vec::new() };
    // Remarks of Bailey's own follow, each in brackets.
    let lines: Vec<&str> = errors.lines().filter(|line| !line.trim().is_empty()).collect();
    let end = lines.iter().rposition(|line| !line.starts_with('(')).map_or(0, |at| at + 1);
    let own = lines.get(..end).unwrap_or_default();
    let last = own.iter().skip(own.len().saturating_sub(LAST_LINES_MAX));
    last.map(|line| line.get(..line.floor_char_boundary(LAST_BYTES_MAX)).unwrap_or_default().to_owned())
        .collect()
}

/// The Diff Card of an edit, which the model and the user both see.
fn diff_of<'a>(tool: &str, text: &'a str) -> Option<&'a str> {
    let edits = matches!(tool, "fs.edit" | "fs.write" | "fs.patch");
    let start = edits.then(|| text.find("--- "))??;
    text.get(start..)
}

/// The last digits of a session's ID, which are random; its first digits are the time.
pub fn short(session: &SessionId) -> String {
    let name = session.to_string();
    name.get(name.len() - 8..).unwrap_or(&name).to_owned()
}

/// A line of the model's text, behind the bar.
pub fn barred(printer: &Printer, line: &str) -> String {
    format!("{}{}", printer.paint(Style::Cyan, BAR), printer.paint(Style::Plain, line))
}

/// `1 packet`, `2 packets`.
pub fn packets(count: u64) -> String {
    if count == 1 { "1 packet".into() } else { format!("{count} packets") }
}

fn seconds(since: Instant) -> String {
    format!("{} s", since.elapsed().as_secs())
}

/// `120 ms`, `1.2 s`, `3 min 20 s`.
pub(super) fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..120_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::{Drawing, WAITING_CELLS_MAX};
    use crate::{print::Color, print::Printer};
    use bailey_protocol::Verdict;

    #[test]
    fn what_a_merge_names_is_not_drawn_again_and_again() {
        let printer = Printer::new(false, Color::Never);
        let mut drawing = Drawing::new(&printer, false);
        let target = format!("apply {}", "src/one.rs ".repeat(100_000));
        drawing.decided(None, "merge", &target, Verdict::Allowed, &[]);
        let (what, _) = drawing.waiting.expect("it waits for the merge");
        assert!(what.starts_with("apply src/one.rs") && what.chars().count() <= WAITING_CELLS_MAX);
    }
}
