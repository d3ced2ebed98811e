//! Exit codes of the program, as `bailey help` and the user guide list them, and two errors that carry one.

use alloc::string::String;
use core::fmt;

/// An argument that makes no sense, which the parser of the command line could not know.
#[derive(Debug)]
pub struct Mistyped(pub String);

/// The error of another process, in its words.
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
/// Ended because its output is not read any more, as a shell says it after SIGPIPE.
pub const UNREAD: u8 = 141;
/// Ended because somebody asked for that.
pub const TERMINATED: u8 = 143;

/// Of the process of one session of a conversation: the next session is wanted. Only its parent sees this.
pub const NEXT: u8 = 10;
/// Of the same: it was cut off from its session, and another one is to come back to it.
pub const AGAIN: u8 = 11;
/// Of the process of one task beneath the daemon: the provider refused to answer; the changes are told
/// all the same.
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
