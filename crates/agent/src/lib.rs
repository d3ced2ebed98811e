//! The turn: message in, model call, tool calls, results back, until the final answer.
//!
//! A [`Brain`] decides what to do next with nothing but [`Hands`]: it can ask the model, run the model's tool
//! calls, and hear what the user says meanwhile. It holds no journal, no executor and no file. [`Loop`] is
//! Bailey's own brain.
//!
//! Read `turn.rs` first.

mod budget;
mod calls;
mod delegate;
mod guides;
mod hands;
mod models;
mod pause;
mod repeats;
mod retry;
mod room;
mod spending;
mod turn;
mod view;
mod waiting;
mod waves;
mod written;

pub use budget::{Budget, Ceiling};
pub use calls::CallsLeft;
pub use guides::{Guides, Own};
pub use hands::{Hands, News};
pub use models::{ModelRole, Models, Route};
pub use retry::Retry;
pub use spending::Warned;
pub use turn::{Brain, Loop, TurnEnd};
pub use view::{Part, parts};
pub use waiting::{Patience, PendingCalls};
pub use waves::waves;
