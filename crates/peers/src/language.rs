//! The seam for peers whose programs do not speak in Bailey's frames.

use crate::Shelf;
use bailey_kernel::BoxFuture;
use bailey_protocol::CallReport;
use bailey_sandbox::Streams;
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};

/// A language of programs that have tools, spoken over their standard input and output.
pub trait Language: Send + Sync + 'static {
    /// How long a program may take until its tools are known: interpreters with large libraries are slow.
    fn ready(&self) -> Duration {
        Duration::from_secs(60)
    }

    /// Begins a conversation with a program that was just started, and offers its tools to the shelf. It may
    /// take any time: the caller has a limit.
    ///
    /// # Errors
    /// Why there is no conversation.
    fn begin(
        &self,
        streams: Streams,
        shelf: Arc<Shelf>,
    ) -> BoxFuture<'_, Result<Box<dyn Conversation>, String>>;
}

/// A conversation with a program. It is over when this is dropped.
pub trait Conversation: Send {
    /// Has the program perform a call of its tool, by the tool's name without the peer's.
    ///
    /// # Errors
    /// Why no answer will come any more. The program is ended then.
    fn call<'a>(
        &'a mut self,
        tool: &'a str,
        args: Map<String, Value>,
    ) -> BoxFuture<'a, Result<CallReport, String>>;
}
