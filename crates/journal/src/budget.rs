//! Budgets: what may be used up in one call, in a turn, in a session and its sub-agents, by one of these, in
//! a day. Reserved in the transaction of the intent on every account that pays, settled in that of the
//! outcome.
//!
//! An *account* is a row for each unit, tokens or a currency: `session:ID`, `turn:ID` (the present turn of a
//! session) and `day:DATE` (UTC, all sessions of the home). A session that another one opened pays from its
//! own part, and from all accounts of the one above.

use crate::{BeginError, Journal, JournalError, totals};
use bailey_protocol::{Cost, EffectId, Money, SessionId, Timestamp};
use bailey_store::{OptionalExtension as _, StoreError, Tx, params};
use serde::Serialize;
use std::fmt;

/// The unit of tokens; any other is a currency's code.
const TOKENS: &str = "tokens";
/// Sessions that open sessions: more of them above each other than this do not begin anything.
const DEPTH_MAX: usize = 8;

/// The most that may be used up; what is none has no limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bound {
    /// Tokens of models, in and out together.
    pub tokens: Option<u64>,
    /// Money. Where this is some, a model whose price is not known in this currency is not asked.
    pub money: Option<Money>,
}

impl Bound {
    /// So many tokens.
    #[must_use]
    pub fn tokens(tokens: u64) -> Self {
        Self { tokens: Some(tokens), money: None }
    }
}

/// What may be used up, by how far it reaches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Budgets {
    /// By one model call.
    pub call: Bound,
    /// By one turn.
    pub turn: Bound,
    /// By one session, with those that it opened.
    pub session: Bound,
    /// By one task that a session gave to a sub-agent.
    pub task: Bound,
    /// By all sessions of the home, between two midnights (UTC).
    pub day: Bound,
    /// Hits of known secrets in the results of one session, with those that it opened, until results with a
    /// hit are withheld.
    pub secret_hits: Option<usize>,
}

/// How far a budget reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    /// One model call.
    Call,
    /// One turn.
    Turn,
    /// One session, with those that it opened.
    Session,
    /// The part of its parent's budget that a session was opened with.
    Part,
    /// One task of a sub-agent.
    Task,
    /// All sessions of the home in a day.
    Day,
}

impl BudgetScope {
    /// Whose budget it is, in words.
    #[must_use]
    pub fn whose(self) -> &'static str {
        match self {
            Self::Call => "one model call",
            Self::Turn => "the turn",
            Self::Session => "the session",
            Self::Part => "the sub-agent's part",
            Self::Task => "the sub-agent's task",
            Self::Day => "the day",
        }
    }

    /// The name that its limits begin with in the configuration; a part has none there.
    fn key(self) -> Option<&'static str> {
        match self {
            Self::Call => Some("call"),
            Self::Turn => Some("turn"),
            Self::Session => Some("session"),
            Self::Part => None,
            Self::Task => Some("task"),
            Self::Day => Some("day"),
        }
    }
}

/// How far a budget is used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gauge {
    /// How far it reaches.
    pub span: BudgetScope,
    /// `tokens`, or the code of a currency: then the numbers are billionths of its unit.
    pub unit: String,
    /// Used and reserved.
    pub taken: u64,
    /// The limit.
    pub limit: u64,
}

impl Gauge {
    /// How much of it is taken, in hundredths.
    #[must_use]
    pub fn percent(&self) -> u64 {
        let share = u128::from(self.taken) * 100 / u128::from(self.limit.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    }

    /// Whether it counts tokens, and no money.
    #[must_use]
    pub fn is_of_tokens(&self) -> bool {
        self.unit == TOKENS
    }

    /// An amount of its unit, for people.
    #[must_use]
    pub fn amount(&self, amount: u64) -> String {
        match self.unit.as_str() {
            TOKENS => format!("{amount} tokens"),
            currency => Money { nanos: amount, currency: currency.into() }.to_string(),
        }
    }

    /// Where the limit is set; none for a sub-agent's part.
    #[must_use]
    pub fn setting(&self) -> Option<String> {
        let unit = if self.unit == TOKENS { TOKENS } else { "money" };
        self.span.key().map(|key| format!("limits.{key}_{unit}"))
    }
}

/// A budget that does not suffice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exceeded {
    /// The budget as it stands.
    pub gauge: Gauge,
    /// What is needed more.
    pub wanted: u64,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { gauge, wanted } = self;
        let [taken, wanted, limit] = [gauge.taken, *wanted, gauge.limit].map(|amount| gauge.amount(amount));
        let whose = gauge.span.whose();
        match (gauge.span, gauge.setting()) {
            // It can never begin, whatever is taken so far.
            (span, Some(setting)) if span != BudgetScope::Call && self.wanted > gauge.limit => {
                let is_own = span == BudgetScope::Session && gauge.is_of_tokens();
                let own = if is_own { " (or the session's `--tokens`)" } else { "" };
                write!(
                    f,
                    "the budget of {whose} is {limit}, and one call of the model may need {wanted}, with what is \
                     reserved for its reply; raise `{setting}`{own} to at least that"
                )
            }
            (BudgetScope::Call, Some(setting)) => {
                write!(
                    f,
                    "{whose} may take {limit}, and this one may need {wanted}; raise `{setting}` (`bailey config show` says \
                     where it is set)"
                )
            }
            (span, Some(setting)) => {
                // What a session was begun with is its own, and no setting.
                let own = span == BudgetScope::Session && gauge.is_of_tokens();
                let own = if own { "; a session's own `--tokens` stays" } else { "" };
                write!(
                    f,
                    "the budget of {whose} is used up: {taken} taken, {wanted} more needed, {limit} \
                     allowed; to continue, raise `{setting}` (`bailey config show` says where it is \
                     set{own})"
                )
            }
            (_, None) => write!(
                f,
                "{whose} of the budget is used up: {taken} taken, {wanted} more needed, {limit} given"
            ),
        }
    }
}

/// Who pays, and the limits that each call meets there.
struct Account {
    name: String,
    bounds: Vec<(BudgetScope, Bound)>,
}

impl Account {
    /// Each limit: how far it reaches, its unit, and how much it is.
    fn limits(&self) -> impl Iterator<Item = (BudgetScope, String, u64)> {
        self.bounds.iter().flat_map(|(span, bound)| limits(bound).map(|(unit, limit)| (*span, unit, limit)))
    }
}

/// Reserves what an effect may use up on every account that pays for it, or says which does not suffice.
pub(crate) fn reserve(
    tx: &mut Tx<'_>,
    effect: EffectId,
    session: SessionId,
    now: Timestamp,
    cost: &Cost,
    budgets: &Budgets,
) -> Result<Result<(), BeginError>, StoreError> {
    let Some(accounts) = accounts(tx, session, now, budgets)? else {
        return Ok(Err(BeginError::NoSession(session)));
    };
    if cost.tokens == 0 {
        return Ok(Ok(()));
    }
    let call = Account { name: String::new(), bounds: vec![(BudgetScope::Call, budgets.call.clone())] };
    for account in std::iter::once(&call).chain(&accounts) {
        for (span, unit, limit) in account.limits() {
            let Some(wanted) = amount(cost, &unit) else {
                return Ok(Err(BeginError::NoPrice { span, currency: unit }));
            };
            #[cfg(feature = "controls")]
            let limit = if bailey_protocol::broken::broken("budget") { u64::MAX } else { limit };
            let taken = if span == BudgetScope::Call { 0 } else { taken(tx, &account.name, &unit)? };
            if taken.saturating_add(wanted) > limit {
                let gauge = Gauge { span, unit, taken, limit };
                return Ok(Err(BeginError::Budget(Exceeded { gauge, wanted })));
            }
        }
    }
    write(tx, effect, accounts.iter().map(|account| account.name.as_str()), cost)?;
    Ok(Ok(()))
}

/// Reserves again what an intent of the chain says that it reserved.
pub(crate) fn reserved(
    tx: &mut Tx<'_>,
    effect: EffectId,
    session: SessionId,
    then: Timestamp,
    cost: &Cost,
) -> Result<(), StoreError> {
    if cost.tokens == 0 {
        return Ok(());
    }
    let accounts = accounts(tx, session, then, &Budgets::default())?.unwrap_or_default();
    write(tx, effect, accounts.iter().map(|account| account.name.as_str()), cost)
}

fn write<'a>(
    tx: &mut Tx<'_>,
    effect: EffectId,
    accounts: impl Iterator<Item = &'a str>,
    cost: &Cost,
) -> Result<(), StoreError> {
    for account in accounts {
        for (unit, amount) in units(cost) {
            tx.execute(
                "INSERT INTO reserved (effect, account, unit, amount) VALUES (?1, ?2, ?3, ?4)",
                params![effect.to_string(), account, unit, amount],
            )?;
        }
    }
    Ok(())
}

/// What was reserved is free again, and what was used is taken, on the same accounts.
pub(crate) fn settle(tx: &mut Tx<'_>, effect: EffectId, used: &Cost) -> Result<(), StoreError> {
    let effect = effect.to_string();
    let mut accounts = Vec::new();
    {
        let mut statement = tx.prepare_cached("SELECT DISTINCT account FROM reserved WHERE effect = ?1")?;
        let rows = statement.query_map(params![effect], |row| row.get::<_, String>(0))?;
        for row in rows {
            accounts.push(row?);
        }
    }
    tx.execute("DELETE FROM reserved WHERE effect = ?1", params![effect])?;
    for account in &accounts {
        for (unit, amount) in units(used).filter(|(_, amount)| *amount > 0) {
            tx.execute(
                "INSERT INTO spent (account, unit, used) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET used = min(used, 9223372036854775807 - excluded.used) + excluded.used",
                params![account, unit, amount],
            )?;
        }
    }
    Ok(())
}

/// A turn begins with nothing used; what is still reserved by the one before is reserved in this one.
pub(crate) fn turn(tx: &mut Tx<'_>, session: SessionId) -> Result<(), StoreError> {
    tx.execute("DELETE FROM spent WHERE account = ?1", params![turn_of(&session.to_string())])?;
    Ok(())
}

/// A session that is gone has no accounts. What it used counts for its day all the same.
pub(crate) fn removed(tx: &mut Tx<'_>, session: SessionId) -> Result<(), StoreError> {
    let id = session.to_string();
    for account in [session_of(&id), turn_of(&id), totals::sent_of(session)] {
        tx.execute("DELETE FROM spent WHERE account = ?1", params![account])?;
        tx.execute("DELETE FROM reserved WHERE account = ?1", params![account])?;
    }
    Ok(())
}

/// Nobody asks for the sums of days that are over; of these, those up to one go.
pub(crate) fn forget_days(tx: &mut Tx<'_>, until: Timestamp, now: Timestamp) -> Result<(), StoreError> {
    tx.execute(
        "DELETE FROM spent WHERE account >= 'day:' AND account <= ?1 AND account < ?2",
        params![day_of(until), day_of(now)],
    )?;
    Ok(())
}

impl Journal {
    /// How far the budgets that a session draws on are used up, the fullest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn gauges(&self, session: SessionId, budgets: Budgets) -> Result<Vec<Gauge>, JournalError> {
        let now = self.clock().now();
        let gauges = self
            .store()
            .glance(move |db| {
                let mut gauges = Vec::new();
                for account in accounts(db, session, now, &budgets)?.unwrap_or_default() {
                    for (span, unit, limit) in account.limits() {
                        let taken = taken(db, &account.name, &unit)?;
                        gauges.push(Gauge { span, unit, taken, limit });
                    }
                }
                Ok(gauges)
            })
            .await?;
        Ok(sorted(gauges))
    }

    /// What all sessions of the home used and reserved today (UTC): each unit with its sum, tokens first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn today(&self) -> Result<Vec<(String, u64)>, JournalError> {
        let account = day_of(self.clock().now());
        Ok(self
            .store()
            .read(move |db| {
                let mut statement = db.prepare_cached(
                    "SELECT unit FROM spent WHERE account = ?1 UNION SELECT unit FROM reserved WHERE account = ?1
                     ORDER BY unit DESC",
                )?;
                let rows = statement.query_map(params![account], |row| row.get::<_, String>(0))?;
                let units = rows.collect::<Result<Vec<_>, _>>()?;
                units.into_iter().map(|unit| Ok((unit.clone(), taken(db, &account, &unit)?))).collect()
            })
            .await?)
    }

    /// The use of each of these sessions so far, with its sub-agents, in their order: each unit with its sum,
    /// tokens first. Money is in billionths; calls of unknown price add none.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn spent(&self, sessions: Vec<SessionId>) -> Result<Vec<Vec<(String, u64)>>, JournalError> {
        let look = move |db: &Tx<'_>| {
            let mut statement =
                db.prepare_cached("SELECT unit, used FROM spent WHERE account = ?1 ORDER BY unit DESC")?;
            let mut all = Vec::new();
            for session in sessions {
                let account = session_of(&session.to_string());
                let rows = statement.query_map(params![account], |row| Ok((row.get(0)?, row.get(1)?)))?;
                all.push(rows.collect::<Result<Vec<_>, _>>()?);
            }
            Ok(all)
        };
        Ok(self.store().read(look).await?)
    }
}

fn sorted(mut gauges: Vec<Gauge>) -> Vec<Gauge> {
    gauges.sort_by_key(|gauge| std::cmp::Reverse(gauge.percent()));
    gauges
}

/// Who pays for what a session does: it, its turn, those above it with theirs, and the day. None where a
/// session is not there.
fn accounts(
    db: &Tx<'_>,
    session: SessionId,
    now: Timestamp,
    budgets: &Budgets,
) -> Result<Option<Vec<Account>>, StoreError> {
    let mut accounts = Vec::new();
    let mut next = Some(session.to_string());
    while let Some(id) = next {
        let row = db
            .query_row("SELECT parent, part FROM session WHERE id = ?1", params![id], |row| {
                Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<u64>>(1)?))
            })
            .optional()?;
        let Some((parent, part)) = row else { return Ok(None) };
        if accounts.len() > 2 * DEPTH_MAX {
            return Ok(None);
        }
        let (session, turn) = match &parent {
            Some(_) => {
                let part = (BudgetScope::Part, Bound { tokens: part, money: None });
                (vec![part, (BudgetScope::Task, budgets.task.clone())], Vec::new())
            }
            None => {
                let turn = (BudgetScope::Turn, budgets.turn.clone());
                (vec![(BudgetScope::Session, budgets.session.clone())], vec![turn])
            }
        };
        accounts.push(Account { name: session_of(&id), bounds: session });
        accounts.push(Account { name: turn_of(&id), bounds: turn });
        next = parent;
    }
    accounts.push(Account { name: day_of(now), bounds: vec![(BudgetScope::Day, budgets.day.clone())] });
    Ok(Some(accounts))
}

fn taken(db: &Tx<'_>, account: &str, unit: &str) -> Result<u64, StoreError> {
    // Added here: SQLite's sums do not saturate, and a provider may say that it counted anything.
    let (used, reserved) = db.query_row(
        "SELECT coalesce((SELECT used FROM spent WHERE account = ?1 AND unit = ?2), 0),
         coalesce((SELECT sum(amount) FROM reserved WHERE account = ?1 AND unit = ?2), 0)",
        params![account, unit],
        |row| Ok((row.get::<_, u64>(0)?, row.get::<_, u64>(1)?)),
    )?;
    Ok(used.saturating_add(reserved))
}

fn limits(bound: &Bound) -> impl Iterator<Item = (String, u64)> {
    let money = bound.money.clone().map(|money| (money.currency, money.nanos));
    bound.tokens.map(|tokens| (TOKENS.to_owned(), tokens)).into_iter().chain(money)
}

fn amount(cost: &Cost, unit: &str) -> Option<u64> {
    units(cost).find(|(known, _)| *known == unit).map(|(_, amount)| amount)
}

/// SQLite's numbers have a sign: what is too large for that is over every limit as well.
fn units(cost: &Cost) -> impl Iterator<Item = (&str, u64)> {
    let money = cost.money.as_ref().map(|money| (money.currency.as_str(), money.nanos));
    std::iter::once((TOKENS, cost.tokens))
        .chain(money)
        .map(|(unit, amount)| (unit, amount.min(i64::MAX as u64)))
}

fn session_of(id: &str) -> String {
    format!("session:{id}")
}

fn turn_of(id: &str) -> String {
    format!("turn:{id}")
}

fn day_of(now: Timestamp) -> String {
    let text = now.to_string();
    format!("day:{}", text.get(..10).unwrap_or(&text))
}
