//! Reading questions back: what waits for a human, and how it was settled.

use crate::{
    Fact, Journal, JournalError, Person,
    approval::{RAN_OUT, terms_of},
    fact::{Recorded, Stored},
    person::BAILEY,
};
use bailey_protocol::{ApprovalId, CallId, Card, Effect, Kind, Seq, SessionId, Timestamp, event::Answer};
use bailey_store::{OptionalExtension as _, Row, SqlResult, StoreError, Tx, params};
use serde::Serialize;

/// How much of a question's name cards and lists show, and how much of it names one at least.
const SHORT_CHARS: usize = 8;
/// Why a question that is void counts as a no.
const VOID: &str = "the question is void: other rules are in force since it was asked, everything was stopped, or the journal was brought back or salvaged";

/// The state of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionState {
    /// It waits for an answer.
    Open,
    /// Nobody answered in time: that is a no.
    RanOut,
    /// Yes, and nothing has begun on it yet.
    Yes,
    /// Yes, for this exact action for the rest of the session.
    YesForSession,
    /// Yes, for its pattern of commands for the rest of the session.
    YesForPattern,
    /// No.
    No,
    /// Yes, and the effect has begun.
    Used,
    /// Other rules came into force since it was asked, or the journal was brought back or salvaged.
    Void,
}

/// A question to a human, as the journal holds it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Question {
    /// Its name.
    pub id: ApprovalId,
    /// The session that asks.
    pub session: SessionId,
    /// How it stands.
    pub standing: QuestionState,
    /// One line: what would be done.
    pub target: String,
    /// The tool call that waits.
    pub call: Option<CallId>,
    /// When it was asked.
    pub asked: Timestamp,
    /// When it runs out.
    pub until: Option<Timestamp>,
    /// The question that ran out, and is asked once more with this one.
    pub again: Option<ApprovalId>,
    /// The kind of the effect that waits; `None` where no effect waits, or where it was erased.
    pub kind: Option<Kind>,
    /// What there is to judge; none when it was erased.
    pub card: Option<Card>,
}

impl Question {
    /// The question that was asked before any of these that asks the same once more: itself, where none was.
    #[must_use]
    pub fn first(&self, among: &[Self]) -> ApprovalId {
        let mut first = self;
        while let Some(before) = among.iter().find(|before| first.again == Some(before.id)) {
            first = before;
        }
        first.again.unwrap_or(first.id)
    }
}

/// How a question was settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The answer.
    pub answer: Answer,
    /// The reason.
    pub why: String,
    /// The entry of a person's answer. `None` when Bailey settled it, such as at the end of its time.
    pub answered: Option<Seq>,
}

/// A yes to the pages of a server, which holds in every session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerYes {
    /// Scheme, name and port.
    pub server: String,
    /// The question that was answered so.
    pub question: ApprovalId,
    /// The session that asked.
    pub session: SessionId,
    /// When it was answered.
    pub since: Timestamp,
    /// Who: `owner`.
    pub by: String,
    /// The person; older journals lack it.
    pub person: Option<Person>,
}

impl Journal {
    /// The servers whose pages a person said yes to, as it holds now, the oldest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn servers(&self) -> Result<Vec<ServerYes>, JournalError> {
        Ok(self
            .store()
            .read(|db| {
                let mut statement = db.prepare_cached(
                    "SELECT id, approval.session, terms, (
                        SELECT body FROM entry
                        WHERE entry.session = approval.session AND seq > asked AND type = 'answered'
                            AND json_extract(CAST(body AS TEXT), '$.approval') = approval.id
                        ORDER BY seq DESC LIMIT 1
                     ) FROM approval WHERE state = 'pattern' ORDER BY asked",
                )?;
                let rows = statement.query_map(params![], |row| Ok(server_yes(row)))?;
                let mut found = Vec::new();
                for row in rows {
                    found.extend(row??);
                }
                Ok(found)
            })
            .await?)
    }

    /// The questions of this home, or of one session, the oldest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn questions(&self, session: Option<SessionId>) -> Result<Vec<Question>, JournalError> {
        let now = self.clock().now();
        Ok(self
            .store()
            .read(move |db| {
                let mut statement = db.prepare_cached(
                    "SELECT approval.id, approval.session, state, until, body, bytes
                     FROM approval JOIN entry ON entry.seq = asked LEFT JOIN payload USING (seq)
                     WHERE ?1 IS NULL OR approval.session = ?1 ORDER BY asked",
                )?;
                let rows = statement
                    .query_map(params![session.map(|id| id.to_string())], |row| Ok(question(row, now)))?;
                let mut found = Vec::new();
                for row in rows {
                    found.extend(row??);
                }
                Ok(found)
            })
            .await?)
    }

    /// The one question whose name begins so; where several do, the one of this session.
    ///
    /// # Errors
    /// [`JournalError::ShortQuestion`] when fewer digits are given than people are shown: an answer grants
    /// something, and a slip of a key must not name another question. [`JournalError::NoSuchQuestion`];
    /// [`JournalError::SeveralQuestions`].
    pub async fn question(&self, name: &str, session: Option<SessionId>) -> Result<Question, JournalError> {
        if name.len() < SHORT_CHARS {
            return Err(JournalError::ShortQuestion(name.to_owned()));
        }
        let wanted = name.to_lowercase();
        let mut named = self.questions(None).await?;
        named.retain(|question| question.id.to_string().starts_with(&wanted));
        if named.len() > 1 && named.iter().filter(|question| Some(question.session) == session).count() == 1 {
            named.retain(|question| Some(question.session) == session);
        }
        match (named.pop(), named.is_empty()) {
            (Some(question), true) => Ok(question),
            (Some(_), false) => Err(JournalError::SeveralQuestions(name.to_owned())),
            (None, _) => Err(JournalError::NoSuchQuestion(name.to_owned())),
        }
    }

    /// How a question was settled; none while it waits for an answer.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn settlement(&self, id: ApprovalId) -> Result<Option<Settlement>, JournalError> {
        let now = self.clock().now();
        let found = self.store().glance(move |db| Settled::read(db, id)).await?;
        let found = found.ok_or_else(|| JournalError::NoSuchQuestion(id.to_string()))?;
        Ok(found.settlement(now))
    }
}

/// What the journal holds of how a question was settled.
pub(crate) struct Settled {
    state: String,
    until: Option<String>,
    why: Option<Vec<u8>>,
    by: Option<String>,
    seq: Option<i64>,
}

impl Settled {
    /// None where there is no such question.
    pub(crate) fn read(db: &Tx<'_>, id: ApprovalId) -> Result<Option<Self>, StoreError> {
        let sql = "SELECT state, until, bytes, json_extract(CAST(body AS TEXT), '$.by'), seq
                   FROM approval LEFT JOIN entry ON seq = (
                       SELECT max(seq) FROM entry
                       WHERE entry.session = approval.session AND seq > asked AND type = 'answered'
                           AND json_extract(CAST(body AS TEXT), '$.approval') = approval.id
                   ) LEFT JOIN payload USING (seq) WHERE id = ?1";
        let read = db.query_row(sql, params![id.to_string()], |row| {
            Ok(Self {
                state: row.get(0)?,
                until: row.get(1)?,
                why: row.get(2)?,
                by: row.get(3)?,
                seq: row.get(4)?,
            })
        });
        Ok(read.optional()?)
    }

    /// None while it waits for an answer.
    pub(crate) fn settlement(self, now: Timestamp) -> Option<Settlement> {
        let why = self.why.map(|why| String::from_utf8_lossy(&why).into_owned()).unwrap_or_default();
        let is_known = matches!(self.state.as_str(), "yes" | "burnt" | "session" | "pattern" | "no");
        let is_human = is_known && self.by.is_some_and(|by| by != BAILEY);
        let answered = self.seq.and_then(|seq| u64::try_from(seq).ok()).map(Seq).filter(|_| is_human);
        let (answer, why) = match self.state.as_str() {
            "open" if is_over(self.until.as_deref(), now) => (Answer::No, RAN_OUT.into()),
            "open" => return None,
            "yes" | "burnt" => (Answer::Yes, why),
            "session" => (Answer::YesForSession, why),
            "pattern" => (Answer::YesForPattern, why),
            "no" => (Answer::No, why),
            _ => (Answer::No, VOID.into()),
        };
        Some(Settlement { answer, why, answered })
    }
}

impl Settlement {
    /// Whether its time was over before a person answered.
    #[must_use]
    pub fn ran_out(&self) -> bool {
        self.answer == Answer::No && self.why == RAN_OUT
    }
}

/// Whether the time of a question is over; one of an older journal has no end.
pub(crate) fn is_over(until: Option<&str>, now: Timestamp) -> bool {
    until.and_then(|until| until.parse::<Timestamp>().ok()).is_some_and(|until| until <= now)
}

/// None of a yes for a pattern of commands, which is its session's.
fn server_yes(row: &Row<'_>) -> Result<Option<ServerYes>, StoreError> {
    let columns = || -> SqlResult<_> {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, String>(1)?,
            row.get::<_, Option<String>>(2)?,
            row.get::<_, Option<Vec<u8>>>(3)?,
        ))
    };
    let (id, session, terms, answer) = columns()?;
    let pattern = terms_of(terms.as_deref()).pattern.map(|wider| wider.pattern);
    let server = pattern.as_ref().and_then(|pattern| pattern.server()).map(str::to_owned);
    let (Some(server), Some(question), Some(session), Some(answer)) =
        (server, ApprovalId::parse(&id), SessionId::parse(&session), answer)
    else {
        return Ok(None);
    };
    let answer: Stored = serde_json::from_slice(&answer)
        .map_err(|error| StoreError::custom(format!("an answer cannot be read: {error}")))?;
    let Fact::Answered { by, person, .. } = answer.fact else { return Ok(None) };
    Ok(Some(ServerYes { server, question, session, since: answer.time, by, person }))
}

/// The effect that lies beside a card.
#[derive(serde::Deserialize)]
struct Beside {
    effect: Option<Effect>,
}

fn question(row: &Row<'_>, now: Timestamp) -> Result<Option<Question>, StoreError> {
    let columns = || -> SqlResult<_> {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, String>(1)?,
            row.get::<_, String>(2)?,
            row.get::<_, Option<String>>(3)?,
            row.get::<_, Vec<u8>>(4)?,
            row.get::<_, Option<Vec<u8>>>(5)?,
        ))
    };
    let (id, session, state, until, body, payload) = columns()?;
    let entry: Stored = serde_json::from_slice(&body)
        .map_err(|error| StoreError::custom(format!("a question cannot be read: {error}")))?;
    let (Some(id), Some(session)) = (ApprovalId::parse(&id), SessionId::parse(&session)) else {
        return Ok(None);
    };
    let recorded = Recorded { entry, payload };
    let card = recorded.payload.as_deref().and_then(|bytes| serde_json::from_slice(bytes).ok());
    let beside = recorded.payload.as_deref().and_then(|bytes| serde_json::from_slice::<Beside>(bytes).ok());
    let kind = beside.and_then(|beside| beside.effect).map(|effect| effect.action.kind());
    let Fact::Asked { target, call, again, .. } = recorded.entry.fact else { return Ok(None) };
    let standing = match state.as_str() {
        "open" if is_over(until.as_deref(), now) => QuestionState::RanOut,
        "open" => QuestionState::Open,
        "yes" => QuestionState::Yes,
        "session" => QuestionState::YesForSession,
        "pattern" => QuestionState::YesForPattern,
        "burnt" => QuestionState::Used,
        "no" => QuestionState::No,
        _ => QuestionState::Void,
    };
    Ok(Some(Question {
        id,
        session,
        standing,
        target,
        call,
        asked: recorded.entry.time,
        until: until.and_then(|until| until.parse().ok()),
        again,
        kind,
        card,
    }))
}
