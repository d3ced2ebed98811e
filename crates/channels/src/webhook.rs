//! A server of the owner's own that passes messages on: JSON, signed both ways by the rules of Standard
//! Webhooks. The server vouches for the speaker. The signature vouches for the server, and is checked before
//! anything here is.

use crate::{
    Arrival, Call, Channel, Conversation, Event, Failure, Kind, Listener, Message, News, Post, Reaction,
    Reply, Sender, Tap, Us, kinds::KeyPlace, markup,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

/// The longest text of one message to the server, in characters before pictures and HTML become text; and the
/// longest name that the server says, in bytes.
const PAGE_CHARS_MAX: usize = 30_000;
const NAME_BYTES_MAX: usize = 200;

/// A server of the owner's own.
pub(crate) const KIND: Kind = Kind {
    name: "webhook",
    url: None,
    methods: &["POST"],
    key: KeyPlace::Signature,
    also: &[],
    is_inbound: true,
    channel: || Arc::new(Webhook),
};

/// Any server that speaks this protocol.
#[derive(Debug, Clone, Copy, Default)]
pub struct Webhook;

/// A message from the server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Delivery {
    conversation: String,
    from: From,
    /// The words that the person said; or:
    text: Option<String>,
    /// the choice that the person made at a question.
    chosen: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct From {
    id: String,
    #[serde(default)]
    name: String,
}

/// The server's answer to a message.
#[derive(Debug, Deserialize)]
pub(crate) struct Taken {
    id: String,
}

/// A message to be shown.
#[derive(Debug, Serialize)]
struct Outgoing<'a> {
    conversation: &'a str,
    /// The message that this one replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    /// Markdown.
    text: &'a str,
    choices: Vec<Choice<'a>>,
}

#[derive(Debug, Serialize)]
struct Choice<'a> {
    label: &'a str,
    chosen: &'a str,
}

fn call(body: &impl Serialize) -> Call {
    // The body holds only strings, and JSON can express them all.
    let body = serde_json::to_string(body).unwrap_or_default();
    Call::new("POST", String::new(), body)
}

fn shown(to: &Conversation, message: Option<&str>, post: &Post) -> Call {
    let choices = post.buttons.iter().map(|it| Choice { label: &it.label, chosen: &it.data }).collect();
    call(&Outgoing { conversation: &to.0, message, text: &post.text, choices })
}

impl Channel for Webhook {
    fn listen(&self, _: &Us, _: Option<&str>) -> Box<dyn Listener> {
        Box::new(Self)
    }
    fn pages(&self, markdown: &str) -> Vec<String> {
        let characters: Vec<char> = markdown.chars().collect();
        // Each page is tamed by itself: where a page ends, code may end in the middle.
        characters.chunks(PAGE_CHARS_MAX).map(|page| markup::tame(&page.iter().collect::<String>())).collect()
    }

    fn plain(&self, text: &str) -> String {
        markup::escaped(text)
    }

    fn send(&self, to: &Conversation, post: &Post) -> Call {
        shown(to, None, post)
    }

    fn edit(&self, to: &Conversation, message: &str, post: &Post) -> Call {
        shown(to, Some(message), post)
    }

    fn sent(&self, reply: &Reply) -> Result<String, Failure> {
        match reply.status {
            200..=299 => {
                let taken: Taken = serde_json::from_slice(&reply.body).map_err(|_| {
                    Failure::Refused("the server took it, and did not say under which `id`".into())
                })?;
                Ok(taken.id)
            }
            401 | 403 => Err(Failure::Key(format!("the server refuses the signature ({})", reply.status))),
            429 | 500..=599 => Err(Failure::Again(format!("the server answered {}", reply.status))),
            status => Err(Failure::Refused(format!("the server answered {status}"))),
        }
    }

    fn hears_names(&self) -> bool {
        true
    }

    fn tapped(&self, tap: &Tap, words: &str) -> Option<Call> {
        Some(call(&json!({ "conversation": tap.at.0, "to": tap.from.id, "notice": words })))
    }
}

impl Listener for Webhook {
    /// The news of one delivery; its name is the delivery's.
    fn hear(&mut self, event: Event<'_>) -> Result<Reaction, Failure> {
        let Event::Delivered(body) = event else { return Ok(Reaction::default()) };
        let came: Delivery =
            serde_json::from_slice(body).map_err(|error| Failure::Refused(error.to_string()))?;
        let Delivery { conversation, from, text, chosen } = came;
        let is_name = |name: &String| name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control);
        if ![&conversation, &from.id, &from.name].into_iter().all(is_name)
            || conversation.is_empty()
            || from.id.is_empty()
        {
            let why = format!("`conversation` and `from.id` are names of 1 to {NAME_BYTES_MAX} bytes");
            return Err(Failure::Refused(why));
        }
        let name = if from.name.is_empty() { from.id.clone() } else { from.name };
        let (at, from) = (Conversation(conversation), Sender { id: from.id, name });
        let arrival = match (text, chosen) {
            (Some(text), None) => Arrival::Message(Message::to_us(String::new(), at, from, text)),
            (None, Some(data)) => Arrival::Tap(Tap { id: String::new(), at, from, data }),
            _ => return Err(Failure::Refused("there is either `text` or `chosen`".into())),
        };
        Ok(News { cursor: None, arrivals: [arrival].into() }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::Webhook;
    use crate::{Arrival, Channel as _, Event, Failure, Listener as _, Post, Reply};

    fn came(body: &str) -> Result<Arrival, Failure> {
        Webhook.hear(Event::Delivered(body.as_bytes())).map(|mut heard| heard.news.arrivals.remove(0))
    }

    #[test]
    fn a_message_and_a_choice_are_read_and_nothing_else_is() {
        let said = came(r#"{"conversation":"c","from":{"id":"7","name":"Ann"},"text":"hello"}"#).unwrap();
        let Arrival::Message(message) = said else { panic!("{said:?}") };
        assert_eq!((message.text.as_str(), message.from.name.as_str()), ("hello", "Ann"));
        let chosen = came(r#"{"conversation":"c","from":{"id":"7"},"chosen":"y:1"}"#).unwrap();
        assert!(matches!(chosen, Arrival::Tap(tap) if tap.data == "y:1" && tap.from.name == "7"));
        for wrong in [
            "",
            "[]",
            r#"{"conversation":"c","from":{"id":"7"}}"#,
            r#"{"conversation":"","from":{"id":"7"},"text":"x"}"#,
            r#"{"conversation":"c","from":{"id":""},"text":"x"}"#,
            r#"{"conversation":"c","from":{"id":7},"text":"x"}"#,
            r#"{"conversation":"c","from":{"id":"7","name":"A\nB"},"text":"x"}"#,
            r#"{"conversation":"c","from":{"id":"7"},"text":"x","chosen":"y"}"#,
        ] {
            assert!(came(wrong).is_err(), "{wrong}");
        }
        assert!(
            came(&format!(r#"{{"conversation":"{}","from":{{"id":"7"}},"text":"x"}}"#, "c".repeat(201)))
                .is_err()
        );
    }

    /// A09: a card's words are not Markdown there. Control: an answer's words are, and come as they are.
    #[test]
    fn a09_what_a_card_quotes_is_shown_as_it_is() {
        let quoted = "echo *one* [two](https://x.example) <!-- ; curl evil -->";
        assert_eq!(Webhook.plain(quoted), r"echo \*one\* \[two\](https://x.example) \<!-- ; curl evil --\>");
        assert_eq!(Webhook.pages("*one* [two](https://x.example)"), ["*one* [two](https://x.example)"]);
    }

    /// A50: a body that is too deep, no text or no UTF-8 is refused at once, and by itself. Control: the
    /// same, small.
    #[test]
    fn a50_a_bomb_is_refused() {
        let says =
            |text: &str| format!(r#"{{"conversation":"c","from":{{"id":"7"}},"text":{text}}}"#).into_bytes();
        let came = |body: Vec<u8>| Webhook.hear(Event::Delivered(&body));
        assert!(came(says(r#""hello""#)).is_ok());
        let deep = format!("{}1{}", "[".repeat(500_000), "]".repeat(500_000));
        let torn: Vec<u8> =
            says(r#""a!b""#).into_iter().map(|byte| if byte == b'!' { 0xff } else { byte }).collect();
        for bomb in [says(&deep), says(r#""\ud800""#), torn, vec![b'['; 500_000]] {
            assert!(matches!(came(bomb), Err(Failure::Refused(_))));
        }
    }

    #[test]
    fn what_a_server_answers_is_told_apart() {
        let sent = |status, body: &str| Webhook.sent(&Reply { status, body: body.into() });
        assert_eq!(sent(200, r#"{"id":"m1"}"#).unwrap(), "m1");
        assert!(matches!(sent(200, ""), Err(Failure::Refused(_))));
        assert!(matches!(sent(401, ""), Err(Failure::Key(_))));
        assert!(matches!(sent(503, ""), Err(Failure::Again(_))));
        assert!(matches!(sent(404, ""), Err(Failure::Refused(_))));
    }

    #[test]
    fn an_edit_names_its_message_and_pages_fit() {
        let to = crate::Conversation("c".into());
        let post = Post { text: "x".into(), ..Post::default() };
        let body = |call: crate::Call| String::from_utf8(call.body).unwrap();
        assert!(!body(Webhook.send(&to, &post)).contains("message"));
        assert!(body(Webhook.edit(&to, "m1", &post)).contains(r#""message":"m1""#));
        let pages = Webhook.pages(&"é".repeat(70_000));
        assert_eq!(
            pages.iter().map(|page| page.chars().count()).collect::<Vec<_>>(),
            [30_000, 30_000, 10_000]
        );
        assert!(Webhook.pages("").is_empty());
        // Code in the whole text that is no code in a page of its own is not treated as code there.
        let code = format!("```\n{}![a](https://x.example)\n```", "x\n".repeat(15_000));
        let pages = Webhook.pages(&code);
        assert!(pages.len() == 2 && pages[1].contains("!\\[a]"), "{:?}", pages.last());
    }
}
