//! A turn that has made its limit of tool calls, or that repeats itself, asks the person whether it goes on.

use crate::{Hands, TurnEnd};
use bailey_kernel::Refused;
use bailey_protocol::{Answer, Card};

impl Hands {
    /// Asks whether a turn goes on that has made `calls` tool calls; how it ends where it does not. What it
    /// did is kept either way.
    ///
    /// # Errors
    /// When the question cannot be written.
    pub async fn pause(&self, calls: usize) -> Result<Option<TurnEnd>, Refused> {
        if calls == 0 {
            // A yes would be to as many again, which is none, and the question would come back for ever.
            return Ok(Some(TurnEnd::Limit));
        }
        let reason = match calls {
            1 => "this turn has made one tool call, its limit".into(),
            calls => format!("this turn has made {calls} tool calls, its limit"),
        };
        let caveat =
            "its work is kept either way; `tool_calls` under `[limits]` in the configuration is the limit";
        self.ask_on(format!("go on for another {}?", counted(calls)), reason, caveat, TurnEnd::Limit).await
    }

    /// Asks whether a turn goes on that makes the same failing call again and again. Returns how the turn
    /// ends, or `None` when it goes on.
    ///
    /// # Errors
    /// When the question cannot be written.
    pub(crate) async fn pause_repeating(&self, tool: &str, times: u32) -> Result<Option<TurnEnd>, Refused> {
        let reason =
            format!("the model has made the same call of `{tool}` {times} times, and it failed each time");
        let caveat = "its work is kept either way";
        self.ask_on("let the model go on that repeats itself?".into(), reason, caveat, TurnEnd::Stuck).await
    }

    async fn ask_on(
        &self,
        title: String,
        reason: String,
        caveat: &str,
        otherwise: TurnEnd,
    ) -> Result<Option<TurnEnd>, Refused> {
        let id = self.kernel.ask(&self.scope, card(title, reason, caveat)).await?;
        let settled = tokio::select! {
            settled = self.kernel.settled(&self.scope, id) => settled?,
            () = self.scope.cancel().cancelled() => {
                self.kernel.withdraw(&self.scope, id, "the turn was cancelled").await?;
                return Ok(Some(TurnEnd::Cancelled));
            }
        };
        Ok(match settled.answer {
            Answer::Yes | Answer::YesForSession | Answer::YesForPattern => None,
            Answer::No => Some(otherwise),
        })
    }
}

fn card(title: String, reason: String, caveat: &str) -> Card {
    Card {
        title,
        reasons: vec![reason],
        parts: Vec::new(),
        caveats: vec![caveat.into()],
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
