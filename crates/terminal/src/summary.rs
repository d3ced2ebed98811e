//! The summary at the end, on one screen: the requests, the calls, the refusals, the changes, the cost, and
//! the way back.

use super::{
    card::one_line,
    draw::{duration, short},
    short_question,
    spent::Spent,
    text::{self, Span, cut, some_of, span},
};
use crate::print::{Printer, Style};
use bailey_protocol::{ApprovalId, ContextSize, Happening, PathCount, SessionId};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::{Duration, Instant},
};

/// How many lines one part has. Further lines are only counted.
const LINES_MAX: usize = 4;
/// The same for the part `asked`. With this limit all parts fit into 23 rows, with a shell's prompt below
/// them.
const ASKED_LINES_MAX: usize = 2;
/// The widest line, in cells.
const CELLS_MAX: usize = 100;

/// A finished call.
#[derive(Debug)]
pub(super) struct FinishedCall {
    pub(super) tool: String,
    pub(super) target: String,
    pub(super) is_command: bool,
    pub(super) ok: bool,
    /// How the call ended, or why it was refused, in one line.
    pub(super) end: String,
    pub(super) refused: bool,
}

/// One file that differs from the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Changed {
    path: String,
    more: usize,
    less: usize,
    /// A description of the file now, when it is more than lines of text.
    now: Option<String>,
}

impl Changed {
    fn new(path: &str) -> Self {
        Self { path: path.to_owned(), more: 0, less: 0, now: None }
    }

    /// The text beside the file's name, in colours.
    fn spans(&self, printer: &Printer) -> Vec<Span> {
        match &self.now {
            Some(now) if self.more + self.less == 0 => vec![span(printer, Style::Dim, &format!("  {now}"))],
            None if self.more + self.less == 0 => Vec::new(),
            _ => vec![(Style::Green, format!("  +{}", self.more)), (Style::Red, format!(" −{}", self.less))],
        }
    }
}

/// How much is known about the session's changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Compared {
    Now,
    /// There was nothing to compare.
    NoLayer,
    /// A call was done since the comparison.
    Earlier,
    /// The comparison could not be done.
    Never,
}

/// The summary that is told at the end. It is made only from events.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// Whether the user talks turn after turn.
    pub(super) is_chat: bool,
    session: Option<SessionId>,
    asked: Vec<String>,
    calls: BTreeMap<String, usize>,
    commands: Vec<(String, String, bool)>,
    refused: Vec<(String, String)>,
    /// The changed files that are in the session and not in the project.
    changed: Vec<Changed>,
    compared: Compared,
    /// The changed files that git ignores.
    ignored: Vec<String>,
    /// The changed files that are in the project now.
    applied: Vec<Changed>,
    /// Commits that the project lacked, one line for each branch: how an apply would handle them, or how it
    /// handled them.
    commits: Vec<String>,
    /// Whether an apply would still move some commits.
    is_committed: bool,
    /// Whether the last turn pauses: at its limit of tool calls, at its budget, or because the model is
    /// stuck.
    is_paused: bool,
    /// The questions that wait for an answer.
    questions: Vec<ApprovalId>,
    spent: Spent,
    /// How full the context is.
    context: Option<ContextSize>,
    /// How many changed files are not in the project, and how many branches.
    waiting: Option<(u32, u32)>,
    #[serde(skip, default = "Instant::now")]
    since: Instant,
    #[serde(skip, default = "Instant::now")]
    turn: Instant,
    is_in_turn: bool,
    /// Whether a turn was cut off; the events before that were told elsewhere.
    is_cut_off: bool,
}

impl Default for Summary {
    fn default() -> Self {
        Self {
            is_chat: false,
            session: None,
            asked: Vec::new(),
            calls: BTreeMap::new(),
            commands: Vec::new(),
            refused: Vec::new(),
            changed: Vec::new(),
            compared: Compared::Now,
            ignored: Vec::new(),
            applied: Vec::new(),
            commits: Vec::new(),
            is_committed: false,
            is_paused: false,
            questions: Vec::new(),
            spent: Spent::default(),
            context: None,
            waiting: None,
            since: Instant::now(),
            turn: Instant::now(),
            is_in_turn: false,
            is_cut_off: false,
        }
    }
}

impl Summary {
    /// Adds a message of the user.
    pub(super) fn asked(&mut self, message: &str) {
        self.asked.push(message.to_owned());
        // A message that came during a turn is a part of the turn.
        if !std::mem::replace(&mut self.is_in_turn, true) {
            self.turn = Instant::now();
        }
    }

    /// Sets the session, because no event here tells that it was opened.
    pub(super) fn is_of(&mut self, session: SessionId) {
        self.session = Some(session);
    }

    /// The time since it began.
    pub(super) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Sets the time since it began, because another process tells it.
    pub(super) fn began(&mut self, ago: Duration) {
        self.since = Instant::now().checked_sub(ago).unwrap_or(self.since);
    }

    /// Whether there is something to tell.
    pub(super) fn is_begun(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Whether the session did anything, or something waits for the user.
    pub(super) fn has_story(&self) -> bool {
        let is_worked = !(self.calls.is_empty() && self.refused.is_empty() && self.applied.is_empty());
        let waits = self.is_paused || !self.questions.is_empty() || self.waiting().is_some();
        self.is_begun() || is_worked || waits
    }

    /// The time since the turn began.
    pub(super) fn turn_took(&self) -> String {
        took(self.turn)
    }

    /// The session's short name.
    pub(super) fn session(&self) -> Option<String> {
        self.session.as_ref().map(short)
    }

    /// Notes that the changes could not be found out.
    pub(super) fn not_compared(&mut self) {
        self.compared = Compared::Never;
    }

    /// Notes that the changes were made in the project itself.
    pub(super) fn has_no_layer(&mut self) {
        self.compared = Compared::NoLayer;
    }

    /// Adds an event to the summary.
    pub(super) fn take(&mut self, happening: &Happening) {
        match happening {
            Happening::Session { session, .. } => self.session = Some(*session),
            Happening::GoingOn => self.is_cut_off = true,
            Happening::Ask { id, .. } => self.questions.push(*id),
            Happening::Answered { id, .. } => self.questions.retain(|asked| asked != id),
            Happening::Usage { usage, cost, context } => {
                self.spent.add(usage, cost.as_ref());
                self.context = context.or(self.context);
            }
            Happening::Changed { files, branches, .. } => self.waiting = Some((*files, *branches)),
            Happening::Diff { .. } if self.compared == Compared::NoLayer => {}
            Happening::Diff { files, counts, commits, ignored, .. } => {
                (self.changed, self.compared) = (counted(files, counts), Compared::Now);
                self.ignored.clone_from(ignored);
                // The commits of a branch are indented below it.
                let branches = commits.iter().filter(|line| !line.starts_with(' '));
                (self.commits, self.is_committed) = (branches.cloned().collect(), !commits.is_empty());
            }
            Happening::End { reason, .. } => {
                (self.is_paused, self.is_in_turn) =
                    (matches!(reason.as_str(), "limit" | "budget" | "stuck"), false);
            }
            Happening::Merged { direction, files, commits, .. } => {
                // The session tells the rest a moment later.
                self.waiting = self.waiting.filter(|_| direction != "apply");
                self.merged(direction, files);
                if !commits.is_empty() {
                    (self.commits, self.is_committed) = (commits.clone(), direction == "undo");
                }
            }
            _ => {}
        }
    }

    /// Notes the files that moved to the project, or back.
    fn merged(&mut self, direction: &str, files: &[String]) {
        let paths: HashSet<&str> = files.iter().map(String::as_str).collect();
        let is_moved = |file: &Changed| paths.contains(file.path.as_str());
        self.applied.retain(|file| !is_moved(file));
        if direction == "apply" {
            let moved: Vec<Changed> = self.changed.extract_if(.., |file| is_moved(file)).collect();
            let told: HashSet<&str> = moved.iter().map(|file| file.path.as_str()).collect();
            let new = files.iter().filter(|path| !told.contains(path.as_str()));
            self.applied.extend(new.map(|path| Changed::new(path)));
            self.applied.extend(moved);
        }
    }

    pub(super) fn done(&mut self, done: FinishedCall) {
        let FinishedCall { tool, target, is_command, ok, end, refused } = done;
        if refused {
            self.refused.push((format!("{tool} {target}"), end));
            return;
        }
        if self.compared != Compared::NoLayer {
            self.compared = Compared::Earlier;
        }
        *self.calls.entry(tool).or_default() += 1;
        if is_command {
            // The text after the first `;` is only for a failed command. A command in the background has no
            // end yet.
            let end = if ok { end.split(';').next().unwrap_or_default().to_owned() } else { end };
            self.commands.push((target, end, ok));
        }
    }

    /// The files that differ, with the numbers of added and removed lines.
    pub(super) fn changes(&self, printer: &Printer) -> Vec<String> {
        let counts =
            |file: &Changed| file.spans(printer).into_iter().map(|(_, text)| text).collect::<String>();
        self.changed.iter().map(|file| format!("{}{}", file.path, counts(file))).collect()
    }

    /// The tokens and the money that were spent.
    pub(super) fn spent(&self) -> String {
        self.spent.to_string()
    }

    /// How full the context is, in short.
    pub(super) fn context(&self) -> Option<String> {
        let ContextSize { tokens, window } = self.context?;
        Some(match window {
            Some(window) if window > 0 => {
                format!("context {}% of {}", tokens.saturating_mul(100) / window, thousands(window))
            }
            _ => format!("context {}", thousands(tokens)),
        })
    }

    /// The money that was spent, in short.
    pub(super) fn money(&self) -> Option<String> {
        self.spent.money()
    }

    /// The changes that wait, in short; `None` when there are none.
    pub(super) fn waiting(&self) -> Option<String> {
        match self.waiting? {
            (0, 0) => None,
            (0, 1) => Some("1 branch with new commits: /diff /apply".into()),
            (0, branches) => Some(format!("{branches} branches with new commits: /diff /apply")),
            (1, _) => Some("1 file changed: /diff /apply".into()),
            (files, _) => Some(format!("{files} files changed: /diff /apply")),
        }
    }

    /// The summary as painted lines.
    pub(crate) fn lines(&self, printer: &Printer, cells: usize) -> Vec<String> {
        let cells = cells.min(CELLS_MAX);
        let mut page = Lines { printer, cells, lines: vec![String::new()] };
        page.rule();
        let asked: Vec<Vec<Span>> = self.asked.iter().map(|text| page.plain(&one_line(text))).collect();
        page.part("asked", ASKED_LINES_MAX, asked);
        page.part("done", LINES_MAX, self.deeds(&page));
        let refused = self.refused.iter().map(|(what, why)| page.two(Style::Plain, what, why)).collect();
        page.part("refused", LINES_MAX, refused);
        page.part("changed", LINES_MAX, self.files(&page));
        let commits = self.commits.iter().map(|line| page.plain(&one_line(line))).collect();
        page.part("commits", LINES_MAX, commits);
        let since = if self.is_cut_off { "since the interruption: " } else { "" };
        let spent = page.plain(&format!("{since}{} · {}", self.spent(), took(self.since)));
        page.part("spent", LINES_MAX, vec![spent]);
        page.part("next", LINES_MAX, self.next(&page));
        page.lines
    }

    fn deeds(&self, page: &Lines<'_>) -> Vec<Vec<Span>> {
        let kinds: Vec<String> = self.calls.iter().map(|(tool, count)| format!("{count} {tool}")).collect();
        let cut_off = page.dim("earlier work is not shown here: see `bailey sessions show`");
        if kinds.is_empty() {
            return vec![if self.is_cut_off { cut_off } else { page.plain("no tool was called") }];
        }
        // The last commands tell the outcome.
        let most = LINES_MAX - 1 - usize::from(self.is_cut_off);
        let early = self.commands.len().saturating_sub(most);
        let mut lines = vec![page.plain(&kinds.join(", "))];
        lines.extend(self.commands.iter().skip(early).map(|(command, end, ok)| {
            let mark = if *ok { (Style::Green, "✓ ".to_owned()) } else { (Style::Yellow, "! ".to_owned()) };
            std::iter::once(mark).chain(page.two(Style::Plain, command, end)).collect()
        }));
        if early > 0 {
            let before = if early == 1 { "1 command".into() } else { format!("{early} commands") };
            lines.insert(1, page.dim(&format!("{before} before these")));
        }
        if self.is_cut_off {
            lines.insert(1, cut_off);
        }
        lines
    }

    fn files(&self, page: &Lines<'_>) -> Vec<Vec<Span>> {
        let files = self.applied.iter().chain(&self.changed);
        let line = |file: &Changed| [page.plain(&file.path), file.spans(page.printer)].concat();
        let mut lines: Vec<Vec<Span>> = files.map(line).collect();
        match self.compared {
            Compared::Never => lines.push(page.plain("not known: the changes could not be compared")),
            Compared::Earlier => {
                lines.push(page.plain("not known: the changes were not compared at the end"))
            }
            Compared::NoLayer => {
                lines.push(page.plain("not known: without a sandbox the changes were made in place"));
            }
            Compared::Now if lines.is_empty() => lines.push(page.plain("nothing")),
            Compared::Now => {}
        }
        if !self.ignored.is_empty() {
            lines.push(
                page.dim(&format!(
                    "stays in the session, because git ignores it: {}",
                    some_of(&self.ignored)
                )),
            );
        }
        lines
    }

    fn next(&self, page: &Lines<'_>) -> Vec<Vec<Span>> {
        let Some(name) = self.session() else { return Vec::new() };
        let mut lines = Vec::new();
        if self.is_paused {
            let resume = format!("bailey sessions resume {name}");
            lines.push(page.command(&resume, "continues the paused turn"));
        }
        if let Some(first) = self.questions.first() {
            let waits = match self.questions.len() {
                1 => "a question waits (or show, reject)".to_owned(),
                many => format!("{many} questions wait: bailey approvals"),
            };
            lines.push(page.command(&format!("bailey approvals approve {}", short_question(*first)), &waits));
            lines.push(page.command(&format!("bailey sessions resume {name}"), "goes on after your answer"));
        }
        let mut next =
            |what: String, of_it| lines.push(page.command(&format!("bailey sessions {what}"), of_it));
        let is_applied = !self.applied.is_empty() || !(self.commits.is_empty() || self.is_committed);
        if is_applied {
            next(format!("undo {name}"), "takes the apply back");
        }
        match self.compared {
            Compared::Never => {
                next(format!("diff {name}"), "shows the changes, after the error below is fixed")
            }
            Compared::Earlier => next(format!("diff {name}"), "shows the changes"),
            Compared::Now if !self.changed.is_empty() || self.is_committed => {
                let of_it = if is_applied { "these changes were not applied" } else { "nothing was applied" };
                next(format!("diff|apply|discard {name}"), of_it);
            }
            Compared::Now if is_applied || self.is_paused || !self.questions.is_empty() => {}
            // A resumed session would work behind walls.
            Compared::NoLayer => {}
            Compared::Now => next(format!("resume {name} \"…\""), "goes on"),
        }
        lines
    }
}

struct Lines<'a> {
    printer: &'a Printer,
    cells: usize,
    lines: Vec<String>,
}

impl Lines<'_> {
    fn rule(&mut self) {
        let rule = "─".repeat(self.cells.min(72));
        self.lines.push(self.printer.paint(Style::Dim, &rule));
    }

    fn plain(&self, text: &str) -> Vec<Span> {
        vec![span(self.printer, Style::Plain, text)]
    }

    fn dim(&self, text: &str) -> Vec<Span> {
        vec![span(self.printer, Style::Dim, text)]
    }

    /// A command to type, and a dim remark on it. The remark is cut where there is not enough room.
    fn command(&self, command: &str, of_it: &str) -> Vec<Span> {
        let (_, command) = span(self.printer, Style::Bold, command);
        let (_, of_it) = span(self.printer, Style::Dim, &format!("  {of_it}"));
        let room = self.cells.saturating_sub(12 + text::width(&command));
        let of_it = if room < 8 { String::new() } else { cut(&of_it, room) };
        vec![(Style::Bold, command), (Style::Dim, of_it)]
    }

    /// An item, and a dim remark on it. The item is cut where there is not enough room.
    fn two(&self, style: Style, what: &str, of_it: &str) -> Vec<Span> {
        let (_, of_it) = span(self.printer, Style::Dim, &format!("  {}", one_line(of_it)));
        let of_it = cut(&of_it, (self.cells / 2).max(20));
        let room = self.cells.saturating_sub(12 + text::width(&of_it)).max(16);
        let (_, what) = span(self.printer, style, &one_line(what));
        vec![(style, cut(&what, room)), (Style::Dim, of_it)]
    }

    /// Adds a part with its name. Without lines it adds nothing.
    fn part(&mut self, name: &str, most: usize, lines: Vec<Vec<Span>>) {
        let most = if lines.len() > most + 1 { most } else { lines.len() };
        let more = lines.len() - most;
        for (at, line) in lines.into_iter().take(most).enumerate() {
            let head = if at == 0 { name } else { "" };
            let mut row = vec![(Style::Cyan, format!("  {head:<8}"))];
            let mut room = self.cells.saturating_sub(10);
            for (style, text) in line {
                let text = cut(&text, room);
                room = room.saturating_sub(text::width(&text));
                row.push((style, text));
            }
            self.lines.push(text::paint(self.printer, &row));
        }
        if more > 0 {
            let row = [(Style::Dim, format!("          and {more} more"))];
            self.lines.push(text::paint(self.printer, &row));
        }
    }
}

/// Each changed path with its count. The count is found by the path, not by a position in a list.
fn counted(files: &[String], counts: &[PathCount]) -> Vec<Changed> {
    let counts: HashMap<&str, &PathCount> = counts.iter().map(|count| (count.path.as_str(), count)).collect();
    let changed = files.iter().map(|path| match counts.get(path.as_str()) {
        Some(PathCount { path, more, less, now }) => {
            Changed { path: path.clone(), more: *more, less: *less, now: now.clone() }
        }
        None => Changed::new(path),
    });
    changed.collect()
}

/// `850`, `12k`, `1.2M` tokens.
fn thousands(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}k", tokens / 1_000),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens % 1_000_000 / 100_000),
    }
}

fn took(since: Instant) -> String {
    duration(u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
