//! Cuts: what an executor shortened may hold one half of a secret, which nobody recognises any more. So
//! secrets are taken out first, and then what stands beside the cut is left out, whatever it is: before the
//! outcome is written, and before a tool that shortens sees it.

use crate::Output;
use bailey_protocol::{Blob, FOUND_BYTES_MAX, Report, Stream};
use bailey_secrets::Redactor;
use std::borrow::Cow;

/// A line that was shortened at a character's boundary is so many bytes shorter at most.
const CHARACTER_BYTES_MAX: usize = 4;

/// Takes out what secrets may have left beside the cuts of streams and found lines.
pub(crate) fn tidy(redactor: &Redactor, output: Output) -> Output {
    let mut outcome = output.into_outcome();
    match &mut outcome.report {
        Report::Exec(report) => {
            for stream in [&mut report.stdout, &mut report.stderr] {
                tidy_stream(redactor, stream);
            }
        }
        Report::Search(report) => {
            for found in &mut report.found {
                if found.text.len() + CHARACTER_BYTES_MAX > FOUND_BYTES_MAX {
                    let clean = redactor.redact_before_cut(found.text.as_bytes());
                    found.text = format!("{}…", String::from_utf8_lossy(&clean).trim_end_matches('\u{fffd}'));
                }
            }
        }
        _ => {}
    }
    Output::new(outcome)
}

/// The output as a tool's conclusion sees it: it may show a part of a file, such as one line of a key, and a
/// file may have been cut when it was read. None: as it is, for there is no secret in it. Tools that plan a
/// change see it as it is.
pub(crate) fn to_conclude(redactor: &Redactor, output: &Output) -> Option<Output> {
    if let Report::Page(page) = output.report() {
        let text = page.text.as_deref()?;
        let clean = if page.cut {
            redactor.redact_before_cut(text.as_bytes())
        } else {
            let Cow::Owned(clean) = redactor.redact_bytes(text.as_bytes()) else { return None };
            clean
        };
        let mut outcome = output.outcome().clone();
        if let Report::Page(shown) = &mut outcome.report {
            shown.text = Some(String::from_utf8_lossy(&clean).trim_end_matches('\u{fffd}').to_owned());
        }
        return Some(Output::new(outcome));
    }
    if let Report::Called(called) = output.report() {
        let Cow::Owned(clean) = redactor.redact_bytes(called.text.as_bytes()) else { return None };
        let mut outcome = output.outcome().clone();
        if let Report::Called(shown) = &mut outcome.report {
            shown.text = String::from_utf8_lossy(&clean).into_owned();
        }
        return Some(Output::new(outcome));
    }
    let Report::File(file) = output.report() else { return None };
    let bytes = &file.content.0;
    let is_cut = file.size > bytes.len() as u64;
    let clean = if is_cut {
        redactor.redact_before_cut(bytes)
    } else {
        let Cow::Owned(clean) = redactor.redact_bytes(bytes) else { return None };
        clean
    };
    let mut outcome = output.outcome().clone();
    if let Report::File(shown) = &mut outcome.report {
        // Whether all of it is there is told by the two sizes.
        shown.size = if is_cut { shown.size.max(clean.len() as u64 + 1) } else { clean.len() as u64 };
        shown.content = Blob(clean);
    }
    Some(Output::new(outcome))
}

fn tidy_stream(redactor: &Redactor, stream: &mut Stream) {
    let kept = |stream: &Stream| (stream.head.0.len() + stream.tail.0.len()) as u64;
    let left_out = stream.total.saturating_sub(kept(stream));
    if left_out == 0 {
        return;
    }
    let before = kept(stream);
    stream.head = Blob(redactor.redact_before_cut(&stream.head.0));
    stream.tail = Blob(redactor.redact_after_cut(&stream.tail.0));
    // What is left out is told by the difference, and never becomes nothing.
    let more = before.saturating_sub(kept(stream));
    stream.total = kept(stream).saturating_add(left_out).saturating_add(more);
}

#[cfg(test)]
mod tests;
