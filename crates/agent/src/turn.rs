//! Bailey's own brain: a loop of model calls and tool calls.

use crate::{
    Hands,
    repeats::{Repeats, Repetition},
};
use bailey_kernel::{
    BeginError, BoxFuture, Completion, Context, READS_NO_CALLS, Refused, Segment, StopReason,
};
use bailey_tools::Toolbox;

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
    /// The model repeats a call that fails, and the person did not let it go on.
    Stuck,
    /// Without an answer: an empty one came, one that was cut, or a call that the server did not read.
    Unanswered,
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
            Self::Stuck => "stuck",
            Self::Unanswered => "unanswered",
        }
    }
}

/// Decides what to do next, until a turn is over.
pub trait Brain: Send + Sync + 'static {
    /// Runs one turn. The context ends with a person's message, or with the results of calls that were
    /// interrupted.
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
    /// The turn of a sub-agent, which is a part of the turn that began it: it has its own limit within what
    /// that one has left, and asks nobody whether it goes on.
    pub(crate) async fn part(&self, hands: &Hands, context: &mut Context) -> Result<TurnEnd, Refused> {
        self.steps(hands, context, true).await
    }

    async fn steps(&self, hands: &Hands, context: &mut Context, is_part: bool) -> Result<TurnEnd, Refused> {
        let mut own_left = self.calls_max;
        let (mut repeats, mut again) = (Repeats::default(), true);
        loop {
            hands.renew_tools().await?;
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
            let lack = lack(reply.answer(), &hands.tools.now());
            context.push(reply);
            if let Some(lack) = &lack {
                hands.notice(lack.notice()).await?;
            }
            if stop == StopReason::Refused {
                hands.notice("the provider refused to answer".into()).await?;
                for call in &calls {
                    hands
                        .leave(context, call, "not run: the provider refused the reply that it is part of")
                        .await?;
                }
            }
            if calls.is_empty() || stop == StopReason::Refused {
                // What was said while the model gave its answer wants one, too.
                if !hands.news.is_empty() || hands.wait_at_end(context).await? {
                    continue;
                }
                let end = match &lack {
                    _ if hands.scope.cancel().is_cancelled() => TurnEnd::Cancelled,
                    _ if !hands.waiting.calls().is_empty() => TurnEnd::Waiting,
                    _ if stop == StopReason::Refused => TurnEnd::Refused,
                    None => TurnEnd::Answered,
                    Some(lack) => match lack.question().filter(|_| std::mem::take(&mut again)) {
                        Some(question) => {
                            context.push(hands.kernel.remind(&hands.scope, question).await?);
                            continue;
                        }
                        None => TurnEnd::Unanswered,
                    },
                };
                return Ok(end);
            }
            again = true;
            // Those before the one at which a reply was cut are whole.
            let (last, whole) = match calls.split_last() {
                Some((last, whole)) if stop == StopReason::Length => (Some(last), whole),
                _ => (None, calls.as_slice()),
            };
            let most = hands.calls_left.take(calls.len().min(own_left));
            let results = hands.calls(context, whole, most).await?;
            let repetition = repeats.take(&hands.tools.now(), whole, &results);
            results.into_iter().for_each(|result| context.push(Segment::Observation(result)));
            if let Some(call) = last {
                hands.leave(context, call, &cut).await?;
            }
            hands.guides(context, &calls).await?;
            if hands.scope.cancel().is_cancelled() {
                return Ok(TurnEnd::Cancelled);
            }
            match repetition {
                Some(Repetition::Tell(text)) => context.push(hands.kernel.remind(&hands.scope, &text).await?),
                Some(Repetition::Pause(..)) if is_part => return Ok(TurnEnd::Stuck),
                Some(Repetition::Pause(tool, times)) => {
                    if let Some(end) = hands.pause_repeating(&tool, times).await? {
                        return Ok(end);
                    }
                }
                None => {}
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

/// Why a reply without calls is no answer.
#[derive(Debug, PartialEq, Eq)]
enum Lack {
    /// There is nothing in it.
    Empty,
    /// It was cut at its limit of tokens.
    Cut,
    /// The server says that there are calls, and gives no call.
    NoCalls,
    /// It calls this tool in its text.
    Written(String),
}

/// The fault by which a reply is no answer. A refused reply is handled elsewhere.
fn lack(answer: &Completion, tools: &Toolbox) -> Option<Lack> {
    match answer.stop {
        StopReason::Length => Some(Lack::Cut),
        StopReason::NoCalls => Some(Lack::NoCalls),
        StopReason::Answered if answer.text.trim().is_empty() => Some(Lack::Empty),
        StopReason::Answered => crate::written::called(&answer.text, tools).map(Lack::Written),
        StopReason::Refused | StopReason::Calls => None,
    }
}

impl Lack {
    /// The notice to people.
    fn notice(&self) -> String {
        match self {
            Self::Empty => "the model's answer is empty".into(),
            Self::Cut => "the model's answer was cut at its limit of tokens".into(),
            Self::NoCalls => format!("the model made calls, and none came; {READS_NO_CALLS}"),
            Self::Written(tool) => format!("the model called `{tool}` in its text; {READS_NO_CALLS}"),
        }
    }

    /// The message to the model, where another attempt may help.
    fn question(&self) -> Option<&'static str> {
        match self {
            Self::Empty => Some("your answer was empty. Say what you found or did, or go on with the work."),
            Self::Cut => {
                Some("your answer was cut at its limit of tokens. Go on where it ended, more briefly.")
            }
            Self::NoCalls | Self::Written(_) => None,
        }
    }
}

/// What a model is told of the call at which its reply was cut: it cannot see that itself, and would write
/// the same again.
fn cut_call(answer: &Completion) -> String {
    let limit = match answer.usage.output_tokens {
        0 => String::new(),
        tokens => format!(" of {tokens} tokens"),
    };
    format!(
        "your reply was cut at its limit{limit} before this call was whole; nothing was done: write it in parts"
    )
}
