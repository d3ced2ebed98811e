//! Extensions of the policy: the seam to whoever runs them, and what a decision makes of them.
//!
//! They are asked only where the rules deny nothing, each about the effect as the journal keeps it. Whatever is no answer is a
//! denial, and is an entry; one that was disabled, here or in another process, is not asked at all.

use crate::{BoxFuture, Kernel, Refused, Scope};
use bailey_journal::Failure;
pub use bailey_policy::{Answer, Reply};
use bailey_policy::{Decided, Inquiry};
use bailey_protocol::Sealed;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Whoever runs the owner's extensions.
pub trait Extensions: Send + Sync + 'static {
    /// Has the extension of this name judge what the question, a JSON object, is about. It ends in bounded time.
    fn ask<'a>(&'a self, name: &'a str, question: Value) -> BoxFuture<'a, Heard>;
}

/// What became of asking one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// Its reply.
    pub reply: Reply,
    /// Where that is no answer: why, and what the extension last wrote to its standard error.
    pub told: String,
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
    async fn consult(&self, scope: &Scope, name: &str, question: Value) -> Result<Option<Reply>, Refused> {
        if self.journal().extension(name).await?.is_disabled() {
            return Ok(Some(Reply::Disabled));
        }
        let Some(extensions) = self.extensions() else { return Ok(None) };
        let Heard { reply, told } = extensions.ask(name, question).await;
        let failure = match reply {
            Reply::Late => Failure::Late,
            Reply::Crashed => Failure::Crashed,
            Reply::Garbled => Failure::Garbled,
            Reply::Said { .. } | Reply::TooLong | Reply::Disabled => return Ok(Some(reply)),
        };
        self.inner.mint.extension_failed(scope.session(), name, failure, told).await?;
        Ok(Some(reply))
    }
}
