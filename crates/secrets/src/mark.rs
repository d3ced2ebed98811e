//! The mark that stands where a secret stood: `[redacted:NAME]`.

const OPEN: &str = "[redacted:";

/// The longest name in a mark, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The mark for a name. Whatever is not a letter, a digit, `_`, `-` or `.` becomes `_`, so that a mark needs no
/// escaping in JSON, in a shell or on a screen.
pub(crate) fn mark(name: &str) -> String {
    let name = name.chars().take(NAME_BYTES_MAX);
    let name: String = name.map(|c| if is_name(c) { c } else { '_' }).collect();
    format!("{OPEN}{name}]")
}

/// Whether the text holds a mark.
#[must_use]
pub fn has_mark(text: &str) -> bool {
    marks(text).next().is_some()
}

/// The names in the marks of a text, in order, with repetitions.
pub fn marks(text: &str) -> impl Iterator<Item = &str> {
    text.split(OPEN).skip(1).filter_map(|rest| {
        let end = rest.find(|c| !is_name(c)).filter(|end| (1..=NAME_BYTES_MAX).contains(end))?;
        rest.get(end..)?.starts_with(']').then(|| rest.get(..end)).flatten()
    })
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}
