//! Questions to a human and what they grant: each is an entry, single use, bound to the bytes that were
//! shown, and runs out.

use crate::{
    Answerer, Grant, JournalError, Mint, NoAnswer, Terms, Wider,
    begin::effect_json,
    chain::{self, random},
    fact::{Entry, Fact, Payload, Stored},
    project,
    question::{Settled, is_over},
};
use bailey_protocol::{
    Action, ApprovalId, CallId, Digest, Effect, Sealed, SessionId, Timestamp, event::Answer,
};
use bailey_secrets::Redactor;
use bailey_store::{Grade, OptionalExtension as _, StoreError, Tx, params};
use std::time::Duration;

/// Why a question that ran out counts as a no.
pub const RAN_OUT: &str = "nobody answered in time";

/// Open questions of one session. A person does not read two hundred cards, and says yes to be rid of them.
pub const QUESTIONS_MAX: usize = 20;

/// A question that is to be written.
struct Asking {
    session: SessionId,
    /// The digest of the effect that waits, or of the card where none does.
    digest: Digest,
    action: Option<Digest>,
    target: String,
    call: Option<CallId>,
    terms: Terms,
    /// The question that ran out before.
    again: Option<ApprovalId>,
    /// Whether it is asked only where the session has room for one more.
    needs_room: bool,
    card: serde_json::Value,
}

/// What became of an answer.
enum Given {
    Taken,
    Settled,
    RanOut,
    NoAnswer(NoAnswer),
}

impl Given {
    fn result(self, id: ApprovalId) -> Result<(), JournalError> {
        match self {
            Self::Taken => Ok(()),
            Self::Settled => Err(JournalError::Settled(id)),
            Self::RanOut => Err(JournalError::RanOut(id)),
            Self::NoAnswer(none) => Err(JournalError::NoAnswer(id, none)),
        }
    }
}

impl Mint {
    /// Writes a question about an effect, which runs out after `lasts`. The effect stands beside the card, so
    /// that other rules can be tried on it also where nothing comes of it.
    ///
    /// # Errors
    /// [`JournalError::NoRoom`] where the session has as many open questions as it may; others when the
    /// question cannot be written.
    pub async fn ask(
        &self,
        effect: &Sealed,
        terms: Terms,
        mut card: serde_json::Value,
        lasts: Duration,
    ) -> Result<ApprovalId, JournalError> {
        let (digest, action_digest) = (effect.digest(), effect.action_digest());
        if let Some(card) = card.as_object_mut() {
            card.insert("effect".into(), effect_json(effect.effect())?);
        }
        let Effect { id, session, call, action, .. } = effect.effect().clone();
        let target = action.target();
        let asking = Asking {
            session,
            digest,
            action: Some(action_digest),
            target,
            call,
            terms,
            again: None,
            needs_room: true,
            card,
        };
        self.write_question(asking, lasts, move |entry| entry.about(id)).await
    }

    /// Writes a question about no effect, such as whether a turn goes on. Its answer grants nothing: no
    /// effect has a card's digest.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn ask_of(
        &self,
        session: SessionId,
        target: String,
        terms: Terms,
        card: serde_json::Value,
        lasts: Duration,
    ) -> Result<ApprovalId, JournalError> {
        let digest = Digest::of(card.to_string().as_bytes());
        let (action, call, again, needs_room) = (None, None, None, false);
        let asking = Asking { session, digest, action, target, call, terms, again, needs_room, card };
        self.write_question(asking, lasts, |entry| entry).await
    }

    /// Asks once more what has run out: the same effect, as a new question, on terms that are no wider than
    /// today's rules would have them, which `compliance` says, and with the card of those terms. No yes is
    /// for a pattern then. Where it was asked once more before, and that waits for an answer, the question is
    /// that one: what is asked about runs once.
    ///
    /// # Errors
    /// [`JournalError::NotRunOut`] when it did not run out, or is of an older journal;
    /// [`JournalError::AskedAgain`] when it was asked once more before and answered.
    pub async fn ask_again(
        &self,
        id: ApprovalId,
        lasts: Duration,
        compliance: bool,
    ) -> Result<ApprovalId, JournalError> {
        self.once_more(None, id, lasts, compliance).await
    }

    /// The same for whoever speaks for one session, and can name no question of another.
    ///
    /// # Errors
    /// As [`Mint::ask_again`]; [`JournalError::Settled`] when it is another session's.
    pub async fn ask_again_in(
        &self,
        session: SessionId,
        id: ApprovalId,
        lasts: Duration,
        compliance: bool,
    ) -> Result<ApprovalId, JournalError> {
        self.once_more(Some(session), id, lasts, compliance).await
    }

    async fn once_more(
        &self,
        of: Option<SessionId>,
        id: ApprovalId,
        lasts: Duration,
        compliance: bool,
    ) -> Result<ApprovalId, JournalError> {
        let found = self
            .journal()
            .store()
            .read(move |db| {
                Ok(db
                    .query_row(
                        "SELECT body, bytes FROM approval JOIN entry ON entry.seq = asked JOIN payload USING (seq)
                         WHERE id = ?1 AND state IN ('open', 'no')",
                        params![id.to_string()],
                        |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, Vec<u8>>(1)?)),
                    )
                    .optional()?)
            })
            .await?;
        let (body, card) = found.ok_or(JournalError::NotRunOut(id))?;
        let json = |error: serde_json::Error| JournalError::Json(error.to_string());
        let Stored { session: Some(session), effect, time: _, fact, .. } =
            serde_json::from_slice(&body).map_err(json)?
        else {
            return Err(JournalError::NotRunOut(id));
        };
        if of.is_some_and(|of| of != session) {
            return Err(JournalError::Settled(id));
        }
        let Fact::Asked { digest, action, target, call, terms, until: Some(until), .. } = fact else {
            return Err(JournalError::NotRunOut(id));
        };
        if until > self.journal().clock().now() || !self.ran_out(id).await? {
            return Err(JournalError::NotRunOut(id));
        }
        let (once, reasoned) = (terms.once || compliance, terms.reasoned || compliance);
        let terms = Terms { pattern: None, once, reasoned, ..terms };
        let mut card: serde_json::Value = serde_json::from_slice(&card).map_err(json)?;
        if let Some(card) = card.as_object_mut() {
            card.remove("pattern");
            card.extend([("once", once), ("reasoned", reasoned)].map(|(term, is)| (term.into(), is.into())));
        }
        let asking =
            Asking { session, digest, action, target, call, terms, again: Some(id), needs_room: false, card };
        self.write_question(asking, lasts, move |entry| match effect {
            Some(effect) => entry.about(effect),
            None => entry,
        })
        .await
    }

    /// Whether a question whose time is over was answered by nobody.
    async fn ran_out(&self, id: ApprovalId) -> Result<bool, JournalError> {
        let settlement = self.journal().settlement(id).await?;
        Ok(settlement.is_none_or(|settlement| settlement.ran_out()))
    }

    /// Gives the question that waits already, where this one would be the same asked once more.
    async fn write_question(
        &self,
        asking: Asking,
        lasts: Duration,
        of: impl FnOnce(Entry) -> Entry + Send + 'static,
    ) -> Result<ApprovalId, JournalError> {
        let (redactor, now) = self.journal().pen();
        let approval = ApprovalId::new(random()?);
        let until = now.checked_add(lasts).ok();
        self.journal()
            .write(Grade::Full, move |tx| {
                let Asking { session, digest, action, target, call, terms, again, needs_room, card } = asking;
                if needs_room && open_questions(tx, session, now)? >= QUESTIONS_MAX {
                    return Ok(Err(JournalError::NoRoom));
                }
                if let Some(again) = again {
                    match waits_already(tx, session, again, now)? {
                        Ok(None) => {}
                        Ok(Some(other)) => return Ok(Ok(other)),
                        Err(answered) => return Ok(Err(answered)),
                    }
                }
                let stored = call.as_ref().map(|call| redactor.redact(&call.0).text.into_owned());
                let terms = terms.kept(&redactor);
                let kept = terms.clone();
                let fact = Fact::Asked { approval, digest, action, target, call, until, terms, again };
                let entry = of(Entry::of(session, fact)).with(Payload::Json(card));
                let entry = chain::append(tx, &redactor, now, &entry)?;
                let asked =
                    project::NewQuestion { effect: digest, action, entry, until, call: stored, terms: kept };
                project::asked(tx, approval, session, &asked)?;
                Ok(Ok(approval))
            })
            .await?
    }

    /// Settles a question of a session. The first answer counts; a later one is refused, and so is one to a
    /// question that ran out, which is settled with no, and one that the question's terms do not know, which
    /// leaves it open.
    ///
    /// # Errors
    /// [`JournalError::Settled`] when it is not open any more, or is another session's;
    /// [`JournalError::RanOut`]; [`JournalError::NoAnswer`].
    pub async fn answer(
        &self,
        session: SessionId,
        id: ApprovalId,
        answer: Answer,
        by: impl Into<Answerer>,
        why: &str,
    ) -> Result<(), JournalError> {
        let (redactor, now) = self.journal().pen();
        let (by, why) = (by.into(), why.to_owned());
        let given = self
            .journal()
            .write(Grade::Full, move |tx| {
                let Some((until, terms)) = open(tx, session, id)? else { return Ok(Given::Settled) };
                #[cfg(feature = "controls")]
                let until = until.filter(|_| !bailey_protocol::broken::broken("expiry"));
                if until.is_some_and(|until| until <= now) {
                    let settled = Settling {
                        session,
                        id,
                        answer: Answer::No,
                        by: Answerer::bailey(),
                        why: RAN_OUT.into(),
                    };
                    settled.write(tx, &redactor, now)?;
                    return Ok(Given::RanOut);
                }
                if by.is_human()
                    && let Err(none) = terms.take(answer, &why)
                {
                    return Ok(Given::NoAnswer(none));
                }
                Settling { session, id, answer, by, why }.write(tx, &redactor, now)?;
                Ok(Given::Taken)
            })
            .await?;
        given.result(id)
    }

    /// Takes back a yes that nothing has used yet.
    ///
    /// # Errors
    /// [`JournalError::Settled`] when there is none; [`JournalError::NoAnswer`].
    pub async fn revoke(
        &self,
        session: SessionId,
        id: ApprovalId,
        by: impl Into<Answerer>,
        why: &str,
    ) -> Result<(), JournalError> {
        const GIVEN: &str = "SELECT terms FROM approval WHERE id = ?1 AND session = ?2
                             AND state IN ('yes', 'session', 'pattern')";
        self.unsay(GIVEN, session, id, by.into(), why).await
    }

    /// The same, where nothing at all was begun on it, also of one for longer than once.
    ///
    /// # Errors
    /// As [`Mint::revoke`].
    pub async fn take_back(
        &self,
        session: SessionId,
        id: ApprovalId,
        by: impl Into<Answerer>,
        why: &str,
    ) -> Result<(), JournalError> {
        const UNUSED: &str = "SELECT terms FROM approval WHERE id = ?1 AND session = ?2 AND (
                                  state = 'yes' OR state IN ('session', 'pattern') AND NOT EXISTS (
                                      SELECT 1 FROM entry WHERE entry.session = ?2 AND type = 'intent'
                                          AND json_extract(CAST(body AS TEXT), '$.approval') = approval.id
                                  )
                              )";
        self.unsay(UNUSED, session, id, by.into(), why).await
    }

    /// Settles with no what `found` finds the terms of.
    async fn unsay(
        &self,
        found: &'static str,
        session: SessionId,
        id: ApprovalId,
        by: Answerer,
        why: &str,
    ) -> Result<(), JournalError> {
        let (redactor, now) = self.journal().pen();
        let why = why.to_owned();
        let given = self
            .journal()
            .write(Grade::Full, move |tx| {
                let found = tx
                    .query_row(found, params![id.to_string(), session.to_string()], |row| {
                        row.get::<_, Option<String>>(0)
                    })
                    .optional()?;
                let Some(terms) = found else { return Ok(Given::Settled) };
                if let Err(none) = terms_of(terms.as_deref()).take(Answer::No, &why) {
                    return Ok(Given::NoAnswer(none));
                }
                Settling { session, id, answer: Answer::No, by, why }.write(tx, &redactor, now)?;
                Ok(Given::Taken)
            })
            .await?;
        given.result(id)
    }

    /// The grant of an answered question for this very effect; it is burnt when the effect begins.
    ///
    /// # Errors
    /// [`JournalError::NotGranted`] when the answer was not yes, or was for another effect, or is used up.
    pub async fn grant(&self, id: ApprovalId, effect: &Sealed) -> Result<Grant, JournalError> {
        let digest = effect.digest().to_string();
        let given = self
            .journal()
            .store()
            .glance(move |db| {
                Ok(db
                    .query_row(
                        "SELECT terms FROM approval
                         WHERE id = ?1 AND digest = ?2 AND state IN ('yes', 'session', 'pattern')",
                        params![id.to_string(), digest],
                        |row| row.get::<_, Option<String>>(0),
                    )
                    .optional()?)
            })
            .await?;
        let terms = terms_of(given.ok_or(JournalError::NotGranted(id))?.as_deref());
        Ok(Grant { approval: id, named: terms.named, wider: None })
    }

    /// A grant that a human gave for this exact action before: for the rest of its session, or once for the
    /// tool call that asked for it in a process that has ended since; while the terms of asking are what they
    /// were: the same files, asker and system calls. Where `lasting` is not wanted, one for the session is
    /// none.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn standing_grant(
        &self,
        effect: &Sealed,
        now: &Terms,
        lasting: bool,
    ) -> Result<Option<Grant>, JournalError> {
        let Effect { session, call, .. } = effect.effect();
        let session = session.to_string();
        let call = call.as_ref().map(|call| self.journal().redactor().redact(&call.0).text.into_owned());
        let action = effect.action_digest().to_string();
        let given = self
            .journal()
            .store()
            .glance(move |db| {
                let mut statement = db.prepare_cached(
                    "SELECT id, terms FROM approval WHERE session = ?1 AND action_digest = ?2
                     AND (?4 AND state = 'session' OR state = 'yes' AND call = ?3) ORDER BY asked",
                )?;
                let rows = statement.query_map(params![session, action, call, lasting], |row| {
                    Ok((row.get::<_, String>(0)?, row.get(1)?))
                })?;
                Ok(rows.collect::<Result<Vec<_>, _>>()?)
            })
            .await?;
        let stands = |(_, terms): &(String, Option<String>)| terms_of(terms.as_deref()).stand_for(now);
        let found = given.into_iter().find(stands).and_then(|(id, _)| ApprovalId::parse(&id));
        Ok(found.map(|approval| Grant { approval, named: now.named, wider: None }))
    }

    /// A grant that a human gave for a pattern which covers this action, in this session or, where it is of
    /// the home, in any; `wider` says what the action is, and the asker and the system calls are those of
    /// then.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn pattern_grant(
        &self,
        session: SessionId,
        action: &Action,
        now: &Terms,
        wider: Wider,
    ) -> Result<Option<Grant>, JournalError> {
        let (session, of_home) = (session.to_string(), wider.pattern.is_of_home());
        let given = self
            .journal()
            .store()
            .glance(move |db| {
                let mut statement = db.prepare_cached(
                    "SELECT id, terms FROM approval WHERE (session = ?1 OR ?2) AND state = 'pattern' ORDER BY asked",
                )?;
                let rows = statement
                    .query_map(params![session, of_home], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?;
                Ok(rows.collect::<Result<Vec<_>, _>>()?)
            })
            .await?;
        let covers = |(_, terms): &(String, Option<String>)| {
            let then = terms_of(terms.as_deref());
            // Other files than those of the command that was shown: the program is what `wider` compares.
            let alike = Terms { named: now.named, ..then.clone() };
            alike.stand_for(now) && then.covers(&wider, action)
        };
        let found = given.into_iter().find(covers).and_then(|(id, _)| ApprovalId::parse(&id));
        Ok(found.map(|approval| Grant { approval, named: now.named, wider: Some(Box::new(wider)) }))
    }
}

/// An answer that is to be written.
struct Settling {
    session: SessionId,
    id: ApprovalId,
    answer: Answer,
    by: Answerer,
    why: String,
}

impl Settling {
    fn write(self, tx: &mut Tx<'_>, redactor: &Redactor, now: Timestamp) -> Result<(), StoreError> {
        let Self { session, id, answer, by, why } = self;
        let Answerer { by, person } = by;
        let fact = Fact::Answered { approval: id, answer, by, person };
        let entry = Entry::of(session, fact).with(Payload::Text(why));
        chain::append(tx, redactor, now, &entry)?;
        project::answered(tx, id, answer)
    }
}

/// How many questions of a session wait for an answer.
pub(crate) fn open_questions(tx: &Tx<'_>, session: SessionId, now: Timestamp) -> Result<usize, StoreError> {
    let sql = "SELECT until FROM approval WHERE state = 'open' AND session = ?1";
    let open = tx.query_all(sql, params![session.to_string()], |row| row.get::<_, Option<String>>(0))?;
    Ok(open.iter().filter(|until| !is_over(until.as_deref(), now)).count())
}

/// The question that waits for an answer in the place of one that ran out; none where each that was asked in
/// its place ran out as well, or is void. One that was answered is an error: what was asked about would be
/// done a second time.
fn waits_already(
    tx: &Tx<'_>,
    session: SessionId,
    id: ApprovalId,
    now: Timestamp,
) -> Result<Result<Option<ApprovalId>, JournalError>, StoreError> {
    let mut waits = None;
    for other in in_its_place(tx, session, id)? {
        match Settled::read(tx, other)?.map(|settled| settled.settlement(now)) {
            Some(None) => waits = Some(other),
            Some(Some(settlement)) if !settlement.ran_out() => {
                return Ok(Err(JournalError::AskedAgain(id, other)));
            }
            _ => {}
        }
    }
    Ok(Ok(waits))
}

/// A question, and all that were asked once more in its place or that it was asked in the place of, wherever
/// in their row it stands; without those that are void and were not used before.
fn in_its_place(tx: &Tx<'_>, session: SessionId, id: ApprovalId) -> Result<Vec<ApprovalId>, StoreError> {
    let sql = "WITH RECURSIVE
               link (id, again) AS MATERIALIZED (
                   SELECT approval.id, json_extract(CAST(body AS TEXT), '$.again')
                   FROM approval JOIN entry ON entry.seq = asked WHERE approval.session = ?1
               ),
               same (id) AS (
                   SELECT ?2 UNION
                   SELECT iif(link.id = same.id, link.again, link.id)
                   FROM same JOIN link ON same.id IN (link.id, link.again) WHERE link.again IS NOT NULL
               )
               SELECT id FROM same JOIN approval USING (id) WHERE state <> 'void' OR EXISTS (
                   SELECT 1 FROM entry WHERE entry.session = ?1 AND type = 'intent'
                       AND json_extract(CAST(body AS TEXT), '$.approval') = approval.id
               ) ORDER BY asked";
    let of = params![session.to_string(), id.to_string()];
    let found = tx.query_all(sql, of, |row| row.get::<_, String>(0))?;
    Ok(found.iter().filter_map(|id| ApprovalId::parse(id)).collect())
}

/// When an open question of this session runs out, and its terms; none when there is no such question.
fn open(
    tx: &Tx<'_>,
    session: SessionId,
    id: ApprovalId,
) -> Result<Option<(Option<Timestamp>, Terms)>, StoreError> {
    let found = tx
        .query_row(
            "SELECT until, terms FROM approval WHERE id = ?1 AND session = ?2 AND state = 'open'",
            params![id.to_string(), session.to_string()],
            |row| Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<String>>(1)?)),
        )
        .optional()?;
    Ok(found.map(|(until, terms)| (until.and_then(|until| until.parse().ok()), terms_of(terms.as_deref()))))
}

/// Terms as they are stored; an older journal has none. Those that cannot be read are the strictest.
pub(crate) fn terms_of(stored: Option<&str>) -> Terms {
    let strictest = || Terms { once: true, reasoned: true, ..Terms::default() };
    stored.map_or_else(Terms::default, |terms| serde_json::from_str(terms).unwrap_or_else(|_| strictest()))
}
