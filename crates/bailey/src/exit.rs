//! Exit codes, as documented in `bailey help` and the user guide.

use crate::config::{ConfigError, NotCompliant};
use bailey_kernel::{BeginError, JournalError, Refused};
use bailey_policy::file::RuleFileError;
use bailey_protocol::Fault;
use bailey_runtime::HostError;

/// What was typed makes no sense, where the parser of the command line could not know it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Mistyped(pub(crate) String);

/// What another process failed at, in its words.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub(crate) struct Failure {
    pub(crate) error: String,
    /// The exit code that says so.
    pub(crate) code: u8,
}

/// Done.
pub(crate) const DONE: u8 = 0;
/// It failed.
pub(crate) const FAILED: u8 = 1;
/// Wrong arguments (clap's own code), configuration or rules.
pub(crate) const WRONG: u8 = 2;
/// The gate, or the human, said no.
pub(crate) const DENIED: u8 = 3;
/// No model answered, its provider refused to, or its reply was no answer.
pub(crate) const MODEL: u8 = 4;
/// The journal is broken, or cannot be written.
pub(crate) const JOURNAL: u8 = 5;
/// Changes were kept back because the project had changed meanwhile.
pub(crate) const CONFLICT: u8 = 6;
/// The turn pauses: at its limit of tool calls or of a budget, or because it waits for a human.
pub(crate) const PAUSED: u8 = 7;
/// Ended by Ctrl-C.
pub(crate) const CANCELLED: u8 = 130;

/// Ended because the terminal was closed.
pub(crate) const HUNG_UP: u8 = 129;
/// Ended because nobody reads what it prints any more, as a shell says it of whoever got SIGPIPE.
pub(crate) const UNREAD: u8 = 141;
/// Ended because somebody asked for that.
pub(crate) const TERMINATED: u8 = 143;

/// Of the process of one session of a conversation: the next one is wanted. Only who started it sees this.
pub(crate) const NEXT: u8 = 10;
/// Of the same: it was cut off from its session, and another one is to come back to it.
pub(crate) const AGAIN: u8 = 11;
/// Of the process of one task beneath the daemon: the provider refused to answer, and what changed is told
/// all the same.
pub(crate) const REFUSED: u8 = 12;

/// Ends the program where it stands; the warden takes everything inside the walls with it. The terminal is
/// left as it was found.
pub(crate) fn now(code: u8) -> ! {
    crate::front::restore();
    std::process::exit(code.into())
}

/// The code for what a turn failed at.
pub(crate) fn of_fault(fault: Fault) -> u8 {
    match fault {
        Fault::Denied => DENIED,
        Fault::Model => MODEL,
        Fault::Journal => JOURNAL,
        Fault::Other => FAILED,
    }
}

/// The code for an error.
pub(crate) fn of(error: &anyhow::Error) -> u8 {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return failure.code;
    }
    let host = error.downcast_ref::<HostError>();
    let refused = error.downcast_ref::<Refused>().or(match host {
        Some(HostError::Refused(refused)) => Some(refused),
        _ => None,
    });
    let begin = error.downcast_ref::<BeginError>().or(match refused {
        Some(Refused::Begin(begin)) => Some(begin),
        _ => None,
    });
    let journal = error.downcast_ref::<JournalError>().or(match (host, refused, begin) {
        (Some(HostError::Journal(journal)), _, _)
        | (_, Some(Refused::Journal(journal)), _)
        | (_, _, Some(BeginError::Journal(journal))) => Some(journal),
        _ => None,
    });
    let is_journal = journal.is_some_and(|error| !is_of_the_user(error));
    let is_wrong = error.downcast_ref::<ConfigError>().is_some()
        || error.downcast_ref::<RuleFileError>().is_some()
        || error.downcast_ref::<NotCompliant>().is_some()
        || error.downcast_ref::<Mistyped>().is_some();
    if is_wrong {
        return WRONG;
    }
    match refused {
        Some(Refused::Model(_)) => MODEL,
        Some(Refused::Denied(_)) => DENIED,
        _ if matches!(begin, Some(BeginError::Stopped { .. })) => DENIED,
        Some(Refused::Cancelled) => CANCELLED,
        _ if is_journal => JOURNAL,
        None if matches!(host, Some(HostError::Denied(_))) => DENIED,
        _ => FAILED,
    }
}

/// What is wrong with what was asked for, not with the journal.
fn is_of_the_user(error: &JournalError) -> bool {
    use JournalError::{
        Absent, Archived, AskedAgain, Held, NoAnswer, NoArchive, NoCheckpoint, NoEntry, NoSuchQuestion,
        NoSuchSession, NotRunOut, OtherLine, RanOut, SecretInPath, Settled, SeveralQuestions, ShortQuestion,
    };
    matches!(
        error,
        Absent(_)
            | Archived { .. }
            | AskedAgain(..)
            | NoAnswer(..)
            | NoArchive { .. }
            | Held { .. }
            | NoCheckpoint(_)
            | NoEntry { .. }
            | NoSuchSession(_)
            | NoSuchQuestion(_)
            | NotRunOut(_)
            | OtherLine(_)
            | RanOut(_)
            | SecretInPath(_)
            | Settled(_)
            | SeveralQuestions(_)
            | ShortQuestion(_)
    )
}
