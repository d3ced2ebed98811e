//! What is waited for, told on a terminal once it takes over a second.

use super::{Printer, Style, paint, size};
use bailey_secrets::neutralise;
use std::{
    future::Future,
    io::{self, IsTerminal as _},
    time::{Duration, Instant},
};

/// What takes longer is told.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is told anew.
const TICK: Duration = Duration::from_millis(250);
/// Back to the row's beginning, and erase it.
const ERASE: &str = "\r\x1b[K";

impl Printer {
    /// Waits for this. Once it takes over a second, a row of standard error says what is waited for and how long, and is gone
    /// when it has come: on a terminal only, and never for a script that reads JSON. Nothing else may be printed meanwhile.
    pub(crate) async fn waiting<T>(&self, what: impl Fn() -> String, work: impl Future<Output = T>) -> T {
        if self.json || !io::stderr().is_terminal() {
            return work.await;
        }
        let since = Instant::now();
        let mut tick = tokio::time::interval(TICK);
        let mut is_told = false;
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    if is_told && !self.is_dumb {
                        self.err.write(ERASE.as_bytes()).ok();
                    }
                    return done;
                }
                // A terminal without arts is told once.
                _ = tick.tick(), if !(is_told && self.is_dumb) => {
                    if since.elapsed() > PATIENCE {
                        self.tell(&what(), since);
                        is_told = true;
                    }
                }
            }
        }
    }

    fn tell(&self, what: &str, since: Instant) {
        let cells = size(&io::stderr()).map(|(columns, _)| columns).unwrap_or(80).saturating_sub(1);
        let (text, end) = match self.is_dumb {
            true => (format!("… {what}"), "\n"),
            false => (format!("… {what} {} s", since.elapsed().as_secs()), ""),
        };
        let text: String = neutralise(&self.redact(&text)).chars().take(cells).collect();
        let begin = if self.is_dumb { "" } else { ERASE };
        let row = format!("{begin}{}{end}", paint(self.err_color, Style::Dim, &text));
        self.err.write(row.as_bytes()).ok();
    }
}
