//! Where the values of an action came from, for whoever is asked about it: each is looked for in what the
//! person wrote and in what came in during this session, as the journal has it. A value that stands in
//! neither is the model's own, or was put together of pieces; the card says that it was not found, and no
//! more.

use crate::{Kernel, Paper, Refused};
use bailey_journal::{Fact, Recorded};
use bailey_protocol::{
    Action, Blob, CallId, Command, Effect, EffectId, Integrity, Kind, Origin, OriginKind, Role, Seq,
    SessionId, ToolSpec, action,
};
use bailey_secrets::Redactor;
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

/// A shorter value stands anywhere, and says nothing.
const VALUE_CHARS_MIN: usize = 8;
/// Values that are shown, of those that were found and of those that were not.
const SHOWN_MAX: usize = 24;
/// Bytes that are looked through for all values of an action, each text as often as something is looked for
/// in it.
const WORK_BYTES_MAX: usize = 4 << 30;
/// Bytes of all texts that are looked through, the newest first.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// Characters of a value, or of a command, that are named.
const NAMED_CHARS_MAX: usize = 72;

/// The plain names of the tool by which models ask a sub-agent.
const DELEGATING: [&str; 2] = ["agent_run", "task"];

/// And of those by which they look at what runs in the background.
const ATTENDING: [&str; 2] = ["process_log", "process_stop"];

const NOT_FOUND: &str = "not found in anything you wrote or it read: the model's own words";

const NOT_AMONG_THE_NEWEST: &str =
    "not found in the newest 16 MiB of what you wrote and it read; what is older was not looked through";

/// A value of an action: as a whole, and by its parts where it is not found as a whole.
struct Value {
    whole: String,
    parts: Vec<String>,
}

/// A text of the session, and what brought it.
struct SessionText<'a> {
    entry: Seq,
    kind: OriginKind,
    words: String,
    text: Cow<'a, str>,
}

impl Kernel {
    /// Where the values of what a tool call came to came from; of what the owner does, nothing is said.
    pub(crate) async fn origins(&self, effect: &Effect) -> Result<Vec<Origin>, Refused> {
        if effect.call.is_none() {
            return Ok(Vec::new());
        }
        let values = values(&effect.action);
        let redactor = self.journal().redactor().clone();
        let (entries, is_all) = self.journal().sources(effect.session, TEXT_BYTES_MAX).await?;
        let found = tokio::task::spawn_blocking(move || {
            let mut search = Search { is_all, ..Search::new(sources(&entries), &redactor, WORK_BYTES_MAX) };
            values.iter().for_each(|value| search.value(value));
            search.origins()
        });
        found.await.map_err(|error| Refused::Failed(format!("where it came from cannot be told: {error}")))
    }
}

impl Value {
    fn new(whole: &str) -> Self {
        Self { whole: whole.trim().into(), parts: Vec::new() }
    }

    /// The longest line of a text.
    fn line(text: &str) -> Self {
        let longest = text.lines().map(str::trim).max_by_key(|line| line.chars().count());
        Self::new(longest.unwrap_or_default())
    }
}

/// What values are looked for in, and what came of it.
struct Search<'a> {
    sources: Vec<SessionText<'a>>,
    redactor: &'a Redactor,
    /// Bytes of all texts, and how many may still be looked through.
    bytes: usize,
    left: usize,
    /// Values and parts that there were to look for, and those that were looked for.
    all: usize,
    looked_for: usize,
    found: Vec<Origin>,
    /// Values that were not found, or not all of them.
    missing: Vec<String>,
    /// Whether no text is older than those.
    is_all: bool,
}

impl<'a> Search<'a> {
    fn new(sources: Vec<SessionText<'a>>, redactor: &'a Redactor, work: usize) -> Self {
        let bytes = sources.iter().map(|source| source.text.len()).sum();
        let (found, missing) = (Vec::new(), Vec::new());
        Self { sources, redactor, bytes, left: work, all: 0, looked_for: 0, found, missing, is_all: true }
    }

    fn value(&mut self, Value { whole, parts }: &Value) {
        if self.finds(whole) {
            return;
        }
        let mut value = named(&self.redactor.redact(whole).text);
        for part in parts {
            if self.finds(part) {
                value = "the rest".into();
            }
        }
        if is_telling(whole) {
            self.missing.push(value);
        }
    }

    fn finds(&mut self, value: &str) -> bool {
        if !is_telling(value) {
            return false;
        }
        self.all += 1;
        let Some(left) = self.left.checked_sub(self.bytes) else { return false };
        self.left = left;
        self.looked_for += 1;
        // What is in the journal has no secret in it.
        let value = self.redactor.redact(value).text;
        let found = find(&value, &self.sources).map(|source| source.origin(&value));
        self.found.extend(found.clone());
        found.is_some()
    }

    /// What came from outside first: nothing that a person wrote pushes it away.
    fn origins(self) -> Vec<Origin> {
        let Self { mut found, mut missing, all, looked_for, is_all, .. } = self;
        found.sort_by_key(|origin| rank(origin.kind));
        let more = found.get(SHOWN_MAX).map(|first| Origin {
            value: format!("{} more", found.len() - SHOWN_MAX),
            kind: first.kind,
            words: format!("not shown; the first of them: {}", first.words),
            entry: first.entry,
        });
        found.truncate(SHOWN_MAX);
        found.extend(more);
        let others = missing.len().saturating_sub(SHOWN_MAX);
        missing.truncate(SHOWN_MAX);
        if others > 0 {
            missing.push(format!("{others} more"));
        }
        let words = match looked_for == all {
            true if is_all => NOT_FOUND.into(),
            true => NOT_AMONG_THE_NEWEST.into(),
            false => format!("not found, but only {looked_for} of {all} values and words were looked for"),
        };
        let not_found = |value| Origin { value, kind: OriginKind::Model, words: words.clone(), entry: None };
        found.extend(missing.into_iter().map(not_found));
        found
    }
}

fn rank(kind: OriginKind) -> u8 {
    match kind {
        OriginKind::File | OriginKind::Command | OriginKind::Web | OriginKind::Peer => 0,
        OriginKind::Message | OriginKind::Project | OriginKind::Agent => 1,
        OriginKind::Person | OriginKind::Model => 2,
    }
}

impl SessionText<'_> {
    fn origin(&self, value: &str) -> Origin {
        Origin { value: named(value), kind: self.kind, words: self.words.clone(), entry: Some(self.entry) }
    }
}

fn is_telling(value: &str) -> bool {
    value.chars().count() >= VALUE_CHARS_MIN
}

/// The first text that has it; a person's before all others.
fn find<'a>(value: &str, sources: &'a [SessionText<'a>]) -> Option<&'a SessionText<'a>> {
    if !is_telling(value) {
        return None;
    }
    let has = |source: &&SessionText<'_>| source.text.contains(value);
    let persons = sources.iter().filter(|source| source.kind == OriginKind::Person);
    persons.clone().find(has).or_else(|| sources.iter().find(has))
}

/// The values of an action that are looked for.
fn values(action: &Action) -> Vec<Value> {
    let of = |value| match value {
        action::Value::Word(text) => vec![Value::new(text)],
        action::Value::Text(text) => vec![Value::line(text)],
        action::Value::Content(content) => vec![Value::line(&content.lossy())],
        action::Value::Path(path) => of_path(&path.0),
        action::Value::Command(command) => of_command(command),
        action::Value::Settings { old, new } => of_settings(old, new),
    };
    action.values().into_iter().flat_map(of).collect()
}

/// The lines of a file of settings that are new, each without its name and its quotes.
fn of_settings(old: Option<&Blob>, new: Option<&Blob>) -> Vec<Value> {
    let text = |blob: Option<&Blob>| blob.map(|blob| blob.lossy().into_owned()).unwrap_or_default();
    let (old, new) = (text(old), text(new));
    let old: BTreeSet<&str> = old.lines().collect();
    let lines = new.lines().filter(|line| !old.contains(line));
    let inner = |line: &str| {
        let (_, rest) = line.split_once('"')?;
        rest.rsplit_once('"').map(|(value, _)| Value::new(value))
    };
    lines.filter_map(inner).collect()
}

fn of_command(command: &Command) -> Vec<Value> {
    let line = command.line();
    let is_edge = |c: char| "'\"`;|&<>(){}$".contains(c);
    let words = line.split_whitespace().flat_map(|word| {
        let word = word.trim_matches(is_edge);
        // `--url=VALUE`, `NAME=VALUE`.
        [Some(word), word.split_once('=').map(|(_, value)| value.trim_matches(is_edge))]
    });
    let parts: BTreeSet<String> =
        words.flatten().filter(|word| is_telling(word)).map(str::to_owned).collect();
    let whole = Value { whole: line.trim().into(), parts: parts.into_iter().collect() };
    let variables = command.env.values().map(|value| Value::new(value));
    let input = command.stdin.as_ref().map(|stdin| Value::line(&stdin.lossy()));
    [whole].into_iter().chain(variables).chain(input).collect()
}

/// A path, by its name where it stands nowhere as a whole: what was read may have named it otherwise.
fn of_path(path: &str) -> Vec<Value> {
    let name = path.rsplit('/').next().unwrap_or(path).to_owned();
    vec![Value { whole: path.into(), parts: vec![name] }]
}

/// The texts of a session, the oldest first, each with what brought it.
fn sources(entries: &[Recorded]) -> Vec<SessionText<'_>> {
    let mut done = ActionIndex::default();
    let mut found = Vec::new();
    for recorded in entries {
        done.begin(recorded);
        let source = source_of(recorded, &done);
        done.end(recorded);
        if let Some((kind, words)) = source {
            let text = String::from_utf8_lossy(recorded.payload.as_deref().unwrap_or_default());
            let (text, quoted) = if kind == OriginKind::Person { apart(text) } else { (text, None) };
            let quote = quoted.map(|text| SessionText {
                entry: recorded.entry.seq,
                kind: OriginKind::Message,
                words: "quoted in a message, and not the words of whoever sent it".into(),
                text: text.into(),
            });
            found.extend(quote);
            found.push(SessionText { entry: recorded.entry.seq, kind, words, text });
        }
    }
    found
}

/// A person's own words, and what they quote as mail does: that is somebody's whom they answer, who may be
/// anybody.
fn apart(text: Cow<'_, str>) -> (Cow<'_, str>, Option<String>) {
    let is_quote = |line: &&str| line.starts_with('>');
    if !text.lines().any(|line| is_quote(&line)) {
        return (text, None);
    }
    let (quoted, own): (Vec<&str>, Vec<&str>) = text.lines().partition(is_quote);
    let quoted: Vec<&str> = quoted.iter().map(|line| line.trim_start_matches(['>', ' '])).collect();
    (own.join("\n").into(), Some(quoted.join("\n")))
}

/// The kind and the target of the action that each effect began, and each call that has no result yet, by its
/// conversation.
#[derive(Default)]
struct ActionIndex<'a> {
    calls: BTreeMap<(Option<SessionId>, &'a CallId), (Kind, &'a str)>,
    effects: BTreeMap<EffectId, (Kind, &'a str)>,
}

impl<'a> ActionIndex<'a> {
    fn begin(&mut self, recorded: &'a Recorded) {
        let entry = &recorded.entry;
        let Fact::Intent { call: Some(call), kind, target, payer, .. } = &entry.fact else { return };
        let begun = (*kind, target.as_str());
        self.effects.extend(entry.effect.map(|effect| (effect, begun)));
        // A sub-agent, whose conversation pays, numbers its calls for itself.
        let key = (payer.or(entry.session), call);
        // What is written after something was read or fetched tells of that: its result may quote it.
        if kind.brings_content() {
            self.calls.insert(key, begun);
        } else {
            self.calls.entry(key).or_insert(begun);
        }
    }

    /// Another reply may call its calls the same.
    fn end(&mut self, recorded: &'a Recorded) {
        if let Fact::Observation { call, waits: None, .. } = &recorded.entry.fact {
            self.calls.remove(&(recorded.entry.session, call));
        }
    }
}

/// Whether a tool, however the model wrote its name, is one of these.
fn is_one_of(names: &[&str], written: &str) -> bool {
    names.contains(&ToolSpec::plain_name(written).as_str())
}

/// What brought the text of an entry, where it is one that brings something in. A refused call brought
/// nothing, and what a change brings back by itself is what was written.
fn source_of(recorded: &Recorded, done: &ActionIndex<'_>) -> Option<(OriginKind, String)> {
    let (session, effect) = (recorded.entry.session, recorded.entry.effect);
    match &recorded.entry.fact {
        Fact::Accepted { by: Some(by), labels, .. } => Some(match (by.role, labels.integrity) {
            (Role::Guest, _) => (OriginKind::Message, format!("{} wrote it", by.line())),
            (_, Integrity::External) => {
                (OriginKind::Message, format!("a message of {} with somebody else's words in it", by.line()))
            }
            _ => (OriginKind::Person, format!("{} wrote it", by.line())),
        }),
        Fact::Accepted { by: None, labels, .. } if labels.integrity == Integrity::External => {
            Some((OriginKind::Message, "your message, or what was piped in with it".into()))
        }
        Fact::Accepted { by: None, .. } | Fact::Pinned { .. } => {
            Some((OriginKind::Person, "you wrote it".into()))
        }
        Fact::Offered { .. } => Some((OriginKind::Peer, "a peer's description of its tools".into())),
        Fact::Guide { path, own: true, .. } => {
            let who = match path.0.rsplit('/').next() {
                Some(name) if name == Paper::Identity.name() => "Bailey wrote of itself",
                Some(name) if Paper::ALL.iter().any(|paper| paper.name() == name) => "you wrote",
                _ => "you or an earlier session wrote",
            };
            let words = format!("{path}, which {who}");
            Some((OriginKind::File, words))
        }
        Fact::Guide { path, .. } => {
            Some((OriginKind::Project, format!("the project's own {path}, which the model was shown")))
        }
        Fact::Observation { tool, waits: None, .. } if is_one_of(&DELEGATING, tool) => {
            Some((OriginKind::Agent, "what a sub-agent answered, whatever it had read".into()))
        }
        // The end of one is told of its effect.
        Fact::Observation { tool, waits: None, .. } if effect.is_none() && is_one_of(&ATTENDING, tool) => {
            Some((OriginKind::Command, "what a process in the background printed".into()))
        }
        Fact::Observation { call, waits: None, .. } => {
            let begun = effect.and_then(|effect| done.effects.get(&effect));
            let (kind, target) = begun.or_else(|| done.calls.get(&(session, call)))?;
            let target = named(target);
            match kind {
                Kind::Exec => Some((OriginKind::Command, format!("the output of `{target}`"))),
                Kind::Read => Some((OriginKind::File, format!("the file {target}, read in this session"))),
                Kind::Http => Some((OriginKind::Web, format!("the answer of {target}"))),
                Kind::Tool => Some((OriginKind::Peer, format!("the result of the tool {target}"))),
                kind if kind.brings_content() => {
                    Some((OriginKind::File, format!("what was found in {target}")))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// A value as a line can name it: its ends, where it is long.
fn named(value: &str) -> String {
    let count = value.chars().count();
    if count <= NAMED_CHARS_MAX {
        return value.into();
    }
    let half = NAMED_CHARS_MAX / 2;
    let head: String = value.chars().take(half).collect();
    let tail: String = value.chars().skip(count - half).collect();
    format!("{head} … {} characters … {tail}", count - 2 * half)
}

#[cfg(test)]
mod tests {
    use super::{
        ATTENDING, Action, DELEGATING, NOT_FOUND, OriginKind, Search, Seq, SessionText, Value, is_one_of,
        values,
    };
    use bailey_protocol::{HeaderValue, HttpRequest};
    use bailey_secrets::Redactor;

    #[test]
    fn what_stands_in_a_header_is_a_value_and_a_key_is_none() {
        let key = HeaderValue::Secret { name: "A_KEY".into(), prefix: "Bearer ".into() };
        let headers = vec![("x-to".into(), HeaderValue::Text("over there".into())), ("x-key".into(), key)];
        let request = HttpRequest {
            method: "POST".into(),
            url: "http://e.com/".into(),
            headers,
            body: b"words\nlonger words".to_vec().into(),
        };
        let all: Vec<String> = values(&Action::Http(request)).into_iter().map(|value| value.whole).collect();
        assert_eq!(all, ["http://e.com/", "longer words", "over there"]);
    }

    #[test]
    fn a_tool_is_known_however_a_model_writes_its_name() {
        for written in ["process_log", "process.log", "Process_Log", " PROCESS.LOG "] {
            assert!(is_one_of(&ATTENDING, written), "{written}");
        }
        assert!(is_one_of(&DELEGATING, "Agent.Run") && !is_one_of(&DELEGATING, "fs_read"));
    }

    #[test]
    fn what_was_not_looked_for_is_not_said_to_be_nowhere() {
        let redactor = Redactor::default();
        let value =
            Value { whole: "deploy it".into(), parts: (0..9).map(|n| format!("argument-{n}")).collect() };
        let words = |work: usize| {
            let (kind, words, text) = (OriginKind::Web, "the answer".into(), "argument-8".into());
            let sources = vec![SessionText { entry: Seq(1), kind, words, text }];
            let mut search = Search::new(sources, &redactor, work);
            search.value(&value);
            search.origins().into_iter().map(|it| it.words).collect::<Vec<_>>()
        };
        assert_eq!(words(1_000), ["the answer", NOT_FOUND]);
        assert_eq!(words(50), ["not found, but only 5 of 10 values and words were looked for"]);
    }
}
