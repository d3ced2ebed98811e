use super::{Call, CallResult, Heard, Said, Turn, Turns};
use crate::{Endpoint, Wire};
use bailey_kernel::{Answer, Stop};
use bailey_protocol::{CallId, Image, ToolCall, Usage};
use serde_json::json;

fn call(id: &str, name: &str) -> ToolCall {
    ToolCall { id: CallId(id.into()), name: name.into(), arguments: "{}".into() }
}

fn answer(text: &str, calls: &[ToolCall], wire: Wire) -> Answer {
    let verbatim = json!({ "wire": wire.name(), "content": [] });
    let (stop, usage) = (Stop::Answered, Usage::default());
    Answer { text: text.into(), calls: calls.to_vec(), stop, usage, cost: None, verbatim }
}

fn result<'a>(id: &str, text: &'a str) -> CallResult<'a> {
    CallResult { id: id.into(), name: "x".into(), ok: true, text }
}

#[test]
fn results_come_before_words_that_came_in_between() {
    let reply = answer("", &[call("a", "x"), call("b", "x")], Wire::Anthropic);
    let mut turns = Turns::default();
    turns.user("go");
    turns.reply(&reply, true, Wire::Anthropic);
    turns.result(&CallId("b".into()), "x", true, "B");
    turns.user("wait");
    turns.result(&CallId("a".into()), "x", true, "A");
    let turns = turns.end();
    assert_eq!(turns[1], Turn::Own(&reply.verbatim));
    let heard = Heard { results: vec![result("b", "B"), result("a", "A")], texts: vec!["wait".into()] };
    assert_eq!(turns[2], Turn::Heard(heard));
}

#[test]
fn another_provider_or_wire_is_told_as_text_and_calls() {
    let reply = answer("hello", &[call("call:1", "fs.read")], Wire::Anthropic);
    for (same_provider, wire) in [(false, Wire::Anthropic), (true, Wire::OpenAiChat)] {
        let mut turns = Turns::default();
        turns.reply(&reply, same_provider, wire);
        turns.result(&CallId("call:1".into()), "fs.read", true, "text");
        let calls = vec![Call { id: "call_1".into(), name: "fs_read".into(), arguments: "{}" }];
        let answered = CallResult { name: "fs_read".into(), ..result("call_1", "text") };
        let heard = Heard { results: vec![answered], texts: vec![] };
        assert_eq!(turns.end(), [Turn::Foreign { text: "hello", calls }, Turn::Heard(heard)]);
    }
}

#[test]
fn identifiers_of_other_models_become_unique() {
    let replies = [
        answer("", &[call("call_0", "x")], Wire::OpenAiChat),
        answer("", &[call("call_0", "x")], Wire::OpenAiChat),
    ];
    let mut turns = Turns::default();
    for reply in &replies {
        turns.reply(reply, false, Wire::Anthropic);
        turns.result(&CallId("call_0".into()), "x", true, "done");
    }
    let ids: Vec<String> = turns
        .end()
        .iter()
        .filter_map(|turn| match turn {
            Turn::Heard(heard) => Some(heard.results[0].id.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["call_0", "call_0_2"]);
}

/// Two identifiers of one reply that another wire writes alike.
#[test]
fn identifiers_of_one_reply_stay_apart() {
    let reply = answer("", &[call("call.1", "x"), call("call:1", "x")], Wire::OpenAiChat);
    let mut turns = Turns::default();
    turns.reply(&reply, false, Wire::Anthropic);
    turns.result(&CallId("call:1".into()), "x", true, "of the second");
    turns.result(&CallId("call.1".into()), "x", true, "of the first");
    let turns = turns.end();
    let [Turn::Foreign { calls, .. }, Turn::Heard(heard)] = turns.as_slice() else { panic!("{turns:?}") };
    assert_eq!(calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["call_1", "call_1_2"]);
    assert_eq!(heard.results, [result("call_1_2", "of the second"), result("call_1", "of the first")]);
}

#[test]
fn what_answers_no_open_call_is_told_as_text() {
    let reply = answer("", &[call("a", "x")], Wire::Anthropic);
    let mut turns = Turns::default();
    turns.reply(&reply, true, Wire::Anthropic);
    turns.result(&CallId("a".into()), "x", true, "waits");
    turns.result(&CallId("a".into()), "x", true, "approved later");
    let Turn::Heard(heard) = &turns.end()[1] else { panic!("no results") };
    assert_eq!(heard.results, [result("a", "waits")]);
    assert_eq!(heard.texts, ["[late result of `x`, call a]\napproved later".into()]);
}

#[test]
fn empty_turns_are_left_out() {
    let reply = answer(" ", &[], Wire::OpenAiChat);
    let mut turns = Turns::default();
    turns.user("  \n");
    turns.reply(&reply, false, Wire::Anthropic);
    assert_eq!(turns.end(), []);
}

/// What each wire writes of a picture with these words, beneath its list of messages.
fn written(wire: Wire, text: &str) -> serde_json::Value {
    let image = Image::of(b"\x89PNG\r\n\x1a\n".to_vec()).unwrap();
    let endpoint = Endpoint {
        provider: "p".into(),
        wire,
        base_url: "http://h".into(),
        model: "m".into(),
        key: None,
        max_tokens: 1,
        window_tokens: None,
        prices: Vec::new(),
        takes_images: true,
    };
    let mut turns = Turns::default();
    turns.said(Said { text: text.into(), images: vec![&image] });
    let turns = turns.end();
    let body = match wire {
        Wire::Anthropic => crate::anthropic::body,
        Wire::OpenAiChat => crate::openai::body,
        Wire::OpenAiResponses => crate::responses::body,
        Wire::Gemini => crate::gemini::body,
        Wire::Ollama => crate::ollama::body,
    };
    let mut body = body(&endpoint, "", &turns, &[]);
    let list = ["messages", "input", "contents"].into_iter().find(|list| body.get(list).is_some()).unwrap();
    body[list][0].take()
}

#[test]
fn each_wire_has_its_own_way_to_show_a_picture() {
    let (data, url) = ("iVBORw0KGgo=", "data:image/png;base64,iVBORw0KGgo=");
    let source = json!({ "type": "base64", "media_type": "image/png", "data": data });
    for (wire, image, text) in [
        (
            Wire::Anthropic,
            json!({ "type": "image", "source": source }),
            json!({ "type": "text", "text": "look" }),
        ),
        (
            Wire::OpenAiChat,
            json!({ "type": "image_url", "image_url": { "url": url } }),
            json!({ "type": "text", "text": "look" }),
        ),
        (
            Wire::OpenAiResponses,
            json!({ "type": "input_image", "detail": "auto", "image_url": url }),
            json!({ "type": "input_text", "text": "look" }),
        ),
    ] {
        assert_eq!(written(wire, "look"), json!({ "role": "user", "content": [image, text] }), "{wire:?}");
        assert_eq!(written(wire, " "), json!({ "role": "user", "content": [image] }), "{wire:?}");
    }
    let inline = json!({ "inlineData": { "mimeType": "image/png", "data": data } });
    assert_eq!(
        written(Wire::Gemini, "look"),
        json!({ "role": "user", "parts": [inline, { "text": "look" }] })
    );
    assert_eq!(written(Wire::Ollama, "look"), json!({ "role": "user", "content": "look", "images": [data] }));
}
