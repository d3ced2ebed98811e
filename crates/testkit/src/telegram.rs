//! A server of the Bot API (core.telegram.org/bots/api) that is as strict as the real one: lengths, HTML,
//! tokens, edits that change nothing, 429. It can fail in the ways that networks do.
#![expect(clippy::indexing_slicing, reason = "parts of tests: a panic is how a test fails")]

use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

/// The bot's key.
pub const TOKEN: &str = "7654321098:AAF-q2Vx8sLrZ0TkWm4YbN6cJdHgEuPiXoQ";
const US: i64 = 999;
const PATIENCE: Duration = Duration::from_secs(60);

/// What goes wrong with the next call of a method.
#[derive(Debug, Clone)]
pub enum Fault {
    /// The connection is cut before anything was done.
    Lost,
    /// It was done, and the answer is lost.
    Unheard,
    /// Too many requests: so many seconds.
    Slow(u64),
    /// 502, with a page in HTML.
    Broken,
    /// 400: the server will never take it.
    Refused,
    /// All that there ever was comes again.
    Again,
    /// Half of a file comes, and then nothing more.
    Stalled,
}

/// A file at the server.
#[derive(Debug, Clone)]
pub struct File {
    /// Where the server says that it is.
    pub path: String,
    /// How large it says that it is.
    pub size: usize,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A message of the bot's.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// Its words, without their HTML.
    pub text: String,
    /// What stands on its buttons, and what each brings.
    pub buttons: Vec<(String, String)>,
    /// How often it was changed.
    pub edits: usize,
    /// The file that it is.
    pub file: Option<Sent>,
}

/// A file that the bot sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Its name.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
    /// Whether it is shown as a picture.
    pub is_photo: bool,
}

#[derive(Default)]
struct State {
    updates: VecDeque<Value>,
    all: Vec<Value>,
    last_update: i64,
    last_message: i64,
    messages: BTreeMap<(i64, i64), Shown>,
    toasts: Vec<(String, String)>,
    files: BTreeMap<String, File>,
    /// What was asked for beneath `/file`, as it was asked for; and how many bytes of files went out.
    asked: Vec<String>,
    sent: usize,
    /// What fails next: a method, words in what is sent, and how.
    faults: Vec<(String, String, Fault)>,
    calls: BTreeMap<String, usize>,
    /// The commands of the menu.
    menu: Vec<(String, String)>,
    /// Whether the key is none any more, and how many messages were refused for it.
    is_locked: bool,
    locked_out: usize,
    wrong: Vec<String>,
    is_over: bool,
}

/// A running server of the Bot API; it stops when dropped.
pub struct Telegram {
    address: SocketAddr,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Telegram {
    /// A server on a loopback socket.
    ///
    /// # Panics
    /// When no socket can be had.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let shared = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if shared.0.lock().unwrap().is_over {
                    return;
                }
                let shared = shared.clone();
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, state }
    }

    /// Where it is, such as `http://127.0.0.1:41234`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Somebody says something in a private chat, or in a group where the chat is another.
    pub fn says(&self, who: i64, name: &str, chat: i64, text: &str) -> i64 {
        self.brings(who, name, chat, &json!({ "text": text }))
    }

    /// The same with more than words: what a message of the API has.
    pub fn brings(&self, who: i64, name: &str, chat: i64, what: &Value) -> i64 {
        let mut state = self.state.0.lock().unwrap();
        state.last_message += 1;
        let id = state.last_message;
        let kind = if chat == who { "private" } else { "supergroup" };
        let mut message = json!({
            "message_id": id, "date": 1, "chat": { "id": chat, "type": kind },
            "from": { "id": who, "is_bot": false, "first_name": name },
        });
        message.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
        state.update(json!({ "message": message }));
        self.state.1.notify_all();
        id
    }

    /// Somebody changes what they said, as often as the platform lets them.
    pub fn edits(&self, who: i64, name: &str, chat: i64, message: i64, text: &str) {
        let mut state = self.state.0.lock().unwrap();
        let date = state.last_update + 100;
        let kind = if chat == who { "private" } else { "supergroup" };
        let message = json!({
            "message_id": message, "date": 1, "edit_date": date, "chat": { "id": chat, "type": kind },
            "from": { "id": who, "is_bot": false, "first_name": name }, "text": text,
        });
        state.update(json!({ "edited_message": message }));
        self.state.1.notify_all();
    }

    /// It counts what happens from this number on, as after a week in which nothing did.
    pub fn counts_from(&self, number: i64) {
        self.state.0.lock().unwrap().last_update = number;
    }

    /// There is a file, under a name of the server's.
    pub fn has(&self, id: &str, path: &str, bytes: &[u8]) {
        let file = File { path: path.into(), size: bytes.len(), bytes: bytes.to_vec() };
        self.has_file(id, file);
    }

    /// The same of one that is not what the server says of it.
    pub fn has_file(&self, id: &str, file: File) {
        self.state.0.lock().unwrap().files.insert(id.into(), file);
    }

    /// Somebody sends a photo, in sizes as the server makes them: the file `id`, and a small one that nobody
    /// has.
    pub fn shows(&self, who: i64, name: &str, chat: i64, id: &str, caption: &str) -> i64 {
        let size = self.state.0.lock().unwrap().files[id].size;
        let photo = json!([
            { "file_id": "thumb", "file_unique_id": "t", "width": 90, "height": 60, "file_size": 900 },
            { "file_id": id, "file_unique_id": "u", "width": 1280, "height": 853, "file_size": size },
        ]);
        self.brings(who, name, chat, &json!({ "photo": photo, "caption": caption }))
    }

    /// What was asked for beneath `/file`.
    pub fn asked(&self) -> Vec<String> {
        self.state.0.lock().unwrap().asked.clone()
    }

    /// How many bytes of files went out.
    pub fn sent(&self) -> usize {
        self.state.0.lock().unwrap().sent
    }

    /// Somebody taps a button of a message: the one with these words.
    pub fn taps(&self, who: i64, name: &str, chat: i64, message: i64, label: &str) {
        let mut state = self.state.0.lock().unwrap();
        let shown = &state.messages[&(chat, message)];
        let data = shown.buttons.iter().find(|(words, _)| words == label).unwrap().1.clone();
        state.tap(who, name, chat, message, &data);
        self.state.1.notify_all();
    }

    /// The same with words of their own.
    pub fn taps_with(&self, who: i64, name: &str, chat: i64, message: i64, data: &str) {
        self.state.0.lock().unwrap().tap(who, name, chat, message, data);
        self.state.1.notify_all();
    }

    /// Lets the next calls of a method go wrong.
    pub fn fail(&self, method: &str, faults: impl IntoIterator<Item = Fault>) {
        self.fail_with(method, "", faults);
    }

    /// The same for calls that have these words in them.
    pub fn fail_with(&self, method: &str, words: &str, faults: impl IntoIterator<Item = Fault>) {
        let faults = faults.into_iter().map(|fault| (method.to_owned(), words.to_owned(), fault));
        self.state.0.lock().unwrap().faults.extend(faults);
    }

    /// From now on the bot's key is none, or is one again. Who waits for news already is let in until some
    /// come.
    pub fn locks(&self, is_locked: bool) {
        self.state.0.lock().unwrap().is_locked = is_locked;
    }

    /// How many messages and changes of them were refused because of the key.
    pub fn locked_out(&self) -> usize {
        self.state.0.lock().unwrap().locked_out
    }

    /// The bot's messages in a chat, in order.
    pub fn shown(&self, chat: i64) -> Vec<(i64, Shown)> {
        let state = self.state.0.lock().unwrap();
        let here = state.messages.iter().filter(|((at, _), _)| *at == chat);
        here.map(|((_, id), shown)| (*id, shown.clone())).collect()
    }

    /// What was said to those who tapped a button.
    pub fn toasts(&self) -> Vec<(String, String)> {
        self.state.0.lock().unwrap().toasts.clone()
    }

    /// What a button of a message brings.
    pub fn data(&self, chat: i64, message: i64, label: &str) -> String {
        let state = self.state.0.lock().unwrap();
        let shown = &state.messages[&(chat, message)];
        shown.buttons.iter().find(|(words, _)| words == label).unwrap().1.clone()
    }

    /// The commands of the menu, each with its description.
    pub fn menu(&self) -> Vec<(String, String)> {
        self.state.0.lock().unwrap().menu.clone()
    }

    /// How often a method was called.
    pub fn calls(&self, method: &str) -> usize {
        self.state.0.lock().unwrap().calls.get(method).copied().unwrap_or_default()
    }

    /// Waits for a message of the bot's.
    pub fn wait(&self, chat: i64, what: &str, is_so: impl Fn(&Shown) -> bool) -> (i64, Shown) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.check();
            if let Some(found) = self.shown(chat).into_iter().rev().find(|(_, shown)| is_so(shown)) {
                return found;
            }
            assert!(
                Instant::now() < deadline,
                "{what} did not come: {:#?} {:?}",
                self.shown(chat),
                self.toasts()
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for a message of the bot's with these words.
    pub fn wait_for(&self, chat: i64, words: &str) -> (i64, Shown) {
        self.wait(chat, words, |shown| shown.text.contains(words))
    }

    /// That nothing came which the real server would refuse.
    pub fn check(&self) {
        let wrong = self.state.0.lock().unwrap().wrong.clone();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

impl Drop for Telegram {
    fn drop(&mut self) {
        self.state.0.lock().unwrap().is_over = true;
        self.state.1.notify_all();
        TcpStream::connect(self.address).ok();
    }
}

impl State {
    fn update(&mut self, mut update: Value) {
        self.last_update += 1;
        update["update_id"] = self.last_update.into();
        self.all.push(update.clone());
        self.updates.push_back(update);
    }

    fn tap(&mut self, who: i64, name: &str, chat: i64, message: i64, data: &str) {
        let id = format!("{}", self.last_update + 5000);
        let from = json!({ "id": US, "is_bot": true, "first_name": "Bailey" });
        let message =
            json!({ "message_id": message, "chat": { "id": chat, "type": "private" }, "from": from });
        let from = json!({ "id": who, "is_bot": false, "first_name": name });
        self.update(
            json!({ "callback_query": { "id": id, "from": from, "message": message, "data": data } }),
        );
    }

    /// What the server answers: a result, or a code and why.
    fn answer(&mut self, method: &str, body: &Value) -> Result<Value, (u16, String)> {
        let bad = |why: &str| Err((400, format!("Bad Request: {why}")));
        match method {
            "getMe" => {
                Ok(json!({ "id": US, "is_bot": true, "first_name": "Bailey", "username": "bailey_bot" }))
            }
            "getFile" => match self.files.get(body["file_id"].as_str().unwrap_or_default()) {
                None => bad("invalid file_id"),
                Some(file) => Ok(json!({
                    "file_id": body["file_id"], "file_unique_id": "u", "file_size": file.size, "file_path": file.path,
                })),
            },
            "sendChatAction" => Ok(true.into()),
            "setMyCommands" => {
                let commands = body["commands"].as_array().cloned().unwrap_or_default();
                let text =
                    |command: &Value, field: &str| command[field].as_str().unwrap_or_default().to_owned();
                self.menu =
                    commands.iter().map(|it| (text(it, "command"), text(it, "description"))).collect();
                let is_name = |name: &str| {
                    let is_plain =
                        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
                    (1..=32).contains(&name.len()) && name.bytes().all(is_plain)
                };
                let fits = |what: &str| (1..=256).contains(&what.chars().count());
                let is_fit = self.menu.iter().all(|(name, what)| is_name(name) && fits(what));
                if self.menu.len() > 100 || !is_fit {
                    return bad("BOT_COMMAND_INVALID");
                }
                Ok(true.into())
            }
            "answerCallbackQuery" => {
                let words = body["text"].as_str().unwrap_or_default();
                if words.chars().count() > 200 {
                    return bad("text is too long");
                }
                self.toasts.push((body["callback_query_id"].as_str().unwrap().into(), words.into()));
                Ok(true.into())
            }
            "sendMessage" | "editMessageText" => {
                let Some(chat) = body["chat_id"].as_i64() else { return bad("chat_id is empty") };
                let text = body["text"].as_str().unwrap_or_default();
                let plain =
                    plain(text).map_err(|why| (400, format!("Bad Request: can't parse entities: {why}")))?;
                if plain.trim().is_empty() {
                    return bad("message text is empty");
                }
                if plain.encode_utf16().count() > 4096 {
                    return bad("message is too long");
                }
                if body["link_preview_options"]["is_disabled"] != true {
                    return bad("a preview was asked for");
                }
                let mut buttons = Vec::new();
                for button in body["reply_markup"]["inline_keyboard"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .flat_map(|row| row.as_array().unwrap())
                {
                    let data = button["callback_data"].as_str().unwrap();
                    if data.is_empty() || data.len() > 64 {
                        return bad("BUTTON_DATA_INVALID");
                    }
                    buttons.push((button["text"].as_str().unwrap().to_owned(), data.to_owned()));
                }
                if method == "sendMessage" {
                    self.last_message += 1;
                    self.messages.insert(
                        (chat, self.last_message),
                        Shown { text: plain, buttons, ..Shown::default() },
                    );
                    return Ok(json!({ "message_id": self.last_message }));
                }
                let Some(id) = body["message_id"].as_i64() else { return bad("message_id is empty") };
                let Some(shown) = self.messages.get_mut(&(chat, id)) else {
                    return bad("message to edit not found");
                };
                if shown.text == plain && shown.buttons == buttons {
                    return bad("message is not modified: specified new message content is the same");
                }
                *shown = Shown { text: plain, buttons, edits: shown.edits + 1, file: None };
                Ok(json!({ "message_id": id }))
            }
            other => Err((404, format!("Not Found: {other}"))),
        }
    }
}

impl State {
    /// Takes a file: a photo of at most 10 MB, or a document of at most 50 MB.
    fn take_file(&mut self, method: &str, form: &Form) -> Result<Value, (u16, String)> {
        let bad = |why: &str| Err((400, format!("Bad Request: {why}")));
        let (field, most) = if method == "sendPhoto" { ("photo", 10 << 20) } else { ("document", 50 << 20) };
        let Some(chat) = form.text("chat_id").and_then(|chat| chat.parse().ok()) else {
            return bad("chat_id is empty");
        };
        let Some((Some(name), bytes)) = form.0.get(field).cloned() else { return bad("there is no file") };
        if bytes.is_empty() || bytes.len() > most {
            return bad("file must be non-empty and not too large");
        }
        let is_photo = method == "sendPhoto";
        if is_photo && !bytes.starts_with(b"\x89PNG") && !bytes.starts_with(b"\xff\xd8") {
            return bad("IMAGE_PROCESS_FAILED");
        }
        self.last_message += 1;
        let file = Some(Sent { name, bytes, is_photo });
        self.messages.insert((chat, self.last_message), Shown { file, ..Shown::default() });
        Ok(json!({ "message_id": self.last_message }))
    }
}

/// A form of several parts: each field with its file name, if it has one, and its content.
struct Form(BTreeMap<String, (Option<String>, Vec<u8>)>);

impl Form {
    fn read(kind: &str, body: &[u8]) -> Option<Self> {
        let boundary = kind.strip_prefix("multipart/form-data; boundary=")?;
        let (begin, between) = (format!("--{boundary}\r\n"), format!("\r\n--{boundary}"));
        let mut rest = body.strip_prefix(begin.as_bytes())?;
        let mut parts = BTreeMap::new();
        let find = |text: &[u8], what: &[u8]| text.windows(what.len()).position(|here| here == what);
        loop {
            let head = find(rest, b"\r\n\r\n")?;
            let words = String::from_utf8(rest[..head].to_vec()).ok()?;
            let value = |name: &str| {
                let (_, value) = words.split_once(&format!("; {name}=\""))?;
                Some(value.split('"').next().unwrap_or_default().to_owned())
            };
            rest = &rest[head + 4..];
            let end = find(rest, between.as_bytes())?;
            parts.insert(value("name")?, (value("filename"), rest[..end].to_vec()));
            rest = &rest[end + between.len()..];
            match rest {
                b"--\r\n" => return Some(Self(parts)),
                _ => rest = rest.strip_prefix(b"\r\n")?,
            }
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        self.0.get(name).and_then(|(_, content)| String::from_utf8(content.clone()).ok())
    }
}

/// The words of the API's HTML; why it is none.
fn plain(html: &str) -> Result<String, String> {
    let (mut shown, mut rest, mut open) = (String::new(), html, Vec::new());
    while let Some(c) = rest.chars().next() {
        let (taken, what) = match c {
            '<' => {
                let end = rest.find('>').ok_or("a tag has no end")?;
                let tag = &rest[1..end];
                if let Some(name) = tag.strip_prefix('/') {
                    if open.pop() != Some(name.to_owned()) {
                        return Err(format!("unexpected end tag {name}"));
                    }
                } else {
                    let name = tag.split(' ').next().unwrap_or_default().to_owned();
                    if !["b", "i", "s", "u", "code", "pre", "blockquote", "a"].contains(&name.as_str()) {
                        return Err(format!("unsupported start tag {name}"));
                    }
                    open.push(name);
                }
                (end + 1, String::new())
            }
            '&' => {
                let end = rest.find(';').ok_or("an entity has no end")?;
                let known = [("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"), ("&quot;", "\"")];
                let found =
                    known.iter().find(|(entity, _)| *entity == &rest[..=end]).ok_or("an unknown entity")?;
                (end + 1, found.1.to_owned())
            }
            c => (c.len_utf8(), c.to_string()),
        };
        shown += &what;
        rest = &rest[taken..];
    }
    if open.is_empty() { Ok(shown) } else { Err(format!("{open:?} has no end tag")) }
}

fn serve(stream: TcpStream, shared: &(Mutex<State>, Condvar)) {
    let mut write = stream.try_clone().unwrap();
    let mut read = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if read.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let mut words = line.split(' ');
        let verb = words.next().unwrap_or_default().to_owned();
        let path = words.next().unwrap_or_default().to_owned();
        let (mut length, mut kind) = (0, String::new());
        loop {
            let mut header = String::new();
            if read.read_line(&mut header).unwrap_or(0) == 0 {
                return;
            }
            if header.trim().is_empty() {
                break;
            }
            if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("content-type")
            {
                value.trim().clone_into(&mut kind);
            }
        }
        let mut body = vec![0; length];
        if read.read_exact(&mut body).is_err() {
            return;
        }
        if let Some(path) = path.strip_prefix("/file") {
            if verb != "GET" || !give(path, &mut write, shared) {
                return;
            }
            continue;
        }
        assert_eq!(verb, "POST", "{path}");
        let form = Form::read(&kind, &body);
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let Some(answer) = exchange(&path, &body, form, shared) else { return };
        let (code, body) = answer;
        let head = format!(
            "HTTP/1.1 {code} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if write.write_all(head.as_bytes()).and_then(|()| write.write_all(body.as_bytes())).is_err() {
            return;
        }
    }
}

/// Gives a file out, in pieces; whether the connection goes on.
fn give(path: &str, write: &mut TcpStream, (state, changed): &(Mutex<State>, Condvar)) -> bool {
    let (file, fault) = {
        let mut held = state.lock().unwrap();
        held.asked.push(path.to_owned());
        let fault = held.faults.iter().position(|(of, ..)| of == "file").map(|at| held.faults.remove(at).2);
        let known = path.strip_prefix(&format!("/bot{TOKEN}/"));
        let file = known.and_then(|path| held.files.values().find(|file| file.path == path).cloned());
        changed.notify_all();
        (file, fault)
    };
    let (code, bytes) = match (&fault, file) {
        (Some(Fault::Lost), _) => return false,
        (Some(Fault::Slow(seconds)), _) => {
            let body = json!({ "ok": false, "error_code": 429, "description": "Too Many Requests", "parameters": { "retry_after": seconds } });
            (429, body.to_string().into_bytes())
        }
        (Some(Fault::Broken), _) => (502, b"<html>Bad Gateway</html>".to_vec()),
        (_, Some(file)) => (200, file.bytes),
        (_, None) => (
            404,
            json!({ "ok": false, "error_code": 404, "description": "Not Found" }).to_string().into_bytes(),
        ),
    };
    let head = format!("HTTP/1.1 {code} X\r\ncontent-length: {}\r\n\r\n", bytes.len());
    if write.write_all(head.as_bytes()).is_err() {
        return false;
    }
    let half = bytes.len() / 2;
    let most = if matches!(fault, Some(Fault::Unheard | Fault::Stalled)) { half } else { bytes.len() };
    for piece in bytes[..most].chunks(64 << 10) {
        if write.write_all(piece).is_err() {
            return false;
        }
        state.lock().unwrap().sent += piece.len();
    }
    if matches!(fault, Some(Fault::Stalled)) {
        // Until the other side is gone.
        write.read_exact(&mut [0]).ok();
    }
    most == bytes.len()
}

/// The answer to a request; none where the connection is cut.
fn exchange(
    path: &str,
    body: &Value,
    form: Option<Form>,
    (state, changed): &(Mutex<State>, Condvar),
) -> Option<(u16, String)> {
    let error = |code: u16, why: &str| {
        (code, json!({ "ok": false, "error_code": code, "description": why }).to_string())
    };
    let Some(method) = path.strip_prefix(&format!("/bot{TOKEN}/")).map(str::to_owned) else {
        return Some(error(401, "Unauthorized"));
    };
    let mut held = state.lock().unwrap();
    *held.calls.entry(method.clone()).or_default() += 1;
    if held.is_locked {
        held.locked_out += usize::from(["sendMessage", "editMessageText"].contains(&method.as_str()));
        return Some(error(401, "Unauthorized"));
    }
    let fails =
        |(of, words, _): &(String, String, Fault)| *of == method && body.to_string().contains(words.as_str());
    let fault = held.faults.iter().position(fails).map(|at| held.faults.remove(at).2);
    match fault {
        Some(Fault::Lost) => return None,
        Some(Fault::Slow(seconds)) => {
            let body = json!({
                "ok": false, "error_code": 429, "description": "Too Many Requests",
                "parameters": { "retry_after": seconds },
            });
            return Some((429, body.to_string()));
        }
        Some(Fault::Broken) => return Some((502, "<html>Bad Gateway</html>".into())),
        Some(Fault::Refused) => return Some(error(400, "Bad Request: it is not taken")),
        Some(Fault::Again) => {
            return Some((200, json!({ "ok": true, "result": held.all }).to_string()));
        }
        Some(Fault::Unheard | Fault::Stalled) | None => {}
    }
    if method == "getUpdates" {
        let offset = body["offset"].as_i64().unwrap_or_default();
        let end = Instant::now() + Duration::from_secs(body["timeout"].as_u64().unwrap_or_default().min(50));
        loop {
            held.updates.retain(|update| update["update_id"].as_i64().unwrap() >= offset);
            if !held.updates.is_empty() || Instant::now() >= end || held.is_over {
                break;
            }
            held = changed.wait_timeout(held, Duration::from_millis(500)).unwrap().0;
        }
        if matches!(fault, Some(Fault::Unheard)) {
            return None;
        }
        let updates: Vec<Value> = held.updates.iter().take(100).cloned().collect();
        return Some((200, json!({ "ok": true, "result": updates }).to_string()));
    }
    let answer = match form {
        Some(form) if ["sendPhoto", "sendDocument"].contains(&&*method) => held.take_file(&method, &form),
        _ => held.answer(&method, body),
    };
    if matches!(fault, Some(Fault::Unheard)) {
        return None;
    }
    Some(match answer {
        Ok(result) => (200, json!({ "ok": true, "result": result }).to_string()),
        Err((code, why)) => {
            if !why.contains("not modified") && !why.contains("not found") {
                held.wrong.push(format!("{method}: {why}: {body}"));
            }
            error(code, &why)
        }
    })
}
