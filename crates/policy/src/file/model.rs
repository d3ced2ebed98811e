//! The model of a rule file. Every value is checked where it is read, so that the parsers, which know where
//! they are, can say the place of a mistake.

use super::{
    example::ExampleCase,
    groups::{Hosts, Repository},
    mistake::TextPosition,
};
use crate::{
    Trust,
    command::CommandPrefix,
    condition::Condition,
    glob::Glob,
    host::Method,
    rule::{Answer, Rule, Tier},
    tool::ToolGlob,
    unit,
    url::UrlGlob,
};
use bailey_protocol::{Kind, MergeKind, Role, ToolEffect, spell::meant};
use core::{fmt, marker::PhantomData};
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};
use std::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

/// A rule with its examples, and where they stand.
pub(super) struct Placed {
    pub(super) at: TextPosition,
    pub(super) rule: Rule,
    pub(super) examples: Vec<(TextPosition, Answer, ExampleCase)>,
}

/// What a file says.
#[derive(Default)]
pub(super) struct Read {
    pub(super) compliance: bool,
    pub(super) rules: Vec<Placed>,
}

/// Reads TOML.
pub(super) fn toml(text: &str) -> Result<Read, (TextPosition, String)> {
    type Spanned<T> = toml::Spanned<T>;
    let file: RawFile<Spanned<RawRule<Spanned<RawExample>>>> = toml::from_str(text).map_err(|error| {
        let at = TextPosition::of(text, error.span().map_or(0, |span| span.start));
        (at, error.message().replace('\n', ", "))
    })?;
    let placed = |rule: Spanned<RawRule<Spanned<RawExample>>>| {
        let at = TextPosition::of(text, rule.span().start);
        rule.into_inner().placed(at, |example: Spanned<RawExample>| {
            (TextPosition::of(text, example.span().start), example.into_inner())
        })
    };
    Ok(Read { compliance: file.compliance, rules: file.rule.into_iter().map(placed).collect() })
}

/// Reads YAML, within the parser's own budgets for aliases, depth and events.
pub(super) fn yaml(text: &str) -> Result<Read, (TextPosition, String)> {
    type Spanned<T> = serde_saphyr::Spanned<T>;
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Read::default());
    }
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let place =
        |at: serde_saphyr::Location| TextPosition { line: number(at.line()), column: number(at.column()) };
    let file: RawFile<Spanned<RawRule<Spanned<RawExample>>>> =
        serde_saphyr::from_str(text).map_err(|error| {
            let at = error.location().map_or(TextPosition { line: 1, column: 1 }, place);
            (at, yaml_message(&error))
        })?;
    let example = |example: Spanned<RawExample>| (place(example.referenced), example.value);
    let rules = file.rule.into_iter().map(|rule| rule.value.placed(place(rule.referenced), example));
    Ok(Read { compliance: file.compliance, rules: rules.collect() })
}

/// What is wrong, in the same words as TOML's parser; the place is told elsewhere.
fn yaml_message(error: &serde_saphyr::Error) -> String {
    let error = error.without_snippet();
    if let serde_saphyr::Error::SerdeUnknownField { field, expected, .. } = error {
        return format!("unknown field `{field}`, expected one of `{}`", expected.join("`, `"));
    }
    let message = error.to_string();
    // Who wrote `*.key` meant no alias.
    if message.contains("unknown anchor") {
        return "what begins with `*` stands in quotes in YAML, as in `\"*.key\"`".into();
    }
    message.rsplit_once(" at line ").map_or(message.as_str(), |(said, _)| said).to_string()
}

/// A file; `R` is a rule together with its place, as the parser at hand tells it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile<R> {
    /// The organisation's alone.
    #[serde(default)]
    compliance: bool,
    #[serde(default = "Vec::new", alias = "rules")]
    rule: Vec<R>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule<E> {
    name: Word<Name>,
    answer: Word<Answer>,
    #[serde(rename = "match")]
    matches: Checked,
    #[serde(default)]
    except: Excepts,
    #[serde(default, deserialize_with = "present")]
    reason: Option<Word<Reason>>,
    #[serde(default, deserialize_with = "present")]
    tier: Option<Word<Tier>>,
    #[serde(default)]
    priority: Priority,
    #[serde(default = "Examples::none")]
    examples: Examples<E>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Examples<E> {
    #[serde(default = "Vec::new")]
    allow: Vec<E>,
    #[serde(default = "Vec::new")]
    ask: Vec<E>,
    #[serde(default = "Vec::new")]
    deny: Vec<E>,
}

impl<E> Examples<E> {
    fn none() -> Self {
        Self { allow: Vec::new(), ask: Vec::new(), deny: Vec::new() }
    }
}

impl<E> RawRule<E> {
    fn placed(mut self, at: TextPosition, place: impl Fn(E) -> (TextPosition, RawExample)) -> Placed {
        let Examples { allow, ask, deny } = std::mem::replace(&mut self.examples, Examples::none());
        let lists = [(allow, Answer::Allow), (ask, Answer::Review), (deny, Answer::Deny)];
        let examples = lists.into_iter().flat_map(|(list, expected)| {
            list.into_iter().map(&place).map(move |(at, example)| (at, expected, example.0))
        });
        Placed { at, examples: examples.collect(), rule: self.into() }
    }
}

impl<E> From<RawRule<E>> for Rule {
    fn from(raw: RawRule<E>) -> Self {
        let name = raw.name.0.0;
        Self {
            text: raw.reason.map_or_else(|| format!("rule `{name}`"), |reason| reason.0.0),
            name,
            tier: raw.tier.map_or(Tier::User, |tier| tier.0),
            priority: raw.priority.0,
            answer: raw.answer.0,
            matches: raw.matches.0,
            except: raw.except.0.into_iter().map(|except| except.0).collect(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCondition {
    #[serde(default, deserialize_with = "present")]
    action: Option<OneOrMany<Kind>>,
    #[serde(default, deserialize_with = "present")]
    path: Option<OneOrMany<Glob>>,
    #[serde(default, deserialize_with = "present")]
    host: Option<OneOrMany<Hosts>>,
    #[serde(default, deserialize_with = "present")]
    method: Option<OneOrMany<Method>>,
    #[serde(default, deserialize_with = "present")]
    url_path: Option<OneOrMany<UrlGlob>>,
    #[serde(default, deserialize_with = "present")]
    repository: Option<OneOrMany<Repository>>,
    #[serde(default, deserialize_with = "present")]
    command: Option<OneOrMany<CommandPrefix>>,
    #[serde(default, deserialize_with = "present")]
    tool: Option<OneOrMany<ToolGlob>>,
    #[serde(default, deserialize_with = "present")]
    effect: Option<OneOrMany<ToolEffect>>,
    #[serde(default, deserialize_with = "present")]
    role: Option<OneOrMany<Roles>>,
    #[serde(default, deserialize_with = "present")]
    trust: Option<OneOrMany<Trust>>,
    #[serde(default, deserialize_with = "present")]
    tag: Option<OneOrMany<Name>>,
    #[serde(default, deserialize_with = "present")]
    mode: Option<OneOrMany<Name>>,
    #[serde(default, deserialize_with = "present")]
    state: Option<OneOrMany<Name>>,
    #[serde(default, deserialize_with = "present")]
    network: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    direction: Option<OneOrMany<MergeKind>>,
    #[serde(default, deserialize_with = "present")]
    revealed: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    max_size: Option<Size>,
    #[serde(default, deserialize_with = "present")]
    max_wall: Option<Word<Time>>,
    #[serde(default, deserialize_with = "present")]
    max_memory: Option<Size>,
}

/// A condition whose fields can stand together.
#[derive(Deserialize)]
#[serde(try_from = "RawCondition")]
struct Checked(Condition);

impl TryFrom<RawCondition> for Checked {
    type Error = &'static str;

    fn try_from(raw: RawCondition) -> Result<Self, &'static str> {
        let repositories: Option<Vec<UrlGlob>> =
            raw.repository.map(|list| list.0.into_iter().flat_map(|it| it.0).collect());
        let method = match (raw.method.map(|list| list.0), &repositories) {
            // Other methods write, also where git asks: a server of files takes `PUT` for what it means.
            (None, Some(_)) => Some(Method::of_git()),
            (Some(methods), Some(_)) if !methods.iter().all(|own| Method::of_git().contains(own)) => {
                return Err("`repository` beside another method: git fetches with `GET` and `POST`");
            }
            (methods, _) => methods,
        };
        let url_path = match (raw.url_path.map(|list| list.0), repositories) {
            // Both are globs of URLs: joined, either would fit, where all other fields have to fit together.
            (Some(_), Some(_)) => {
                return Err(
                    "`url_path` and `repository` in one condition: both are paths of URLs, so write two \
                            rules, or two tables in `except`",
                );
            }
            (paths, repositories) => paths.or(repositories),
        };
        Ok(Self(Condition {
            action: raw.action.map(|list| list.0),
            path: raw.path.map(|list| list.0),
            host: raw.host.map(|list| list.0.into_iter().flat_map(|hosts| hosts.0).collect()),
            method,
            url_path,
            command: raw.command.map(|list| list.0),
            tool: raw.tool.map(|list| list.0),
            effect: raw.effect.map(|list| list.0),
            role: raw.role.map(|list| list.0.into_iter().flat_map(|roles| roles.0).collect()),
            trust: raw.trust.map(|list| list.0),
            tag: raw.tag.map(names),
            mode: raw.mode.map(names),
            state: raw.state.map(names),
            network: raw.network,
            direction: raw.direction.map(|list| list.0),
            revealed: raw.revealed,
            // It is for the built-in rule alone.
            marks: None,
            max_size: raw.max_size.map(|size| size.0),
            max_wall: raw.max_wall.map(|time| time.0.0),
            max_memory: raw.max_memory.map(|size| size.0),
        }))
    }
}

fn names(list: OneOrMany<Name>) -> Vec<String> {
    list.0.into_iter().map(|name| name.0).collect()
}

/// A field that is written must have a value: `path:` with nothing behind it is a mistake in YAML, not the
/// absence of a condition.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// What is written as a string.
pub(super) trait Spelled: Sized {
    /// What it is, for a message.
    const WHAT: &'static str;
    /// Reads it, or says what is wrong with it.
    fn read(text: &str) -> Result<Self, String>;
}

/// One string.
struct Word<T>(T);

/// A string or a list of strings.
struct OneOrMany<T>(Vec<T>);

/// One table or a list of tables.
#[derive(Default)]
struct Excepts(Vec<Checked>);

#[derive(Default)]
struct Priority(i16);

/// One role, or all of them.
struct Roles(Vec<Role>);

struct Size(u64);
struct Time(u64);
struct Name(String);
struct Reason(String);

struct Visit<T>(PhantomData<T>);

impl<'de, T: Spelled> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visit::<Self>(PhantomData))
    }
}

impl<T: Spelled> Visitor<'_> for Visit<Word<T>> {
    type Value = Word<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WHAT)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        T::read(text).map(Word).map_err(E::custom)
    }
}

impl<'de, T: Spelled> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visit::<Self>(PhantomData))
    }
}

impl<'de, T: Spelled> Visitor<'de> for Visit<OneOrMany<T>> {
    type Value = OneOrMany<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} or a list of them", T::WHAT)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        T::read(text).map(|value| OneOrMany(vec![value])).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Word(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(OneOrMany(values))
    }
}

impl<'de> Deserialize<'de> for Excepts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visit::<Self>(PhantomData))
    }
}

impl<'de> Visitor<'de> for Visit<Excepts> {
    type Value = Excepts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table or a list of tables")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Checked::deserialize(de::value::MapAccessDeserializer::new(map)).map(|one| Excepts(vec![one]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(de::value::SeqAccessDeserializer::new(list)).map(Excepts)
    }
}

/// A line, or a table whose `do` is the line.
struct RawExample(ExampleCase);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExampleTable {
    #[serde(rename = "do")]
    line: String,
    #[serde(default, deserialize_with = "present")]
    role: Option<Word<Role>>,
    #[serde(default)]
    network: bool,
}

impl<'de> Deserialize<'de> for RawExample {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visit::<Self>(PhantomData))
    }
}

impl<'de> Visitor<'de> for Visit<RawExample> {
    type Value = RawExample;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a line such as `read src/main.rs`, or a table with `do`, `role` and `network`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        ExampleCase::new(text, None, false).map(RawExample).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let table = RawExampleTable::deserialize(de::value::MapAccessDeserializer::new(map))?;
        let role = table.role.map(|role| role.0);
        ExampleCase::new(&table.line, role, table.network).map(RawExample).map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visit::<Self>(PhantomData))
    }
}

impl Visitor<'_> for Visit<Size> {
    type Value = Size;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as `10 MiB`, or a number of bytes")
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Size, E> {
        Ok(Size(bytes))
    }

    fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Size, E> {
        u64::try_from(bytes).map(Size).map_err(|_| E::custom(format!("size `{bytes}` is negative")))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
        unit::size(text).map(Size).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Priority {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let priority = i16::deserialize(deserializer)?;
        if (-1000..=1000).contains(&priority) {
            Ok(Self(priority))
        } else {
            Err(de::Error::custom(format!("priority `{priority}` is not between -1000 and 1000")))
        }
    }
}

impl Spelled for Time {
    const WHAT: &'static str = "a time with its unit, such as `10 m`";
    fn read(text: &str) -> Result<Self, String> {
        unit::time(text).map(Self).map_err(|error| error.to_string())
    }
}

impl Spelled for Name {
    const WHAT: &'static str = "a name";
    fn read(text: &str) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if text.is_empty() || text.len() > 100 || !text.chars().all(plain) {
            return Err("a name has 1 to 100 letters, digits, `-`, `_` and `.`".to_string());
        }
        Ok(Self(text.to_string()))
    }
}

impl Spelled for Reason {
    const WHAT: &'static str = "one line of text";
    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.len() > 500 || text.chars().any(char::is_control) {
            return Err("a reason is one line of at most 500 bytes".to_string());
        }
        Ok(Self(text.to_string()))
    }
}

impl Spelled for Glob {
    const WHAT: &'static str = "a path glob";
    fn read(text: &str) -> Result<Self, String> {
        Self::new(text).map_err(|error| format!("`{text}`: {error}"))
    }
}

impl Spelled for Method {
    const WHAT: &'static str = "a method of HTTP";
    fn read(text: &str) -> Result<Self, String> {
        Self::new(text).map_err(|error| error.to_string())
    }
}

impl Spelled for UrlGlob {
    const WHAT: &'static str = "a path of URLs";
    fn read(text: &str) -> Result<Self, String> {
        Self::new(text).map_err(|error| format!("`{text}`: {error}"))
    }
}

impl Spelled for CommandPrefix {
    const WHAT: &'static str = "a program, with or without arguments";
    fn read(text: &str) -> Result<Self, String> {
        Self::new(text).map_err(|error| error.to_string())
    }
}

impl Spelled for ToolGlob {
    const WHAT: &'static str = "a tool's name, with or without `*`";
    fn read(text: &str) -> Result<Self, String> {
        Self::new(text).map_err(|error| error.to_string())
    }
}

impl Spelled for ToolEffect {
    const WHAT: &'static str = "what a tool does";
    fn read(text: &str) -> Result<Self, String> {
        choose("effect", text, Self::NAMED.map(|effect| (effect.name(), effect)))
    }
}

impl Spelled for Kind {
    const WHAT: &'static str = "an action";
    fn read(text: &str) -> Result<Self, String> {
        choose("action", text, Self::ALL.map(|kind| (kind.name(), kind)))
    }
}

impl Spelled for Roles {
    const WHAT: &'static str = "a role, or `*` for all of them";
    fn read(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self(Role::ALL.into()));
        }
        Role::read(text).map(|role| Self(vec![role]))
    }
}

impl Spelled for Role {
    const WHAT: &'static str = "a role";
    fn read(text: &str) -> Result<Self, String> {
        choose("role", text, Self::ALL.map(|role| (role.name(), role)))
    }
}

impl Spelled for Trust {
    const WHAT: &'static str = "a tier of trust";
    fn read(text: &str) -> Result<Self, String> {
        choose("tier of trust", text, Self::ALL.map(|trust| (trust.name(), trust)))
    }
}

impl Spelled for MergeKind {
    const WHAT: &'static str = "a direction";
    fn read(text: &str) -> Result<Self, String> {
        choose("direction", text, [("apply", Self::Apply), ("undo", Self::Undo), ("discard", Self::Discard)])
    }
}

impl Spelled for Answer {
    const WHAT: &'static str = "an answer";
    fn read(text: &str) -> Result<Self, String> {
        if text == "ask" {
            return Err("unknown answer `ask`: a rule that has you asked answers `review`".into());
        }
        let text = if text == "require_review" { Self::Review.name() } else { text };
        choose("answer", text, [Self::Allow, Self::Review, Self::Deny, Self::Pass].map(|it| (it.name(), it)))
    }
}

impl Spelled for Tier {
    const WHAT: &'static str = "a tier";
    fn read(text: &str) -> Result<Self, String> {
        let tier = choose("tier", text, Self::ALL.map(|tier| (tier.name(), tier)))?;
        if tier.binds() {
            return Err(format!(
                "tier `{text}` cannot be claimed by a file: leave it out, or write `project` or `session`"
            ));
        }
        Ok(tier)
    }
}

pub(super) fn choose<T>(
    what: &str,
    text: &str,
    choices: impl IntoIterator<Item = (&'static str, T)>,
) -> Result<T, String> {
    let mut names = Vec::new();
    for (name, value) in choices {
        if name == text {
            return Ok(value);
        }
        names.push(name);
    }
    let hint = match meant(text, names.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there are `{}`", names.join("`, `")),
    };
    Err(format!("unknown {what} `{text}`: {hint}"))
}
