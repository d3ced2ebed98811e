//! The process of a channel: it brings what people say on a platform to sessions, and what sessions say to
//! people. It hears the world, so it is bound: it reaches the platform's server, the journal and its own
//! notes, and the sessions that the daemon hands it.
//!
//! Nothing is lost: a message is noted before the platform may forget it, said to its session under a name by
//! which the session knows it again, and forgotten when its answer stands on the platform. Nothing is said
//! twice: answers are edits of a message that is there.

use super::{
    guard::{Guarded, guard},
    notes::{Notes, PendingMessage},
    talk,
    words::{Stop, bare_answer, menu},
};
use crate::{
    ANSWER_BYTES_MAX, Arrival, Call, Channel, Conversation, Event, Failure, Kind, Listener, Message, News,
    Post, Reaction, Reply, Sender, Tap, Us, kinds,
    need::{Due, Given, Need, PersonAnswer, PersonRequest, RequestKind, Taken},
};
use anyhow::{Result, bail};
use bailey_egress::{UplinkEnd, UplinkError, uplink::Request};
use bailey_home::home::{Home, make_private};
use bailey_journal::{Clock as _, SystemClock};
use bailey_protocol::Digest;
use bailey_secrets::{Redactor, neutralise};
use bailey_session::{
    compose::{self, Keys},
    durable_state::DurableState,
    exit::{self, Mistyped},
    link::Link,
};
use bailey_terminal::print::Printer;
use bailey_web::{Delivery, logins};
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashMap},
    io,
    os::fd::{AsFd as _, OwnedFd},
    panic::resume_unwind,
    process::ExitCode,
    rc::Rc,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    task::{LocalSet, spawn_blocking, spawn_local},
    time::{Instant, sleep, sleep_until},
};

/// How long nothing is tried after a failure, at first and at most.
pub(super) const PAUSE_MIN: Duration = Duration::from_secs(1);
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(60);
/// How many conversations there may be, and how many arrivals may wait in one.
const TALKS_MAX: usize = 4096;
const WAITING_MAX: usize = 256;
/// How far the time of a delivery may be from this machine's, in seconds.
const FRESH_SECONDS: u64 = 300;
/// What is answered to a message that is a credential.
const BLOCKED: &str = "Your message looks like a password or a key, so Bailey threw it away: no model has \
    seen it, and it is stored nowhere here. The platform still has it: delete your message, and change the \
    key. Set keys at the machine, with `bailey secrets set`.";

/// What all conversations of a channel share.
pub(super) struct Bridge {
    pub(super) name: String,
    pub(super) channel: Arc<dyn Channel>,
    /// Whether the owner's servers bring what is new.
    is_inbound: bool,
    pub(super) us: Us,
    /// Where the platform's server is.
    pub(super) url: String,
    pub(super) link: Link<Given>,
    pub(super) book: DurableState<Notes>,
    redactor: Redactor,
    pub(super) uplink: UplinkEnd,
    /// What no other notes are called; what no other run of this process is, and how many requests it made.
    own: String,
    run: String,
    calls: Cell<u64>,
    /// Until when the platform wants to be left alone; and until when in single conversations, by what it
    /// counts together.
    rest: Cell<Option<Instant>>,
    rests: RefCell<HashMap<String, Instant>>,
    /// Why what is said is not taken, since the platform takes us for nobody.
    locked_out: watch::Sender<Option<String>>,
    talks: RefCell<HashMap<Conversation, mpsc::Sender<talk::TalkEvent>>>,
    /// Messages that are stopping something now: what was written behind them waits for that.
    pub(super) stopping: RefCell<BTreeSet<String>>,
}

/// Serves a channel until the daemon ends.
pub async fn run(home: &Home, name: &str, printer: &Printer) -> Result<ExitCode> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let config = kinds::load(home)?;
    let configured = config.channels.get(name);
    let Some((configured, kind)) = configured.and_then(|it| Some((it, Kind::of(&it.kind)?))) else {
        return Err(Mistyped(format!("there is no channel `{name}`")).into());
    };
    let keys = Keys::load(home, &config, printer)?;
    if !keys.has(&configured.key_env) {
        let key = &configured.key_env;
        return Err(Mistyped(format!(
            "the key of the channel `{name}` is not set; store it with `bailey secrets set {key}`"
        ))
        .into());
    }
    home.make_channel(name)?;
    let folder = home.bridge(name);
    make_private(&folder)?;
    let book = DurableState::open(&folder)?;
    let run = logins::random()?;
    let own = named(&book, &run);
    let redactor = keys.redactor.clone();
    let way = kind.uplink(name, configured);
    let url = way.url.clone();
    let notes = DurableState::<Notes>::paths(&folder);
    let opened =
        compose::uplink(home, &config, keys, way, &home.channel(name), notes, ANSWER_BYTES_MAX).await?;
    let uplink = opened.uplink.clone();
    let serve = async {
        let bridge = Bridge {
            name: name.to_owned(),
            channel: (kind.channel)(),
            is_inbound: kind.is_inbound,
            us: Us::default(),
            url,
            link: Link::new(socket),
            book,
            redactor,
            uplink,
            own,
            run,
            calls: Cell::new(0),
            rest: Cell::new(None),
            rests: RefCell::default(),
            locked_out: watch::Sender::new(None),
            talks: RefCell::default(),
            stopping: RefCell::default(),
        };
        bridge.serve(kind, printer).await
    };
    LocalSet::new().run_until(opened.during("channel", serve)).await
}

/// What notes are called: this, where they have no name yet. Where that cannot be noted nothing is sent again
/// under the same.
fn named(book: &DurableState<Notes>, name: &str) -> String {
    if book.get(|notes| notes.name.is_empty()) {
        book.change(|notes| name.clone_into(&mut notes.name)).ok();
    }
    book.get(|notes| if notes.name.is_empty() { name.to_owned() } else { notes.name.clone() })
}

impl Bridge {
    async fn serve(mut self, kind: &Kind, printer: &Printer) -> Result<ExitCode> {
        self.us = loop {
            let Some(hello) = self.channel.hello() else { break Us::default() };
            let greeted = match self.call(hello).await {
                Ok(reply) => self.channel.greeted(&reply),
                Err(error) => Err(Failure::Again(error.to_string())),
            };
            match greeted {
                Ok(us) => break us,
                Err(Failure::Key(why) | Failure::Refused(why)) => {
                    bail!(Mistyped(format!(
                        "the platform refuses the channel `{}`: {why}; set its key again",
                        self.name
                    )))
                }
                Err(failure) => self.pause(&failure, PAUSE_MIN).await,
            }
        };
        self.link.ask(&Need::Up).await.ok();
        let us = if self.us.name.is_empty() { "itself" } else { &self.us.name };
        printer.note(&format!("the channel {} is up, as {us}", self.name));
        self.let_go().await;
        let bridge = Rc::new(self);
        spawn_local(bridge.clone().give_menu());
        if kind.writes_to_people() {
            spawn_local(bridge.clone().take_results());
        }
        for open in bridge.book.get(|notes| notes.open.clone()) {
            let at = Conversation(open.at.clone());
            bridge.pass(at, talk::TalkEvent::Message(open)).await;
        }
        for tap in bridge.book.get(|notes| notes.taps.clone()) {
            bridge.pass(tap.at.clone(), talk::TalkEvent::Tap(tap)).await;
        }
        let hear = async {
            if bridge.is_inbound { bridge.take_deliveries().await } else { bridge.listen(printer).await }
        };
        tokio::select! {
            ended = hear => ended?,
            () = bridge.tell_locked_out(printer) => {}
        }
        Ok(ExitCode::from(exit::DONE))
    }

    /// Lets go of the messages that are open for people who were let in and are not any more.
    async fn let_go(&self) {
        for id in self.book.get(|notes| notes.let_in.clone()) {
            let who = Sender { id, name: String::new() };
            let asked = self.ask(&who, &Conversation(String::new()), RequestKind::Address).await;
            if matches!(asked, Ok((PersonAnswer::Stranger(_), _))) {
                self.book.change(|notes| notes.forget(&who.id)).ok();
            }
        }
    }

    /// Notes when the key is wrong, and when it is right again, for ever: who is only brought what is new
    /// finds out by what they say.
    async fn tell_locked_out(&self, printer: &Printer) {
        let mut locked_out = self.locked_out.subscribe();
        while locked_out.changed().await.is_ok() {
            let told = match &*locked_out.borrow_and_update() {
                Some(why) => format!("the platform refuses the channel: {why}; its messages are kept"),
                None => "the platform accepts the channel again".to_owned(),
            };
            printer.note(&told);
        }
    }

    /// Gives the platform the commands for its menu, once for each bot and each set of commands. People who
    /// have no menu have `/help`.
    async fn give_menu(self: Rc<Self>) {
        let menu = menu();
        let Some(call) = self.channel.menu(&menu) else { return };
        let told: Vec<&[u8]> = [&*self.us.id, &*self.url]
            .into_iter()
            .chain(menu.iter().flat_map(|entry| [entry.name, &*entry.what]))
            .map(str::as_bytes)
            .collect();
        let told = Some(Digest::of_parts(&told));
        if self.book.get(|notes| notes.menu == told) {
            return;
        }
        if let Ok(Reply { status: 200, .. }) = self.call(call).await {
            self.book.change(|notes| notes.menu = told).ok();
        }
    }

    /// Takes the tasks of schedules whose results are for this channel, and the sessions that ask its owner.
    /// Each is noted before the daemon forgets it, and answered like a message.
    async fn take_results(self: Rc<Self>) {
        let mut noted = None;
        loop {
            let Ok((given, _)) = self.link.ask(&Need::Due(noted.take())).await else { return };
            let Given::Due(Due { key, at, id, name, is_question, told, is_followed }) = given else {
                sleep(PAUSE_MIN).await;
                continue;
            };
            let open = PendingMessage {
                key: key.clone(),
                at: at.clone(),
                id,
                name,
                text: String::new(),
                is_quoted: false,
                files: Vec::new(),
                is_schedules: !is_question && told.is_none(),
                is_question,
                is_followed: false,
                is_answer: false,
                told: told.map(|told| self.words(&told).text),
            };
            let followed = is_followed.then(|| PendingMessage {
                key: format!("{key} followed"),
                is_question: true,
                is_followed: true,
                told: None,
                ..open.clone()
            });
            let due: Vec<PendingMessage> = std::iter::once(open).chain(followed).collect();
            let is_noted = self.book.change(|notes| {
                for open in &due {
                    if notes.open.iter().all(|old| old.key != open.key) {
                        notes.open.push(open.clone());
                    }
                }
            });
            match is_noted {
                Ok(()) => {
                    noted = Some(key);
                    for open in due {
                        self.pass(Conversation(at.clone()), talk::TalkEvent::Message(open)).await;
                    }
                }
                // It is given once more.
                Err(_) => sleep(PAUSE_MAX).await,
            }
        }
    }

    /// The conversation that a tap is about: that of a schedule's results has buttons in the one that people
    /// see.
    fn tapped_at(&self, tap: &Tap) -> Conversation {
        let (_, id) = tap.data.split_once(':').unwrap_or_default();
        let about = self.book.get(|notes| {
            let card = notes.cards.get(id).map(|card| &card.at);
            let offer = || notes.offers.iter().find(|(_, offer)| offer.id == id).map(|(at, _)| at);
            card.or_else(offer).cloned()
        });
        let about = about.map(Conversation).filter(|about| about.parts().0 == tap.at.0);
        about.unwrap_or_else(|| tap.at.clone())
    }

    pub(super) async fn take_delivery(
        self: &Rc<Self>,
        listener: &mut dyn Listener,
        delivery: Delivery,
    ) -> Result<Taken> {
        let Delivery { id, timestamp, signature, body, .. } = delivery;
        let now = seconds();
        let is_signed = self.uplink.is_signed(&id, timestamp, body.as_bytes(), &signature);
        #[cfg(feature = "controls")]
        let is_signed = is_signed || bailey_session::controls::is_page_without("signature");
        if !is_signed || now.abs_diff(timestamp) > FRESH_SECONDS {
            return Ok(Taken::Unsigned);
        }
        // What was taken already is taken: its server did not hear it, or somebody else says it again.
        let is_known = self.book.get(|notes| notes.delivered.contains_key(&id));
        #[cfg(feature = "controls")]
        let is_known = is_known && !bailey_session::controls::is_page_without("replay");
        if is_known {
            return Ok(Taken::Noted);
        }
        let Reaction { mut news, .. } = match listener.hear(Event::Delivered(body.as_bytes())) {
            Ok(heard) => heard,
            Err(failure) => return Ok(Taken::Wrong(failure.to_string())),
        };
        for arrival in &mut news.arrivals {
            match arrival {
                Arrival::Message(message) => message.key.clone_from(&id),
                Arrival::Tap(tap) => tap.id.clone_from(&id),
            }
        }
        self.take(news, None, Some((id, timestamp))).await?;
        Ok(Taken::Noted)
    }

    /// Notes what is new, with the delivery that brought it, and passes it on.
    pub(super) async fn take(
        self: &Rc<Self>,
        news: News,
        source: Option<&str>,
        delivery: Option<(String, u64)>,
    ) -> Result<()> {
        let mut came = Vec::new();
        for arrival in news.arrivals {
            match arrival {
                Arrival::Tap(tap) => {
                    let tap = Tap { at: self.tapped_at(&tap), ..tap };
                    came.push((tap.at.clone(), talk::TalkEvent::Tap(tap)));
                }
                Arrival::Message(message) if message.is_to_us => came.extend(self.look_through(message)),
                Arrival::Message(_) => {}
            }
        }
        let open: Vec<PendingMessage> = came
            .iter()
            .filter_map(|(_, came)| match came {
                talk::TalkEvent::Message(open) => Some(open.clone()),
                talk::TalkEvent::Tap(_) | talk::TalkEvent::Word { .. } | talk::TalkEvent::Fetched { .. } => {
                    None
                }
            })
            .collect();
        let taps: Vec<Tap> = came
            .iter()
            .filter_map(
                |(_, came)| if let talk::TalkEvent::Tap(tap) = came { Some(tap.clone()) } else { None },
            )
            .collect();
        if news.cursor.is_some() || delivery.is_some() || !came.is_empty() {
            // From the next question on the platform forgets what came before it.
            self.book.change(|notes| {
                if let Some((source, cursor)) = source.zip(news.cursor) {
                    notes.go_on(source, cursor, seconds());
                }
                let new = open.into_iter().filter(|new| notes.open.iter().all(|old| old.key != new.key));
                let new: Vec<PendingMessage> = new.collect();
                notes.open.extend(new);
                let new = taps.into_iter().filter(|new| notes.taps.iter().all(|old| old.id != new.id));
                let new: Vec<Tap> = new.collect();
                notes.taps.extend(new);
                if let Some((id, timestamp)) = delivery {
                    // An older one is refused for its age.
                    notes.delivered.retain(|_, at| at.abs_diff(timestamp) <= 4 * FRESH_SECONDS);
                    notes.delivered.insert(id, timestamp);
                }
            })?;
        }
        for (at, came) in came {
            self.pass(at, came).await;
        }
        Ok(())
    }

    /// A message past the guard; or what is said instead.
    fn look_through(&self, message: Message) -> Option<(Conversation, talk::TalkEvent)> {
        let Message { key, at, from, text, is_quoted, mut files, left_out, .. } = message;
        let say = |text: &str| {
            let word = talk::TalkEvent::Word { key: key.clone(), to: from.clone(), text: text.into() };
            Some((at.clone(), word))
        };
        let mut text = match guard(&self.redactor, text) {
            Guarded::Blocked => return say(BLOCKED),
            Guarded::Clean(text) => text,
            Guarded::Redacted(text) => format!("{text}\n(What looked like a credential was taken out.)"),
        };
        if !left_out.is_empty() {
            let what = left_out.join(" and ");
            if text.trim().is_empty() {
                return say(&format!("Bailey cannot read this: {what} was left out. Write it in words."));
            }
            text = format!("{text}\n(With it came {what}, which is not shown to you.)");
        }
        if text.trim().is_empty() && files.is_empty() {
            return None;
        }
        for file in &mut files {
            file.name = self.redactor.redact(&file.name).text.into_owned();
        }
        let waits = |notes: &Notes| {
            let mut cards = notes.cards.values().map(|card| Conversation::split(&card.at).0);
            cards.any(|place| place == Conversation::split(&at.0).0)
        };
        let is_answer = !is_quoted && bare_answer(&text, &self.us.name).is_some() && self.book.get(waits);
        let (id, name) = (from.id, from.name);
        let (place, is_schedules, told) = (at.0.clone(), false, None);
        let open = PendingMessage {
            key,
            at: place,
            id,
            name,
            text,
            is_quoted,
            files,
            is_schedules,
            is_question: false,
            is_followed: false,
            is_answer,
            told,
        };
        Some((at, talk::TalkEvent::Message(open)))
    }

    /// Gives something to its conversation; what stops something waits for nothing there.
    pub(super) async fn pass(self: &Rc<Self>, at: Conversation, mut came: talk::TalkEvent) {
        if let talk::TalkEvent::Message(open) = &came
            && let Some(what) = Stop::of(&open.text, &self.us.name).filter(|_| !open.is_quoted)
        {
            self.stopping.borrow_mut().insert(open.key.clone());
            spawn_local(talk::stop_at_once(self.clone(), at, open.clone(), what));
            return;
        }
        // One that is just leaving takes nothing any more.
        while let Some(sender) = self.talk(&at) {
            match sender.send(came).await {
                Ok(()) => return,
                Err(mpsc::error::SendError(back)) => {
                    self.talks.borrow_mut().retain(|_, talk| !talk.is_closed());
                    came = back;
                }
            }
        }
    }

    /// The way to a conversation; none where there are too many at once.
    fn talk(self: &Rc<Self>, at: &Conversation) -> Option<mpsc::Sender<talk::TalkEvent>> {
        let mut talks = self.talks.borrow_mut();
        if let Some(sender) = talks.get(at) {
            return Some(sender.clone());
        }
        if talks.len() >= TALKS_MAX {
            return None;
        }
        let (sender, inbox) = mpsc::channel(WAITING_MAX);
        talks.insert(at.clone(), sender.clone());
        spawn_local(talk::run(self.clone(), at.clone(), inbox));
        Some(sender)
    }

    /// Forgets a conversation that has rested.
    pub(super) fn leave(&self, at: &Conversation) {
        self.talks.borrow_mut().remove(at);
    }

    /// Asks the daemon for something, for somebody in a conversation.
    pub(super) async fn ask(
        &self,
        who: &Sender,
        at: &Conversation,
        what: RequestKind,
    ) -> Result<(PersonAnswer, Option<OwnedFd>)> {
        let asked = PersonRequest { id: who.id.clone(), name: who.name.clone(), at: at.0.clone(), what };
        match self.link.ask(&Need::Person(asked)).await? {
            (Given::Person(answer), fd) => Ok((answer, fd)),
            _ => bail!(
                "the daemon gave an unexpected answer; restart it with `bailey stop`, then `bailey start`"
            ),
        }
    }

    /// Sends a request to the platform.
    pub(super) async fn call(&self, call: Call) -> Result<Reply, UplinkError> {
        self.call_as(call, self.call_name()).await
    }

    /// A name that no other request has.
    pub(super) fn call_name(&self) -> String {
        let number = self.calls.get() + 1;
        self.calls.set(number);
        format!("{} {number}", self.run)
    }

    /// The name of what is sent about something in a conversation: whoever sends it again after a kill gives
    /// it the same.
    pub(super) fn name(&self, at: &Conversation, about: &[&str]) -> String {
        let parts = [&*self.own, &*at.0].into_iter().chain(about.iter().copied());
        Digest::of_parts(&parts.map(str::as_bytes).collect::<Vec<_>>()).to_string()
    }

    /// The name of the beginning of an answer's message, noted before it is sent: whoever comes after a kill
    /// begins the same one.
    pub(super) fn beginning(&self, at: &Conversation) -> String {
        // What this process began it knows, also where that could not be noted.
        let begun = self.book.get(|notes| notes.begun.get(&at.0).cloned());
        if let Some(begun) = begun.filter(|begun| !begun.starts_with(&self.run)) {
            return begun;
        }
        let name = self.call_name();
        if self.channel.hears_names() {
            // That it cannot be noted is that it may be begun twice.
            self.book.change(|notes| drop(notes.begun.insert(at.0.clone(), name.clone()))).ok();
        }
        name
    }

    /// The name of a change of an answer's message, noted before it is sent: what goes back to what it said
    /// before is another change.
    pub(super) fn change(&self, at: &Conversation, message: &str, text: &str) -> String {
        let mut number = 0;
        let is_noted = self.channel.hears_names()
            && self.book.change(|notes| number = notes.change(&at.0, message, text)).is_ok();
        if is_noted { self.name(at, &["change", message, &number.to_string()]) } else { self.call_name() }
    }

    pub(super) async fn call_as(&self, call: Call, name: String) -> Result<Reply, UplinkError> {
        let Call { method, target, headers, body, patience, bytes_max } = call;
        let request = Request { method: method.into(), target, headers, body, name, bytes_max, patience };
        let answer = self.uplink.send(request).await?;
        Ok(Reply { status: answer.status, body: answer.body })
    }

    /// Whether the platform may be bothered now with what can wait, in a conversation.
    pub(super) fn is_open(&self, at: &Conversation) -> bool {
        self.rest_at(at).is_none()
    }

    /// Until when nothing is said in a conversation; none where something may be said now.
    fn rest_at(&self, at: &Conversation) -> Option<Instant> {
        let here = self.rests.borrow().get(self.channel.counted(at)).copied();
        here.max(self.rest.get()).filter(|rest| *rest > Instant::now())
    }

    /// The platform said of a conversation that it is to be left alone for so long, and nothing of others.
    fn leave_alone(&self, at: &Conversation, wait: Duration) {
        let now = Instant::now();
        let mut rests = self.rests.borrow_mut();
        rests.retain(|_, rest| *rest > now);
        rests.insert(self.channel.counted(at).to_owned(), now + wait);
    }

    /// Says something, for as long as it takes: the message's name; none where the platform will never take
    /// it. What `make` makes may be sent more than once, as what is called `name`. A wrong key says nothing
    /// of what is said: it is said once the key is right.
    pub(super) async fn deliver(
        &self,
        at: &Conversation,
        name: String,
        make: impl Fn() -> Call,
    ) -> Result<String, String> {
        let mut pause = PAUSE_MIN;
        loop {
            while let Some(rest) = self.rest_at(at) {
                sleep_until(rest).await;
            }
            let sent = match self.call_as(make(), name.clone()).await {
                Ok(reply) => self.channel.sent(&reply),
                Err(error) => Err(Failure::Again(error.to_string())),
            };
            match sent {
                Ok(message) => {
                    self.locked_out.send_if_modified(|why| why.take().is_some());
                    return Ok(message);
                }
                Err(Failure::Refused(why)) => return Err(why),
                Err(Failure::Wait(wait)) => self.leave_alone(at, wait),
                Err(failure) => {
                    if let Failure::Key(why) = &failure {
                        self.locked_out.send_if_modified(|known| known.replace(why.clone()).is_none());
                    }
                    self.pause(&failure, pause).await;
                }
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    pub(super) async fn pause(&self, failure: &Failure, pause: Duration) {
        if let Failure::Wait(wait) = failure {
            self.rest.set(Some(Instant::now() + *wait));
            return sleep(*wait).await;
        }
        sleep(pause).await;
    }

    /// What leaves is looked through once more, and nothing in it hides from whoever reads it.
    pub(super) fn clean(&self, text: &str) -> String {
        neutralise(&self.redactor.redact(text).text).into_owned()
    }

    /// Plain words as a message.
    pub(super) fn words(&self, text: &str) -> Post {
        Post { text: self.channel.plain(&self.clean(text)), buttons: Vec::new() }
    }

    /// A model's words as pages, looked through once more.
    pub(super) async fn pages(&self, markdown: String) -> Vec<String> {
        pages(self.channel.clone(), self.redactor.clone(), markdown).await
    }
}

/// The same away from this thread, which listens: an answer is rendered anew as often as it grows, and a long
/// one takes its time.
async fn pages(channel: Arc<dyn Channel>, redactor: Redactor, markdown: String) -> Vec<String> {
    let rendered = spawn_blocking(move || channel.pages(&redactor.redact(&markdown).text)).await;
    // A mistake of ours ends what it would have ended here.
    rendered.unwrap_or_else(|error| resume_unwind(error.into_panic()))
}

/// Since 1970.
pub(super) fn seconds() -> u64 {
    u64::try_from(SystemClock.now().as_second()).unwrap_or_default()
}

impl From<&PendingMessage> for Sender {
    fn from(open: &PendingMessage) -> Self {
        Self { id: open.id.clone(), name: open.name.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, Channel as _, Redactor, pages};
    use crate::Telegram;
    use std::future::ready;
    use tokio::{pin, runtime::Builder, select};

    #[test]
    fn a_long_answer_is_rendered_away_from_the_thread_that_listens() {
        let answer = "A paragraph with **one** `word` in it, of many.\n\n".repeat(4000);
        let redactor = Redactor::new(&bailey_secrets::Vault::default());
        let expected = Telegram.pages(&answer);
        let runtime = Builder::new_current_thread().build().unwrap();
        let rendered = runtime.block_on(async {
            let rendered = pages(Arc::new(Telegram), redactor, answer);
            pin!(rendered);
            select! {
                biased;
                _ = &mut rendered => panic!("nothing else was done meanwhile"),
                () = ready(()) => {}
            }
            rendered.await
        });
        assert_eq!(rendered, expected);
    }
}
