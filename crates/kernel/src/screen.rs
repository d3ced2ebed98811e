//! The screen: the only way of bytes from the world into a context, an event or a card. Secrets are removed,
//! control characters made visible, size bounded.

use crate::segment::Observation;
use bailey_protocol::{Action, Card, CardPart, Happening, Labels, RecalledLine, Seq, ToolCall, authority};
use bailey_secrets::{Redactor, marks, neutralise};
use std::collections::BTreeSet;

/// The most of one observation that a model sees, in bytes; what is over is cut out of its middle.
pub(crate) const OBSERVATION_BYTES_MAX: usize = 48 * 1024;

/// Whether the name of the server that a request goes to would be hidden from whoever is asked about it.
pub(crate) fn hides_host(redactor: &Redactor, action: &Action) -> bool {
    let (Action::Http(request) | Action::Fetch { request, .. }) = action else { return false };
    redactor.redact(authority(&request.url)).hits > 0
}

/// A screened text.
pub(crate) struct Screened {
    pub(crate) text: String,
    pub(crate) redacted: usize,
    /// The names of the known secrets among those.
    pub(crate) known: BTreeSet<String>,
}

pub(crate) fn screen(redactor: &Redactor, text: &str) -> Screened {
    let clean = redactor.redact(text);
    // Some were taken out before, beside cuts.
    let redacted = marks(&clean.text).count();
    let known = marks(&clean.text).filter(|name| redactor.has_value(name)).map(str::to_owned).collect();
    Screened { text: bound(&neutralise(&clean.text), OBSERVATION_BYTES_MAX), redacted, known }
}

pub(crate) fn observation(
    entry: Seq,
    call: &ToolCall,
    ok: bool,
    screened: Screened,
    labels: Labels,
) -> Observation {
    let (call, tool, text) = (call.id.clone(), call.name.clone(), screened.text);
    Observation { entry, call, tool, ok, text, images: Vec::new(), labels: labels.from_entry(entry) }
}

/// Cuts the middle out of a text that is too long, at character boundaries.
pub(crate) fn bound(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.into();
    }
    let half = limit / 2;
    let head = text.get(..text.floor_char_boundary(half)).unwrap_or_default();
    let tail = text.get(text.ceil_char_boundary(text.len() - half)..).unwrap_or_default();
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n… {left_out} bytes left out …\n{tail}")
}

pub(crate) fn card(redactor: &Redactor, mut card: Card) -> Card {
    let clean = |text: &mut String| *text = redactor.redact(text).text.into_owned();
    clean(&mut card.title);
    card.pattern.iter_mut().for_each(clean);
    card.origins.iter_mut().flat_map(|it| [&mut it.value, &mut it.words]).for_each(clean);
    card.reasons.iter_mut().chain(&mut card.caveats).for_each(clean);
    for part in &mut card.parts {
        match part {
            CardPart::Field { value, .. } => clean(value),
            CardPart::Diff { path, diff } => {
                clean(path);
                clean(diff);
            }
        }
    }
    card
}

/// Takes secrets out of what front ends receive. Escaping for a terminal is theirs: a web page escapes
/// otherwise.
pub(crate) fn happening(redactor: &Redactor, mut happening: Happening) -> Happening {
    let clean = |text: &mut String| {
        let found = redactor.redact(text);
        if found.hits > 0 {
            let found = found.text.into_owned();
            *text = found;
        }
    };
    match &mut happening {
        Happening::Text { text }
        | Happening::Notice { text }
        | Happening::Unseen { text }
        | Happening::Sent { text, .. }
        | Happening::Output { text, .. } => clean(text),
        Happening::Call { tool, target, .. } => {
            clean(tool);
            clean(target);
        }
        Happening::Decided { target, reasons, .. } => {
            clean(target);
            reasons.iter_mut().for_each(clean);
        }
        Happening::Answered { why, .. } => clean(why),
        Happening::Repeated { text, .. } => clean(text),
        Happening::Said { text, by } => {
            clean(text);
            by.iter_mut().for_each(clean);
        }
        Happening::Result { summary, text, .. } => {
            clean(summary);
            clean(text);
        }
        Happening::End { error: Some(error), .. } | Happening::Failed { error, .. } => clean(error),
        Happening::Diff {
            diff,
            files,
            counts,
            red,
            reasons,
            commits,
            conflicts,
            stays,
            ignored,
            shown: _,
        } => {
            clean(diff);
            let lines = files
                .iter_mut()
                .chain(red)
                .chain(reasons)
                .chain(commits)
                .chain(conflicts)
                .chain(stays)
                .chain(ignored);
            lines.for_each(clean);
            counts
                .iter_mut()
                .flat_map(|count| [&mut count.path].into_iter().chain(&mut count.now))
                .for_each(clean);
        }
        Happening::Changed { counts, .. } => counts
            .iter_mut()
            .flat_map(|count| [&mut count.path].into_iter().chain(&mut count.now))
            .for_each(clean),
        Happening::Found { paths: lines, .. }
        | Happening::Shown { lines }
        | Happening::Unsaid { texts: lines } => {
            lines.iter_mut().for_each(clean);
        }
        Happening::Recalled { lines, .. } => {
            for line in lines {
                let (RecalledLine::Person { text }
                | RecalledLine::Model { text }
                | RecalledLine::Call { text, .. }) = line;
                clean(text);
            }
        }
        Happening::Pinned { messages } => messages.iter_mut().for_each(|message| clean(&mut message.text)),
        Happening::Merged { conflicts, commits, stays, .. } => {
            conflicts.iter_mut().chain(commits).chain(stays).for_each(clean);
        }
        Happening::Ask { .. }
        | Happening::Session { .. }
        | Happening::Accepted { .. }
        | Happening::GoingOn
        | Happening::Heard { .. }
        | Happening::Sessions { .. }
        | Happening::Guide { .. }
        | Happening::Usage { .. }
        | Happening::End { error: None, .. } => {}
    }
    happening
}

#[cfg(test)]
mod tests {
    use super::{bound, hides_host};
    use bailey_protocol::{Action, HttpRequest};
    use bailey_secrets::Redactor;

    #[test]
    fn a_server_whose_name_a_card_would_hide_is_known() {
        let redactor = Redactor::default();
        let hides = |url: &str| {
            let request = HttpRequest {
                method: "GET".into(),
                url: url.into(),
                headers: Vec::new(),
                body: Vec::new().into(),
            };
            hides_host(&redactor, &Action::Http(request))
        };
        let key = "glpat-aB3dE5gH7jK9mN1pQ3xx";
        assert!(hides(&format!("https://{key}.evil.example/x")) && hides(&format!("http://a.{key}:80")));
        assert!(
            !hides(&format!("https://plain.example/{key}")),
            "control: what follows is hidden, and who is asked is seen"
        );
    }

    #[test]
    fn long_text_keeps_head_and_tail() {
        let text = format!("{}middle{}", "ä".repeat(100), "ö".repeat(100));
        let cut = bound(&text, 50);
        assert!(cut.starts_with('ä') && cut.ends_with('ö') && cut.contains("bytes left out"));
        assert!(!cut.contains("middle"));
        assert_eq!(bound("short", 50), "short");
    }
}
