//! Permits for whoever performs effects, tested without a kernel.

use crate::clock::FakeClock;
use bailey_journal::{
    Budgets, Circumstances, Journal, Mint, NewSession, OWNER, Permit, Purpose, Seal, Warrant,
};
use bailey_policy::{Facts, Places, Policy, Verdict, file};
use bailey_protocol::{Action, Cost, Effect, EffectId, Isolation, Labels, Role, Sealed, SessionId};
use bailey_secrets::{Redactor, Vault};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tempfile::TempDir;

/// A journal of its own, under a rule that allows everything.
#[derive(Debug)]
pub struct Permits {
    journal: Journal,
    mint: Mint,
    policy: Policy,
    session: SessionId,
    made: AtomicU64,
    _home: TempDir,
}

impl Permits {
    /// In a new folder.
    ///
    /// # Panics
    /// When it cannot be made.
    pub async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let redactor = Redactor::new(&Vault::default());
        let clock = Arc::new(FakeClock::default());
        let (journal, mint) = Journal::open(&home.path().join("journal.db"), redactor, clock).await.unwrap();
        let rule = "[[rule]]\nname = \"all\"\nanswer = \"allow\"\nmatch = {}\n";
        let rules = file::parse("test.toml", rule, file::Format::Toml).unwrap().rules;
        let policy = Policy::new(Vec::new(), rules);
        mint.adopt(policy.digest()).await.unwrap();
        let session = SessionId::new(1, [1; 10]);
        let new = NewSession {
            agent: None,
            confined: None,
            workspace: "/w".into(),
            principal: OWNER.into(),
            model: "test/model".into(),
        };
        journal.open_session(session, new).await.unwrap();
        Self { journal, mint, policy, session, made: AtomicU64::new(0), _home: home }
    }

    /// Whose permits these are.
    #[must_use]
    pub fn seal(&self) -> Seal {
        self.journal.seal()
    }

    /// A permit for an action of the owner's behind these walls. Its outcome is written by nobody.
    ///
    /// # Panics
    /// When it cannot begin.
    pub async fn of(&self, action: Action, walls: &Isolation) -> Permit {
        let effect = Effect {
            id: EffectId::new(self.made.fetch_add(1, Ordering::Relaxed), [7; 10]),
            session: self.session,
            parent: None,
            call: None,
            role: Role::Owner,
            action,
            labels: Labels::default(),
            cost: Cost::default(),
        };
        let sealed = Sealed::new(effect).unwrap();
        let places = Places {
            workspace: "/w".into(),
            user_home: "/h".into(),
            bailey_home: "/h/.bailey".into(),
            programs: Vec::new(),
            project: None,
        };
        let facts = Facts { walls: Some(walls), ..Facts::new(&sealed, self.journal.clock().now(), &places) };
        let Verdict::Allow(allowed) = self.policy.decide(&facts).verdict else { unreachable!() };
        let why = Circumstances { purpose: Purpose::Own, payer: None, reasons: Vec::new(), uses: None };
        let begun = self.mint.begin(sealed, Warrant::Allowed(allowed), why, &Budgets::default()).await;
        begun.unwrap().0
    }
}
