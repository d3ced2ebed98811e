use super::PartialCompletion;
use crate::failure::Fault;
use bailey_kernel::{Completion, Delta, StopReason};
use bailey_protocol::Usage;
use serde_json::{Value, json};

fn read(chunks: &[Value]) -> Result<(Completion, Vec<Delta>), Fault> {
    let mut message = PartialCompletion::default();
    let mut deltas = Vec::new();
    for chunk in chunks {
        let data = chunk.as_str().map_or_else(|| chunk.to_string(), Into::into);
        deltas.extend(message.event(&data)?);
    }
    message.end().map(|answer| (answer, deltas))
}

fn delta(delta: Value) -> Value {
    json!({ "id": "chatcmpl-1", "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

fn call(piece: Value) -> Value {
    delta(json!({ "tool_calls": [piece] }))
}

fn finish(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

fn usage() -> Value {
    json!({ "choices": [], "usage": { "prompt_tokens": 12, "completion_tokens": 3 } })
}

/// Names and arguments of the calls.
fn calls(chunks: &[Value]) -> Vec<(String, String)> {
    let mut chunks = chunks.to_vec();
    chunks.push(finish("tool_calls"));
    let (answer, _) = read(&chunks).unwrap();
    assert_eq!(answer.stop, StopReason::Calls);
    answer.calls.into_iter().map(|call| (call.name, call.arguments)).collect()
}

fn named(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, arguments)| ((*name).into(), (*arguments).into())).collect()
}

fn full() -> Vec<Value> {
    vec![
        delta(json!({ "role": "assistant", "content": "" })),
        delta(json!({ "content": "I " })),
        delta(json!({ "content": "read." })),
        call(
            json!({ "index": 0, "id": "c1", "type": "function", "function": { "name": "fs_read", "arguments": "" } }),
        ),
        call(
            json!({ "index": 1, "id": "c2", "type": "function", "function": { "name": "fs_list", "arguments": "" } }),
        ),
        call(json!({ "index": 0, "function": { "arguments": "{\"path\":" } })),
        call(json!({ "index": 1, "function": { "arguments": "{}" } })),
        call(json!({ "index": 0, "function": { "arguments": "\"a\"}" } })),
        finish("tool_calls"),
        usage(),
        json!("[DONE]"),
    ]
}

#[test]
fn a_streamed_reply_with_text_and_parallel_calls() {
    let (answer, deltas) = read(&full()).unwrap();
    assert_eq!(answer.text, "I read.");
    assert_eq!(deltas[..2], [Delta::Text("I ".into()), Delta::Text("read.".into())]);
    assert_eq!(answer.usage, Usage { input_tokens: 12, output_tokens: 3, ..Usage::default() });
    let message = json!({ "role": "assistant", "content": "I read.", "tool_calls": [
        { "id": "c1", "type": "function", "function": { "name": "fs_read", "arguments": "{\"path\":\"a\"}" } },
        { "id": "c2", "type": "function", "function": { "name": "fs_list", "arguments": "{}" } },
    ] });
    assert_eq!(answer.verbatim, json!({ "wire": "open-ai-chat", "message": message }));
}

#[test]
fn the_same_reply_unstreamed_is_the_same_answer() {
    let (streamed, _) = read(&full()).unwrap();
    let mut message = PartialCompletion::default();
    message
        .whole(&json!({
            "choices": [{ "message": streamed.verbatim["message"], "finish_reason": "tool_calls" }],
            "usage": usage()["usage"],
        }))
        .unwrap();
    assert_eq!(message.end().unwrap(), streamed);
}

#[test]
fn a_reply_cut_before_its_reason_is_cut() {
    let chunks = full();
    for length in 0..8 {
        assert!(matches!(read(&chunks[..length]), Err(Fault::Cut(_))), "{length} chunks");
    }
    for length in 9..=chunks.len() {
        read(&chunks[..length]).unwrap();
    }
    assert!(matches!(read(&[json!("[DONE]")]), Err(Fault::Cut(_))));
    let (answer, _) = read(&[delta(json!({ "content": "x" })), json!("[DONE]")]).unwrap();
    assert_eq!((answer.text.as_str(), answer.stop), ("x", StopReason::Answered));
}

#[test]
fn calls_of_compatible_servers() {
    let (f, g) = (json!({ "name": "f", "arguments": "{}" }), json!({ "name": "g", "arguments": "[]" }));
    let both = named(&[("f", "{}"), ("g", "[]")]);
    // Neither index nor identifier, in one piece.
    assert_eq!(calls(&[call(json!({ "function": f })), call(json!({ "function": g }))]), both);
    // Every call numbered 0.
    let zero = |id: &str, function: &Value| call(json!({ "index": 0, "id": id, "function": function }));
    assert_eq!(calls(&[zero("a", &f), zero("b", &g)]), both);
    // Identifier and name repeated in every piece.
    let piece =
        |text: &str| call(json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": text } }));
    assert_eq!(calls(&[piece("{\"a\""), piece(":1}")]), named(&[("f", "{\"a\":1}")]));
    // Arguments as an object, and none at all.
    let object = call(json!({ "index": 0, "function": { "name": "f", "arguments": { "a": 1 } } }));
    let none = call(json!({ "index": 1, "id": "b", "function": { "name": "g" } }));
    assert_eq!(calls(&[object, none]), named(&[("f", "{\"a\":1}"), ("g", "{}")]));
    // `stop` in spite of calls.
    let (answer, _) = read(&[zero("a", &f), finish("stop")]).unwrap();
    assert_eq!(answer.stop, StopReason::Calls);
}

#[test]
fn missing_identifiers_are_made_the_same_way_each_time_and_differ() {
    let ids = |reply: &str| {
        let mut chunk = call(json!({ "function": { "name": "f", "arguments": "{}" } }));
        chunk["id"] = reply.into();
        let (answer, _) = read(&[chunk.clone(), chunk, finish("tool_calls")]).unwrap();
        answer.calls.into_iter().map(|call| call.id.0).collect::<Vec<_>>()
    };
    let (first, again, other) = (ids("r1"), ids("r1"), ids("r2"));
    assert_eq!(first, again);
    assert_ne!(first[0], first[1]);
    assert_ne!(first[0], other[0]);
}

#[test]
fn other_stops_refusals_parts_and_what_is_signed() {
    assert_eq!(read(&[finish("length")]).unwrap().0.stop, StopReason::Length);
    assert_eq!(read(&[finish("content_filter")]).unwrap().0.stop, StopReason::Refused);
    let (answer, _) = read(&[delta(json!({ "refusal": "no" })), finish("stop")]).unwrap();
    assert_eq!((answer.text.as_str(), answer.stop), ("no", StopReason::Refused));
    let parts = json!({ "content": [{ "type": "thinking" }, { "type": "text", "text": "hi" }] });
    assert_eq!(read(&[delta(parts), finish("stop")]).unwrap().0.text, "hi");
    let signed =
        call(json!({ "index": 0, "id": "a", "function": { "name": "f" }, "extra_content": { "s": 1 } }));
    let (answer, _) = read(&[signed, finish("tool_calls")]).unwrap();
    assert_eq!(answer.verbatim["message"]["tool_calls"][0]["extra_content"], json!({ "s": 1 }));
}

#[test]
fn faults() {
    assert!(matches!(read(&[json!({ "error": { "message": "x", "code": 502 } })]), Err(Fault::Reported(_))));
    assert!(matches!(PartialCompletion::default().event("nonsense"), Err(Fault::Malformed(_))));
    assert!(matches!(PartialCompletion::default().whole(&json!({ "a": 1 })), Err(Fault::Malformed(_))));
    let many: Vec<Value> =
        (0..2000).map(|index| call(json!({ "index": index, "id": index.to_string() }))).collect();
    assert!(matches!(read(&many), Err(Fault::TooLarge(_))));
}

/// vLLM says what is wrong without the word `error`. Control: a chunk that only counts has no `choices`
/// either.
#[test]
fn an_error_without_choices_is_told_as_what_it_is() {
    let words = "This model's maximum context length is 4096 tokens";
    let error = json!({ "object": "error", "message": words, "type": "BadRequestError", "code": 400 });
    let Err(Fault::Reported(complaint)) = read(std::slice::from_ref(&error)) else { panic!("no complaint") };
    assert_eq!((complaint.message.as_str(), complaint.status()), (words, 400));
    let whole = PartialCompletion::default().whole(&error);
    assert!(matches!(&whole, Err(Fault::Reported(told)) if told.message == words), "{whole:?}");
    let counted = json!({ "usage": { "prompt_tokens": 12, "completion_tokens": 3 } });
    let (answer, _) = read(&[delta(json!({ "content": "hi" })), finish("stop"), counted]).unwrap();
    assert_eq!((answer.text.as_str(), answer.usage.input_tokens), ("hi", 12));
}

/// Some servers write an empty `finish_reason` into every chunk: such a stream has not ended by it.
#[test]
fn an_empty_finish_reason_ends_nothing() {
    let said =
        |reason: Value| json!({ "choices": [{ "delta": { "content": "half" }, "finish_reason": reason }] });
    assert!(matches!(read(&[said("".into())]), Err(Fault::Cut(_))));
    assert!(read(&[said("".into()), said("stop".into())]).is_ok(), "control");
}

/// The model's thoughts go back as they came, but for pieces of one text, which
/// are joined. An empty field goes back too.
#[test]
fn reasoning_goes_back_under_the_name_it_came_under() {
    let thought = |piece: Value| delta(json!({ "reasoning_details": [piece] }));
    let text = |text: &str| {
        thought(json!({ "type": "reasoning.text", "text": text, "signature": null, "index": 0 }))
    };
    let reasoned = [
        delta(json!({ "role": "assistant", "content": "", "reasoning_content": "I " })),
        delta(json!({ "content": null, "reasoning_content": "look." })),
        text("First "),
        text("a look."),
        thought(json!({ "type": "reasoning.text", "signature": "s1g", "index": 0 })),
        thought(json!({ "type": "reasoning.encrypted", "data": "a", "index": 1 })),
        thought(json!({ "type": "reasoning.encrypted", "data": "b", "index": 1 })),
        thought(json!({ "type": "reasoning.text", "text": "Second.", "index": 2 })),
    ];
    let called = call(json!({ "index": 0, "id": "c1", "function": { "name": "x", "arguments": "{}" } }));
    let (answer, deltas) = read(&[&reasoned[..], &[called, finish("tool_calls")]].concat()).unwrap();
    assert_eq!((answer.text.as_str(), deltas), ("", Vec::new()), "thoughts are no text");
    let message = &answer.verbatim["message"];
    assert_eq!(message["reasoning_content"], "I look.");
    assert_eq!(
        message["reasoning_details"],
        json!([
            { "type": "reasoning.text", "text": "First a look.", "signature": "s1g", "index": 0 },
            { "type": "reasoning.encrypted", "data": "a", "index": 1 },
            { "type": "reasoning.encrypted", "data": "b", "index": 1 },
            { "type": "reasoning.text", "text": "Second.", "index": 2 },
        ])
    );
    let said = |thought: Value| {
        let mut first = json!({ "role": "assistant", "content": "hi" });
        first.as_object_mut().unwrap().extend(thought.as_object().unwrap().clone());
        read(&[delta(first), finish("stop")]).unwrap().0.verbatim["message"].clone()
    };
    let hi = |thought: Value| {
        let mut message = json!({ "role": "assistant", "content": "hi" });
        message.as_object_mut().unwrap().extend(thought.as_object().unwrap().clone());
        message
    };
    for thought in [
        json!({ "reasoning_content": "hm" }),
        json!({ "reasoning": "hm" }),
        json!({ "reasoning": "" }),
        json!({}),
    ] {
        assert_eq!(said(thought.clone()), hi(thought));
    }
    assert_eq!(said(json!({ "reasoning_content": null })), hi(json!({ "reasoning_content": "" })));
}

#[test]
fn reasoning_is_bounded() {
    let piece = json!({ "type": "reasoning.encrypted", "data": "x" });
    let many = |count: usize| {
        read(&[delta(json!({ "reasoning_details": vec![piece.clone(); count] })), finish("stop")])
    };
    assert!(matches!(many(4097), Err(Fault::TooLarge(_))));
    assert!(many(4096).is_ok(), "control");
}

/// An end in an unknown word is none, until the server was seen to use it so; one that says that it failed
/// never is.
#[test]
fn an_unknown_end_is_none() {
    let ended = |reason: &str, known: &[&str]| {
        let mut message = PartialCompletion::of(known.iter().map(|word| (*word).to_owned()).collect());
        for chunk in [delta(json!({ "content": "It is 42." })), finish(reason)] {
            message.event(&chunk.to_string()).unwrap();
        }
        message.end().map(|answer| answer.stop)
    };
    assert_eq!(ended("unknown", &[]), Err(Fault::Ended("unknown".into())));
    assert_eq!(ended("unknown", &["unknown"]), Ok(StopReason::Answered));
    assert_eq!(ended("error", &[]), Err(Fault::Ended("error".into())));
    for (reason, stop) in [
        ("stop", StopReason::Answered),
        ("end-turn", StopReason::Answered),
        ("max_output_tokens", StopReason::Length),
        ("tool-calls", StopReason::NoCalls),
    ] {
        assert_eq!(ended(reason, &[]), Ok(stop), "{reason}");
    }
}
