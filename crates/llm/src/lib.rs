//! Models: how a context becomes a request on a provider's wire, and how the bytes that come back become an
//! answer; and cassettes, which record such exchanges and play them back.
//!
//! A provider here is a *codec*. It opens no socket, holds no key and reads no clock: it names the secret
//! that the network door puts in, and it reads whatever bytes it is handed within fixed bounds. Retry,
//! fallback and budgets are not its business either; it only says which kind of failure it saw and how long
//! to wait.
//!
//! Read [`endpoint`] first: an [`Endpoint`] says which server speaks which [`Wire`], and [`provider`] makes
//! the codec of it. Each wire has a folder with an encoder (`encode`) and an assembler of streamed pieces
//! (`message`). [`decode`] is the reader that all share: it tells events and lines from plain JSON and
//! answers from errors. A [`Catalogue`] holds what is known of models besides: how much they take, and what
//! they cost. [`cassette`] stands apart: a [`Player`] takes the network door's place in demos and tests.
//!
//! Hostile bytes are expected everywhere: every buffer has a limit, and nothing panics. [`decode_all`] is the
//! one pure entry for fuzzing.

pub mod cassette;
pub mod decode;
pub mod endpoint;

mod anthropic;
mod catalogue;
mod failure;
mod form;
mod gemini;
mod lines;
mod message;
mod ollama;
mod openai;
mod responses;
mod sse;
mod tail;
mod transcript;
mod wire;

pub use cassette::{Cassette, Normaliser, Player, Recorder, Recording};
pub use catalogue::{Catalogue, CatalogueError};
pub use decode::decode_all;
pub use endpoint::{Codec, Endpoint, provider};
pub use wire::Wire;
