//! How one server wants its requests written, where that differs from others of its wire.
//!
//! Servers that are compatible with a wire leave out parameters of it, rename them, or want one more. The
//! only way to know is to ask: they refuse the request and name the parameter. A [`Form`] holds the other
//! form. Bailey sends the refused request once more in that form, and each later request too. The model is
//! told the same in every form.

use crate::{Endpoint, Wire, failure::Complaint, openai, wire::set};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Names of the parameter that limits a reply, by wire: the one that is
/// sent first, and another that servers know.
const LIMITS: [(Wire, &[&str]); 4] = [
    (Wire::Anthropic, &["max_tokens"]),
    (Wire::OpenAiChat, &["max_tokens", "max_completion_tokens", "max_new_tokens"]),
    (Wire::OpenAiResponses, &["max_output_tokens"]),
    (Wire::Gemini, &["maxOutputTokens"]),
];

/// Parameters that change no meaning, so that a server that refuses one is asked without it.
const OPTIONAL: [&str; 9] = [
    "stream_options",
    "store",
    "include",
    "strict",
    "cache_control",
    "truncate",
    "reasoning_content",
    "reasoning_details",
    "reasoning",
];

/// Members that hold data of models and tools: nothing in them is a parameter.
const DATA: [&str; 6] = ["parameters", "parametersJsonSchema", "input_schema", "input", "arguments", "args"];

/// How a server says that something is missing, in lower case.
const MISSING: [&str; 7] = [
    "missing",
    "must be passed",
    "must be provided",
    "required",
    "passed back",
    "expected to have",
    "must have",
];

/// Keywords of a schema (JSON Schema, draft 2020-12) that only narrow it: a tool checks its arguments itself.
const KEYWORDS: [&str; 16] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "default",
    "examples",
    "title",
    "additionalProperties",
    "$schema",
];

/// Words beside a number that make it a limit.
const MOST: [&str; 9] = ["most", "maximum", "<=", "≤", "less than", "range", "between", "up to", " > "];

/// The form that a server was seen to want.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Form {
    /// Parameters that it is not sent.
    without: BTreeSet<&'static str>,
    /// The limit's other name.
    limit_name: Option<&'static str>,
    /// The most tokens of a reply that it lets a request name.
    limit: Option<u32>,
    /// The field that each message of the model's has, if only empty.
    thoughts: Option<&'static str>,
    /// The instruction goes with the first words of the user's: the model's template knows no system.
    no_system: bool,
    no_images: bool,
    /// Each identifier of a call is one that is made here, of nine letters or digits.
    own_ids: bool,
    /// A message of the model's without text has an empty one.
    no_null: bool,
    /// Keywords that the schemas of tools go without.
    without_keywords: BTreeSet<&'static str>,
    /// Words of the server for an end that is one: an answer that ended so came twice.
    ends: BTreeSet<String>,
    /// The most tokens of a request that it took, by its own count.
    took: u64,
    /// The most tokens of a request and its reply, where the server said so.
    window: Option<u64>,
}

impl Form {
    /// The window that the server named when a request was too long.
    pub(crate) fn window(&self) -> Option<u64> {
        self.window
    }

    /// Whether identifiers of calls are made here, whatever came.
    pub(crate) fn makes_ids(&self) -> bool {
        self.own_ids
    }

    /// The server's own words for an end.
    pub(crate) fn ends(&self) -> BTreeSet<String> {
        self.ends.clone()
    }

    /// An answer ended with a word that is not known. It is asked for once more; where it comes again, the
    /// word means an end.
    pub(crate) fn learn_end(&mut self, word: &str) {
        /// A hostile server has no more words than this.
        const ENDS_MAX: usize = 16;
        if !openai::FAILED.contains(&word) && self.ends.len() < ENDS_MAX {
            self.ends.insert(word.into());
        }
    }

    /// The server took a request of so many tokens: its window is larger.
    pub(crate) fn took(&mut self, tokens: u64) {
        self.took = self.took.max(tokens);
    }

    /// The endpoint with the limits that were learned.
    pub(crate) fn bounded(&self, endpoint: &Endpoint) -> Endpoint {
        let quarter = self.window.and_then(|tokens| u32::try_from(tokens / 4).ok());
        let limits = [self.limit, quarter].into_iter().flatten();
        Endpoint {
            max_tokens: limits.fold(endpoint.max_tokens, u32::min),
            takes_images: endpoint.takes_images && !self.no_images,
            ..endpoint.clone()
        }
    }

    /// Writes a request in this form.
    pub(crate) fn write(&self, endpoint: &Endpoint, body: &mut Value) {
        if let (Some(name), Some(body)) = (self.limit_name, body.as_object_mut()) {
            let sent = limit_names(endpoint.wire).iter().find_map(|name| body.remove(*name));
            body.extend(sent.map(|limit| (name.to_owned(), limit)));
        }
        if let (Some(field), Some(messages)) = (self.thoughts, messages(body)) {
            openai::fill(messages, field);
        }
        if self.no_system {
            fold_system(body);
        }
        if let (true, Some(messages)) = (self.no_null, messages(body)) {
            let empty =
                messages.iter_mut().filter(|message| message.get("content").is_some_and(Value::is_null));
            empty.for_each(|message| set(message, "content", ""));
        }
        for tool in body.get_mut("tools").and_then(Value::as_array_mut).into_iter().flatten() {
            self.without_keywords.iter().for_each(|keyword| strip(tool, keyword));
        }
        for name in &self.without {
            leave_out(body, name);
        }
        for (name, value) in &endpoint.parameters {
            let sent = body.as_object_mut().and_then(|body| body.remove(name));
            match (value, sent) {
                (Value::Bool(false), Some(_)) => {}
                (Value::String(other), Some(sent)) => set(body, other, sent),
                (value, _) => set(body, name, value.clone()),
            }
        }
    }

    /// Learns from a refusal. Describes the next request, where it differs from the refused one.
    pub(crate) fn learn(&mut self, endpoint: &Endpoint, complaint: &Complaint) -> Option<String> {
        let text = complaint.text().to_lowercase();
        let words: BTreeSet<&str> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        self.learn_limit(endpoint, &text, &words)
            .or_else(|| self.learn_thoughts(endpoint.wire, &text, &words))
            .or_else(|| self.learn_roles(endpoint, &text, &words))
            .or_else(|| self.learn_calls(endpoint.wire, &text, &words))
            .or_else(|| {
                let is_missing = MISSING.iter().any(|word| text.contains(word));
                let named = |name: &&str| {
                    let is_wanted = is_missing && openai::THOUGHTS.contains(name);
                    words.contains(name) && is_named(&text, name) && !is_wanted
                };
                let name = OPTIONAL.into_iter().filter(named).find(|name| self.without.insert(name))?;
                Some(format!("without `{name}`"))
            })
    }

    /// Learns from a refusal of a request that is too long how long it may be.
    pub(crate) fn learn_window(&mut self, complaint: &Complaint) {
        /// No window is smaller; a smaller number counts something else.
        const WINDOW_MIN: u64 = 512;
        let mut numbers: Vec<u64> = numbers(&complaint.text()).filter(|n| *n >= WINDOW_MIN).collect();
        numbers.sort_unstable();
        numbers.dedup();
        // The largest number is the size that was asked for, and the number below it is
        // the window. A single number is the window.
        let window = match numbers.as_slice() {
            [.., window, _] | [window] if *window > self.took => *window,
            _ => return,
        };
        self.window = Some(self.window.map_or(window, |known| known.min(window)));
    }

    fn learn_limit(&mut self, endpoint: &Endpoint, text: &str, words: &BTreeSet<&str>) -> Option<String> {
        let names = limit_names(endpoint.wire);
        let is_said = |name: &&&str| words.contains(name.to_lowercase().as_str());
        let sent = self.limit_name.or_else(|| openai::limit_name(endpoint)).or(names.first().copied())?;
        if !is_said(&&sent) {
            return None;
        }
        if let Some(other) = names.iter().filter(is_said).find(|name| **name != sent)
            && self.limit_name.is_none()
        {
            self.limit_name = Some(other);
            return Some(format!("with `{other}` in the place of `{sent}`"));
        }
        let limit = self.bounded(endpoint).max_tokens;
        let is_limit = MOST.iter().any(|word| text.contains(word));
        let most = numbers(text)
            .filter(|_| is_limit)
            .filter_map(|n| u32::try_from(n).ok())
            .filter(|n| *n > 1 && *n < limit)
            .max();
        if let Some(most) = most {
            self.limit = Some(most);
            return Some(format!("for at most {most} tokens"));
        }
        let sent = OPTIONAL_LIMITS.into_iter().find(|name| *name == sent)?;
        self.without.insert(sent).then(|| format!("without `{sent}`"))
    }

    fn learn_thoughts(&mut self, wire: Wire, text: &str, words: &BTreeSet<&str>) -> Option<String> {
        let field =
            openai::THOUGHTS.into_iter().find(|field| words.contains(field) && is_named(text, field))?;
        let is_missing = MISSING.iter().any(|word| text.contains(word));
        if wire != Wire::OpenAiChat || !is_missing || self.thoughts.is_some() {
            return None;
        }
        self.thoughts = Some(field);
        self.without.remove(field);
        Some(format!("with `{field}` in each message of the model's"))
    }

    /// Learns how calls, their identifiers and the schemas of tools are to be written.
    fn learn_calls(&mut self, wire: Wire, text: &str, words: &BTreeSet<&str>) -> Option<String> {
        let is_of_ids = words.contains("id") || words.contains("tool_call_id") || words.contains("call_id");
        if is_of_ids && (text.contains("length") || text.contains("must be a-z")) && !self.own_ids {
            self.own_ids = true;
            return Some("with short identifiers of calls".into());
        }
        let no_null = ["nil", "null", "none", "string", "str", "nonetype"];
        let is_null = words.contains("content") && no_null.into_iter().any(|word| words.contains(word));
        if wire == Wire::OpenAiChat && is_null && !self.no_null {
            self.no_null = true;
            return Some("with an empty text in the place of none".into());
        }
        let named = |keyword: &&str| {
            let keyword = keyword.to_lowercase();
            let is_plain = !keyword.starts_with(['m', 'e', 'u', '$']) || keyword == "examples";
            words.contains(keyword.trim_start_matches('$')) && (!is_plain || is_named(text, &keyword))
        };
        let is_of_schemas =
            ["schema", "tool", "function", "keyword", "propert"].iter().any(|word| text.contains(word));
        let keyword = KEYWORDS
            .into_iter()
            .filter(named)
            .find(|keyword| is_of_schemas && self.without_keywords.insert(keyword))?;
        Some(format!("without `{keyword}` in the schemas of tools"))
    }

    fn learn_roles(&mut self, endpoint: &Endpoint, text: &str, words: &BTreeSet<&str>) -> Option<String> {
        let refused = ["support", "not allowed", "unknown", "invalid", "unexpected"];
        let is_refused = refused.iter().any(|word| text.contains(word));
        let says = |word| words.contains(word) && is_refused;
        if endpoint.wire == Wire::OpenAiChat && says("system") && says("role") && !self.no_system {
            self.no_system = true;
            return Some("with the instruction in the first message of the user's".into());
        }
        // Also one that is damaged, or too large: it would be refused in each later request.
        let pictures = ["image", "images", "image_url", "input_image", "picture", "pictures", "multimodal"];
        if endpoint.takes_images && !self.no_images && pictures.into_iter().any(|word| words.contains(word)) {
            self.no_images = true;
            return Some("without pictures".into());
        }
        None
    }
}

/// Takes a keyword out of all schemas of a tool. A property that has the same name is none.
fn strip(schema: &mut Value, keyword: &str) {
    let Some(members) = schema.as_object_mut() else {
        return schema.as_array_mut().into_iter().flatten().for_each(|schema| strip(schema, keyword));
    };
    let is_schema = members.contains_key("type") || members.contains_key("anyOf");
    // The wrapper of a tool has a type, too, and a name beside it.
    if is_schema && !members.contains_key("function") && !members.contains_key("name") {
        members.remove(keyword);
    }
    for (name, member) in members {
        match name.as_str() {
            "properties" | "$defs" => {
                member.as_object_mut().into_iter().flatten().for_each(|(_, schema)| strip(schema, keyword));
            }
            "function"
            | "functionDeclarations"
            | "parameters"
            | "parametersJsonSchema"
            | "input_schema"
            | "items"
            | "anyOf"
            | "oneOf"
            | "allOf"
            | "additionalProperties" => strip(member, keyword),
            _ => {}
        }
    }
}

/// Limits that a server may be asked without: it has one of its own.
const OPTIONAL_LIMITS: [&str; 3] = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

fn limit_names(wire: Wire) -> &'static [&'static str] {
    LIMITS.iter().find(|(of, _)| *of == wire).map_or(&[], |(_, names)| names)
}

/// Whether a word stands there as a parameter's name: names of several words are nothing else; one word is
/// quoted or has a place before it, as in `messages.2.reasoning`.
fn is_named(text: &str, name: &str) -> bool {
    let quoted = ["'", "\"", "`", "."].iter().any(|before| text.contains(&format!("{before}{name}")));
    name.contains('_') || quoted
}

fn numbers(text: &str) -> impl Iterator<Item = u64> {
    let text = text.replace([',', '_'], "\u{0}");
    let parts = text.split(|c: char| !c.is_ascii_digit() && c != '\0').map(str::to_owned).collect::<Vec<_>>();
    // A separator of thousands stands before three digits.
    parts.into_iter().flat_map(|part| {
        let groups: Vec<&str> = part.split('\0').filter(|group| !group.is_empty()).collect();
        let is_one = groups.len() > 1 && groups.iter().skip(1).all(|group| group.len() == 3);
        let whole =
            if is_one { vec![groups.concat()] } else { groups.into_iter().map(str::to_owned).collect() };
        whole.into_iter().filter_map(|digits| digits.parse().ok())
    })
}

fn messages(body: &mut Value) -> Option<&mut Vec<Value>> {
    body.get_mut("messages").and_then(Value::as_array_mut)
}

fn fold_system(body: &mut Value) {
    let Some(messages) = messages(body) else { return };
    let is_system = messages.first().is_some_and(|message| message.get("role") == Some(&json!("system")));
    if !is_system {
        return;
    }
    let instruction = messages.remove(0).get_mut("content").map(Value::take).unwrap_or_default();
    let Some(content) = messages.first_mut().and_then(|message| message.get_mut("content")) else { return };
    match (content, instruction) {
        (Value::String(text), Value::String(instruction)) => *text = format!("{instruction}\n\n{text}"),
        (Value::Array(parts), instruction) => parts.insert(0, json!({ "type": "text", "text": instruction })),
        _ => {}
    }
}

/// Takes a parameter out, wherever the wire has it.
fn leave_out(body: &mut Value, name: &str) {
    match body {
        Value::Object(members) => {
            members.remove(name);
            members.iter_mut().filter(|(name, _)| !DATA.contains(&name.as_str())).for_each(|(_, member)| {
                leave_out(member, name);
            });
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| leave_out(element, name)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
