//! Exit codes of the program, as `bailey help` and the user guide list them, and the two errors that carry
//! an exit code from the process or the argument that caused it.

use alloc::string::String;
use core::fmt;

/// A command line that makes no sense, although its parser could not know that.
#[derive(Debug)]
pub struct Mistyped(pub String);

/// The failure of another process, in its words.
#[derive(Debug)]
pub struct Failure {
    /// Its message.
    pub error: String,
    /// The exit code that says so.
    pub code: u8,
}

/// Done.
pub const DONE: u8 = 0;
/// It failed.
pub const FAILED: u8 = 1;
/// Wrong arguments (clap's own code), configuration or rules.
pub const WRONG: u8 = 2;
/// The gate, or the human, said no.
pub const DENIED: u8 = 3;
/// No model answered, its provider refused to, or its reply was no answer.
pub const MODEL: u8 = 4;
/// The journal is broken, or cannot be written.
pub const JOURNAL: u8 = 5;
/// Changes were kept back because the project had changed meanwhile.
pub const CONFLICT: u8 = 6;
/// The turn pauses: at its limit of tool calls or of a budget, or because it waits for a human.
pub const PAUSED: u8 = 7;
/// Ended by Ctrl-C.
pub const CANCELLED: u8 = 130;

/// Ended because the terminal was closed.
pub const HUNG_UP: u8 = 129;
/// Ended because its output has no reader any more. A shell reports this code for a process that SIGPIPE
/// ended.
pub const UNREAD: u8 = 141;
/// Ended because it was asked to terminate.
pub const TERMINATED: u8 = 143;

/// The process of one session of a conversation asks for the next session. Only its parent process sees
/// this.
pub const NEXT: u8 = 10;
/// The process was cut off from its session, and another process must come back to that session.
pub const AGAIN: u8 = 11;
/// The process of one session of a conversation asks for something with its own session, and for the session
/// that follows from it. Only its parent process sees this.
pub const ONWARD: u8 = 13;
/// The process of one task beneath the daemon: the provider refused to answer. The process reports the
/// changes all the same.
pub const REFUSED: u8 = 12;

impl fmt::Display for Mistyped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)
    }
}

impl core::error::Error for Mistyped {}
impl core::error::Error for Failure {}
