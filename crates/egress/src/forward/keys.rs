//! Keys that the door puts in: a command has a stand-in, which means nothing anywhere, and the door replaces
//! it where the owner bound the key to: at one server, for some methods and paths, in one header.
//!
//! A stand-in in any other place is refused, in whatever spelling; so is what has the name of a login beside
//! a key, or at a server that has a key of the owner's: whoever brings an account of their own there would
//! carry out what they like. That goes by lists of names, and no server has to keep to them. What comes back
//! is looked through, so that a server which shows what it was sent gives no key away.

use super::headers::{OF_THE_CONNECTION, OLDER, is_override};
use crate::{
    ConfigError,
    config::{Origin, canonical},
};
use bailey_kernel::{Pass, StandIn};
use bailey_policy::{Method, UrlGlob};
use bailey_protocol::Digest;
use bailey_secrets::{Redactor, Secret, StreamRedactor, Vault};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::{
    HeaderMap, Uri,
    header::{self, HeaderName, HeaderValue},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Words in the name of a header or a part of a query by which somebody logs in, without marks between them.
/// What servers call a login is theirs to say: these lists hold the usual names, and no list holds all.
const LOGINS: [&str; 37] = [
    "accesskey",
    "adminkey",
    "apikey",
    "appkey",
    "authentic",
    "authkey",
    "authoriz",
    "authtoken",
    "clientcert",
    "clientkey",
    "credential",
    "forwardedemail",
    "forwardedgroup",
    "forwardedpreferred",
    "forwardeduser",
    "functionskey",
    "impersonat",
    "masterkey",
    "oauth",
    "onbehalfof",
    "passcode",
    "passphrase",
    "passw",
    "privatekey",
    "remotegroup",
    "remoteuser",
    "secret",
    "servicekey",
    "session",
    "sharedkey",
    "signature",
    "sslcert",
    "sslclient",
    "subscriptionkey",
    "token",
    "userkey",
    "webauth",
];
/// Whole names of that kind, alike.
const LOGIN_NAMES: [&str; 5] = ["appid", "doas", "secwebsocketprotocol", "xauth", "xjfrogartapi"];
/// Words of that kind that others hold (`author`, `monkey`): such a word stands by itself in a name, as in
/// `X-Master-Key` or `userPass`.
const LOGIN_WORDS: [&str; 17] = [
    "assertion",
    "auth",
    "bearer",
    "dpop",
    "jwt",
    "key",
    "login",
    "logon",
    "pass",
    "passwd",
    "pat",
    "pwd",
    "sig",
    "signin",
    "sudo",
    "ticket",
    "wsse",
];
/// Words beside which one of them is none, before it or behind it: what clients of registries and APIs send,
/// and lists go on by.
const NO_LOGIN_BESIDE: [(&str, &[&str]); 5] = [
    ("auth", &["type"]),
    (
        "key",
        &[
            "by",
            "cache",
            "component",
            "end",
            "field",
            "filter",
            "foreign",
            "group",
            "id",
            "idempotency",
            "index",
            "issue",
            "last",
            "marker",
            "next",
            "object",
            "or",
            "order",
            "page",
            "partition",
            "prefix",
            "previous",
            "primary",
            "project",
            "public",
            "row",
            "sort",
            "start",
            "surrogate",
            "type",
            "websocket",
            "word",
            "words",
        ],
    ),
    ("login", &["after", "before", "last"]),
    ("pass", &["through"]),
    ("ticket", &["field", "form", "id", "ids", "number", "type"]),
];
/// Whole names that only sound like one.
const NO_LOGINS: [&str; 1] = ["npmsession"];
/// The words of names that say where a list goes on, and what such names end with: `nextPageToken`,
/// `x-ms-continuation-token`.
const LIST_WORDS: [&str; 10] =
    ["continuation", "cursor", "end", "exclusive", "last", "next", "page", "previous", "start", "sync"];
const LIST_ENDS: [&str; 4] = ["token", "key", "tokens", "keys"];
/// Parts of a query that are a login together: the user and the password of some; a `p` by itself is a page.
const LOGIN_TOGETHER: [&str; 2] = ["u", "p"];

/// A key, and where it is put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundKey {
    /// The name of the secret.
    pub secret: String,
    /// The variable of commands that holds its stand-in.
    pub variable: String,
    /// A URL of the server: scheme, host and port count.
    pub at: String,
    /// What it may be used for.
    pub methods: Vec<Method>,
    /// Where on that server.
    pub paths: Vec<UrlGlob>,
    /// The header that it stands in.
    pub header: String,
    /// What else that header holds.
    pub form: KeyForm,
}

impl BoundKey {
    /// What names it, with where it is put in and its value, to whoever holds both, and tells nobody else
    /// what it is. Whoever does not know `salt` cannot compare it with another one's name.
    #[must_use]
    pub fn name(&self, value: &Secret, salt: &str) -> Digest {
        let Self { secret, variable, at, methods, paths, header, form } = self;
        // Neither has a line's end in it.
        let methods: Vec<&str> = methods.iter().map(Method::as_str).collect();
        let paths: Vec<String> = paths.iter().map(UrlGlob::to_string).collect();
        let (methods, paths) = (methods.join("\n"), paths.join("\n"));
        let (kind, of_form) = match form {
            KeyForm::Prefixed(prefix) => ("prefixed", prefix),
            KeyForm::Basic(user) => ("basic", user),
        };
        let parts =
            ["key", salt, value.expose(), secret, variable, at, &methods, &paths, header, kind, of_form];
        Digest::of_parts(&parts.map(str::as_bytes))
    }
}

/// How a key stands in its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyForm {
    /// Behind a prefix such as `Bearer `, or none.
    Prefixed(String),
    /// As the password of this user (RFC 7617).
    Basic(String),
}

/// Why a request gets no key, for whoever reads it inside.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Misused {
    #[error(
        "it shows the stand-in of {secret} where that is not put in, or in another form than it has there. The owner bound this key to: \
         {places}"
    )]
    Elsewhere { secret: String, places: String },
    #[error("`{0}` takes the owner's key and no other login (`{1}`), neither beside it nor in its place")]
    OtherLogin(Origin, String),
    #[error("the key {0} is not there: its owner sets it with `bailey secrets set {0}`")]
    Missing(String),
    #[error(
        "the key {0}, or where it is bound, was changed or taken away since this session was opened: what is its owner's now is there once the \
         session is opened anew"
    )]
    Gone(String),
    #[error(
        "the key {0} is too short or too plain to be found again in an answer that shows it, so it is not put in"
    )]
    Weak(String),
    #[error("the key {0} cannot stand in a header")]
    Unsendable(String),
}

/// The keys, with what stands for them in this process's commands.
pub(super) struct Keys {
    bindings: Vec<Binding>,
    /// By the name of the secret.
    stand_ins: BTreeMap<String, Watched>,
    vault: Arc<Vault>,
    /// What finds the keys of a server in what comes from there: to make it takes longer than a small
    /// request.
    masks: Vec<(Origin, Redactor)>,
    /// Finds every stand-in in what passes; none where there are no keys.
    watch: Option<Redactor>,
}

struct Binding {
    key: BoundKey,
    origin: Origin,
    header: HeaderName,
    /// Whether it is its owner's no more.
    is_gone: AtomicBool,
}

/// A stand-in, and what finds it in any spelling.
struct Watched {
    value: String,
    finder: Redactor,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({} bindings)", self.bindings.len())
    }
}

impl Keys {
    /// Keys of this vault. Each gets a stand-in of 128 random bits.
    pub(super) fn new(keys: Vec<BoundKey>, vault: Arc<Vault>) -> Result<Self, ConfigError> {
        let bindings: Vec<Binding> = keys.into_iter().map(Binding::new).collect::<Result<_, _>>()?;
        let mut stand_ins = BTreeMap::new();
        for name in bindings.iter().map(|binding| &binding.key.secret) {
            if !stand_ins.contains_key(name) {
                stand_ins.insert(name.clone(), Watched::new(name)?);
            }
        }
        let watch = (!stand_ins.is_empty())
            .then(|| finder(stand_ins.iter().map(|(name, own)| (name.as_str(), own.value.as_str()))));
        let mut masks: Vec<(Origin, Redactor)> = Vec::new();
        for binding in &bindings {
            if !masks.iter().any(|(origin, _)| *origin == binding.origin) {
                masks.push((binding.origin.clone(), mask_of(&binding.origin, &bindings, &vault)));
            }
        }
        Ok(Self { bindings, stand_ins, vault, masks, watch })
    }

    /// Puts in no more what is not named here as it is held.
    pub(super) fn keep(&self, salt: &str, named: &BTreeSet<Digest>) {
        for binding in &self.bindings {
            let held = self.vault.get(&binding.key.secret);
            if held.is_some_and(|held| !named.contains(&binding.key.name(held, salt))) {
                binding.is_gone.store(true, Ordering::Relaxed);
            }
        }
    }

    /// What a command finds in its variables.
    pub(super) fn shown(&self) -> Vec<StandIn> {
        let shown = |binding: &Binding| {
            let value = self.stand_ins.get(&binding.key.secret)?.value.clone();
            let user = match &binding.key.form {
                KeyForm::Basic(user) => Some((binding.origin.to_string(), user.clone())),
                KeyForm::Prefixed(_) => None,
            };
            Some(StandIn { variable: binding.key.variable.clone(), value, user })
        };
        self.bindings.iter().filter_map(shown).collect()
    }

    /// What finds a stand-in in a body as it passes.
    pub(super) fn watch(&self) -> Option<StreamRedactor> {
        #[cfg(feature = "controls")]
        if bailey_protocol::broken::broken("bodies") {
            return None;
        }
        self.watch.as_ref().map(Redactor::stream)
    }

    /// Whether a stand-in is anywhere in a body that is there as a whole.
    pub(super) fn are_in(&self, body: &[u8]) -> bool {
        self.watch().is_some_and(|mut watch| {
            drop(watch.push(body));
            watch.found()
        })
    }

    /// Whether a server has a key of the owner's.
    pub(super) fn are_at(&self, origin: &Origin) -> bool {
        self.bindings.iter().any(|binding| binding.origin == *origin)
    }

    /// Which key a request is to get, by the name of its secret; none where it shows no stand-in.
    pub(super) fn wanted(
        &self,
        method: &str,
        url: &str,
        headers: &HeaderMap,
    ) -> Result<Option<String>, Misused> {
        if self.bindings.is_empty() {
            return Ok(None);
        }
        let uri: Option<Uri> = url.parse().ok();
        let found = self.bindings.iter().find(|binding| {
            binding.covers(method, url)
                && self
                    .stand_ins
                    .get(&binding.key.secret)
                    .is_some_and(|own| binding.is_shown(&own.value, headers))
        });
        let rest = || headers.iter().filter(|(name, _)| found.is_none_or(|found| found.header != **name));
        let texts = || rest().map(|(_, value)| value.as_bytes()).chain([url.as_bytes()]);
        for (secret, own) in &self.stand_ins {
            #[cfg(feature = "controls")]
            if bailey_protocol::broken::broken("stand_ins") {
                break;
            }
            if texts().any(|text| own.is_in(text)) {
                let places = self.places(secret);
                return Err(Misused::Elsewhere { secret: secret.clone(), places });
            }
        }
        if let Some(origin) = uri.as_ref().and_then(Origin::of).filter(|origin| self.are_at(origin)) {
            let is_bound = |name: &str| {
                self.bindings
                    .iter()
                    .any(|own| own.origin == origin && is_same_name(own.header.as_str(), name))
            };
            let by_header =
                rest().map(|(name, _)| name.as_str()).find(|name| is_login(name) || is_bound(name));
            let by_query = || uri.as_ref().and_then(Uri::query).and_then(login_in);
            if let Some(login) = by_header.map(str::to_owned).or_else(by_query) {
                return Err(Misused::OtherLogin(origin, login));
            }
        }
        Ok(found.map(|binding| binding.key.secret.clone()))
    }

    /// What finds the keys that are bound to a server, in what comes from there: also where this very request
    /// has none, for a server may show to one what another sent. None where no key is bound.
    pub(super) fn mask_of(&self, origin: &Origin) -> Option<Redactor> {
        #[cfg(feature = "controls")]
        if bailey_protocol::broken::broken("answers") {
            return None;
        }
        self.masks.iter().find(|(of, _)| of == origin).map(|(_, mask)| mask.clone())
    }

    /// Puts the key of this name in the place of its stand-in, for a request that its binding covers.
    pub(super) fn put_in(
        &self,
        secret: &str,
        method: &str,
        url: &str,
        headers: &mut HeaderMap,
    ) -> Result<(), Misused> {
        let elsewhere = || Misused::Elsewhere { secret: secret.to_owned(), places: self.places(secret) };
        let own = self.stand_ins.get(secret).ok_or_else(elsewhere)?;
        // What was judged when it was asked for is judged again where the key is at hand.
        let bound = |binding: &&Binding| {
            binding.key.secret == secret
                && binding.covers(method, url)
                && binding.is_shown(&own.value, headers)
        };
        let mut bound = self.bindings.iter().filter(bound).peekable();
        bound.peek().ok_or_else(elsewhere)?;
        let gone = || Misused::Gone(secret.to_owned());
        let binding = bound.find(|binding| !binding.is_gone.load(Ordering::Relaxed)).ok_or_else(gone)?;
        let missing = || Misused::Missing(secret.to_owned());
        let value = self.vault.get(secret).ok_or_else(missing)?.expose().trim();
        if !finder([(secret, value)].into_iter()).unmatched().is_empty() {
            return Err(Misused::Weak(secret.to_owned()));
        }
        let text = binding.key.form.with(value);
        let mut text = HeaderValue::from_str(&text).map_err(|_| Misused::Unsendable(secret.to_owned()))?;
        text.set_sensitive(true);
        headers.insert(binding.header.clone(), text);
        Ok(())
    }

    /// Where the owner bound a key, for a person.
    fn places(&self, secret: &str) -> String {
        let of = self.bindings.iter().filter(|binding| binding.key.secret == secret);
        of.map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }
}

impl Watched {
    fn new(secret: &str) -> Result<Self, ConfigError> {
        let letters: String = secret
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
            .collect();
        let bits = Pass::random().map_err(|error| ConfigError::NoStandIn(error.to_string()))?;
        let value = format!("bailey-{letters}-{}", bits.expose());
        let finder = finder([(secret, value.as_str())].into_iter());
        Ok(Self { value, finder })
    }

    fn is_in(&self, text: &[u8]) -> bool {
        let mut stream = self.finder.stream();
        drop(stream.push(text));
        stream.found()
    }
}

/// Whether a key can stand in a header of this name.
#[must_use]
pub fn is_key_header(name: &str) -> bool {
    header_of(name).is_some()
}

/// The header of this name, where it is none that the door removes or sets itself.
fn header_of(name: &str) -> Option<HeaderName> {
    HeaderName::from_bytes(name.as_bytes()).ok().filter(|name| {
        !OF_THE_CONNECTION.contains(name)
            && !OLDER.contains(&name.as_str())
            && !is_override(name)
            && ![header::COOKIE, header::ACCEPT_ENCODING].contains(name)
    })
}

impl Binding {
    fn new(key: BoundKey) -> Result<Self, ConfigError> {
        let origin = key.at.parse().ok().as_ref().and_then(Origin::of);
        let origin = origin.ok_or_else(|| ConfigError::NoOrigin(key.at.clone()))?;
        let origin = Origin { host: canonical(&origin.host), ..origin };
        let header = header_of(&key.header).ok_or_else(|| ConfigError::NoHeader(key.header.clone()))?;
        Ok(Self { key, origin, header, is_gone: AtomicBool::default() })
    }

    /// Whether it is for such a request.
    fn covers(&self, method: &str, url: &str) -> bool {
        let origin = url.parse().ok().as_ref().and_then(Origin::of);
        #[cfg(feature = "controls")]
        if bailey_protocol::broken::broken("key_places") {
            return origin.as_ref() == Some(&self.origin);
        }
        origin.as_ref() == Some(&self.origin)
            && self.key.methods.iter().any(|own| own.as_str() == method)
            && self.key.paths.iter().any(|own| own.is_match(url))
    }

    /// Whether its header is there once, and holds just the stand-in.
    fn is_shown(&self, stand_in: &str, headers: &HeaderMap) -> bool {
        let mut shown = headers.get_all(&self.header).iter();
        let first = shown.next().and_then(|value| value.to_str().ok());
        first.is_some_and(|text| self.key.form.is(text, stand_in)) && shown.next().is_none()
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let methods: Vec<&str> = self.key.methods.iter().map(Method::as_str).collect();
        let paths: Vec<String> = self.key.paths.iter().map(UrlGlob::to_string).collect();
        let form = self.key.form.with("KEY");
        let form = if let KeyForm::Basic(user) = &self.key.form { format!("Basic {user}:KEY") } else { form };
        write!(f, "{} {} {}, `{}: {form}`", methods.join("/"), self.origin, paths.join(" "), self.header)
    }
}

impl KeyForm {
    /// The value of its header.
    fn with(&self, key: &str) -> String {
        match self {
            Self::Prefixed(prefix) => format!("{prefix}{key}"),
            Self::Basic(user) => format!("Basic {}", STANDARD.encode(format!("{user}:{key}"))),
        }
    }

    /// Whether a header has this key's value. The name of a scheme has no case (RFC 9110, 11.1).
    fn is(&self, text: &str, key: &str) -> bool {
        let own = self.with(key);
        match own.split_once(' ') {
            Some((scheme, value)) => text.split_once(' ').is_some_and(|(given, rest)| {
                given.eq_ignore_ascii_case(scheme) && rest.trim_start() == value
            }),
            None => text == own,
        }
    }
}

/// What finds the keys that are bound to a server, in any spelling.
fn mask_of(origin: &Origin, bindings: &[Binding], vault: &Vault) -> Redactor {
    let mut values = Vec::new();
    for binding in bindings.iter().filter(|binding| binding.origin == *origin) {
        let name = &binding.key.secret;
        let Some(value) = vault.get(name).map(|secret| secret.expose().trim()) else { continue };
        values.push((name.clone(), value.to_owned()));
        if let KeyForm::Basic(user) = &binding.key.form {
            values.push((format!("{name}-{user}"), STANDARD.encode(format!("{user}:{value}"))));
        }
    }
    finder(values.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

/// What finds these values in any spelling, and nothing else.
fn finder<'a>(values: impl Iterator<Item = (&'a str, &'a str)>) -> Redactor {
    let values: Vault =
        values.map(|(name, value)| (name.to_owned(), Secret::new(value.to_owned()))).collect();
    Redactor::of_values(&values)
}

/// Whether somebody logs in by what has this name, as far as names tell.
fn is_login(name: &str) -> bool {
    let words = words_of(name);
    let bare = words.concat();
    if NO_LOGINS.contains(&bare.as_str()) || goes_on(&bare) {
        return false;
    }
    LOGINS.iter().any(|word| bare.contains(word))
        || LOGIN_NAMES.contains(&bare.as_str())
        || LOGIN_WORDS.contains(&bare.as_str())
        || (0..words.len()).any(|at| is_login_word(&words, at))
}

/// Whether the word at this place of a name is one by which somebody logs in.
fn is_login_word(words: &[String], at: usize) -> bool {
    // `key2` is one, too.
    let bare = |at: usize| words.get(at).map(|word| word.trim_matches(|c: char| c.is_ascii_digit()));
    let Some(word) = bare(at).filter(|word| LOGIN_WORDS.contains(word)) else { return false };
    let beside = [at.checked_sub(1).and_then(bare), bare(at + 1)];
    let none = NO_LOGIN_BESIDE.iter().find(|(of, _)| *of == word).map_or(&[][..], |(_, none)| none);
    !beside.into_iter().flatten().any(|word| none.contains(&word))
}

/// Whether a name says where a list goes on, and nothing else.
fn goes_on(bare: &str) -> bool {
    let own = ["xms", "x"].iter().find_map(|begin| bare.strip_prefix(begin)).unwrap_or(bare);
    let mut rest = LIST_ENDS.iter().find_map(|end| own.strip_suffix(end)).unwrap_or(own);
    let is_any = !rest.is_empty();
    while let Some(less) = LIST_WORDS.iter().find_map(|word| rest.strip_prefix(word)) {
        rest = less;
    }
    is_any && rest.is_empty()
}

/// The words of a name, in lower case: between marks, and where small letters become a capital or several
/// capitals a word.
fn words_of(name: &str) -> Vec<String> {
    let chars: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| chars.get(at));
        let is_small = |c: Option<&char>| c.is_some_and(char::is_ascii_lowercase);
        let is_capital = |c: Option<&char>| c.is_some_and(char::is_ascii_uppercase);
        let begins =
            is_capital(Some(c)) && (is_small(before) || is_capital(before) && is_small(chars.get(at + 1)));
        if begins || !c.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_ascii_alphanumeric()) {
            word.push(c.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Many servers take a `_` in the name of a header for a `-`.
fn is_same_name(one: &str, other: &str) -> bool {
    one.replace('_', "-") == other.replace('_', "-")
}

/// The name in a query by which somebody logs in.
fn login_in(query: &str) -> Option<String> {
    let names: Vec<String> =
        query.split(['&', ';']).map(|pair| decoded(pair.split('=').next().unwrap_or_default())).collect();
    let together = || {
        LOGIN_TOGETHER
            .iter()
            .all(|one| names.iter().any(|name| name.eq_ignore_ascii_case(one)))
            .then(|| LOGIN_TOGETHER.join("` and `"))
    };
    names.iter().find(|name| is_login(name)).cloned().or_else(together)
}

/// A name without percent signs, as far as it can be read.
fn decoded(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let [first, tail @ ..] = rest {
        let digit = |at: usize| tail.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
                rest = tail.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
