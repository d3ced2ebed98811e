use super::{CallResult, ForeignCall, GO_ON, ModelInput, NO_RESULT, PromptText, Turn, Turns};
use crate::{Endpoint, Wire};
use bailey_kernel::{Completion, StopReason};
use bailey_protocol::{CallId, Image, ToolCall, ToolSpec, Usage};
use serde_json::{Value, json};
use std::{borrow::Cow, collections::BTreeSet};

fn call(id: &str, name: &str) -> ToolCall {
    ToolCall { id: CallId(id.into()), name: name.into(), arguments: "{}".into() }
}

fn answer(text: &str, calls: &[ToolCall], wire: Wire) -> Completion {
    let verbatim = json!({ "wire": wire.name(), "content": [] });
    let (stop, usage) = (StopReason::Answered, Usage::default());
    Completion { text: text.into(), calls: calls.to_vec(), stop, usage, cost: None, verbatim }
}

fn result<'a>(id: &str, text: &'a str) -> CallResult<'a> {
    CallResult { id: id.into(), name: "x".into(), ok: true, text: text.into() }
}

/// The turn before a reply with which a conversation would begin.
fn begun<'a>() -> Turn<'a> {
    Turn::Heard(ModelInput { results: vec![], texts: vec![GO_ON.into()] })
}

#[test]
fn results_stand_in_the_order_of_their_calls_and_before_words_that_came_in_between() {
    let mut reply = answer("", &[call("a", "x"), call("b", "x")], Wire::Anthropic);
    reply.verbatim = json!({ "wire": "anthropic", "content": [
        { "type": "tool_use", "id": "a", "name": "x", "input": {} },
        { "type": "tool_use", "id": "b", "name": "x", "input": {} },
    ] });
    let mut turns = Turns::default();
    turns.user("go");
    turns.reply(&reply, true, Wire::Anthropic);
    turns.result(&CallId("b".into()), "x", true, "B");
    turns.user("wait");
    turns.result(&CallId("a".into()), "x", true, "A");
    let turns = turns.end();
    assert_eq!(turns[1], Turn::Own(Cow::Borrowed(&reply.verbatim)));
    let heard = ModelInput { results: vec![result("a", "A"), result("b", "B")], texts: vec!["wait".into()] };
    assert_eq!(turns[2], Turn::Heard(heard));
}

#[test]
fn another_provider_or_wire_is_told_as_text_and_calls() {
    let reply = answer("hello", &[call("call:1", "fs.read")], Wire::Anthropic);
    for (same_provider, wire) in [(false, Wire::Anthropic), (true, Wire::OpenAiChat)] {
        let mut turns = Turns::default();
        turns.reply(&reply, same_provider, wire);
        turns.result(&CallId("call:1".into()), "fs.read", true, "text");
        let turns = turns.end();
        let [(id, _)] = sent(wire, &turns).try_into().unwrap();
        let calls = vec![ForeignCall { id: id.clone(), name: "fs_read".into(), arguments: "{}" }];
        let answered = CallResult { name: "fs_read".into(), ..result(&id, "text") };
        let heard = ModelInput { results: vec![answered], texts: vec![] };
        assert_eq!(turns, [begun(), Turn::Foreign { text: "hello", calls }, Turn::Heard(heard)]);
        // The only identifiers that Mistral takes; OpenAI takes none of more than 40 characters.
        assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    }
}

/// The calls of the model's turns, as they are sent: identifier and name.
fn sent(wire: Wire, turns: &[Turn<'_>]) -> Vec<(String, String)> {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let mut sent = Vec::new();
    for turn in turns {
        match turn {
            Turn::Own(verbatim) => sent.extend(wire.calls(verbatim).map(|call| match wire {
                Wire::OpenAiChat | Wire::Ollama => (text(call, "id"), text(&call["function"], "name")),
                Wire::OpenAiResponses => (text(call, "call_id"), text(call, "name")),
                _ => (text(call, "id"), text(call, "name")),
            })),
            Turn::Foreign { calls, .. } => {
                sent.extend(calls.iter().map(|call| (call.id.clone(), call.name.clone())))
            }
            Turn::Heard(_) => {}
        }
    }
    sent
}

/// A reply of two calls as each wire keeps it.
fn kept(wire: Wire, ids: [&str; 2], names: [&str; 2]) -> Completion {
    let calls = [0, 1].map(|place| match wire {
        Wire::Anthropic => json!({ "type": "tool_use", "id": ids[place], "name": names[place], "input": {} }),
        Wire::OpenAiChat | Wire::Ollama => {
            json!({ "id": ids[place], "function": { "name": names[place], "arguments": {} } })
        }
        Wire::OpenAiResponses => {
            json!({ "type": "function_call", "id": "fc_0", "call_id": ids[place], "name": names[place] })
        }
        Wire::Gemini => json!({ "functionCall": { "id": ids[place], "name": names[place], "args": {} } }),
    });
    let verbatim = match wire {
        Wire::Anthropic => {
            json!({ "wire": wire.name(), "content": [{ "type": "thinking" }, calls[0], calls[1]] })
        }
        Wire::OpenAiChat | Wire::Ollama => {
            json!({ "wire": wire.name(), "message": { "role": "assistant", "tool_calls": calls } })
        }
        Wire::OpenAiResponses => {
            json!({ "wire": wire.name(), "items": [{ "type": "reasoning" }, calls[0], calls[1]] })
        }
        Wire::Gemini => {
            json!({ "wire": wire.name(), "content": { "parts": [{ "text": "" }, calls[0], calls[1]] } })
        }
    };
    let mut distinct = ids.map(str::to_owned);
    if distinct[0] == distinct[1] {
        // As the decoder gives calls of one reply an identifier each.
        distinct[1].push_str("_2");
    }
    let calls = [call(&distinct[0], names[0]), call(&distinct[1], names[1])];
    Completion { verbatim, ..answer("", &calls, wire) }
}

/// Servers number calls anew in each reply, and give two calls one identifier or no identifier.
/// Models make names up. Each call that is sent still has an identifier of its own and a name that
/// every wire takes, and its result has both.
#[test]
fn whatever_came_identifiers_and_names_are_sent_that_every_server_takes() {
    let names = ["command_run<|channel|>commentary", ""];
    for wire in Wire::ALL {
        for own in [true, false] {
            let replies = [["call_0", "call_0"], ["call_0", "functions.x:0"], ["", "call_0"]]
                .map(|ids| kept(wire, ids, names));
            let mut turns = Turns::default();
            for reply in &replies {
                turns.reply(reply, own, wire);
                for call in reply.calls.iter().rev() {
                    turns.result(&call.id, &call.name, true, "done");
                }
            }
            let turns = turns.end();
            let sent = sent(wire, &turns);
            let ids: BTreeSet<&str> = sent.iter().map(|(id, _)| id.as_str()).collect();
            assert_eq!((ids.len(), ids.contains("")), (6, false), "{wire:?} {own}: {sent:?}");
            assert!(
                sent.iter().all(|(_, name)| *name == ToolSpec::wire_name(name) && !name.is_empty()),
                "{wire:?}: {sent:?}"
            );
            let results = turns.iter().flat_map(|turn| match turn {
                Turn::Heard(heard) => heard.results.as_slice(),
                _ => &[],
            });
            let answered: Vec<(String, String)> =
                results.map(|result| (result.id.clone(), result.name.clone())).collect();
            assert_eq!(answered, sent, "{wire:?} {own}");
        }
    }
}

/// A model's own identifiers go back as they came, but where its server was seen to take short ones only.
#[test]
fn own_identifiers_stay_unless_the_server_takes_short_ones_only() {
    let reply = kept(Wire::OpenAiChat, ["6f1c1f4e-uuid", "abcdefgh9"], ["x", "y"]);
    for (makes_ids, kept) in [(false, [true, true]), (true, [false, true])] {
        let mut turns = Turns { makes_ids, ..Turns::default() };
        turns.reply(&reply, true, Wire::OpenAiChat);
        let sent = sent(Wire::OpenAiChat, &turns.end());
        let is_kept = [0, 1].map(|place| sent[place].0 == reply.calls[place].id.0);
        assert_eq!(is_kept, kept, "{sent:?}");
    }
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
    let [_, Turn::Foreign { calls, .. }, Turn::Heard(heard)] = turns.as_slice() else { panic!("{turns:?}") };
    assert_ne!(calls[1].id, calls[0].id);
    let expected = [result(&calls[0].id, "of the first"), result(&calls[1].id, "of the second")];
    assert_eq!(heard.results, expected);
}

#[test]
fn what_answers_no_open_call_is_told_as_text_and_a_call_without_a_result_is_answered() {
    let reply = answer("", &[call("a", "fs.read"), call("b", "x")], Wire::OpenAiChat);
    let mut turns = Turns::default();
    turns.reply(&reply, true, Wire::Anthropic);
    turns.result(&CallId("a".into()), "x", true, "waits");
    turns.result(&CallId("a".into()), "fs.read", true, "approved later");
    let Turn::Heard(heard) = &turns.end()[2] else { panic!("no results") };
    assert_eq!((heard.results[0].text.as_ref(), heard.results[0].ok), ("waits", true));
    assert_eq!((heard.results[1].text.as_ref(), heard.results[1].ok), (NO_RESULT, false));
    assert_eq!(heard.texts, ["[late result of `fs_read`, call a]\napproved later".into()]);
}

/// Where replies meet, or nothing was said, words stand between: strict servers want turns that alternate.
#[test]
fn turns_alternate_and_begin_and_end_with_the_user() {
    let [said, empty, called] = [("well", vec![]), (" ", vec![]), ("", vec![call("a", "x")])]
        .map(|(text, calls)| answer(text, &calls, Wire::OpenAiChat));
    let foreign = |text| Turn::Foreign { text, calls: vec![] };
    let of = |replies: &[&Completion], words: &str| -> Vec<bool> {
        let mut turns = Turns::default();
        for (place, reply) in replies.iter().enumerate() {
            words
                .get(place..=place)
                .filter(|word| *word == "u")
                .into_iter()
                .for_each(|word| turns.user(word));
            turns.reply(reply, false, Wire::Anthropic);
        }
        turns.end().iter().map(|turn| matches!(turn, Turn::Heard(_))).collect()
    };
    assert_eq!(of(&[&said, &said], "--"), [true, false, true, false, true]);
    assert_eq!(of(&[&said, &empty, &called], "uuu"), [true, false, true, false, true]);
    let mut turns = Turns::default();
    turns.user("  \n");
    turns.reply(&empty, false, Wire::Anthropic);
    assert_eq!(turns.end(), []);
    let mut turns = Turns::default();
    turns.user("one");
    turns.reply(&empty, false, Wire::Anthropic);
    turns.user("two");
    turns.reply(&said, false, Wire::Anthropic);
    turns.user("three");
    let texts = |texts: &[&str]| {
        Turn::Heard(ModelInput { results: vec![], texts: texts.iter().map(|text| (*text).into()).collect() })
    };
    assert_eq!(turns.end(), [texts(&["one", "two"]), foreign("well"), texts(&["three"])]);
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
        parameters: std::collections::BTreeMap::new(),
    };
    let mut turns = Turns::default();
    turns.said(PromptText { text: text.into(), images: vec![&image] });
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
