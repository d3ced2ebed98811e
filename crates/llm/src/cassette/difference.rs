//! Where two requests first differ, told to people.

use serde_json::Value;
use similar::TextDiff;

/// The most lines of a difference that are told.
const LINES_MAX: usize = 24;

/// The longest line that is told, in characters.
const LINE_CHARS_MAX: usize = 200;

/// The place (RFC 6901) and the lines in which `got` first differs from `expected`; `None` when they are
/// equal.
pub(crate) fn difference(expected: &Value, got: &Value) -> Option<(String, String)> {
    if expected == got {
        return None;
    }
    let mut pointer = String::new();
    let (expected, got) = descend(expected, got, &mut pointer);
    let place = if pointer.is_empty() { "the whole request".into() } else { format!("`{pointer}`") };
    Some((place, lines(&text(expected), &text(got))))
}

/// Walks to the first place where the two differ and neither can be walked further.
fn descend<'a>(
    mut expected: &'a Value,
    mut got: &'a Value,
    pointer: &mut String,
) -> (Option<&'a Value>, Option<&'a Value>) {
    loop {
        let Some((name, old, new)) = first_child(expected, got) else { return (Some(expected), Some(got)) };
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        match (old, new) {
            (Some(old), Some(new)) => (expected, got) = (old, new),
            one_is_missing => return one_is_missing,
        }
    }
}

type Child<'a> = (String, Option<&'a Value>, Option<&'a Value>);

fn first_child<'a>(expected: &'a Value, got: &'a Value) -> Option<Child<'a>> {
    match (expected, got) {
        (Value::Array(old), Value::Array(new)) => {
            let places = 0..old.len().max(new.len());
            let child = |place: usize| (place.to_string(), old.get(place), new.get(place));
            places.map(child).find(|(_, old, new)| old != new)
        }
        (Value::Object(old), Value::Object(new)) => {
            let names = old.keys().chain(new.keys());
            let child = |name: &String| (name.clone(), old.get(name), new.get(name));
            names.map(child).find(|(_, old, new)| old != new)
        }
        _ => None,
    }
}

fn text(value: Option<&Value>) -> String {
    match value {
        None => "(nothing)".into(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

fn lines(expected: &str, got: &str) -> String {
    let diff = TextDiff::from_lines(expected, got);
    let diff = diff.unified_diff().context_radius(1).missing_newline_hint(false).to_string();
    let mut lines: Vec<String> = diff.lines().take(LINES_MAX).map(shortened).collect();
    let more = diff.lines().count().saturating_sub(LINES_MAX);
    if more > 0 {
        lines.push(format!("… {more} more lines"));
    }
    lines.join("\n")
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.into(),
    }
}

#[cfg(test)]
mod tests;
