//! Cassettes: exchanges with a provider, recorded once and played back byte for byte.
//!
//! A cassette is one JSON file that people read in review. Of each exchange it holds the request's body, made
//! comparable by the [`Normaliser`], and the response. A [`Player`] takes the network door's place: it serves
//! the recorded responses in order, and only as long as what is asked is what was recorded, so that a demo or
//! test that plays a cassette still checks everything that Bailey says to the model. A [`Recorder`] stands in
//! front of the network door and writes the cassette.
//!
//! No header but `content-type` is ever recorded, and no request header at all: no key can get in.

mod difference;
mod normalise;
mod player;
mod recorder;

pub use normalise::Normaliser;
pub use player::Player;
pub use recorder::{Recorder, Recording};

use crate::{Endpoint, Wire};
use bailey_protocol::Blob;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// The version of the file's shape that this code reads and writes.
pub const CASSETTE_VERSION: u32 = 1;

/// The largest cassette that is read, in bytes.
pub const CASSETTE_BYTES_MAX: usize = 64 << 20;

/// The prefix of a cassette's file, where the file stands in the place of a model's name.
const PREFIX: &str = "replay:";

/// Recorded exchanges, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cassette {
    /// [`CASSETTE_VERSION`].
    pub version: u32,
    /// The provider's name in the configuration.
    pub provider: String,
    /// What it speaks.
    pub wire: Wire,
    /// The model's name as the provider knows it.
    pub model: String,
    /// What was asked and answered.
    pub exchanges: Vec<Exchange>,
}

/// One request and its response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// The request's body, normalised.
    pub request: Value,
    /// What came back.
    pub response: Response,
}

/// A recorded response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// `content-type`, when there was one.
    pub headers: Vec<(String, String)>,
    /// The body, split at each line feed: joined by line feeds it is what came. `$WORKSPACE` stands for the
    /// workspace's path.
    pub body: Vec<Blob>,
}

/// A cassette cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// It is no cassette.
    #[error("the cassette cannot be read ({0}); record it again")]
    Malformed(serde_json::Error),
    /// Another version wrote it.
    #[error("the cassette has version {0} and this is made for version {CASSETTE_VERSION}; record it again")]
    Version(u32),
    /// It has more than [`CASSETTE_BYTES_MAX`] bytes.
    #[error("the cassette has {0} bytes, and at most 64 MiB are read; record a shorter session")]
    TooLarge(usize),
}

impl Cassette {
    /// An empty cassette for this endpoint.
    #[must_use]
    pub fn new(endpoint: &Endpoint) -> Self {
        Self {
            version: CASSETTE_VERSION,
            provider: endpoint.provider.clone(),
            wire: endpoint.wire,
            model: endpoint.model.clone(),
            exchanges: Vec::new(),
        }
    }

    /// The file of the cassette that `model` names as `replay:FILE`. `None` for every other name.
    #[must_use]
    pub fn file(model: &str) -> Option<&Path> {
        model.strip_prefix(PREFIX).map(Path::new)
    }

    /// Reads a cassette.
    ///
    /// # Errors
    /// When it is too large, no cassette, or of another version.
    pub fn parse(json: &[u8]) -> Result<Self, CassetteError> {
        if json.len() > CASSETTE_BYTES_MAX {
            return Err(CassetteError::TooLarge(json.len()));
        }
        let cassette: Self = serde_json::from_slice(json).map_err(CassetteError::Malformed)?;
        if cassette.version != CASSETTE_VERSION {
            return Err(CassetteError::Version(cassette.version));
        }
        Ok(cassette)
    }

    /// The file: indented JSON with a line feed at its end.
    ///
    /// # Errors
    /// When a value cannot be written as JSON; with values that came from JSON this does not happen.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|json| json + "\n")
    }
}

#[cfg(test)]
mod tests;
