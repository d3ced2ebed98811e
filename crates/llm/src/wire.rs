//! The wires, and what they write alike.

use bailey_protocol::{Digest, Image, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{borrow::Cow, collections::BTreeMap};

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// Anthropic's Messages API, version 2023-06-01.
    Anthropic,
    /// OpenAI's Chat Completions API and the many servers that are compatible with it.
    OpenAiChat,
    /// OpenAI's Responses API.
    OpenAiResponses,
    /// Google's Gemini API, version v1beta.
    Gemini,
    /// Ollama's own API.
    Ollama,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Anthropic, Self::OpenAiChat, Self::OpenAiResponses, Self::Gemini, Self::Ollama];

    /// Its name in recorded messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAiChat => "open-ai-chat",
            Self::OpenAiResponses => "open-ai-responses",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Its name in config.toml, and so where people read of it.
    #[must_use]
    pub fn setting(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic | Self::Gemini | Self::Ollama => self.name(),
        }
    }

    /// Where the calls of a message of this wire's stand: the list, and the member of each element that is
    /// the call; `None` where the element is the call.
    fn place_of_calls(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Anthropic => ("/content", None),
            Self::OpenAiChat | Self::Ollama => ("/message/tool_calls", None),
            Self::OpenAiResponses => ("/items", None),
            Self::Gemini => ("/content/parts", Some("functionCall")),
        }
    }

    fn is_call(self, element: &Value) -> bool {
        match self {
            Self::Anthropic => word(element, "type") == "tool_use",
            Self::OpenAiChat | Self::Ollama => true,
            Self::OpenAiResponses => word(element, "type") == "function_call",
            Self::Gemini => element.get("functionCall").is_some(),
        }
    }

    /// The calls of a message of this wire's, in order.
    pub(crate) fn calls(self, verbatim: &Value) -> impl Iterator<Item = &Value> {
        let (list, member) = self.place_of_calls();
        let elements = verbatim.pointer(list).and_then(Value::as_array).into_iter().flatten();
        elements
            .filter(move |element| self.is_call(element))
            .map(move |element| member.and_then(|member| element.get(member)).unwrap_or(element))
    }

    /// The same message with these identifiers and names of its calls, and with arguments that are an object.
    /// Most have all of that already, and are lent.
    pub(crate) fn with_calls<'a, 'b>(
        self,
        verbatim: &'a Value,
        calls: impl Iterator<Item = (&'b str, &'b str)>,
    ) -> Cow<'a, Value> {
        let (id_field, arguments_field) = match self {
            Self::Anthropic => ("id", "input"),
            Self::OpenAiChat | Self::Ollama => ("id", "arguments"),
            Self::OpenAiResponses => ("call_id", "arguments"),
            Self::Gemini => ("id", "args"),
        };
        let function_of = |call: &'a Value| match self {
            Self::OpenAiChat | Self::Ollama => call.get("function").unwrap_or(&Value::Null),
            _ => call,
        };
        let mut whole = Cow::Borrowed(verbatim);
        for (place, (id, name)) in calls.enumerate() {
            let Some(call) = self.calls(verbatim).nth(place) else { continue };
            // A call without an identifier, as from some servers of Gemini's and
            // Ollama's wires, goes back without one.
            let has_id = call.get(id_field).is_some() || self == Self::OpenAiChat;
            let other_id = (has_id && word(call, id_field) != id).then(|| id.to_owned());
            let function = function_of(call);
            let other_name = (word(function, "name") != name).then(|| name.to_owned());
            let other_arguments = self.as_object(function.get(arguments_field));
            if other_id.is_none() && other_name.is_none() && other_arguments.is_none() {
                continue;
            }
            let Some(call) = self.calls_mut(whole.to_mut()).nth(place) else { continue };
            other_id.into_iter().for_each(|id| set(call, id_field, id));
            let function = match self {
                Self::OpenAiChat | Self::Ollama => call.get_mut("function"),
                _ => Some(call),
            };
            let Some(function) = function else { continue };
            other_name.into_iter().for_each(|name| set(function, "name", name));
            other_arguments.into_iter().for_each(|arguments| set(function, arguments_field, arguments));
        }
        whole
    }

    /// Arguments as the object, or the text of one, that this wire
    /// demands; `None` where they are that already.
    fn as_object(self, arguments: Option<&Value>) -> Option<Value> {
        let is_text = matches!(self, Self::OpenAiChat | Self::OpenAiResponses);
        match arguments.unwrap_or(&Value::Null) {
            Value::Object(_) if !is_text => None,
            Value::String(text) if is_text => match input_text(text) {
                Cow::Borrowed(_) => None,
                Cow::Owned(other) => Some(other.into()),
            },
            Value::String(text) => Some(input(text)),
            Value::Null if is_text => Some("{}".into()),
            Value::Null => Some(serde_json::json!({})),
            other if is_text => Some(input(&other.to_string()).to_string().into()),
            other => Some(input(&other.to_string())),
        }
    }

    fn calls_mut(self, verbatim: &mut Value) -> impl Iterator<Item = &mut Value> {
        let (list, member) = self.place_of_calls();
        let elements = verbatim.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        elements.filter(move |element| self.is_call(element)).filter_map(move |element| match member {
            Some(member) => element.get_mut(member),
            None => Some(element),
        })
    }
}

/// What a model is told of a tool.
pub(crate) fn description(tool: &ToolSpec) -> String {
    match (tool.summary.trim(), tool.description.trim()) {
        (summary, "") => summary.into(),
        ("", description) => description.into(),
        (summary, description) => format!("{summary}\n{description}"),
    }
}

/// A picture as a URL that holds it (RFC 2397).
pub(crate) fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.kind().media_type(), image.base64())
}

/// An identifier for a call that came without one, made from what is there: the same bytes give the same one,
/// and other replies another.
pub(crate) fn made_id(reply: &str, place: usize, name: &str, arguments: &str) -> String {
    let parts = [reply.as_bytes(), &place.to_be_bytes(), name.as_bytes(), arguments.as_bytes()];
    format!("call_{}", Digest::of_parts(&parts).short())
}

/// A call's arguments as the object that all wires demand. Text that is no object is kept inside one, so that
/// the model sees its own words.
pub(crate) fn input(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(object @ Value::Object(_)) => object,
        _ if arguments.trim().is_empty() => serde_json::json!({}),
        _ => serde_json::json!({ "unreadable_arguments": arguments }),
    }
}

/// The same as text, byte for byte as it came where it is an object.
pub(crate) fn input_text(arguments: &str) -> Cow<'_, str> {
    match serde_json::from_str::<BTreeMap<Cow<'_, str>, serde::de::IgnoredAny>>(arguments) {
        Ok(_) => arguments.into(),
        Err(_) => input(arguments).to_string().into(),
    }
}

/// Sets a field of an object.
pub(crate) fn set(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Some(object) = object.as_object_mut() {
        object.insert(name.into(), value.into());
    }
}

/// The text of a field; empty where there is none.
pub(crate) fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The elements of a field that is a list; none where it is not.
pub(crate) fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// The count in a field.
pub(crate) fn count(value: &Value, name: &str) -> Option<u64> {
    value.get(name).and_then(Value::as_u64)
}
