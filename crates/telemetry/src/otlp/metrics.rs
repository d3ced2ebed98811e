//! Figures as OTLP/JSON: `ExportMetricsServiceRequest`.
//!
//! The 64-bit numbers of points are written as numbers. The JSON of protobuf accepts both numbers and text,
//! but collectors in Rust that use its official messages silently lose a histogram whose counts are text.

use super::{Resource, SCHEMA, Scope, attributes, nanoseconds};
use crate::{
    Figures, Totals, Value,
    figure::{Figure, Kind, Point, Unit},
    totals::{Instrument, Measured, Of, Series},
};
use bailey_protocol::Timestamp;
use serde::Serialize;

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u8 = 2;

/// The message to a collector.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metrics<'a> {
    resource_metrics: [ResourceMetrics<'a>; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceMetrics<'a> {
    resource: &'a Resource,
    scope_metrics: [ScopeMetrics<'a>; 1],
    schema_url: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ScopeMetrics<'a> {
    scope: Scope,
    metrics: Vec<Metric<'a>>,
    schema_url: &'static str,
}

#[derive(Debug, Serialize)]
struct Metric<'a> {
    name: &'a str,
    description: &'a str,
    unit: &'a str,
    #[serde(flatten)]
    data: Data<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Data<'a> {
    Gauge { data_points: Vec<Number<'a>> },
    Sum { data_points: Vec<Number<'a>>, aggregation_temporality: u8, is_monotonic: bool },
    Histogram { data_points: Vec<Counted>, aggregation_temporality: u8 },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Number<'a> {
    #[serde(serialize_with = "attributes")]
    attributes: Vec<(&'a str, Value)>,
    #[serde(serialize_with = "nanoseconds")]
    start_time_unix_nano: Timestamp,
    #[serde(serialize_with = "nanoseconds")]
    time_unix_nano: Timestamp,
    as_int: i64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Counted {
    #[serde(serialize_with = "attributes")]
    attributes: Vec<(&'static str, Value)>,
    #[serde(serialize_with = "nanoseconds")]
    start_time_unix_nano: Timestamp,
    #[serde(serialize_with = "nanoseconds")]
    time_unix_nano: Timestamp,
    count: u64,
    sum: f64,
    bucket_counts: Vec<u64>,
    explicit_bounds: Vec<f64>,
    /// Always empty. The same collectors lose a histogram without this field.
    exemplars: [(); 0],
    flags: u32,
}

impl<'a> Metrics<'a> {
    /// All present values.
    pub(crate) fn new(resource: &'a Resource, totals: &Totals, figures: &'a Figures) -> Self {
        let scope = Scope { name: "bailey", version: env!("CARGO_PKG_VERSION") };
        let since = totals.since.unwrap_or(figures.time).min(figures.time);
        let counted = totals.histograms().map(|(instrument, series)| {
            let data_points = series.into_iter().map(|it| Counted::of(instrument, it, since, figures.time));
            let data =
                Data::Histogram { data_points: data_points.collect(), aggregation_temporality: CUMULATIVE };
            let Instrument { name, about, unit, .. } = instrument;
            Metric { name, description: about, unit, data }
        });
        let metrics = counted.chain(figures.all.iter().map(|figure| Metric::of(figure, figures))).collect();
        let scope_metrics = [ScopeMetrics { scope, metrics, schema_url: SCHEMA }];
        Self { resource_metrics: [ResourceMetrics { resource, scope_metrics, schema_url: SCHEMA }] }
    }
}

impl<'a> Metric<'a> {
    fn of(figure: &'a Figure, figures: &Figures) -> Self {
        let number = |Point { label, value }: &'a Point| Number {
            attributes: label.iter().map(|(key, word)| (key.as_ref(), word.clone().into())).collect(),
            start_time_unix_nano: figures.since,
            time_unix_nano: figures.time.max(figures.since),
            as_int: i64::try_from(*value).unwrap_or(i64::MAX),
        };
        let data_points = figure.points.iter().map(number).collect();
        let data = match figure.kind {
            Kind::Gauge => Data::Gauge { data_points },
            Kind::Counter => {
                Data::Sum { data_points, aggregation_temporality: CUMULATIVE, is_monotonic: true }
            }
        };
        let unit = if figure.unit == Unit::Bytes { "By" } else { "1" };
        Self { name: &figure.name, description: &figure.about, unit, data }
    }
}

impl Counted {
    fn of(instrument: &Instrument, series: &Series, since: Timestamp, time: Timestamp) -> Self {
        let Series { of: Of { what, provider, model }, buckets, sum } = series;
        let mut attributes: Vec<(&str, Value)> = vec![
            ("gen_ai.operation.name", "chat".into()),
            ("gen_ai.provider.name", provider.clone().into()),
            ("gen_ai.request.model", model.clone().into()),
        ];
        attributes.extend(match what {
            Measured::InputTokens => Some(("gen_ai.token.type", "input".into())),
            Measured::OutputTokens => Some(("gen_ai.token.type", "output".into())),
            Measured::Duration(error) => error.clone().map(|error| (crate::ERROR, error.into())),
        });
        let in_units = |value: u64| value as f64 / instrument.scale as f64;
        Self {
            attributes,
            start_time_unix_nano: since,
            time_unix_nano: time,
            count: buckets.iter().sum(),
            sum: in_units(*sum),
            bucket_counts: buckets.clone(),
            explicit_bounds: instrument.bounds.iter().copied().map(in_units).collect(),
            exemplars: [],
            flags: 0,
        }
    }
}
