//! Extensions of the policy: the owner's programs that judge effects, and what a decision makes of them.
//!
//! Extensions are asked only where the rules deny nothing, each about the effect as the journal keeps it. A
//! reply that is no answer counts as a denial and is an entry. An extension that was disabled, here or in
//! another process, is not asked. One that does not run is started first, which is an effect (`program.rs`).

use crate::{Kernel, Refused, Scope, program::Programs};
use bailey_journal::ExtensionFailure;
pub use bailey_policy::{Answer, ExtensionReply};
use bailey_policy::{Decided, Inquiry};
use bailey_protocol::Sealed;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};

/// The outcome of a question to an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionOutcome {
    /// Its reply.
    pub reply: ExtensionReply,
    /// When it is no answer: why, and the last lines that the extension wrote to its standard error.
    pub told: String,
}

impl ExtensionOutcome {
    /// Why there is no answer, for people.
    #[must_use]
    pub fn why(&self) -> &str {
        match &self.reply {
            ExtensionReply::Barred(why) => why,
            ExtensionReply::Late => "it was late",
            _ => &self.told,
        }
    }
}

impl Kernel {
    /// The end of a decision that the rules left to extensions.
    pub(crate) async fn inquire(
        &self,
        scope: &Scope,
        sealed: &Sealed,
        inquiry: Inquiry<'_>,
    ) -> Result<Decided, Refused> {
        let question = self.question(scope, sealed)?;
        let mut replies = BTreeMap::new();
        for extension in inquiry.extensions() {
            let reply = self.consult(scope, &extension.name, question.clone()).await?;
            replies.insert(extension.name.as_str(), reply);
        }
        Ok(inquiry.conclude(|extension| replies.remove(extension.name.as_str()).flatten()))
    }

    /// The effect as the journal keeps it, with what it comes to in one line, and where.
    fn question(&self, scope: &Scope, sealed: &Sealed) -> Result<Value, Refused> {
        let effect = sealed.effect();
        let mut question = self.journal().shown(effect)?;
        let target = effect.action.target();
        if let Value::Object(fields) = &mut question {
            fields.insert("target".into(), json!(self.journal().redactor().redact(&target).text));
            fields.insert("workspace".into(), json!(scope.workspace()));
        }
        Ok(question)
    }

    /// The reply of one extension; none where nobody runs it.
    async fn consult(
        &self,
        scope: &Scope,
        name: &str,
        question: Value,
    ) -> Result<Option<ExtensionReply>, Refused> {
        if self.journal().extension(name).await?.is_disabled() {
            return Ok(Some(ExtensionReply::Disabled));
        }
        let Some(programs) = self.programs() else { return Ok(None) };
        let heard = self.hear(scope, programs, name, question).await?;
        self.note_failure(scope, name, heard).await.map(Some)
    }

    /// The reply, once it is written down where it is none.
    pub(crate) async fn note_failure(
        &self,
        scope: &Scope,
        name: &str,
        ExtensionOutcome { reply, told }: ExtensionOutcome,
    ) -> Result<ExtensionReply, Refused> {
        let failure = match reply {
            ExtensionReply::Late => ExtensionFailure::Late,
            ExtensionReply::Crashed => ExtensionFailure::Crashed,
            ExtensionReply::Garbled => ExtensionFailure::Garbled,
            ExtensionReply::Said { .. }
            | ExtensionReply::TooLong
            | ExtensionReply::Disabled
            | ExtensionReply::Barred(_) => return Ok(reply),
        };
        self.inner.mint.extension_failed(scope.session(), name, failure, told).await?;
        Ok(reply)
    }

    /// Asks one, which is started where it does not run.
    async fn hear(
        &self,
        scope: &Scope,
        programs: &Arc<dyn Programs>,
        name: &str,
        question: Value,
    ) -> Result<ExtensionOutcome, Refused> {
        let mut question = question;
        // It may end between its start and the question; its starts are counted.
        loop {
            question = match programs.ask(name, question).await {
                Ok(heard) => return Ok(heard),
                Err(back) => back,
            };
            if let Err(heard) = self.start_program(scope, programs, name).await? {
                return Ok(heard);
            }
        }
    }
}
