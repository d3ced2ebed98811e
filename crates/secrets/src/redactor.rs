//! The redactor: known secrets and credentials of known shapes, replaced by marks.

use crate::{
    OwnShape, Vault, known, mark,
    patterns::Patterns,
    scan::Scan,
    shape::{SHAPES, Shape},
};
use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, OnceLock},
};
use zeroize::Zeroizing;

/// Bytes scanned at a time, so that the lists of candidates stay small however long the input.
const WINDOW: usize = 64 << 10;

/// Replaces secrets by marks. Clones share everything; the patterns are built at the first use.
#[derive(Clone)]
pub struct Redactor {
    inner: Arc<SecretSet>,
}

/// The secrets that a redactor looks for.
struct SecretSet {
    values: Vec<(String, Zeroizing<String>)>,
    unmatched: Vec<String>,
    shapes: Vec<Shape>,
    patterns: OnceLock<Arc<Patterns>>,
}

/// A text without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<'a> {
    /// The text, borrowed where nothing was found.
    pub text: Cow<'a, str>,
    /// Marks that were written.
    pub hits: usize,
    /// Bytes of the input that the marks stand for.
    pub covered: usize,
}

impl Redactor {
    /// A redactor for every value of the vault that is strong enough (the rule stands in the module `known`:
    /// 8 to 8,192 bytes, 20 bits of entropy, not one class of characters unless 16 long, no run, no
    /// well-known password, no part of a mark) and for every known shape.
    #[must_use]
    pub fn new(vault: &Vault) -> Self {
        Self::with_shapes(vault, &[])
    }

    /// The same, for credentials of the owner's own kinds, too.
    #[must_use]
    pub fn with_shapes(vault: &Vault, own: &[OwnShape]) -> Self {
        Self::of(vault, SHAPES.iter().chain(own.iter().map(|own| &own.0)).cloned().collect())
    }

    /// One that knows the values of the vault that are strong enough, in each spelling, and no shapes.
    #[must_use]
    pub fn of_values(vault: &Vault) -> Self {
        Self::of(vault, Vec::new())
    }

    fn of(vault: &Vault, shapes: Vec<Shape>) -> Self {
        let ids = shapes.iter().map(|shape| &*shape.id);
        let marks: Vec<String> = vault.names().chain(ids).map(mark::mark).collect();
        let (mut values, mut unmatched) = (Vec::new(), Vec::new());
        for (name, secret) in vault.iter() {
            let value = secret.expose().trim();
            if known::is_strong(value) && !marks.iter().any(|mark| mark.contains(value)) {
                values.push((name.to_owned(), Zeroizing::new(value.to_owned())));
            } else {
                unmatched.push(name.to_owned());
            }
        }
        Self { inner: Arc::new(SecretSet { values, unmatched, shapes, patterns: OnceLock::new() }) }
    }

    /// The names of secrets that are too weak to be matched exactly; the owner should know.
    #[must_use]
    pub fn unmatched(&self) -> &[String] {
        &self.inner.unmatched
    }

    /// Whether a mark of this name can stand for a value that is matched exactly, and not for a shape alone.
    #[must_use]
    pub fn has_value(&self, mark: &str) -> bool {
        self.inner.values.iter().any(|(name, _)| mark::marks(&mark::mark(name)).next() == Some(mark))
    }

    /// The text without secrets.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Redacted<'a> {
        let Some((bytes, stream)) = self.replace(text.as_bytes()) else {
            return Redacted { text: Cow::Borrowed(text), hits: 0, covered: 0 };
        };
        // Known values and shapes begin and end at character boundaries, so nothing is lossy here.
        let text =
            String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into());
        Redacted { text: Cow::Owned(text), hits: stream.hits, covered: stream.covered }
    }

    /// Any bytes without secrets.
    #[must_use]
    pub fn redact_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        self.replace(bytes).map_or(Cow::Borrowed(bytes), |(bytes, _)| Cow::Owned(bytes))
    }

    /// What stood before a cut, without secrets and without its last bytes: a secret may have been cut in two
    /// there. Always as many are left out, whatever they are: to leave out only what begins like a secret
    /// would confirm guesses, one character at a time.
    #[must_use]
    pub fn redact_before_cut(&self, bytes: &[u8]) -> Vec<u8> {
        let mut clean = self.redact_bytes(bytes).into_owned();
        clean.truncate(clean.len().saturating_sub(self.patterns().margin()));
        clean
    }

    /// What stood after a cut, without secrets and without its first bytes; see
    /// [`redact_before_cut`](Self::redact_before_cut).
    #[must_use]
    pub fn redact_after_cut(&self, bytes: &[u8]) -> Vec<u8> {
        let clean = self.redact_bytes(bytes);
        clean.get(self.patterns().margin()..).unwrap_or_default().to_vec()
    }

    /// The most bytes that a stream holds back, whatever they are.
    #[must_use]
    pub fn hold_max(&self) -> usize {
        self.patterns().hold_max()
    }

    /// A redactor for a stream that comes in pieces.
    #[must_use]
    pub fn stream(&self) -> StreamRedactor {
        StreamRedactor { scan: Scan::new(self.patterns()) }
    }

    /// `None` when nothing was found.
    fn replace(&self, bytes: &[u8]) -> Option<(Vec<u8>, Scan)> {
        let patterns = self.patterns();
        if patterns.is_clean(bytes) {
            return None;
        }
        let mut scan = Scan::new(patterns);
        let mut out = Vec::with_capacity(bytes.len());
        bytes.chunks(WINDOW).for_each(|window| scan.push(window, false, &mut out));
        scan.push(&[], true, &mut out);
        (scan.hits > 0).then_some((out, scan))
    }

    fn patterns(&self) -> Arc<Patterns> {
        let values = || self.inner.values.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let shapes = || self.inner.shapes.clone();
        Arc::clone(self.inner.patterns.get_or_init(|| Arc::new(Patterns::new(values(), shapes()))))
    }
}

/// One that knows every shape, and no value.
impl Default for Redactor {
    fn default() -> Self {
        Self::new(&Vault::default())
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} values)", self.inner.values.len())
    }
}

/// A redactor for a stream: the concatenation of what it returns is the redaction of the whole, however the
/// stream was cut. It holds back only bytes that may be the beginning of a secret.
pub struct StreamRedactor {
    scan: Scan,
}

impl StreamRedactor {
    /// Takes the next bytes and returns what may be shown.
    #[must_use]
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        bytes.chunks(WINDOW).for_each(|window| self.scan.push(window, false, &mut out));
        out
    }

    /// Ends the stream and returns what was held back.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.end()
    }

    /// The same; [`hits`](Self::hits) can still be asked for.
    #[must_use]
    pub fn end(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.scan.push(&[], true, &mut out);
        out
    }

    /// Whether there was anything to be found in what came, all told.
    #[must_use]
    pub fn found(mut self) -> bool {
        drop(self.end());
        self.scan.hits > 0
    }

    /// Marks written so far.
    #[must_use]
    pub fn hits(&self) -> usize {
        self.scan.hits
    }
}

impl fmt::Debug for StreamRedactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamRedactor({} hits)", self.scan.hits)
    }
}
