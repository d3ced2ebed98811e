//! A change of one value in `config.toml`, which leaves every other byte of the file as the user wrote it.

use super::document::bare;
use toml::{
    Value,
    de::{DeTable, DeValue},
};

/// How to change a setting that is not a single value.
const BY_HAND: &str = "change it with `bailey config edit`";

/// The value as TOML spells it: as it is where it is TOML, else as a text.
pub fn spelled(value: &str) -> String {
    let line = value.trim();
    let is_one_value = !line.contains('\n') && !line.starts_with('#');
    match toml::from_str::<toml::Table>(&format!("x = {line}\n")) {
        Ok(table)
            if is_one_value && table.len() == 1 && !matches!(table.get("x"), Some(Value::Datetime(_))) =>
        {
            line.to_owned()
        }
        _ => text(value),
    }
}

/// A text as TOML spells it.
pub fn text(value: &str) -> String {
    Value::String(value.to_owned()).to_string()
}

/// The file's text with this value, which is TOML, at a dotted key such as `limits.tool_calls`.
///
/// # Errors
/// When the key is not valid, or only a person can change the file there.
pub fn set(file: &str, key: &str, value: &str) -> Result<String, String> {
    let parts = parts(key)?;
    let (last, tables) = parts.split_last().ok_or_else(|| format!("`{key}` is not a key"))?;
    let line = format!("{} = {value}", bare(last));
    let changed = match place(file, &parts)? {
        Some(old) => {
            let (before, after) = (file.get(..old.start), file.get(old.end..));
            format!("{}{value}{}", before.unwrap_or_default(), after.unwrap_or_default())
        }
        None => match tables {
            [] => inserted(file, top(file, last), &line),
            tables => {
                let header =
                    format!("[{}]", tables.iter().map(|part| bare(part)).collect::<Vec<_>>().join("."));
                match below(file, &header) {
                    Some(at) => inserted(file, at, &line),
                    None => format!("{}\n{header}\n{line}\n", with_end(file)),
                }
            }
        },
    };
    // Nothing is taken for done that a parser does not read so.
    let wanted = toml::from_str::<toml::Table>(&format!("x = {value}\n")).ok();
    let wanted = wanted.filter(|it| it.len() == 1).and_then(|mut it| it.remove("x"));
    let found = toml::from_str::<Value>(&changed).ok().and_then(|file| {
        parts.iter().try_fold(file, |table, part| match table {
            Value::Table(mut table) => table.remove(part),
            _ => None,
        })
    });
    match (found, wanted) {
        (Some(found), Some(wanted)) if found == wanted => Ok(changed),
        _ => Err(format!("`{key}` cannot be set here: {BY_HAND}")),
    }
}

/// The file's text with this table at its end.
#[must_use]
pub fn with_table(file: &str, table: &str) -> String {
    format!("{}\n{table}", with_end(file))
}

/// The file's text without a table and the tables in it, such as `[mcp.NAME]` and `[mcp.NAME.env]`.
///
/// # Errors
/// When only a person can change the file there.
pub fn without_table(file: &str, name: &[&str]) -> Result<String, String> {
    let dotted = name.iter().map(|part| bare(part)).collect::<Vec<_>>().join(".");
    let is_it = |line: &str| {
        let header = line.split('#').next().unwrap_or_default().trim();
        let header = header.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        header.is_some_and(|it| it == dotted || it.starts_with(&format!("{dotted}.")))
    };
    let without = |file: &str| {
        let mut parsed = toml::from_str::<toml::Table>(file).ok()?;
        let (last, above) = name.split_last()?;
        let mut at = Some(&mut parsed);
        for part in above {
            at = at.and_then(|table| table.get_mut(*part)).and_then(Value::as_table_mut);
        }
        let had = at.and_then(|table| table.remove(*last)).is_some();
        // A table that has nothing in it any more says nothing.
        let is_empty = |value: &Value| value.as_table().is_some_and(toml::Table::is_empty);
        parsed.retain(|key, value| above.first().is_none_or(|first| *first != key) || !is_empty(value));
        Some((parsed, had))
    };
    let by_hand = || format!("`{dotted}` cannot be removed here: {BY_HAND}");
    let (wanted, had) = without(file).ok_or_else(by_hand)?;
    if !had {
        return Ok(file.to_owned());
    }
    let (mut is_within, mut kept, mut comments) = (false, String::new(), String::new());
    for line in file.split_inclusive('\n') {
        if line.trim_start().starts_with('[') {
            // Comments above a table are about that table.
            let is_left = is_within && !is_it(line);
            kept.push_str(if is_left { &comments } else { "" });
            is_within = is_it(line);
            comments.clear();
        }
        match (is_within, line.trim_start().starts_with('#') || line.trim().is_empty()) {
            (false, _) => kept.push_str(line),
            (true, true) => comments.push_str(line),
            (true, false) => comments.clear(),
        }
    }
    // Text that only looks like a header is not cut.
    match without(&kept) {
        Some((left, false)) if left == wanted => Ok(kept),
        _ => Err(by_hand()),
    }
}

/// The parts of a dotted key.
fn parts(key: &str) -> Result<Vec<String>, String> {
    let wrong =
        || format!("`{key}` is not a key of config.toml; keys look like `model` or `limits.tool_calls`");
    let text = format!("{key} = 0\n");
    if key.contains(['\n', '=', '[', '#']) {
        return Err(wrong());
    }
    let mut table = toml::from_str::<toml::Table>(&text).map_err(|_| wrong())?;
    let mut parts = Vec::new();
    loop {
        let Some(part) = table.keys().next().cloned() else { return Err(wrong()) };
        let inner = table.remove(&part);
        parts.push(part);
        match inner {
            Some(Value::Table(inner)) => table = inner,
            _ => return Ok(parts),
        }
    }
}

/// Where the value of a key stands; `None` when the file does not set the key.
fn place(file: &str, parts: &[String]) -> Result<Option<std::ops::Range<usize>>, String> {
    let table = DeTable::parse(file).map_err(|_| format!("config.toml has a mistake: {BY_HAND}"))?;
    let mut at = table.get_ref();
    for (depth, part) in parts.iter().enumerate() {
        let Some((_, value)) = at.iter().find(|(name, _)| name.get_ref().as_ref() == part) else {
            return Ok(None);
        };
        match value.get_ref() {
            DeValue::Table(inner) if depth + 1 < parts.len() => at = inner,
            DeValue::Table(_) => {
                return Err(format!("`{}` is a table: name one of its keys", parts.join(".")));
            }
            _ if depth + 1 == parts.len() => return Ok(Some(value.span())),
            _ => return Err(format!("`{}` has no keys", parts.get(..=depth).unwrap_or_default().join("."))),
        }
    }
    Ok(None)
}

/// Where a key of no table goes: below the line that shows its default, else before the first table.
fn top(file: &str, key: &str) -> usize {
    let mut at = 0;
    let mut first_blank = 0;
    for line in file.split_inclusive('\n') {
        let plain = line.trim();
        if plain.starts_with('[') {
            break;
        }
        at += line.len();
        let shown = plain.strip_prefix('#').map_or("", str::trim_start);
        if shown.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('=')) {
            return at;
        }
        if plain.is_empty() && first_blank == 0 {
            first_blank = at;
        }
    }
    if at == file.len() { at } else { first_blank }
}

/// Where a key of a table goes: directly below its header.
fn below(file: &str, header: &str) -> Option<usize> {
    let mut at = 0;
    for line in file.split_inclusive('\n') {
        at += line.len();
        if line.split('#').next().is_some_and(|line| line.trim() == header) {
            return Some(at);
        }
    }
    None
}

fn inserted(file: &str, at: usize, line: &str) -> String {
    let (before, after) = file.split_at_checked(at).unwrap_or((file, ""));
    format!("{}{line}\n{after}", with_end(before))
}

/// A text whose last line has an end.
fn with_end(text: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}")
}

#[cfg(test)]
mod tests {
    use super::{set, spelled, without_table};
    use crate::config::TEMPLATE;

    #[test]
    fn a_value_changes_and_all_else_stays() {
        let file = "# mine\nmodel = \"a/b\" # why\n\n[limits]   # of all\ntool_calls = 5\n";
        assert_eq!(set(file, "model", "\"c/d\"").unwrap(), file.replace("a/b", "c/d"));
        assert_eq!(set(file, "limits.tool_calls", "7").unwrap(), file.replace('5', "7"));
        let added = set(file, "limits.reply_tokens", "9").unwrap();
        assert_eq!(added, file.replace("# of all\n", "# of all\nreply_tokens = 9\n"));
        let added = set(file, "providers.lm.wire", "\"openai\"").unwrap();
        assert_eq!(added, format!("{file}\n[providers.lm]\nwire = \"openai\"\n"));
        assert_eq!(set("", "model", "\"a/b\"").unwrap(), "model = \"a/b\"\n");
    }

    #[test]
    fn the_file_that_init_writes_takes_every_kind_of_key() {
        let set_all = ["model", "limits.day_tokens", "providers.local.wire"]
            .iter()
            .try_fold(TEMPLATE.to_owned(), |file, key| set(&file, key, "\"x\""));
        let file = set_all.unwrap();
        assert!(file.contains("# model = \"anthropic/claude-sonnet-5-5\"\nmodel = \"x\"\n"), "{file}");
        assert_eq!(
            file.lines().filter(|line| !TEMPLATE.lines().any(|old| old == *line)).count(),
            4,
            "{file}"
        );
    }

    #[test]
    fn a_table_is_removed_and_all_else_stays() {
        let file = "a = 1\n\n[mcp.x] # one\ncommand = [\n \"y\"\n]\n# of x\nhosts = []\n[mcp.x.env]\nA = \"1\"\n\n# of b\n[b]\nc = 2\n";
        assert_eq!(without_table(file, &["mcp", "x"]).unwrap(), "a = 1\n\n\n# of b\n[b]\nc = 2\n");
        assert_eq!(without_table(file, &["mcp", "y"]).unwrap(), file);
        for text in [
            "s = \"\"\"\n[mcp.x]\nkeep me\n[y]\n\"\"\"\n[mcp.x]\nk = 1\n",
            "mcp = { x = { k = 1 } }\n",
            "[\"mcp\".\"x\"]\nk = 1\n",
        ] {
            assert!(without_table(text, &["mcp", "x"]).is_err(), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_set_says_so() {
        let file = "limits = { tool_calls = 5 }\n[[network.key]]\nat = \"https://x\"\n";
        for key in
            ["", "a b", "a = 1\nb", "limits", "limits.reply_tokens", "network.key.at", "limits.tool_calls.x"]
        {
            assert!(set(file, key, "1").is_err(), "{key}: {:?}", set(file, key, "1"));
        }
        assert!(set("not toml", "model", "1").is_err());
        // A value that brings a line of its own along.
        assert!(set("", "model", "1\nevil = 2").is_err());
        assert!(set(file, "limits.tool_calls", "6").is_ok(), "the control");
    }

    #[test]
    fn a_value_that_is_no_toml_is_a_text() {
        for (given, toml) in [
            ("5", "5"),
            ("true", "true"),
            ("[\"a\"]", "[\"a\"]"),
            ("\"a\"", "\"a\""),
            ("ollama/qwen3-coder", "\"ollama/qwen3-coder\""),
            ("5 USD", "\"5 USD\""),
            ("1\ny = 2", "\"\"\"\n1\ny = 2\"\"\""),
        ] {
            assert_eq!(spelled(given), toml, "{given}");
        }
    }
}
