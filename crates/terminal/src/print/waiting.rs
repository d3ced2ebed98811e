//! Tells on a terminal that Bailey waits for some work, once the work takes over a second.

use super::{Printer, Style, paint, size};
use bailey_secrets::neutralise;
use std::{
    future::Future,
    io::{self, IsTerminal as _},
    time::{Duration, Instant},
};

/// Work that takes longer than this is told.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the row is updated.
const TICK: Duration = Duration::from_millis(250);
/// Moves back to the row's beginning and erases the row.
const ERASE: &str = "\r\x1b[K";

impl Printer {
    /// Waits for `work`. Once it takes over a second, a row on standard error names the work and says how
    /// long it has taken; the row is gone when the work is done. This happens only on a terminal, and never
    /// for a script that reads JSON. Nothing else may be printed meanwhile.
    pub async fn waiting<T>(&self, what: impl Fn() -> String, work: impl Future<Output = T>) -> T {
        if !io::stderr().is_terminal() {
            return work.await;
        }
        self.waiting_anywhere(what, work).await
    }

    /// The same for what is waited for longest: without a terminal it is told once, on a line that stays.
    pub async fn waiting_anywhere<T>(&self, what: impl Fn() -> String, work: impl Future<Output = T>) -> T {
        if self.json {
            return work.await;
        }
        let is_plain = self.is_dumb || !io::stderr().is_terminal();
        let since = Instant::now();
        let mut tick = tokio::time::interval(TICK);
        let mut is_told = false;
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    if is_told && !is_plain {
                        self.err.write(ERASE.as_bytes()).ok();
                    }
                    return done;
                }
                // A dumb terminal is told once, and so is a file.
                _ = tick.tick(), if !(is_told && is_plain) => {
                    if since.elapsed() > PATIENCE {
                        self.tell(&what(), since, is_plain);
                        is_told = true;
                    }
                }
            }
        }
    }

    fn tell(&self, what: &str, since: Instant, is_plain: bool) {
        let cells = size(&io::stderr()).map(|(columns, _)| columns).unwrap_or(80).saturating_sub(1);
        let (text, end) = match is_plain {
            true => (format!("… {what}"), "\n"),
            false => (format!("… {what} {} s", since.elapsed().as_secs()), ""),
        };
        let text: String = neutralise(&self.redact(&text)).chars().take(cells).collect();
        let begin = if is_plain { "" } else { ERASE };
        let row = format!("{begin}{}{end}", paint(self.err_color, Style::Dim, &text));
        self.err.write(row.as_bytes()).ok();
    }
}
