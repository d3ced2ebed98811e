//! The terminal: draws events, asks questions, and turns Ctrl-C into a cancellation.

mod ask;
mod draw;
mod spent;

pub(crate) use ask::{Asker, diff_lines, one_line};
pub(crate) use draw::{barred, packets, short};
pub(crate) use spent::Spent;

use crate::print::Printer;
use anyhow::{Context as _, Result};
use bailey_protocol::{Answer, ApprovalId, Card, Event, Happening, Op};
use draw::Drawing;
use std::{collections::VecDeque, future::Future, pin::Pin, time::Duration};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};

/// How often the line of what runs is drawn again.
const TICK: Duration = Duration::from_millis(250);

/// An answer on its way.
type Answering<'a> = Pin<Box<dyn Future<Output = (ApprovalId, Answer, String)> + 'a>>;

/// One front end on a terminal, a pipe, or for a script. It owns what is read from the person: answers and Ctrl-C.
pub(crate) struct Front<'a> {
    pub(crate) printer: &'a Printer,
    pub(crate) asker: Asker,
    events: mpsc::Receiver<Event>,
    ops: mpsc::Sender<Op>,
    verbose: bool,
    interrupts: Signal,
}

impl<'a> Front<'a> {
    pub(crate) fn new(
        printer: &'a Printer,
        events: mpsc::Receiver<Event>,
        ops: mpsc::Sender<Op>,
        asker: Asker,
        verbose: bool,
    ) -> Result<Self> {
        let interrupts = signal(SignalKind::interrupt()).context("Ctrl-C cannot be heard")?;
        Ok(Self { printer, asker, events, ops, verbose, interrupts })
    }

    /// Drives `work` to its end, drawing what happens meanwhile and asking what is asked, one question at a time. The
    /// first Ctrl-C cancels the turn, also while a question is open; a second one ends the program, which takes
    /// everything inside the walls with it.
    pub(crate) async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut drawing = Drawing::new(self.printer, self.verbose);
        let mut tick = tokio::time::interval(TICK);
        let mut asked: VecDeque<(ApprovalId, Card)> = VecDeque::new();
        let mut answering: Option<Answering<'a>> = None;
        let mut is_cancelled = false;
        tokio::pin!(work);
        let done = loop {
            if answering.is_none() && !is_cancelled {
                answering = asked.pop_front().map(|(id, card)| self.ask(id, card));
            }
            tokio::select! {
                biased;
                _ = self.interrupts.recv() => {
                    if is_cancelled {
                        std::process::exit(crate::exit::CANCELLED.into());
                    }
                    is_cancelled = true;
                    answering = None;
                    self.printer.note("\ncancelling (Ctrl-C again to leave at once)");
                    self.ops.send(Op::Cancel).await.ok();
                }
                (id, answer, why) = answered(&mut answering) => {
                    answering = None;
                    self.ops.send(Op::Answer { id, answer, why }).await.ok();
                }
                // What happens while a question stands on the screen is drawn after it.
                Some(event) = self.events.recv(), if answering.is_none() => {
                    asked.extend(self.take(&mut drawing, event));
                }
                done = &mut work => break done,
                _ = tick.tick(), if answering.is_none() => drawing.tick(),
            }
        };
        while let Ok(event) = self.events.try_recv() {
            self.take(&mut drawing, event);
        }
        drawing.end();
        done
    }

    /// Asks a plain yes-or-no question; Ctrl-C is a no.
    pub(crate) async fn confirm(&mut self, question: &str) -> bool {
        tokio::select! {
            yes = ask::confirm(question.to_owned()) => yes,
            _ = self.interrupts.recv() => false,
        }
    }

    fn ask(&self, id: ApprovalId, card: Card) -> Answering<'a> {
        let (asker, printer) = (self.asker, self.printer);
        Box::pin(async move {
            let (answer, why) = asker.ask(printer, &card).await;
            // The reason of a yes is the yes.
            let why = if answer == Answer::No { why } else { String::new() };
            (id, answer, why)
        })
    }

    /// Shows an event, and hands a question back.
    fn take(&self, drawing: &mut Drawing<'_>, event: Event) -> Option<(ApprovalId, Card)> {
        if self.printer.is_json() {
            self.printer.json(&event);
        } else {
            drawing.draw(&event.happening);
        }
        match event.happening {
            Happening::Ask { id, card, .. } => Some((id, card)),
            _ => None,
        }
    }
}

/// The answer that is on its way; never where there is none.
async fn answered(answering: &mut Option<Answering<'_>>) -> (ApprovalId, Answer, String) {
    match answering {
        Some(answering) => answering.await,
        None => std::future::pending().await,
    }
}
