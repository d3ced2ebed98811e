//! `bailey approvals`: what waits for a human, and the human's answer, from any terminal of this home.
//!
//! The answer is written to the journal, where the process that asked looks for it. When that has ended, the
//! answer stays there for `bailey sessions resume`.

mod servers;

use crate::{
    cli::Approvals,
    compose::{self, Keys},
    config::Config,
    front::{draw_card, one_line, short, short_question},
    home::Home,
    person::person,
    print::{Printer, Style},
};
use anyhow::{Context as _, Result, bail};
use bailey_journal::{Answerer, Journal, JournalError, Mint, Question, QuestionState, RAN_OUT};
use bailey_protocol::{Answer, ApprovalId, Kind, SessionId, Timestamp};
use bailey_session::{
    client::Client,
    wire::{Ask, DaemonAnswer},
};
use serde_json::json;
use std::{process::ExitCode, time::Duration};

pub(super) async fn run(home: &Home, command: Approvals, printer: &Printer) -> Result<ExitCode> {
    let config = Config::load(home)?;
    let keys = Keys::load(home, &config, printer)?;
    let (journal, mint) = compose::journal(home, &keys).await?;
    journal.sound().await?;
    let desk = Desk { home, journal, mint, printer };
    match command {
        Approvals::List { all } => desk.list(all).await,
        Approvals::Show { question } => desk.show(&question).await,
        Approvals::Approve { question, session, pattern, reason } => {
            let answer = match (session, pattern) {
                (_, true) => Answer::YesForPattern,
                (true, _) => Answer::YesForSession,
                _ => Answer::Yes,
            };
            desk.answer(&question, answer, &reason).await
        }
        Approvals::Reject { question: Some(question), why, reason, .. } => {
            let reason = if why.is_empty() { reason } else { why.join(" ") };
            desk.answer(&question, Answer::No, &reason).await
        }
        Approvals::Reject { question: None, session, kind, reason, .. } => {
            desk.reject_all(session.as_deref(), kind.as_deref(), &reason).await
        }
        Approvals::Again { question } => {
            let lasts = Duration::from_secs(config.approvals.unattended_seconds);
            desk.again(&question, lasts, compose::is_compliance(&config)?).await
        }
        Approvals::Servers => desk.servers().await,
        Approvals::Revoke { server, reason } => desk.revoke(&server, &reason).await,
    }
}

/// How long a question that ran out is listed, in seconds.
const LATE_SECONDS: i64 = 24 * 60 * 60;

/// Where questions are answered.
struct Desk<'a> {
    home: &'a Home,
    journal: Journal,
    mint: Mint,
    printer: &'a Printer,
}

impl Desk<'_> {
    async fn list(&self, all: bool) -> Result<ExitCode> {
        let mut questions = self.journal.questions(None).await?;
        let now = self.journal.clock().now();
        let asked_again: Vec<ApprovalId> = questions.iter().filter_map(|question| question.again).collect();
        // A question that ran out lately can be asked again.
        let mut late = Vec::new();
        for question in &questions {
            let age = question.until.map(|until| now.duration_since(until).as_secs());
            let is_over = age.is_some_and(|age| (0..LATE_SECONDS).contains(&age));
            let ran_out = match question.standing {
                QuestionState::RanOut => is_over,
                QuestionState::No if is_over => {
                    let settled = self.journal.settlement(question.id).await?;
                    settled.is_some_and(|settled| settled.why == RAN_OUT)
                }
                _ => false,
            };
            late.extend((ran_out && !asked_again.contains(&question.id)).then_some(question.id));
        }
        let is_late = |question: &Question| late.contains(&question.id);
        questions.retain(|question| {
            all || matches!(question.standing, QuestionState::Open | QuestionState::Yes) || is_late(question)
        });
        if questions.is_empty() && !self.printer.is_json() {
            self.printer.note("no question waits for an answer");
        }
        for question in &questions {
            if self.printer.is_json() {
                self.printer.json(question);
                continue;
            }
            let style = if question.standing == QuestionState::Open { Style::Yellow } else { Style::Dim };
            let title = question.card.as_ref().map_or(question.target.as_str(), |card| card.title.as_str());
            self.printer.line(format!(
                "{}  {}  {}  {}",
                self.printer.paint(Style::Bold, &short_question(question.id)),
                self.printer.paint(
                    style,
                    &if is_late(question) { "ran out".to_owned() } else { standing(question, now) },
                ),
                self.printer.paint(Style::Dim, &short(&question.session)),
                self.printer.paint(Style::Plain, &one_line(title)),
            ));
        }
        if let Some(late) = questions.iter().find(|question| is_late(question))
            && !self.printer.is_json()
        {
            let id = short_question(late.id);
            self.printer.note(&format!(
                "a question that ran out counts as a no; `bailey approvals again {id}` asks it once more"
            ));
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn show(&self, name: &str) -> Result<ExitCode> {
        let question = self.journal.question(name, None).await?;
        if self.printer.is_json() {
            self.printer.json(&question);
            return Ok(ExitCode::SUCCESS);
        }
        let id = short_question(question.id);
        match &question.card {
            Some(card) => draw_card(self.printer, card, self.printer.sheet())
                .lines()
                .for_each(|line| self.printer.line(line)),
            None => self.printer.line(self.printer.paint(Style::Plain, &one_line(&question.target))),
        }
        let standing = standing(&question, self.journal.clock().now());
        self.printer.line(self.printer.paint(
            Style::Dim,
            &format!(
                "{standing}; asked by session {}, as question {}",
                short(&question.session),
                question.id
            ),
        ));
        if question.standing == QuestionState::Open {
            let wider = question.card.as_ref().is_some_and(|card| card.pattern.is_some());
            let pattern = if wider { " [--pattern]" } else { "" };
            self.printer.note(&format!(
                "bailey approvals approve {id}{pattern}, or: bailey approvals reject {id} --reason \"…\""
            ));
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn answer(&self, name: &str, answer: Answer, why: &str) -> Result<ExitCode> {
        let question = self.journal.question(name, None).await?;
        let (id, session) = (question.id, question.session);
        let owner = Answerer::owner(Some(person()));
        match (question.standing, answer) {
            (QuestionState::Open, _) => self.mint.answer(session, id, answer, owner, why).await?,
            (
                QuestionState::Yes | QuestionState::YesForSession | QuestionState::YesForPattern,
                Answer::No,
            ) => {
                self.mint.revoke(session, id, owner, why).await?;
            }
            (QuestionState::RanOut, _) => bail!(
                "the question {0} ran out of time, which counts as a no; ask it again with \
                 `bailey approvals again {0}`",
                short_question(id)
            ),
            (standing, _) => {
                bail!("the question {} is settled already: {}", short_question(id), word(standing))
            }
        }
        let (id, of) = (short_question(id), short(&session));
        let said = match answer {
            Answer::No => "rejected".to_owned(),
            Answer::Yes => "approved".to_owned(),
            Answer::YesForSession => "approved for its session".to_owned(),
            Answer::YesForPattern => {
                let words = question.card.as_ref().and_then(|card| card.pattern.clone());
                format!("approved, and {}", words.unwrap_or_default())
            }
        };
        let goes_on = self.wake(session).await;
        if self.printer.is_json() {
            self.printer.json(&json!({ "question": question.id, "session": session, "answer": answer }));
            return Ok(ExitCode::SUCCESS);
        }
        let target = self.printer.paint(Style::Plain, &one_line(&question.target));
        self.printer.line(format!("{}: {target}", self.printer.paint(Style::Plain, &said)));
        self.printer.note(&match goes_on {
            true => format!("session {of} goes on (question {id})"),
            false => format!(
                "session {of} gets the answer; if its process has ended, continue it with \
                 `bailey sessions resume {of}` (question {id})"
            ),
        });
        Ok(ExitCode::SUCCESS)
    }

    /// Has the daemon go on with a session whose question was answered, or asked again. Returns false where
    /// no daemon runs, or it does not know the session.
    async fn wake(&self, session: SessionId) -> bool {
        let woken = async {
            let mut daemon = Client::connect(self.home).ok()??;
            daemon.ask(Ask::Wake { session }).await.ok()
        };
        matches!(woken.await, Some(DaemonAnswer::Woken { goes_on: true }))
    }

    /// Says no to every open question, or to those of a session or of a kind. A question that somebody else
    /// answers meanwhile stays answered.
    async fn reject_all(&self, session: Option<&str>, kind: Option<&str>, why: &str) -> Result<ExitCode> {
        let session = match session {
            Some(name) => Some(self.journal.conversation(name).await?.id),
            None => None,
        };
        let kind = kind.map(kind_of).transpose()?;
        let mut questions = self.journal.questions(session).await?;
        questions.retain(|question| {
            question.standing == QuestionState::Open && (kind.is_none() || question.kind == kind)
        });
        let (mut rejected, mut told) = (0, Vec::new());
        for Question { id, session, .. } in &questions {
            match self.mint.answer(*session, *id, Answer::No, Answerer::owner(Some(person())), why).await {
                Ok(()) => {
                    rejected += 1;
                    told.push(*session);
                }
                Err(JournalError::Settled(_) | JournalError::RanOut(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        told.dedup();
        for session in told {
            self.wake(session).await;
        }
        if self.printer.is_json() {
            self.printer.json(&json!({ "rejected": rejected }));
        } else {
            self.printer.line(format!("rejected: {rejected} questions"));
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn again(&self, name: &str, lasts: Duration, compliance: bool) -> Result<ExitCode> {
        let question = self.journal.question(name, None).await?;
        let id = self.mint.ask_again(question.id, lasts, compliance).await?;
        self.wake(question.session).await;
        if self.printer.is_json() {
            self.printer
                .json(&json!({ "question": id, "session": question.session, "instead_of": question.id }));
            return Ok(ExitCode::SUCCESS);
        }
        self.printer.line(format!("asked again, as question {}", short_question(id)));
        self.printer.note(&format!("bailey approvals approve {}", short_question(id)));
        Ok(ExitCode::SUCCESS)
    }
}

fn kind_of(name: &str) -> Result<Kind> {
    let names = || Kind::ALL.map(Kind::name).join(", ");
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    found.with_context(|| format!("`{name}` is not a kind of action; the kinds are {}", names()))
}

/// How a question stands, in a few words.
fn standing(question: &Question, now: Timestamp) -> String {
    let Some(until) = question.until.filter(|_| question.standing == QuestionState::Open) else {
        return word(question.standing).into();
    };
    let left = until.duration_since(now).as_secs().max(0);
    match left {
        0..120 => format!("open, {left} s left"),
        120..7200 => format!("open, {} min left", left / 60),
        _ => format!("open, {} h left", left / 3600),
    }
}

fn word(standing: QuestionState) -> &'static str {
    match standing {
        QuestionState::Open => "open",
        QuestionState::RanOut => "ran out",
        QuestionState::Yes => "approved, not begun yet",
        QuestionState::YesForSession => "approved for its session",
        QuestionState::YesForPattern => "approved for its pattern, for its session",
        QuestionState::No => "answered with no",
        QuestionState::Used => "approved and begun",
        QuestionState::Void => {
            "void: since it was asked, the rules changed, everything was stopped, or the journal was restored"
        }
    }
}
