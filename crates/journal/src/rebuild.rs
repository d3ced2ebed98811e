//! Rebuilding the projections from the chain, and saying where they were not what it says.

use crate::{
    Broken, Fact, Journal, JournalError, Recorded, budget, chain, finish,
    permit::Receipt,
    project::{self, TABLES},
    retain,
    schema::MIGRATIONS,
    totals::{self, Sent},
};
use bailey_protocol::{Action, ApprovalId, Cost, Effect, EffectId, Kind, Merge, Outcome, SessionId};
use bailey_secrets::Redactor;
use bailey_store::{Grade, OptionalExtension as _, StoreError, Tx, in_memory, params, types::Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Entries read at a time.
const PAGE: u64 = 500;

/// What a rebuild found.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Rebuilt {
    /// Entries that were read.
    pub entries: u64,
    /// Rows of each projection now.
    pub rows: BTreeMap<String, u64>,
    /// Rows of each projection that were missing, too many, or other than the chain says; none where all was
    /// well.
    pub repaired: BTreeMap<String, u64>,
}

impl Journal {
    /// Verifies the whole chain, then makes every projection anew from it, in one transaction. Other
    /// processes wait meanwhile.
    ///
    /// # Errors
    /// [`JournalError::Broken`] when the chain does not hold; then nothing is changed.
    pub async fn rebuild(&self) -> Result<Rebuilt, JournalError> {
        self.verify_chain().await?;
        let redactor = self.redactor().clone();
        self.write(Grade::Full, move |tx| {
            for table in TABLES {
                tx.execute_batch(&format!(
                    "DROP TABLE IF EXISTS temp.old_{table};
                     CREATE TEMP TABLE old_{table} AS SELECT * FROM main.{table}; DELETE FROM main.{table};"
                ))?;
            }
            let entries = replay(tx, redactor)?;
            let (mut rows, mut repaired) = (BTreeMap::new(), BTreeMap::new());
            for table in TABLES {
                let count = |sql: String| tx.query_row(&sql, params![], |row| row.get::<_, u64>(0));
                rows.insert((*table).to_owned(), count(format!("SELECT count(*) FROM main.{table}"))?);
                let less = |one: &str, other: &str| {
                    format!("SELECT count(*) FROM (SELECT * FROM {one} EXCEPT SELECT * FROM {other})")
                };
                let (old, new) = (format!("temp.old_{table}"), format!("main.{table}"));
                let differ = count(less(&old, &new))?.max(count(less(&new, &old))?);
                if differ > 0 {
                    repaired.insert((*table).to_owned(), differ);
                }
                tx.execute_batch(&format!("DROP TABLE temp.old_{table}"))?;
            }
            Ok(Rebuilt { entries, rows, repaired })
        })
        .await
    }
}

impl Journal {
    /// Projects the chain, which holds, in memory, and compares that with the tables beside it. Nothing is
    /// changed, and no other process waits.
    ///
    /// # Errors
    /// [`JournalError::Broken`] when an effect began by a yes that no entry says; [`JournalError::Beside`].
    pub async fn verify_projections(&self) -> Result<(), JournalError> {
        let redactor = self.redactor().clone();
        let looked = self.store().read(move |db| {
            in_memory(MIGRATIONS, |made| {
                let mut replay = Replay::new(redactor, db)?;
                let mut after = 0;
                loop {
                    let page = chain::page(db, after, PAGE)?;
                    let Some(last) = page.last() else { break };
                    after = last.entry.seq.0;
                    for recorded in &page {
                        if let Some(approval) = replay.unanswered(made, recorded)? {
                            return Ok(Err(unanswered(recorded.entry.seq.0, approval)));
                        }
                        replay.project(made, recorded)?;
                    }
                }
                let mut said = Vec::new();
                for table in TABLES {
                    let (held, mut made) = (rows(db, table)?, rows(made, table)?);
                    // A journal of an older program has no such row before its next entry.
                    if !held.values().any(|name| name == project::NEWEST) {
                        made.retain(|_, name| name != project::NEWEST);
                    }
                    said.extend(difference(table, &held, &made));
                }
                Ok(Ok(said))
            })
        });
        let said: Result<Vec<String>, Broken> = looked.await?;
        match said? {
            said if said.is_empty() => Ok(()),
            said => Err(JournalError::Beside(said.join("; "))),
        }
    }
}

fn is_archived(tx: &Tx<'_>) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM entry WHERE type IN ('archived', 'archive_removed') LIMIT 1";
    Ok(tx.query_row(sql, params![], |_| Ok(())).optional()?.is_some())
}

/// An approved intent without its yes.
fn unanswered(seq: u64, approval: ApprovalId) -> Broken {
    let what =
        format!("an effect began by a yes to the question {approval}, and no entry before it says that yes");
    Broken { seq, what }
}

/// Every row of a table, as text that two of them are compared by; its first column names it.
fn rows(tx: &Tx<'_>, table: &str) -> Result<BTreeMap<String, String>, StoreError> {
    let mut statement = tx.prepare_cached(&format!("SELECT * FROM {table}"))?;
    let columns = statement.column_count();
    let rows = statement.query_map(params![], |row| {
        let values = (0..columns).map(|at| row.get::<_, Value>(at)).collect::<Result<Vec<_>, _>>()?;
        let name = match values.first() {
            Some(Value::Text(name)) => name.clone(),
            other => format!("{other:?}"),
        };
        Ok((format!("{values:?}"), name))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A text about a table whose rows are not those that the chain makes.
fn difference(
    table: &str,
    held: &BTreeMap<String, String>,
    made: &BTreeMap<String, String>,
) -> Option<String> {
    let differ = |one: &BTreeMap<String, String>, other: &BTreeMap<String, String>| {
        let names = one.iter().filter(|(row, _)| !other.contains_key(*row)).map(|(_, name)| name.clone());
        names.collect::<BTreeSet<String>>()
    };
    let names: BTreeSet<String> = differ(held, made).union(&differ(made, held)).cloned().collect();
    let first = names.first()?;
    let more = match names.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("in the table `{table}`, `{first}`{more}"))
}

/// Projects every entry in order; gives how many there are.
pub(crate) fn replay(tx: &mut Tx<'_>, redactor: Redactor) -> Result<u64, StoreError> {
    let newest = chain::last(tx)?;
    let mut replay = Replay::new(redactor, tx)?;
    let mut after = 0;
    while after < newest {
        let page = chain::page(tx, after, PAGE)?;
        let Some(last) = page.last() else { break };
        after = last.entry.seq.0;
        for recorded in &page {
            replay.project(tx, recorded)?;
        }
    }
    Ok(newest)
}

struct Replay {
    redactor: Redactor,
    /// The merges without an outcome so far.
    merges: HashMap<EffectId, Merge>,
    /// The data that effects without an outcome so far were counted to send.
    sent: HashMap<EffectId, Sent>,
    /// Whether entries of before are in an archive.
    is_archived: bool,
}

impl Replay {
    fn new(redactor: Redactor, chain: &Tx<'_>) -> Result<Self, StoreError> {
        let is_archived = is_archived(chain)?;
        Ok(Self { redactor, merges: HashMap::new(), sent: HashMap::new(), is_archived })
    }

    /// The question by whose yes an effect began, where the entries projected so far hold
    /// no such yes. A question of a session that has left for an archive is not looked
    /// for, because its entries are in the archive.
    fn unanswered(&self, made: &Tx<'_>, recorded: &Recorded) -> Result<Option<ApprovalId>, StoreError> {
        let Fact::Intent { approval: Some(approval), .. } = &recorded.entry.fact else { return Ok(None) };
        let sql = "SELECT state IN ('yes', 'session', 'pattern') FROM approval WHERE id = ?1";
        let found = made.query_row(sql, params![approval.to_string()], |row| row.get::<_, bool>(0));
        let is_said = match found.optional()? {
            Some(is_said) => is_said,
            None => self.is_archived,
        };
        Ok((!is_said).then_some(*approval))
    }

    fn project(&mut self, tx: &mut Tx<'_>, recorded: &Recorded) -> Result<(), StoreError> {
        let (entry, now) = (&recorded.entry, recorded.entry.time);
        project::dated(tx, now)?;
        if let Fact::PolicyAdopted { policy } = &entry.fact {
            return project::adopted(tx, &policy.to_string());
        }
        match &entry.fact {
            Fact::Stopped => return project::stopped(tx, now),
            Fact::Released => return project::released(tx),
            Fact::Restored | Fact::Salvaged(_) => return project::void(tx),
            Fact::Archived { until, .. } => {
                return project::archived(tx, &retain::sessions(recorded), *until, now);
            }
            Fact::ExtensionFailed { extension, failure } if failure.is_crash() => {
                return project::extension_crashed(tx, extension, now);
            }
            Fact::ExtensionDisabled { extension } => return project::extension_disabled(tx, extension),
            Fact::ExtensionEnabled { extension } => return project::extension_enabled(tx, extension),
            _ => {}
        }
        let Some(id) = entry.session else { return Ok(()) };
        match &entry.fact {
            Fact::SessionOpened { workspace, principal, model }
            | Fact::SessionForked { workspace, principal, model, .. } => {
                project::opened(tx, id, now, workspace, principal, model)
            }
            Fact::Delegated { parent, workspace, model, .. } => {
                project::delegated(tx, id, now, parent, workspace, model, &recorded.text())
            }
            Fact::SessionResumed { model } => project::resumed(tx, id, now, model),
            Fact::SessionRemoved { .. } => project::removed(tx, id),
            Fact::Accepted { turn, .. } => project::accepted(tx, id, *turn, now, &recorded.text()),
            Fact::Revealed { path } => project::revealed(tx, id, &path.0).map(drop),
            Fact::Asked { approval, digest, action, until, call, terms, .. } => {
                let call = call.as_ref().map(|call| call.0.clone());
                let (effect, action, entry, until, terms) =
                    (*digest, *action, entry.seq, *until, terms.clone());
                let asked = project::NewQuestion { effect, action, entry, until, call, terms };
                project::asked(tx, *approval, id, &asked)
            }
            Fact::TokenMinted { token, .. } => project::token_minted(tx, *token, id),
            Fact::TokenEnded { token } => project::token_ended(tx, *token),
            Fact::Denied { under: Some(under), .. } | Fact::Judged { under: Some(under), .. } => {
                project::used(tx, under)
            }
            Fact::Answered { approval, answer, .. } => project::answered(tx, *approval, *answer),
            Fact::Intent { .. } => self.begin(tx, id, recorded),
            Fact::Outcome { used, .. } => self.finish(tx, id, used, recorded),
            Fact::Genesis { .. }
            | Fact::Stopped
            | Fact::Released
            | Fact::Restored
            | Fact::Salvaged(_)
            | Fact::Archived { .. }
            | Fact::ArchiveRemoved { .. }
            | Fact::PolicyAdopted { .. }
            | Fact::ExtensionFailed { .. }
            | Fact::ExtensionDisabled { .. }
            | Fact::ExtensionEnabled { .. }
            | Fact::Denied { .. }
            | Fact::Judged { .. }
            | Fact::Reported { .. }
            | Fact::Observation { .. }
            | Fact::Reply { .. }
            | Fact::Pinned { .. }
            | Fact::Unpinned { .. }
            | Fact::Unsaid { .. }
            | Fact::Guide { .. }
            | Fact::Shortened { .. }
            | Fact::Summary { .. }
            | Fact::Warned { .. }
            | Fact::Reminded {}
            | Fact::Escalated { .. }
            | Fact::TokenNarrowed { .. }
            | Fact::EndAsked { .. }
            | Fact::SigningBegun { .. }
            | Fact::Walls { .. }
            | Fact::Offered { .. }
            | Fact::Agent { .. }
            | Fact::Confined(_)
            | Fact::Image { .. }
            | Fact::TurnEnded { .. } => Ok(()),
        }
    }

    fn begin(&mut self, tx: &mut Tx<'_>, session: SessionId, recorded: &Recorded) -> Result<(), StoreError> {
        let Fact::Intent { kind, target, purpose, call, approval, reserved, sent, under, payer, .. } =
            &recorded.entry.fact
        else {
            return Ok(());
        };
        let Some(id) = recorded.entry.effect else { return Ok(()) };
        if let Some(approval) = approval {
            project::burnt(tx, *approval)?;
        }
        if let Some(under) = under {
            project::used(tx, under)?;
        }
        if let (Kind::Merge, Some(Effect { action: Action::Merge(merge), .. })) = (kind, parse(recorded)) {
            self.merges.insert(id, merge);
        }
        let call = call.as_ref().map(|call| call.0.clone());
        budget::reserved(tx, id, payer.unwrap_or(session), recorded.entry.time, reserved)?;
        let begun = project::NewEffect { id, session, kind: *kind, target, purpose: *purpose, call };
        project::begun(tx, recorded.entry.seq, &begun)?;
        match sent {
            Some(sent) => {
                self.sent.insert(id, sent.clone());
                totals::sent(tx, &self.redactor, session, sent)
            }
            None => Ok(()),
        }
    }

    fn finish(
        &mut self,
        tx: &mut Tx<'_>,
        session: SessionId,
        used: &Cost,
        recorded: &Recorded,
    ) -> Result<(), StoreError> {
        let seq = recorded.entry.seq;
        let Some(effect) = recorded.entry.effect else { return Ok(()) };
        let receipt = Receipt {
            effect,
            session,
            seq,
            merge: self.merges.remove(&effect),
            sent: self.sent.remove(&effect),
        };
        finish::settle(tx, &receipt, seq, used)?;
        match parse::<Outcome>(recorded) {
            Some(outcome) => finish::project(tx, &self.redactor, &receipt, seq, &outcome),
            // It was erased, and so are the rows that followed from it.
            None => Ok(()),
        }
    }
}

fn parse<T: serde::de::DeserializeOwned>(recorded: &Recorded) -> Option<T> {
    serde_json::from_slice(recorded.payload.as_deref()?).ok()
}
