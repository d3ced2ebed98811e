use super::{Form, numbers};
use crate::{Endpoint, Wire, failure::Complaint};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn endpoint(wire: Wire) -> Endpoint {
    Endpoint {
        provider: "acme".into(),
        wire,
        base_url: "http://127.0.0.1:9/v1".into(),
        model: "m".into(),
        key: None,
        max_tokens: 16_384,
        window_tokens: None,
        prices: Vec::new(),
        takes_images: true,
        parameters: BTreeMap::new(),
    }
}

fn body() -> Value {
    json!({
        "model": "m", "max_tokens": 16_384, "stream_options": { "include_usage": true },
        "messages": [
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": "hi" },
            { "role": "assistant", "content": "well" },
            { "role": "user", "content": "and?" },
        ],
        "tools": [{ "type": "function", "strict": false, "function": { "name": "x", "parameters": { "strict": 1 } } }],
    })
}

/// The request that is sent after these refusals; `None` where one of them taught nothing.
fn after(wire: Wire, refusals: &[&str]) -> Option<Value> {
    let (endpoint, mut form) = (endpoint(wire), Form::default());
    for message in refusals {
        let complaint = Complaint { message: (*message).into(), ..Complaint::default() };
        form.learn(&endpoint, &complaint)?;
    }
    let bounded = form.bounded(&endpoint);
    let mut body = body();
    body["max_tokens"] = bounded.max_tokens.into();
    form.write(&bounded, &mut body);
    Some(body)
}

#[test]
fn a_parameter_that_is_refused_is_written_otherwise() {
    let chat = |refusal: &str| after(Wire::OpenAiChat, &[refusal]).unwrap();
    let renamed = chat(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    );
    assert_eq!((renamed.get("max_tokens"), &renamed["max_completion_tokens"]), (None, &json!(16_384)));
    let without = chat(
        r#"[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]"#,
    );
    assert_eq!(without.get("stream_options"), None);
    for range in [
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
        "max_tokens is too large: 16384. This model supports at most 8,192 completion tokens",
        "max_tokens: 16384 > 8192, which is the maximum allowed number of output tokens",
    ] {
        assert_eq!(chat(range)["max_tokens"], 8192, "{range}");
        assert_eq!(after(Wire::Anthropic, &[range]).unwrap()["max_tokens"], 8192, "{range}");
    }
    assert_eq!(chat("unknown field: max_tokens").get("max_tokens"), None);
    let strict = after(Wire::OpenAiResponses, &["unknown parameter 'strict'"]).unwrap();
    assert_eq!(strict["tools"][0].get("strict"), None);
    assert_eq!(
        strict["tools"][0]["function"]["parameters"],
        json!({ "strict": 1 }),
        "a tool's own parameter stays"
    );
}

#[test]
fn thoughts_come_with_each_message_where_a_server_misses_them_and_go_where_it_refuses_them() {
    let missing = "The `reasoning_content` in the thinking mode must be passed back to the API.";
    let filled = after(Wire::OpenAiChat, &[missing]).unwrap();
    let fields: Vec<Option<&Value>> = filled["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message.get("reasoning_content"))
        .collect();
    assert_eq!(fields, [None, None, Some(&json!("")), None]);
    assert!(
        after(Wire::OpenAiChat, &[missing, "property 'messages.2.reasoning_content' is unsupported"])
            .is_some()
    );
    assert_eq!(after(Wire::OpenAiChat, &[missing, missing]), None, "once");
}

#[test]
fn a_template_without_a_system_gets_the_instruction_with_the_first_words() {
    let folded = after(Wire::OpenAiChat, &["System role not supported"]).unwrap();
    assert_eq!(folded["messages"][0], json!({ "role": "user", "content": "be brief\n\nhi" }));
}

#[test]
fn what_names_no_parameter_teaches_nothing() {
    for refusal in [
        "",
        "temperature must be a number",
        "the model needs no reasoning to include a store of options",
        "messages: at least one message is required",
    ] {
        assert_eq!(after(Wire::OpenAiChat, &[refusal]), None, "{refusal}");
    }
}

#[test]
fn the_window_is_the_number_below_what_was_asked_for() {
    for (message, window) in [
        ("prompt is too long: 210000 tokens > 200000 maximum", Some(200_000)),
        (
            "maximum context length is 8192 tokens. However, you requested 9101 tokens (8101 in the messages, 1000 in the completion)",
            Some(8192),
        ),
        ("exceeded model token limit: 8192 (requested: 9101)", Some(8192)),
        ("the request (5,000 tokens) exceeds the available context size (4,096 tokens)", Some(4096)),
        ("This model's maximum context length is 4096 tokens", Some(4096)),
        ("error 400: too long", None),
    ] {
        let mut form = Form::default();
        form.learn_window(&Complaint { message: message.into(), ..Complaint::default() });
        assert_eq!(form.window(), window, "{message}");
        let most = window.map_or(16_384, |window| (window / 4).min(16_384));
        assert_eq!(u64::from(form.bounded(&endpoint(Wire::OpenAiChat)).max_tokens), most);
    }
    assert_eq!(numbers("1,000 12_000 [1, 8192] 3,14").collect::<Vec<_>>(), [1000, 12_000, 1, 8192, 3, 14]);
}

#[test]
fn the_owners_parameters_have_the_last_word() {
    let parameters = json!({
        "temperature": 0.2, "stream_options": false, "max_tokens": "max_completion_tokens", "effort": "low",
    });
    let endpoint =
        Endpoint { parameters: serde_json::from_value(parameters).unwrap(), ..endpoint(Wire::OpenAiChat) };
    let mut body = body();
    Form::default().write(&endpoint, &mut body);
    let body = body.as_object().unwrap();
    assert_eq!((body.get("stream_options"), body.get("max_tokens")), (None, None));
    assert_eq!(
        (&body["temperature"], &body["max_completion_tokens"], &body["effort"]),
        (&json!(0.2), &json!(16_384), &json!("low"))
    );
}

#[test]
fn calls_and_schemas_are_written_as_a_server_takes_them() {
    let after = |refusal: &str| after(Wire::OpenAiChat, &[refusal]);
    let learned = |refusal: &str| {
        let mut form = Form::default();
        let complaint = Complaint { message: refusal.into(), ..Complaint::default() };
        form.learn(&endpoint(Wire::OpenAiChat), &complaint).map(|_| form)
    };
    for refusal in [
        "Tool call id was 6f1c-4e but must be a-z, A-Z, 0-9, with a length of 9.",
        "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40",
    ] {
        assert!(learned(refusal).unwrap().makes_ids(), "{refusal}");
    }
    assert!(learned("invalid message content type: <nil>").unwrap().no_null);
    assert!(learned("image dimensions exceed max allowed size: 8000 pixels").unwrap().no_images);
    assert!(learned("Could not process image").unwrap().no_images);
    assert_eq!(after("o3-mini-2025-01-31 does not support max_tokens").unwrap().get("max_tokens"), None);
    let mut body = json!({ "tools": [{ "type": "function", "function": { "name": "x", "parameters": {
        "type": "object", "title": "T",
        "properties": { "minimum": { "type": "integer", "minimum": 1 }, "list": { "type": "array", "minItems": 1,
            "items": { "type": "integer", "minimum": 0 } } },
    } } }] });
    learned("tool schema: keyword 'minimum' is not supported")
        .unwrap()
        .write(&endpoint(Wire::OpenAiChat), &mut body);
    let schema = &body["tools"][0]["function"]["parameters"];
    assert_eq!(
        schema["properties"]["minimum"],
        json!({ "type": "integer" }),
        "a property of that name stays"
    );
    assert_eq!(
        schema["properties"]["list"],
        json!({ "type": "array", "minItems": 1, "items": { "type": "integer" } })
    );
}

#[test]
fn no_window_is_learned_that_is_smaller_than_a_request_that_was_taken() {
    let mut form = Form::default();
    form.took(5000);
    let complaint = |message: &str| Complaint { message: message.into(), ..Complaint::default() };
    form.learn_window(&complaint("maximum context length: at most 2048 new tokens"));
    assert_eq!(form.window(), None);
    form.learn_window(&complaint("maximum context length is 8192 tokens"));
    assert_eq!(form.window(), Some(8192));
}

#[test]
fn a_word_for_an_end_that_comes_twice_is_one() {
    let mut form = Form::default();
    form.learn_end("unknown");
    form.learn_end("network_error");
    assert_eq!(form.ends().into_iter().collect::<Vec<_>>(), ["unknown"]);
}
