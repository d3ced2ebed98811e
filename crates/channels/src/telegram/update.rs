//! An update of the Bot API, as an arrival. Each update is read by itself: a malformed one hides no other.

use crate::{Arrival, Attachment, AttachmentKind, Conversation, Message, News, Sender, Tap, Us};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// The longest text that is taken, in characters: Telegram's own limit is 4,096.
const TEXT_CHARS_MAX: usize = 16_384;
/// How many characters of an answered message are repeated.
const QUOTE_CHARS_MAX: usize = 1000;
const NAME_CHARS_MAX: usize = 64;
/// The longest name of a file, in characters, and the longest that the platform gives one, in bytes.
const FILE_NAME_CHARS_MAX: usize = 200;
const FILE_ID_BYTES_MAX: usize = 512;
/// The largest size of a photo that is chosen, in bytes: Bailey takes no larger picture.
const PHOTO_BYTES_MAX: u64 = 3 << 20;
/// The pictures that models may be shown.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];

#[derive(Deserialize)]
struct Numbered {
    update_id: i64,
}

#[derive(Deserialize)]
struct Update {
    message: Option<TelegramMessage>,
    edited_message: Option<TelegramMessage>,
    callback_query: Option<Tapped>,
}

/// A message, as the Bot API has it.
#[derive(Deserialize)]
pub(super) struct TelegramMessage {
    message_id: i64,
    message_thread_id: Option<i64>,
    #[serde(default)]
    is_topic_message: bool,
    from: Option<User>,
    chat: Chat,
    edit_date: Option<i64>,
    text: Option<String>,
    caption: Option<String>,
    reply_to_message: Option<Box<TelegramMessage>>,
    forward_origin: Option<Value>,
    // The form of servers older than version 7.0 of the Bot API.
    forward_date: Option<Value>,
    forward_from: Option<Value>,
    forward_from_chat: Option<Value>,
    forward_sender_name: Option<Value>,
    is_automatic_forward: Option<Value>,
    sender_chat: Option<Value>,
    via_bot: Option<Value>,
    photo: Option<Value>,
    voice: Option<Value>,
    audio: Option<Value>,
    video: Option<Value>,
    video_note: Option<Value>,
    animation: Option<Value>,
    document: Option<Value>,
    sticker: Option<Value>,
    location: Option<Value>,
    contact: Option<Value>,
}

/// A file, or one of the sizes of a photo.
#[derive(Deserialize)]
struct TelegramFile {
    file_id: String,
    #[serde(default)]
    file_name: String,
    #[serde(default)]
    mime_type: String,
    file_size: Option<u64>,
    #[serde(default)]
    width: u64,
    #[serde(default)]
    height: u64,
}

#[derive(Deserialize)]
struct User {
    id: i64,
    #[serde(default)]
    is_bot: bool,
    #[serde(default)]
    first_name: String,
    #[serde(default)]
    last_name: Option<String>,
    username: Option<String>,
}

#[derive(Deserialize)]
struct Chat {
    id: i64,
    #[serde(rename = "type", default)]
    kind: String,
}

#[derive(Deserialize)]
struct Tapped {
    id: String,
    from: User,
    message: Option<TelegramMessage>,
    data: Option<String>,
}

/// The news. They go on after the last update, whether or not it could be read.
pub(super) fn news(us: &Us, cursor: &mut i64, updates: Vec<Box<RawValue>>) -> News {
    let mut news = News::default();
    let first = *cursor;
    for update in updates {
        let Ok(Numbered { update_id: number }) = serde_json::from_str(update.get()) else { continue };
        if number < first {
            continue;
        }
        *cursor = number.saturating_add(1).max(*cursor);
        let Ok(update) = serde_json::from_str::<Update>(update.get()) else { continue };
        news.arrivals.extend(arrival(us, number, update));
    }
    news.cursor = (*cursor > first).then(|| cursor.to_string());
    news
}

fn arrival(us: &Us, number: i64, update: Update) -> Option<Arrival> {
    if let Some(tapped) = update.callback_query {
        let message = tapped.message?;
        return Some(Arrival::Tap(Tap {
            id: tapped.id,
            at: conversation(&message),
            from: sender(&tapped.from),
            data: tapped.data?,
        }));
    }
    let said = update.message.or(update.edited_message)?;
    message(us, number, said).map(Arrival::Message)
}

/// The message of an update with this number.
fn message(us: &Us, number: i64, said: TelegramMessage) -> Option<Message> {
    let from = said.from.as_ref()?;
    // A channel or an anonymous administrator is no known person: Telegram does not say who it is.
    if from.is_bot || said.sender_chat.is_some() {
        return None;
    }
    let at = conversation(&said);
    let answered = said.reply_to_message.as_deref();
    let own = said.text.as_ref().or(said.caption.as_ref()).map(String::as_str).unwrap_or_default();
    // Another bot's messages have the same numbers, and so have the changes of a message within a second.
    let key = match said.edit_date {
        None => format!("{}:{}:{}", us.id, said.chat.id, said.message_id),
        Some(date) => format!("{}:{}:{}:{date}:{number}", us.id, said.chat.id, said.message_id),
    };
    let names_us = us.is_named_in(own);
    let answers_us = answered.and_then(|it| it.from.as_ref()).is_some_and(|it| it.id.to_string() == us.id);
    let is_to_us = said.chat.kind == "private" || names_us || answers_us;
    let mut text: String = own.chars().take(TEXT_CHARS_MAX).collect();
    let files = files(&said);
    // A live location is changed again and again.
    if said.edit_date.is_some() && text.trim().is_empty() && files.is_empty() {
        return None;
    }
    if said.edit_date.is_some() && !text.trim().is_empty() {
        text = format!("(I changed what I wrote.) {text}");
    }
    // All messages of a topic answer the topic's opening message.
    let answered =
        answered.filter(|it| Some(it.message_id) != said.message_thread_id || !said.is_topic_message);
    // A command stays a command when it answers a message.
    let answered = answered.filter(|_| !own.starts_with('/'));
    // An inline bot's text is the bot's, no matter who chose it.
    let mut is_quoted = is_passed_on(&said);
    if let Some((answered, quoted)) =
        answered.and_then(|it| Some((it, it.text.as_ref().or(it.caption.as_ref())?)))
    {
        // Words of a third person come in with the answer. Our words are of this conversation. Words that the
        // person passed on from others are not their own.
        let is_of = |id: &str| {
            answered.from.as_ref().is_some_and(|it| it.id.to_string() == id) && answered.sender_chat.is_none()
        };
        is_quoted |= !is_of(&us.id) && (!is_of(&from.id.to_string()) || is_passed_on(answered));
        let quoted: String = quoted.chars().take(QUOTE_CHARS_MAX).collect();
        let lines: Vec<String> = quoted.lines().map(|line| format!("> {line}")).collect();
        text = format!("{}\n\n{text}", lines.join("\n"));
    }
    Some(Message { key, at, from: sender(from), text, is_quoted, is_to_us, files, left_out: left_out(&said) })
}

/// Whether the words of a message are another's than the sender's.
fn is_passed_on(said: &TelegramMessage) -> bool {
    let TelegramMessage { forward_origin, forward_date, forward_from, forward_from_chat, .. } = said;
    let TelegramMessage { forward_sender_name, is_automatic_forward, via_bot, .. } = said;
    let of_others = [forward_origin, forward_date, forward_from, forward_from_chat, forward_sender_name];
    of_others.into_iter().chain([is_automatic_forward, via_bot]).any(Option::is_some)
}

/// The files of a message that can be fetched. A file that cannot be read is left out; a message has one of
/// these.
fn files(said: &TelegramMessage) -> Vec<Attachment> {
    let photo = said.photo.as_ref().and_then(largest).map(|file| (file, AttachmentKind::Picture));
    let voice = read(&said.voice).map(|file| (file, AttachmentKind::Voice));
    // An animation comes as a document, too.
    let others = [&said.document, &said.audio, &said.video, &said.video_note].into_iter().find_map(read);
    let other = others.map(|file| {
        let is_picture = PICTURES.contains(&file.mime_type.as_str()) && said.animation.is_none();
        (file, if is_picture { AttachmentKind::Picture } else { AttachmentKind::File })
    });
    let found = photo
        .or(voice)
        .or(other)
        .filter(|(file, _)| !file.file_id.is_empty() && file.file_id.len() <= FILE_ID_BYTES_MAX);
    found.map(|(file, kind)| attachment(file, kind)).into_iter().collect()
}

fn attachment(file: TelegramFile, kind: AttachmentKind) -> Attachment {
    let name = file.file_name.chars().filter(|c| !c.is_control()).take(FILE_NAME_CHARS_MAX).collect();
    Attachment { id: file.file_id, kind, name, bytes: file.file_size }
}

fn read(file: &Option<Value>) -> Option<TelegramFile> {
    serde_json::from_value(file.clone()?).ok()
}

/// The largest size of a photo that is not too large; the smallest when all are too large.
fn largest(sizes: &Value) -> Option<TelegramFile> {
    let sizes = sizes.as_array()?.iter().filter_map(|size| read(&Some(size.clone())));
    let mut sizes: Vec<TelegramFile> = sizes.collect();
    sizes.sort_by_key(|size| size.width.saturating_mul(size.height));
    let fits = |size: &TelegramFile| size.file_size.is_none_or(|bytes| bytes <= PHOTO_BYTES_MAX);
    let place = sizes.iter().rposition(fits).unwrap_or_default();
    (place < sizes.len()).then(|| sizes.swap_remove(place))
}

fn left_out(said: &TelegramMessage) -> Vec<String> {
    let kinds = [(&said.sticker, "a sticker"), (&said.location, "a place"), (&said.contact, "a contact")];
    kinds.into_iter().filter(|(is_there, _)| is_there.is_some()).map(|(_, name)| name.to_owned()).collect()
}

/// A topic is a conversation of its own; a thread of answers in a group without topics is not.
fn conversation(said: &TelegramMessage) -> Conversation {
    match said.message_thread_id.filter(|_| said.is_topic_message) {
        Some(topic) => Conversation(format!("{}/{topic}", said.chat.id)),
        None => Conversation(said.chat.id.to_string()),
    }
}

fn sender(user: &User) -> Sender {
    let last = user.last_name.as_deref().unwrap_or_default();
    let called = format!("{} {last}", user.first_name);
    let called = match called.trim() {
        "" => user.username.as_deref().unwrap_or("somebody"),
        called => called,
    };
    // The name stands in lines for people, who must be able to trust where it ends.
    let plain = called.chars().filter(|c| c.is_alphanumeric() || " .-_'".contains(*c));
    let name: String = plain.take(NAME_CHARS_MAX).collect();
    Sender { id: user.id.to_string(), name: if name.trim().is_empty() { "somebody".into() } else { name } }
}
