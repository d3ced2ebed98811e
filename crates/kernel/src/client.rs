//! Tasks of other programs: they run tools of their own, and ask here whether they may.
//!
//! What such a program declares when a task begins is all that it can ask about. For those of its tools that
//! the rules wholly allow it gets tokens, so that asking about them costs the same under any number of rules;
//! about the others, and once a token holds no more (the rules changed), the rules are heard each time.
//! Nothing begins here: a verdict is written down, with its reasons, before it is told.

use crate::{
    Connection, Kernel, Refused, Scope,
    admit::{ActionRequest, deciding},
    bearer::Ruling,
    screen,
};
use bailey_journal::{BeginError, Entry, Fact, Macaroon, NewSession, Purpose};
use bailey_policy::{Caveat, Condition, ToolGlob};
use bailey_protocol::{
    Action, Cost, Digest, EffectId, Integrity, Kind, Labels, Sealed, Secrecy, ToolEffect, ToolUse, TurnId,
    Verdict,
};
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::Duration,
};

/// Most tools of one task.
pub const TASK_TOOLS_MAX: usize = 1000;
/// The names in one token, so that its caveat stays small whatever they are called.
const NAMES_BYTES_MAX: usize = 1200;
/// How long a task's tokens hold; after that the rules are heard.
const TASK_LASTS: Duration = Duration::from_secs(24 * 60 * 60);
/// How many operations a task's tokens are good for; after that the rules are heard.
const OPERATIONS: u64 = 1_000_000;
/// How many verdicts are remembered until their tools report.
const REMEMBERED_MAX: usize = 10_000;
/// How often a verdict is made anew because the rules or the token changed meanwhile.
const ATTEMPTS: usize = 4;
/// Whose session a task's is: nobody goes on with it here, for what it did was done elsewhere.
pub const CLIENT: &str = "client";

/// A tool that another program offers its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// Its name.
    pub name: String,
    /// What it does.
    pub effect: ToolEffect,
}

/// A task of another program.
#[derive(Debug)]
pub struct Task {
    scope: Scope,
    tools: BTreeMap<String, DeclaredTool>,
    tokens: Vec<Macaroon>,
    verdicts: Remembered,
}

/// A declared tool.
#[derive(Debug, Clone, Copy)]
struct DeclaredTool {
    effect: ToolEffect,
    /// The place of the token that covers it.
    token: Option<usize>,
}

/// What a program was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict: `Allowed`, `Asked` (it asks a human of its own) or `Denied`.
    pub verdict: Verdict,
    /// Why, one line for each rule.
    pub reasons: Vec<String>,
}

impl Kernel {
    /// Opens a session for a task and mints the tokens of its tools. `title` says what it is for, in that
    /// program's words.
    ///
    /// # Errors
    /// When two tools have one name, there are too many, or the journal cannot be written.
    pub async fn begin_task(
        &self,
        connection: &Connection,
        scope: Scope,
        title: String,
        offered: Vec<Offered>,
    ) -> Result<Task, Refused> {
        if offered.len() > TASK_TOOLS_MAX {
            return Err(Refused::Failed(format!("{} tools: at most {TASK_TOOLS_MAX}", offered.len())));
        }
        let session = connection.session;
        let new = NewSession {
            agent: None,
            confined: None,
            workspace: connection.workspace.clone(),
            principal: CLIENT.into(),
            model: String::new(),
        };
        self.journal().open_session(session, new).await?;
        let turn = TurnId::new(self.unix_ms(), crate::kernel::random()?);
        self.journal().accept(session, turn, title, labels()).await?;
        let mut task =
            Task { scope, tools: BTreeMap::new(), tokens: Vec::new(), verdicts: Remembered::default() };
        let mut covered: BTreeMap<ToolEffect, Vec<String>> = BTreeMap::new();
        for Offered { name, effect } in offered {
            if self.is_wholly_allowed(&task.scope, &name, effect).await? {
                covered.entry(effect).or_default().push(name.clone());
            }
            task.tools.insert(name, DeclaredTool { effect, token: None });
        }
        for (effect, names) in covered {
            for names in in_parts(names) {
                self.cover(&mut task, effect, names).await?;
            }
        }
        Ok(task)
    }

    /// Judges one use of a tool, and writes the verdict down.
    ///
    /// # Errors
    /// When the journal cannot be read or written: then the answer is no.
    pub async fn judge(&self, task: &mut Task, name: &str, args: &str) -> Result<Judgement, Refused> {
        let known = task.tools.get(name).copied();
        let effect = known.map(|known| known.effect);
        let tool = ToolUse::judged(name.into(), effect, args.into());
        let token = known.and_then(|known| known.token).and_then(|place| task.tokens.get(place));
        let scope = token.map_or_else(|| task.scope.clone(), |token| task.scope.bearing(token.clone()));
        let sealed = self.seal_use(&scope, tool).await?;
        let judgement = self.judged(&scope, &sealed).await?;
        task.verdicts.add(name, args, sealed.effect().id, judgement.verdict);
        Ok(judgement)
    }

    /// Writes down that a tool was used. What it brought passes the screen, and is known by its digest and
    /// size from then on.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn report(&self, task: &mut Task, name: &str, args: &str, output: &str) -> Result<(), Refused> {
        let told = task.verdicts.take(name, args);
        let screened = screen::screen(self.journal().redactor(), output);
        let fact = Fact::Reported {
            tool: name.into(),
            after: told.map(|(_, verdict)| verdict),
            output: Digest::of(screened.text.as_bytes()),
            bytes: u64::try_from(output.len()).unwrap_or(u64::MAX),
            redacted: u32::try_from(screened.redacted).unwrap_or(u32::MAX),
            labels: labels(),
        };
        let entry = Entry::of(task.scope.session(), fact);
        let entry = match told {
            Some((effect, _)) => entry.about(effect),
            None => entry,
        };
        self.journal().append(entry).await?;
        Ok(())
    }

    /// Ends a task, and its tokens with it.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn end_task(&self, task: Task) -> Result<(), Refused> {
        for token in &task.tokens {
            self.end_token(&task.scope, token.id()).await?;
        }
        Ok(())
    }

    async fn judged(&self, scope: &Scope, sealed: &Sealed) -> Result<Judgement, Refused> {
        for _ in 0..ATTEMPTS {
            let Ruling { decided, uses } = self.rule(scope, sealed).await?;
            let reasons = deciding(&decided.reasons);
            match self.inner.mint.judge(sealed, &decided.verdict, reasons.clone(), uses).await {
                Ok((_, verdict)) => return Ok(Judgement { verdict, reasons }),
                Err(BeginError::Stale | BeginError::Spent) => {}
                Err(stopped @ BeginError::Stopped { .. }) => return self.told_no(sealed, &stopped).await,
                Err(error) => return Err(error.into()),
            }
        }
        self.told_no(sealed, &BeginError::Stale).await
    }

    async fn told_no(&self, sealed: &Sealed, why: &BeginError) -> Result<Judgement, Refused> {
        let why = why.to_string();
        self.inner.mint.judge_no(sealed, why.clone()).await?;
        Ok(Judgement { verdict: Verdict::Denied, reasons: vec![why] })
    }

    async fn seal_use(&self, scope: &Scope, tool: ToolUse) -> Result<Sealed, Refused> {
        let asked = ActionRequest {
            action: Action::Tool(tool),
            purpose: Purpose::Act,
            for_a_change: false,
            call: None,
            parent: None,
            labels: labels(),
            cost: Cost::default(),
        };
        self.seal(scope, asked).await?.map_err(Refused::Failed)
    }

    /// Whether the rules allow every use of a tool.
    async fn is_wholly_allowed(
        &self,
        scope: &Scope,
        name: &str,
        effect: ToolEffect,
    ) -> Result<bool, Refused> {
        let Some(caveat) = self.caveat(scope, effect, &[name.to_owned()]) else { return Ok(false) };
        let policy = self.policy().await?;
        Ok(policy.vouch(&caveat, &self.places(scope.workspace())).is_ok())
    }

    /// Mints a token for these tools. Where the rules changed meanwhile there is none, and they are heard
    /// instead.
    async fn cover(&self, task: &mut Task, effect: ToolEffect, names: Vec<String>) -> Result<(), Refused> {
        let Some(caveat) = self.caveat(&task.scope, effect, &names) else { return Ok(()) };
        let token = match self.mint_token(&task.scope, caveat).await {
            Ok(token) => token,
            Err(Refused::Denied(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let place = Some(task.tokens.len());
        task.tokens.push(token);
        for name in names {
            task.tools.insert(name, DeclaredTool { effect, token: place });
        }
        Ok(())
    }

    fn caveat(&self, scope: &Scope, effect: ToolEffect, names: &[String]) -> Option<Caveat> {
        let tools = names.iter().map(|name| ToolGlob::named(name)).collect::<Option<_>>()?;
        let condition = Condition {
            action: Some(vec![Kind::Tool]),
            tool: Some(tools),
            effect: Some(vec![effect]),
            role: Some(vec![scope.role]),
            trust: scope.trust().map(|trust| vec![trust]),
            ..Condition::default()
        };
        Some(Caveat {
            scope: Some(vec![condition]),
            expires: self.journal().clock().now().checked_add(TASK_LASTS).ok(),
            operations: Some(OPERATIONS),
            holder: Some("another program's task".into()),
            ..Caveat::default()
        })
    }
}

/// What such a program says and brings is nobody's here.
fn labels() -> Labels {
    Labels::new(Integrity::External, Secrecy::Private)
}

/// Names in parts that one token can hold.
fn in_parts(names: Vec<String>) -> Vec<Vec<String>> {
    let (mut parts, mut bytes) = (Vec::<Vec<String>>::new(), usize::MAX);
    for name in names {
        bytes = bytes.saturating_add(name.len() + 3);
        match parts.last_mut() {
            Some(part) if bytes <= NAMES_BYTES_MAX => part.push(name),
            _ => {
                bytes = name.len() + 3;
                parts.push(vec![name]);
            }
        }
    }
    parts
}

/// Takes one of what waits.
type Which = fn(&mut VecDeque<(EffectId, Verdict)>) -> Option<(EffectId, Verdict)>;

/// The newest verdicts whose tools have not reported, by tool and arguments.
#[derive(Debug, Default)]
struct Remembered {
    verdicts: HashMap<Digest, VecDeque<(EffectId, Verdict)>>,
    /// The oldest first; those whose tools have reported are among them.
    order: VecDeque<(Digest, EffectId)>,
}

impl Remembered {
    fn add(&mut self, name: &str, args: &str, effect: EffectId, verdict: Verdict) {
        let key = key(name, args);
        self.verdicts.entry(key).or_default().push_back((effect, verdict));
        self.order.push_back((key, effect));
        if self.order.len() > REMEMBERED_MAX
            && let Some((key, oldest)) = self.order.pop_front()
            && self
                .verdicts
                .get(&key)
                .and_then(|waiting| waiting.front())
                .is_some_and(|(of, _)| *of == oldest)
        {
            self.pop(key, VecDeque::pop_front);
        }
    }

    /// The newest of this use: where it was denied later, it was not used as it was allowed before.
    fn take(&mut self, name: &str, args: &str) -> Option<(EffectId, Verdict)> {
        self.pop(key(name, args), VecDeque::pop_back)
    }

    fn pop(&mut self, key: Digest, which: Which) -> Option<(EffectId, Verdict)> {
        let waiting = self.verdicts.get_mut(&key)?;
        let taken = which(waiting);
        if waiting.is_empty() {
            self.verdicts.remove(&key);
        }
        taken
    }
}

/// Names a use of a tool, however its arguments are spaced.
fn key(name: &str, args: &str) -> Digest {
    let read = serde_json::from_str::<serde_json::Value>(args).map(|value| value.to_string());
    Digest::of_parts(&[name.as_bytes(), read.as_deref().unwrap_or(args).as_bytes()])
}
