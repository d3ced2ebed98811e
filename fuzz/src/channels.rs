//! What a chat platform says, and what a model's words become there.

use bailey_channels::{
    Arrival, Channel as _, Command, Event, Listener as _, Ntfy, Reply, StreamKind, StreamMessage, Telegram,
    Us, Webhook,
};

/// The longest message of Telegram's, in UTF-16 units.
const UNITS_MAX: usize = 4096;

/// A server's answer to a poll. What is read of it has lines that end where they seem to.
pub(crate) fn telegram(data: &[u8]) {
    let us = Us { id: "99".into(), name: "bailey_bot".into() };
    let reply = Reply { status: 200, body: data.to_vec() };
    if let Ok(call) = Telegram.located(&reply, 1) {
        assert!(call.target.starts_with("/file/bot{key}/") && call.bytes_max == 1, "{call:?}");
    }
    let Ok(heard) = Telegram.listen(&us, None).hear(Event::Answered(&reply)) else { return };
    for arrival in heard.news.arrivals {
        let from = match arrival {
            Arrival::Message(message) => {
                for file in &message.files {
                    assert!(!file.id.is_empty() && !file.name.chars().any(char::is_control), "{file:?}");
                }
                message.from
            }
            Arrival::Tap(tap) => tap.from,
        };
        assert!(from.id.parse::<i64>().is_ok(), "{from:?}");
        assert!(!from.name.is_empty() && !from.name.chars().any(char::is_control), "{from:?}");
    }
}

/// What somebody's server brings. Whoever speaks has a name that ends where it seems to.
pub(crate) fn webhook(data: &[u8]) {
    let Ok(heard) = Webhook.hear(Event::Delivered(data)) else { return };
    assert_eq!(heard.news.arrivals.len(), 1);
    for arrival in heard.news.arrivals {
        let (from, at) = match arrival {
            Arrival::Message(message) => (message.from, message.at),
            Arrival::Tap(tap) => (tap.from, tap.at),
        };
        for name in [from.id, from.name, at.0] {
            assert!(!name.is_empty() && !name.chars().any(char::is_control), "{name:?}");
        }
    }
}

/// A message of a topic's stream. The names that the server says stand in the paths of later requests.
pub(crate) fn ntfy(data: &[u8]) {
    let is_name = |name: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        !name.is_empty() && name.bytes().all(is_plain)
    };
    let channel = Ntfy(StreamKind::Events);
    let message = StreamMessage { data: String::from_utf8_lossy(data).into_owned(), ..Default::default() };
    if let Ok(name) = channel.sent(&Reply { status: 200, body: data.to_vec() }) {
        assert!(is_name(&name), "{name:?}");
    }
    let Ok(heard) = channel.listen(&Us::default(), None).hear(Event::Said(&message)) else { return };
    for arrival in heard.news.arrivals {
        let Arrival::Message(message) = arrival else { panic!("{arrival:?}") };
        assert!(is_name(&message.at.0) && is_name(&message.from.id), "{message:?}");
    }
    if let Some(cursor) = heard.news.cursor {
        let begun = channel.listen(&Us::default(), Some(&cursor)).hear(Event::Begun).unwrap();
        let [Command::Open(opening)] = &begun.commands[..] else { panic!("{begun:?}") };
        assert!(is_name(&cursor) && opening.target == format!("/sse?since={cursor}"), "{opening:?}");
    }
}

/// A model's words: pages that the server takes, each whole by itself. As Markdown they hold no tag that
/// would be obeyed outside of code.
pub(crate) fn markup(text: &str) {
    Webhook.pages(text);
    let plain = Webhook.plain(text);
    assert!(!plain.starts_with('<') && !plain.contains("!["), "{plain:?}");
    for page in Telegram.pages(text) {
        assert!(page.encode_utf16().count() <= UNITS_MAX);
        let mut open = Vec::new();
        for tag in page.split('<').skip(1).filter_map(|rest| rest.split_once('>')).map(|(tag, _)| tag) {
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name), "{page:?}"),
                None => open.push(tag.split(' ').next().unwrap_or_default()),
            }
        }
        assert!(open.is_empty(), "{open:?} in {page:?}");
    }
}
