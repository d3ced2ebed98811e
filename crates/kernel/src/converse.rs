//! The verb `converse`: one model call, from the context to a reply.

use crate::{
    Chunk, Context, Kernel, Refused, Reply, Scope,
    admit::{Admission, Asked, Started},
    provider::{Answer, Decoder, Delta, ModelError, ModelErrorKind, Provider},
};
use bailey_journal::{Entry, Fact, Payload, Purpose};
use bailey_protocol::{Action, Cost, Happening, Labels, Report, SessionId, Status, ToolSpec, Usage};

impl Kernel {
    /// Asks a model. It encodes the context itself, so that what was admitted to the context is what is sent. One
    /// attempt is one effect: a retry or a fallback calls it again, and is decided again.
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
        let encoded = provider.encode(context, tools);
        let name = provider.name().to_owned();
        let model = provider.model().to_owned();
        let action = Action::Model { provider: name.clone(), model: model.clone(), request: encoded.request };
        let labels = context.labels().clone();
        let asked = Asked {
            action: action.clone(),
            purpose: Purpose::Own,
            call: None,
            parent: None,
            labels: labels.clone(),
            cost: encoded.cost,
        };
        let started = match self.admit(scope, asked, &[]).await? {
            Admission::Run(started) => *started,
            Admission::Denied(reasons) => return Err(Refused::Denied(reasons)),
            Admission::Waits(..) => {
                return Err(Refused::Denied(vec!["a model call cannot wait for a human".into()]));
            }
        };
        let talk = Talk { session: scope.session(), provider: name, model, labels };
        self.talk(scope, started, &action, provider, talk, encoded.cost).await
    }

    async fn talk(
        &self,
        scope: &Scope,
        started: Started,
        action: &Action,
        provider: &dyn Provider,
        talk: Talk,
        reserved: Cost,
    ) -> Result<Reply, Refused> {
        let executor = self.performer(action)?;
        let mut decoder = provider.decoder();
        let (kernel, scope) = (self.clone(), scope.clone());
        let (permit, receipt, labels) = started.launched()?;
        let task = tokio::spawn(async move {
            let run = kernel.io(&scope, &receipt, labels);
            let mut spoken = Spoken::new(&kernel);
            let mut answering = false;
            let output = run
                .drive(&kernel, executor, permit, &scope, |chunk| match chunk {
                    Chunk::Head(status, headers) => {
                        answering = (200..300).contains(&status);
                        decoder.head(status, &headers);
                        Vec::new()
                    }
                    Chunk::Body(bytes) => spoken.take(decoder.push(&bytes)),
                    Chunk::Stdout(_) | Chunk::Stderr(_) => Vec::new(),
                })
                .await;
            let rest = spoken.rest();
            let answer = match &output.outcome().status {
                Status::Done => decoder.end(),
                Status::Cancelled => {
                    return kernel.end_silent(receipt, output, reserved, Refused::Cancelled).await;
                }
                Status::Failed { reason } => Err(failed(reason, output.report(), decoder)),
                Status::Unknown => Err(ModelError::new(ModelErrorKind::Cut, "the model call did not end")),
            };
            let used = match &answer {
                Ok(answer) => used(answer, reserved),
                // The model had begun, or nobody knows: how much it read and wrote, nobody will say.
                Err(_) if answering || output.outcome().status == Status::Unknown => reserved,
                Err(_) => Cost::default(),
            };
            let follow = answer.as_ref().ok().map(|answer| talk.entry(answer)).transpose()?;
            let finished = kernel.finish(receipt, output, used, follow.into_iter().collect()).await?;
            if let Some(text) = rest {
                kernel.tell(&scope, Happening::Text { text }).await?;
            }
            let answer = answer?;
            kernel.tell(&scope, Happening::Usage { usage: answer.usage, cost: answer.cost.clone() }).await?;
            let labels = talk.labels.from_entry(finished.seq);
            Ok(Reply { provider: talk.provider, answer, labels })
        });
        task.await.map_err(|error| Refused::Failed(format!("the model call's task ended badly: {error}")))?
    }

    async fn end_silent(
        &self,
        receipt: bailey_journal::Receipt,
        output: crate::Output,
        used: Cost,
        why: Refused,
    ) -> Result<Reply, Refused> {
        self.finish(receipt, output, used, Vec::new()).await?;
        Err(why)
    }
}

/// Who talks to whom, for the reply's entry.
struct Talk {
    session: SessionId,
    provider: String,
    model: String,
    labels: Labels,
}

impl Talk {
    fn entry(&self, answer: &Answer) -> Result<Entry, Refused> {
        let fact = Fact::Reply {
            provider: self.provider.clone(),
            model: self.model.clone(),
            labels: self.labels.clone(),
        };
        let stored = serde_json::to_value(answer).map_err(|error| Refused::Failed(error.to_string()))?;
        Ok(Entry::of(self.session, fact).with(Payload::Json(stored)))
    }
}

/// What a call used up: what the provider counted, or what was reserved where it counted nothing.
fn used(answer: &Answer, reserved: Cost) -> Cost {
    let Usage { input_tokens, output_tokens, .. } = answer.usage;
    let counted = input_tokens.saturating_add(output_tokens);
    if counted == 0 { reserved } else { Cost { tokens: counted } }
}

/// What a failed call was, by how far it got: nothing was sent, nobody answered, or the answer broke off.
fn failed(reason: &str, report: &Report, decoder: Box<dyn Decoder>) -> ModelError {
    match report {
        Report::Http(answer) if answer.status > 0 => match decoder.end() {
            Err(error) => error,
            Ok(_) => ModelError::new(ModelErrorKind::Cut, reason),
        },
        Report::Http(_) => ModelError::new(ModelErrorKind::Unreachable, reason),
        _ => ModelError::new(ModelErrorKind::Invalid, reason),
    }
}

/// The model's text on its way to the front end, past the redactor.
struct Spoken {
    redactor: Option<bailey_secrets::StreamRedactor>,
}

impl Spoken {
    fn new(kernel: &Kernel) -> Self {
        Self { redactor: Some(kernel.journal().redactor().stream()) }
    }

    fn take(&mut self, deltas: Vec<Delta>) -> Vec<Happening> {
        let mut happenings = Vec::new();
        for delta in deltas {
            let (Delta::Text(text), Some(redactor)) = (delta, &mut self.redactor) else { continue };
            let clean = redactor.push(text.as_bytes());
            if !clean.is_empty() {
                happenings.push(Happening::Text { text: String::from_utf8_lossy(&clean).into_owned() });
            }
        }
        happenings
    }

    fn rest(&mut self) -> Option<String> {
        let clean = self.redactor.take()?.finish();
        (!clean.is_empty()).then(|| String::from_utf8_lossy(&clean).into_owned())
    }
}
