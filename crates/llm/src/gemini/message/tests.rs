use super::PartialContent;
use crate::failure::Fault;
use bailey_kernel::{Completion, Delta, StopReason};
use serde_json::{Value, json};

fn read(chunks: &[Value]) -> Result<(Completion, String), Fault> {
    let mut message = PartialContent::default();
    let mut said = String::new();
    for chunk in chunks {
        for delta in message.event(&chunk.to_string())? {
            if let Delta::Text(text) = delta {
                said.push_str(&text);
            }
        }
    }
    message.end().map(|answer| (answer, said))
}

fn chunk(parts: Value) -> Value {
    json!({ "candidates": [{ "content": { "role": "model", "parts": parts } }], "responseId": "r1" })
}

fn last(reason: &str) -> Value {
    json!({
        "candidates": [{ "content": { "role": "model", "parts": [{ "text": "" }] }, "finishReason": reason }],
        "usageMetadata": {
            "promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 7, "thoughtsTokenCount": 3,
        },
    })
}

#[test]
fn thoughts_text_and_calls_come_back_as_they_were() {
    let signed =
        json!({ "functionCall": { "name": "fs_read", "args": { "path": "a" } }, "thoughtSignature": "c2ln" });
    let given = json!({ "functionCall": { "id": "own", "name": "fs_read" } });
    let chunks = [
        chunk(json!([{ "text": "hm", "thought": true }])),
        chunk(json!([{ "text": "I re" }])),
        chunk(json!([{ "text": "ad it." }, signed])),
        chunk(json!([given, { "text": "More.", "thoughtSignature": "eA==" }])),
        last("STOP"),
    ];
    let (answer, said) = read(&chunks).unwrap();
    assert_eq!((answer.text.as_str(), answer.stop), ("I read it.\n\nMore.", StopReason::Calls));
    assert_eq!(said, answer.text);
    let parts = json!([
        { "text": "hm", "thought": true },
        { "text": "I read it." },
        signed,
        given,
        { "text": "More.", "thoughtSignature": "eA==" },
    ]);
    assert_eq!(answer.verbatim["content"], json!({ "role": "model", "parts": parts }));
    let calls: Vec<_> =
        answer.calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
    assert_eq!(calls, [("fs_read", r#"{"path":"a"}"#), ("fs_read", "{}")]);
    assert!(answer.calls[0].id.0.starts_with("call_"), "{:?}", answer.calls);
    assert_eq!(answer.calls[1].id.0, "own");
    let usage = answer.usage;
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cache_read_tokens), (100, 10, 60));
}

#[test]
fn reasons_to_stop() {
    for (reason, stop) in
        [("STOP", StopReason::Answered), ("MAX_TOKENS", StopReason::Length), ("SAFETY", StopReason::Refused)]
    {
        assert_eq!(read(&[last(reason)]).unwrap().0.stop, stop, "{reason}");
    }
    // Servers that speak this wire say of calls what Gemini does not.
    let function = chunk(json!([{ "functionCall": { "name": "fs_read", "args": {} } }]));
    assert_eq!(read(&[function, last("FUNCTION_CALL")]).unwrap().0.stop, StopReason::Calls);
    assert_eq!(read(&[last("FUNCTION_CALL")]).unwrap().0.stop, StopReason::NoCalls);
    assert_eq!(read(&[last("OTHER")]).unwrap_err(), Fault::Ended("OTHER".into()));
    let blocked = json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" } });
    assert_eq!(read(&[blocked]).unwrap().0.stop, StopReason::Refused);
    assert!(matches!(read(&[last("MALFORMED_FUNCTION_CALL")]), Err(Fault::Cut(_))));
    assert!(matches!(read(&[chunk(json!([{ "text": "half" }]))]), Err(Fault::Cut(_))));
}

#[test]
fn an_answer_that_was_not_streamed() {
    for whole in [last("STOP"), json!([chunk(json!([{ "text": "a" }])), last("STOP")])] {
        let mut message = PartialContent::default();
        message.whole(&whole).unwrap();
        assert_eq!(message.end().unwrap().stop, StopReason::Answered);
    }
    assert!(matches!(PartialContent::default().whole(&json!({ "a": 1 })), Err(Fault::Malformed(_))));
    let error = json!([{ "error": { "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow" } }]);
    assert!(
        matches!(PartialContent::default().whole(&error), Err(Fault::Reported(complaint)) if complaint.status == Some(429))
    );
}
