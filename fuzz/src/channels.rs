//! What a chat platform says, and what a model's words become there.

use bailey_channels::{Arrival, Channel as _, Reply, Telegram, Us, Webhook};

/// The longest message of Telegram's, in UTF-16 units.
const UNITS_MAX: usize = 4096;

/// A server's answer to a poll. What is read of it has lines that end where they seem to.
pub(crate) fn telegram(data: &[u8]) {
    let us = Us { id: "99".into(), name: "bailey_bot".into() };
    let reply = Reply { status: 200, body: data.to_vec() };
    if let Ok(call) = Telegram.located(&reply, 1) {
        assert!(call.path.starts_with("/file/bot{key}/") && call.fetches == Some(1), "{call:?}");
    }
    let Ok(news) = Telegram.news(&us, 0, &reply) else { return };
    for arrival in news.arrivals {
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
    let Ok(news) = Webhook.news(&Us::default(), 0, &Reply { status: 200, body: data.to_vec() }) else {
        return;
    };
    assert_eq!(news.arrivals.len(), 1);
    for arrival in news.arrivals {
        let (from, at) = match arrival {
            Arrival::Message(message) => (message.from, message.at),
            Arrival::Tap(tap) => (tap.from, tap.at),
        };
        for name in [from.id, from.name, at.0] {
            assert!(!name.is_empty() && !name.chars().any(char::is_control), "{name:?}");
        }
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
