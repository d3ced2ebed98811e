//! The present state as numbers: with names of OpenTelemetry, and in the text format of Prometheus
//! (exposition format 0.0.4), whose names are made from those names as a collector makes them. Figures hold
//! no user content, no path and no session.

use super::Word;
use bailey_protocol::Timestamp;
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, fmt::Write as _};

/// All figures, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// The time since when counters count.
    pub since: Timestamp,
    /// When they were read.
    pub time: Timestamp,
    /// The figures.
    pub all: Vec<Figure>,
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figure {
    pub(super) name: Cow<'static, str>,
    pub(super) about: Cow<'static, str>,
    pub(super) kind: Kind,
    pub(super) unit: Unit,
    pub(super) points: Vec<Point>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// The present value.
    Gauge,
    /// The total so far; it never becomes less.
    Counter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unit {
    One,
    Bytes,
}

/// A number, and the label that tells it apart from others of the same figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) label: Option<(Cow<'static, str>, Word)>,
    pub(super) value: u64,
}

impl Figure {
    /// A figure that rises and falls.
    pub fn gauge(name: &'static str, about: &'static str) -> Self {
        let (kind, unit) = (Kind::Gauge, Unit::One);
        Self { name: name.into(), about: about.into(), kind, unit, points: Vec::new() }
    }

    /// A figure that only rises.
    pub fn counter(name: &'static str, about: &'static str) -> Self {
        Self { kind: Kind::Counter, ..Self::gauge(name, about) }
    }

    /// The same, in bytes.
    pub fn bytes(self) -> Self {
        Self { unit: Unit::Bytes, ..self }
    }

    /// The figure is this one number.
    pub fn of(mut self, value: u64) -> Self {
        self.points.push(Point { label: None, value });
        self
    }

    /// The figure has several numbers, and this is one of them.
    pub fn with(mut self, key: &'static str, name: &str, value: u64) -> Self {
        self.points.push(Point { label: Some((key.into(), Word::of(name))), value });
        self
    }

    fn exposed_name(&self) -> String {
        let unit = if self.unit == Unit::Bytes { "_bytes" } else { "" };
        let kind = if self.kind == Kind::Counter { "_total" } else { "" };
        format!("{}{unit}{kind}", self.name.replace('.', "_"))
    }
}

impl Figures {
    /// The page that Prometheus reads.
    pub fn exposition(&self) -> String {
        let mut page = String::new();
        for figure in self.all.iter().filter(|figure| !figure.points.is_empty()) {
            let name = figure.exposed_name();
            let kind = if figure.kind == Kind::Counter { "counter" } else { "gauge" };
            // Writing to a string does not fail.
            writeln!(page, "# HELP {name} {}\n# TYPE {name} {kind}", figure.about).ok();
            for Point { label, value } in &figure.points {
                match label {
                    Some((key, word)) => writeln!(page, "{name}{{{key}=\"{}\"}} {value}", word.as_str()).ok(),
                    None => writeln!(page, "{name} {value}").ok(),
                };
            }
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::{Figure, Figures};
    use bailey_protocol::Timestamp;

    #[test]
    fn prometheus_reads_what_a_collector_would_make_of_it() {
        let turns = Figure::counter("bailey.made_room", "Ends.").with("state", "resting", 3);
        let all = vec![
            Figure::gauge("bailey.questions", "Waiting.").of(0),
            turns.with("state", "two\nlines", 1),
            Figure::gauge("bailey.memory.used", "Taken.").bytes().of(7),
            Figure::gauge("bailey.channel.up", "None is set up."),
        ];
        let figures = Figures { since: Timestamp::UNIX_EPOCH, time: Timestamp::UNIX_EPOCH, all };
        let expected = "\
# HELP bailey_questions Waiting.
# TYPE bailey_questions gauge
bailey_questions 0
# HELP bailey_made_room_total Ends.
# TYPE bailey_made_room_total counter
bailey_made_room_total{state=\"resting\"} 3
bailey_made_room_total{state=\"_OTHER\"} 1
# HELP bailey_memory_used_bytes Taken.
# TYPE bailey_memory_used_bytes gauge
bailey_memory_used_bytes 7
";
        assert_eq!(figures.exposition(), expected);
    }
}
