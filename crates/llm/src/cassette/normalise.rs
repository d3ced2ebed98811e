//! What may differ between two runs of the same session, and nothing else.
//!
//! | what | becomes | where |
//! |---|---|---|
//! | the workspace's path, then its parent's when that lies at least two levels deep | `$WORKSPACE`, `$PARENT` | every text |
//! | durations: `0.00s`, `finished in 1.23s`, `1m 02s` | `$TIME` | every text |
//! | hashes: runs of 16 and more hexadecimal digits with both letters and digits; `-` and 16 of them | `$HASH` | every text |
//! | the number in `thread 'name' (12345) panicked` | `$THREAD` | every text |
//! | what the compiler says: under `--- stderr ---`, up to the next line that starts with `--- `, each line but cargo's own steps (`Compiling`, `Finished`, `Running` …), results of tests, and panics with their messages | one `$DIAGNOSTICS` | results of a `cargo` command |
//! | what Bailey tells the model of itself (`IDENTITY.md`), which is true of one machine and one moment | `$IDENTITY` | every text |
//! | colours (SGR sequences, also where the screen made them visible as `␛[…m`) | nothing | every text |
//!
//! Tool names, arguments, exit codes, test names with `ok` or `FAILED`, panic messages and file contents stay
//! as they are. Replay compares both sides after the same table.

use regex::{Captures, Regex};
use serde_json::Value;
use std::{fmt, sync::LazyLock};

/// Makes requests of two runs comparable.
pub struct Normaliser {
    workspace: String,
    parent: Option<String>,
    redact: Box<dyn Fn(&str) -> String + Send + Sync>,
}

/// A row of the table: what is found, and what becomes of it.
struct Rule {
    pattern: &'static str,
    becomes: Becomes,
}

type Becomes = fn(&Captures<'_>) -> String;

/// From the frame that the kernel puts around it to its last line.
const IDENTITY: &str = r"(?s)\[`[^`\n]*/IDENTITY\.md`.*?\n-- end of IDENTITY\.md --";

const RULES: &[Rule] = &[
    // ECMA-48 SGR (colours and weights) and the `ESC ( B` that terminfo puts behind them, as they came or as
    // the screen made them visible.
    Rule { pattern: r"[\x1b␛](?:\[[0-9;:]*m|\(B)", becomes: |_| String::new() },
    Rule { pattern: IDENTITY, becomes: |_| "$IDENTITY".into() },
    Rule { pattern: r"\b[0-9]+m [0-9]{2}s\b", becomes: |_| "$TIME".into() },
    Rule { pattern: r"\b[0-9]+\.[0-9]+s\b", becomes: |_| "$TIME".into() },
    Rule { pattern: r"-[0-9a-f]{16}\b", becomes: |_| "-$HASH".into() },
    Rule { pattern: r"\b[0-9A-Fa-f]{16,}\b", becomes: hash },
    Rule { pattern: r"(thread '[^'\n]*' )\([0-9]+\)( panicked)", becomes: thread },
];

static COMPILED: LazyLock<Vec<(Regex, Becomes)>> = LazyLock::new(|| {
    RULES.iter().filter_map(|rule| Some((Regex::new(rule.pattern).ok()?, rule.becomes))).collect()
});

/// What cargo says of its own steps, and the lines of a test run.
static STEP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let cargo = r"^ *(?:(?:Compiling|Checking|Documenting) \S+ v[0-9]|Finished |Running |Doc-tests )";
    let tests = r"^test .+ \.\.\. (?:ok|FAILED|ignored)|^test result: |^running [0-9]+ tests?$";
    Regex::new(&format!("{cargo}|{tests}")).ok()
});

static PANIC: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^thread '[^']*' (?:\(\S+\) )?panicked at ").ok());

fn hash(found: &Captures<'_>) -> String {
    let run = found.get(0).map_or("", |run| run.as_str());
    let mixed =
        run.bytes().any(|byte| byte.is_ascii_digit()) && run.bytes().any(|byte| byte.is_ascii_alphabetic());
    if mixed { "$HASH".into() } else { run.into() }
}

fn thread(found: &Captures<'_>) -> String {
    let part = |n| found.get(n).map_or("", |part| part.as_str());
    format!("{}($THREAD){}", part(1), part(2))
}

impl fmt::Debug for Normaliser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Normaliser").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

impl Normaliser {
    /// A normaliser for sessions in this workspace (an absolute path).
    #[must_use]
    pub fn new(workspace: &str) -> Self {
        let workspace = workspace.trim_end_matches('/').to_owned();
        // A parent such as `/tmp` is the same everywhere and stands in texts that have nothing to do with it.
        let parent = workspace.rsplit_once('/').map(|(parent, _)| parent);
        let parent = parent.filter(|parent| parent.matches('/').count() >= 2).map(Into::into);
        Self { workspace, parent, redact: Box::new(str::to_owned) }
    }

    /// The same, with every text passed through `redact` as well.
    #[must_use]
    pub fn redacting(self, redact: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self { redact: Box::new(redact), ..self }
    }

    /// A request's body, made comparable. A body that is no JSON becomes a string.
    #[must_use]
    pub fn request(&self, body: &[u8]) -> Value {
        let parsed = serde_json::from_slice(body);
        self.value(parsed.unwrap_or_else(|_| String::from_utf8_lossy(body).into()), false)
    }

    /// Text as it is stored of a response: redacted, and with the workspace named. The rest stays as it came.
    #[must_use]
    pub fn response(&self, text: &str) -> String {
        replace_path(&(self.redact)(text), &self.workspace, "$WORKSPACE")
    }

    /// A stored response's text, for a session in this workspace.
    #[must_use]
    pub fn replayed(&self, text: &str) -> String {
        text.replace("$WORKSPACE", &self.workspace)
    }

    fn value(&self, value: Value, result: bool) -> Value {
        match value {
            Value::String(text) => self.text(&text, result).into(),
            Value::Array(items) => items.into_iter().map(|item| self.value(item, result)).collect(),
            Value::Object(object) => {
                let is = |name, word| object.get(name).and_then(Value::as_str) == Some(word);
                let result = result || is("type", "tool_result") || is("role", "tool");
                object.into_iter().map(|(name, value)| (name, self.value(value, result))).collect()
            }
            plain => plain,
        }
    }

    fn text(&self, text: &str, result: bool) -> String {
        let mut text = (self.redact)(text);
        text = replace_path(&text, &self.workspace, "$WORKSPACE");
        if let Some(parent) = &self.parent {
            text = replace_path(&text, parent, "$PARENT");
        }
        for (pattern, becomes) in COMPILED.iter() {
            text = pattern.replace_all(&text, becomes).into_owned();
        }
        if result && runs_cargo(&text) { without_diagnostics(&text) } else { text }
    }
}

/// Whether a tool's result is that of a `cargo` command: its first line says so.
fn runs_cargo(result: &str) -> bool {
    let command = result.lines().next().and_then(|line| line.strip_prefix("$ "));
    command.is_some_and(|line| {
        line.split(|c: char| !(c.is_alphanumeric() || "-_".contains(c))).any(|w| w == "cargo")
    })
}

/// Puts one word in the place of what the compiler wrote to standard error, whether it wrote something or
/// not. Its words are any words, so what is not its own is known by its shape.
fn without_diagnostics(result: &str) -> String {
    let mut kept = Vec::new();
    let (mut inside, mut panicking) = (false, false);
    for line in result.lines() {
        if line.starts_with("--- ") {
            (inside, panicking) = (line == "--- stderr ---", false);
            kept.push(line);
            kept.extend(inside.then_some("$DIAGNOSTICS"));
            continue;
        }
        // A panic's message goes on up to an empty line.
        panicking = if panicking { !line.is_empty() } else { is_a(&PANIC, line) };
        if !inside || panicking || is_a(&STEP, line) {
            kept.push(line);
        }
    }
    kept.join("\n")
}

fn is_a(shape: &LazyLock<Option<Regex>>, line: &str) -> bool {
    shape.as_ref().is_some_and(|shape| shape.is_match(line))
}

/// Puts `name` in the place of `path` wherever it stands as a whole path or the start of one.
fn replace_path(text: &str, path: &str, name: &str) -> String {
    if path.is_empty() {
        return text.into();
    }
    let mut parts = text.split(path);
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let goes_on = part.chars().next().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-');
        replaced.push_str(if goes_on { path } else { name });
        replaced.push_str(part);
    }
    replaced
}

#[cfg(test)]
mod tests;
