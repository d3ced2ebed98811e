//! Appending what is no effect: sessions, messages, observations, refusals.

use crate::{Confined, Entry, Fact, Journal, JournalError, Parent, Payload, chain, project};
use bailey_protocol::{Inbound, Labels, SessionId, Timestamp, TokenId, TurnId, WsPath, number::Seq};
use bailey_secrets::Redactor;
use bailey_store::{Grade, OptionalExtension as _, StoreError, Tx, params};

/// A session that begins.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// The project, canonical.
    pub workspace: WsPath,
    /// Whose session it is.
    pub principal: String,
    /// The model, `provider/model`.
    pub model: String,
    /// Which of the home's named agents works in it; none: the home's own.
    pub agent: Option<String>,
    /// What that agent may, where it acts by a token; none: by the rules.
    pub confined: Option<Confined>,
}

impl Journal {
    /// Appends an entry that no projection follows from.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn append(&self, entry: Entry) -> Result<Seq, JournalError> {
        let (redactor, now) = self.pen();
        self.write(Grade::Normal, move |tx| chain::append(tx, &redactor, now, &entry)).await
    }

    /// Begins a session.
    ///
    /// # Errors
    /// [`JournalError::SecretInPath`] when the project's path holds a secret: the journal must hold the path
    /// as it is, to find the project again. Others when it cannot be written.
    pub async fn open_session(&self, id: SessionId, new: NewSession) -> Result<Seq, JournalError> {
        let (redactor, now) = self.pen();
        let new = without_secret(&redactor, new)?;
        self.write(Grade::Normal, move |tx| opened(tx, &redactor, now, id, &new)).await
    }

    /// Begins a session, unless it is there: one that several processes share may begin in each of them at
    /// the same moment.
    ///
    /// # Errors
    /// As [`Journal::open_session`].
    pub async fn share_session(&self, id: SessionId, new: NewSession) -> Result<(), JournalError> {
        let (redactor, now) = self.pen();
        let new = without_secret(&redactor, new)?;
        self.write(Grade::Normal, move |tx| {
            let there =
                tx.query_row("SELECT 1 FROM session WHERE id = ?1", params![id.to_string()], |_| Ok(()));
            if there.optional()?.is_none() {
                opened(tx, &redactor, now, id, &new)?;
            }
            Ok(())
        })
        .await
    }

    /// Notes what stands between a session's effects and the host from here to where it is opened again, by
    /// the name that outcomes give it. Without such an entry they are namespaces.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn note_walls(&self, id: SessionId, backend: String) -> Result<Seq, JournalError> {
        self.append(Entry::of(id, Fact::Walls { backend })).await
    }

    /// Begins the conversation of a sub-agent, whose task is `task` and who acts by `token`; what it does is
    /// done in the session of its parent, and what it uses up is a part of what that one may.
    ///
    /// # Errors
    /// When there is no such session, or it cannot be written.
    pub async fn delegate_session(
        &self,
        id: SessionId,
        parent: Parent,
        token: TokenId,
        model: String,
        task: String,
        labels: Labels,
    ) -> Result<Seq, JournalError> {
        let workspace = self.conversation(&parent.session.to_string()).await?.workspace;
        let (redactor, now) = self.pen();
        let stored = redactor.redact(&task).text.into_owned();
        let fact = Fact::Delegated {
            parent: parent.clone(),
            token,
            workspace: workspace.clone(),
            model: model.clone(),
            labels,
        };
        let entry = Entry::of(id, fact).with(Payload::Text(task));
        self.write(Grade::Normal, move |tx| {
            let seq = chain::append(tx, &redactor, now, &entry)?;
            project::delegated(tx, id, now, &parent, &workspace, &model, &stored)?;
            Ok(seq)
        })
        .await
    }

    /// Takes a session up again.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn resume_session(&self, id: SessionId, model: String) -> Result<Seq, JournalError> {
        let (redactor, now) = self.pen();
        self.write(Grade::Normal, move |tx| {
            let entry = Entry::of(id, Fact::SessionResumed { model: model.clone() });
            let seq = chain::append(tx, &redactor, now, &entry)?;
            project::resumed(tx, id, now, &model)?;
            Ok(seq)
        })
        .await
    }

    /// Accepts a person's message, with its pictures: when this returns, it will not be lost.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn accept(
        &self,
        session: SessionId,
        turn: TurnId,
        said: impl Into<Inbound>,
        labels: Labels,
    ) -> Result<Seq, JournalError> {
        let (redactor, now) = self.pen();
        let Inbound { text, key, by, images, .. } = said.into();
        self.write(Grade::Normal, move |tx| {
            let clean = redactor.redact(&text).text.into_owned();
            for image in images {
                let fact = Fact::Image { kind: image.kind(), labels: labels.clone() };
                chain::append(tx, &redactor, now, &Entry::of(session, fact).with(Payload::Image(image)))?;
            }
            let entry =
                Entry::of(session, Fact::Accepted { turn, labels, by, key }).with(Payload::Text(text));
            let seq = chain::append(tx, &redactor, now, &entry)?;
            project::accepted(tx, session, turn, now, &clean)?;
            Ok(seq)
        })
        .await
    }

    /// Ends a turn.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn end_turn(
        &self,
        session: SessionId,
        turn: TurnId,
        reason: String,
    ) -> Result<Seq, JournalError> {
        self.append(Entry::of(session, Fact::TurnEnded { turn, reason })).await
    }

    /// Ends what a session works at, as a person stopped it: its next process waits for a message. An answer
    /// given before that begins nothing.
    ///
    /// # Errors
    /// When the journal cannot be read or written.
    pub async fn cancel_turn(&self, session: SessionId) -> Result<(), JournalError> {
        let turn = match self.open_turn(session).await? {
            Some(turn) => turn,
            // A yes can begin work after a turn's end.
            None => {
                let now = u64::try_from(self.clock().now().as_millisecond()).unwrap_or_default();
                TurnId::new(now, chain::random()?)
            }
        };
        self.end_turn(session, turn, "cancelled".into()).await.map(drop)
    }

    /// Notes that the human revealed a masked file for this session.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn reveal(&self, session: SessionId, path: WsPath) -> Result<(), JournalError> {
        let (redactor, now) = self.pen();
        self.write(Grade::Full, move |tx| reveal(tx, &redactor, now, session, &path)).await
    }
}

/// The journal must hold the project's path as it is, to find the project again.
fn without_secret(redactor: &Redactor, new: NewSession) -> Result<NewSession, JournalError> {
    let clean = redactor.redact(&new.workspace.0);
    if clean.hits > 0 {
        return Err(JournalError::SecretInPath(clean.text.into_owned()));
    }
    Ok(new)
}

fn opened(
    tx: &mut Tx<'_>,
    redactor: &Redactor,
    now: Timestamp,
    id: SessionId,
    new: &NewSession,
) -> Result<Seq, StoreError> {
    let NewSession { workspace, principal, model, agent, confined } = new.clone();
    let fact = Fact::SessionOpened { workspace, principal, model };
    let seq = chain::append(tx, redactor, now, &Entry::of(id, fact))?;
    if let Some(agent) = agent {
        chain::append(tx, redactor, now, &Entry::of(id, Fact::Agent { agent }))?;
    }
    if let Some(confined) = confined {
        chain::append(tx, redactor, now, &Entry::of(id, Fact::Confined(confined)))?;
    }
    project::opened(tx, id, now, &new.workspace, &new.principal, &new.model)?;
    Ok(seq)
}

/// Notes a revealed file once.
pub(crate) fn reveal(
    tx: &mut Tx<'_>,
    redactor: &Redactor,
    now: Timestamp,
    session: SessionId,
    path: &WsPath,
) -> Result<(), StoreError> {
    if project::revealed(tx, session, &redactor.redact(&path.0).text)? {
        chain::append(tx, redactor, now, &Entry::of(session, Fact::Revealed { path: path.clone() }))?;
    }
    Ok(())
}
