//! Replies of the test kit's server on every wire, read at every place where a network may split them.

use crate::bench::codec;
use bailey_kernel::{Completion, Delta, Provider as _, StopReason};
use bailey_llm::Wire;
use bailey_testkit::{Message, ModelServer, Reply};
use serde_json::{Value, json};
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

/// What the server sends for this request, without HTTP's own framing.
fn body(server: &ModelServer, path: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.base_url().trim_start_matches("http://")).unwrap();
    write!(stream, "POST {path} HTTP/1.1\r\ncontent-length: 2\r\n\r\n{{}}").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut raw = Vec::new();
    stream.read_to_end(&mut raw).unwrap();
    let mut rest = String::from_utf8(raw).unwrap().split_once("\r\n\r\n").unwrap().1.to_owned();
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        body.push_str(&after[..size]);
        rest = after[size + 2..].to_owned();
    }
    body.into_bytes()
}

fn read(wire: Wire, pieces: &[&[u8]]) -> (Completion, String) {
    let mut decoder = codec("test", wire, "http://127.0.0.1").decoder();
    decoder.head(200, &[]);
    let mut said = String::new();
    for piece in pieces {
        for delta in decoder.push(piece) {
            if let Delta::Text(text) = delta {
                said.push_str(&text);
            }
        }
    }
    (decoder.end().unwrap(), said)
}

#[test]
fn a_reply_split_anywhere_is_the_same_reply() {
    let calls = Message::calls([
        ("c1", "fs_read", json!({ "path": "a.txt" })),
        ("c2", "fs_read", json!({ "path": "ä \"b\"\n" })),
    ]);
    let message = Message { text: "Ich sehe näch — “so”.".into(), ..calls.costs(120, 30) };
    let server = ModelServer::always(Reply::Message(message.clone())).lenient();
    for wire in Wire::ALL {
        let url = codec("test", wire, &server.base_url()).endpoint().url();
        let body = body(&server, url.trim_start_matches(&server.base_url()));
        let (whole, said) = read(wire, &[&body]);
        assert_eq!(
            (whole.text.as_str(), said.as_str()),
            (message.text.as_str(), message.text.as_str()),
            "{wire:?}"
        );
        assert_eq!(
            (whole.stop, whole.usage.input_tokens, whole.usage.output_tokens),
            (StopReason::Calls, 120, 30),
            "{wire:?}"
        );
        for (call, sent) in whole.calls.iter().zip(&message.calls) {
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
            assert_eq!(
                (&call.id.0, &call.name, &arguments),
                (&sent.id, &sent.name, &sent.arguments),
                "{wire:?}"
            );
        }
        assert_eq!(whole.calls.len(), 2);
        for place in 0..=body.len() {
            let (first, second) = body.split_at(place);
            assert_eq!(read(wire, &[first, second]), (whole.clone(), said.clone()), "{wire:?} at {place}");
        }
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(read(wire, &bytes), (whole, said), "{wire:?} byte by byte");
    }
}

#[test]
fn a_reply_cut_anywhere_is_no_reply() {
    let server = ModelServer::always(Reply::text("I read it.")).lenient();
    for wire in Wire::ALL {
        let url = codec("test", wire, &server.base_url()).endpoint().url();
        let body = body(&server, url.trim_start_matches(&server.base_url()));
        // What ends a reply is in its last events; before them every cut shows.
        let last = body.windows(12).rposition(|window| window.starts_with(b"it.")).unwrap();
        for place in 0..last {
            let mut decoder = codec("test", wire, "http://127.0.0.1").decoder();
            decoder.head(200, &[]);
            decoder.push(&body[..place]);
            let error = decoder.end().unwrap_err();
            assert!(error.kind.is_passing(), "{wire:?} at {place}: {error}");
        }
    }
}

#[test]
fn white_space_before_an_answer_may_come_in_a_piece_of_its_own() {
    // An event that came after a blank was read when the network cut there, and passed over when it did not.
    for body in [" data: {\"choices\": []}\n\n", "\n\n{\"choices\": [\x01", "\r\n\t{}", "  "] {
        for wire in Wire::ALL {
            let mut decoder = codec("provider", wire, "http://127.0.0.1").decoder();
            decoder.head(200, &[]);
            let deltas: Vec<Delta> = body.bytes().flat_map(|byte| decoder.push(&[byte])).collect();
            let mut whole = codec("provider", wire, "http://127.0.0.1").decoder();
            whole.head(200, &[]);
            assert_eq!(whole.push(body.as_bytes()), deltas, "{wire:?} {body:?}");
            assert_eq!(whole.end(), decoder.end(), "{wire:?} {body:?}");
        }
    }
}
