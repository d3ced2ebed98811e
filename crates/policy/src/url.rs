//! Paths of URLs: read the ways in which servers read them, and matched by glob.

use crate::{Glob, GlobError, fit::Fit};
use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use serde::{Deserialize, Serialize, Serializer};

/// A glob for the path of a URL (RFC 3986, 3.3): `/simple/**`, `/repos/*/issues`. It is written as people read it, without
/// percent signs; what stands behind `?` is not compared.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct UrlGlob(Glob);

/// Why a glob of URL paths cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlGlobError {
    /// It does not begin with `/`.
    #[error("the path of a URL begins with `/`")]
    Relative,
    /// It has a character that a path is not compared with.
    #[error("`{0}` cannot stand there: a path is compared decoded, and without what follows a `?`")]
    Character(char),
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
        match text.chars().find(|c| matches!(c, '?' | '#' | '%')) {
            Some(c) => Err(UrlGlobError::Character(c)),
            // The page of that address, to whoever writes a rule.
            None if text == "/" => Ok(Self(Glob::root())),
            None => Ok(Self(Glob::new(text)?)),
        }
    }

    /// The glob as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it surely matches the path of a URL, however a server reads that.
    #[must_use]
    pub fn is_match(&self, url: &str) -> bool {
        self.fit(&UrlPath::of(url)) == Fit::Yes
    }

    /// The glob that matches every path.
    pub(crate) fn everything() -> Self {
        Self(Glob::everything())
    }

    /// Whether it matches whatever a path is.
    fn is_everything(&self) -> bool {
        self.0 == Glob::everything()
    }

    pub(crate) fn fit(&self, path: &UrlPath) -> Fit {
        if self.is_everything() {
            return Fit::Yes;
        }
        let mut fits = path.readings.iter().map(|names| self.0.fit_names(names.iter().map(String::as_str)));
        let Some(first) = fits.next() else { return Fit::Maybe };
        fits.fold(first, |one, other| if one == other { one } else { Fit::Maybe })
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

impl Serialize for UrlGlob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The path of a request, as the names between its slashes. Servers do not agree about some spellings: where there are two
/// readings, both are here, and where nobody can tell, none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UrlPath {
    readings: Vec<Vec<String>>,
}

impl UrlPath {
    /// The path of a URL whose host was read.
    pub(crate) fn of(url: &str) -> Self {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let path = rest.find(['/', '?', '#']).and_then(|at| rest.get(at..)).unwrap_or_default();
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let path = path.strip_prefix('/').unwrap_or(path);
        // `/simple/six/` and `/simple/six` are one page to whoever writes a rule.
        let path = path.strip_suffix('/').unwrap_or(path);
        let names: Option<Vec<String>> =
            if path.is_empty() { Some(Vec::new()) } else { path.split('/').map(decoded).collect() };
        let Some(names) = names.filter(|names| !names.iter().any(|name| is_odd(name))) else {
            return Self { readings: Vec::new() };
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
        Self { readings }
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

/// Whether servers may take a name for a way upwards, for nothing, or for something that is encoded once more.
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
