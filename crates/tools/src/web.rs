//! What the two tools for the web share: what a request may be, and what the model is told of an answer.

use bailey_kernel::Conclusion;
use bailey_protocol::{Outcome, Report, Status};

/// The most characters of a page that one answer shows.
pub(crate) const SHOWN_CHARS: usize = 40_000;

/// What is told of an answer, from this character of its text on.
pub(crate) fn conclude(url: &str, outcome: &Outcome, from: usize) -> Conclusion {
    let Report::Page(page) = &outcome.report else {
        let why = match &outcome.status {
            Status::Failed { reason } => reason.clone(),
            _ => "it was cut off".into(),
        };
        return Conclusion { ok: false, summary: why.clone(), text: format!("{url}: {why}") };
    };
    let media = if page.media.is_empty() { "unnamed" } else { &page.media };
    let summary = format!("{}, {media}, {} bytes", page.status, page.bytes);
    let mut lines = vec![format!("{url}: {summary}")];
    if let Some(place) = &page.location {
        lines.push(format!("It leads on to {place}: fetch that where you want it, it is judged by itself."));
    }
    match &page.text {
        Some(text) => {
            let total = text.chars().count();
            let shown: String = text.chars().skip(from).take(SHOWN_CHARS).collect();
            let end = from.saturating_add(shown.chars().count());
            if from > 0 || end < total {
                lines.push(format!("(characters {from} to {end} of {total}; `from` shows others)"));
            }
            if page.cut {
                lines.push("(there was more than is taken of one page)".into());
            }
            lines.push(shown);
        }
        None if page.bytes > 0 => lines.push(
            "It is no text. To keep it, fetch it by command.run with `network` into a file of the workspace."
                .into(),
        ),
        None => {}
    }
    Conclusion { ok: (200..300).contains(&page.status), summary, text: lines.join("\n") }
}

/// Whether this is an address that can be asked about at all.
pub(crate) fn check(url: &str) -> Result<(), String> {
    if url.starts_with("https://") || url.starts_with("http://") {
        return Ok(());
    }
    Err(format!("`{url}` is no absolute `https://` or `http://` URL"))
}
