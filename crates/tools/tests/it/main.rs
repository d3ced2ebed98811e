//! The built-in tools as the kernel meets them: canned outputs in, plans and texts out.
#![expect(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests fail like tests")]

mod card;
mod change;
mod command;
mod look;
mod patch;
mod registry;
mod world;
