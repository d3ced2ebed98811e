//! Arguments as a model wrote them: any text. They are repaired by the tool's own schema (`repair`), then
//! checked against it before they are read. The schema's words (which field, expected, got) help a model more
//! than a parser's position does.

mod strict;

use crate::repair::repair;
use bailey_protocol::{ToolSpec, WsPath};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Most bytes that the arguments of one call may have: no action takes more, and nothing longer is parsed.
pub(crate) const ARGUMENTS_BYTES_MAX: usize = 1 << 20;
/// The same of a tool that takes the content of a file or of a request: by an argument of one of these names.
pub(crate) const CONTENT_BYTES_MAX: usize = 32 << 20;
const CONTENT: [&str; 4] = ["content", "new", "patch", "body"];
/// Most bytes of a path (Linux PATH_MAX).
const PATH_BYTES_MAX: usize = 4096;

/// Arguments that fit their schema.
#[derive(Debug)]
pub(crate) struct Parsed<A> {
    /// The arguments.
    pub(crate) args: A,
    unknown: Vec<String>,
    known: Vec<String>,
}

impl<A> Parsed<A> {
    /// A line about arguments that were ignored, with a newline before it.
    pub(crate) fn note(&self) -> Option<String> {
        let unknown = (!self.unknown.is_empty()).then(|| quoted(&self.unknown))?;
        Some(format!("\n(ignored unknown arguments: {unknown}; known are {})", quoted(&self.known)))
    }
}

/// Reads arguments. No text at all counts as no arguments, and `null` as an argument that is not there.
///
/// # Errors
/// Says everything that is wrong at once, in words for the model.
pub(crate) fn parse<A: DeserializeOwned>(spec: &ToolSpec, text: &str) -> Result<Parsed<A>, String> {
    let takes_content =
        CONTENT.iter().any(|name| spec.schema.pointer(&format!("/properties/{name}")).is_some());
    let most = if takes_content { CONTENT_BYTES_MAX } else { ARGUMENTS_BYTES_MAX };
    if text.len() > most {
        return Err(format!("the arguments have {} bytes; at most {most} fit", text.len()));
    }
    let text = if text.trim().is_empty() { "{}" } else { text };
    let value = match decode(text).map_err(|error| format!("the arguments are not valid JSON: {error}"))? {
        Value::String(text) => decode(&text).unwrap_or(Value::String(text)),
        value => value,
    };
    let Value::Object(mut given) = value else {
        return Err(format!("the arguments must be a JSON object, got {}", kind(&value)));
    };
    given.retain(|_, value| !value.is_null());
    let none = Map::new();
    let properties = spec.schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let known = sorted(properties.keys());
    let given = repair(&spec.name, &spec.schema, &known, given).map_err(|twice| {
        format!("bad arguments for {}: {}; give one of them", spec.name, twice.join("; "))
    })?;
    let unknown = sorted(given.keys().filter(|name| !properties.contains_key(*name)));
    let mut problems = problems(&spec.schema, properties, &given);
    // Where nothing is required, what is not understood would be taken for nothing.
    if problems.is_empty() && !unknown.is_empty() && unknown.len() == given.len() {
        problems.push("none of them is known".into());
    }
    if !problems.is_empty() {
        let mut text = format!("bad arguments for {}: {}", spec.name, problems.join("; "));
        if !unknown.is_empty() {
            text.push_str(&format!("; unknown {}, known are {}", quoted(&unknown), quoted(&known)));
        }
        return Err(text);
    }
    let args = serde_json::from_value(Value::Object(given));
    let args = args.map_err(|error| format!("bad arguments for {}: {error}", spec.name))?;
    Ok(Parsed { args, unknown, known })
}

/// A path as a model names it. It is only a name until it was resolved inside the walls.
///
/// # Errors
/// When no file can have it.
pub(crate) fn path(field: &str, value: &str) -> Result<WsPath, String> {
    if value.is_empty() {
        return Err(format!("`{field}` is empty; name a path, such as `src/main.rs`"));
    }
    if value.contains('\0') {
        return Err(format!("`{field}` holds a NUL byte; no file can have that name"));
    }
    if value.len() > PATH_BYTES_MAX {
        return Err(format!("`{field}` has {} bytes; a path has at most {PATH_BYTES_MAX}", value.len()));
    }
    Ok(WsPath(value.into()))
}

/// A value from its JSON, in the arguments themselves or in a string among
/// them. A name that stands twice is an error.
pub(crate) fn decode(text: &str) -> serde_json::Result<Value> {
    strict::read(text)
}

fn problems(schema: &Value, properties: &Map<String, Value>, given: &Map<String, Value>) -> Vec<String> {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let missing = required
        .filter_map(Value::as_str)
        .filter(|name| !given.contains_key(*name))
        .map(|name| format!("`{name}` is missing"));
    let wrong = sorted(given.keys()).into_iter().filter_map(|name| {
        let (at, expected, got) = misfit(properties.get(&name)?, given.get(&name)?)?;
        Some(format!("`{name}{at}` must be {expected}, got {got}"))
    });
    missing.chain(wrong).collect()
}

/// Where a value does not fit, what the schema expects there, and what stands there.
pub(crate) fn misfit(schema: &Value, value: &Value) -> Option<(String, &'static str, String)> {
    let (fits, expected) = match schema.get("type").and_then(Value::as_str) {
        Some("string") => (value.is_string(), "a string"),
        Some("integer") => (value.is_u64(), "a whole number, 0 or more"),
        Some("boolean") => (value.is_boolean(), "true or false"),
        Some("array") => (value.is_array(), "an array of strings"),
        Some("object") => (value.is_object(), "an object of strings"),
        _ => (true, "any value"),
    };
    if !fits {
        return Some((String::new(), expected, kind(value)));
    }
    let inner = schema.get("items").or_else(|| schema.get("additionalProperties"))?;
    let within = |at: String, value| misfit(inner, value).map(|(_, expected, got)| (at, expected, got));
    match value {
        Value::Array(items) => items.iter().enumerate().find_map(|(i, item)| within(format!("[{i}]"), item)),
        Value::Object(items) => items.iter().find_map(|(key, item)| within(format!(".{key}"), item)),
        _ => None,
    }
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "a boolean".into(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the string {:?}", text.chars().take(40).collect::<String>()),
        Value::Array(_) => "an array".into(),
        Value::Object(_) => "an object".into(),
    }
}

/// Names in order, whatever the order of a JSON map is in this build.
fn sorted<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut names: Vec<String> = names.cloned().collect();
    names.sort_unstable();
    names
}

fn quoted(names: &[String]) -> String {
    let shown = names.iter().take(20);
    shown
        .map(|name| format!("`{}`", name.chars().take(40).collect::<String>()))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests;
