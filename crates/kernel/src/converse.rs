//! The verb `converse`: one model call, from the context to a reply.

use crate::{
    Chunk, Context, Kernel, Output, Price, Refused, Reply, Scope,
    admit::{ActionRequest, Admission, Started},
    live::ChunkNotice,
    price::{self, price},
    provider::{Completion, Decoder, Delta, ModelError, ModelErrorKind, Provider},
    tokens,
};
use bailey_journal::{Entry, Fact, Payload, Purpose};
use bailey_protocol::{Action, ContextSize, Cost, Happening, Outcome, Report, Seq, Status, ToolSpec, Usage};
use std::time::Duration;

/// How long a connection may stay open behind a reply that is over. Most end at once, and serve the next
/// call; some servers, and what stands before them, leave them open.
const AFTERWARDS: Duration = Duration::from_millis(500);

impl Kernel {
    /// Asks a model. It encodes the context itself, so that what was admitted to the context is what is sent.
    /// One attempt is one effect: a retry or a fallback calls it again, and is decided again.
    ///
    /// # Errors
    /// [`Refused::Model`] when no reply came; others when the gate or the journal refused.
    pub async fn converse(
        &self,
        scope: &Scope,
        context: &Context,
        provider: &dyn Provider,
        tools: &[ToolSpec],
    ) -> Result<Reply, Refused> {
        let (session, labels) = (scope.conversation(), context.labels().clone());
        self.expect(scope.session());
        let name = provider.name().to_owned();
        let fact = Fact::Reply {
            provider: name.clone(),
            model: provider.model().to_owned(),
            labels: labels.clone(),
        };
        let keep = move |answer: &Completion| {
            let stored = serde_json::to_value(answer).map_err(|error| malformed(error.to_string()))?;
            Ok(Entry::of(session, fact).with(Payload::Json(stored)))
        };
        let (answer, entry) = self.ask_model(scope, context, provider, tools, Voice::Aloud, keep).await?;
        Ok(Reply { entry, provider: name, answer, labels: labels.from_entry(entry) })
    }

    /// One model call to its end. `keep` makes the entry that is written together with the outcome, or says
    /// why the answer is none; then nothing but the outcome is written.
    pub(crate) async fn ask_model(
        &self,
        scope: &Scope,
        context: &Context,
        provider: &dyn Provider,
        tools: &[ToolSpec],
        voice: Voice,
        keep: impl FnOnce(&Completion) -> Result<Entry, ModelError> + Send + 'static,
    ) -> Result<(Completion, Seq), Refused> {
        let encoded = provider.encode(context, tools);
        let (read, prices) = (encoded.reads(context), provider.prices().to_vec());
        let money = price::most(&prices, read, encoded.writes);
        let reserved = Cost { tokens: read.saturating_add(encoded.writes), money };
        let (provider_name, model) = (provider.name().to_owned(), provider.model().to_owned());
        let action = Action::Model { provider: provider_name, model, request: encoded.request };
        let asked = ActionRequest {
            action: action.clone(),
            purpose: Purpose::Own,
            for_a_change: false,
            call: None,
            parent: None,
            labels: context.labels().clone(),
            cost: reserved.clone(),
        };
        let started = match self.admit(scope, asked, &[]).await? {
            Admission::Run(started) => *started,
            Admission::Denied(reasons) => return Err(Refused::Denied(reasons)),
            Admission::Waits(..) => {
                return Err(Refused::Denied(vec!["a model call cannot wait for a human".into()]));
            }
        };
        let count = CallEstimate { reserved, read, prices, window: provider.window_tokens() };
        self.talk(scope, started, &action, provider.decoder(), count, voice, keep).await
    }

    #[expect(clippy::too_many_arguments, reason = "one call, its way, and what becomes of its answer")]
    async fn talk(
        &self,
        scope: &Scope,
        started: Started,
        action: &Action,
        mut decoder: Box<dyn Decoder>,
        count: CallEstimate,
        voice: Voice,
        keep: impl FnOnce(&Completion) -> Result<Entry, ModelError> + Send + 'static,
    ) -> Result<(Completion, Seq), Refused> {
        let executor = self.performer(action)?;
        let (kernel, scope) = (self.clone(), scope.clone());
        let (permit, receipt, labels) = started.launched()?;
        let window = count.window;
        let task = tokio::spawn(async move {
            let run = kernel.io(&scope, &receipt, labels);
            let mut spoken = Spoken::new(&kernel, voice);
            let mut answering = false;
            let mut afterwards = Some(run.cancel());
            let output = run
                .drive(&kernel, executor, permit, &scope, |chunk| match chunk {
                    Chunk::Head(status, headers) => {
                        answering = (200..300).contains(&status);
                        decoder.head(status, &headers);
                        Vec::new()
                    }
                    Chunk::Body(bytes) => {
                        let deltas = decoder.push(&bytes);
                        if decoder.is_over()
                            && let Some(run) = afterwards.take()
                        {
                            tokio::spawn(async move {
                                tokio::time::sleep(AFTERWARDS).await;
                                run.cancel();
                            });
                        }
                        spoken.take(deltas).into_iter().map(Box::new).map(ChunkNotice::Event).collect()
                    }
                    Chunk::Begun(_) | Chunk::Stdout(_) | Chunk::Stderr(_) => Vec::new(),
                })
                .await;
            let answer = match &output.outcome().status {
                Status::Done => decoder.end(),
                Status::Cancelled if decoder.is_over() && !scope.cancel.is_cancelled() => decoder.end(),
                Status::Cancelled => {
                    let used = if is_unsent(output.report()) { Cost::default() } else { count.reserved };
                    kernel.finish(receipt, output, used, Vec::new()).await?;
                    return Err(Refused::Cancelled);
                }
                Status::Failed { reason } => broken_off(reason, output.report(), decoder),
                Status::Unknown => Err(ModelError::new(ModelErrorKind::Cut, "the model call did not end")),
            };
            let answer = answer.map(|answer| count.priced(answer));
            let output = if answer.is_ok() { done(output) } else { output };
            let rest = spoken.rest(answer.as_ref().map(|answer| answer.text.as_str()).unwrap_or_default());
            let used = match &answer {
                Ok(answer) => count.used(answer),
                // The model had begun, or nobody knows: how much it read and wrote, nobody will say.
                Err(_) if answering || output.outcome().status == Status::Unknown => count.reserved.clone(),
                // It may have read what it was sent, and answered nobody.
                Err(_) if is_unanswered(output.report()) => count.unanswered(),
                Err(_) => Cost::default(),
            };
            let kept = answer.and_then(|answer| keep(&answer).map(|entry| (answer, entry)));
            let follow = kept.as_ref().map(|(_, entry)| entry.clone()).into_iter().collect();
            let finished = kernel.finish(receipt, output, used, follow).await?;
            if let Some(text) = rest {
                kernel.tell(&scope, Happening::Text { text }).await?;
            }
            let (answer, _) = kept?;
            let (usage, cost) = (answer.usage, answer.cost.clone());
            // A sub-agent's context is not that of the conversation.
            let is_main = scope.conversation.is_none() && voice == Voice::Aloud;
            let context =
                is_main.then(|| ContextSize { tokens: usage.input_tokens + usage.output_tokens, window });
            kernel.tell(&scope, Happening::Usage { usage, cost, context }).await?;
            Ok((answer, finished.seq))
        });
        task.await.map_err(|error| Refused::Failed(format!("the model call's task ended badly: {error}")))?
    }
}

/// Whether the front end hears the model while it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    Aloud,
    Silent,
}

/// What a call may use up, and how much it reads.
#[derive(Debug, Clone)]
struct CallEstimate {
    reserved: Cost,
    /// Our own estimate of the request, in tokens.
    read: u64,
    prices: Vec<Price>,
    /// The tokens that the model takes, where that is known.
    window: Option<u64>,
}

impl CallEstimate {
    /// What a call used up, by whichever count is larger, the provider's or our own: a server that counts too
    /// little does not make a budget endless. Where it counted nothing, what was reserved.
    fn used(&self, answer: &Completion) -> Cost {
        let calls = answer.calls.iter().map(|call| tokens(&call.name) + tokens(&call.arguments));
        let written = tokens(&answer.text) + calls.sum::<u64>();
        let Usage { input_tokens, output_tokens, .. } = answer.usage;
        if input_tokens.saturating_add(output_tokens) == 0 {
            return self.reserved.clone();
        }
        let usage = Usage {
            input_tokens: input_tokens.max(self.read),
            output_tokens: output_tokens.max(written),
            ..answer.usage
        };
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        Cost { tokens, money: price(&self.prices, &usage) }
    }

    /// What a call used up that was sent and brought nothing: what it was sent, by our own count.
    fn unanswered(&self) -> Cost {
        let usage = Usage { input_tokens: self.read, ..Usage::default() };
        Cost { tokens: self.read, money: price(&self.prices, &usage) }
    }

    fn priced(&self, answer: Completion) -> Completion {
        Completion { cost: price(&self.prices, &answer.usage), ..answer }
    }
}

pub(crate) fn malformed(why: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Malformed, why)
}

fn is_unanswered(report: &Report) -> bool {
    // A gateway that gave up may have passed it on.
    matches!(report, Report::Http(answer) if answer.sent && matches!(answer.status, 0 | 502 | 504 | 524))
}

/// Whether it was given up before anything had left.
fn is_unsent(report: &Report) -> bool {
    matches!(report, Report::Http(answer) if !answer.sent)
}

/// What came of a call whose connection did not end cleanly, by how far it got: nothing was sent, nobody
/// answered, or the answer broke off. An answer that is whole by its wire is one all the same: it is paid
/// for, and nothing of it was to follow.
fn broken_off(reason: &str, report: &Report, decoder: Box<dyn Decoder>) -> Result<Completion, ModelError> {
    match report {
        Report::Http(answer) if answer.status > 0 => decoder.end(),
        Report::Http(_) => Err(ModelError::new(ModelErrorKind::Unreachable, reason)),
        _ => Err(ModelError::new(ModelErrorKind::Invalid, reason)),
    }
}

/// The call is done when its answer is there, however the connection ended behind it.
fn done(output: Output) -> Output {
    Output::new(Outcome { status: Status::Done, ..output.into_outcome() })
}

/// The model's text on its way to the front end, past the redactor.
struct Spoken {
    redactor: Option<bailey_secrets::StreamRedactor>,
    /// Bytes of the text that it was given.
    told: usize,
}

impl Spoken {
    fn new(kernel: &Kernel, voice: Voice) -> Self {
        Self { redactor: (voice == Voice::Aloud).then(|| kernel.journal().redactor().stream()), told: 0 }
    }

    fn take(&mut self, deltas: Vec<Delta>) -> Vec<Happening> {
        let mut happenings = Vec::new();
        for delta in deltas {
            let (Delta::Text(text), Some(redactor)) = (delta, &mut self.redactor) else { continue };
            self.told += text.len();
            let clean = redactor.push(text.as_bytes());
            if !clean.is_empty() {
                happenings.push(Happening::Text { text: String::from_utf8_lossy(&clean).into_owned() });
            }
        }
        happenings
    }

    /// What was held back, and what of the answer's text did not come in pieces: all of one that was not
    /// streamed, and what the end of a stream cut off from its blank line. One redactor sees both, so that no
    /// secret falls between.
    fn rest(&mut self, text: &str) -> Option<String> {
        let mut redactor = self.redactor.take()?;
        let untold = text.get(self.told..).unwrap_or_default();
        let clean = [redactor.push(untold.as_bytes()), redactor.finish()].concat();
        (!clean.is_empty()).then(|| String::from_utf8_lossy(&clean).into_owned())
    }
}
