//! Budgets that run low: the model is told while there is something left, so that it can come to an end.

use crate::Hands;
use bailey_kernel::{BudgetScope, Context, Gauge, Refused};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// From these shares of a budget on, in hundredths, the model is told.
const MARKS: [u64; 3] = [70, 85, 95];

/// What the model was told of each budget. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Warned {
    marks: Arc<Mutex<BTreeMap<(BudgetScope, String), u64>>>,
}

impl Warned {
    /// The mark that a budget came over since the last look. One that has room again is told of anew.
    fn passed(&self, gauge: &Gauge) -> Option<u64> {
        let mark = MARKS.into_iter().rev().find(|mark| gauge.percent() >= *mark).unwrap_or(0);
        let key = (gauge.span, gauge.unit.clone());
        let before = self.marks.lock().unwrap_or_else(PoisonError::into_inner).insert(key, mark);
        (mark > before.unwrap_or(0)).then_some(mark)
    }
}

impl Hands {
    /// Tells the model, and the person, of each budget that came over a mark.
    ///
    /// # Errors
    /// When the journal cannot be read or written.
    pub async fn warn(&self, context: &mut Context) -> Result<(), Refused> {
        for gauge in self.kernel.gauges(&self.scope).await? {
            if self.warned.passed(&gauge).is_some() {
                context.push(self.kernel.warn(&self.scope, &gauge, &text(&gauge)).await?);
            }
        }
        Ok(())
    }
}

fn text(gauge: &Gauge) -> String {
    let (percent, whose) = (gauge.percent(), gauge.span.whose());
    let [taken, limit] = [gauge.taken, gauge.limit].map(|amount| gauge.amount(amount));
    let advice = match percent {
        95.. => "Finish now: say what is done and what is left.",
        85.. => "Come to an end: do what matters most, and leave the rest.",
        _ => "Be sparing with it.",
    };
    format!("{percent} % of the budget of {whose} is used up: {taken} of {limit}. {advice}")
}

#[cfg(test)]
mod tests {
    use super::Warned;
    use bailey_kernel::{BudgetScope, Gauge};

    #[test]
    fn each_mark_is_told_once_until_there_is_room_again() {
        let warned = Warned::default();
        let at = |taken| {
            warned.passed(&Gauge { span: BudgetScope::Turn, unit: "tokens".into(), taken, limit: 1_000 })
        };
        let seen: Vec<_> = [0, 699, 700, 849, 850, 949, 999, 1_000, 100, 700, 2_000].map(at).into();
        let none = None;
        assert_eq!(
            seen,
            [none, none, Some(70), none, Some(85), none, Some(95), none, none, Some(70), Some(95)]
        );
    }
}
