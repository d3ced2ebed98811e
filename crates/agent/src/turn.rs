//! Bailey's own brain: a loop of model calls and tool calls.

use crate::Hands;
use bailey_kernel::{Answer, BeginError, BoxFuture, Context, Refused, Segment, Stop};

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnd {
    /// With the model's final answer.
    Answered,
    /// The provider refused to answer.
    Refused,
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
            Self::Refused => "refused",
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
            hands.calls_left.allow(self.calls_max);
            let end = self.steps(hands, context, false).await?;
            if end == TurnEnd::Cancelled {
                hands.withdraw().await?;
            }
            Ok(end)
        })
    }
}

impl Loop {
    /// The turn of a sub-agent, which is a part of the turn that began it: it has its own limit within what that one has left, and asks
    /// nobody whether it goes on.
    pub(crate) async fn part(&self, hands: &Hands, context: &mut Context) -> Result<TurnEnd, Refused> {
        self.steps(hands, context, true).await
    }

    async fn steps(&self, hands: &Hands, context: &mut Context, is_part: bool) -> Result<TurnEnd, Refused> {
        let mut own_left = self.calls_max;
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
            let (calls, stop) = (reply.answer().calls.clone(), reply.answer().stop);
            let cut = cut_call(reply.answer());
            let wrong = wrong(reply.answer());
            context.push(reply);
            if let Some(text) = wrong {
                hands.notice(text.into()).await?;
            }
            if stop == Stop::Refused {
                for call in &calls {
                    hands
                        .leave(context, call, "not run: the provider refused the reply that it is part of")
                        .await?;
                }
            }
            if calls.is_empty() || stop == Stop::Refused {
                // What was said while the model gave its answer wants one, too.
                if !hands.news.is_empty() || hands.wait_at_end(context).await? {
                    continue;
                }
                return Ok(match () {
                    () if hands.scope.cancel().is_cancelled() => TurnEnd::Cancelled,
                    () if !hands.waiting.calls().is_empty() => TurnEnd::Waiting,
                    () if stop == Stop::Refused => TurnEnd::Refused,
                    () => TurnEnd::Answered,
                });
            }
            // Those before the one at which a reply was cut are whole.
            let (last, whole) = match calls.split_last() {
                Some((last, whole)) if stop == Stop::Length => (Some(last), whole),
                _ => (None, calls.as_slice()),
            };
            let most = hands.calls_left.take(calls.len().min(own_left));
            for observation in hands.calls(context, whole, most).await? {
                context.push(Segment::Observation(observation));
            }
            if let Some(call) = last {
                hands.leave(context, call, &cut).await?;
            }
            hands.guides(context, &calls).await?;
            if hands.scope.cancel().is_cancelled() {
                return Ok(TurnEnd::Cancelled);
            }
            own_left = own_left.saturating_sub(calls.len());
            if own_left == 0 || hands.calls_left.is_none() {
                if is_part {
                    return Ok(TurnEnd::Limit);
                }
                if let Some(end) = hands.pause(self.calls_max).await? {
                    return Ok(end);
                }
                own_left = self.calls_max;
                hands.calls_left.allow(self.calls_max);
            }
        }
    }
}

/// What people are told of a reply that is no plain one.
fn wrong(answer: &Answer) -> Option<&'static str> {
    match answer.stop {
        Stop::Length => Some("the model's answer was cut at its limit of tokens"),
        Stop::Refused => Some("the provider refused to answer"),
        _ if answer.calls.is_empty() && answer.text.trim().is_empty() => Some("the model's answer is empty"),
        Stop::Answered | Stop::Calls => None,
    }
}

/// What a model is told of the call at which its reply was cut: it cannot see that itself, and would write the same again.
fn cut_call(answer: &Answer) -> String {
    let limit = match answer.usage.output_tokens {
        0 => String::new(),
        tokens => format!(" of {tokens} tokens"),
    };
    format!(
        "your reply was cut at its limit{limit} before this call was whole; nothing was done: write it in parts"
    )
}
