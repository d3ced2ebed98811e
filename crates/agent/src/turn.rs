//! Bailey's own brain: a loop of model calls and tool calls.

use crate::Hands;
use bailey_kernel::{BeginError, BoxFuture, Context, Refused, Segment, Stop};
use bailey_protocol::Happening;

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnd {
    /// With the model's final answer.
    Answered,
    /// The user cancelled it.
    Cancelled,
    /// It reached its limit of tool calls, and nobody said that it goes on; it can be continued.
    Limit,
    /// The model is done with what it can do before a human has answered; it can be continued then.
    Waiting,
    /// A budget does not suffice for the next step; it can be continued when there is more.
    Budget,
}

impl TurnEnd {
    /// Its name in events and in the journal.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Cancelled => "cancelled",
            Self::Limit => "limit",
            Self::Waiting => "waiting",
            Self::Budget => "budget",
        }
    }
}

/// Decides what to do next, until a turn is over.
pub trait Brain: Send + Sync + 'static {
    /// Runs one turn. The context ends with a person's message, or with the results of calls that were interrupted.
    fn turn<'a>(
        &'a self,
        hands: &'a Hands,
        context: &'a mut Context,
    ) -> BoxFuture<'a, Result<TurnEnd, Refused>>;
}

/// Bailey's own brain.
#[derive(Debug, Clone)]
pub struct Loop {
    /// Tool calls in one turn; then it pauses, keeps its work, and asks whether it goes on for as many again.
    pub calls_max: usize,
}

impl Default for Loop {
    /// 200 tool calls a turn.
    fn default() -> Self {
        Self { calls_max: 200 }
    }
}

impl Brain for Loop {
    fn turn<'a>(
        &'a self,
        hands: &'a Hands,
        context: &'a mut Context,
    ) -> BoxFuture<'a, Result<TurnEnd, Refused>> {
        Box::pin(async move {
            let end = self.steps(hands, context).await?;
            if end == TurnEnd::Cancelled {
                hands.withdraw().await?;
            }
            Ok(end)
        })
    }
}

impl Loop {
    async fn steps(&self, hands: &Hands, context: &mut Context) -> Result<TurnEnd, Refused> {
        let mut calls_left = self.calls_max;
        loop {
            hands.hear(context).await?;
            hands.woken(context).await?;
            hands.learn_ends(context).await?;
            hands.warn(context).await?;
            let reply = match hands.next(context).await {
                Ok(reply) => reply,
                Err(Refused::Cancelled) => return Ok(TurnEnd::Cancelled),
                Err(Refused::Begin(BeginError::Budget(exceeded))) => {
                    hands.notice(exceeded.to_string()).await?;
                    return Ok(TurnEnd::Budget);
                }
                Err(error) => return Err(error),
            };
            let calls = reply.answer().calls.clone();
            let stop = reply.answer().stop;
            context.push(reply);
            if calls.is_empty() {
                if stop == Stop::Length {
                    let text = "the model's answer was cut at its limit of tokens".into();
                    hands.kernel.tell(&hands.scope, Happening::Notice { text }).await?;
                }
                // What was said while the model gave its answer wants one, too.
                if !hands.news.is_empty() || hands.wait_at_end(context).await? {
                    continue;
                }
                return Ok(match () {
                    () if hands.scope.cancel().is_cancelled() => TurnEnd::Cancelled,
                    () if hands.waiting.calls().is_empty() => TurnEnd::Answered,
                    () => TurnEnd::Waiting,
                });
            }
            for observation in hands.calls(context, &calls, calls_left).await? {
                context.push(Segment::Observation(observation));
            }
            hands.guides(context, &calls).await?;
            if hands.scope.cancel().is_cancelled() {
                return Ok(TurnEnd::Cancelled);
            }
            calls_left = calls_left.saturating_sub(calls.len());
            if calls_left == 0 {
                if let Some(end) = hands.pause(self.calls_max).await? {
                    return Ok(end);
                }
                calls_left = self.calls_max;
            }
        }
    }
}
