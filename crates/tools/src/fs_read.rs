//! `fs.read`: a text file, or some lines of it.
//!
//! Lines come without numbers: what the model copies from here into `fs.edit` is then exact, tabs and all.

use crate::{
    aliases, arguments,
    edit::is_crlf,
    typed::{PerformedCall, Typed, count, reads, unexpected},
};
use bailey_kernel::{Claims, Conclusion, Output, Plan, show_spaces};
use bailey_protocol::{Action, FileReport, Image, ImageKind, Kind, Report, ToolSpec};
use serde::Deserialize;
use serde_json::json;

/// Lines shown when no limit is given.
const LINES_DEFAULT: u64 = 2_000;
/// Most bytes shown at once.
const BYTES_MAX: usize = 100_000;

/// Reads one file.
pub(crate) struct FsRead;

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(crate) struct Args {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

impl Typed for FsRead {
    type Args = Args;
    const KINDS: Option<&'static [Kind]> = Some(&[Kind::Read]);

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "fs.read".into(),
            aliases: aliases::names("fs.read"),
            summary: "Read a text file.".into(),
            description:
                "Returns the file's lines without line numbers, at most 2000 lines or 100 kB at once; \
                          read on with `offset`. Secrets are shown as [redacted:NAME], and characters that are not seen by \
                          marks (⟨U+200B⟩, ␛), which changes of that file may hold as they are shown."
                    .into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the workspace, or absolute."},
                    "offset": {"type": "integer", "minimum": 1, "description": "First line, from 1."},
                    "limit": {"type": "integer", "minimum": 1, "description": "Number of lines."}
                },
                "required": ["path"]
            }),
        }
    }

    fn claims(&self, args: &Args) -> Claims {
        reads(&args.path)
    }

    fn plan(&self, args: &Args, _seen: &[Output]) -> Result<Plan, String> {
        if args.offset == Some(0) || args.limit == Some(0) {
            return Err("`offset` and `limit` start at 1".into());
        }
        Ok(Plan::Act(Action::Read { path: arguments::path("path", &args.path)? }))
    }

    fn conclude(&self, done: &PerformedCall<'_, Args>) -> Conclusion {
        match &done.outcome.report {
            Report::File(file) => show(done.args, file),
            _ => unexpected(),
        }
    }
}

fn show(args: &Args, file: &FileReport) -> Conclusion {
    let path = &args.path;
    let bytes = file.content.0.as_slice();
    if let Some(kind) = ImageKind::of(bytes) {
        return picture(path, file, kind);
    }
    if bytes.contains(&0) {
        let text = format!("{path} is a binary file of {} bytes", file.size);
        return Conclusion { ok: true, summary: format!("binary, {} bytes", file.size), text };
    }
    let content = file.content.lossy();
    let lines: Vec<&str> = content.lines().collect();
    let first = usize::try_from(args.offset.unwrap_or(1) - 1).unwrap_or(usize::MAX);
    let limit = usize::try_from(args.limit.unwrap_or(LINES_DEFAULT)).unwrap_or(usize::MAX);
    let wanted: Vec<&str> = lines.iter().copied().skip(first).take(limit).collect();
    let (shown, cut_line) = fitting(&wanted);
    let end = first.saturating_add(shown.len());
    let mut text = header(path, file, &lines, first, end);
    for line in &shown {
        text.push('\n');
        text.push_str(&show_spaces(line));
    }
    for note in notes(file, &lines, first, end, cut_line) {
        text.push_str(&format!("\n({note})"));
    }
    Conclusion { ok: true, summary: count(shown.len(), "line"), text }
}

/// Tells the model of a picture, for as text it is nothing. The kernel shows it
/// beside this to a model that takes pictures.
fn picture(path: &str, file: &FileReport, kind: ImageKind) -> Conclusion {
    let size = kind.size(&file.content.0);
    let size = size.map(|(width, height)| format!("{width}×{height} pixels, ")).unwrap_or_default();
    let summary = format!("{} picture, {size}{} bytes", kind.name(), file.size);
    let shown = match Image::of(file.content.0.clone()) {
        Some(_) if file.digest.is_some() => {
            "It is shown beside this result to a model that takes pictures; another can look"
        }
        _ => "It is too large to be shown; you can look",
    };
    let text = format!(
        "{path} is a {summary}. {shown} into it with a program (command_run: `file`, `identify`, an OCR program), or ask the \
         human to describe it."
    );
    Conclusion { ok: true, summary, text }
}

fn header(path: &str, file: &FileReport, lines: &[&str], first: usize, end: usize) -> String {
    let range = match lines.len() {
        0 => "empty".into(),
        total if first >= total => "no such lines".into(),
        total if first == 0 && end == total => count(total, "line"),
        total => format!("lines {} to {end} of {total}", first.saturating_add(1)),
    };
    let content = file.content.lossy();
    let ends = match content.contains("\r\n") {
        false => "",
        true if is_crlf(&content) => ", CRLF line ends",
        true => ", some CRLF line ends",
    };
    format!("{path} ({range}, {} bytes{ends})", file.size)
}

fn notes(file: &FileReport, lines: &[&str], first: usize, end: usize, cut_line: bool) -> Vec<String> {
    let bytes = file.content.0.as_slice();
    let mut notes = Vec::new();
    if first >= lines.len() && first > 0 {
        notes.push(format!("the file has {} only", count(lines.len(), "line")));
    } else if end < lines.len() {
        notes.push(format!("{} more; read on with offset {}", count(lines.len() - end, "line"), end + 1));
    } else if file.size == bytes.len() as u64 && !bytes.is_empty() && !bytes.ends_with(b"\n") {
        notes.push("no newline at the end".into());
    }
    if cut_line {
        notes.push(format!("the line is longer than {BYTES_MAX} bytes; its rest is left out"));
    }
    if file.size > bytes.len() as u64 {
        notes.push(format!("only the first {} bytes were read; use command.run for the rest", bytes.len()));
    }
    if std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_some()) {
        notes.push(
            "not valid UTF-8: \u{fffd} stands for other bytes, and fs.edit cannot change this file".into(),
        );
    }
    notes
}

/// The lines that fit at once, and whether the first of them had to be cut.
fn fitting<'a>(lines: &[&'a str]) -> (Vec<&'a str>, bool) {
    let mut room = BYTES_MAX;
    let mut shown = Vec::new();
    for line in lines {
        if line.len() >= room {
            break;
        }
        room -= line.len() + 1;
        shown.push(*line);
    }
    match lines.first() {
        Some(line) if shown.is_empty() => {
            (vec![line.get(..line.floor_char_boundary(BYTES_MAX)).unwrap_or_default()], true)
        }
        _ => (shown, false),
    }
}
