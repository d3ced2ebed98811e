//! Random numbers that come again from the same seed (splitmix64).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A source of numbers.
#[derive(Debug, Clone)]
pub(super) struct Dice {
    seed: u64,
    state: u64,
}

impl Dice {
    /// From this seed, or from the clock's.
    pub(super) fn new(seed: Option<u64>) -> Self {
        let now =
            || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| u64::from(now.subsec_nanos()));
        let seed = seed.unwrap_or_else(now);
        Self { seed, state: seed }
    }

    /// What makes the same numbers come again.
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A moment within a span; of another span, the moment that corresponds.
    pub(super) fn within(&mut self, span: Duration) -> Duration {
        const PARTS: u32 = 1 << 16;
        let part = u32::try_from(self.next() >> 48).unwrap_or(0);
        span * part / PARTS
    }
}
