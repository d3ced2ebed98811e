//! Spans and figures as OTLP/JSON: the protobuf messages of OTLP 1 in its JSON encoding (names in camel case,
//! 64-bit numbers as text, the names of traces and spans in hexadecimal).
//!
//! These few types are all that Bailey needs of it. A library would bring protobuf, and a second HTTP client
//! that bypasses the network door.

mod metrics;

pub use metrics::Metrics;

use super::{Attributes, Span, SpanId, TraceId, Value};
use bailey_protocol::{Digest, Timestamp};
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap as _, SerializeSeq as _},
};

/// The conventions that define the names and attributes.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.37.0";
/// `SPAN_KIND_INTERNAL` and `SPAN_KIND_CLIENT`.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
/// `STATUS_CODE_ERROR`. Success is not reported: a reader may judge it differently.
const ERROR: u8 = 2;

/// The message to a collector: `ExportTraceServiceRequest`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Request<'a> {
    resource_spans: [ResourceSpans<'a>; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans<'a> {
    resource: &'a Resource,
    scope_spans: [ScopeSpans<'a>; 1],
    schema_url: &'static str,
}

/// The sender of the data.
#[derive(Debug, Clone, Serialize)]
pub struct Resource {
    #[serde(serialize_with = "attributes")]
    attributes: Attributes,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ScopeSpans<'a> {
    scope: Scope,
    spans: Vec<OtlpSpan<'a>>,
    schema_url: &'static str,
}

#[derive(Debug, Serialize)]
struct Scope {
    name: &'static str,
    version: &'static str,
}

/// A span, as OTLP writes it in JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OtlpSpan<'a> {
    trace_id: TraceId,
    span_id: SpanId,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<SpanId>,
    name: String,
    kind: u8,
    #[serde(serialize_with = "nanoseconds")]
    start_time_unix_nano: Timestamp,
    #[serde(serialize_with = "nanoseconds")]
    end_time_unix_nano: Timestamp,
    #[serde(serialize_with = "attributes")]
    attributes: &'a Attributes,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
}

#[derive(Debug, Serialize)]
struct Status {
    code: u8,
}

impl Resource {
    /// This program, and the home whose journal begins with this nonce.
    pub fn of(nonce: &str) -> Self {
        let journal = Digest::of(nonce.as_bytes()).short();
        let attributes = vec![
            ("service.name", "bailey".into()),
            ("service.version", env!("CARGO_PKG_VERSION").into()),
            ("service.instance.id", journal.as_str().into()),
        ];
        Self { attributes }
    }
}

impl<'a> Request<'a> {
    /// A request with these spans.
    pub fn new(resource: &'a Resource, spans: &'a [Span]) -> Self {
        let scope = Scope { name: "bailey", version: env!("CARGO_PKG_VERSION") };
        let spans = spans.iter().map(OtlpSpan::of).collect();
        let scope_spans = [ScopeSpans { scope, spans, schema_url: SCHEMA }];
        Self { resource_spans: [ResourceSpans { resource, scope_spans, schema_url: SCHEMA }] }
    }
}

impl<'a> OtlpSpan<'a> {
    fn of(span: &'a Span) -> Self {
        Self {
            trace_id: span.trace,
            span_id: span.id,
            parent_span_id: span.parent,
            name: span.title(),
            kind: if span.is_client { CLIENT } else { INTERNAL },
            start_time_unix_nano: span.begun,
            end_time_unix_nano: span.ended,
            attributes: &span.attributes,
            status: span.is_error().then_some(Status { code: ERROR }),
        }
    }
}

fn nanoseconds<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&time.as_nanosecond())
}

/// `KeyValue`s.
fn attributes<S: Serializer>(attributes: &[(&str, Value)], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct KeyValue<'a> {
        key: &'a str,
        value: &'a Value,
    }
    let mut list = serializer.serialize_seq(Some(attributes.len()))?;
    attributes.iter().try_for_each(|(key, value)| list.serialize_element(&KeyValue { key, value }))?;
    list.end()
}

/// `AnyValue`.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Array<'a> {
            values: &'a [Value],
        }
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Word(word) => map.serialize_entry("stringValue", word.as_str())?,
            Self::Words(values) => map.serialize_entry("arrayValue", &Array { values })?,
            Self::Count(count) => map.serialize_entry("intValue", &count.to_string())?,
            Self::Code(code) => map.serialize_entry("intValue", &code.to_string())?,
        }
        map.end()
    }
}

impl Serialize for TraceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for SpanId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
