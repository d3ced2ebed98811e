//! Questions to a human: asked, answered from any terminal of this home, waited for. The journal is where
//! asker and answerer meet, so it does not matter which process each of them is.

use crate::Output;
use crate::{Connection, Kernel, Observation, Refused, Scope, context::Provenance, screen, tool::Conclusion};
use bailey_journal::{Answerer, JournalError, QuestionState, Settlement, Terms};
use bailey_protocol::{Action, Answer, ApprovalId, Card, Happening, Isolation, ToolCall, WsPath};
use bailey_secrets::Redactor;
use std::{sync::PoisonError, time::Duration};

/// The most Red files that one question may be about: as many as a card names. A change or an apply of more
/// is refused, so that nothing Red is done that was not named.
pub const RED_FILES_MAX: usize = 100;

/// How often is looked whether somebody answered in another process.
const LOOK: Duration = Duration::from_millis(250);

/// What a human is to be asked, for whoever draws the card.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// What would be done.
    pub action: &'a Action,
    /// Why the gate asks, one line for each rule.
    pub reasons: &'a [String],
    /// The paths that the gate asks about, at most [`RED_FILES_MAX`] where files change.
    pub red: &'a [WsPath],
    /// What the walls open for it.
    pub isolation: &'a Isolation,
    /// Whether a yes counts for this one effect only.
    pub once: bool,
    /// What was read for it.
    pub seen: &'a [Output],
    /// Takes secrets out of a text; whoever shortens one does it before, for nobody knows half of a secret.
    pub redactor: &'a Redactor,
}

/// A call whose result comes later: the model was told that a human is asked, and works on.
#[derive(Debug, Clone, PartialEq)]
pub struct Waits {
    /// The question.
    pub question: ApprovalId,
    /// The call.
    pub call: ToolCall,
}

impl Kernel {
    /// Asks the person something about no effect, such as whether a turn goes on; the answer comes as that of
    /// any question, and grants nothing.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn ask(&self, scope: &Scope, card: Card) -> Result<ApprovalId, Refused> {
        let card = Card { reasoned: self.policy().await?.is_compliance(), ..card };
        let card = screen::card(self.journal().redactor(), card);
        let stored = serde_json::to_value(&card).map_err(|error| Refused::Failed(error.to_string()))?;
        let (session, title) = (scope.session(), card.title.clone());
        let terms = Terms { once: card.once, reasoned: card.reasoned, ..Terms::default() };
        let id =
            self.inner.mint.ask_of(session, title, terms, stored, self.inner.config.question_lasts).await?;
        self.tell(scope, Happening::Ask { id, call: None, card }).await?;
        self.escalate(session, id, None);
        Ok(id)
    }

    /// Settles a question. Only a person's connection to the session that asked can; the first answer counts.
    ///
    /// # Errors
    /// When the question is not open any more or another session's, or cannot be written.
    pub async fn answer(
        &self,
        by: &Connection,
        id: ApprovalId,
        answer: Answer,
        who: impl Into<Answerer>,
        why: &str,
    ) -> Result<(), Refused> {
        self.inner.mint.answer(by.session, id, answer, who, why).await?;
        self.tell_answer(&self.turn_of(by), id, answer, why).await;
        self.inner.answered.notify_waiters();
        Ok(())
    }

    /// Settles a question as [`Kernel::answer`] does; an answer that comes too late changes nothing, and
    /// whoever waits sees the one that counts. One that the question does not take leaves it open.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn take_answer(
        &self,
        by: &Connection,
        id: ApprovalId,
        answer: Answer,
        who: impl Into<Answerer>,
        why: &str,
    ) -> Result<(), Refused> {
        match self.answer(by, id, answer, who, why).await {
            // The front end may have missed how it was settled.
            Err(Refused::Journal(JournalError::Settled(_) | JournalError::RanOut(_))) => {
                let asked = self.journal().questions(Some(by.session)).await?;
                if asked.iter().any(|question| question.id == id)
                    && let Some(settlement) = self.journal().settlement(id).await?
                {
                    self.tell_answer(&self.turn_of(by), id, settlement.answer, &settlement.why).await;
                }
                Ok(())
            }
            Err(Refused::Journal(error @ JournalError::NoAnswer(..))) => {
                let scope = self.turn_of(by);
                let happening = Happening::Failed { op: "answer".into(), error: error.to_string() };
                self.tell(&scope, happening).await?;
                self.show_question(&scope, id).await
            }
            taken => taken,
        }
    }

    /// Nobody waits for the answer any more: a question that is still open is settled with no.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn withdraw(&self, scope: &Scope, id: ApprovalId, why: &str) -> Result<(), Refused> {
        self.take_answer(&scope.connection, id, Answer::No, Answerer::bailey(), why).await
    }

    /// Takes back a yes on which nothing has begun; what was begun on it, is.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn take_back(&self, scope: &Scope, id: ApprovalId, why: &str) -> Result<(), Refused> {
        match self.inner.mint.take_back(scope.session(), id, Answerer::bailey(), why).await {
            Ok(()) | Err(JournalError::Settled(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// How a question was settled, here or in another process; none while it is open.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn settlement(&self, scope: &Scope, id: ApprovalId) -> Result<Option<Settlement>, Refused> {
        let Some(settlement) = self.journal().settlement(id).await? else { return Ok(None) };
        if settlement.answer == Answer::No {
            // One that ran out is settled by whoever sees it first.
            self.withdraw(scope, id, &settlement.why).await?;
        }
        self.tell_answer(scope, id, settlement.answer, &settlement.why).await;
        Ok(Some(settlement))
    }

    /// Waits until a question is settled, here or in another process.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn settled(&self, scope: &Scope, id: ApprovalId) -> Result<Settlement, Refused> {
        loop {
            let answered = self.inner.answered.notified();
            tokio::pin!(answered);
            answered.as_mut().enable();
            if let Some(settlement) = self.settlement(scope, id).await? {
                return Ok(settlement);
            }
            tokio::time::timeout(LOOK, answered).await.ok();
        }
    }

    /// The questions of calls that ran out and were asked once more, and wait for an answer or for being
    /// used, each with the one that was asked first. A yes for longer than once does not say whether it was:
    /// who comes back to the session finds out.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn asked_again(&self, scope: &Scope) -> Result<Vec<(ApprovalId, ApprovalId)>, Refused> {
        let questions = self.journal().questions(Some(scope.session())).await?;
        let is_wanted = |standing| matches!(standing, QuestionState::Open | QuestionState::Yes);
        let again = questions.iter().filter(|asked| asked.again.is_some() && is_wanted(asked.standing));
        Ok(again.map(|asked| (asked.id, asked.first(&questions))).collect())
    }

    /// Shows a question that waits once more to whoever sits at the front end.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn show_question(&self, scope: &Scope, id: ApprovalId) -> Result<(), Refused> {
        let question = self.journal().question(&id.to_string(), Some(scope.session())).await?;
        if let (QuestionState::Open, Some(card)) = (question.standing, question.card) {
            self.tell(scope, Happening::Ask { id, call: question.call, card }).await?;
        }
        Ok(())
    }

    /// Asks once more what has run out; where another front end has done that already, its question is shown.
    ///
    /// # Errors
    /// When it did not run out, was answered since, is another session's, or cannot be written.
    pub async fn ask_again(&self, scope: &Scope, id: ApprovalId) -> Result<(), Refused> {
        let compliance = self.policy().await?.is_compliance();
        let lasts = self.inner.config.question_lasts;
        let before = self.journal().questions(Some(scope.session())).await?;
        let again = self.inner.mint.ask_again_in(scope.session(), id, lasts, compliance).await?;
        if before.iter().all(|question| question.id != again) {
            self.escalate(scope.session(), again, None);
        }
        self.show_question(scope, again).await
    }

    /// Answers a call for now: a human is asked, and the result comes later.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn answer_waiting(
        &self,
        scope: &Scope,
        because: &Provenance,
        call: &ToolCall,
        id: ApprovalId,
    ) -> Result<Observation, Refused> {
        let observation =
            self.record(scope, call, waiting(id), because.labels().clone(), Some(id), None).await?;
        let (summary, text) = ("waiting for an answer".to_owned(), observation.text().to_owned());
        let happening = Happening::Result {
            call: call.id.clone(),
            ok: false,
            summary,
            text,
            duration_ms: 0,
            enforced: None,
        };
        self.tell(scope, happening).await?;
        Ok(observation)
    }

    /// Once for each question, however many wait for it.
    async fn tell_answer(&self, scope: &Scope, id: ApprovalId, answer: Answer, why: &str) {
        let is_new = self.inner.told.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        if is_new {
            let why = why.to_owned();
            scope.tell(self.journal(), self.newest(), Happening::Answered { id, answer, why }).await;
        }
    }
}

/// What a model is told whose call waits.
pub(crate) fn waiting(id: ApprovalId) -> Conclusion {
    let text = format!(
        "waiting: a person is asked (question {id}) and has not answered yet, so it is not done. Go on with what does not \
         depend on it, and do not call it again: you are told as soon as there is an answer"
    );
    Conclusion { ok: false, summary: "waiting for an answer".into(), text }
}
