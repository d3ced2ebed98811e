//! The kernel from outside: house rules, calls, questions, endings, labels, and what the compiler refuses.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests: a panic is how a test fails"
)]

mod bearers;
mod calls;
mod compile;
mod converse;
mod endings;
mod extensions;
mod gate;
mod house_rules;
mod images;
mod labels;
mod oracle;
mod origins;
mod questions;
mod rules;
mod sent;
mod support;
mod tokens;
