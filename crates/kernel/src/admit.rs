//! Admission: resolve, decide, ask or refuse, begin. After it there is a permit, a question, or a refusal.

use crate::{
    Kernel, Output, Question, RED_FILES_MAX, Refused, Scope, bearer::Ruling, live::Audience, screen,
};
use bailey_journal::{
    BeginError, Circumstances, Entry, Fact, JournalError, Payload, Permit, Purpose, Receipt, Terms, Uses,
    Warrant, Wider,
};
use bailey_policy::{Answer, Decided, Pattern, Reason, Review, Source, Verdict};
use bailey_protocol::{
    Action, ApprovalId, Blob, CallId, Card, Cost, Digest, Effect, EffectId, FileChange, Happening, Isolation,
    Labels, MergeKind, Profile, Report, Sealed, Seq, StatReport, WsPath, event::Verdict as Said,
};
use std::sync::PoisonError;
use tokio::{
    runtime::Handle,
    time::{Duration, Instant},
};

/// Why an approved command is not run after all.
const OTHER_FILES: &str =
    "a file that it names is not what it was when the human was asked; ask for it again";

/// Why what a human would be asked about is refused inside an effect.
const NOBODY_TO_ASK: &str = "it needs a human, who cannot be asked from inside an effect";

/// How often Bailey looks whether another process answered a question, so that there is room for the next.
const ROOM_LOOK: Duration = Duration::from_secs(1);

/// Why nobody is asked about a server whose name a card cannot show.
const HIDDEN_HOST: &str =
    "the server's name holds what looks like a secret, so that no card could show which one it is";

/// A request for an action: what the kernel needs to know to decide on it.
#[derive(Debug, Clone)]
pub(crate) struct ActionRequest {
    pub(crate) action: Action,
    pub(crate) purpose: Purpose,
    /// Whether it is read in order to be changed.
    pub(crate) for_a_change: bool,
    pub(crate) call: Option<CallId>,
    pub(crate) parent: Option<EffectId>,
    pub(crate) labels: Labels,
    pub(crate) cost: Cost,
}

/// What became of it.
pub(crate) enum Admission {
    /// It may run.
    Run(Box<Started>),
    /// It will not run, and why.
    Denied(Vec<String>),
    /// A human is asked; the effect waits as it was decided.
    Waits(ApprovalId, Box<Shown>),
}

/// What a human was shown.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) sealed: Sealed,
    /// The digest of the files that it names, as they were then.
    pub(crate) named: Option<Digest>,
}

/// How the gate would decide about an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The decision: `Allowed`, `Asked` or `Denied`.
    pub verdict: Said,
    /// Why, one line for each rule.
    pub reasons: Vec<String>,
    /// All paths that it would ask about.
    pub red: Vec<WsPath>,
}

/// What a card is drawn from besides the action and the reasons in words.
#[derive(Clone, Copy)]
struct Asking<'a> {
    reasons: &'a [Reason],
    red: &'a [WsPath],
    seen: &'a [Output],
}

/// An effect that has begun. Dropped before it was launched it still gets an outcome.
pub(crate) struct Started {
    kernel: Kernel,
    begun: Option<(Permit, Receipt)>,
    labels: Labels,
}

impl Started {
    /// Which effect it is, and the entry of its intent.
    pub(crate) fn begun_as(&self) -> Result<(EffectId, Seq), Refused> {
        let begun = self.begun.as_ref().map(|(_, receipt)| (receipt.effect(), receipt.seq()));
        begun.ok_or_else(|| Refused::Failed("it was launched before".into()))
    }

    /// Hands everything over to whoever launches it.
    pub(crate) fn launched(mut self) -> Result<(Permit, Receipt, Labels), Refused> {
        let (permit, receipt) =
            self.begun.take().ok_or_else(|| Refused::Failed("it was launched before".into()))?;
        Ok((permit, receipt, std::mem::take(&mut self.labels)))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let (Some((_, receipt)), Ok(runtime)) = (self.begun.take(), Handle::try_current()) else { return };
        let kernel = self.kernel.clone();
        runtime.spawn(async move {
            let output = Output::failed("nobody waited for it any more, so it was not started");
            // When it cannot be written, recovery finds it unfinished.
            kernel.finish(receipt, output, Cost::default(), Vec::new()).await.ok();
        });
    }
}

impl Kernel {
    /// Resolves, decides, asks or begins.
    pub(crate) async fn admit(
        &self,
        scope: &Scope,
        asked: ActionRequest,
        seen: &[Output],
    ) -> Result<Admission, Refused> {
        let (purpose, for_a_change) = (asked.purpose, asked.for_a_change);
        let named = self.as_named(scope, &asked).await?;
        if let Some((sealed, Ruling { decided, uses })) = &named
            && let Some(reasons) = beyond(sealed, decided)
        {
            return self.deny(scope, sealed, reasons, uses.clone()).await;
        }
        let sealed = match (self.seal(scope, asked).await?, named) {
            (Ok(sealed), _) => sealed,
            // A try of whoever acts by a token is written down, and counts, whatever comes of it.
            (Err(reason), Some((sealed, Ruling { uses, .. }))) => {
                return self.deny(scope, &sealed, vec![reason], uses).await;
            }
            (Err(reason), None) => return Ok(Admission::Denied(vec![reason])),
        };
        let Ruling { decided: Decided { verdict, reasons, red, .. }, uses } =
            self.rule(scope, &sealed).await?;
        let (given, payer) = (reasons, scope.conversation);
        let reasons = deciding(&given);
        let action = &sealed.effect().action;
        if !matches!(verdict, Verdict::Deny(_))
            && let Err(nobody) = self.performer(action)
        {
            let why = nobody.to_string();
            return self.deny(scope, &sealed, vec![why], uses).await;
        }
        match verdict {
            Verdict::Deny(_) => self.deny(scope, &sealed, reasons, uses).await,
            Verdict::Allow(allowed) => {
                self.show(scope, &sealed, Said::Allowed, &reasons).await?;
                let circumstances = Circumstances { purpose, payer, reasons, uses };
                self.begin(sealed, Warrant::Allowed(allowed), circumstances).await
            }
            // Nobody waits for an answer inside an effect, and a question that nobody waits for would stand
            // open.
            Verdict::Review(_) if sealed.effect().parent.is_some() => {
                self.deny(scope, &sealed, [reasons, vec![NOBODY_TO_ASK.into()]].concat(), uses).await
            }
            Verdict::Review(_) if is_beyond_a_card(action, &red) => {
                self.deny(scope, &sealed, vec![too_many(red.len())], uses).await
            }
            Verdict::Review(_) if screen::hides_host(self.journal().redactor(), action) => {
                self.deny(scope, &sealed, vec![HIDDEN_HOST.into()], uses).await
            }
            Verdict::Review(review) => {
                // Nobody is asked about the first step of what is refused at the last.
                if for_a_change && let Some(reasons) = self.change_denied(scope, &sealed).await? {
                    return self.deny(scope, &sealed, reasons, uses).await;
                }
                if let Some(missing) = self.missing(scope, &sealed).await? {
                    return Ok(Admission::Denied(vec![format!("`{missing}` does not exist")]));
                }
                let asking = Asking { reasons: &given, red: &red, seen };
                self.review(scope, sealed, review, Circumstances { purpose, payer, reasons, uses }, asking)
                    .await
            }
        }
    }

    /// The file of the workspace that a read asks for and that does not exist: it brings no question. A path
    /// elsewhere is never looked at, because that would tell the asker which files this machine has.
    async fn missing(&self, scope: &Scope, sealed: &Sealed) -> Result<Option<WsPath>, Refused> {
        let effect = sealed.effect();
        let Action::Read { path } = &effect.action else { return Ok(None) };
        if path.relative_to(&scope.workspace().0).is_none() {
            return Ok(None);
        }
        let action = Action::Stat { path: path.clone() };
        let asked = ActionRequest {
            action: action.clone(),
            purpose: Purpose::Need,
            for_a_change: false,
            call: effect.call.clone(),
            parent: None,
            labels: effect.labels.clone(),
            cost: Cost::default(),
        };
        // Where the look itself would be asked about, only the read is.
        let Ok(stat) = self.seal(scope, asked.clone()).await? else { return Ok(None) };
        if !matches!(self.suppose(scope, &stat).await?.decided.verdict, Verdict::Allow(_)) {
            return Ok(None);
        }
        let Admission::Run(started) = Box::pin(self.admit(scope, asked, &[])).await? else {
            return Ok(None);
        };
        let finished = self.launch(scope, *started, &action, Audience::Nobody).await?;
        let is_missing = matches!(finished.output.report(), Report::Stat(StatReport { found: None, .. }));
        Ok(is_missing.then(|| path.clone()))
    }

    /// How the gate would decide about an action now, why, and about which paths it would ask; nothing is
    /// begun, asked or recorded.
    ///
    /// # Errors
    /// When the action's paths lead nowhere, or the journal cannot be read.
    pub async fn preview(&self, scope: &Scope, action: Action) -> Result<Preview, Refused> {
        let asked = ActionRequest {
            action,
            purpose: Purpose::Own,
            for_a_change: false,
            call: None,
            parent: None,
            labels: Labels::default(),
            cost: Cost::default(),
        };
        let decided = match self.as_named(scope, &asked).await? {
            Some((sealed, Ruling { decided, .. })) if beyond(&sealed, &decided).is_some() => decided,
            _ => {
                let sealed = self.seal(scope, asked).await?.map_err(Refused::Failed)?;
                self.suppose(scope, &sealed).await?.decided
            }
        };
        let Decided { verdict, reasons, red, .. } = decided;
        let verdict = match verdict {
            Verdict::Allow(_) => Said::Allowed,
            Verdict::Review(_) => Said::Asked,
            Verdict::Deny(_) => Said::Denied,
        };
        Ok(Preview { verdict, reasons: deciding(&reasons), red })
    }

    /// Decides the very bytes that were shown once more, now that a human said yes to them, and begins.
    pub(crate) async fn admit_approved(
        &self,
        scope: &Scope,
        Shown { sealed, named }: Shown,
        id: ApprovalId,
        purpose: Purpose,
    ) -> Result<Admission, Refused> {
        let Ruling { decided: Decided { verdict, reasons, .. }, uses } = self.rule(scope, &sealed).await?;
        let reasons = deciding(&reasons);
        let warrant = match verdict {
            Verdict::Deny(_) => return self.deny(scope, &sealed, reasons, uses).await,
            Verdict::Allow(allowed) => Warrant::Allowed(allowed),
            Verdict::Review(review) => {
                let grant = self.inner.mint.grant(id, &sealed).await?;
                match self.named(&sealed, review.isolation()).await? {
                    #[cfg(feature = "controls")]
                    Ok(_) if bailey_protocol::broken::broken("named_files") => {
                        Warrant::Approved(review, grant)
                    }
                    Ok(now) if now == named => Warrant::Approved(review, grant),
                    Ok(_) => return self.deny(scope, &sealed, vec![OTHER_FILES.into()], uses).await,
                    Err(reason) => return self.deny(scope, &sealed, vec![reason], uses).await,
                }
            }
        };
        self.show(scope, &sealed, Said::Approved, &reasons).await?;
        self.begin(sealed, warrant, Circumstances { purpose, payer: scope.conversation, reasons, uses }).await
    }

    pub(crate) async fn seal(
        &self,
        scope: &Scope,
        asked: ActionRequest,
    ) -> Result<Result<Sealed, String>, Refused> {
        let named = asked.action.with_paths(|path| *path = scope.place(path));
        let action = match self.executor(&named) {
            Some(executor) => match executor.resolve(scope.session(), named).await {
                Ok(action) => action,
                Err(error) => return Ok(Err(error.0)),
            },
            None => named,
        };
        self.sealed(scope, ActionRequest { action, ..asked }).map(Ok)
    }

    /// What is decided about the paths of whoever acts by a token as they are named; none of anybody else's,
    /// or where there are none.
    async fn as_named(
        &self,
        scope: &Scope,
        asked: &ActionRequest,
    ) -> Result<Option<(Sealed, Ruling)>, Refused> {
        let is_confined = scope.bearer.as_ref().is_some_and(|bearer| bearer.is_confined);
        if !is_confined || asked.action.paths().is_empty() {
            return Ok(None);
        }
        let placed = asked.action.with_paths(|path| *path = scope.place(path));
        let action = placed.named_in(scope.workspace(), &self.inner.config.user_home);
        let sealed = self.sealed(scope, ActionRequest { action, ..asked.clone() })?;
        let ruling = self.suppose(scope, &sealed).await?;
        Ok(Some((sealed, ruling)))
    }

    /// Seals an action as it stands.
    pub(crate) fn sealed(&self, scope: &Scope, asked: ActionRequest) -> Result<Sealed, Refused> {
        let effect = Effect {
            id: self.new_effect_id()?,
            session: scope.session(),
            parent: asked.parent,
            call: asked.call,
            role: scope.role,
            action: asked.action,
            labels: asked.labels,
            cost: asked.cost,
        };
        Sealed::new(effect).map_err(Refused::Failed)
    }

    /// The digest of the files that an effect's action names; why that cannot be said.
    async fn named(
        &self,
        sealed: &Sealed,
        isolation: &Isolation,
    ) -> Result<Result<Option<Digest>, String>, Refused> {
        let effect = sealed.effect();
        let performer = self.performer(&effect.action)?;
        Ok(performer.named(effect.session, &effect.action, isolation).await.map_err(|error| error.0))
    }

    /// The system calls that the walls leave an effect: a yes is for no other ones.
    fn calls(&self, isolation: &Isolation) -> String {
        match (isolation.profile, self.inner.config.calls) {
            (Profile::Custom, Some(list)) => format!("{} {list}", Profile::Custom.name()),
            (profile, _) => profile.name().into(),
        }
    }

    /// What a yes may cover beyond this very command; none where only the command itself can be granted. No
    /// pattern stands in for an extension, which judges each command anew.
    async fn wider(
        &self,
        sealed: &Sealed,
        review: &Review,
        reasons: &[Reason],
    ) -> Result<Option<Wider>, Refused> {
        let effect = sealed.effect();
        let asks = reasons.iter().filter(|reason| reason.answer == Answer::Review);
        if asks.clone().any(|reason| !matches!(reason.source, Source::Rule(_))) {
            return Ok(None);
        }
        let Ok(pattern) = Pattern::around(&effect.action) else { return Ok(None) };
        let program = match pattern.bare().map(Action::Exec) {
            Some(bare) => {
                let performer = self.performer(&bare)?;
                performer.named(effect.session, &bare, review.isolation()).await.ok()
            }
            None => Some(None),
        };
        // A name is one rule's within its tier only.
        let named = |reason: &Reason| match reason.source {
            Source::Rule(tier) => format!("{} {}", tier.name(), reason.rule),
            Source::Token | Source::Extension => reason.rule.clone(),
        };
        let rules = asks.map(named).collect();
        Ok(program.map(|program| Wider { pattern, program, rules }))
    }

    /// Why what an effect reads could not be changed by anybody.
    async fn change_denied(&self, scope: &Scope, sealed: &Sealed) -> Result<Option<Vec<String>>, Refused> {
        let read = sealed.effect();
        let change =
            |path: &WsPath| FileChange { path: path.clone(), base: None, new: Some(Blob::default()) };
        let files: Vec<FileChange> = read.action.paths().into_iter().map(change).collect();
        if files.is_empty() {
            // A page that shall be saved: where to, was looked at before.
            return Ok(None);
        }
        let effect = Effect { action: Action::Change { files }, ..read.clone() };
        let sealed = Sealed::new(effect).map_err(Refused::Failed)?;
        let Decided { verdict, reasons, .. } = self.suppose(scope, &sealed).await?.decided;
        Ok(matches!(verdict, Verdict::Deny(_)).then(|| deciding(&reasons)))
    }

    async fn review(
        &self,
        scope: &Scope,
        sealed: Sealed,
        review: Review,
        circumstances: Circumstances,
        Asking { reasons: given, red, seen }: Asking<'_>,
    ) -> Result<Admission, Refused> {
        let named = match self.named(&sealed, review.isolation()).await? {
            Ok(named) => named,
            Err(reason) => return self.deny(scope, &sealed, vec![reason], circumstances.uses).await,
        };
        let (compliance, each) = {
            let policy = self.policy().await?;
            (policy.is_compliance(), policy.asks_each())
        };
        let now = Terms {
            named,
            asker: Some(circumstances.asker(sealed.effect())),
            calls: Some(self.calls(review.isolation())),
            ..Terms::default()
        };
        if let Some(grant) = self.inner.mint.standing_grant(&sealed, &now, !each).await? {
            self.show(scope, &sealed, Said::Approved, &circumstances.reasons).await?;
            return self.begin(sealed, Warrant::Approved(review, grant), circumstances).await;
        }
        let wider = if each { None } else { self.wider(&sealed, &review, given).await? };
        let action = &sealed.effect().action;
        if let Some(wider) = &wider
            && let Some(grant) =
                self.inner.mint.pattern_grant(scope.session(), action, &now, wider.clone()).await?
        {
            self.show(scope, &sealed, Said::Approved, &circumstances.reasons).await?;
            return self.begin(sealed, Warrant::Approved(review, grant), circumstances).await;
        }
        self.show(scope, &sealed, Said::Asked, &circumstances.reasons).await?;
        let draw = self.inner.config.draw;
        let mut reasons = circumstances.reasons.clone();
        reasons.extend(scope.who_asks());
        let reasons = &reasons;
        let card = draw(&Question {
            action: &sealed.effect().action,
            reasons,
            red,
            isolation: review.isolation(),
            once: each,
            seen,
            redactor: self.journal().redactor(),
        });
        let origins = self.origins(sealed.effect()).await?;
        let now = Terms { pattern: wider, ..now }.kept(self.journal().redactor());
        let pattern = now.pattern.as_ref().map(|wider| wider.pattern.words());
        let mut parts = card.parts;
        parts.extend(self.so_far(scope).await?);
        let card = screen::card(
            self.journal().redactor(),
            Card { parts, pattern, origins, once: card.once || each, reasoned: compliance, ..card },
        );
        let stored = serde_json::to_value(&card).map_err(|error| Refused::Failed(error.to_string()))?;
        let terms = Terms { once: card.once, reasoned: card.reasoned, ..now };
        let id = match self.ask_in_time(scope, &sealed, &terms, &stored).await? {
            Ok(id) => id,
            Err(reason) => return self.deny(scope, &sealed, vec![reason], circumstances.uses).await,
        };
        let call = sealed.effect().call.clone();
        self.tell(scope, Happening::Ask { id, call, card }).await?;
        self.escalate(scope.session(), id, Some(sealed.effect().action.kind()));
        Ok(Admission::Waits(id, Box::new(Shown { sealed, named })))
    }

    /// Asks as soon as the session has room for one more question. Returns
    /// a reason where there is no room in time.
    async fn ask_in_time(
        &self,
        scope: &Scope,
        sealed: &Sealed,
        terms: &Terms,
        card: &serde_json::Value,
    ) -> Result<Result<ApprovalId, String>, Refused> {
        let lasts = self.inner.config.question_lasts;
        let session = sealed.effect().session;
        let without_room = || self.inner.without_room.lock().unwrap_or_else(PoisonError::into_inner);
        let had_none = without_room().contains(&session);
        let waits = if had_none { Duration::ZERO } else { self.inner.config.room_waits };
        let until = Instant::now() + waits;
        loop {
            let answered = self.inner.answered.notified();
            match self.inner.mint.ask(sealed, terms.clone(), card.clone(), lasts).await {
                Err(error @ JournalError::NoRoom) if Instant::now() >= until => {
                    without_room().insert(session);
                    return Ok(Err(format!("{error}: go on without it, and ask again when one is answered")));
                }
                Err(JournalError::NoRoom) => {}
                asked => {
                    without_room().remove(&session);
                    return Ok(Ok(asked?));
                }
            }
            tokio::select! {
                () = answered => {}
                () = tokio::time::sleep_until((Instant::now() + ROOM_LOOK).min(until)) => {}
                () = scope.cancel().cancelled() => return Ok(Err("the turn was ended before it was asked".into())),
            }
        }
    }

    /// Refuses. A token that it was asked under was used by it.
    pub(crate) async fn deny(
        &self,
        scope: &Scope,
        sealed: &Sealed,
        reasons: Vec<String>,
        uses: Option<Uses>,
    ) -> Result<Admission, Refused> {
        let effect = sealed.effect();
        let fact = Fact::Denied {
            kind: effect.action.kind(),
            target: effect.action.target(),
            digest: sealed.digest(),
            reasons: reasons.clone(),
            call: effect.call.clone(),
            role: effect.role,
            labels: effect.labels.clone(),
            under: uses.as_ref().map(Uses::under),
        };
        let payload = serde_json::to_value(effect).map_err(|error| Refused::Failed(error.to_string()))?;
        let entry = Entry::of(effect.session, fact).about(effect.id).with(Payload::Json(payload));
        self.inner.mint.deny(entry).await?;
        self.show(scope, sealed, Said::Denied, &reasons).await?;
        Ok(Admission::Denied(reasons))
    }

    async fn begin(
        &self,
        sealed: Sealed,
        warrant: Warrant,
        circumstances: Circumstances,
    ) -> Result<Admission, Refused> {
        let kernel = self.clone();
        let labels = sealed.effect().labels.clone();
        // In a task of its own: what a caller that went away has begun is in nobody's hands otherwise.
        let task = tokio::spawn(async move {
            let budgets = &kernel.inner.config.budgets;
            let begun = kernel.inner.mint.begin(sealed, warrant, circumstances, budgets).await?;
            Ok(Started { kernel, begun: Some(begun), labels })
        });
        let begun = task.await.map_err(|error| Refused::Failed(format!("it could not begin: {error}")))?;
        match begun {
            Ok(started) => Ok(Admission::Run(Box::new(started))),
            Err(error @ (BeginError::Burnt | BeginError::Spent)) => {
                Ok(Admission::Denied(vec![error.to_string()]))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn show(
        &self,
        scope: &Scope,
        sealed: &Sealed,
        verdict: Said,
        reasons: &[String],
    ) -> Result<Seq, Refused> {
        let effect = sealed.effect();
        let seq = self.newest();
        let happening = Happening::Decided {
            call: effect.call.clone(),
            effect: effect.id,
            action: effect.action.kind().name().into(),
            target: effect.action.target(),
            verdict,
            reasons: reasons.to_vec(),
        };
        scope.tell(self.journal(), seq, happening).await;
        Ok(seq)
    }
}

/// Why whoever acts by a token is denied what they name, before anybody looks at the path: whether something
/// is there that their scope does not cover is not for them to know, either.
fn beyond(named: &Sealed, decided: &Decided) -> Option<Vec<String>> {
    let mut paths = named.effect().action.paths().into_iter();
    if paths.any(|path| path.0.split('/').any(|part| part == "..")) {
        return Some(vec!["whoever acts by a token names paths without `..`".into()]);
    }
    matches!(decided.verdict, Verdict::Deny(_)).then(|| deciding(&decided.reasons))
}

/// An undo only brings back what the project held, and cannot be made in parts; nor can a command.
fn is_beyond_a_card(action: &Action, red: &[WsPath]) -> bool {
    let has_parts = match action {
        Action::Change { .. } => true,
        Action::Merge(merge) => merge.direction != MergeKind::Undo,
        _ => false,
    };
    has_parts && red.len() > RED_FILES_MAX
}

fn too_many(red: usize) -> String {
    format!(
        "{red} of these files are Red, and a card names {RED_FILES_MAX} at most: take them in parts by naming paths \
         (`bailey sessions apply SESSION PATH…`; `bailey sessions diff --red SESSION` shows them all)"
    )
}

/// The reasons that the verdict follows from, one line each: those of the strongest answer, which stand
/// first.
pub(crate) fn deciding(reasons: &[Reason]) -> Vec<String> {
    let strongest = reasons.first().map(|reason| reason.answer);
    reasons.iter().take_while(|reason| Some(reason.answer) == strongest).map(ToString::to_string).collect()
}
