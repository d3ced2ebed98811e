//! The tokens and the money that were spent, in one line.

use bailey_protocol::{Money, Usage};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// Tokens and money of some model calls.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Spent {
    usage: Usage,
    nanos: BTreeMap<String, u64>,
    calls: usize,
    /// How many calls have an unknown price.
    unpriced: usize,
}

impl Spent {
    /// Adds one call.
    pub fn add(&mut self, usage: &Usage, cost: Option<&Money>) {
        let sum = |total: &mut u64, more: u64| *total = total.saturating_add(more);
        sum(&mut self.usage.input_tokens, usage.input_tokens);
        sum(&mut self.usage.output_tokens, usage.output_tokens);
        sum(&mut self.usage.cache_read_tokens, usage.cache_read_tokens);
        sum(&mut self.usage.cache_write_tokens, usage.cache_write_tokens);
        self.calls += 1;
        match cost {
            Some(Money { nanos, currency }) => sum(self.nanos.entry(currency.clone()).or_default(), *nanos),
            None => self.unpriced += 1,
        }
    }

    /// The money alone; `None` when nothing has a known price.
    pub(crate) fn money(&self) -> Option<String> {
        let money = |(currency, nanos): (&String, &u64)| {
            Money { nanos: *nanos, currency: currency.clone() }.to_string()
        };
        let all: Vec<String> = self.nanos.iter().map(money).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Usage { input_tokens, output_tokens, cache_read_tokens, .. } = self.usage;
        write!(f, "{input_tokens} tokens read")?;
        if cache_read_tokens > 0 {
            write!(f, " ({cache_read_tokens} from a cache)")?;
        }
        write!(f, ", {output_tokens} written")?;
        for (currency, nanos) in &self.nanos {
            write!(f, ", {}", Money { nanos: *nanos, currency: currency.clone() })?;
        }
        match (self.unpriced, self.calls) {
            (0, _) => Ok(()),
            (unpriced, calls) if unpriced == calls => f.write_str(", price unknown"),
            (1, _) => f.write_str(", and 1 call of unknown price"),
            (unpriced, _) => write!(f, ", and {unpriced} calls of unknown price"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Spent;
    use bailey_protocol::{Money, Usage};

    #[test]
    fn what_is_unknown_is_said() {
        let usage =
            Usage { input_tokens: 100, output_tokens: 7, cache_read_tokens: 60, cache_write_tokens: 0 };
        let cost = Money { nanos: 1_234_567, currency: "USD".into() };
        let mut spent = Spent::default();
        spent.add(&usage, None);
        assert_eq!(spent.to_string(), "100 tokens read (60 from a cache), 7 written, price unknown");
        spent.add(&Usage::default(), Some(&cost));
        let text = "100 tokens read (60 from a cache), 7 written, 0.0013 USD, and 1 call of unknown price";
        assert_eq!(spent.to_string(), text);
        let mut known = Spent::default();
        known.add(&Usage { input_tokens: 1, ..Usage::default() }, Some(&cost));
        assert_eq!(known.to_string(), "1 tokens read, 0 written, 0.0013 USD");
    }
}
