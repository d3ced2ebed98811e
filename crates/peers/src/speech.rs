//! The words of a program in its frames, by its work.

use crate::{
    frame::{FrameError, Object},
    shelf::Shelf,
};
use bailey_kernel::extension::Answer;
use bailey_protocol::CallReport;
use serde_json::Value;
use std::sync::Arc;

const OF_VERDICT: &str = "{\"number\":…,\"answer\":\"allow|deny|review|pass\",\"reason\":\"…\"}";
const OF_RESULT: &str = "{\"number\":…,\"ok\":true|false,\"text\":\"…\"}";

/// The words of a program.
#[derive(Debug)]
pub(crate) enum Speech {
    /// Verdicts: it is an extension of the policy.
    Verdicts,
    /// Its tools and their results: it is a peer.
    Tools(Arc<Shelf>),
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Spoken {
    Verdict(Answer, String),
    Result(CallReport),
}

impl Speech {
    /// The form of an answer, for errors.
    pub(crate) fn form(&self) -> &'static str {
        match self {
            Self::Verdicts => OF_VERDICT,
            Self::Tools(_) => OF_RESULT,
        }
    }

    /// Takes the rest of the first frame.
    ///
    /// # Errors
    /// When a peer names no tools, or such as no peer may have.
    pub(crate) fn begin(&self, first: &Object) -> Result<(), FrameError> {
        match self {
            Self::Verdicts => Ok(()),
            Self::Tools(shelf) => offer(shelf, first.get("tools")),
        }
    }

    /// Reads an answer. A peer's may come with another list of its tools.
    ///
    /// # Errors
    /// When it is no answer.
    pub(crate) fn answer(&self, object: &Object) -> Result<Spoken, FrameError> {
        let text = |name: &str| match object.get(name) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(FrameError::Other(self.form())),
        };
        match self {
            Self::Verdicts => {
                let answer = match object.get("answer").and_then(Value::as_str) {
                    Some("allow") => Answer::Allow,
                    Some("deny") => Answer::Deny,
                    Some("review") => Answer::Review,
                    Some("pass") => Answer::Pass,
                    _ => return Err(FrameError::Other(self.form())),
                };
                Ok(Spoken::Verdict(answer, text("reason")?))
            }
            Self::Tools(shelf) => {
                let ok = object.get("ok").and_then(Value::as_bool);
                let report = CallReport {
                    ok: ok.ok_or(FrameError::Other(self.form()))?,
                    text: text("text")?,
                    touched: Vec::new(),
                };
                if let more @ Some(_) = object.get("tools") {
                    offer(shelf, more)?;
                }
                Ok(Spoken::Result(report))
            }
        }
    }
}

fn offer(shelf: &Shelf, tools: Option<&Value>) -> Result<(), FrameError> {
    let tools = tools.and_then(Value::as_array).ok_or(FrameError::Other("\"tools\":[…]"))?;
    let described = tools.iter().map(Shelf::read).collect::<Result<_, _>>()?;
    shelf.offer(described).map_err(FrameError::Other)
}
