//! The sums of all model calls: histograms by the conventions, made of the spans that a collector is told.
//!
//! Histograms are cumulative: a request reports the count since their beginning, and not since the last
//! request. So a request that is sent again, or never arrives, changes no sum. A sender that was killed goes
//! on from its note, which holds the sums together with the point up to which they were told. With
//! differences, a kill would leave it unknown whether the last request was counted. Prometheus also expects
//! cumulative values.

use super::{Span, Word};
use bailey_protocol::Timestamp;
use serde::{Deserialize, Serialize};

/// The most series that are counted separately. The owner chooses a model's name, and a script may make many
/// names.
const SERIES_MAX: usize = 256;

/// The definition of one measurement.
#[derive(Debug, PartialEq)]
pub(super) struct Instrument {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) unit: &'static str,
    /// The conventions' buckets: up to each of these bounds, and one for all above.
    pub(super) bounds: &'static [u64],
    /// How many counted values make one unit.
    pub(super) scale: u64,
}

const TOKENS: Instrument = Instrument {
    name: "gen_ai.client.token.usage",
    about: "Tokens that a call of a model took.",
    unit: "{token}",
    bounds: &[1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864],
    scale: 1,
};

const DURATION: Instrument = Instrument {
    name: "gen_ai.client.operation.duration",
    about: "How long a call of a model took.",
    unit: "s",
    bounds: &[
        10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 640_000, 1_280_000, 2_560_000, 5_120_000,
        10_240_000, 20_480_000, 40_960_000, 81_920_000,
    ],
    scale: 1_000_000,
};

/// All counts so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// The time of the first counted entry.
    pub(super) since: Option<Timestamp>,
    series: Vec<Series>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Series {
    pub(super) of: Of,
    /// The counts; one more than there are bounds.
    pub(super) buckets: Vec<u64>,
    pub(super) sum: u64,
}

/// The key of a series. The model name that a server reports is not part of it: each name would make another
/// series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Of {
    pub(super) what: Measured,
    pub(super) provider: Word,
    pub(super) model: Word,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Measured {
    InputTokens,
    OutputTokens,
    /// How long the call took, and why it failed.
    Duration(Option<Word>),
}

impl Measured {
    fn instrument(&self) -> &'static Instrument {
        match self {
            Self::InputTokens | Self::OutputTokens => &TOKENS,
            Self::Duration(_) => &DURATION,
        }
    }
}

impl Totals {
    /// Counting begins at this time, unless it began before.
    pub(crate) fn begin(&mut self, time: Timestamp) {
        self.since.get_or_insert(time);
    }

    /// Counts a span, if it is a call of a model.
    pub(crate) fn add(&mut self, span: &Span) {
        let words = ["gen_ai.provider.name", "gen_ai.request.model"].map(|key| span.word(key));
        let ("chat", [Some(provider), Some(model)]) = (span.name, words) else { return };
        let took = span.ended.as_microsecond().saturating_sub(span.begun.as_microsecond());
        let took = Some(u64::try_from(took).unwrap_or(0));
        let error = span.word(super::ERROR).cloned();
        for (what, value) in [
            // A failed call reports no tokens, and must not count as a call with zero tokens.
            (Measured::InputTokens, span.count("gen_ai.usage.input_tokens")),
            (Measured::OutputTokens, span.count("gen_ai.usage.output_tokens")),
            (Measured::Duration(error), took),
        ] {
            let of = Of { what, provider: provider.clone(), model: model.clone() };
            value.into_iter().for_each(|value| self.put(of.clone(), value));
        }
    }

    fn put(&mut self, of: Of, value: u64) {
        let is_known = self.series.iter().any(|series| series.of == of);
        let of = if is_known || self.series.len() < SERIES_MAX {
            of
        } else {
            Of { provider: Word::of(""), model: Word::of(""), ..of }
        };
        let bounds = of.what.instrument().bounds;
        if !self.series.iter().any(|series| series.of == of) {
            self.series.push(Series { of: of.clone(), buckets: vec![0; bounds.len() + 1], sum: 0 });
        }
        let at = bounds.partition_point(|bound| *bound < value);
        for series in self.series.iter_mut().filter(|series| series.of == of) {
            series.sum = series.sum.saturating_add(value);
            series.buckets.get_mut(at).into_iter().for_each(|bucket| *bucket += 1);
        }
    }

    /// The series of each instrument.
    pub(super) fn histograms(&self) -> impl Iterator<Item = (&'static Instrument, Vec<&Series>)> {
        [&TOKENS, &DURATION].into_iter().map(|instrument| {
            let is_of = |series: &&Series| series.of.what.instrument() == instrument;
            (instrument, self.series.iter().filter(is_of).collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Measured, SERIES_MAX, Totals};
    use crate::{Span, SpanId, TraceId};
    use bailey_protocol::{SessionId, Timestamp};

    fn chat(model: &str, ms: i64, tokens: Option<u64>) -> Span {
        let session = SessionId::new(0, [1; 10]);
        let mut attributes =
            vec![("gen_ai.provider.name", "test".into()), ("gen_ai.request.model", model.into())];
        match tokens {
            Some(tokens) => attributes.extend([
                ("gen_ai.usage.input_tokens", tokens.into()),
                ("gen_ai.usage.output_tokens", 3.into()),
                ("gen_ai.response.model", "whatever-it-says".into()),
            ]),
            None => attributes.push(("error.type", "failed".into())),
        }
        Span {
            trace: TraceId::of(session, 1),
            id: SpanId::of(session, 1, 0),
            parent: None,
            session,
            name: "chat",
            about: None,
            is_client: true,
            begun: Timestamp::UNIX_EPOCH,
            ended: Timestamp::from_millisecond(ms).unwrap(),
            attributes,
        }
    }

    #[test]
    fn a_bucket_holds_what_is_up_to_its_bound() {
        let mut totals = Totals::default();
        for (ms, tokens) in [(10, Some(1)), (11, Some(2)), (100_000, Some(70_000_000)), (640, None)] {
            totals.add(&chat("m", ms, tokens));
        }
        totals.add(&Span { name: "invoke_agent", ..chat("m", 5, Some(9)) });
        let of = |what| totals.series.iter().find(|series| series.of.what == what).unwrap();
        let filled = |what| -> Vec<(usize, u64)> {
            of(what).buckets.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect()
        };
        assert_eq!(filled(Measured::InputTokens), [(0, 1), (1, 1), (14, 1)]);
        assert_eq!((filled(Measured::OutputTokens), of(Measured::OutputTokens).sum), (vec![(1, 3)], 9));
        assert_eq!(filled(Measured::Duration(None)), [(0, 1), (1, 1), (14, 1)]);
        // A failed call took time, but reported no tokens.
        assert_eq!(filled(Measured::Duration(Some("failed".into()))), [(6, 1)]);
        assert_eq!(totals.series.len(), 4, "{totals:#?}");
        let noted = serde_json::to_string(&totals).unwrap();
        assert_eq!(serde_json::from_str::<Totals>(&noted).unwrap(), totals);
    }

    #[test]
    fn many_names_are_not_many_series() {
        let mut totals = Totals::default();
        (0..1000).for_each(|number| totals.add(&chat(&format!("m{number}"), 10, Some(1))));
        assert!(totals.series.len() <= SERIES_MAX + 3, "{}", totals.series.len());
        let sum = |of: fn(&Measured) -> bool| -> u64 {
            totals.series.iter().filter(|series| of(&series.of.what)).map(|series| series.sum).sum()
        };
        assert_eq!(sum(|of| *of == Measured::InputTokens), 1000, "and none is lost");
    }
}
