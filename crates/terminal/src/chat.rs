//! The conversation's side of the front end: the message that the user writes, the slash commands, and the
//! messages that wait until the model sees them.
//!
//! The editor is Bailey's own: a few keys and a string. It must do things that no library's blocking call
//! does: leave the keyboard to a card in the middle of a message, let an unfinished line of the model stand
//! above it, and stop at any moment.

mod command;
mod complete;
mod input;
mod pins;

pub(super) use input::{InputEvent, came};

use super::{
    Front,
    history::History,
    keys::Key,
    line::{Line, Wish},
    message::{self, Message},
    picker::pick_without_signals,
    screen::{Live, Row},
    summary::Summary,
    terminal::{Terminal, lend},
    text::{cut, some_of, span, width},
};
use crate::print::{Printer, Style};
use anyhow::Result;
use bailey_protocol::{CallId, Happening, Inbound, Op, View};
use command::Command;
use input::Input;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// The mark before the message. Rows after the first begin with as many blanks.
const PROMPT: &str = "› ";
/// How many rows of waiting messages are shown.
const QUEUED_ROWS_MAX: usize = 3;
/// The notice for a command that has to wait.
const BUSY: &str = "  not possible while other work runs: wait for its end, or press Esc";
/// How long a first Ctrl-C counts.
const TWICE: Duration = Duration::from_secs(2);

/// Why a conversation ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leave {
    /// The user leaves.
    Quit,
    /// A new session replaces this one, in a process of its own.
    Clear,
    /// A copy of this session goes on, in a process of its own.
    Fork,
    /// The conversation is written to a file, and goes on.
    Export,
}

/// The work that the session does for this front end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Nothing,
    Turn,
    /// Another operation, such as a comparison, an apply, an undo or a pin, by its [`Op::name`].
    Op(&'static str),
}

/// A conversation.
pub struct Chat {
    input: Input,
    line: Line,
    history: History,
    /// The models that `/model` offers.
    models: Vec<String>,
    pub(super) doing: Doing,
    /// Whether the session has taken the message that began the turn.
    is_taken: bool,
    /// Messages from during the turn that the model has not seen yet.
    queued: VecDeque<Message>,
    /// Messages written while the session could not take them.
    held: VecDeque<Message>,
    /// A line about the message being written.
    hint: String,
    interrupted: Option<Instant>,
    leaving: Option<Leave>,
    model: String,
    /// The model that the user changed to.
    turned: Option<String>,
    /// The call of the owner's command that runs.
    own: Option<CallId>,
}

impl Chat {
    /// A conversation that reads the keys of a terminal, the lines of a dumb terminal, or the lines of a
    /// pipe.
    ///
    /// # Errors
    /// When the terminal cannot be set up.
    pub fn new(printer: &Printer, mut history: History, models: Vec<String>) -> Result<Self> {
        let input = Input::open(printer)?;
        let earlier = history.take();
        Ok(Self {
            input,
            line: Line::new(earlier),
            history,
            models,
            doing: Doing::Nothing,
            is_taken: false,
            queued: VecDeque::new(),
            held: VecDeque::new(),
            hint: String::new(),
            interrupted: None,
            leaving: None,
            model: String::new(),
            turned: None,
            own: None,
        })
    }

    /// The models that the user can pick, with the present one.
    fn pickable(&self) -> Vec<String> {
        let all = self.models.iter().filter(|model| !model.ends_with('/') && **model != self.model);
        let present = Some(&self.model).filter(|model| !model.is_empty());
        let others: Vec<&String> = all.collect();
        // A list of the present model alone offers nothing.
        let present = present.filter(|_| !others.is_empty());
        present.into_iter().chain(others).cloned().collect()
    }

    /// Whether the user has a message half written.
    pub(super) fn is_writing(&self) -> bool {
        !self.line.text().is_empty()
    }

    fn terminal(&self) -> Option<&Terminal> {
        match &self.input {
            Input::Keys(terminal) => Some(terminal),
            Input::Lines(_) | Input::Pipe(_) => None,
        }
    }

    /// Adds the waiting messages, the hint, the message being written and the status to the rows that may
    /// change.
    pub(super) fn draw(&self, printer: &Printer, cells: usize, summary: &Summary, live: &mut Live) {
        for message in self.queued.iter().chain(&self.held).take(QUEUED_ROWS_MAX) {
            let text = format!("  queued: {}", message.text().trim());
            let (style, text) = span(printer, Style::Yellow, &text);
            live.rows.push(Row::of(printer, &[(style, cut(&text, cells))]));
        }
        let more = (self.queued.len() + self.held.len()).saturating_sub(QUEUED_ROWS_MAX);
        if more > 0 {
            live.rows.push(Row::of(printer, &[span(printer, Style::Yellow, &format!("  and {more} more"))]));
        }
        if !self.hint.is_empty() {
            let (style, hint) = span(printer, Style::Dim, &format!("  {}", self.hint));
            live.rows.push(Row::of(printer, &[(style, cut(&hint, cells))]));
        }
        if self.leaving.is_none() {
            self.draw_message(printer, cells, live);
            live.rows.push(self.status(printer, cells, summary));
        }
    }

    /// The row below the message: the model, how full its context is, the cost, and the changes that wait.
    fn status(&self, printer: &Printer, cells: usize, summary: &Summary) -> Row {
        let keys = match self.doing {
            Doing::Nothing if !summary.is_begun() => Some("/help lists the commands"),
            Doing::Nothing => None,
            Doing::Turn | Doing::Op(_) => Some("Esc stops"),
        };
        let parts = [Some(self.model.clone()), summary.context(), summary.money(), summary.waiting()];
        let parts = parts.into_iter().flatten().chain(keys.map(str::to_owned));
        let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
        let (style, text) = span(printer, Style::Dim, &format!("  {}", parts.join(" · ")));
        Row::of(printer, &[(style, cut(&text, cells))])
    }

    fn draw_message(&self, printer: &Printer, cells: usize, live: &mut Live) {
        let indent = width(PROMPT);
        let mut rows = vec![String::new()];
        let (mut used, mut cursor) = (indent, (0, indent));
        for (at, c) in self.line.text().char_indices() {
            if at == self.line.before().len() {
                cursor = (rows.len() - 1, used);
            }
            let (_, shown) = span(printer, Style::Plain, c.encode_utf8(&mut [0; 4]));
            if c == '\n' || used + width(&shown) > cells {
                rows.push(String::new());
                used = indent;
            }
            if c != '\n'
                && let Some(row) = rows.last_mut()
            {
                used += width(&shown);
                row.push_str(&shown);
            }
        }
        if self.line.before().len() == self.line.text().len() {
            cursor = (rows.len() - 1, used);
        }
        // A message higher than the screen is shown around the cursor.
        let most = super::terminal::size().1.saturating_sub(live.rows.len() + 3).max(1);
        let first = (cursor.0 + 1).saturating_sub(most);
        live.cursor = Some((live.rows.len() + cursor.0 - first, cursor.1));
        for (at, row) in rows.into_iter().enumerate().skip(first).take(most) {
            let mark = if at == 0 { PROMPT.to_owned() } else { " ".repeat(indent) };
            live.rows.push(Row::of(printer, &[(Style::Green, mark), (Style::Plain, row)]));
        }
    }
}

impl Front<'_> {
    /// Begins a conversation.
    ///
    /// # Errors
    /// When the terminal cannot be set up.
    pub fn converse(&mut self, chat: Chat) -> Result<()> {
        if let Some(terminal) = chat.terminal() {
            terminal.keys(true)?;
            if !self.asker.is_here() {
                self.signals.listen_suspend()?;
            }
        }
        self.drawing.summary.is_chat = true;
        self.chat = Some(chat);
        // The events of the opening are shown before the user's input.
        self.take_all();
        self.prompt();
        Ok(())
    }

    /// The model that the user changed to; `None` when the user kept the first one.
    pub fn turned(&self) -> Option<&str> {
        self.chat.as_ref()?.turned.as_deref()
    }

    /// Whether a turn runs, as far as this front end knows.
    pub fn is_turn(&self) -> bool {
        self.chat.as_ref().is_some_and(|chat| chat.doing == Doing::Turn)
    }

    /// Why the conversation ended.
    pub fn left(&mut self) -> Leave {
        self.chat.as_mut().and_then(|chat| chat.leaving.take()).unwrap_or(Leave::Quit)
    }

    /// Leaves the keyboard to a card.
    pub(super) fn pause_keys(&self) {
        if let Some(terminal) = self.chat.as_ref().and_then(Chat::terminal) {
            terminal.lines();
        }
    }

    /// Takes the keyboard back and throws away the keys that were not read.
    pub(super) fn resume_keys(&self) {
        if let Some(terminal) = self.chat.as_ref().and_then(Chat::terminal) {
            terminal.keys(true).ok();
            terminal.drain();
        }
    }

    /// Handles Ctrl-Z: the shell gets the terminal back with its earlier settings.
    pub(super) fn suspend(&mut self) {
        self.screen.clear();
        let pid = rustix::process::getpid();
        lend(|| {
            rustix::process::kill_process(pid, rustix::process::Signal::STOP).ok();
        });
    }

    /// Handles Ctrl-C when nothing runs.
    pub(super) fn interrupted(&mut self) {
        let Some(chat) = &mut self.chat else { return };
        let is_twice = chat.interrupted.is_some_and(|at| at.elapsed() < TWICE);
        if chat.line.text().is_empty() && is_twice {
            return self.leave(Leave::Quit);
        }
        chat.line.clear();
        chat.interrupted = Some(Instant::now());
        chat.hint = "Ctrl-C again, or Ctrl-D, leaves".into();
    }

    pub(super) fn typed(&mut self, keys: Vec<Key>) {
        for key in message::unmarked(keys) {
            let Some(chat) = &mut self.chat else { return };
            chat.hint.clear();
            match chat.line.key(key) {
                Wish::Nothing => {}
                Wish::Submit(message) => self.submit(&message),
                Wish::Complete => self.complete(),
                Wish::Stop => self.stop(),
                Wish::Redraw => self.screen.wipe(),
                Wish::Leave => self.leave(Leave::Quit),
            }
        }
    }

    /// Handles Escape: it stops the work that runs.
    fn stop(&mut self) {
        if !self.is_idle() && !self.is_cancelled {
            self.take_back();
            self.cancel();
            self.note(Style::Yellow, "stopping");
        }
    }

    /// Asks for the queued messages that the model has not seen.
    pub(super) fn take_back(&mut self) {
        if self.chat.as_ref().is_some_and(|chat| !chat.queued.is_empty()) {
            self.send(Op::TakeBack);
        }
    }

    /// Takes one whole message or command.
    pub(super) fn submit(&mut self, message: &Message) {
        let text = message.text();
        let Some(chat) = &mut self.chat else {
            self.ops = None;
            return;
        };
        if chat.leaving.is_some() || text.trim().is_empty() {
            return self.prompt();
        }
        if chat.terminal().is_some() {
            chat.line.remember(message);
            chat.history.add(self.printer, text);
        }
        if let Some(line) = text.trim().strip_prefix('!').map(str::trim).filter(|line| !line.is_empty()) {
            self.echo(text.trim());
            match self.is_idle() {
                true => self.ask_for(Op::Run { command: line.to_owned() }),
                false => self.note(Style::Yellow, BUSY),
            }
            return self.prompt();
        }
        match command::parse(text) {
            None => self.message(message.clone()),
            Some(command) => {
                self.echo(text.trim());
                match command {
                    Ok(command) => self.command(command),
                    Err(error) => self.note(Style::Yellow, &error),
                }
            }
        }
        self.prompt();
    }

    fn message(&mut self, message: Message) {
        let Some(chat) = &mut self.chat else { return };
        match chat.doing {
            Doing::Nothing => {
                (chat.doing, chat.is_taken) = (Doing::Turn, false);
                self.show_message(message.text().trim());
                self.is_cancelled = false;
                self.say(&message);
            }
            Doing::Turn => {
                self.say(&message);
                self.queue(message);
            }
            Doing::Op(_) => {
                chat.held.push_back(message);
            }
        }
    }

    /// Sends a message, with the pictures that it names.
    fn say(&mut self, message: &Message) {
        for path in message.pasted_pictures() {
            let text = format!(
                "  `{path}` is not attached, because it came with other text at once: type it, or paste it alone"
            );
            self.note(Style::Yellow, &text);
        }
        let text = message.text().trim().to_owned();
        self.send(Op::Say(Inbound { pictures: message.pictures(), ..text.into() }));
    }

    fn queue(&mut self, message: Message) {
        if !self.screen.is_live() {
            self.note(Style::Yellow, &format!("queued: {}", message.text().trim()));
        }
        self.chat.iter_mut().for_each(|chat| chat.queued.push_back(message.clone()));
    }

    /// Shows a message at its place in the conversation.
    fn show_message(&mut self, text: &str) {
        self.drawing.summary.asked(text);
        self.echo(text);
    }

    /// Prints the user's message, because the place where it was written is free again.
    fn echo(&mut self, text: &str) {
        // A terminal that echoes typed text has already shown it.
        if matches!(self.chat.as_ref().map(|chat| &chat.input), Some(Input::Lines(_))) {
            return;
        }
        let mut mark = PROMPT;
        self.note(Style::Plain, "");
        for line in text.lines() {
            self.note(Style::Bold, &format!("{mark}{line}"));
            mark = "  ";
        }
    }

    fn command(&mut self, command: Command) {
        let Some(chat) = &mut self.chat else { return };
        let is_free = chat.doing == Doing::Nothing;
        match command {
            Command::Help => command::HELP.lines().for_each(|line| self.note(Style::Plain, line)),
            Command::Cost => {
                let spent = self.drawing.summary.spent();
                self.note(Style::Plain, &format!("  {spent}"));
            }
            Command::Model(None) if is_free && self.screen.is_live() && !chat.pickable().is_empty() => {
                self.pick_model();
            }
            Command::Model(None) => {
                let (model, models) = (chat.model.clone(), chat.models.join(", "));
                self.note(Style::Plain, &format!("  the model is {model}; /model NAME changes it: {models}"));
            }
            Command::Sessions => self.send(Op::Sessions),
            Command::Status => self.tell_status(),
            Command::Quit => self.leave(Leave::Quit),
            Command::Pin(text) => self.pin(text),
            Command::Unpin(number) => self.unpin(number.as_deref()),
            _ if !is_free => self.note(Style::Yellow, BUSY),
            Command::Clear => {
                if let Some(session) = self.drawing.summary.session() {
                    self.note(
                        Style::Dim,
                        &format!(
                            "  session {session} is kept; `bailey chat --resume {session}` continues it"
                        ),
                    );
                }
                self.leave(Leave::Clear);
            }
            Command::Fork => self.leave(Leave::Fork),
            Command::Export => self.leave(Leave::Export),
            Command::Compact => self.ask_for(Op::Compact),
            Command::Context => self.ask_for(Op::Show { view: View::Context }),
            Command::Tools => self.ask_for(Op::Show { view: View::Tools }),
            Command::Model(Some(name)) => self.ask_for(Op::Model { name }),
            Command::Diff => self.ask_for(Op::Changes),
            Command::Apply => self.ask_for(Op::Apply { shown: None }),
            Command::Undo => self.ask_for(Op::Undo),
        }
    }

    /// Lets the user pick one of the models that can be used.
    fn pick_model(&mut self) {
        let Some(chat) = &self.chat else { return };
        let (models, present) = (chat.pickable(), chat.model.clone());
        let mark = |model: &String| match *model == present {
            true => format!("{model}  (in use)"),
            false => model.clone(),
        };
        let rows: Vec<String> = models.iter().map(mark).collect();
        self.screen.clear();
        self.pause_keys();
        let printer = self.printer;
        let picking = async move {
            let title = "Which model? (/model NAME takes any other)";
            let picked = pick_without_signals(printer, title, &rows).await;
            let name = picked.and_then(|at| models.get(at).cloned());
            name.filter(|name| *name != present).map(|name| Op::Model { name })
        };
        self.answering = Some((None, Box::pin(picking)));
    }

    /// Says where the conversation stands.
    fn tell_status(&mut self) {
        let summary = &self.drawing.summary;
        let model = self.chat.as_ref().map(|chat| chat.model.clone());
        let spent = summary.spent();
        let facts = [
            ("model", model),
            ("project", Some(self.drawing.project().to_owned())),
            ("session", summary.session()),
            ("context", summary.context().map(|text| text.replace("context ", ""))),
            ("spent", Some(spent)),
            ("changes", Some(summary.waiting().unwrap_or_else(|| "none that wait".into()))),
        ];
        for (name, fact) in facts {
            if let Some(fact) = fact.filter(|fact| !fact.is_empty()) {
                self.note(Style::Plain, &format!("  {name:<9}{fact}"));
            }
        }
    }

    /// Sends the user's answer.
    pub(super) fn answer(&mut self, op: Op) {
        match op {
            // Another terminal may have begun a turn meanwhile.
            Op::Model { .. } if !self.is_idle() => self.note(Style::Yellow, BUSY),
            Op::Model { .. } => self.ask_for(op),
            op => self.send(op),
        }
    }

    fn ask_for(&mut self, op: Op) {
        let name = op.name();
        self.chat.iter_mut().for_each(|chat| chat.doing = Doing::Op(name));
        self.is_cancelled = false;
        self.send(op);
    }

    /// Ends the session. It first cancels the running work, and asks for the changes when the summary needs
    /// them.
    pub(super) fn leave(&mut self, leave: Leave) {
        let wants_changes = self.has_story(&leave) && self.ending.is_none();
        let Some(chat) = &mut self.chat else {
            self.ops = None;
            return;
        };
        if chat.leaving.is_some() {
            return;
        }
        (chat.leaving, chat.hint) = (Some(leave), String::new());
        if self.is_guest && chat.doing != Doing::Nothing {
            self.ops = None;
            return;
        }
        match chat.doing {
            Doing::Nothing if wants_changes => self.ask_for(Op::Changes),
            Doing::Nothing => self.ops = None,
            Doing::Turn | Doing::Op(_) if !self.is_cancelled => self.cancel(),
            Doing::Turn | Doing::Op(_) => {}
        }
    }

    /// Whether the session's summary is told when the session ends this way. For [`Leave::Clear`] it is told
    /// only when the user has asked something.
    pub fn has_story(&self, leave: &Leave) -> bool {
        match leave {
            Leave::Quit => true,
            Leave::Clear => self.drawing.summary.is_begun(),
            Leave::Fork | Leave::Export => false,
        }
    }

    /// Updates the conversation from an event of the session.
    pub(super) fn follow(&mut self, happening: &Happening) {
        let Some(chat) = &mut self.chat else { return };
        match happening {
            Happening::Session { model, .. } => {
                chat.model.clone_from(model);
                if chat.doing == Doing::Op("model") {
                    chat.turned = Some(model.clone());
                    self.rested();
                }
            }
            Happening::Heard { messages } => {
                for _ in 0..*messages {
                    let Some(message) = self.chat.as_mut().and_then(|chat| chat.queued.pop_front()) else {
                        break;
                    };
                    self.show_message(message.text().trim());
                }
            }
            Happening::Said { text, by: None } => self.show_message(text),
            Happening::Said { text, by: Some(by) } => self.show_message(&format!("{by}: {text}")),
            Happening::Accepted { .. } => {
                // A message that came too late for the last turn begins a turn of its own.
                let is_late = chat.doing == Doing::Nothing;
                (chat.doing, chat.is_taken) = (if is_late { Doing::Turn } else { chat.doing }, true);
                if let Some(message) = is_late.then(|| chat.queued.pop_front()).flatten() {
                    self.show_message(message.text().trim());
                }
            }
            Happening::Unsaid { texts } => {
                // The session gives back messages that the model has not seen; the user may change them.
                for text in texts {
                    let is_it = |queued: &Message| queued.text().trim() == text;
                    let place = chat.queued.iter().position(is_it);
                    if let Some(message) = place.and_then(|at| chat.queued.remove(at)) {
                        chat.line.give_back(message);
                    }
                }
            }
            Happening::Call { call, own: true, .. } if chat.doing == Doing::Op("run") => {
                chat.own = Some(call.clone());
            }
            Happening::Result { call, .. } if chat.own.as_ref() == Some(call) => {
                chat.own = None;
                self.rested();
            }
            Happening::Found { like, paths } => chat.found(like, paths),
            Happening::Shown { lines } => {
                lines.iter().for_each(|line| self.note(Style::Plain, &format!("  {line}")));
                self.rested();
            }
            Happening::GoingOn => (chat.doing, chat.is_taken) = (Doing::Turn, true),
            Happening::End { .. } => self.rested(),
            Happening::Diff { .. } if chat.doing == Doing::Op("apply") => {}
            Happening::Diff { diff, commits, conflicts, stays, ignored, .. } => {
                if chat.leaving.is_none() {
                    if !diff.is_empty() || commits.is_empty() {
                        self.show_diff(diff);
                    }
                    conflicts.iter().for_each(|line| self.note(Style::Yellow, &format!("  {line}")));
                    stays.iter().for_each(|line| {
                        self.note(Style::Yellow, &format!("  stays in the session: {line}"))
                    });
                    commits.iter().for_each(|line| self.note(Style::Plain, &format!("  {line}")));
                    if !ignored.is_empty() {
                        let text =
                            format!("  stays in the session, because git ignores it: {}", some_of(ignored));
                        self.note(Style::Dim, &text);
                    }
                }
                self.rested();
            }
            Happening::Merged { direction, files, conflicts, commits, stays } => {
                let what = match direction.as_str() {
                    "undo" => "undone",
                    "discard" => "thrown away",
                    _ => "applied",
                };
                if !files.is_empty() || commits.is_empty() {
                    self.note(Style::Green, &format!("  {what}: {}", some_of(files)));
                }
                commits.iter().for_each(|line| self.note(Style::Green, &format!("  {what}: {line}")));
                conflicts
                    .iter()
                    .for_each(|kept| self.note(Style::Yellow, &format!("  kept as it is: {kept}")));
                stays
                    .iter()
                    .for_each(|line| self.note(Style::Yellow, &format!("  stays in the session: {line}")));
                self.rested();
            }
            Happening::Failed { op, error } if op == "say" => {
                let is_begun = chat.doing == Doing::Turn && chat.is_taken;
                self.note(Style::Yellow, &format!("  your message was not accepted: {error}"));
                if !is_begun {
                    self.rested();
                }
            }
            // The drawing has shown this failure, and the question stands again.
            Happening::Failed { op, .. } if op == "answer" => {}
            Happening::Failed { op, error } => {
                if chat.leaving.is_none() {
                    self.note(
                        Style::Yellow,
                        &format!("  /{op}: {error}", op = if op == "changes" { "diff" } else { op }),
                    );
                }
                if self.chat.as_ref().is_some_and(|chat| chat.doing != Doing::Turn) {
                    self.rested();
                }
            }
            Happening::Pinned { .. } if matches!(chat.doing, Doing::Op("pin" | "unpin")) => self.rested(),
            Happening::Sessions { sessions } => {
                for session in sessions {
                    let name = super::short(&session.session);
                    let updated = session.updated.get(..16).unwrap_or_default().replace('T', " ");
                    self.note(
                        Style::Plain,
                        &format!("  {name}  {updated} UTC  {}  {}", session.workspace, session.title),
                    );
                }
                self.prompt();
            }
            _ => {}
        }
    }

    fn show_diff(&mut self, diff: &str) {
        if diff.is_empty() {
            return self.note(Style::Plain, "  this session has no changes");
        }
        self.drawing.end_text(&mut self.screen);
        for line in super::diff_lines(self.printer, diff, self.screen.cells()) {
            self.screen.line(&line);
        }
        let counts = self.drawing.summary.changes(self.printer);
        counts.iter().for_each(|count| self.note(Style::Plain, &format!("  {count}")));
    }

    /// Handles the end of the running work.
    fn rested(&mut self) {
        let Some(chat) = &mut self.chat else { return };
        let was_op = matches!(chat.doing, Doing::Op("changes"));
        chat.doing = Doing::Nothing;
        self.is_cancelled = false;
        if let Some(leave) = chat.leaving.clone() {
            if was_op || !self.has_story(&leave) || self.ending.is_some() {
                self.ops = None;
            } else {
                self.ask_for(Op::Changes);
            }
            return;
        }
        if let Some(message) = chat.held.pop_front() {
            return self.message(message);
        }
        self.prompt();
    }

    /// Where rows cannot be redrawn, prints a mark that says that a line is expected.
    fn prompt(&mut self) {
        let Some(chat) = &self.chat else { return };
        if matches!(chat.input, Input::Lines(_)) && chat.doing == Doing::Nothing && chat.leaving.is_none() {
            self.screen.clear();
            self.printer.part("> ");
        }
    }
}
