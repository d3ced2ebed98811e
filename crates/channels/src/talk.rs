//! One conversation: its people's connections to its session, the answer that is being written, and the
//! questions that are open.

mod cards;
mod changes;
mod sent;

use self::{
    cards::UNSEEN,
    changes::{Ending, Want},
};
use super::{
    answer::LiveAnswer,
    bridge::{Bridge, seconds},
    files::{self, Fetched},
    notes::{Notes, PendingMessage},
    words::{Command, Stop, bare_answer, help},
};
use crate::{
    Conversation, Post, Sender, Tap,
    need::{PersonAnswer, RequestKind},
};
use anyhow::{Context as _, Result};
use bailey_protocol::{
    Answer as Verdict, ApprovalId, CallId, Event, Happening, Inbound, Op, Role, Seq, SessionId,
    Verdict as Decision,
};
use bailey_session::wire::{self, EVENT_BYTES_MAX};
use bailey_terminal::{one_line, short};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    os::{fd::OwnedFd, unix::net},
    rc::Rc,
    time::Duration,
};
use tokio::{
    io::BufReader,
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    task::{JoinHandle, spawn_local},
    time::{Instant, MissedTickBehavior, interval, timeout},
};

/// How often an answer that grows is shown.
const EDIT: Duration = Duration::from_millis(500);
/// How often the platform shows that somebody is at work.
const BUSY: Duration = Duration::from_secs(4);
/// How long a conversation at rest keeps its session.
const REST: Duration = Duration::from_secs(10);
/// How long a conversation at rest is kept in mind.
const KEPT: Duration = Duration::from_secs(60);
/// How long a session may take to say that somebody may not stop it.
const REFUSED: Duration = Duration::from_millis(500);
/// How long nothing is tried where a session cannot be reached, at first and at most: each try begins a
/// process.
const AGAIN: Duration = Duration::from_secs(2);
const AGAIN_MAX: Duration = Duration::from_secs(60);
/// How old the last message of an answer may be when the turn ends: the end of a turn that took longer is a
/// message of its own.
const UNHEARD: Duration = Duration::from_secs(10);
/// How long whoever tapped may wait for what came of it.
const TAPPED: Duration = Duration::from_secs(5);

/// Kinds of actions that may leave changes in the session.
const CHANGING: [&str; 3] = ["exec", "change", "tool"];

/// An event for a conversation, from the platform.
#[derive(Debug)]
pub(super) enum TalkEvent {
    /// To be answered.
    Message(PendingMessage),
    Tap(Tap),
    /// The files of a message.
    Fetched {
        open: PendingMessage,
        fetched: Fetched,
    },
    /// Something that Bailey has to say to somebody.
    Word {
        /// The name of what they brought.
        key: String,
        to: Sender,
        text: String,
    },
}

/// Somebody's connection to the session.
struct Participant {
    role: Role,
    write: OwnedWriteHalf,
    reader: JoinHandle<()>,
}

struct Talk {
    bridge: Rc<Bridge>,
    at: Conversation,
    /// The schedule whose results stand here: they are shown when they are whole.
    schedule: Option<String>,
    /// The session whose questions stand here.
    session: Option<SessionId>,
    /// The session that the connections lead to.
    current: Option<SessionId>,
    /// Whether a question that stands here was answered after its turn: the turn that follows is shown here.
    is_owed: bool,
    /// Whether a turn of another front end is shown here, too: its person was let in again.
    is_following: bool,
    participants: BTreeMap<String, Participant>,
    /// Whose connection tells what happens; the others' tell what they may not.
    listener: Option<String>,
    heard: mpsc::Receiver<(String, Option<Event>)>,
    to_hear: mpsc::Sender<(String, Option<Event>)>,
    answer: LiveAnswer,
    is_working: bool,
    /// Since when the turn runs, if that is known.
    began: Option<Instant>,
    /// Whether the turn may have left changes.
    may_have_changed: bool,
    /// The tools of the turn's calls.
    calls: BTreeMap<CallId, String>,
    /// The session's project, with a stroke at the end.
    workspace: String,
    /// Requests about changes that wait for the session.
    wants: VecDeque<Want>,
    /// Messages that the session has, and those that it was told of.
    accepted: BTreeSet<String>,
    said: BTreeSet<String>,
    /// The files of messages, once they are here; none as long as they are fetched.
    files: BTreeMap<String, Option<Fetched>>,
    /// Taps that wait for what comes of them.
    taps: Vec<(ApprovalId, Tap, Instant)>,
    /// Whether people were told that the session cannot be reached.
    is_told: bool,
    /// When messages that the session does not have are said again.
    again: Option<Instant>,
    /// How long that takes the next time.
    wait: Duration,
    /// Since when nothing has happened.
    idle: Instant,
    /// Whether there is nothing to keep in mind any more.
    is_over: bool,
}

/// Serves a conversation, until it has rested for long.
pub(crate) async fn run(bridge: Rc<Bridge>, at: Conversation, mut inbox: mpsc::Receiver<TalkEvent>) {
    let (to_hear, heard) = mpsc::channel(1024);
    let answer = bridge.book.get(|notes| LiveAnswer::in_messages(notes, &at));
    let about = at.parts().1.filter(|_| bridge.channel.alone("1").is_some()).map(str::to_owned);
    let session = about.as_deref().and_then(SessionId::parse);
    let schedule = about.filter(|_| session.is_none());
    let mut talk = Talk {
        bridge,
        at,
        schedule,
        session,
        current: None,
        is_owed: false,
        is_following: false,
        participants: BTreeMap::new(),
        listener: None,
        heard,
        to_hear,
        answer,
        is_working: false,
        began: None,
        may_have_changed: false,
        calls: BTreeMap::new(),
        workspace: String::new(),
        wants: VecDeque::new(),
        accepted: BTreeSet::new(),
        said: BTreeSet::new(),
        files: BTreeMap::new(),
        taps: Vec::new(),
        is_told: false,
        again: None,
        wait: AGAIN,
        idle: Instant::now(),
        is_over: false,
    };
    let mut edit = interval(EDIT);
    let mut busy = interval(BUSY);
    edit.set_missed_tick_behavior(MissedTickBehavior::Delay);
    busy.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !talk.is_over {
        tokio::select! {
            came = inbox.recv() => match came {
                Some(came) => talk.take(came).await,
                None => return,
            },
            Some((who, event)) = talk.heard.recv() => talk.hear(&who, event).await,
            _ = edit.tick() => talk.tick().await,
            _ = busy.tick(), if talk.is_working => talk.show_busy(),
        }
    }
    talk.bridge.leave(&talk.at);
    // What came meanwhile is the next one's.
    inbox.close();
    while let Some(came) = inbox.recv().await {
        talk.bridge.pass(talk.at.clone(), came).await;
    }
}

impl Talk {
    async fn take(&mut self, came: TalkEvent) {
        self.idle = Instant::now();
        match came {
            TalkEvent::Word { key, to, text } => {
                let told = if self.participants.contains_key(&to.id) {
                    None
                } else {
                    self.connect(&to, RequestKind::Connection).await.unwrap_or(None)
                };
                // A stranger is told that they are one, and nothing else.
                let text = told.unwrap_or(text);
                if !text.is_empty() {
                    self.word(self.bridge.name(&self.at, &["word", &key]), &text).await;
                }
            }
            TalkEvent::Tap(tap) => {
                let name = tap.id.clone();
                self.tapped(tap).await;
                // One that comes once more is told that it was answered.
                self.bridge.book.change(|notes| notes.taps.retain(|tap| tap.id != name)).ok();
            }
            TalkEvent::Fetched { open, fetched } => {
                if let Some(words) = fetched.words() {
                    self.word(self.bridge.name(&self.at, &["files", &open.key]), &words).await;
                }
                self.files.insert(open.key.clone(), Some(fetched));
                self.say(&open).await;
            }
            // It was done before a kill, which left it open whether that was told.
            TalkEvent::Message(open) if open.told.is_some() => self.tell_again(open).await,
            TalkEvent::Message(open) if open.is_question => self.say(&open).await,
            // The result of the run before comes first.
            TalkEvent::Message(open) if open.is_schedules && !self.said.is_empty() => {
                self.again.get_or_insert(Instant::now() + self.wait);
                drop(open);
            }
            TalkEvent::Message(open) if open.is_schedules => {
                // Each run of a schedule has a session of its own.
                self.drop_voices();
                self.say(&open).await;
            }
            TalkEvent::Message(open) => match self.commanded(&open) {
                Some(Command::Clear) => self.begin_clearing(open).await,
                Some(command) => {
                    let told = self.command(&open, command).await;
                    self.tell(&open, &told).await;
                }
                None => self.say(&open).await,
            },
        }
    }

    /// What a message commands. What somebody else wrote commands nothing, whoever passes it on.
    fn commanded(&self, open: &PendingMessage) -> Option<Command> {
        let us = &self.bridge.us.name;
        match bare_answer(&open.text, us).filter(|_| open.is_answer) {
            Some(is_yes) => Some(Command::Bare(is_yes)),
            None => Command::of(&open.text, us).filter(|_| !open.is_quoted),
        }
    }

    /// Says a message to the session, as whoever said it here; behind what came before it.
    async fn say(&mut self, open: &PendingMessage) {
        if self.is_behind(open) || self.is_clearing() {
            self.again.get_or_insert(Instant::now() + self.wait);
            return;
        }
        let who = Sender::from(open);
        let said = match self.reach(&who, RequestKind::Connection).await {
            // Stopped before it was said.
            Ok(None) if !self.is_open(open) => return,
            // Who connects is shown the questions.
            Ok(None) if open.is_question => Ok(None),
            // The clock said it.
            Ok(None) if open.is_schedules => self.ask(&who, &Op::Follow { key: open.key.clone() }).await,
            Ok(None) => match self.with_files(open) {
                Some(inbound) => self.ask(&who, &Op::Say(inbound)).await,
                None => return,
            },
            // Of whom is not let in no file is fetched.
            other => other,
        };
        match said {
            Ok(None) => {
                self.is_told = false;
                self.is_following |= open.is_followed;
                self.said.insert(open.key.clone());
            }
            // They were answered.
            Ok(Some(_)) if open.is_question => self.tell(open, "").await,
            // A stranger, who was told so.
            Ok(Some(told)) => self.tell(open, &told).await,
            Err(error) => {
                if !std::mem::replace(&mut self.is_told, true) {
                    self.now(&format!(
                        "Your message has to wait: {error:#}\n\nIt is kept, and delivered as soon as this \
                         is fixed."
                    ))
                    .await;
                }
                self.later();
            }
        }
    }

    /// What the session does not have is said again after a while, and after a longer one the next time.
    fn later(&mut self) {
        self.again = Some(Instant::now() + self.wait);
        self.wait = (self.wait * 2).min(AGAIN_MAX);
    }

    /// Says once more what the session does not have.
    async fn say_again(&mut self) {
        let mut waiting = self.bridge.book.get(|notes| notes.open_in(&self.at));
        waiting.retain(|open| self.is_the_sessions(open));
        if waiting.is_empty() {
            self.wait = AGAIN;
        }
        for open in waiting {
            // What came after one that cannot be said waits with it.
            if self.again.is_some() {
                return;
            }
            if open.is_schedules && !self.said.is_empty() {
                return self.later();
            }
            if open.is_schedules {
                self.drop_voices();
            }
            self.say(&open).await;
        }
    }

    /// Whether a message that came before this one waits to be said, or is about to stop what runs, and only
    /// that. One whose files are fetched is overtaken.
    fn is_behind(&self, open: &PendingMessage) -> bool {
        let here = self.bridge.book.get(|notes| notes.open_in(&self.at));
        let waits = |other: &PendingMessage| {
            let is_fetched = matches!(self.files.get(&other.key), Some(None));
            let is_waiting = self.is_the_sessions(other) && !self.said.contains(&other.key) && !is_fetched;
            is_waiting || self.bridge.stopping.borrow().contains(&other.key)
        };
        here.iter().take_while(|other| other.key != open.key).any(waits)
    }

    /// Whether a message is for the session, which is not known to have it. A command is done when its turn
    /// comes.
    fn is_the_sessions(&self, open: &PendingMessage) -> bool {
        open.told.is_none() && self.commanded(open).is_none() && !self.accepted.contains(&open.key)
    }

    fn is_open(&self, open: &PendingMessage) -> bool {
        self.bridge.book.get(|notes| notes.open.iter().any(|other| other.key == open.key))
    }

    /// A message with its files; none as long as they are not here. Then it is said when they are.
    fn with_files(&mut self, open: &PendingMessage) -> Option<Inbound> {
        if open.files.is_empty() {
            return Some(Fetched::default().inbound(open));
        }
        match self.files.get(&open.key) {
            Some(fetched) => fetched.as_ref().map(|fetched| fetched.inbound(open)),
            None => {
                self.files.insert(open.key.clone(), None);
                self.show_busy();
                let (bridge, at, open) = (self.bridge.clone(), self.at.clone(), open.clone());
                spawn_local(async move {
                    let fetched = files::fetch(&bridge, &open.files).await;
                    bridge.pass(at, TalkEvent::Fetched { open, fetched }).await;
                });
                None
            }
        }
    }

    /// Makes sure of somebody's connection, for this; what to tell them instead, where they may not speak
    /// here.
    async fn reach(&mut self, who: &Sender, what: RequestKind) -> Result<Option<String>> {
        if self.participants.contains_key(&who.id) { Ok(None) } else { self.connect(who, what).await }
    }

    /// Asks the session for something, in somebody's name; what to tell them instead, where they may not
    /// speak here.
    async fn ask(&mut self, who: &Sender, op: &Op) -> Result<Option<String>> {
        if let Some(told) = self.reach(who, RequestKind::Connection).await? {
            return Ok(Some(told));
        }
        let voice = self.participants.get_mut(&who.id).context("there is no connection")?;
        if let Err(error) = wire::say(&mut voice.write, op).await {
            self.lose(&who.id);
            return Err(error);
        }
        Ok(None)
    }

    async fn connect(&mut self, who: &Sender, what: RequestKind) -> Result<Option<String>> {
        let (answer, fd) = self.bridge.ask(who, &self.at, what).await?;
        let role = match answer {
            PersonAnswer::Connected(speaker, session) => {
                self.current = Some(session);
                speaker.role
            }
            answer @ PersonAnswer::Stranger(_) => return Ok(Some(told(answer))),
            PersonAnswer::Denied(why) => return Ok(Some(why)),
            PersonAnswer::Refused(why) | PersonAnswer::Done(why) => anyhow::bail!(why),
        };
        if self.bridge.book.get(|notes| !notes.let_in.contains(&who.id)) {
            self.note(|notes| {
                notes.let_in.insert(who.id.clone());
            });
        }
        let stream = net::UnixStream::from(fd.context("no connection came")?);
        stream.set_nonblocking(true)?;
        let (read, write) = UnixStream::from_std(stream)?.into_split();
        let reader = spawn_local(listen(who.id.clone(), read, self.to_hear.clone()));
        self.participants.insert(who.id.clone(), Participant { role, write, reader });
        self.listener.get_or_insert_with(|| who.id.clone());
        Ok(None)
    }

    /// What the session says over somebody's connection.
    async fn hear(&mut self, who: &str, event: Option<Event>) {
        let Some(event) = event else { return self.lose(who) };
        self.idle = Instant::now();
        match event.happening {
            Happening::Failed { op, error } => self.failed(who, &op, error).await,
            happening if self.listener.as_deref() == Some(who) => self.happened(event.seq, happening).await,
            _ => {}
        }
    }

    async fn happened(&mut self, seq: Seq, happening: Happening) {
        match happening {
            // What comes is about what was said meanwhile, and stands below it.
            Happening::Heard { .. } if !self.answer.is_empty() => {
                self.answer.end();
                self.show().await;
                self.answer = LiveAnswer::default();
            }
            Happening::Session { workspace, .. } => self.workspace = format!("{workspace}/"),
            Happening::Accepted { key } => {
                if !std::mem::replace(&mut self.is_working, true) {
                    self.begin_turn(Some(Instant::now()));
                    self.is_owed = false;
                }
                self.wait = AGAIN;
                self.accepted.extend(key.filter(|key| self.said.contains(key)));
                self.show_busy();
            }
            Happening::Repeated { key, ended, text } => match ended {
                Some(reason) if self.said.contains(&key) => {
                    // What it did was told to somebody else.
                    (self.began, self.may_have_changed) = (None, true);
                    self.accepted.insert(key);
                    self.answer.replace(text);
                    self.finish(&reason, None).await;
                }
                // Its end was told a moment ago, to whoever came in the middle.
                Some(_) => {}
                None => {
                    // Whoever comes to the session later is told all of its last turn: what is answered
                    // already was not said by them.
                    self.accepted.extend(Some(key).filter(|key| self.said.contains(key)));
                    self.is_working = true;
                }
            },
            Happening::Unseen { text } => {
                let name = self.bridge.name(&self.at, &["unseen", &seq.0.to_string()]);
                self.word(name, &text).await;
            }
            Happening::GoingOn => {
                self.begin_turn(self.is_owed.then(Instant::now));
                (self.is_working, self.may_have_changed) = (true, true);
            }
            Happening::Text { text } => self.answer.write(&text),
            Happening::Call { call, tool, .. } => {
                self.answer.doing(one_line(&tool));
                self.calls.insert(call, tool);
            }
            Happening::Decided { call, action, target, verdict, .. } => {
                let is_to_be = matches!(verdict, Decision::Allowed | Decision::Approved);
                self.may_have_changed |= is_to_be && CHANGING.contains(&&*action);
                if let Some(tool) = call.and_then(|call| self.calls.get(&call)) {
                    // Inside the workspace, the path relative to it says enough.
                    let target = target.strip_prefix(&self.workspace).unwrap_or(&target);
                    let target = if target == tool { "" } else { target };
                    self.answer.doing(one_line(format!("{tool} {target}").trim_end()));
                }
            }
            // A turn of a person elsewhere, such as the owner at the page, sends nothing here.
            Happening::Sent { to: None, of, .. } if !self.is_of_here(of.as_deref()) => self.is_seen(seq),
            Happening::Sent { to, text, file, .. } if self.is_new(seq) => {
                self.sent(to, text, file).await;
                self.is_seen(seq);
            }
            happening @ Happening::Diff { .. } => self.compared(happening).await,
            happening @ Happening::Merged { .. } if self.is_new(seq) => {
                self.merged(happening).await;
                self.is_seen(seq);
            }
            Happening::Ask { id, card, .. } => {
                self.show_card(id, &card).await;
                self.close_questions();
            }
            Happening::Answered { id, answer, why } => {
                self.is_owed |= !self.is_working && self.is_asked_here(id);
                self.answered(id, answer, &why).await;
            }
            Happening::End { reason, error, .. } => self.finish(&reason, error).await,
            _ => {}
        }
    }

    /// Whether a person, `CHANNEL:ID`, speaks in this conversation. A schedule speaks in its own.
    fn is_of_here(&self, person: Option<&str>) -> bool {
        let person = person.and_then(|person| person.split_once(':'));
        self.schedule.is_some()
            || person.is_some_and(|(channel, id)| {
                channel == self.bridge.name && self.participants.contains_key(id)
            })
    }

    /// The answer as far as it stands in messages.
    fn answer_so_far(&self) -> LiveAnswer {
        self.bridge.book.get(|notes| LiveAnswer::in_messages(notes, &self.at))
    }

    fn begin_turn(&mut self, began: Option<Instant>) {
        (self.began, self.may_have_changed) = (began, false);
        self.calls.clear();
    }

    /// Whether the event was not shown yet: a client that comes to the session later is told all of its last
    /// turn.
    fn is_new(&self, seq: Seq) -> bool {
        self.bridge.book.get(|notes| notes.seen.get(&self.at.0).is_none_or(|seen| *seen < seq.0))
    }

    fn is_seen(&self, seq: Seq) {
        self.note(|notes| {
            notes.seen.insert(self.at.0.clone(), seq.0);
        });
    }

    /// A turn is over: its answer stands whole before its messages are forgotten.
    async fn finish(&mut self, reason: &str, error: Option<String>) {
        self.is_working = false;
        if let Some(error) = error {
            self.answer.write(&format!("\n\nIt failed: {error}"));
        } else if reason == "waiting" {
            self.answer.write("\n\n(This waits for an answer to the question, and goes on then.)");
        } else if reason != "answered" {
            self.answer.write(&format!("\n\n({reason})"));
        } else if self.answer.is_empty() {
            self.answer.write("(no words)");
        }
        self.answer.end();
        let is_owed = std::mem::take(&mut self.is_owed) | std::mem::take(&mut self.is_following);
        if self.accepted.is_empty() && !is_owed {
            // A turn of another front end's: who did not ask is not answered.
            self.answer = self.answer_so_far();
            return;
        }
        if let Some(schedule) = &self.schedule {
            self.answer.head(&format!("⏰ **{schedule}**"));
        } else if let Some(session) = &self.session {
            self.answer.head(&format!("**Session {}**", short(session)));
        }
        self.show().await;
        let ending = Ending {
            reason: reason.to_owned(),
            // A client that comes in the middle does not know when the turn began.
            took: self.began.map(|began| began.elapsed()).filter(|took| *took >= UNHEARD),
            is_unheard: self.answer.is_older_than(UNHEARD),
        };
        self.answer = LiveAnswer::default();
        let accepted = std::mem::take(&mut self.accepted);
        self.said.retain(|key| !accepted.contains(key));
        let at = self.at.0.clone();
        self.note(|notes| {
            notes.open.retain(|open| !accepted.contains(&open.key));
            notes.answered(&at);
        });
        self.ended(ending).await;
    }

    async fn show(&mut self) {
        let (bridge, at) = (self.bridge.clone(), self.at.clone());
        let note = |messages: Vec<String>| {
            // That they cannot be noted is that they may be begun twice.
            let change = |notes: &mut Notes| {
                notes.shown.insert(at.0.clone(), messages);
                notes.shown_at.insert(at.0.clone(), seconds());
                notes.begun.remove(&at.0);
            };
            bridge.book.change(change).ok();
        };
        // The platform will never take it: the person deleted the conversation, or shut us out.
        self.answer.show(&bridge, &at, note).await.ok();
    }

    async fn failed(&mut self, who: &str, op: &str, error: String) {
        if self.not_done(who, op, &error).await {
            return;
        }
        match op {
            "follow" => {
                // Its session is gone, or never had the task.
                let schedule = self.schedule.clone().unwrap_or_default();
                let told = format!("⏰ {schedule}: there is no result. {error}");
                for open in self.bridge.book.get(|notes| notes.open_in(&self.at)) {
                    if self.said.remove(&open.key) {
                        self.tell(&open, &told).await;
                    }
                }
            }
            "say" => {
                // Nobody has it.
                self.said.retain(|key| self.accepted.contains(key));
                self.later();
            }
            "answer" => {
                let taps = std::mem::take(&mut self.taps);
                let (theirs, others) = taps.into_iter().partition(|(_, tap, _)| tap.from.id == who);
                self.taps = others;
                let theirs: Vec<(ApprovalId, Tap, Instant)> = theirs;
                for (_, tap, _) in &theirs {
                    self.toast(tap, &error);
                }
                if theirs.is_empty() {
                    self.now(&error).await;
                }
            }
            _ => self.now(&error).await,
        }
    }

    async fn tick(&mut self) {
        if self.is_working
            && self.answer.is_dirty()
            && self.bridge.is_open(&self.at)
            && (!self.accepted.is_empty() || self.is_following)
            && self.schedule.is_none()
        {
            self.show().await;
        }
        let (late, waiting) =
            std::mem::take(&mut self.taps).into_iter().partition(|(_, _, at)| at.elapsed() > TAPPED);
        self.taps = waiting;
        let late: Vec<(ApprovalId, Tap, Instant)> = late;
        let late_words = "This question was answered before, or cannot be answered now.";
        late.iter().for_each(|(_, tap, _)| self.toast(tap, late_words));
        self.look_at_wants().await;
        // The questions that it came for are answered.
        if !self.is_working && !self.participants.is_empty() && self.idle.elapsed() > REST {
            self.close_questions();
        }
        if self.again.is_some_and(|again| again <= Instant::now()) {
            self.again = None;
            self.say_again().await;
        }
        // What is answered, or nobody may say, needs its files no more.
        if !self.files.is_empty() {
            let open = self.bridge.book.get(|notes| notes.open_in(&self.at));
            self.files.retain(|key, _| open.iter().any(|open| open.key == *key));
        }
        let is_at_rest = self.files.is_empty()
            && !self.is_working
            && self.again.is_none()
            && self.said.is_empty()
            && self.wants_nothing()
            && self.has_no_card();
        if is_at_rest && self.idle.elapsed() > REST {
            // The session gives its process up when nobody needs it.
            self.drop_voices();
            self.is_over = self.idle.elapsed() > KEPT;
        }
    }

    /// Forgets the messages that stand for questions: those are shown, or answered.
    fn close_questions(&mut self) {
        let open = self.bridge.book.get(|notes| notes.open_in(&self.at));
        let shown: BTreeSet<String> = open.into_iter().filter(|it| it.is_question).map(|it| it.key).collect();
        if !shown.is_empty() {
            self.said.retain(|key| !shown.contains(key));
            let at = self.at.0.clone();
            self.close(|it| it.is_question && it.at == at);
        }
    }

    fn has_no_card(&self) -> bool {
        self.bridge.book.get(|notes| notes.cards.values().all(|card| card.at != self.at.0))
    }

    /// A connection has ended: what was not answered is said again, over a new one.
    fn lose(&mut self, who: &str) {
        self.forget_wants(who);
        self.drop_voice(who);
        self.later();
        if self.listener.is_none() {
            self.is_working = false;
            self.accepted.clear();
            self.said.clear();
            self.answer.afresh();
        }
    }

    fn drop_voices(&mut self) {
        let names: Vec<String> = self.participants.keys().cloned().collect();
        names.iter().for_each(|who| self.drop_voice(who));
    }

    fn drop_voice(&mut self, who: &str) {
        if let Some(voice) = self.participants.remove(who) {
            voice.reader.abort();
        }
        if self.listener.as_deref() == Some(who) {
            // The others' heard the same, and were not listened to: they begin anew, too.
            self.listener = None;
            std::mem::take(&mut self.participants).into_values().for_each(|voice| voice.reader.abort());
        }
    }

    /// Does what a command says: what came of it.
    async fn command(&mut self, open: &PendingMessage, command: Command) -> String {
        let who = Sender::from(open);
        if let Some(told) = self.not_let_in(&who).await {
            return told;
        }
        match command {
            Command::Help => help(),
            Command::Bare(is_yes) => self.which_button(is_yes),
            Command::Missing(why) => why.to_owned(),
            Command::Unknown(name) => format!("There is no command /{name} here. /help lists the commands."),
            Command::Pin(text) => self.asked(&who, &Op::Pin { text }, "Kept in mind.").await,
            Command::Page(page) => without_columns(&self.of_daemon(&who, RequestKind::Told(page)).await),
            Command::Changes(what) => self.of_changes(&who, what).await,
            Command::Clear => self.clear(&who, 0).await,
            Command::Answer { question, is_yes, why } => match self.questions(&question)[..] {
                [(id, _)] if !question.is_empty() => {
                    if is_yes && !self.is_shown(id).await {
                        return UNSEEN.into();
                    }
                    let answer = if is_yes { Verdict::Yes } else { Verdict::No };
                    self.asked(&who, &Op::Answer { id, answer, why, by: None }, "").await
                }
                _ => self.which(&who, &question, is_yes, &why).await,
            },
        }
    }

    /// The words for a person who is not let in.
    async fn not_let_in(&self, who: &Sender) -> Option<String> {
        match self.bridge.ask(who, &self.at, RequestKind::LetIn).await {
            Ok((answer @ PersonAnswer::Stranger(_), _)) => Some(told(answer)),
            Ok(_) => None,
            Err(error) => Some(format!("{error:#}")),
        }
    }

    /// Ends the conversation's session, once it is known which changes stay in it: what is written meanwhile
    /// is for the next one.
    async fn begin_clearing(&mut self, open: PendingMessage) {
        let who = Sender::from(&open);
        if self.is_working || !self.said.is_empty() {
            // What the session was told would be told again to one that does not know it.
            let told = match self.not_let_in(&who).await {
                Some(told) => told,
                None => {
                    "A turn is running. Stop it with /stop or wait for its end, then send /new again.".into()
                }
            };
            return self.tell(&open, &told).await;
        }
        if !self.want_clearing(&who, &open).await {
            let told = self.command(&open, Command::Clear).await;
            self.tell(&open, &told).await;
        }
    }

    /// The next message begins a new session; so many files of this one are not applied.
    async fn clear(&mut self, who: &Sender, files: usize) -> String {
        let cleared = self.bridge.ask(who, &self.at, RequestKind::Clear).await;
        let told = match cleared {
            Ok((PersonAnswer::Done(told), _)) => told,
            Ok((answer, _)) => return told(answer),
            Err(error) => return format!("{error:#}"),
        };
        self.drop_voices();
        self.give_up_all("The conversation was cleared.").await;
        self.close_offer("\n\nA new session begins: these changes stay in the one before.").await;
        // What waits for the old one is the new one's, which need not be waited for.
        self.again = self.again.map(|_| Instant::now());
        self.wait = AGAIN;
        match (files, self.current.take()) {
            (0, _) | (_, None) => told,
            (files, Some(old)) => {
                let (what, old) = (if files == 1 { "change is" } else { "changes are" }, short(&old));
                format!(
                    "{told}. {files} {what} not applied, and stay in the session before: at the \
                     machine, `bailey sessions diff {old}` shows the changes, and `bailey sessions apply \
                     {old}` moves them to your project."
                )
            }
        }
    }

    /// Tells whoever wrote a message what Bailey itself says to it, and forgets it. That is noted before, so
    /// that whoever is killed meanwhile does not do it once more, and says the same.
    async fn tell(&self, open: &PendingMessage, told: &str) {
        if told.is_empty() {
            return self.close(|other| other.key == open.key);
        }
        let told = Some(self.bridge.words(told).text);
        self.note(|notes| {
            let here = notes.open.iter_mut().filter(|other| other.key == open.key);
            here.for_each(|other| other.told.clone_from(&told));
        });
        self.tell_again(PendingMessage { told, ..open.clone() }).await;
    }

    async fn tell_again(&self, open: PendingMessage) {
        let (bridge, name) = (&self.bridge, self.bridge.name(&self.at, &["told", &open.key]));
        let post = Post { text: open.told.unwrap_or_default(), buttons: Vec::new() };
        bridge.deliver(&self.at, name, || bridge.channel.send(&self.at, &post)).await.ok();
        self.close(|other| other.key == open.key);
    }

    async fn asked(&mut self, who: &Sender, op: &Op, done: &str) -> String {
        match self.ask(who, op).await {
            Ok(None) => done.to_owned(),
            Ok(Some(told)) => told,
            Err(error) => format!("{error:#}"),
        }
    }

    async fn of_daemon(&self, who: &Sender, what: RequestKind) -> String {
        of_daemon(&self.bridge, &self.at, who, what).await.map_or_else(|told| told, |_| String::new())
    }

    fn show_busy(&self) {
        if let Some(call) = self.bridge.channel.busy(&self.at).filter(|_| self.bridge.is_open(&self.at)) {
            let bridge = self.bridge.clone();
            spawn_local(async move { bridge.call(call).await });
        }
    }

    /// Says something that is so just now: when it is so again, that is something else.
    async fn now(&self, text: &str) {
        self.word(self.bridge.call_name(), text).await;
    }

    async fn word(&self, name: String, text: &str) {
        let (bridge, post) = (&self.bridge, self.bridge.words(text));
        bridge.deliver(&self.at, name, || bridge.channel.send(&self.at, &post)).await.ok();
    }

    /// Forgets messages that are answered.
    fn close(&self, is_closed: impl Fn(&PendingMessage) -> bool) {
        self.note(|notes| notes.open.retain(|open| !is_closed(open)));
    }

    /// What cannot be noted now is known until this process ends, and done once more after that.
    fn note(&self, change: impl FnOnce(&mut Notes)) {
        self.bridge.book.change(change).ok();
    }
}

/// A page for a narrow screen, in letters of any width: dots part the columns.
fn without_columns(page: &str) -> String {
    let line = |line: &str| {
        let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        cells.collect::<Vec<_>>().join(" · ")
    };
    page.trim_end().lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Asks the daemon for something: the connection that came, or what to tell whoever asks.
async fn of_daemon(
    bridge: &Bridge,
    at: &Conversation,
    who: &Sender,
    what: RequestKind,
) -> Result<OwnedFd, String> {
    match bridge.ask(who, at, what).await {
        Ok((PersonAnswer::Connected(..), Some(fd))) => Ok(fd),
        Ok((answer, _)) => Err(told(answer)),
        Err(error) => Err(format!("{error:#}")),
    }
}

/// What is said of an answer that brought no connection.
fn told(answer: PersonAnswer) -> String {
    match answer {
        PersonAnswer::Done(told) | PersonAnswer::Denied(told) | PersonAnswer::Refused(told) => told,
        PersonAnswer::Stranger(command) => command.map(|command| stranger(&command)).unwrap_or_default(),
        PersonAnswer::Connected(..) => "no connection came".to_owned(),
    }
}

/// Stops something, and says what came of it: it waits for nothing, not even for an answer that is being
/// shown.
pub(super) async fn stop_at_once(bridge: Rc<Bridge>, at: Conversation, open: PendingMessage, what: Stop) {
    // What was written before it and is not worked on yet does not begin after it. What came with it and was
    // written behind it, does.
    let before = bridge.book.get(|notes| notes.open_in(&at)).into_iter().take_while(|it| it.key != open.key);
    let before: BTreeSet<String> = before.map(|it| it.key).collect();
    let (is_done, told) = stop(&bridge, &at, &open, what).await;
    // As soon as it is done: everything may end now, and whoever begins again is not to stop it once more.
    let is_stopped =
        |it: &PendingMessage| it.key == open.key || is_done && it.id == open.id && before.contains(&it.key);
    bridge.book.change(|notes| notes.open.retain(|it| !is_stopped(it))).ok();
    bridge.stopping.borrow_mut().remove(&open.key);
    if !told.is_empty() {
        let (name, post) = (bridge.name(&at, &["told", &open.key]), bridge.words(&told));
        bridge.deliver(&at, name, || bridge.channel.send(&at, &post)).await.ok();
    }
}

/// Whether it was done, and what is said of it.
async fn stop(bridge: &Bridge, at: &Conversation, open: &PendingMessage, what: Stop) -> (bool, String) {
    let who = Sender::from(open);
    let asks = if what == Stop::Everything { RequestKind::Estop } else { RequestKind::Running };
    match bridge.ask(&who, at, asks).await {
        Ok((PersonAnswer::Connected(..), Some(fd))) => match cancel(fd).await {
            Ok(()) => (true, "The turn is being stopped.".into()),
            Err(error) => (false, format!("{error:#}")),
        },
        // That nothing runs, or everything stops.
        Ok((PersonAnswer::Done(told), _)) => (true, told),
        Ok((answer, _)) => (false, told(answer)),
        Err(error) => (false, format!("{error:#}")),
    }
}

/// Cancels a turn over a connection of its own.
async fn cancel(fd: OwnedFd) -> Result<()> {
    let stream = net::UnixStream::from(fd);
    stream.set_nonblocking(true)?;
    let mut stream = BufReader::new(UnixStream::from_std(stream)?);
    wire::say(&mut stream, &Op::Cancel).await?;
    let refused = async {
        while let Ok(Some(line)) = wire::line(&mut stream, EVENT_BYTES_MAX).await {
            if let Ok(Event { happening: Happening::Failed { op, error }, .. }) =
                serde_json::from_slice(&line)
                && op == "cancel"
            {
                return Some(error);
            }
        }
        None
    };
    // Who may is told nothing.
    match timeout(REFUSED, refused).await {
        Ok(Some(error)) => anyhow::bail!(error),
        Ok(None) | Err(_) => Ok(()),
    }
}

/// What somebody is told who is not known.
fn stranger(command: &str) -> String {
    format!(
        "You are not known here. The owner of this Bailey can let you in, at the \
         machine:\n\n{command}\n\nThe code is valid for an hour. Your message was not read."
    )
}

async fn listen(who: String, read: OwnedReadHalf, to_hear: mpsc::Sender<(String, Option<Event>)>) {
    let mut read = BufReader::new(read);
    while let Ok(Some(line)) = wire::line(&mut read, EVENT_BYTES_MAX).await {
        let Ok(event) = serde_json::from_slice(&line) else { continue };
        if to_hear.send((who.clone(), Some(event))).await.is_err() {
            return;
        }
    }
    to_hear.send((who, None)).await.ok();
}
