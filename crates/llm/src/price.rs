//! What a call cost.

use bailey_protocol::{Money, Usage};

/// What tokens of a model cost, in billionths of the currency for a million tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// The currency's code (ISO 4217).
    pub currency: String,
    /// It holds for calls that read more tokens than this.
    pub above_tokens: u64,
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from a cache.
    pub cache_read: u64,
    /// Tokens written to a cache.
    pub cache_write: u64,
}

/// What this usage costs, rounded up once; none where no price is known or nothing was counted.
pub(crate) fn cost(prices: &[Price], usage: &Usage) -> Option<Money> {
    if *usage == Usage::default() {
        return None;
    }
    let holds = |price: &&Price| price.above_tokens == 0 || usage.input_tokens > price.above_tokens;
    let price = prices.iter().filter(holds).max_by_key(|price| price.above_tokens)?;
    let cached = usage.cache_read_tokens.saturating_add(usage.cache_write_tokens);
    let parts = [
        (usage.input_tokens.saturating_sub(cached), price.input),
        (usage.cache_read_tokens, price.cache_read),
        (usage.cache_write_tokens, price.cache_write),
        (usage.output_tokens, price.output),
    ];
    let sum = parts.iter().fold(0_u128, |sum, (tokens, each)| {
        sum.saturating_add(u128::from(*tokens).saturating_mul((*each).into()))
    });
    let nanos = u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX);
    Some(Money { nanos, currency: price.currency.clone() })
}

#[cfg(test)]
mod tests {
    use super::{Price, cost};
    use bailey_protocol::Usage;

    fn price(above_tokens: u64, input: u64) -> Price {
        Price {
            currency: "USD".into(),
            above_tokens,
            input,
            output: 15_000_000_000,
            cache_read: 300_000_000,
            cache_write: 3_750_000_000,
        }
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
        let usage = Usage {
            input_tokens: 1_000,
            output_tokens: 100,
            cache_read_tokens: 600,
            cache_write_tokens: 200,
        };
        let money = cost(&[price(0, 3_000_000_000)], &usage).unwrap();
        // 200 × 3 + 600 × 0.30 + 200 × 3.75 + 100 × 15 dollars a million.
        assert_eq!((money.nanos, money.to_string()), (3_030_000, "0.0031 USD".into()));
    }

    #[test]
    fn a_long_prompt_has_another_price() {
        let prices = [price(200_000, 6_000_000_000), price(0, 3_000_000_000)];
        let read = |input_tokens| cost(&prices, &Usage { input_tokens, ..Usage::default() }).unwrap().nanos;
        assert_eq!((read(200_000), read(200_001)), (600_000_000, 1_200_006_000));
    }

    #[test]
    fn what_is_unknown_is_not_nothing() {
        let usage = Usage { input_tokens: 1, ..Usage::default() };
        assert_eq!(cost(&[], &usage), None);
        assert_eq!(cost(&[price(0, 1)], &Usage::default()), None);
        assert_eq!(cost(&[price(0, 1)], &usage).unwrap().to_string(), "0.0001 USD");
        let all = Usage { input_tokens: u64::MAX, output_tokens: u64::MAX, ..Usage::default() };
        assert_eq!(cost(&[price(0, u64::MAX)], &all).unwrap().nanos, u64::MAX);
    }
}
