//! A turn that has made as many tool calls as it may asks the person whether it goes on.

use crate::{Hands, TurnEnd};
use bailey_kernel::Refused;
use bailey_protocol::{Answer, Card};

impl Hands {
    /// Asks whether a turn goes on that has made `calls` tool calls; how it ends where it does not. What it did is kept
    /// either way.
    ///
    /// # Errors
    /// When the question cannot be written.
    pub async fn pause(&self, calls: usize) -> Result<Option<TurnEnd>, Refused> {
        if calls == 0 {
            // A yes would be to as many again, which is none, and the question would come back for ever.
            return Ok(Some(TurnEnd::Limit));
        }
        let id = self.kernel.ask(&self.scope, card(calls)).await?;
        let settled = tokio::select! {
            settled = self.kernel.settled(&self.scope, id) => settled?,
            () = self.scope.cancel().cancelled() => {
                self.kernel.withdraw(&self.scope, id, "the turn was cancelled").await?;
                return Ok(Some(TurnEnd::Cancelled));
            }
        };
        Ok(match settled.answer {
            Answer::Yes | Answer::YesForSession | Answer::YesForPattern => None,
            Answer::No => Some(TurnEnd::Limit),
        })
    }
}

fn card(calls: usize) -> Card {
    Card {
        title: format!("go on for another {}?", counted(calls)),
        reasons: vec![match calls {
            1 => "this turn has made one tool call, its limit".into(),
            calls => format!("this turn has made {calls} tool calls, its limit"),
        }],
        parts: Vec::new(),
        caveats: vec![
            "its work is kept either way; `tool_calls` under `[limits]` in the configuration is the limit"
                .into(),
        ],
        once: true,
        origins: Vec::new(),
        pattern: None,
        reasoned: false,
        whole: true,
    }
}

fn counted(calls: usize) -> String {
    if calls == 1 { "tool call".into() } else { format!("{calls} tool calls") }
}
