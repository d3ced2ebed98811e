//! Sub-agents: a task, a token, and a conversation of their own inside their parent's session.
//!
//! What a sub-agent does happens in its parent's layer and counts on its parent's budget, so its effects
//! belong to that session; what is said lies apart, in a session that only the journal knows. It acts by its
//! token alone, which the kernel mints for whoever acts by the rules, and narrows from its own for a
//! sub-agent that gives work on.

use crate::{
    Context, Instruction, Kernel, Note, Observation, Provider, Refused, Scope, call::How,
    context::Provenance, screen,
};
use crate::{kernel::random, tool::Conclusion};
use bailey_journal::{BudgetScope, Parent};
use bailey_policy::{Caveat, Condition, Glob, GlobError, HostGlob, tree, whole};
use bailey_protocol::{Kind, SandboxId, SessionId, Timestamp, TokenId, ToolCall, WsPath, authority};
use std::{sync::Arc, time::Duration};

/// Which part of what the session may still use a sub-agent may, where nobody says.
const SHARE: u64 = 4;
/// How many sub-agents may stand below each other.
const DEPTH_MAX: usize = 3;

/// A task for a sub-agent, and what it may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errand {
    /// What to do, in the words of whoever gives it.
    pub task: String,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// The files and folders that it may read and change, as the tools of the giver of the task name them.
    pub paths: Vec<String>,
    /// Effects that it may have, calls of its model among them.
    pub operations: u64,
    /// How long it may take.
    pub lasts: Duration,
    /// Tokens that it may use; a part of what whoever gives it has left where none are named.
    pub tokens: Option<u64>,
}

/// A sub-agent that begins.
#[derive(Debug)]
pub struct Delegate {
    /// Its authority.
    pub scope: Scope,
    /// What it knows: its task.
    pub context: Context,
    /// What was minted for it, and ends with it.
    minted: Option<TokenId>,
}

impl Kernel {
    /// Begins a sub-agent: makes its token, opens its conversation, and puts its task there. `kinds` are
    /// those of the actions that its tools may come to, `models` whom it may ask. What it is given by a
    /// sub-agent beyond that one's own it has not: both tokens' caveats hold.
    ///
    /// # Errors
    /// [`Refused::Denied`] when the rules do not allow all of it, or too many sub-agents stand below each
    /// other.
    pub async fn delegate(
        &self,
        scope: &Scope,
        because: &Provenance,
        errand: &Errand,
        kinds: &[Kind],
        models: &[Arc<dyn Provider>],
        instruction: Instruction,
    ) -> Result<Delegate, Refused> {
        let context = Context::new(instruction);
        let now = self.journal().clock().now();
        let title = errand.task.lines().next().unwrap_or_default().chars().take(80);
        // People read it among the reasons of rules: nothing in it ends the quotation, or looks as if it did.
        let is_word = |c: char| c.is_alphanumeric() || " .,:;-_/#+@=!?".contains(c);
        let mut title: String = title.map(|c| if is_word(c) { c } else { '\'' }).collect();
        while title.contains("''") {
            title = title.replace("''", "'");
        }
        // What it acts from is nobody else's: its token is of no use to another sub-agent of the session.
        // Whoever works for a sub-agent acts from the same place, for that one's caveat holds for both.
        let sandbox = match scope.bearer.as_ref().and_then(|bearer| bearer.sandbox) {
            Some(sandbox) => sandbox,
            None => SandboxId::new(u64::try_from(now.as_millisecond()).unwrap_or(0), random()?),
        };
        let caveat = Caveat {
            sandbox: Some(sandbox),
            scope: Some(conditions(scope, kinds, &errand.paths, models)?),
            operations: Some(errand.operations),
            expires: now.checked_add(errand.lasts).ok(),
            holder: Some(format!("a sub-agent, whose task begins (the model's words) \"{title}\"")),
            ..Caveat::default()
        };
        let (token, minted) = match &scope.bearer {
            None => {
                let token = self.mint_token(scope, caveat).await?;
                let id = token.id();
                (token, Some(id))
            }
            Some(bearer) if bearer.token.caveats() >= DEPTH_MAX + scope.connection.caveats() => {
                let why =
                    format!("{DEPTH_MAX} sub-agents stand below each other already: it does this itself");
                return Err(Refused::Denied(vec![why]));
            }
            Some(bearer) => {
                let own = bearer.token.clone();
                (self.inner.mint.narrow_token(scope.session(), own, caveat).await?, None)
            }
        };
        let parent = Parent { session: scope.conversation(), part: self.part(scope, errand.tokens).await? };
        let session = self.child(now)?;
        let labels = because.labels().clone();
        let text = screen::screen(self.journal().redactor(), &errand.task).text;
        let model = models.first().map(|model| format!("{}/{}", model.name(), model.model()));
        let entry = self
            .journal()
            .delegate_session(
                session,
                parent,
                token.id(),
                model.unwrap_or_default(),
                text.clone(),
                labels.clone(),
            )
            .await?;
        let mut context = context;
        context.push(Note { entry, text, labels: labels.from_entry(entry) });
        let mut scope = scope.confined(token, Some(sandbox));
        scope.conversation = Some(session);
        Ok(Delegate { scope, context, minted })
    }

    /// Ends a sub-agent: its token is over, and what it came to is the result of the call that began it, with
    /// the labels of all that it saw.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn come_back(
        &self,
        parent: &Scope,
        because: &Provenance,
        call: &ToolCall,
        delegate: &Delegate,
        conclusion: Conclusion,
    ) -> Result<Observation, Refused> {
        // A narrowed one ends with the one that it was made from, whose holder goes on.
        if let Some(token) = delegate.minted {
            self.end_token(parent, token).await?;
        }
        let labels = delegate.context.labels().clone().join(because.labels());
        self.observe(parent, call, conclusion, labels, How::default()).await
    }

    fn child(&self, now: Timestamp) -> Result<SessionId, Refused> {
        let ms = u64::try_from(now.as_millisecond()).unwrap_or(0);
        Ok(SessionId::new(ms, random()?))
    }

    /// The tokens that a sub-agent may use; where whoever begins it has no limit, as many as it was given.
    async fn part(&self, scope: &Scope, wanted: Option<u64>) -> Result<u64, Refused> {
        let gauges = self.gauges(scope).await?;
        let is_own = |span| matches!(span, BudgetScope::Session | BudgetScope::Part | BudgetScope::Task);
        let of_tokens = gauges.iter().filter(|gauge| is_own(gauge.span) && gauge.is_of_tokens());
        let left = of_tokens.map(|gauge| gauge.limit.saturating_sub(gauge.taken)).min().unwrap_or(u64::MAX);
        Ok(wanted.unwrap_or(left / SHARE).min(left))
    }
}

/// Files only beneath the paths; commands, whose reach is the walls', in the workspace and without a network;
/// these models.
fn conditions(
    scope: &Scope,
    kinds: &[Kind],
    paths: &[String],
    models: &[Arc<dyn Provider>],
) -> Result<Vec<Condition>, Refused> {
    let (runs, files): (Vec<Kind>, Vec<Kind>) = kinds.iter().partition(|kind| **kind == Kind::Exec);
    let beneath = |paths: Vec<Glob>, kinds| Condition {
        action: Some(kinds),
        path: Some(paths),
        network: Some(false),
        ..Condition::default()
    };
    let mut conditions = vec![of_models(models)];
    if !files.is_empty() {
        let placed = |path: &String| {
            placed(scope, path).map_err(|error| Refused::Denied(vec![format!("`{path}`: {error}")]))
        };
        conditions.push(beneath(paths.iter().map(placed).collect::<Result<_, _>>()?, files));
    }
    if !runs.is_empty() {
        let workspace = tree("").map_err(|error| Refused::Denied(vec![error.to_string()]))?;
        conditions.push(beneath(vec![workspace], runs));
    }
    Ok(conditions)
}

/// A file or folder with all that lies in it. It is no pattern, whatever the folder is called in which the
/// session stands.
fn placed(scope: &Scope, path: &str) -> Result<Glob, GlobError> {
    let path = scope.place(&WsPath(whole(path)?));
    tree(path.relative_to(&scope.workspace().0).unwrap_or(&path.0))
}

/// Calls to these models.
pub(crate) fn of_models(models: &[Arc<dyn Provider>]) -> Condition {
    let context = Context::new(Instruction::fixed(""));
    let mut hosts: Vec<HostGlob> = models
        .iter()
        .filter_map(|model| HostGlob::new(authority(&model.encode(&context, &[]).request.url)).ok())
        .collect();
    hosts.dedup();
    Condition { action: Some(vec![Kind::Model]), host: Some(hosts), ..Condition::default() }
}
