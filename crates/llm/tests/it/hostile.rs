//! Bytes that no honest server sends.

use crate::bench::codec;
use bailey_kernel::{Completion, Delta, ModelError, ModelErrorKind, Provider as _};
use bailey_llm::{Wire, decode_all};
use proptest::prelude::*;
use serde_json::json;

const WIRES: [Wire; 5] = Wire::ALL;

/// Pieces of every wire and of none, from which streams are put together.
const PIECES: &[&str] = &[
    r#"data: {"type":"message_start","message":{"usage":{"input_tokens":3}}}"#,
    r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}"#,
    r#"data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f"}}"#,
    r#"data: {"type":"content_block_start","index":2,"content_block":[1]}"#,
    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ä"}}"#,
    r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{"}}"#,
    r#"data: {"type":"content_block_delta","index":18446744073709551615,"delta":7}"#,
    r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":18446744073709551615}}"#,
    r#"data: {"type":"message_stop"}"#,
    r#"data: {"choices":[{"delta":{"content":"b","tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}}]}"#,
    r#"data: {"choices":[{"delta":{"tool_calls":[{"index":9e9,"id":"x"},{"index":-1},7]}}]}"#,
    r#"data: {"choices":[{"delta":{"content":[{"text":"c"},{}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":-1}}"#,
    r#"data: {"choices":[]}"#,
    r#"data: {"error":null}"#,
    r#"data: {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f"}}"#,
    r#"data: {"type":"response.output_item.done","output_index":3,"item":{"type":"message","content":[{"text":"d"},7]}}"#,
    r#"data: {"type":"response.output_text.delta","output_index":1,"delta":"ö"}"#,
    r#"data: {"type":"response.function_call_arguments.delta","output_index":0,"delta":"{"}"#,
    r#"data: {"type":"response.refusal.delta","output_index":18446744073709551615,"delta":"no"}"#,
    r#"data: {"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}"#,
    r#"data: {"candidates":[{"content":{"parts":[{"text":"e"},{"text":"t","thought":true},{"functionCall":{"name":"f"}}]}}]}"#,
    r#"data: {"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"s"},7,{"text":"g"}]},"finishReason":"SAFETY"}]}"#,
    r#"data: {"candidates":[{"content":7}],"usageMetadata":{"promptTokenCount":-1,"cachedContentTokenCount":18446744073709551615}}"#,
    r#"{"message":{"content":"h","thinking":"i","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}},7]},"done":false}"#,
    r#"{"message":{"content":"ü"},"done":true,"done_reason":"length","eval_count":18446744073709551615}"#,
    r#"{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}"#,
    "data: [DONE]",
    "event: ping",
    "data: [[[[[[[[[[",
    "\u{feff}",
    "",
];

const ENDS: &[&str] = &["\n\n", "\n\n", "\n\n", "\r\n\r\n", "\n", ""];

/// What ends a reply on this wire.
fn last(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic => "\n\ndata: {\"type\":\"message_stop\"}\n\n",
        Wire::OpenAiChat => "\n\ndata: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n",
        Wire::OpenAiResponses => "\n\ndata: {\"type\":\"response.completed\",\"response\":{}}\n\n",
        Wire::Gemini => "\n\ndata: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n",
        Wire::Ollama => "\n{\"message\":{},\"done\":true}\n",
    }
}

proptest! {
    #[test]
    fn any_bytes_end_in_an_answer_or_an_error(body in prop::collection::vec(any::<u8>(), 0..300), status in 0u16..700) {
        for wire in WIRES {
            decode_all(wire, status, &[], &body).ok();
        }
    }

    #[test]
    fn chunks_change_nothing_and_deltas_are_the_text(
        pieces in prop::collection::vec((prop::sample::select(PIECES), prop::sample::select(ENDS)), 0..9),
        whole in any::<bool>(),
        chunk in 1usize..40,
    ) {
        let pieces: String = pieces.into_iter().flat_map(|(piece, end)| [piece, end]).collect();
        for wire in WIRES {
            let mut body = pieces.clone();
            if whole {
                body.push_str(last(wire));
            }
            let (all_at_once, _) = read(wire, &body, usize::MAX);
            let (piecewise, said) = read(wire, &body, chunk);
            match (piecewise, all_at_once) {
                (Ok(piecewise), Ok(all_at_once)) => {
                    prop_assert_eq!(&piecewise, &all_at_once);
                    // An event that the end of the stream cut off is read, but nobody hears of it before.
                    prop_assert!(piecewise.text.starts_with(&said));
                    if whole && (wire == Wire::Ollama || !body.trim_start().starts_with('{')) {
                        prop_assert_eq!(said, piecewise.text);
                    }
                }
                (Err(piecewise), Err(all_at_once)) => prop_assert_eq!(piecewise.kind, all_at_once.kind),
                (piecewise, all_at_once) => prop_assert!(false, "{piecewise:?} is not {all_at_once:?}"),
            }
        }
    }
}

/// The answer, and all text that was streamed on the way.
fn read(wire: Wire, body: &str, chunk: usize) -> (Result<Completion, ModelError>, String) {
    let mut decoder = codec("provider", wire, "http://127.0.0.1").decoder();
    decoder.head(200, &[]);
    let mut said = String::new();
    for chunk in body.as_bytes().chunks(chunk) {
        for delta in decoder.push(chunk) {
            if let Delta::Text(text) = delta {
                said.push_str(&text);
            }
        }
    }
    (decoder.end(), said)
}

#[test]
fn an_endless_answer_is_too_large() {
    let events = [b"data: {\"choices\":[]}\n\n: ".as_slice(), &vec![b'x'; 1 << 20], b"\n"].concat();
    let long: String = (0..150_000).map(|n| format!("{n:07}")).collect();
    let line = json!({ "message": { "content": long }, "done": false }).to_string() + "\n";
    for wire in WIRES {
        let piece = if wire == Wire::Ollama { line.as_bytes() } else { &events };
        let mut decoder = codec("provider", wire, "http://127.0.0.1").decoder();
        decoder.head(200, &[]);
        for _ in 0..50 {
            decoder.push(piece);
        }
        let error = decoder.end().unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::TooLarge, "{error}");
    }
    let line = [b"data: ".as_slice(), &vec![b'x'; 9 << 20]].concat();
    let error = decode_all(Wire::OpenAiChat, 200, &[], &line).unwrap_err();
    assert_eq!((error.kind, error.message.contains("8 MiB")), (ModelErrorKind::TooLarge, true));
    let line = [b"{".as_slice(), &vec![b' '; 9 << 20]].concat();
    let error = decode_all(Wire::Ollama, 200, &[], &line).unwrap_err();
    assert_eq!((error.kind, error.message.contains("8 MiB")), (ModelErrorKind::TooLarge, true));
}

#[test]
fn what_is_no_answer_at_all() {
    for (body, kind) in [
        ("", ModelErrorKind::Cut),
        ("  \n", ModelErrorKind::Cut),
        ("<html>Sign in</html>", ModelErrorKind::Malformed),
        ("\u{1f}\u{8b}", ModelErrorKind::Malformed),
        ("{\"a\":1}", ModelErrorKind::Malformed),
        ("{\"choices\":", ModelErrorKind::Cut),
        ("hello", ModelErrorKind::Cut),
        (&"[".repeat(5000), ModelErrorKind::Malformed),
    ] {
        for wire in WIRES {
            let error = decode_all(wire, 200, &[], body.as_bytes()).unwrap_err();
            assert_eq!(error.kind, kind, "{body:?}: {error}");
        }
    }
    let unanswered = codec("acme", Wire::Anthropic, "http://127.0.0.1").decoder().end().unwrap_err();
    assert_eq!(unanswered.kind, ModelErrorKind::Unreachable);
}
