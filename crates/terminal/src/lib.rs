//! The terminal front end: it draws events, asks questions, takes messages, and turns Ctrl-C into a
//! cancellation. It knows a session only by its Ops and Events.
//!
//! Read [`Front::during`] first. `screen.rs` draws the rows at the end of the output that may still change;
//! `chat.rs` holds the message that the user writes there.

mod ask;
mod card;
mod chat;
mod draw;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod history;
mod keys;
mod line;
mod markdown;
mod message;
mod picker;
mod pins;
pub mod print;
mod prompt;
mod result;
mod screen;
mod signals;
mod spent;
mod summary;
mod terminal;
mod text;

pub use ask::{Answering, Asker, choice, confirm, type_phrase, type_reason};
pub use card::{diff_lines, draw as draw_card, one_line};
pub use chat::{Chat, Leave};
pub use draw::{barred, packets, short};
pub use history::History;
pub use picker::{ask_text, end_line, or_quit, pick_one, pick_without_signals};
pub use signals::{EndSignals, is_ignored};
pub use spent::Spent;
pub use terminal::{remember, restore};
pub use text::some_of;

use anyhow::Result;
use bailey_journal::RAN_OUT;
use bailey_protocol::{Answer, ApprovalId, Card, Event, Happening, Op, SessionId, exit};
use chat::{Doing, InputEvent};
use draw::Drawing;
use markdown::Markdown;
use message::Message;
use print::{Printer, Style};
use result::RunResult;
use screen::{Live, Screen};
use serde::{Deserialize, Serialize};
use signals::{Signals, TerminalSignal};
use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    time::{Duration, Instant},
};
use summary::Summary;
use tokio::sync::mpsc;

/// How often the rows that may change are drawn again.
const TICK: Duration = Duration::from_millis(250);

/// Within this time, a second request to terminate counts as the first request, which came over two ways.
const TWICE: Duration = Duration::from_secs(1);

/// How many characters of a question's ID the user sees: its first 32 bits.
const QUESTION_CHARS: usize = 8;

/// The widest text of a guide, in cells.
const MARKDOWN_CELLS_MAX: usize = 100;

/// How many events are kept while a question is on the screen. Beyond this number, the output of commands is
/// not shown.
const HELD_MAX: usize = 4096;

/// A pending answer, to a question of the session or, without an id, to one of this front end's own.
type Answered<'a> = (Option<ApprovalId>, Pin<Box<dyn Future<Output = Option<Op>> + 'a>>);

/// A turn, as one process tells it to another.
#[derive(Serialize, Deserialize)]
struct TurnTold {
    summary: Summary,
    result: RunResult,
    /// How long the turn took.
    millis: u64,
}

/// One front end: on a terminal, on a pipe, or for a script. It owns the user's input: messages, answers and
/// signals.
pub struct Front<'a> {
    /// Prints for this front end.
    pub printer: &'a Printer,
    /// Asks the user.
    pub asker: Asker,
    events: mpsc::Receiver<Event>,
    /// `None` once the front end has told the session to end.
    ops: Option<mpsc::Sender<Op>>,
    signals: Signals,
    drawing: Drawing<'a>,
    result: RunResult,
    screen: Screen<'a>,
    chat: Option<Chat>,
    /// Whether the session goes on without this front end.
    is_guest: bool,
    asked: VecDeque<(ApprovalId, Card)>,
    answering: Option<Answered<'a>>,
    is_cancelled: bool,
    /// The exit code of the signal that asked this program to end, and when it did.
    ending: Option<(u8, Instant)>,
}

impl<'a> Front<'a> {
    /// A front end that prints by `printer` and asks by `asker`.
    pub fn new(
        printer: &'a Printer,
        events: mpsc::Receiver<Event>,
        ops: mpsc::Sender<Op>,
        asker: Asker,
        verbose: bool,
    ) -> Result<Self> {
        printer.watch();
        let mut signals = Signals::listen()?;
        // A card changes the terminal's settings; a suspended front end must not leave them to the shell.
        if asker.is_here() {
            signals.listen_suspend()?;
        }
        Ok(Self {
            printer,
            asker,
            events,
            ops: Some(ops),
            signals,
            drawing: Drawing::new(printer, verbose),
            result: RunResult::default(),
            screen: Screen::new(printer),
            chat: None,
            is_guest: false,
            asked: VecDeque::new(),
            answering: None,
            is_cancelled: false,
            ending: None,
        })
    }

    /// The exit code of the signal that asked this program to end. The caller then asks nothing more and
    /// leaves.
    pub fn ending(&self) -> Option<u8> {
        self.ending.map(|(code, _)| code)
    }

    /// Drives `work` to its end. Meanwhile it draws the events and asks the questions, one question at a
    /// time. The first Ctrl-C cancels the turn, also while a question is open. A second Ctrl-C ends the
    /// program, and with it everything inside the walls.
    pub async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut tick = tokio::time::interval(TICK);
        self.is_cancelled = false;
        tokio::pin!(work);
        let mut held: VecDeque<Event> = VecDeque::new();
        let done = loop {
            while self.answering.is_none()
                && let Some(event) = held.pop_front()
            {
                self.take(event);
            }
            self.ask_next();
            self.draw();
            if let (Some(code), None) = (self.printer.closed(), self.ending) {
                self.end(code);
            }
            let is_free = self.answering.is_none();
            tokio::select! {
                biased;
                heard = self.signals.next() => self.heard(heard),
                op = answered(&mut self.answering) => {
                    self.answering = None;
                    self.is_asked_over();
                    op.into_iter().for_each(|op| self.answer(op));
                }
                came = chat::came(&mut self.chat), if is_free => self.came(came),
                // Events are always taken, so that the session never waits for this front end. Events that
                // come while a question is on the screen are drawn after the question.
                Some(event) = self.events.recv() => {
                    if is_free {
                        self.take(event);
                    } else if self.is_answered_by(&event.happening) {
                        self.answered_elsewhere(&event.happening);
                        held.push_back(event);
                    } else if held.len() < HELD_MAX || !matches!(event.happening, Happening::Output { .. }) {
                        held.push_back(event);
                    }
                }
                done = &mut work => break done,
                _ = tick.tick(), if is_free => {}
            }
        };
        if self.answering.take().is_some() {
            self.printer.line("");
            self.is_asked_over();
        }
        held.into_iter().for_each(|event| self.take(event));
        self.take_all();
        self.drawing.end_text(&mut self.screen);
        self.screen.clear();
        done
    }

    /// Asks a question and returns the line that the user types. `None` after a signal, or when the terminal
    /// is gone.
    pub async fn ask_line(&mut self, question: &str) -> Option<String> {
        let asked = ask::line(self.printer, question);
        tokio::pin!(asked);
        let heard = loop {
            tokio::select! {
                line = &mut asked => return line,
                heard = self.signals.next() => match heard {
                    TerminalSignal::Resize => {}
                    TerminalSignal::Suspend => self.suspend(),
                    heard => break heard,
                },
            }
        };
        self.printer.note("");
        self.ending = code_of(heard).map(|code| (code, Instant::now()));
        None
    }

    /// Notes the user's message in the summary.
    pub fn asked(&mut self, message: &str) {
        self.drawing.summary.asked(message);
    }

    /// Tells the summary its session, which was opened elsewhere.
    pub fn is_of(&mut self, session: SessionId) {
        self.drawing.summary.is_of(session);
        self.result.session = Some(session);
    }

    /// The turn as another process can tell it: the summary and the result.
    pub fn turn_told(&self) -> Vec<u8> {
        let (summary, result) = (self.drawing.summary.clone(), self.result.clone());
        let millis = u64::try_from(summary.elapsed().as_millis()).unwrap_or(u64::MAX);
        serde_json::to_vec(&TurnTold { summary, result, millis }).unwrap_or_default()
    }

    /// Takes a turn that another process drew and told by [`Front::turn_told`]. Bytes that tell no turn are
    /// left out.
    pub fn take_turn(&mut self, told: &[u8]) {
        let Ok(TurnTold { mut summary, result, millis }) = serde_json::from_slice(told) else { return };
        summary.began(Duration::from_millis(millis));
        self.drawing.summary = summary;
        self.result = result;
    }

    /// Ends the output of a run for scripts: prints the object that ends `--json`, or the answer alone.
    pub fn conclude(&mut self, exit: u8, error: Option<&str>) {
        error.into_iter().for_each(|error| self.result.failed(error));
        if self.printer.is_json() {
            self.printer.json(&self.result.json(exit));
        } else if self.printer.is_answer() {
            self.printer.answer(&self.result.answer);
            if let (Some(session), 1..) = (self.result.session, self.result.waiting()) {
                let (name, count) = (short(&session), self.result.waiting());
                let files = if count == 1 { "1 file is".into() } else { format!("{count} files are") };
                self.printer.note(&format!(
                    "{files} changed and not applied: bailey sessions diff|apply|discard {name}"
                ));
            }
        }
    }

    /// Makes the summary say that it does not know the changes.
    pub fn not_compared(&mut self) {
        self.drawing.summary.not_compared();
    }

    /// The session belongs to another process and goes on when this process leaves.
    pub fn is_guest(&mut self) {
        self.is_guest = true;
    }

    /// Makes the summary say that there was no layer to compare.
    pub fn has_no_layer(&mut self) {
        self.drawing.summary.has_no_layer();
    }

    /// Tells the summary, when something happened. In JSON mode it prints nothing.
    pub fn tell_story(&self) {
        if !self.printer.is_json() && self.drawing.summary.has_story() {
            let lines = self.drawing.summary.lines(self.printer, self.screen.cells());
            lines.iter().for_each(|line| self.printer.line(line));
        }
    }

    fn heard(&mut self, heard: TerminalSignal) {
        match heard {
            TerminalSignal::Resize => {}
            TerminalSignal::Suspend => self.suspend(),
            // A closed terminal tells its session and the processes that it was lent to, so the hang-up may
            // come twice.
            TerminalSignal::HangUp if self.ending.is_some() => {}
            TerminalSignal::HangUp => self.end(exit::HUNG_UP),
            // A signal to a group of processes also reaches the process that passes the signal on to this
            // one.
            TerminalSignal::Terminate if self.ending.is_some_and(|(_, since)| since.elapsed() < TWICE) => {}
            TerminalSignal::Terminate if self.ending.is_some() => quit(exit::TERMINATED),
            TerminalSignal::Terminate => self.end(exit::TERMINATED),
            TerminalSignal::Cancel if self.is_cancelled => {
                self.screen.clear();
                quit(exit::CANCELLED);
            }
            // Ctrl-C leaves a list.
            TerminalSignal::Cancel if self.answering.as_ref().is_some_and(|(id, _)| id.is_none()) => {
                self.answering = None;
                self.printer.line("");
                self.is_asked_over();
            }
            TerminalSignal::Cancel if self.is_idle() => self.interrupted(),
            TerminalSignal::Cancel => {
                self.take_back();
                self.cancel();
                self.screen.clear();
                self.printer.note("cancelling (Ctrl-C again to leave at once)");
            }
        }
    }

    /// Cancels the running work, which also settles the open questions.
    fn cancel(&mut self) {
        self.is_cancelled = true;
        self.asked.clear();
        if self.answering.take().is_some() {
            self.printer.line("");
            self.is_asked_over();
        }
        self.send(Op::Cancel);
    }

    /// Ends because of a signal, or because the output cannot be printed any more: it cancels the running
    /// work (a guest only leaves) and asks nothing more.
    fn end(&mut self, code: u8) {
        self.ending = Some((code, Instant::now()));
        if self.is_guest {
            return self.leave(Leave::Quit);
        }
        self.cancel();
        match &mut self.chat {
            Some(_) => self.leave(Leave::Quit),
            None => self.is_cancelled = true,
        }
    }

    fn ask_next(&mut self) {
        if self.answering.is_some() || self.is_cancelled {
            return;
        }
        let Some((id, card)) = self.asked.pop_front() else { return };
        self.drawing.end_text(&mut self.screen);
        self.screen.clear();
        self.pause_keys();
        let (asker, printer) = (self.asker, self.printer);
        let is_writing = self.chat.as_ref().is_some_and(Chat::is_writing);
        let answering = async move {
            let (answer, why) = asker.ask(printer, &card, is_writing).await;
            Some(Op::Answer { id, answer, why, by: None })
        };
        self.answering = Some((Some(id), Box::pin(answering)));
    }

    /// Whether the event settles the question on the screen.
    fn is_answered_by(&self, happening: &Happening) -> bool {
        let on_screen = self.answering.as_ref().and_then(|(id, _)| *id);
        matches!(happening, Happening::Answered { id, .. } if Some(*id) == on_screen)
    }

    /// Handles the question on the screen when it was answered from another terminal, or when its time ran
    /// out.
    fn answered_elsewhere(&mut self, happening: &Happening) {
        let Happening::Answered { id, answer, why } = happening else { return };
        self.answering = None;
        self.printer.line("");
        if why == RAN_OUT {
            let id = *id;
            let printer = self.printer;
            let again = async move { ask::again(printer).await.then_some(Op::AskAgain { id }) };
            self.answering = Some((Some(id), Box::pin(again)));
            return;
        }
        self.is_asked_over();
        let said = match (answer, why.as_str()) {
            (Answer::Yes | Answer::YesForSession | Answer::YesForPattern, _) => {
                "answered elsewhere: yes".to_owned()
            }
            (Answer::No, "") => "answered elsewhere: no".to_owned(),
            (Answer::No, why) => format!("no: {}", one_line(why)),
        };
        self.note(Style::Dim, &said);
    }

    /// Takes the screen and the keyboard back after a question.
    fn is_asked_over(&mut self) {
        self.screen.forget();
        self.resume_keys();
    }

    /// Never waits, because the receiver may be waiting for this loop.
    fn send(&mut self, op: Op) {
        let Some(ops) = &self.ops else { return };
        if ops.try_send(op).is_err() {
            self.note(Style::Yellow, "the session is too busy; try again");
        }
    }

    fn note(&mut self, style: Style, text: &str) {
        if !self.printer.is_json() {
            self.drawing.line(&mut self.screen, style, text);
        }
    }

    fn draw(&mut self) {
        if self.answering.is_some() || self.printer.is_json() {
            return;
        }
        let mut live = Live { rows: self.drawing.rows(&self.screen), cursor: None };
        if let Some(chat) = self.chat.as_ref().filter(|_| self.screen.is_live()) {
            chat.draw(self.printer, self.screen.cells(), &self.drawing.summary, &mut live);
        }
        self.screen.draw(live);
    }

    /// Shows all events that have arrived.
    fn take_all(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.take(event);
        }
    }

    /// Shows an event. A question is also kept, to be asked later.
    fn take(&mut self, event: Event) {
        self.result.take(&event.happening);
        if self.printer.is_json() {
            self.printer.json(&event);
        } else {
            self.drawing.draw(&mut self.screen, &event.happening);
        }
        if self.chat.is_some() {
            self.follow(&event.happening);
        }
        match event.happening {
            Happening::Ask { id, card, .. } if self.asker == Asker::Later => self.waits(id, &card),
            Happening::Ask { id, card, .. } => self.asked.push_back((id, card)),
            Happening::Answered { id, .. } => self.asked.retain(|(asked, _)| *asked != id),
            _ => {}
        }
    }

    /// Shows a question that this front end does not ask.
    fn waits(&mut self, id: ApprovalId, card: &Card) {
        let (title, id) = (one_line(&card.title), short_question(id));
        self.note(Style::Yellow, &format!("? {title}"));
        self.note(
            Style::Dim,
            &format!("  waits for an answer: bailey approvals approve {id} (or show, reject)"),
        );
    }

    /// Whether this is a conversation that waits for the user, and nothing runs.
    fn is_idle(&self) -> bool {
        self.chat.as_ref().is_some_and(|chat| chat.doing == Doing::Nothing)
    }

    fn came(&mut self, came: InputEvent) {
        match came {
            InputEvent::Keys(keys) => self.typed(keys),
            // It is not known which parts of it were pasted.
            InputEvent::Line(line) => self.submit(&Message::pasted(line)),
            InputEvent::End => self.leave(Leave::Quit),
        }
    }
}

/// Prints a text of Bailey's own that is written in Markdown: drawn on a terminal, as it is in a pipe.
pub fn print_markdown(printer: &Printer, text: &str) {
    if !printer.is_live() {
        return printer.part(text);
    }
    let cells = terminal::size().0.min(MARKDOWN_CELLS_MAX);
    Markdown::lines(printer, text, cells).iter().for_each(|line| printer.line(line));
}

/// The first digits of a question's ID, which are enough to name it.
pub fn short_question(id: ApprovalId) -> String {
    id.to_string().chars().take(QUESTION_CHARS).collect()
}

fn code_of(heard: TerminalSignal) -> Option<u8> {
    match heard {
        TerminalSignal::Cancel => Some(exit::CANCELLED),
        TerminalSignal::HangUp => Some(exit::HUNG_UP),
        TerminalSignal::Terminate => Some(exit::TERMINATED),
        TerminalSignal::Suspend | TerminalSignal::Resize => None,
    }
}

/// Waits for the pending answer. Without one, it waits forever.
async fn answered(answering: &mut Option<Answered<'_>>) -> Option<Op> {
    match answering {
        Some((_, answering)) => answering.await,
        None => std::future::pending().await,
    }
}

/// Ends the program where it stands; the warden takes everything inside the walls with it. The terminal is
/// left as it was found.
pub fn quit(code: u8) -> ! {
    restore();
    std::process::exit(code.into())
}
