//! `bailey budget`: what was used up today, and what may be used up.

use crate::{
    config::Config,
    home::Home,
    print::{Printer, Style},
};
use anyhow::Result;
use bailey_kernel::{Bound, BudgetScope, Gauge};
use serde_json::json;
use std::process::ExitCode;

pub(super) async fn run(home: &Home, session: Option<&str>, printer: &Printer) -> Result<ExitCode> {
    if let Some(session) = session {
        return of_session(home, session, printer).await;
    }
    let budgets = Config::load(home)?.budgets;
    let spent = super::journal(home, printer).await?.today().await?;
    let spans =
        [BudgetScope::Call, BudgetScope::Turn, BudgetScope::Session, BudgetScope::Task, BudgetScope::Day];
    let bounds = [&budgets.call, &budgets.turn, &budgets.session, &budgets.task, &budgets.day];
    if printer.is_json() {
        let limits: Vec<_> = spans
            .into_iter()
            .zip(bounds)
            .flat_map(|(span, bound)| gauges(span, bound))
            .map(|gauge| json!({ "span": gauge.span, "unit": gauge.unit, "limit": gauge.limit.to_string() }))
            .collect();
        printer.json(&json!({ "today": units(&spent), "limits": limits }));
        return Ok(ExitCode::SUCCESS);
    }
    printer.line(printer.paint(Style::Bold, "used up since midnight (UTC)"));
    if spent.is_empty() {
        printer.line("  nothing");
    }
    for (unit, taken) in spent {
        let limit = gauges(BudgetScope::Day, &budgets.day).find(|gauge| gauge.unit == unit);
        let of_limit = |limit: Gauge| {
            let gauge = Gauge { taken, ..limit };
            format!(" of {}, {} %", gauge.amount(gauge.limit), gauge.percent())
        };
        let gauge = Gauge { span: BudgetScope::Day, unit, taken, limit: taken };
        printer.line(format!("  {}{}", gauge.amount(taken), limit.map(of_limit).unwrap_or_default()));
    }
    printer.line("");
    printer.line(printer.paint(Style::Bold, "limits"));
    for (span, bound) in spans.into_iter().zip(bounds) {
        let limits: Vec<_> = gauges(span, bound).map(|gauge| gauge.amount(gauge.limit)).collect();
        let limits = if limits.is_empty() { "no limit".to_owned() } else { limits.join(", ") };
        printer.line(format!("  by {:<20} {limits}", span.whose()));
    }
    printer.line("");
    printer
        .line(printer.paint(Style::Dim, "`bailey config edit` changes the limits ([limits] in config.toml)"));
    Ok(ExitCode::SUCCESS)
}

/// The use of one session, in all of its processes.
async fn of_session(home: &Home, name: &str, printer: &Printer) -> Result<ExitCode> {
    let journal = super::journal(home, printer).await?;
    let session = journal.session(name).await?;
    let spent = journal.spent(vec![session.id]).await?.into_iter().flatten().collect::<Vec<_>>();
    if printer.is_json() {
        printer.json(&json!({ "session": session.id, "spent": units(&spent) }));
        return Ok(ExitCode::SUCCESS);
    }
    if spent.is_empty() {
        printer.line("nothing");
    }
    for (unit, taken) in spent {
        let gauge = Gauge { span: BudgetScope::Session, unit, taken, limit: taken };
        printer.line(gauge.amount(taken));
    }
    Ok(ExitCode::SUCCESS)
}

/// Each unit with its sum, for scripts: money in billionths, numbers as text.
pub(super) fn units(spent: &[(String, u64)]) -> Vec<serde_json::Value> {
    spent.iter().map(|(unit, used)| json!({ "unit": unit, "used": used.to_string() })).collect()
}

/// The limits of a bound, with nothing taken.
fn gauges(span: BudgetScope, bound: &Bound) -> impl Iterator<Item = Gauge> {
    let money = bound.money.clone().map(|money| (money.currency, money.nanos));
    let units = bound.tokens.map(|tokens| ("tokens".to_owned(), tokens)).into_iter().chain(money);
    units.map(move |(unit, limit)| Gauge { span, unit, taken: 0, limit })
}
