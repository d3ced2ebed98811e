//! Reads a collector's answer to a request (OTLP/HTTP, "Response"). The collector is a foreign server, and
//! its words go only into the log: a few of them, on one line.

use super::Signal;
use serde::Deserialize;
use std::time::Duration;

/// The longest answer that is read, in bytes, and the most characters of its message.
const LOOKED_AT_MAX: usize = 64 << 10;
const WORDS_CHARS_MAX: usize = 200;
/// The longest pause: a collector that asks for a longer one is asked again after this.
const LATER_MAX: Duration = Duration::from_secs(3600);

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportResult {
    /// It was taken.
    Taken,
    /// It was taken, and the collector has a message: how much it threw away, and why.
    InPart(u64, String),
    /// It will not be taken, however often it is sent.
    Refused(String),
    /// It may be taken later; after this pause, if the collector names one.
    Later(Option<Duration>, String),
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Response {
    partial_success: Partial,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Partial {
    #[serde(rename = "rejectedSpans", alias = "rejectedDataPoints")]
    rejected: ProtobufInteger,
    error_message: String,
}

/// A 64-bit number, which is text in the JSON of protobuf; some collectors write it as a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum ProtobufInteger {
    Number(u64),
    Text(String),
}

impl Default for ProtobufInteger {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl ExportResult {
    /// Reads an answer.
    pub fn of(signal: Signal, status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        match status {
            200..=299 => Self::of_taken(body),
            429 | 502..=504 => {
                let later = retry_after.map(|wait| wait.min(LATER_MAX));
                Self::Later(later, format!("the collector wants to be left alone (status {status})"))
            }
            // A setting is wrong, at the collector or here: the data is kept.
            300..=399 => Self::Later(
                None,
                format!(
                    "the collector sends elsewhere (status {status}), and nobody goes there: name that server in [telemetry]"
                ),
            ),
            401 | 403 | 407 => Self::Later(
                None,
                format!(
                    "the collector does not let Bailey in (status {status}): look at `key_env` and `header` in [telemetry]"
                ),
            ),
            // Many collectors take only traces.
            404 | 405 if signal == Signal::Metrics => {
                Self::Refused(format!("nothing takes figures there (status {status})"))
            }
            404 | 405 => Self::Later(
                None,
                format!(
                    "nothing takes traces there (status {status}): look at `otlp` in [telemetry], behind which `/v1/traces` comes"
                ),
            ),
            _ => Self::Refused(format!("the collector refused it (status {status})")),
        }
    }

    fn of_taken(body: &[u8]) -> Self {
        let looked_at = if body.len() > LOOKED_AT_MAX { &[] } else { body };
        // A collector that takes the data need not send an answer that Bailey understands.
        let Response { partial_success } = serde_json::from_slice(looked_at).unwrap_or_default();
        let rejected = match partial_success.rejected {
            ProtobufInteger::Number(number) => number,
            ProtobufInteger::Text(text) => text.parse().unwrap_or(0),
        };
        let words = words(&partial_success.error_message);
        if rejected == 0 && words.is_empty() { Self::Taken } else { Self::InPart(rejected, words) }
    }
}

/// A few words, on one line.
fn words(text: &str) -> String {
    text.chars().take(WORDS_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::{ExportResult, Signal};
    use std::time::Duration;

    #[test]
    fn an_answer_says_what_becomes_of_the_request() {
        let of = |status, body: &str| ExportResult::of(Signal::Traces, status, None, body.as_bytes());
        for body in ["", "{}", "null", "[]", "\u{0}", r#"{"partialSuccess":{}}"#, r#"{"partialSuccess":7}"#] {
            assert_eq!(of(200, body), ExportResult::Taken, "{body}");
        }
        let part = |rejected: &str| {
            format!(r#"{{"partialSuccess":{{"rejectedSpans":{rejected},"errorMessage":"too\nold"}}}}"#)
        };
        assert_eq!(of(200, &part("\"3\"")), ExportResult::InPart(3, "too old".into()));
        assert_eq!(of(202, &part("3")), ExportResult::InPart(3, "too old".into()));
        let points = br#"{"partialSuccess":{"rejectedDataPoints":"2"}}"#;
        assert_eq!(
            ExportResult::of(Signal::Metrics, 200, None, points),
            ExportResult::InPart(2, String::new())
        );
        // Without a number, the message is advice.
        assert_eq!(
            of(200, r#"{"partialSuccess":{"errorMessage":"soon too old"}}"#),
            ExportResult::InPart(0, "soon too old".into())
        );
        let long = format!(r#"{{"partialSuccess":{{"errorMessage":"{}"}}}}"#, "x".repeat(5000));
        assert_eq!(of(200, &long), ExportResult::InPart(0, "x".repeat(200)));
        let longer = format!(r#"{{"partialSuccess":{{"errorMessage":"{}"}}}}"#, "x".repeat(65 << 10));
        assert_eq!(of(200, &longer), ExportResult::Taken);
        for status in [400, 413, 422, 500, 501, 100, 600] {
            assert!(matches!(of(status, ""), ExportResult::Refused(_)), "{status}");
        }
        for status in [429, 502, 503, 504, 301, 307, 401, 403, 404] {
            assert!(matches!(of(status, ""), ExportResult::Later(None, _)), "{status}");
        }
        // A collector that takes only traces is not set up wrongly.
        assert!(matches!(ExportResult::of(Signal::Metrics, 404, None, b""), ExportResult::Refused(_)));
        let later = |seconds| ExportResult::of(Signal::Metrics, 503, Some(Duration::from_secs(seconds)), b"");
        assert!(matches!(later(7), ExportResult::Later(Some(wait), _) if wait == Duration::from_secs(7)));
        assert!(
            matches!(later(u64::MAX), ExportResult::Later(Some(wait), _) if wait == Duration::from_secs(3600))
        );
    }
}
