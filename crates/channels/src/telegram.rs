//! Telegram, by the Bot API (core.telegram.org/bots/api): long polling, HTML, buttons, edits.

mod html;
mod update;

use crate::{
    Attachment, Call, Channel, Command, Conversation, Event, Failure, KEY, Kind, Listener, MenuEntry, Post,
    Reaction, Reply, Tap, Upload, Us, kinds::KeyPlace,
};
use bailey_protocol::Digest;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};
use std::{sync::Arc, time::Duration};

/// How long the server waits for something new.
const POLL: Duration = Duration::from_secs(30);
/// How much longer than that an answer may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a file may take.
const FILE_PATIENCE: Duration = Duration::from_secs(120);
/// The most updates of one answer.
const UPDATES_MAX: u32 = 100;
/// The longest pause that a server is granted when it asks for one.
const WAIT_MAX: Duration = Duration::from_secs(3600);
/// The longest description of a command in the menu, in characters.
const MENU_CHARS_MAX: usize = 256;
/// The largest picture that is taken as one; a larger one is sent as a file.
const PHOTO_BYTES_MAX: usize = 10 << 20;
/// The longest text for a person who tapped, in characters.
const TOAST_CHARS_MAX: usize = 200;

/// How long a number is good while nothing comes: Telegram begins anew, anywhere, after a week without any
/// update, and keeps none for longer than a day.
const CURSOR_LASTS: Duration = Duration::from_secs(5 * 24 * 3600);

/// A bot of Telegram.
pub(crate) const KIND: Kind = Kind {
    name: "telegram",
    url: Some("https://api.telegram.org"),
    methods: &["POST", "GET"],
    key: KeyPlace::Path,
    also: &[],
    is_inbound: false,
    channel: || Arc::new(Telegram),
};

/// The codec of the Bot API.
#[derive(Debug, Clone, Copy, Default)]
pub struct Telegram;

/// The wrapping of every answer.
#[derive(Debug, Deserialize)]
struct Wrapped {
    ok: bool,
    /// The result as it is written: a part that cannot be read hides nothing else.
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error_code: u16,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Parameters,
}

#[derive(Debug, Default, Deserialize)]
struct Parameters {
    retry_after: Option<u64>,
}

#[derive(Deserialize)]
struct Me {
    id: i64,
    #[serde(default)]
    username: String,
}

#[derive(Deserialize)]
struct Sent {
    message_id: i64,
}

#[derive(Deserialize)]
struct Located {
    file_path: Option<String>,
}

/// Where something goes.
#[derive(Default, Serialize)]
struct To<'a> {
    chat_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_thread_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<&'a str>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    words: Option<MessageText<'a>>,
}

/// The fields of a request that are about the text of a message.
#[derive(Serialize)]
struct MessageText<'a> {
    text: &'a str,
    parse_mode: &'a str,
    /// No preview of a link: to make one, Telegram asks the link's server, which would tell that server
    /// everything that the model put there.
    link_preview_options: Preview,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_markup: Option<Value>,
}

#[derive(Serialize)]
struct Preview {
    is_disabled: bool,
}

impl Channel for Telegram {
    fn hello(&self) -> Option<Call> {
        Some(call("getMe", json!({})))
    }

    fn greeted(&self, reply: &Reply) -> Result<Us, Failure> {
        let Me { id, username } = result(reply)?;
        Ok(Us { id: id.to_string(), name: username })
    }

    fn listen(&self, us: &Us, cursor: Option<&str>) -> Box<dyn Listener> {
        let cursor = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or_default();
        Box::new(Polling { us: us.clone(), cursor })
    }

    fn cursor_lasts(&self) -> Option<Duration> {
        Some(CURSOR_LASTS)
    }

    fn pages(&self, markdown: &str) -> Vec<String> {
        html::pages(markdown)
    }

    fn plain(&self, text: &str) -> String {
        html::escaped(text)
    }

    fn fixed(&self, text: &str) -> String {
        format!("<pre>{}</pre>", html::escaped(text.trim_end()))
    }

    fn menu(&self, commands: &[MenuEntry]) -> Option<Call> {
        let entry = |entry: &MenuEntry| {
            let what: String = entry.what.chars().take(MENU_CHARS_MAX).collect();
            json!({ "command": entry.name, "description": what })
        };
        let commands: Vec<Value> = commands.iter().map(entry).collect();
        Some(call("setMyCommands", json!({ "commands": commands })))
    }

    /// A private chat has the number of its person.
    fn alone(&self, person: &str) -> Option<Conversation> {
        person.parse::<u64>().ok().map(|id| Conversation(id.to_string()))
    }

    fn send_file(&self, to: &Conversation, file: &Upload) -> Option<Call> {
        let is_photo = file.is_picture && file.bytes.len() <= PHOTO_BYTES_MAX;
        let (method, field) = if is_photo { ("sendPhoto", "photo") } else { ("sendDocument", "document") };
        Some(form(method, &To::of(to), field, file))
    }

    /// A chat, with all of its topics.
    fn counted<'a>(&self, at: &'a Conversation) -> &'a str {
        let (seen, _) = at.parts();
        seen.split_once('/').map_or(seen, |(chat, _)| chat)
    }

    fn send(&self, to: &Conversation, post: &Post) -> Call {
        call("sendMessage", To { words: Some(words(post)), ..To::of(to) })
    }

    fn edit(&self, to: &Conversation, message: &str, post: &Post) -> Call {
        let message_id = Some(message.parse().unwrap_or_default());
        let to = To { message_id, message_thread_id: None, words: Some(words(post)), ..To::of(to) };
        call("editMessageText", to)
    }

    fn sent(&self, reply: &Reply) -> Result<String, Failure> {
        match result::<Sent>(reply) {
            Ok(sent) => Ok(sent.message_id.to_string()),
            // The message says that already.
            Err(Failure::Refused(why)) if why.contains("message is not modified") => Ok(String::new()),
            Err(failure) => Err(failure),
        }
    }

    fn tapped(&self, tap: &Tap, words: &str) -> Option<Call> {
        let words: String = words.chars().take(TOAST_CHARS_MAX).collect();
        Some(call("answerCallbackQuery", json!({ "callback_query_id": tap.id, "text": words })))
    }

    fn busy(&self, to: &Conversation) -> Option<Call> {
        Some(call("sendChatAction", To { action: Some("typing"), ..To::of(to) }))
    }

    fn locate(&self, file: &Attachment) -> Option<Call> {
        Some(call("getFile", json!({ "file_id": file.id })))
    }

    fn located(&self, reply: &Reply, bytes_max: usize) -> Result<Call, Failure> {
        let Located { file_path } = result(reply)?;
        let path = file_path.ok_or_else(|| Failure::Refused("the server does not give it away".into()))?;
        let file = Call::new("GET", format!("/file/bot{KEY}/{path}"), String::new());
        Ok(Call { patience: FILE_PATIENCE, bytes_max, ..file })
    }

    fn fetched(&self, reply: Reply) -> Result<Vec<u8>, Failure> {
        match reply.status {
            200 => Ok(reply.body),
            // Errors are wrapped as all other answers are, and are sometimes a page of a server in between.
            status => Err(match result::<Value>(&reply) {
                Err(failure) => failure,
                Ok(_) => Failure::Again(format!("the server answered {status}")),
            }),
        }
    }
}

fn call(method: &str, body: impl Serialize) -> Call {
    // Strings, numbers and tables always serialise.
    let body = serde_json::to_string(&body).unwrap_or_default();
    Call { patience: PATIENCE, ..Call::new("POST", format!("/bot{KEY}/{method}"), body) }
}

/// A request with a file (RFC 7578).
fn form(method: &str, to: &To<'_>, field: &str, file: &Upload) -> Call {
    // No file holds its own digest.
    let boundary = Digest::of(&file.bytes).to_string();
    let mut body = Vec::with_capacity(file.bytes.len() + 1024);
    let mut part = |disposition: String, content: &[u8]| {
        body.extend_from_slice(
            format!("--{boundary}\r\nContent-Disposition: form-data; {disposition}").as_bytes(),
        );
        body.extend_from_slice(b"\r\n\r\n");
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    };
    part("name=\"chat_id\"".into(), to.chat_id.to_string().as_bytes());
    if let Some(topic) = to.message_thread_id {
        part("name=\"message_thread_id\"".into(), topic.to_string().as_bytes());
    }
    let is_plain = |c: char| !c.is_control() && !"\"\\/".contains(c);
    let name: String = file.name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    part(format!("name=\"{field}\"; filename=\"{name}\""), &file.bytes);
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    let headers = vec![("content-type".to_owned(), format!("multipart/form-data; boundary={boundary}"))];
    Call { headers, patience: FILE_PATIENCE, ..Call::new("POST", format!("/bot{KEY}/{method}"), body) }
}

/// Asks for updates again and again. The cursor is the number of the first update that is wanted: asking for
/// it tells the server to forget the ones before.
struct Polling {
    us: Us,
    cursor: i64,
}

impl Listener for Polling {
    fn hear(&mut self, event: Event<'_>) -> Result<Reaction, Failure> {
        let news = match event {
            Event::Answered(reply) => update::news(&self.us, &mut self.cursor, result(reply)?),
            _ => Default::default(),
        };
        let body = json!({
            "offset": self.cursor,
            "limit": UPDATES_MAX,
            "timeout": POLL.as_secs(),
            "allowed_updates": ["message", "edited_message", "callback_query"],
        });
        let poll = Call { patience: POLL + PATIENCE, ..call("getUpdates", body) };
        Ok(Reaction { news, commands: [Command::Ask(poll)].into() })
    }
}

impl To<'_> {
    /// A conversation is a chat, or `chat/topic`.
    fn of(to: &Conversation) -> Self {
        let (seen, _) = to.parts();
        let (chat, topic) = seen.split_once('/').map_or((seen, None), |(chat, topic)| (chat, Some(topic)));
        let message_thread_id = topic.and_then(|topic| topic.parse().ok());
        Self { chat_id: chat.parse().unwrap_or_default(), message_thread_id, ..Self::default() }
    }
}

fn words(post: &Post) -> MessageText<'_> {
    let row = |button: &crate::Button| json!([{ "text": button.label, "callback_data": button.data }]);
    let rows: Vec<Value> = post.buttons.iter().map(row).collect();
    let reply_markup = (!rows.is_empty()).then(|| json!({ "inline_keyboard": rows }));
    let link_preview_options = Preview { is_disabled: true };
    MessageText { text: &post.text, parse_mode: "HTML", link_preview_options, reply_markup }
}

/// The server's answer, out of its wrapping.
fn result<T: DeserializeOwned>(reply: &Reply) -> Result<T, Failure> {
    // Bytes that are not UTF-8 are replaced, because an update that is refused would come again for ever.
    let Ok(wrapped) = serde_json::from_str::<Wrapped>(&String::from_utf8_lossy(&reply.body)) else {
        return Err(Failure::Again(format!(
            "the server answered {} and nothing that can be read",
            reply.status
        )));
    };
    if wrapped.ok {
        let read = serde_json::from_str(wrapped.result.as_deref().map_or("null", RawValue::get));
        return read.map_err(|_| Failure::Again("the server's answer cannot be read".into()));
    }
    let Wrapped { error_code, description, parameters, .. } = wrapped;
    let why = format!("the server says: {description} ({error_code})");
    Err(match (parameters.retry_after, error_code) {
        (Some(seconds), _) => {
            Failure::Wait(Duration::from_secs(seconds).clamp(Duration::from_secs(1), WAIT_MAX))
        }
        (None, 429 | 500..) => Failure::Again(why),
        (None, 401 | 404) => Failure::Key(why),
        // Another program asks for the same news.
        (None, 409) => Failure::Again(why),
        (None, _) => Failure::Refused(why),
    })
}

#[cfg(test)]
mod tests;
