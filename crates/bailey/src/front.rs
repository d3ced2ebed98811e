//! The terminal: draws events, asks cards, and turns Ctrl-C into a cancellation.

mod ask;
mod draw;

pub(crate) use ask::{Asker, confirm, diff_lines};
pub(crate) use draw::{packets, short};

use crate::print::Printer;
use bailey_protocol::{Answer, Event, Happening, Op};
use draw::Drawing;
use std::{future::Future, time::Duration};
use tokio::sync::mpsc;

/// How often the line of what runs is drawn again.
const TICK: Duration = Duration::from_millis(250);

/// One front end on a terminal, a pipe, or for a script.
pub(crate) struct Front<'a> {
    pub(crate) printer: &'a Printer,
    pub(crate) events: mpsc::Receiver<Event>,
    pub(crate) ops: mpsc::Sender<Op>,
    pub(crate) asker: Asker,
    pub(crate) verbose: bool,
}

impl Front<'_> {
    /// Drives `work` to its end, drawing what happens meanwhile. The first Ctrl-C cancels the turn, a second one
    /// ends the program, which takes everything inside the walls with it.
    pub(crate) async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut drawing = Drawing::new(self.printer, self.verbose);
        let mut tick = tokio::time::interval(TICK);
        let mut interrupts = 0;
        tokio::pin!(work);
        let done = loop {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => self.take(&mut drawing, event).await,
                done = &mut work => break done,
                _ = tokio::signal::ctrl_c() => {
                    interrupts += 1;
                    if interrupts > 1 {
                        std::process::exit(crate::exit::CANCELLED.into());
                    }
                    self.printer.note("cancelling (Ctrl-C again to leave at once)");
                    self.ops.send(Op::Cancel).await.ok();
                }
                _ = tick.tick() => drawing.tick(),
            }
        };
        while let Ok(event) = self.events.try_recv() {
            self.take(&mut drawing, event).await;
        }
        drawing.end();
        done
    }

    async fn take(&mut self, drawing: &mut Drawing<'_>, event: Event) {
        if self.printer.is_json() {
            self.printer.json(&event);
        } else {
            drawing.draw(&event.happening);
        }
        if let Happening::Ask { id, card, .. } = event.happening {
            let (answer, why) = self.asker.ask(self.printer, &card).await;
            // The reason of a yes is the yes.
            let why = if answer == Answer::No { why } else { String::new() };
            self.ops.send(Op::Answer { id, answer, why }).await.ok();
        }
    }
}
