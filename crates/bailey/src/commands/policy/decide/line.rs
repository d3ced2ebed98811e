//! What another program writes: one JSON object a line. Nothing of it is believed but as what that program
//! says.

use bailey_kernel::{Offered, TASK_TOOLS_MAX};
use bailey_policy::{Described, classify, is_tool_name, tool_effect};
use bailey_protocol::ToolEffect;
use serde::{Deserialize, de};
use serde_json::{Value, value::RawValue};
use std::{borrow::Cow, collections::BTreeMap, fmt};

/// The protocol's version.
pub(crate) const PROTOCOL: u64 = 1;
/// The longest line, in bytes; the arguments of a tool have a limit of their own.
pub(crate) const LINE_BYTES_MAX: usize = 4 << 20;
/// The longest name of a question, in bytes.
const ID_BYTES_MAX: usize = 128;
/// The most of a case's name or a prompt that a session's title takes, in characters.
const TITLE_CHARS_MAX: usize = 80;

/// A request of the other program.
#[derive(Debug)]
pub(crate) enum Request {
    Hello,
    /// The task before is over also where this one cannot begin.
    Begin(Result<Declared, String>),
    Decide {
        id: Value,
        tool: String,
        args: String,
    },
    Observe {
        tool: String,
        args: String,
        output: String,
    },
    End,
}

/// A task that another program begins.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    pub(crate) title: String,
    pub(crate) tools: Vec<Offered>,
    /// Declarations that could not be taken as they were written, one line for each
    /// tool. They leave the other tools as they are.
    pub(crate) remarks: Vec<String>,
}

/// A request, each field as it was written. Only the fields that its `op` has are read. A known field that
/// stands there twice makes the line malformed; an unknown field is passed over.
#[derive(Deserialize)]
#[serde(expecting = "an object with an `op`")]
struct RawRequest<'a> {
    #[serde(borrow)]
    op: Cow<'a, str>,
    #[serde(borrow, default)]
    protocol: Option<&'a RawValue>,
    #[serde(borrow, default)]
    case_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    user_prompt: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool: Option<&'a RawValue>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
}

/// The declaration of a tool, each field as it was written. Every field may be missing.
#[derive(Deserialize, Default)]
#[serde(default, expecting = "an object that declares a tool")]
struct RawTool<'a> {
    #[serde(borrow)]
    effect: Option<&'a RawValue>,
    #[serde(borrow)]
    description: Option<&'a RawValue>,
    #[serde(borrow)]
    input_schema: Option<&'a RawValue>,
}

/// Tools by name, each with its declaration. A name stands there once.
struct ToolDeclarations<'a>(BTreeMap<String, Option<&'a RawValue>>);

/// Reads a line.
///
/// # Errors
/// What is wrong with it, for whoever wrote the other program.
pub(crate) fn read(bytes: &[u8]) -> Result<Request, String> {
    if bytes.len() > LINE_BYTES_MAX {
        return Err(too_long());
    }
    let text = str::from_utf8(bytes).map_err(|error| format!("no UTF-8: {error}"))?;
    // Of serde an array could be one, too.
    if !text.trim_start().starts_with('{') {
        return Err("no JSON object of the protocol: a line is one object".into());
    }
    let line: RawRequest<'_> =
        serde_json::from_str(text).map_err(|error| format!("no JSON object of the protocol: {error}"))?;
    match line.op.as_ref() {
        "hello" => match line.protocol.map(|raw| given::<u64>("protocol", raw)).transpose()? {
            None | Some(PROTOCOL) => Ok(Request::Hello),
            Some(other) => Err(format!("protocol {other} is not spoken here: this is {PROTOCOL}")),
        },
        "begin" => Ok(Request::Begin(title(&line).and_then(|title| declared(title, line.tools)))),
        "decide" => {
            let id = line.id.ok_or("`decide` needs an `id`")?;
            let (id, tool) = (named(id)?, tool(&line)?);
            line.args.ok_or("`decide` needs `args`, an object: what is not there is no empty one")?;
            Ok(Request::Decide { id, tool, args: arguments(&line)? })
        }
        "observe" => {
            let output = line.output.map(text_of).unwrap_or_default();
            Ok(Request::Observe { tool: tool(&line)?, args: arguments(&line)?, output })
        }
        "end" => Ok(Request::End),
        _ => Err("unknown `op`: there are hello, begin, decide, observe, end".into()),
    }
}

/// What is said of a line that is too long to be read.
pub(crate) fn too_long() -> String {
    format!("a line of more than {LINE_BYTES_MAX} bytes")
}

fn given<'a, T: Deserialize<'a>>(name: &str, raw: &'a RawValue) -> Result<T, String> {
    serde_json::from_str(raw.get()).map_err(|error| format!("`{name}`: {error}"))
}

/// A whole number or a short string, which comes back with the answer.
fn named(id: &RawValue) -> Result<Value, String> {
    match given("id", id)? {
        Value::Number(number) if number.is_i64() || number.is_u64() => Ok(Value::Number(number)),
        Value::String(text) if text.len() <= ID_BYTES_MAX => Ok(Value::String(text)),
        _ => Err(format!("`id` is a whole number, or a string of at most {ID_BYTES_MAX} bytes")),
    }
}

fn tool(line: &RawRequest<'_>) -> Result<String, String> {
    let raw = line.tool.ok_or_else(|| format!("`{}` needs a `tool`", line.op))?;
    given("tool", raw)
}

/// As they were written: whether anybody can judge them is for the rules of shape to say.
fn arguments(line: &RawRequest<'_>) -> Result<String, String> {
    match line.args {
        None => Ok("{}".into()),
        Some(raw) if raw.get().starts_with('{') => Ok(raw.get().to_owned()),
        Some(_) => Err("`args` is an object".into()),
    }
}

/// A string is its text; anything else is what it was written as.
fn text_of(raw: &RawValue) -> String {
    serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
}

fn title(line: &RawRequest<'_>) -> Result<String, String> {
    let part = |name: &str, raw: Option<&RawValue>| -> Result<String, String> {
        let text: String =
            raw.map(|raw| given::<Option<String>>(name, raw)).transpose()?.flatten().unwrap_or_default();
        Ok(text.lines().next().unwrap_or_default().chars().take(TITLE_CHARS_MAX).collect())
    };
    let (case, prompt) = (part("case_id", line.case_id)?, part("user_prompt", line.user_prompt)?);
    let case = if case.is_empty() { String::new() } else { format!(" {case}") };
    let prompt = if prompt.is_empty() { prompt } else { format!(": {prompt}") };
    Ok(format!("another program's task{case}{prompt}"))
}

fn declared(title: String, raw: Option<&RawValue>) -> Result<Declared, String> {
    let mut declared = Declared { title, ..Declared::default() };
    let Some(raw) = raw else { return Ok(declared) };
    let ToolDeclarations(tools) = given("tools", raw)?;
    for (name, said) in tools {
        if !is_tool_name(&name) {
            declared.remarks.push(format!(
                "`tools`: `{}` is no tool's name: it has letters, digits and `_-./:@+`. It is not declared, so each use is denied",
                name.escape_default()
            ));
            continue;
        }
        let effect = effect(&name, said).unwrap_or_else(|why| {
            let of_it = "It counts as unclear, so each use is asked about";
            declared.remarks.push(format!("`tools`: `{name}`: {why}. {of_it}"));
            ToolEffect::Unclear
        });
        declared.tools.push(Offered { name, effect });
    }
    Ok(declared)
}

/// The effect of a tool, by its declaration or else by its words.
fn effect(name: &str, said: Option<&RawValue>) -> Result<ToolEffect, String> {
    let said = said.map(|said| serde_json::from_str::<RawTool<'_>>(said.get())).transpose();
    let said = said.map_err(|error| error.to_string())?.unwrap_or_default();
    if let Some(effect) = said.effect {
        return tool_effect(&given::<String>("effect", effect)?);
    }
    let description = said.description.map(|text| given::<String>("description", text)).transpose()?;
    Ok(classify(&Described {
        name,
        description: &description.unwrap_or_default(),
        schema: &said.input_schema.map(texts).unwrap_or_default(),
    }))
}

/// All that a schema says, as a reader of JSON reads it: `\ndeletes` is a word, and not another one.
fn texts(schema: &RawValue) -> String {
    fn gather(value: &Value, text: &mut String) {
        match value {
            Value::String(said) => text.push_str(said),
            Value::Array(items) => items.iter().for_each(|item| gather(item, text)),
            Value::Object(fields) => fields.iter().for_each(|(name, field)| {
                text.push_str(name);
                text.push(' ');
                gather(field, text);
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        text.push(' ');
    }
    let mut text = String::new();
    match serde_json::from_str(schema.get()) {
        Ok(value) => gather(&value, &mut text),
        Err(_) => text.push_str(schema.get()),
    }
    text
}

impl<'de: 'a, 'a> Deserialize<'de> for ToolDeclarations<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Gather(std::marker::PhantomData))
    }
}

struct Gather<'a>(std::marker::PhantomData<&'a ()>);

impl<'de: 'a, 'a> de::Visitor<'de> for Gather<'a> {
    type Value = ToolDeclarations<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tools by name")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut tools = BTreeMap::new();
        while let Some((name, said)) = map.next_entry::<String, Option<&'a RawValue>>()? {
            if tools.len() >= TASK_TOOLS_MAX {
                return Err(de::Error::custom(format!("more than {TASK_TOOLS_MAX} tools")));
            }
            if tools.insert(name.clone(), said).is_some() {
                return Err(de::Error::custom(format!("`{}` stands there twice", name.escape_default())));
            }
        }
        Ok(ToolDeclarations(tools))
    }
}

#[cfg(test)]
mod tests;
