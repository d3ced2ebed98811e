//! Making room in a context: old results are shortened first, then what is old is summed up, and at the very
//! last what is too long is cut down until it fits. Whatever fails on the way, the turn goes on.

use crate::{
    Hands, ModelRole,
    budget::{self, Budget},
};
use bailey_kernel::{
    BeginError, Context, ModelError, ModelErrorKind, Provider, Refused, Reply, Segment, Summary, SummaryRoom,
};
use bailey_protocol::{Happening, Seq};

/// What an old result is shortened to, in bytes.
const OLD_RESULT_BYTES: u32 = 1024;
/// What every result is cut down to, step by step, when nothing else helps, in bytes.
const LAST_RESULT_BYTES: [u32; 4] = [16 * 1024, 4 * 1024, 1024, 256];
/// How often a request that was too long for the server is made shorter and sent again.
const OVERFLOWS_MAX: usize = 5;
/// With less room than this no conversation gets anywhere, in tokens.
const ROOM_MIN: u64 = 1024;
/// About how many bytes of plain text are sure to fit into a token's place.
const BYTES_PER_TOKEN: u64 = 2;
/// What a record of words takes beside the words, as a share of them: one part in so many.
const RECORD_SHARE: u64 = 8;
/// Fewer tokens than these are not worth a summary.
const SUMMABLE_TOKENS_MIN: u64 = 256;

impl Hands {
    /// The model's next words, after room was made for the request. Where the server says that it is too long
    /// all the same, more room is made, and it is sent again.
    ///
    /// # Errors
    /// What the last attempt ended with; [`ModelErrorKind::Overflow`] when there is nothing left to leave
    /// out.
    pub async fn next(&self, context: &mut Context) -> Result<Reply, Refused> {
        let mut overflows = 0;
        loop {
            self.make_room(context).await?;
            let error = match self.converse(context).await {
                Err(Refused::Model(error)) if error.kind == ModelErrorKind::Overflow => error,
                Err(Refused::Model(error))
                    if error.kind == ModelErrorKind::LikelyOverflow && has_replies(context) =>
                {
                    return self.next_shorter(context, error).await;
                }
                other => return other,
            };
            overflows += 1;
            if overflows > OVERFLOWS_MAX {
                return Err(error.into());
            }
            let Some(budget) = self.budget(context) else { return Err(error.into()) };
            self.ceiling.too_long(budget.fixed + budget::taken(context));
            self.notice(format!("{error}; leaving out what is old, and asking again")).await?;
        }
    }

    /// Asks once more with a shorter request, because the server took a shorter one of this session: the
    /// refusal may mean that this one is too long. Where it meant something else, its own words are the
    /// error, and no window is learned of it.
    async fn next_shorter(&self, context: &mut Context, error: ModelError) -> Result<Reply, Refused> {
        let Some(budget) = self.budget(context) else { return Err(error.into()) };
        let known = self.ceiling.get();
        self.ceiling.too_long(budget.fixed + budget::taken(context));
        let is_roomy = self.budget(context).is_some_and(|budget| budget.room() >= ROOM_MIN);
        let answered = if is_roomy {
            self.notice(format!("{error}; leaving out what is old, and asking once more")).await?;
            match self.make_room(context).await {
                Ok(()) => self.converse(context).await,
                Err(error) => Err(error),
            }
        } else {
            Err(error.clone().into())
        };
        self.ceiling.set(known);
        match answered {
            Err(Refused::Model(again)) if !again.kind.is_passing() => Err(error.into()),
            answered => answered,
        }
    }

    /// How the window of the model that is asked next is divided.
    #[must_use]
    pub fn budget(&self, context: &Context) -> Option<Budget> {
        let provider = self.models.route(ModelRole::Main).current()?;
        Some(Budget::of(&**provider, context, &self.tools.specs(), &self.ceiling))
    }

    async fn make_room(&self, context: &mut Context) -> Result<(), Refused> {
        let Some(budget) = self.budget(context) else { return Ok(()) };
        if !budget.is_full(context) {
            return Ok(());
        }
        let long = budget.long_results(context, OLD_RESULT_BYTES as usize + 64);
        if !long.is_empty() {
            self.kernel.shorten(&self.scope, context, &long, OLD_RESULT_BYTES).await?;
        }
        if !budget.is_roomy(context) {
            self.sum_up(context, &budget.summable(context), &budget).await?;
        }
        self.cut_down(context, &budget).await
    }

    /// Puts a summary in the place of the whole conversation, because the person asks for it. Returns how
    /// many tokens the conversation took before and takes now.
    ///
    /// # Errors
    /// When there is no model or no summary comes, or the journal cannot be written; then the context stays.
    pub async fn compact(&self, context: &mut Context) -> Result<(u64, u64), Refused> {
        let before = budget::taken(context);
        let budget = self.budget(context).ok_or_else(|| Refused::Failed("there is no model".into()))?;
        let old = budget::all_summable(context);
        let segments = context.segments().iter().filter(|segment| old.contains(&segment.entry()));
        let tokens: u64 = segments.map(Segment::tokens).sum();
        if tokens >= SUMMABLE_TOKENS_MIN {
            // Without a summary nothing is left out: the context still has room.
            let summary = self.summary(context, (&old, tokens), &budget).await?;
            context.condense(summary);
        }
        Ok((before, budget::taken(context)))
    }

    /// Puts a note in the place of these entries: a model's, or a plain list.
    async fn sum_up(&self, context: &mut Context, old: &[Seq], budget: &Budget) -> Result<(), Refused> {
        let segments = context.segments().iter().filter(|segment| old.contains(&segment.entry()));
        let tokens: u64 = segments.map(bailey_kernel::Segment::tokens).sum();
        if tokens < SUMMABLE_TOKENS_MIN {
            return Ok(());
        }
        let mut text = format!("summing up the earlier part of the conversation, about {tokens} tokens");
        if let Some(own) = self.models.route(ModelRole::Summary).current()
            && self.source_bytes(context, &**own, tokens).is_some()
        {
            let (name, model) = (own.name(), own.model());
            text += &format!("; for `{name}/{model}` that is too long, and its middle is left out");
        }
        self.notice(text).await?;
        let summary = match self.summary(context, (old, tokens), budget).await {
            Ok(summary) => summary,
            Err(
                error @ (Refused::Model(_)
                | Refused::Denied(_)
                | Refused::Failed(_)
                | Refused::Begin(BeginError::NoPrice { .. })),
            ) => {
                let text = format!("{error}; the earlier part is left out without a summary");
                self.notice(text).await?;
                self.kernel.leave_out(&self.scope, context, old, bytes(budget.summary())).await?
            }
            Err(error) => return Err(error),
        };
        context.condense(summary);
        Ok(())
    }

    async fn summary(
        &self,
        context: &Context,
        (old, tokens): (&[Seq], u64),
        budget: &Budget,
    ) -> Result<Summary, Refused> {
        let note_bytes = bytes(budget.summary());
        let ask = |provider| -> bailey_kernel::BoxFuture<'_, _> {
            let source_bytes = self.source_bytes(context, provider, tokens).unwrap_or(usize::MAX);
            let room = SummaryRoom { source_bytes, note_bytes };
            Box::pin(self.kernel.summarise(&self.scope, context, old, provider, room))
        };
        self.over(ModelRole::Summary, ask).await
    }

    /// What of a record of so many tokens fits into the window of whoever sums it up; none where all of it
    /// does.
    fn source_bytes(&self, context: &Context, provider: &dyn Provider, tokens: u64) -> Option<usize> {
        let room = Budget::of(provider, context, &[], &self.ceiling).room();
        (tokens + tokens / RECORD_SHARE > room).then(|| bytes(room))
    }

    /// Makes a context fit that is over its room although what is old was summed up.
    async fn cut_down(&self, context: &mut Context, budget: &Budget) -> Result<(), Refused> {
        for bytes in LAST_RESULT_BYTES {
            if !budget.is_over(context) {
                return Ok(());
            }
            let long = budget::results(context.segments(), bytes as usize + 64);
            if !long.is_empty() {
                self.kernel.shorten(&self.scope, context, &long, bytes).await?;
            }
        }
        if !budget.is_over(context) {
            return Ok(());
        }
        if budget.room() < ROOM_MIN {
            let provider = self.models.route(ModelRole::Main).current();
            let (name, model) = provider.map_or(("", ""), |provider| (provider.name(), provider.model()));
            return Err(ModelError::new(ModelErrorKind::Overflow, too_small(name, model, budget)).into());
        }
        let message = format!(
            "what cannot be left out comes to about {} tokens, and the model's window has room for {}: the last message, \
             pinned ones and guides are kept whole; say it in fewer words, take a pin off (`/unpin` in `bailey chat`), or \
             choose a model with a longer window",
            budget::taken(context),
            budget.room()
        );
        Err(ModelError::new(ModelErrorKind::Overflow, message).into())
    }

    pub(crate) async fn notice(&self, text: String) -> Result<(), Refused> {
        self.kernel.tell(&self.scope, Happening::Notice { text }).await
    }
}

/// A window that has no place for a conversation: how large it must be, and where servers set it.
fn too_small(provider: &str, model: &str, budget: &Budget) -> String {
    // A reply may take a quarter of a small window.
    let needed = (budget.fixed + 4 * ROOM_MIN).next_multiple_of(4096).max(8192);
    format!(
        "the window of `{provider}/{model}` is too small: it counts as {} tokens here, and the instruction, the tools and a \
         reply take {} of them. Give the model at least {needed}: Ollama takes it from `window_tokens = {needed}` under \
         `[providers.{provider}]` in config.toml; llama.cpp from `--ctx-size {needed}`; LM Studio from *Context Length* where \
         the model is loaded (`lms load {model} --context-length {needed}`); vLLM from `--max-model-len {needed}`. For all \
         but Ollama write `window_tokens = {needed}` as well. Or choose a model with a longer window",
        budget.window, budget.fixed
    )
}

fn has_replies(context: &Context) -> bool {
    context.segments().iter().any(|segment| matches!(segment, Segment::Reply(_)))
}

/// Bytes that are sure to fit into the places of so many tokens.
fn bytes(tokens: u64) -> usize {
    usize::try_from(tokens * BYTES_PER_TOKEN).unwrap_or(usize::MAX)
}
