//! What tokens cost: to reserve money for a model call, and to settle it.

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
pub fn price(prices: &[Price], usage: &Usage) -> Option<Money> {
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

/// The most that a call can cost which reads so many tokens and writes so many; none where no price is known.
#[must_use]
pub(crate) fn most(prices: &[Price], reads: u64, writes: u64) -> Option<Money> {
    let read = Usage { input_tokens: reads, output_tokens: writes, ..Usage::default() };
    // A provider may put all that it reads into its cache, which can cost more than reading.
    let kept = Usage { cache_write_tokens: reads, ..read };
    [read, kept].iter().filter_map(|usage| price(prices, usage)).max_by_key(|money| money.nanos)
}

#[cfg(test)]
mod tests {
    use super::{Price, most, price};
    use bailey_protocol::Usage;

    fn at(above_tokens: u64, input: u64) -> Price {
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
        let money = price(&[at(0, 3_000_000_000)], &usage).unwrap();
        // 200 × 3 + 600 × 0.30 + 200 × 3.75 + 100 × 15 dollars a million.
        assert_eq!((money.nanos, money.to_string()), (3_030_000, "0.0031 USD".into()));
    }

    #[test]
    fn a_long_prompt_has_another_price() {
        let prices = [at(200_000, 6_000_000_000), at(0, 3_000_000_000)];
        let read = |input_tokens| price(&prices, &Usage { input_tokens, ..Usage::default() }).unwrap().nanos;
        assert_eq!((read(200_000), read(200_001)), (600_000_000, 1_200_006_000));
    }

    #[test]
    fn what_is_unknown_is_not_nothing() {
        let usage = Usage { input_tokens: 1, ..Usage::default() };
        assert_eq!(price(&[], &usage), None);
        assert_eq!(price(&[at(0, 1)], &Usage::default()), None);
        assert_eq!(price(&[at(0, 1)], &usage).unwrap().to_string(), "0.0001 USD");
        let all = Usage { input_tokens: u64::MAX, output_tokens: u64::MAX, ..Usage::default() };
        assert_eq!(price(&[at(0, u64::MAX)], &all).unwrap().nanos, u64::MAX);
    }

    #[test]
    fn the_most_is_never_less_than_what_it_comes_to() {
        let prices = [at(200_000, 6_000_000_000), at(0, 3_000_000_000)];
        for (input_tokens, output_tokens) in [(1, 0), (1_000, 100), (200_000, 1), (200_001, 16_384)] {
            for share in 0..=4 {
                let cache_write_tokens = input_tokens * share / 4;
                let usage = Usage { input_tokens, output_tokens, cache_write_tokens, ..Usage::default() };
                let real = price(&prices, &usage).unwrap().nanos;
                assert!(real <= most(&prices, input_tokens, output_tokens).unwrap().nanos, "{usage:?}");
            }
        }
        assert_eq!(most(&[], 1_000, 1_000), None);
    }
}
