//! The text of git's configuration (git-config(1), "Syntax").

/// A section, a key, and an optional value. The section's part in quotes stands behind a dot. Section and key
/// are in lower case, except for that part.
pub(super) type GitSetting = (String, String, Option<String>);

/// The entries of a file. This skips lines that are no entries.
pub(super) fn entries(text: &str) -> Vec<GitSetting> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut section = String::new();
    let mut entries = Vec::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
        rest = rest.get(start..).unwrap_or_default();
        if rest.starts_with(['#', ';']) {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(header) = rest.strip_prefix('[') {
            let end = end_of_header(header);
            section = named(header.get(..end).unwrap_or_default());
            rest = header.get(end + 1..).unwrap_or_default();
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
            let key = rest.get(..end).unwrap_or_default().to_ascii_lowercase();
            let after = rest.get(end..).unwrap_or_default().trim_start_matches([' ', '\t']);
            let (value, left) = match after.strip_prefix('=') {
                Some(after) => {
                    let (value, left) = value(after);
                    (Some(value), left)
                }
                None => (None, after.split_once('\n').map_or("", |(_, left)| left)),
            };
            rest = left;
            if !key.is_empty() {
                entries.push((section.clone(), key, value));
            }
        }
    }
    entries
}

/// The place where a header's bracket closes, outside of quotes.
fn end_of_header(header: &str) -> usize {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, letter) in header.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ']' if !is_quoted => return at,
            '\n' => return at,
            _ => {}
        }
    }
    header.len()
}

fn named(header: &str) -> String {
    let Some((section, part)) = header.split_once('"') else { return header.trim().to_ascii_lowercase() };
    let mut name = section.trim().to_ascii_lowercase() + ".";
    let mut letters = part.chars();
    while let Some(letter) = letters.next().filter(|letter| *letter != '"') {
        name.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    name
}

/// A value, and the text after its line.
fn value(text: &str) -> (String, &str) {
    let mut value = String::new();
    // Blanks belong to the value only if more text of it follows.
    let mut blanks = String::new();
    let (mut is_quoted, mut is_comment) = (false, false);
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\n' => return (value, text.get(at + 1..).unwrap_or_default()),
            _ if is_comment => {}
            '"' => is_quoted = !is_quoted,
            '#' | ';' if !is_quoted => is_comment = true,
            ' ' | '\t' if !is_quoted => blanks.extend((!value.is_empty()).then_some(letter)),
            _ => {
                let meant = match letter {
                    '\\' => match letters.next().map(|(_, letter)| letter) {
                        Some('n') => Some('\n'),
                        Some('t') => Some('\t'),
                        Some('b') => Some('\u{8}'),
                        Some('\n') | None => None,
                        other => other,
                    },
                    letter => Some(letter),
                };
                if let Some(meant) = meant {
                    value.push_str(&std::mem::take(&mut blanks));
                    value.push(meant);
                }
            }
        }
    }
    (value, "")
}

/// Puts a value in quotes so that git reads it unchanged. Control characters are left out.
pub(super) fn quoted(value: &str) -> String {
    let letters = value.chars().filter(|letter| !letter.is_control());
    letters.fold(String::new(), |mut quoted, letter| {
        quoted.extend(matches!(letter, '"' | '\\').then_some('\\'));
        quoted.push(letter);
        quoted
    })
}

/// Whether a boolean value means yes.
pub(super) fn is_yes(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    matches!(value.as_str(), "true" | "yes" | "on") || value.parse::<i64>().is_ok_and(|number| number != 0)
}

/// Whether a path matches a pattern: `*` and `?` stop at a slash, `**` as a whole part does not.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let parts: Vec<&str> = pattern.split('/').collect();
    let names: Vec<&str> = path.split('/').collect();
    parts_match(&parts, &names)
}

fn parts_match(parts: &[&str], names: &[&str]) -> bool {
    match (parts.split_first(), names.split_first()) {
        (None, names) => names.is_none(),
        (Some((&"**", rest)), _) => {
            (0..=names.len()).any(|from| names.get(from..).is_some_and(|names| parts_match(rest, names)))
        }
        (Some((part, rest)), Some((name, names))) => {
            part_matches(part.as_bytes(), name.as_bytes()) && parts_match(rest, names)
        }
        (Some(_), None) => false,
    }
}

fn part_matches(part: &[u8], name: &[u8]) -> bool {
    match (part.split_first(), name.split_first()) {
        (None, name) => name.is_none(),
        (Some((b'*', rest)), _) => {
            part_matches(rest, name) || name.split_first().is_some_and(|(_, name)| part_matches(part, name))
        }
        (Some((b'?', rest)), Some((_, name))) => part_matches(rest, name),
        (Some((letter, rest)), Some((found, name))) => letter == found && part_matches(rest, name),
        (Some(_), None) => false,
    }
}
