//! Extensions of the policy: the seam to whoever runs them, and what a decision makes of them.
//!
//! They are asked only where the rules deny nothing, each about the effect as the journal keeps it. Whatever
//! is no answer is a denial, and is an entry; one that was disabled, here or in another process, is not asked
//! at all. One that does not run is started first, which is an effect (`post.rs`).

use crate::{BoxFuture, Kernel, Output, Refused, Scope};
use bailey_journal::{Failure, Permit};
pub use bailey_policy::{Answer, Reply};
use bailey_policy::{Decided, Inquiry};
use bailey_protocol::{Command, Digest, Isolation, Sealed};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::oneshot;

/// Whoever runs the owner's extensions.
pub trait Extensions: Send + Sync + 'static {
    /// Whether it runs, and can be asked.
    fn runs(&self, name: &str) -> bool;

    /// What would be started now, its files looked at anew; none where nobody here runs it.
    fn program<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Program>>;

    /// Starts it, as the permit says. It returns, in bounded time, when the extension can be asked, or with
    /// what is to be made of it where it cannot. Once it has ended, also where it never began, `ended` is
    /// told how.
    fn start<'a>(
        &'a self,
        name: &'a str,
        permit: Permit,
        ended: oneshot::Sender<Output>,
    ) -> BoxFuture<'a, Result<(), Heard>>;

    /// Has the extension of this name judge what the question, a JSON object, is about. It ends in bounded
    /// time. The question comes back where it does not run.
    fn ask<'a>(&'a self, name: &'a str, question: Value) -> BoxFuture<'a, Result<Heard, Value>>;

    /// Ends it, and keeps it from being started again.
    fn end<'a>(&'a self, name: &'a str) -> BoxFuture<'a, ()>;
}

/// What an extension's start comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// What runs, and where.
    pub command: Command,
    /// Its walls.
    pub isolation: Isolation,
    /// Names the program as it is now: the policy's own name of it, while nothing of it has changed.
    pub digest: Digest,
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
        let heard = self.hear(scope, extensions, name, question).await?;
        self.note_failure(scope, name, heard).await.map(Some)
    }

    /// The reply, once it is written down where it is none.
    pub(crate) async fn note_failure(
        &self,
        scope: &Scope,
        name: &str,
        Heard { reply, told }: Heard,
    ) -> Result<Reply, Refused> {
        let failure = match reply {
            Reply::Late => Failure::Late,
            Reply::Crashed => Failure::Crashed,
            Reply::Garbled => Failure::Garbled,
            Reply::Said { .. } | Reply::TooLong | Reply::Disabled | Reply::Barred(_) => return Ok(reply),
        };
        self.inner.mint.extension_failed(scope.session(), name, failure, told).await?;
        Ok(reply)
    }

    /// Asks one, which is started where it does not run.
    async fn hear(
        &self,
        scope: &Scope,
        extensions: &Arc<dyn Extensions>,
        name: &str,
        question: Value,
    ) -> Result<Heard, Refused> {
        let mut question = question;
        // It may end between its start and the question; its starts are counted.
        loop {
            question = match extensions.ask(name, question).await {
                Ok(heard) => return Ok(heard),
                Err(back) => back,
            };
            if let Err(heard) = self.start_extension(scope, extensions, name).await? {
                return Ok(heard);
            }
        }
    }
}
