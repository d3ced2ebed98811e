//! Behaviour of the decision point, seen from outside.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test ends where its expectation does; clippy.toml lifts these in test functions only"
)]

mod cases;
mod conditions;
mod default_rules;
mod extensions;
mod files;
mod globs;
mod guards;
mod naive;
mod programs;
mod properties;
mod random;
mod reviewing;
mod shape;
mod support;
mod tokens;
mod told;
mod vouch;
