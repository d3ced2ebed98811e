//! The journal: the append-only, hash-chained record of everything that Bailey did or refused.
//!
//! It is the truth: sessions, approvals and budgets are projections of it, written in the transaction of
//! their entry. [`Mint`] is the only source of [`Permit`]s, so that no executor can be reached with an effect
//! whose intent is not on disk. What a stranger wrote into it is redacted first; what the chain covers is the
//! bytes as stored.
//!
//! It decides nothing (that is `policy`), performs nothing (executors) and prints nothing.
//!
//! Read [`fact`] first (what can be said), then `mint.rs` (how an effect begins and ends; the
//! transactions are `begin.rs` and `finish.rs`), then `chain.rs`.

mod approval;
pub mod archive;
mod background;
mod begin;
#[cfg(feature = "controls")]
mod breach;
mod budget;
mod chain;
pub mod checkpoint;
mod clean;
mod clock;
mod copy;
mod extension;
pub mod fact;
mod finish;
mod flock;
mod fork;
mod given;
mod judge;
mod keys;
mod ledger;
mod lock;
mod masked;
mod merges;
pub mod merkle;
mod mint;
mod permit;
mod person;
mod progress;
mod project;
pub mod proof;
mod prove;
mod question;
mod read;
mod rebuild;
mod remove;
mod retain;
mod salvage;
mod schema;
mod search;
mod shelf;
mod sign;
mod stop;
mod terms;
mod token;
mod totals;
mod tree;
pub mod witness;
mod write;

pub use approval::{QUESTIONS_MAX, RAN_OUT};
pub use background::Background;
pub use begin::Circumstances;
#[cfg(feature = "controls")]
pub use breach::Breach;
pub use budget::{Bound, BudgetScope, Budgets, Exceeded, Gauge};
pub use chain::{Broken, Newest, Verified, newest};
#[cfg(feature = "controls")]
pub use clock::double;
pub use clock::{Clock, SystemClock};
pub use fact::{
    Confined, Entry, ExtensionFailure, Fact, Loss, Parent, Payload, Purpose, Recorded, Stored, Under,
};
pub use flock::FileLocks;
pub use ledger::{Presented, Uses};
pub use lock::{GuestLock, Holder, InUse, SessionLock};
pub use masked::{Masked, hits};
pub use merges::Applied;
pub use mint::{Mint, Unfinished};
pub use permit::{Permit, Receipt, Redeemed, Seal};
pub use person::{Answerer, BAILEY, OWNER, Person};
pub use progress::{Progress, Standing};
pub use question::{Question, QuestionState, ServerYes, Settlement};
pub use read::{Query, SessionInfo};
pub use rebuild::Rebuilt;
pub use remove::Removed;
pub use retain::{Archive, Idle, Leaving, RetentionReason};
pub use salvage::{Salvage, is_stopped};
pub use schema::SCHEMA_VERSION;
pub use search::{Said, Voice};
#[cfg(feature = "controls")]
pub use shelf::CrashPoint;
pub use shelf::{Damage, Room, Shelf};
pub use sign::{CheckpointLine, Vouched};
pub use terms::{Asker, NoAnswer, Terms, Wider};
pub use token::{BadToken, CAVEAT_BYTES_MAX, Macaroon, TOKEN_BYTES_MAX, TOKEN_PREFIX};
pub use totals::{Sent, Totals};
pub use write::NewSession;

use bailey_policy::{Allowed, Review};
use bailey_protocol::{ApprovalId, Digest, Effect, Isolation, SessionId};
use bailey_secrets::Redactor;
use bailey_store::{Database, Grade, Store, StoreError, Tx};
use clean::Clean;
use keys::KeyFile;
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::{Mutex, OnceCell};

/// How many of the newest entries are verified before a process writes its first; `audit verify` checks all.
const VERIFIED_AT_START: u64 = 256;

/// The journal's file, open and up to date, before any thread works on it, and the file of the key that signs
/// it.
#[derive(Debug)]
pub struct JournalFile {
    database: Database,
    keys: KeyFile,
}

impl JournalFile {
    /// Opens the file at `path`, and makes it when it is not there. Beside it lies the key, by the same name
    /// and the ending `.key`.
    ///
    /// # Errors
    /// When it cannot be opened or written, or is newer than this program.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        salvage::finish_swap(path).map_err(|source| JournalError::Io { path: path.to_path_buf(), source })?;
        let database = Database::open(path, schema::MIGRATIONS)?;
        let keys = KeyFile::open(&path.with_extension("key"))?;
        Ok(Self { database, keys })
    }

    /// All files that the database consists of; they exist as long as it is open. The key's is not among
    /// them: nobody opens that again.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        self.database.files()
    }
}

/// A handle to the journal: reads and appends, but cannot begin an effect.
#[derive(Clone)]
pub struct Journal {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    redactor: Redactor,
    clock: Arc<dyn Clock>,
    seal: Seal,
    /// The newest entry that this process knows of.
    newest: AtomicU64,
    /// Set once the newest entries were found sound.
    sound: OnceCell<()>,
    keys: Mutex<KeyFile>,
    /// The secret of capability tokens, once it was wanted.
    tokens: OnceCell<checkpoint::Secret>,
    /// How many entries the newest checkpoint that this process knows of is about, or was to be.
    signed: AtomicU64,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").finish_non_exhaustive()
    }
}

impl Journal {
    /// Opens the journal at `path`, or makes it when it is not there; one that begins beside a key which
    /// signed another one begins stopped, as [`is_stopped`] says of the one that is gone. Nothing is written
    /// to it before its newest entries were found sound: see [`Journal::sound`].
    ///
    /// # Errors
    /// When it cannot be opened or written, or is newer than this program.
    pub async fn open(
        path: &Path,
        redactor: Redactor,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Mint), JournalError> {
        Self::start(JournalFile::open(path)?, redactor, clock).await
    }

    /// The same of a file that is open.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub async fn start(
        file: JournalFile,
        redactor: Redactor,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Mint), JournalError> {
        #[cfg(feature = "controls")]
        let redactor = match bailey_protocol::broken::broken("redactor") {
            true => Redactor::new(&bailey_secrets::Vault::default()),
            false => redactor,
        };
        let store = Store::start(file.database)?;
        let seal = Seal(u128::from_ne_bytes(chain::random()?));
        let journal = Self {
            inner: Arc::new(Inner {
                store,
                redactor,
                clock,
                seal,
                newest: AtomicU64::default(),
                sound: OnceCell::new(),
                keys: Mutex::new(file.keys),
                tokens: OnceCell::new(),
                signed: AtomicU64::default(),
            }),
        };
        journal.begin_chain().await?;
        let mint = Mint::new(journal.clone());
        Ok((journal, mint))
    }

    async fn begin_chain(&self) -> Result<(), JournalError> {
        let look = |tx: &Tx<'_>| Ok((chain::last(tx)?, begin::state(tx, project::STALE)?.is_some()));
        let (newest, is_stale) = self.store().glance(look).await?;
        self.saw(newest);
        if is_stale {
            return self.renew().await;
        }
        if newest > 0 {
            return Ok(());
        }
        // Beside a key that signed another one: that is gone, and nobody can tell that it was not stopped.
        let is_after_another = self.state().await?.is_some_and(|state| state.newest.is_some());
        let (redactor, now) = self.pen();
        let newest = self
            .store()
            .write(Grade::Full, move |tx| {
                // Another process may have been faster.
                if chain::head(tx)?.0 == 0 {
                    let nonce = u128::from_ne_bytes(chain::random()?);
                    let program = format!("bailey {}", env!("CARGO_PKG_VERSION"));
                    let fact = Fact::Genesis { program, nonce: format!("{nonce:032x}") };
                    let entry = Entry { session: None, effect: None, fact, payload: None };
                    chain::append(tx, &redactor, now, &entry)?;
                    if is_after_another {
                        stop::stop(tx, &redactor, now, stop::AFTER_ANOTHER.into())?;
                    }
                }
                chain::last(tx)
            })
            .await?;
        self.saw(newest);
        Ok(())
    }

    /// Makes the projections of an older program's journal anew. One that is damaged stays as it is, to be
    /// read, and to be named by [`Journal::verify`].
    async fn renew(&self) -> Result<(), JournalError> {
        match self.rebuild().await {
            Err(JournalError::Broken(_) | JournalError::Store(StoreError::Corrupt { .. })) => Ok(()),
            renewed => renewed.map(drop),
        }
    }

    /// Verifies the newest entries, and that what was signed last is still there, once for each journal that
    /// was opened. Every write waits for it; whoever has other things to do first begins it early.
    ///
    /// # Errors
    /// [`JournalError::Broken`] when they do not fit together; then nothing can be written.
    pub async fn sound(&self) -> Result<(), JournalError> {
        let verify = async || {
            self.verify_tail(VERIFIED_AT_START).await?;
            self.holds_what_was_signed().await
        };
        self.inner.sound.get_or_try_init(verify).await.copied()
    }

    /// The position of the newest entry that this process has written or seen; another process may have
    /// written more.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.inner.newest.load(Ordering::Relaxed)
    }

    pub(crate) fn saw(&self, seq: u64) {
        self.inner.newest.fetch_max(seq, Ordering::Relaxed);
    }

    /// Writes in one transaction, once the newest entries were found sound; signs where many were written
    /// since.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        grade: Grade,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let value = self.write_only(grade, work).await?;
        self.sign_if_due().await;
        Ok(value)
    }

    async fn write_only<T: Send + 'static>(
        &self,
        grade: Grade,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, JournalError> {
        self.sound().await?;
        let work = move |tx: &mut Tx<'_>| Ok((work(tx)?, chain::last(tx)?));
        let (value, newest) = self.store().write(grade, work).await?;
        self.saw(newest);
        Ok(value)
    }

    /// What an executor needs to redeem this journal's permits.
    #[must_use]
    pub fn seal(&self) -> Seal {
        self.inner.seal
    }

    /// The clock that entries are dated by.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        &*self.inner.clock
    }

    /// The redactor that everything written passes.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.inner.redactor
    }

    /// An effect as the journal keeps it: without secrets, and of a model call without the body.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn shown(&self, effect: &Effect) -> Result<serde_json::Value, JournalError> {
        let clean = Clean { value: &begin::effect_json(effect)?, redactor: self.redactor() };
        serde_json::to_value(clean).map_err(|error| JournalError::Json(error.to_string()))
    }

    pub(crate) fn store(&self) -> &Store {
        &self.inner.store
    }
}

/// An approval that may be used up by `Mint::begin`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub(crate) approval: ApprovalId,
    /// The files that the action named when it was approved.
    pub(crate) named: Option<Digest>,
    /// What the command is, where a yes for a pattern is to cover it.
    pub(crate) wider: Option<Box<Wider>>,
}

/// Why an effect may begin.
#[derive(Debug)]
pub enum Warrant {
    /// The rules allow it.
    Allowed(Allowed),
    /// The rules ask for a human, and one said yes.
    Approved(Review, Grant),
}

impl Warrant {
    fn digests(&self) -> (Digest, Digest) {
        match self {
            Self::Allowed(verdict) => (verdict.effect_digest(), verdict.policy_digest()),
            Self::Approved(verdict, _) => (verdict.effect_digest(), verdict.policy_digest()),
        }
    }

    fn grant(&self) -> Option<&Grant> {
        match self {
            Self::Allowed(_) => None,
            Self::Approved(_, grant) => Some(grant),
        }
    }

    /// What the files must be that the action names, where a human was asked about them.
    fn named(&self) -> Option<Digest> {
        self.grant().and_then(|grant| grant.named)
    }

    fn isolation(&self) -> &Isolation {
        match self {
            Self::Allowed(verdict) => verdict.isolation(),
            Self::Approved(verdict, _) => verdict.isolation(),
        }
    }
}

/// Why an effect could not begin.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// The owner stopped everything.
    #[error(
        "everything in this home has been stopped since {since}; nothing begins until you run \
         `bailey estop --release`"
    )]
    Stopped {
        /// When, RFC 3339.
        since: String,
    },
    /// The policy changed since the verdict: decide again.
    #[error("the policy changed since this was decided")]
    Stale,
    /// The verdict is about another effect.
    #[error("the verdict is about another effect")]
    OtherEffect,
    /// The grant was used already, is void, or was given for something else.
    #[error("the approval was used already, is void, or was given for something else")]
    Burnt,
    /// The token that it was asked under is over, or its operations are used up.
    #[error("its capability token has ended, or its operations are used up")]
    Spent,
    /// The session is not in the journal.
    #[error("there is no session {0}")]
    NoSession(SessionId),
    /// A budget does not suffice.
    #[error("{0}")]
    Budget(Exceeded),
    /// There is a budget in money, and nobody knows what this costs.
    #[error(
        "{} has a budget in {currency}, and what this model costs in {currency} is not known: put its price into models.toml \
         (0 for a model of your own), or take the budget away",
        span.whose()
    )]
    NoPrice {
        /// Whose budget.
        span: BudgetScope,
        /// Its currency.
        currency: String,
    },
    /// It could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// What to do about an error of the system's, where that is plain.
fn way_out(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::StorageFull => "; free some space and try again",
        std::io::ErrorKind::ReadOnlyFilesystem => {
            "; mount the home's file system for writing, or name another home with --home DIR"
        }
        _ => "",
    }
}

impl From<StoreError> for BeginError {
    fn from(error: StoreError) -> Self {
        Self::Journal(error.into())
    }
}

/// Why the journal could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// SQLite, or the disk below it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The chain does not hold.
    #[error("{}; {}", .0, .0.advice())]
    Broken(#[from] Broken),
    /// The tables beside the chain say something else than it does.
    #[error(
        "the chain holds, and the journal keeps something else beside it: {0}. Somebody or something changed the file past Bailey; \
         `bailey audit rebuild` makes these tables anew from the chain"
    )]
    Beside(String),
    /// There is nothing to salvage.
    #[error("`{}` is whole as far as Bailey can know, so there is nothing to recover", .0.display())]
    Whole(PathBuf),
    /// Nothing can be salvaged.
    #[error(
        "no page of `{}` holds the first entry of a journal, and no copy does: name a copy (--copy DIR), restore one \
         (`bailey restore DIR`), or move it away to start a new one", .0.display()
    )]
    NothingLeft(PathBuf),
    /// A token that cannot be minted.
    #[error("the token: {0}")]
    Token(#[from] BadToken),
    /// A permit of another journal.
    #[error("the permit was made by another journal")]
    ForeignPermit,
    /// The question is not open any more.
    #[error("the question {0} is settled already, or was never asked in this session")]
    Settled(ApprovalId),
    /// The session asks as much as it may.
    #[error("{QUESTIONS_MAX} questions of this session wait for an answer, which is the limit")]
    NoRoom,
    /// The answer is none that this question takes.
    #[error("{1} (question {0})")]
    NoAnswer(ApprovalId, NoAnswer),
    /// The question ran out, which is a no.
    #[error("the question {0} ran out of time before it was answered, which counts as a no")]
    RanOut(ApprovalId),
    /// There is nothing to ask once more.
    #[error("the question {0} has not run out of time; only such a question can be asked again")]
    NotRunOut(ApprovalId),
    /// It was asked once more before, and that was answered.
    #[error(
        "the question {0} was asked again before, as {1}, and {1} was answered, so it cannot be asked again"
    )]
    AskedAgain(ApprovalId, ApprovalId),
    /// No question by that name.
    #[error("no question is named `{0}`; `bailey approvals list` shows them")]
    NoSuchQuestion(String),
    /// Too little of a question's name to grant anything by it.
    #[error(
        "`{0}` is too short to name a question: at least 8 digits, as `bailey approvals list` shows them"
    )]
    ShortQuestion(String),
    /// Several questions whose names begin so.
    #[error(
        "several questions begin with `{0}`: name one by all of its digits, as `bailey --json approvals list` shows them"
    )]
    SeveralQuestions(String),
    /// There is no yes for this very effect.
    #[error("the question {0} was not answered with yes for this effect")]
    NotGranted(ApprovalId),
    /// Another process runs the session.
    #[error(
        "session {session} is in use by {}: wait for its end, end it, or work in another session (`bailey \
         run`, `bailey sessions fork`)",
        .holder.as_ref().map_or_else(|| "another process".to_owned(), ToString::to_string)
    )]
    Held {
        /// The session.
        session: SessionId,
        /// Who has it; none while that process is just starting.
        holder: Option<Box<Holder>>,
    },
    /// No session by that name.
    #[error("no session is named `{0}`; `bailey sessions list` shows them")]
    NoSuchSession(String),
    /// Fewer digits than name a session.
    #[error(
        "`{0}` is too short to name a session: give four digits or more; `bailey sessions list` shows them"
    )]
    ShortSession(String),
    /// Several sessions by that name.
    #[error("`{name}` fits several sessions: {sessions}; name one by more of its digits")]
    SeveralSessions {
        /// The name.
        name: String,
        /// The sessions, as they are shown.
        sessions: String,
    },
    /// The project's path, which the journal would have to hold, has a secret in it.
    #[error(
        "the project's path `{0}` holds a secret, which would be written to the journal: rename the directory"
    )]
    SecretInPath(String),
    /// A session cannot be forked there.
    #[error(
        "session {session} has no entry {at} to fork at; `bailey audit log --session {session}` shows its entries"
    )]
    NoEntry {
        /// The session.
        session: SessionId,
        /// What was asked for.
        at: u64,
    },
    /// There is no such entry.
    #[error("the journal has no entry {0}; `bailey audit log` shows the newest")]
    Absent(u64),
    /// What was asked for is in an archive.
    #[error("{what} is in the archive `{archive}`, and can be neither shown nor continued; {how}")]
    Archived {
        /// A session or an entry.
        what: String,
        /// The archive's name.
        archive: String,
        /// What can be done.
        how: &'static str,
    },
    /// Archives that are not as they were written; the chain itself holds.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Archives(Vec<Damage>),
    /// The journal names an archive as none is called, so that nothing is read or removed there.
    #[error(
        "the journal names an archive `{0}`, and no archive is called so: somebody else wrote that into it; restore the journal from a backup"
    )]
    NotAnArchive(String),
    /// An archive cannot be made.
    #[error("the archive `{name}` cannot be made: {why}")]
    NoArchive {
        /// Its name.
        name: String,
        /// Why.
        why: String,
    },
    /// There is no such checkpoint, or nothing came after it.
    #[error(
        "the journal has no checkpoint {0} that it has gone on from; `bailey audit key` says how many there are"
    )]
    NoCheckpoint(u64),
    /// A key of somebody else's journal.
    #[error("`{0}` is no key of this journal's line; `bailey audit key` shows its first and its newest")]
    OtherLine(checkpoint::PublicKey),
    /// The task that signs did not come to its end.
    #[error("the journal was not signed: {0}")]
    Unsigned(String),
    /// A value could not be written as JSON.
    #[error("cannot be written as JSON: {0}")]
    Json(String),
    /// A file of the home.
    #[error("{}: {source}{}", path.display(), way_out(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
}

impl JournalError {
    /// Whether all that is wrong is that the disk has no room.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Store(StoreError::Full { .. }))
    }
}
