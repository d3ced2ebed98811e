//! The user's own kinds of credentials, which the redactor removes: `[[secrets.pattern]]`.

use super::{ConfigError, document::Document};
use bailey_secrets::{Characters, OwnShape, OwnShapeError};
use serde::{Deserialize, Serialize};

/// The key of their tables.
const KEY: &str = "secrets.pattern";
/// The most patterns that there may be.
const PATTERNS_MAX: usize = 64;

/// One kind of credential: a prefix, and the characters that follow it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pattern {
    /// The name that the redactor's marks show.
    name: String,
    /// The text that a credential begins with.
    prefix: String,
    /// The characters that follow.
    characters: Following,
    /// The least number of those characters.
    at_least: usize,
}

/// The characters that follow a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Following {
    Digits,
    Hex,
    Alnum,
    Word,
    Dash,
}

/// Turns the patterns into the shapes that the redactor looks for.
pub(super) fn shapes(document: &Document, patterns: &[Pattern]) -> Result<Vec<OwnShape>, ConfigError> {
    if patterns.len() > PATTERNS_MAX {
        let message = format!("there are {} patterns, and {PATTERNS_MAX} at most", patterns.len());
        return Err(document.mistake(KEY, message));
    }
    let shape = |(place, pattern): (usize, &Pattern)| {
        pattern.shape().map_err(|error| document.mistake_in(KEY, place, error.to_string()))
    };
    patterns.iter().enumerate().map(shape).collect()
}

impl Pattern {
    fn shape(&self) -> Result<OwnShape, OwnShapeError> {
        let characters = match self.characters {
            Following::Digits => Characters::Digits,
            Following::Hex => Characters::Hex,
            Following::Alnum => Characters::Alnum,
            Following::Word => Characters::Word,
            Following::Dash => Characters::Dash,
        };
        OwnShape::new(&self.name, &self.prefix, characters, self.at_least)
    }
}
