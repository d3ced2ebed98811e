//! A journal in a temporary folder, a policy in force, and effects to begin.

use bailey_journal::{
    Asker, BeginError, Bound, Budgets, Circumstances, Grant, Journal, Mint, NewSession, Parent, Permit,
    Purpose, Receipt, Terms, Warrant,
};
use bailey_policy::{Allowed, Facts, Places, Policy, Review, Verdict, file};
use bailey_protocol::{
    Action, CallId, Command, Cost, Effect, EffectId, HttpRequest, Labels, Limits, Merge, MergeFile,
    MergeKind, Outcome, Report, Role, Sealed, SessionId, Status, TokenId, WsPath,
};
use bailey_secrets::Redactor;
use bailey_store::{Grade, Migration, Store, Tx, params};
use bailey_testkit::FakeClock;
use std::{
    collections::BTreeMap,
    os::unix::fs::FileExt as _,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tempfile::TempDir;

pub(crate) const RULES: &str = r#"
[[rule]]
name = "all"
answer = "allow"
reason = "a test"
match = { action = ["read", "exec", "http", "model", "change", "merge"] }

[[rule]]
name = "deploy"
answer = "review"
reason = "a test asks"
match = { command = ["deploy", "wc"] }
"#;

pub(crate) struct Desk {
    pub(crate) journal: Journal,
    pub(crate) mint: Mint,
    pub(crate) policy: Policy,
    pub(crate) clock: Arc<FakeClock>,
    pub(crate) home: TempDir,
}

/// How long a page of the file is, in bytes.
pub(crate) const PAGE: usize = 4096;

/// How long questions last here.
pub(crate) const LASTS: std::time::Duration = std::time::Duration::from_secs(300);

/// Numbers effects and sessions.
static NEXT: AtomicU64 = AtomicU64::new(1);

fn random() -> [u8; 10] {
    let mut bytes = [0; 10];
    bytes[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::SeqCst).to_be_bytes());
    bytes
}

fn wide() -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..10].copy_from_slice(&random());
    bytes
}

/// An opened journal with a policy in force, without secrets.
pub(crate) async fn desk() -> Desk {
    desk_with(Redactor::new(&bailey_secrets::Vault::default())).await
}

pub(crate) async fn desk_with(redactor: Redactor) -> Desk {
    let home = tempfile::tempdir().unwrap();
    let clock = Arc::new(FakeClock::default());
    let path = home.path().join("journal.db");
    let (journal, mint) = Journal::open(&path, redactor, clock.clone()).await.unwrap();
    let policy = policy(RULES);
    mint.adopt(policy.digest()).await.unwrap();
    Desk { journal, mint, policy, clock, home }
}

pub(crate) fn policy(rules: &str) -> Policy {
    let rules = file::parse("test.toml", rules, file::Format::Toml).unwrap().rules;
    Policy::new(Vec::new(), rules)
}

pub(crate) fn stricter() -> Policy {
    policy(&RULES.replace("\"exec\", ", ""))
}

impl Desk {
    pub(crate) fn path(&self) -> PathBuf {
        self.home.path().join("journal.db")
    }

    /// A second handle, as another process would have one.
    pub(crate) async fn second(&self) -> (Journal, Mint) {
        let redactor = Redactor::new(&bailey_secrets::Vault::default());
        Journal::open(&self.path(), redactor, self.clock.clone()).await.unwrap()
    }

    pub(crate) async fn session(&self) -> SessionId {
        let id = SessionId::new(1_767_000_000_000, random());
        let new = NewSession {
            agent: None,
            confined: None,
            workspace: "/w".into(),
            principal: "owner".into(),
            model: "p/m".into(),
        };
        self.journal.open_session(id, new).await.unwrap();
        id
    }

    /// A sub-agent's session, with so many tokens of the budget of the one that opened it.
    pub(crate) async fn child(&self, session: SessionId, part: u64) -> SessionId {
        let id = SessionId::new(1_767_000_000_000, random());
        let parent = Parent { session, part };
        let (token, model, task) = (TokenId::new(wide()), "p/m".into(), "a task".into());
        self.journal.delegate_session(id, parent, token, model, task, Labels::default()).await.unwrap();
        id
    }

    pub(crate) fn decide(&self, sealed: &Sealed) -> Verdict {
        decide(&self.policy, sealed)
    }

    pub(crate) fn allowed(&self, sealed: &Sealed) -> Allowed {
        match self.decide(sealed) {
            Verdict::Allow(allowed) => allowed,
            other => panic!("not allowed: {other:?}"),
        }
    }

    pub(crate) fn review(&self, sealed: &Sealed) -> Review {
        match self.decide(sealed) {
            Verdict::Review(review) => review,
            other => panic!("no review: {other:?}"),
        }
    }

    pub(crate) async fn begin(&self, sealed: Sealed, limit: u64) -> Result<(Permit, Receipt), BeginError> {
        let warrant = Warrant::Allowed(self.allowed(&sealed));
        self.mint.begin(sealed, warrant, why(), &bounded(limit)).await
    }

    pub(crate) async fn begin_approved(
        &self,
        sealed: Sealed,
        grant: Grant,
    ) -> Result<(Permit, Receipt), BeginError> {
        let warrant = Warrant::Approved(self.review(&sealed), grant);
        self.mint.begin(sealed, warrant, why(), &bounded(0)).await
    }

    /// Begins and finishes an effect with this report.
    pub(crate) async fn run(&self, session: SessionId, action: Action, report: Report) {
        let (_permit, receipt) = self.begin(effect(session, action), 0).await.unwrap();
        self.mint.finish(receipt, &done(report), Cost::default(), Vec::new()).await.unwrap();
    }

    /// Writes to the file past the journal, as somebody with an SQLite shell would.
    pub(crate) async fn tamper(&self, change: impl Fn(&mut Tx<'_>) -> usize + Send + 'static) {
        let raw = self.raw();
        let rows = raw.write(Grade::Full, move |tx| Ok(change(tx))).await.unwrap();
        assert!(rows > 0, "nothing was changed");
    }

    pub(crate) fn raw(&self) -> Store {
        Store::open(&self.path(), &[Migration { version: bailey_journal::SCHEMA_VERSION, sql: "" }]).unwrap()
    }

    /// The page that a table or an index begins with.
    pub(crate) async fn root(&self, name: &'static str) -> u64 {
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
        let read = move |tx: &Tx<'_>| Ok(tx.query_row(sql, params![name], |row| row.get(0))?);
        self.raw().read(read).await.unwrap()
    }

    /// Lets go of the journal, all of which is in its file then.
    pub(crate) fn close(self) -> Closed {
        let raw = self.raw();
        let Self { journal, mint, policy, clock, home } = self;
        drop((journal, mint));
        // Where a reader goes last, it leaves the log.
        drop(raw);
        assert!(!home.path().join("journal.db-wal").exists(), "somebody has it open");
        Closed { policy, clock, home }
    }
}

/// A journal that nobody has open.
pub(crate) struct Closed {
    pub(crate) policy: Policy,
    pub(crate) clock: Arc<FakeClock>,
    pub(crate) home: TempDir,
}

impl Closed {
    pub(crate) fn path(&self) -> PathBuf {
        self.home.path().join("journal.db")
    }

    /// Writes zeros over a page.
    pub(crate) fn tear(&self, page: u64) {
        let file = std::fs::OpenOptions::new().write(true).open(self.path()).unwrap();
        file.write_all_at(&[0; PAGE], (page - 1) * PAGE as u64).unwrap();
    }

    pub(crate) async fn open(self) -> Desk {
        let Self { policy, clock, home } = self;
        let redactor = Redactor::new(&bailey_secrets::Vault::default());
        let path = home.path().join("journal.db");
        let (journal, mint) = Journal::open(&path, redactor, clock.clone()).await.unwrap();
        Desk { journal, mint, policy, clock, home }
    }
}

pub(crate) fn decide(policy: &Policy, sealed: &Sealed) -> Verdict {
    let places = Places { workspace: "/w".into(), ..Places::default() };
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    policy.decide(&Facts::new(sealed, now, &places)).verdict
}

pub(crate) fn why() -> Circumstances {
    paid_by(None)
}

pub(crate) fn effect(session: SessionId, action: Action) -> Sealed {
    costing(session, action, 0)
}

pub(crate) fn costing(session: SessionId, action: Action, tokens: u64) -> Sealed {
    priced(session, action, Cost::tokens(tokens))
}

pub(crate) fn priced(session: SessionId, action: Action, cost: Cost) -> Sealed {
    let effect = Effect {
        id: EffectId::new(1_767_000_000_000, random()),
        session,
        parent: None,
        call: Some(CallId("call-1".into())),
        role: Role::Agent,
        action,
        labels: Labels::default(),
        cost,
    };
    Sealed::new(effect).unwrap()
}

pub(crate) fn command(line: &str) -> Action {
    Action::Exec(Command {
        argv: line.split(' ').map(str::to_owned).collect(),
        cwd: "/w".into(),
        env: BTreeMap::new(),
        stdin: None,
        network: false,
        background: false,
        limits: Limits::default(),
    })
}

/// A model call that sends so many bytes as its body.
pub(crate) fn model(url: &str, bytes: usize) -> Action {
    let request = HttpRequest {
        method: "POST".into(),
        url: url.into(),
        headers: Vec::new(),
        body: "x".repeat(bytes).as_str().into(),
    };
    Action::Model { provider: "p".into(), model: "m".into(), request }
}

pub(crate) fn merge(direction: MergeKind, of: Option<EffectId>, files: Vec<MergeFile>) -> Action {
    Action::Merge(Merge::of_files(direction, of, files))
}

pub(crate) fn read(path: &str) -> Action {
    Action::Read { path: WsPath::from(path) }
}

pub(crate) fn done(report: Report) -> Outcome {
    Outcome { status: Status::Done, enforced: None, duration_ms: 1, report }
}

/// Who holds a lock that a test takes.
pub(crate) fn holder() -> bailey_journal::Holder {
    let since = "2026-01-02T03:04:05Z".parse().unwrap();
    bailey_journal::Holder { pid: std::process::id(), since, command: "bailey run 'a test'".into() }
}

/// The schema version in the header of an SQLite file that nobody has open: 32 bits, big-endian, from byte 60
/// on.
pub(crate) fn schema_of(path: &std::path::Path) -> u32 {
    let bytes = std::fs::read(path).unwrap();
    u32::from_be_bytes(bytes[60..64].try_into().unwrap())
}

/// The terms of a question of the session's own agent, within the standard walls.
pub(crate) fn terms() -> Terms {
    let asker = Asker { role: Role::Agent, conversation: None, token: None };
    Terms { asker: Some(asker), calls: Some("standard".into()), ..Terms::default() }
}

/// The circumstances of an effect that another session pays for.
pub(crate) fn paid_by(payer: Option<SessionId>) -> Circumstances {
    Circumstances { purpose: Purpose::Act, payer, reasons: vec!["a test".into()], uses: None }
}

/// A session may use so many tokens, and nothing else has a limit.
pub(crate) fn bounded(tokens: u64) -> Budgets {
    Budgets { session: Bound::tokens(tokens), ..Budgets::default() }
}
