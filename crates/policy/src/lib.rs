//! The decision point: rules and facts in, a verdict with its reasons out.
//!
//! It is pure. It reads no file, no clock and no environment; the same policy and the same facts give the
//! same decision, whatever the order of rules. What it refuses to be: a wall. A rule about a command's name
//! or a path's spelling sorts actions for humans; what an action can reach is held by the sandbox, below the
//! isolation that a verdict demands.
//!
//! - Default deny: what no rule allows is denied. A deny is final. A review beats an allow.
//! - A missing or doubtful value never frees: an allow does not match it, a review and a deny do.
//! - An action that touches many things is as restricted as the most restricted of them.
//! - [`Allowed`] and [`Review`] can be made here only, and name the effect and the policy they were made for.
//!
//! Read [`policy`](Policy) first (`policy.rs`): the phases are one function. Then [`Condition`] and [`Glob`].
//! Rule files are the `std` part, in `file`; [`DEFAULT_RULES`] is the one that a new home gets.
//!
//! What is not here: keys, ledgers, processes and clocks. A [`Token`] comes in read and verified (`journal`
//! does that), an [`Extension`]'s answer as a [`ExtensionReply`]. Rules on labels are not here yet.
#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod built_in;
mod classify;
mod command;
mod condition;
mod explain;
mod extension;
mod facts;
#[cfg(feature = "std")]
pub mod file;
mod fit;
mod glob;
mod host;
mod index;
mod inquiry;
mod loops;
mod names;
mod pattern;
mod phase;
mod place;
mod policy;
mod programs;
mod reviewing;
mod rule;
mod scope;
mod shape;
mod shell;
mod subject;
mod tally;
mod token;
mod tool;
mod unfit;
pub mod unit;
mod url;
mod verdict;
mod vouch;

pub use built_in::{Names, rules as built_in_rules};
pub use classify::{Described, classify};
pub use command::{CommandError, CommandPrefix};
pub use condition::Condition;
pub use explain::{Considered, RuleOutcome};
pub use extension::{CRASH_WINDOW_MS, Extension, ExtensionReply, Health, Late};
pub use facts::{Caller, Facts, Trust};
pub use glob::{Glob, GlobError};
pub use host::{HostError, HostGlob, Method, MethodError, is_judged};
pub use inquiry::{Inquiry, Judged};
pub use names::{RUN_BY_HOST, SECRET_LOOKING, protected_in_home, protected_places};
pub use pattern::{NoPattern, Pattern};
pub use place::Places;
pub use policy::{INSIDE, Policy, STEPS_MAX};
pub use programs::Programs;
pub use reviewing::Reviewing;
pub use rule::{Answer, Rule, Tier};
pub use scope::{ScopeError, beneath, scope, tree, whole};
pub use shape::{ARGUMENTS_MAX, CONTENT_MAX, DEPTH_MAX, KEYS_MAX, PATH_MAX, PATHS_MAX};
pub use token::{CAVEATS_MAX, Caveat, InvalidToken, Token, TokenUse};
pub use tool::{TOOL_NAME_MAX, ToolGlob, ToolGlobError, is_tool_name, tool_effect};
pub use url::{UrlGlob, UrlGlobError};
pub use verdict::{Allowed, Decided, Denial, Reason, Review, Source, Verdict, is_final};
pub use vouch::NotWholly;

/// The rules of a new home, as the text of a rule file: what `bailey init` writes.
pub const DEFAULT_RULES: &str = include_str!("default.toml");
