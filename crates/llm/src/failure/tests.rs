use super::{Fault, of_fault, of_status, wait};
use crate::{Endpoint, Wire, form::Form};
use bailey_kernel::ModelErrorKind::{self, *};
use std::time::Duration;

fn endpoint() -> Endpoint {
    Endpoint {
        provider: "acme".into(),
        wire: Wire::OpenAiChat,
        base_url: "http://127.0.0.1:9/v1".into(),
        model: "m-1".into(),
        key: Some("ACME_API_KEY".into()),
        max_tokens: 100,
        window_tokens: None,
        prices: Vec::new(),
        takes_images: false,
        parameters: std::collections::BTreeMap::new(),
    }
}

fn headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

fn check(status: u16, body: &str, kind: ModelErrorKind, says: &[&str]) {
    let error = of_status(
        &endpoint(),
        status,
        &headers(&[("retry-after", "7")]),
        body.as_bytes(),
        &mut Form::default(),
    );
    assert_eq!(error.kind, kind, "{status} {body}");
    for part in says {
        assert!(error.message.contains(part), "{part:?} is not in {:?}", error.message);
    }
}

#[test]
fn what_why_and_fix_for_each_kind() {
    let s7 = Some(Duration::from_secs(7));
    let anthropic = |kind: &str, message: &str| {
        format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}}}}"#)
    };
    let openai = |code: &str, message: &str| {
        format!(r#"{{"error":{{"message":"{message}","type":"invalid_request_error","code":"{code}"}}}}"#)
    };
    check(
        401,
        &anthropic("authentication_error", "invalid x-api-key"),
        Auth,
        &["`acme`", "invalid x-api-key", "`ACME_API_KEY`"],
    );
    check(403, "", Auth, &["403", "`ACME_API_KEY`"]);
    check(
        404,
        &anthropic("not_found_error", "model: m-1"),
        NotFound,
        &["`m-1`", "http://127.0.0.1:9/v1/models"],
    );
    check(400, &openai("model_not_found", "no m-1"), NotFound, &["`m-1`"]);
    check(429, &anthropic("rate_limit_error", "slow down"), RateLimited(s7), &["slow down", "7 s"]);
    check(
        400,
        &anthropic("invalid_request_error", "Your credit balance is too low"),
        Invalid,
        &["no credit"],
    );
    check(529, &anthropic("overloaded_error", "Overloaded"), Overloaded(s7), &["529", "7 s"]);
    check(503, r#"{"error":{"message":"Loading model","code":503}}"#, Overloaded(s7), &["Loading model"]);
    check(500, "<html>oops</html>", Overloaded(s7), &["oops"]);
    check(400, r#"{"detail":"temperature must be a number"}"#, Invalid, &["temperature must be"]);
    check(422, r#"{"object":"error","message":"bad tools"}"#, Invalid, &["bad tools"]);
    check(302, "", NotFound, &["redirects", "`base_url`"]);
}

/// Gemini speaks of billing where there were too many requests in a minute; OpenAI says so in the same words
/// where there is no money.
#[test]
fn too_many_requests_is_no_want_of_money() {
    let words = "You exceeded your current quota, please check your plan and billing details.";
    let of = |error: serde_json::Value, headers: &[(String, String)]| {
        of_status(
            &endpoint(),
            429,
            headers,
            serde_json::json!({ "error": error }).to_string().as_bytes(),
            &mut Form::default(),
        )
    };
    let gemini = serde_json::json!({
        "code": 429, "message": words, "status": "RESOURCE_EXHAUSTED",
        "details": [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2s" }],
    });
    let error = of(gemini, &[]);
    assert_eq!(error.kind, RateLimited(Some(Duration::from_secs(2))), "{error}");
    assert!(error.message.contains("2 s") && !error.message.contains("no credit"), "{error}");
    let untimed = serde_json::json!({ "code": 429, "message": words, "status": "RESOURCE_EXHAUSTED" });
    assert_eq!(of(untimed, &[]).kind, RateLimited(None));
    // Controls: no money is no money, unless a wait is said to help.
    let unpaid = || serde_json::json!({ "message": words, "type": "insufficient_quota", "code": "insufficient_quota" });
    let error = of(unpaid(), &[]);
    assert_eq!(error.kind, Invalid);
    assert!(error.message.contains("no credit"), "{error}");
    let wait = headers(&[("retry-after", "7")]);
    assert_eq!(of(unpaid(), &wait).kind, RateLimited(Some(Duration::from_secs(7))));
    check(402, r#"{"error":{"message":"see your billing details"}}"#, Invalid, &["no credit"]);
}

#[test]
fn a_context_that_is_too_long_is_recognised_on_both_wires() {
    for (status, message) in [
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
        (400, "This model's maximum context length is 8192 tokens"),
        (400, "the request exceeds the available context size, try increasing it"),
        (500, "the request exceeds the available context size, try increasing it"),
        (413, "Request exceeds the maximum size"),
        (400, "Invalid request: Your request exceeded model token limit: 8192 (requested: 9101)"),
        (400, "prompt token count of 130000 exceeds the limit of 128000"),
        (
            400,
            "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
        ),
        (400, "The number of tokens to keep from the initial prompt is greater than the context length"),
        (400, "Requested token count exceeds the model's maximum context length of 8192 tokens"),
        (400, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
        (400, "Input is too long for requested model."),
        (422, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens"),
        (400, "Please reduce the length of the messages or completion."),
    ] {
        let body = serde_json::json!({ "error": { "message": message } }).to_string();
        check(status, &body, Overflow, &["new session", "`m-1`"]);
    }
    check(400, r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#, Overflow, &[]);
    // Words that may mean it, from any server that was not heard of.
    for message in ["The payload has 9000 tokens, and we take 8000", "too long, sorry"] {
        let body = serde_json::json!({ "error": { "message": message } }).to_string();
        check(400, &body, LikelyOverflow, &["`window_tokens`"]);
    }
    check(400, r#"{"error":{"message":"temperature must be a number"}}"#, Invalid, &[]);
}

#[test]
fn a_quote_is_one_short_line() {
    let error = of_status(
        &endpoint(),
        400,
        &[],
        format!("a\u{1b}[31m\nb{}", "x".repeat(9000)).as_bytes(),
        &mut Form::default(),
    );
    assert!(error.message.len() < 800 && !error.message.contains(char::is_control), "{}", error.message);
}

#[test]
fn without_a_key_the_hint_says_where_one_is_named() {
    let error = of_status(&Endpoint { key: None, ..endpoint() }, 401, &[], b"", &mut Form::default());
    assert!(error.message.contains("(`key`)"), "{}", error.message);
}

#[test]
fn retry_after_in_every_form() {
    let seconds = |pairs: &[(&str, &str)]| wait(&headers(pairs)).map(|wait| wait.as_secs_f64());
    assert_eq!(seconds(&[("retry-after", "12")]), Some(12.0));
    assert_eq!(seconds(&[("Retry-After", " 1.5 ")]), Some(1.5));
    assert_eq!(seconds(&[("retry-after-ms", "250"), ("retry-after", "9")]), Some(0.25));
    let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(seconds(&[date, ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")]), Some(30.0));
    assert_eq!(seconds(&[date, ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")]), Some(0.0));
    assert_eq!(seconds(&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")]), None);
    for nonsense in ["", "soon", "-1", "NaN", "inf"] {
        assert_eq!(seconds(&[date, ("retry-after", nonsense)]), None, "{nonsense}");
    }
    assert_eq!(seconds(&[("retry-after", "1e300")]), Some(86400.0));
}

#[test]
fn errors_inside_a_stream() {
    let told = |event: &str| {
        let complaint = super::Complaint::of(&serde_json::from_str(event).unwrap()).unwrap();
        of_fault(&endpoint(), Fault::Reported(complaint), &mut Form::default()).kind
    };
    assert_eq!(
        told(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
        Overloaded(None)
    );
    assert_eq!(told(r#"{"error":{"code":429,"message":"slow"}}"#), RateLimited(None));
    assert_eq!(told(r#"{"error":{"type":"server_error","message":"x"}}"#), Overloaded(None));
    assert_eq!(told(r#"{"error":"model `x` is too big: prompt is too long"}"#), Overflow);
}
