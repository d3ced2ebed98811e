//! A whole channel in one file: a topic of [ntfy](https://docs.ntfy.sh), 2.16 or newer.
//!
//!     [channels.phone]
//!     kind = "ntfy"
//!     key_env = "NTFY_TOKEN"
//!     workspace = "/home/me/project"
//!     base_url = "https://ntfy.example.org/my-topic"
//!
//! The topic is the conversation and the person: ntfy vouches for no sender, so the topic's access list says
//! who may write. Messages come as server-sent events, or over a WebSocket; answers are published and
//! updated with `PUT`. Questions are answered in words (`/approve ID`), because nothing here makes buttons.
//! The daemon has this kind in builds for tests only; `crates/channels/src/kinds.rs` has its lines.

use crate::{
    Arrival, Call, Channel, Command, Conversation, Event, Failure, Kind, Listener, Message, News, Opening,
    Post, Reaction, Reply, Sender, StreamKind, Us, kinds::KeyPlace, markup,
};
use serde::Deserialize;
use std::sync::Arc;

/// The channel, as the table of kinds has it.
pub(crate) const KIND: Kind = Kind {
    name: "ntfy",
    url: None,
    methods: &["PUT", "GET"],
    key: KeyPlace::Header("authorization", "Bearer "),
    also: &[],
    is_inbound: false,
    channel: || Arc::new(Ntfy(StreamKind::Events)),
};

/// The same over a WebSocket.
pub(crate) const OVER_WEBSOCKET: Kind = Kind {
    name: "ntfy_websocket",
    methods: &["PUT", "WEBSOCKET"],
    channel: || Arc::new(Ntfy(StreamKind::WebSocket)),
    ..KIND
};

/// The tag of Bailey's own messages, which come back as everything does.
const OURS: &str = "bailey";
/// The server cuts messages above 4,096 bytes.
const PAGE_CHARS_MAX: usize = 900;

/// The codec, and how it listens.
#[derive(Debug, Clone, Copy)]
pub struct Ntfy(pub StreamKind);

/// A message, of whatever event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Published {
    id: String,
    event: String,
    topic: String,
    message: String,
    tags: Vec<String>,
}

struct Listening {
    stream: StreamKind,
    cursor: Option<String>,
}

impl Listener for Listening {
    fn hear(&mut self, event: Event<'_>) -> Result<Reaction, Failure> {
        match event {
            Event::Begun => {
                let path = if self.stream == StreamKind::Events { "/sse" } else { "/ws" };
                let since = self.cursor.as_ref().map_or(String::new(), |id| format!("?since={id}"));
                Ok(Command::Open(Opening::new(self.stream, format!("{path}{since}"))).into())
            }
            Event::Said(message) => Ok(news(&message.data).into()),
            Event::Ended(end) => Err(end.into()),
            _ => Ok(Reaction::default()),
        }
    }
}

/// The news of an event. One that cannot be read is passed over.
fn news(data: &str) -> News {
    let Ok(published) = serde_json::from_str::<Published>(data) else { return News::default() };
    let Published { id, event, topic, message, tags } = published;
    if event != "message" || !is_name(&id) || !is_name(&topic) {
        return News::default();
    }
    let from = Sender { id: topic.clone(), name: topic.clone() };
    let said = Message::to_us(format!("{topic}:{id}"), Conversation(topic), from, message);
    let said = Some(Arrival::Message(said)).filter(|_| tags.iter().all(|tag| tag != OURS));
    News { cursor: Some(id), arrivals: said.into_iter().collect() }
}

/// Whether a text is a name of the server's: it stands in paths.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=64).contains(&text.len()) && text.bytes().all(is_plain)
}

fn put(path: String, post: &Post) -> Call {
    let header = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let headers = [("content-type", "text/markdown"), ("x-tags", OURS)].map(header).into();
    Call { headers, ..Call::new("PUT", path, post.text.clone()) }
}

impl Channel for Ntfy {
    fn listen(&self, _: &Us, cursor: Option<&str>) -> Box<dyn Listener> {
        Box::new(Listening { stream: self.0, cursor: cursor.map(str::to_owned) })
    }

    fn pages(&self, markdown: &str) -> Vec<String> {
        let characters: Vec<char> = markdown.chars().collect();
        characters.chunks(PAGE_CHARS_MAX).map(|page| markup::tame(&page.iter().collect::<String>())).collect()
    }

    fn plain(&self, text: &str) -> String {
        markup::escaped(text)
    }

    fn send(&self, _: &Conversation, post: &Post) -> Call {
        put(String::new(), post)
    }

    fn edit(&self, _: &Conversation, message: &str, post: &Post) -> Call {
        put(format!("/{message}"), post)
    }

    fn sent(&self, reply: &Reply) -> Result<String, Failure> {
        let why = format!("the server answered {}", reply.status);
        match (reply.status, serde_json::from_slice::<Published>(&reply.body)) {
            (200, Ok(published)) if is_name(&published.id) => Ok(published.id),
            (401 | 403, _) => Err(Failure::Key(why)),
            (429 | 500.., _) => Err(Failure::Again(why)),
            _ => Err(Failure::Refused(why)),
        }
    }
}
