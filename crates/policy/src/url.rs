//! Paths of URLs: read the ways in which servers read them, and matched by glob.

use crate::{Glob, GlobError, fit::Fit};
use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;
use serde::{Deserialize, Serialize, Serializer};

/// A glob for the path of a URL (RFC 3986, 3.3): `/simple/**`, `/repos/*/issues`. It is written as people
/// read it, without percent signs. What a URL has behind its `?` is not compared, unless the glob ends in a
/// query of its own, `/search?q=all`: then that has to be the same, letter by letter, and of any other nobody
/// is certain that a server does not take it for the same.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct UrlGlob {
    path: Glob,
    query: Option<String>,
}

/// Why a glob of URL paths cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlGlobError {
    /// It does not begin with `/`.
    #[error("the path of a URL begins with `/`")]
    Relative,
    /// It has a character that a path is not compared with.
    #[error("`{0}` cannot stand there: a path is compared decoded")]
    Character(char),
    /// What is behind its `?` is no query.
    #[error(
        "`?{0}` is no query: behind a `?` stand `name=value` pairs of letters, digits, `-`, `.`, `_` and `~`, which have to be the \
         same (`*` stands for other letters of a path)"
    )]
    Query(String),
    /// It is no glob.
    #[error(transparent)]
    Glob(#[from] GlobError),
}

impl UrlGlob {
    /// Reads a glob.
    ///
    /// # Errors
    /// When it cannot be read; the text says how to write it.
    pub fn new(text: &str) -> Result<Self, UrlGlobError> {
        if !text.starts_with('/') {
            return Err(UrlGlobError::Relative);
        }
        let (path, query) = halves(text);
        if let Some(odd) = path.chars().find(|c| matches!(c, '#' | '%')) {
            return Err(UrlGlobError::Character(odd));
        }
        if let Some(odd) = query.filter(|query| !is_query(query)) {
            return Err(UrlGlobError::Query(odd.into()));
        }
        // The page of that address, to whoever writes a rule; and so is any other that a query belongs to.
        let page = if query.is_some() { path.strip_suffix('/').unwrap_or(path) } else { path };
        let path = if path == "/" { Glob::root() } else { Glob::new(page)? };
        Ok(Self { path, query: query.map(Into::into) })
    }

    /// Whether it surely matches a URL's path, and its query where it has one itself, however a server reads
    /// them.
    #[must_use]
    pub fn is_match(&self, url: &str) -> bool {
        self.fit(&UrlPath::of(url)) == Fit::Yes
    }

    /// The glob that matches every path.
    pub(crate) fn everything() -> Self {
        Self { path: Glob::everything(), query: None }
    }

    /// Whether it matches whatever a path is.
    fn is_everything(&self) -> bool {
        *self == Self::everything()
    }

    pub(crate) fn fit(&self, path: &UrlPath) -> Fit {
        if self.is_everything() {
            return Fit::Yes;
        }
        let mut fits =
            path.readings.iter().map(|names| self.path.fit_names(names.iter().map(String::as_str)));
        let Some(first) = fits.next() else { return Fit::Maybe };
        let fit = fits.fold(first, |one, other| if one == other { one } else { Fit::Maybe });
        // What else a server takes for the same query nobody can tell.
        let is_same = self.query.is_none() || self.query == path.query;
        if is_same { fit } else { fit.min(Fit::Maybe) }
    }

    /// How it fits every path that another glob matches.
    pub(crate) fn fit_all(&self, paths: &Self) -> Fit {
        if self == paths || self.is_everything() { Fit::Yes } else { Fit::Maybe }
    }
}

impl TryFrom<String> for UrlGlob {
    type Error = UrlGlobError;

    fn try_from(text: String) -> Result<Self, UrlGlobError> {
        Self::new(&text)
    }
}

/// As it can be written.
impl fmt::Display for UrlGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path.as_str())?;
        self.query.iter().try_for_each(|query| write!(f, "?{query}"))
    }
}

impl Serialize for UrlGlob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What stands before the first `?`, and behind it.
fn halves(text: &str) -> (&str, Option<&str>) {
    text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)))
}

/// Names with values, of letters that no program writes in two ways.
fn is_query(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~=".contains(c);
    text.split('&').all(|pair| !pair.starts_with('=') && pair.contains('=') && pair.chars().all(is_plain))
}

/// The path of a request, as the names between its slashes. Servers do not agree about some spellings: where
/// there are two readings, both are here, and where nobody can tell, none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UrlPath {
    readings: Vec<Vec<String>>,
    /// What stands behind the `?`, as it is.
    query: Option<String>,
}

impl UrlPath {
    /// The path of a URL whose host was read.
    pub(crate) fn of(url: &str) -> Self {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let path = rest.find(['/', '?', '#']).and_then(|at| rest.get(at..)).unwrap_or_default();
        let (path, query) = halves(path.split('#').next().unwrap_or_default());
        let query = query.map(ToString::to_string);
        let path = path.strip_prefix('/').unwrap_or(path);
        // `/simple/six/` and `/simple/six` are one page to whoever writes a rule.
        let path = path.strip_suffix('/').unwrap_or(path);
        let names: Option<Vec<String>> =
            if path.is_empty() { Some(Vec::new()) } else { path.split('/').map(decoded).collect() };
        let Some(names) = names.filter(|names| !names.iter().any(|name| is_odd(name))) else {
            return Self { readings: Vec::new(), query };
        };
        // Some take an encoded slash for a slash, and some for a character of a name.
        let split: Vec<String> =
            names.iter().flat_map(|name| name.split('/')).map(ToString::to_string).collect();
        // And some take what follows a `;` for no part of the name.
        let short: Vec<String> = split.iter().map(|name| without_parameters(name).to_string()).collect();
        let mut readings: Vec<Vec<String>> = [names].into();
        for reading in [split, short] {
            if !readings.contains(&reading) {
                readings.push(reading);
            }
        }
        Self { readings, query }
    }
}

/// A name without percent signs; `None` where it is no UTF-8, or is encoded badly.
fn decoded(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let (high, low) = (char::from(rest.next()?), char::from(rest.next()?));
                u8::try_from(high.to_digit(16)? * 16 + low.to_digit(16)?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn without_parameters(name: &str) -> &str {
    name.split(';').next().unwrap_or_default()
}

/// Whether servers may take a name for a way upwards, for nothing, or for something that is encoded once
/// more.
fn is_odd(name: &str) -> bool {
    // Dots of other alphabets become plain ones, and spaces at an end go.
    let is_dot = |c: char| {
        matches!(c, '.' | '\u{2024}'..='\u{2026}' | '\u{3002}' | '\u{fe52}' | '\u{ff0e}' | '\u{ff61}')
    };
    let is_step = |part: &str| without_parameters(part).chars().all(|c| is_dot(c) || c.is_whitespace());
    name.split('/').any(is_step) || name.contains(['\\', '%']) || name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests;
