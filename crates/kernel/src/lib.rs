//! The kernel: the reference monitor, and the only way to an effect.
//!
//! Its verbs are few: [`Kernel::accept`] lets a person in, [`Kernel::converse`] asks a model,
//! [`Kernel::call`] runs a tool call, [`Kernel::act`] one action of the owner's. Each goes the same way, in
//! this order: resolve paths (inside the walls), decide, ask, reserve and write the intent, perform, write
//! the outcome, conclude, screen, write the observation. An error in a check is a refusal.
//!
//! An effect that was cut off between intent and outcome may have happened. A session that goes on says so
//! to the model and does not repeat the effect (`restore.rs`). A background process is the same effect as in
//! the foreground, so rules, cards, limits and walls cannot tell the two apart (`background.rs`). A
//! sub-agent is a turn inside the call that began it; its plan is no effect, because the kernel decides when
//! it mints the token and at each effect of the sub-agent (`delegate.rs`).
//!
//! The kernel knows no concrete executor, tool or provider: [`Executor`], [`Tool`] and [`Provider`] are the
//! seams. [`Gateway`] (the requests of commands) and [`program::Programs`] (extensions and process
//! peers) are two more. The parts of a [`Context`] have private constructors here, one for each way in.
//!
//! Read `admit.rs` first (how an effect is let through), then `launch.rs` (how it runs), then `call.rs`.

mod act;
mod admit;
mod aside;
mod background;
mod bearer;
mod call;
mod client;
mod condense;
mod confine;
mod context;
mod converse;
mod cut;
mod delegate;
mod door;
mod ended;
mod escalation;
mod executor;
pub mod extension;
mod gateway;
mod guide;
mod kernel;
mod launch;
mod live;
mod oracle;
mod origin;
mod output;
mod price;
pub mod program;
mod provider;
mod question;
mod receive;
mod repeated;
mod restore;
mod scope;
mod screen;
mod segment;
mod tokens;
mod tool;
mod totals;

pub use act::Acted;
pub use admit::Preview;
pub use aside::Aside;
pub use background::Attend;
pub use bailey_journal::{
    Answerer, Applied, BadToken, Clock, Confined, Holder, Journal, JournalError, Macaroon, NewSession, OWNER,
    Permit, Person, Redeemed, Seal, SessionInfo, SessionLock, Settlement,
};
pub use bailey_policy::{Caveat, Condition, Glob, HostGlob};
pub use bailey_secrets::{Marks, Redactor, meant, show_spaces};
pub use call::CallOutcome;
pub use client::{CLIENT, Judgement, Offered, TASK_TOOLS_MAX, Task};
pub use condense::{Summary, SummaryRoom};
pub use context::{Context, Instruction, Provenance};
pub use delegate::{Delegate, Errand};
pub use door::Door;
pub use escalation::{Escalation, Tell};
pub use executor::{BoxFuture, Chunk, Executor, Io, ResolveError, Route};
pub use gateway::{Gateway, Pass, RequestSource, RequestSummary, StandIn, Turned};
pub use guide::Paper;
pub use kernel::{Config, DrawCard, Kernel, Registrar, Rules};
pub use live::Printed;
pub use output::Output;
pub use price::{Price, price};
pub use provider::{
    Completion, Decoder, Delta, Encoded, ModelError, ModelErrorKind, Provider, READS_NO_CALLS, StopReason,
};
pub use question::{Question, RED_FILES_MAX, Waits};
pub use restore::{FindTool, Restored, recall};
pub use scope::{Connection, Scope, Standpoint};
pub use segment::{Guide, Late, Note, Observation, Reply, Segment, UserMessage};
pub use tokens::{IMAGE_TOKENS, tokens};
pub use tool::{Claims, Conclusion, Plan, Tool, claims};

pub use bailey_journal::{BeginError, Bound, BudgetScope, Budgets, Exceeded, Gauge};
use bailey_protocol::{ApprovalId, Fault};

/// Why the kernel did not do something.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The gate said no.
    #[error("denied: {}", .0.join("; "))]
    Denied(Vec<String>),
    /// It could not begin.
    #[error(transparent)]
    Begin(#[from] BeginError),
    /// The model brought no reply.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The journal cannot be read or written, so nothing more happens.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The turn was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// This process has no open question of that name; another process may have.
    #[error("there is no open question {0}")]
    NoQuestion(ApprovalId),
    /// Something that should not happen.
    #[error("{0}")]
    Failed(String),
}

impl Refused {
    /// The kind of fault that the asker is told.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Denied(_) | Self::Begin(BeginError::Stopped { .. }) => Fault::Denied,
            Self::Model(_) => Fault::Model,
            Self::Journal(_) | Self::Begin(BeginError::Journal(_)) => Fault::Journal,
            Self::Begin(_) | Self::Cancelled | Self::NoQuestion(_) | Self::Failed(_) => Fault::Other,
        }
    }
}
