//! Exit codes, as documented in `bailey help` and the user guide.

use crate::{
    HostError,
    config::{ConfigError, NotCompliant},
    prompt::Interrupted,
};
use bailey_kernel::{BeginError, JournalError, Refused};
use bailey_policy::file::RuleFileError;
use bailey_protocol::Fault;

pub use bailey_protocol::exit::*;

/// The code for what a turn failed at.
pub fn of_fault(fault: Fault) -> u8 {
    match fault {
        Fault::Denied => DENIED,
        Fault::Model => MODEL,
        Fault::Journal => JOURNAL,
        Fault::Other => FAILED,
    }
}

/// The code for an error.
pub fn of(error: &anyhow::Error) -> u8 {
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
    if error.downcast_ref::<Interrupted>().is_some() {
        return CANCELLED;
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
        NoSuchSession, NotRunOut, OtherLine, RanOut, SecretInPath, Settled, SeveralQuestions,
        SeveralSessions, ShortQuestion, ShortSession,
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
            | ShortSession(_)
            | NoSuchQuestion(_)
            | NotRunOut(_)
            | OtherLine(_)
            | RanOut(_)
            | SecretInPath(_)
            | Settled(_)
            | SeveralQuestions(_)
            | SeveralSessions { .. }
            | ShortQuestion(_)
    )
}
