//! What the two tools for the web share: what a request may be, and what the model is told of an answer.

use bailey_kernel::Conclusion;
use bailey_protocol::{Outcome, PageReport, Report, Status};

/// The most characters of a page that one answer shows.
pub(crate) const SHOWN_CHARS: usize = 40_000;

/// What is told of an answer, from this character of its text on.
pub(crate) fn conclude(url: &str, outcome: &Outcome, from: usize) -> Conclusion {
    let summary = head(outcome);
    let mut lines = vec![format!("{url}: {summary}")];
    let Report::Page(page) = &outcome.report else {
        return Conclusion { ok: false, summary, text: lines.concat() };
    };
    lines.extend(page.location.as_deref().map(|place| leads_on(url, place)));
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
        None if page.bytes > 0 => {
            let why = page.unread.as_deref().unwrap_or("it is no text");
            lines.push(format!("Not shown: {why}. To keep it, fetch it again with `save_to` of web.fetch."));
        }
        None => {}
    }
    Conclusion { ok: is_success(page), summary, text: lines.join("\n") }
}

/// What came of a request in a few words: status, type and size, or why nothing came.
pub(crate) fn head(outcome: &Outcome) -> String {
    match (&outcome.report, &outcome.status) {
        (Report::Page(page), _) => {
            let media = if page.media.is_empty() { "unnamed" } else { &page.media };
            format!("{}, {media}, {} bytes", page.status, page.bytes)
        }
        (_, Status::Failed { reason }) => reason.clone(),
        _ => "it was cut off, and may have arrived".into(),
    }
}

/// The bytes of an answer that is to be saved.
///
/// # Errors
/// Why there is nothing to save.
pub(crate) fn body<'a>(url: &str, outcome: &'a Outcome) -> Result<&'a [u8], String> {
    let not_saved = |why: &str| format!("{url}: {}; {why}nothing was saved", head(outcome));
    let Report::Page(page) = &outcome.report else { return Err(not_saved("")) };
    if !is_success(page) {
        let leads = page.location.as_deref().map(|place| leads_on(url, place)).unwrap_or_default();
        return Err(format!("{}. {leads}", not_saved("")).trim_end().into());
    }
    let Some(body) = &page.body else {
        return Err(not_saved("there is more of it; command.run with `network` can take it; "));
    };
    Ok(&body.0)
}

fn is_success(page: &PageReport) -> bool {
    (200..300).contains(&page.status)
}

/// Where a redirect leads, as it can be fetched (RFC 3986, 5.2, as far as servers use it).
fn leads_on(url: &str, place: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let place = match place {
        whole if whole.contains("://") => whole.to_owned(),
        host if host.starts_with("//") => format!("{scheme}:{host}"),
        top if top.starts_with('/') => format!("{scheme}://{host}{top}"),
        beside => {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{scheme}://{host}{folder}/{beside}")
        }
    };
    format!("It leads on to {place}: fetch that where you want it, it is judged by itself.")
}

/// Whether this is an address that can be asked about at all.
pub(crate) fn check(url: &str) -> Result<(), String> {
    if url.starts_with("https://") || url.starts_with("http://") {
        return Ok(());
    }
    Err(format!("`{url}` is no absolute `https://` or `http://` URL"))
}

#[cfg(test)]
mod tests {
    use super::leads_on;

    #[test]
    fn a_redirect_is_told_as_it_can_be_fetched() {
        for (place, whole) in [
            ("https://b.example/x", "https://b.example/x"),
            ("//b.example/x", "http://b.example/x"),
            ("/x?y", "http://a.example:8/x?y"),
            ("x", "http://a.example:8/one/x"),
        ] {
            let told = leads_on("http://a.example:8/one/two?three/four", place);
            assert!(told.starts_with(&format!("It leads on to {whole}: ")), "{told}");
        }
        assert!(leads_on("http://a.example", "x").starts_with("It leads on to http://a.example/x:"));
    }
}
