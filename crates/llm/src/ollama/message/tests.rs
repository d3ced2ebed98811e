use super::PartialChat;
use crate::failure::Fault;
use bailey_kernel::{Completion, Delta, StopReason};
use serde_json::{Value, json};

fn read(lines: &[Value]) -> Result<(Completion, String), Fault> {
    let mut message = PartialChat::default();
    let mut said = String::new();
    for line in lines {
        for delta in message.event(&line.to_string())? {
            if let Delta::Text(text) = delta {
                said.push_str(&text);
            }
        }
    }
    message.end().map(|answer| (answer, said))
}

fn line(message: Value) -> Value {
    json!({ "model": "m", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": false })
}

fn last(reason: &str) -> Value {
    json!({
        "created_at": "2026-01-01T00:00:01Z", "message": { "role": "assistant", "content": "" },
        "done": true, "done_reason": reason, "prompt_eval_count": 26, "eval_count": 9,
    })
}

#[test]
fn text_thoughts_and_several_calls() {
    let call = |path: &str| json!({ "function": { "name": "fs_read", "arguments": { "path": path } } });
    let lines = [
        line(json!({ "role": "assistant", "content": "", "thinking": "h" })),
        line(json!({ "role": "assistant", "content": "", "thinking": "m" })),
        line(json!({ "role": "assistant", "content": "I " })),
        line(json!({ "role": "assistant", "content": "read.", "tool_calls": [call("a"), call("b")] })),
        last("stop"),
    ];
    let (answer, said) = read(&lines).unwrap();
    assert_eq!((answer.text.as_str(), answer.stop, said.as_str()), ("I read.", StopReason::Calls, "I read."));
    let arguments: Vec<_> = answer.calls.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!(arguments, [r#"{"path":"a"}"#, r#"{"path":"b"}"#]);
    assert_ne!(answer.calls[0].id, answer.calls[1].id);
    let message = json!({
        "role": "assistant", "content": "I read.", "thinking": "hm", "tool_calls": [call("a"), call("b")],
    });
    assert_eq!(answer.verbatim["message"], message);
    assert_eq!((answer.usage.input_tokens, answer.usage.output_tokens), (26, 9));
}

#[test]
fn ends() {
    assert_eq!(read(&[last("stop")]).unwrap().0.stop, StopReason::Answered);
    assert_eq!(read(&[last("length")]).unwrap().0.stop, StopReason::Length);
    assert!(matches!(read(&[line(json!({ "content": "half" }))]), Err(Fault::Cut(_))));
    assert!(matches!(read(&[json!({ "error": "model runner has stopped" })]), Err(Fault::Reported(_))));
    assert!(matches!(read(&[json!({ "choices": [] })]), Err(Fault::Malformed(_))));
}
