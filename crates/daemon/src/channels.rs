//! The daemon's chat channels: the requests of their processes.

use super::{Daemon, SessionProcess, attached::AttachedProcess, record::Record, schedules::wanted};
use anyhow::{Context as _, Error, Result, bail};
pub(crate) use bailey_channels::need::{Due, Given, Need, Page, PersonAnswer, PersonRequest, RequestKind};
use bailey_channels::{Conversation, Greeting, Kind, People, Sessions};
use bailey_home::{
    config::{Channel, Config},
    program,
    schedules::Schedules,
};
use bailey_protocol::{Role, SessionId, Speaker};
use bailey_session::{
    exit::{self, Failure},
    wire::{self, DaemonAnswer, Introduced, Wanted},
};
use bailey_terminal::short;
use serde_json::json;
use std::{
    io::Write as _,
    os::{fd::OwnedFd, unix::net},
    process::{Command, Stdio},
    rc::Rc,
    time::{Duration, Instant},
};
use tokio::{
    sync::oneshot,
    task::spawn_local,
    time::{sleep, timeout},
};

/// How long a channel may take to say that everything stops.
const LAST_WORD: Duration = Duration::from_millis(300);
/// How long a copy of the home may take.
pub(super) const COPY_MAX: Duration = Duration::from_secs(3600);
/// How often a channel's process is told of schedules that owe it a result, when it is not told at once.
const DUE_LOOK: Duration = Duration::from_secs(15);
/// How long a question of a turn that runs waits before the owner is told of it elsewhere.
const UNANSWERED: Duration = Duration::from_secs(60);
/// How the key begins under which a channel is given the questions of a session.
const QUESTIONS: &str = "questions:";
/// How the key begins under which a channel is given a person who is to be told that they are let in.
const GREETS: &str = "let in:";
/// How long a page may take, and how many bytes of it are sent.
const PAGE_MAX: Duration = Duration::from_secs(30);
const PAGE_BYTES_MAX: usize = 3500;

impl Daemon {
    /// Keeps up the channels that the configuration names, and no others.
    pub(super) fn keep_channels(self: &Rc<Self>, config: &Config) {
        let mut kept = self.channels.borrow_mut();
        kept.iter().for_each(|channel| channel.end());
        kept.clear();
        for (name, channel) in &config.channels {
            let mut one = AttachedProcess::new("channel", name);
            one.takes_deliveries = Kind::of(&channel.kind).is_some_and(|kind| kind.is_inbound);
            one.is_up_once_it_says = true;
            let one = Rc::new(one);
            kept.push(one.clone());
            let inbox = one.clone();
            let words = ["channels", "run", name].map(str::to_owned);
            let (name, channel) = (name.clone(), channel.clone());
            let serve = move |daemon: Rc<Self>, need: Need| {
                let (name, channel, kept) = (name.clone(), channel.clone(), inbox.clone());
                let left = kept.inbox.left();
                async move {
                    let asked = match need {
                        Need::Person(asked) => asked,
                        Need::Up => {
                            kept.is_connected();
                            daemon.changed.notify_waiters();
                            return Ok((Given::Noted, None));
                        }
                        Need::Delivery(taken) => {
                            let gone = || Given::Person(PersonAnswer::Refused("it has ended".into()));
                            let next = kept.inbox.next(left, taken).await;
                            return Ok((next.map_or_else(gone, Given::Delivery), None));
                        }
                        Need::Due(noted) => {
                            let gone = || Given::Person(PersonAnswer::Refused("it has ended".into()));
                            let is_there = || kept.inbox.left() == left;
                            let due = daemon.next_due((&name, &channel), (noted, left), is_there).await?;
                            return Ok((due.map_or_else(gone, Given::Due), None));
                        }
                    };
                    let (answer, fd) = daemon.serve_channel(&name, &channel, asked).await?;
                    Ok((Given::Person(answer), fd))
                }
            };
            self.keep_up(one, words.into(), |_| Ok(()), serve);
        }
    }

    /// Ends the processes of all channels, and with them their connections; each process begins again at
    /// once.
    pub(super) fn begin_channels_anew(&self) -> DaemonAnswer {
        self.channels.borrow().iter().for_each(|kept| kept.begin_anew());
        DaemonAnswer::Anew
    }

    /// Serves a person's request at a channel, according to who that person is to the owner.
    async fn serve_channel(
        self: Rc<Self>,
        name: &str,
        channel: &Channel,
        asked: PersonRequest,
    ) -> Result<(PersonAnswer, Option<OwnedFd>)> {
        let people = People::of(&self.home, name)?;
        let Some(speaker) = people.speaker(name, &asked.id) else {
            // A stranger who writes again and again causes no more writes here, and one who taps, or is to be
            // written to, takes no place of those who ask.
            let is_asking = !matches!(asked.what, RequestKind::Tap | RequestKind::Address);
            if !is_asking || people.is_told_enough(&asked.id) {
                return Ok((PersonAnswer::Stranger(None), None));
            }
            let told = People::change(&self.home, name, |people| {
                let code = people.ask(&asked.id, &asked.name, &asked.at)?;
                Ok(code.map(|(code, is_new)| (people.command(name, &code), is_new)))
            })?;
            if matches!(told, Some((_, true))) {
                self.log.note("stranger", json!({ "channel": name, "id": asked.id, "name": asked.name }));
            }
            return Ok((PersonAnswer::Stranger(told.map(|(command, _)| command)), None));
        };
        let looks_after = matches!(speaker.role, Role::Owner | Role::Operator);
        let denied = || {
            Ok((PersonAnswer::Denied("only an owner or an operator of this home may do that".into()), None))
        };
        let about = about(channel, &asked.at);
        match asked.what {
            RequestKind::Address | RequestKind::LetIn => Ok((PersonAnswer::Done(speaker.name), None)),
            _ if about.is_some() && !looks_after => denied(),
            // Its owner alone is told of the questions of other sessions.
            _ if matches!(about, Some(About::Session(_))) && speaker.role != Role::Owner => denied(),
            RequestKind::Connection | RequestKind::Tap | RequestKind::Known if let Some(about) = about => {
                let session = match about {
                    About::Schedule(schedule) => self.result(name, schedule)?,
                    About::Session(session) => self.asked_by((name, &asked.at), session),
                };
                // A session that will never be there is not tried again.
                let wanted = match session {
                    Ok(wanted) => wanted,
                    Err(why) => return Ok((PersonAnswer::Denied(why), None)),
                };
                let of = wanted.session;
                let session = match self.open(wanted).await {
                    Ok(DaemonAnswer::Opened { session, .. }) => session,
                    Ok(_) => bail!("the session was not opened"),
                    Err(error) if of.is_some_and(|of| self.is_over(of, &error)) => {
                        return Ok((PersonAnswer::Denied(format!("{error:#}")), None));
                    }
                    Err(error) => return Err(error),
                };
                let stream = self.introduce(session, &speaker)?;
                Ok((PersonAnswer::Connected(speaker, session), Some(stream.into())))
            }
            RequestKind::Known
                if Sessions::of(&self.home, name).about(&asked.at, &channel.workspace).is_none() =>
            {
                let told = "This conversation has no session yet: write what the agent is to do.";
                Ok((PersonAnswer::Refused(told.into()), None))
            }
            RequestKind::Connection | RequestKind::Tap | RequestKind::Known => {
                let (session, stream) = self.connect(name, channel, &asked.at, &speaker).await?;
                Ok((PersonAnswer::Connected(speaker, session), Some(stream.into())))
            }
            RequestKind::Running => {
                let known = Sessions::of(&self.home, name).get(&asked.at);
                let running = known.filter(|known| self.sessions.borrow().contains_key(known));
                Ok(match running {
                    Some(session) => {
                        let stream = self.introduce(session, &speaker)?;
                        (PersonAnswer::Connected(speaker, session), Some(stream.into()))
                    }
                    None => (PersonAnswer::Done("No turn is running.".into()), None),
                })
            }
            RequestKind::Clear if speaker.role == Role::Guest => {
                Ok((PersonAnswer::Denied("a guest cannot end the conversation".into()), None))
            }
            RequestKind::Clear => {
                Sessions::end(&self.home, name, &asked.at)?;
                Ok((PersonAnswer::Done("the next message begins a new session".into()), None))
            }
            RequestKind::Told(_) | RequestKind::Estop if !looks_after => denied(),
            RequestKind::Told(Page::Backup) => Ok((PersonAnswer::Done(self.copied().await?), None)),
            RequestKind::Told(page) => Ok((PersonAnswer::Done(self.page(page.words()).await?), None)),
            RequestKind::Estop => {
                self.log.note("estop", json!({ "by": speaker.line() }));
                let reason = format!("by {}", speaker.line());
                let mut command = self.command();
                command.args(["estop", "--reason", &reason]).stdout(Stdio::null());
                spawn_local(async move {
                    // The channel's process ends with all others, and first has time to say that it does.
                    sleep(LAST_WORD).await;
                    let stopped = tokio::task::spawn_blocking(move || command.status()).await;
                    if !stopped.is_ok_and(|status| status.is_ok_and(|status| status.success())) {
                        self.log.note("not_stopped", json!({}));
                    }
                });
                let told = "everything stops; nothing begins until you run `bailey estop --release` at the \
                    machine";
                Ok((PersonAnswer::Done(told.into()), None))
            }
        }
    }

    /// Waits for the next task of a schedule whose result is for this channel, or the next session whose
    /// questions its owner is to be told of. `noted` is the key of the one that its process has noted, and
    /// the number of its processes before it. `None` once that process has ended.
    async fn next_due(
        &self,
        (name, channel): (&str, &Channel),
        (noted, left): (Option<String>, u64),
        is_there: impl Fn() -> bool,
    ) -> Result<Option<Due>> {
        let asking = noted.as_deref().and_then(|key| key.strip_prefix(QUESTIONS)).and_then(SessionId::parse);
        if let Some(session) = asking.filter(|session| self.asking().contains(session)) {
            self.is_told_of.borrow_mut().insert((name.to_owned(), session), left);
        } else if let Some(id) = noted.as_deref().and_then(|key| key.strip_prefix(GREETS)) {
            // The key ends with the role.
            let id = id.rsplit_once(' ').map_or(id, |(id, _)| id);
            People::change(&self.home, name, |people| {
                people.greeted(id);
                Ok(())
            })?;
        } else if let Some(key) = noted.filter(|_| asking.is_none()) {
            Schedules::change(&self.home, |schedules| {
                let mut owed = schedules.0.values_mut().map(|schedule| &mut schedule.owed);
                if let Some(owed) = owed.find(|owed| owed.as_ref() == Some(&key)) {
                    *owed = None;
                }
                Ok(())
            })?;
        }
        while is_there() && !self.is_stopping.get() {
            if let Some(due) = self.due_at(name, channel, left)? {
                return Ok(Some(due));
            }
            tokio::select! {
                () = self.owes.notified() => {}
                () = sleep(DUE_LOOK) => {}
            }
        }
        Ok(None)
    }

    /// A task whose result is for this channel, or a session that asks, if an owner is let in there.
    fn due_at(&self, name: &str, channel: &Channel, left: u64) -> Result<Option<Due>> {
        let schedules = Schedules::of(&self.home)?.0;
        let mut here = schedules.iter().filter(|(_, schedule)| schedule.to.as_deref() == Some(name));
        let owed = here.clone().find_map(|(schedule, it)| Some((schedule, it.owed.clone()?)));
        let asking = self
            .asking()
            .into_iter()
            .find(|session| self.is_told_of.borrow().get(&(name.to_owned(), *session)) != Some(&left));
        let people = People::of(&self.home, name)?;
        if let Some(greeting) = people.greeting() {
            return Ok(self.greets(name, channel, greeting));
        }
        if owed.is_none() && asking.is_none() {
            return Ok(None);
        }
        let Some(Speaker { id, name: person, .. }) = people.owner(name) else {
            return Ok(None);
        };
        let alone = Kind::of(&channel.kind).and_then(|kind| (kind.channel)().alone(&id));
        let Some(alone) = alone else { return Ok(None) };
        let due = |key, at: Conversation, is_question| Due {
            key,
            at: at.0,
            id,
            name: person,
            is_question,
            told: None,
            is_followed: false,
        };
        Ok(match (owed, asking) {
            (Some((schedule, key)), _) => Some(due(key, alone.of_schedule(schedule), false)),
            (None, Some(session)) => {
                // Noted before the channel's process hears of it.
                Sessions::hand(&self.home, name, &alone.of_session(session).0, session)?;
                let schedule = here.find(|(_, schedule)| schedule.session == Some(session));
                let at =
                    schedule.map_or_else(|| alone.of_session(session), |(name, _)| alone.of_schedule(name));
                Some(due(format!("{QUESTIONS}{session}"), at, true))
            }
            (None, None) => None,
        })
    }

    /// A person who is told that they are let in, where they asked. A turn of the conversation's session that
    /// runs or waits is shown to them again.
    fn greets(&self, name: &str, channel: &Channel, greeting: Greeting) -> Option<Due> {
        let Greeting { id, name: person, role, asked_at, words } = greeting;
        let alone = || Kind::of(&channel.kind).and_then(|kind| (kind.channel)().alone(&id)).map(|at| at.0);
        let at = asked_at.or_else(alone)?;
        let session = Sessions::of(&self.home, name).about(&at, &channel.workspace);
        let is_followed = session.is_some_and(|session| {
            let runs = |held: &SessionProcess| held.shown.state.working || held.asks.is_some();
            self.sessions.borrow().get(&session).is_some_and(runs)
                || self.resting.borrow().get(&session).is_some_and(|it| it.open > 0)
        });
        let key = format!("{GREETS}{id} {}", role.name());
        Some(Due { key, at, id, name: person, is_question: false, told: Some(words), is_followed })
    }

    /// The sessions whose questions the owner is told of. While a turn waits for an answer itself, a person
    /// may be about to give it.
    fn asking(&self) -> Vec<SessionId> {
        let (resting, sessions) = (self.resting.borrow(), self.sessions.borrow());
        let resting = resting.iter().filter(|(_, it)| it.record.tells_owner && it.open > 0);
        let running = sessions.iter().filter(|(_, it)| {
            let is_late = |since: Instant| !it.shown.state.working || since.elapsed() >= UNANSWERED;
            it.record.tells_owner && it.asks.is_some_and(is_late)
        });
        resting.map(|(session, _)| *session).chain(running.map(|(session, _)| *session)).collect()
    }

    /// A session of whose questions the owner was told in this conversation; or the reason why not.
    fn asked_by(&self, (name, at): (&str, &str), session: SessionId) -> Result<Wanted, String> {
        let is_told = Sessions::of(&self.home, name).get(at) == Some(session);
        #[cfg(feature = "controls")]
        let is_told = is_told || bailey_session::controls::is_page_without("told");
        if !is_told {
            return Err(format!("You were not told of session {} here.", short(&session)));
        }
        let running = self.sessions.borrow().get(&session).map(|held| held.record.clone());
        let record = running.or_else(|| self.resting.borrow().get(&session).map(|it| it.record.clone()));
        let again = vec!["--unattended".to_owned()];
        let ended = || Record { session, directory: "/".into(), again, tells_owner: true };
        Ok(record.unwrap_or_else(ended).wanted())
    }

    /// The session of a schedule's last run, whose result is for this channel; or the reason why not.
    fn result(&self, name: &str, schedule: &str) -> Result<Result<Wanted, String>> {
        let found = Schedules::of(&self.home)?.0.remove(schedule).filter(|it| it.to.as_deref() == Some(name));
        let Some(found) = found else {
            return Ok(Err(format!(
                "⏰ {schedule}: the schedule was removed, so its result does not come here."
            )));
        };
        let over = || format!("⏰ {schedule}: the schedule has not run yet.");
        Ok(found.session.map(|session| wanted(schedule, &found, Some(session))).ok_or_else(over))
    }

    /// A connection to a conversation's session, introduced as this person's.
    async fn connect(
        self: &Rc<Self>,
        name: &str,
        channel: &Channel,
        at: &str,
        speaker: &Speaker,
    ) -> Result<(SessionId, net::UnixStream)> {
        let known = Sessions::of(&self.home, name).about(at, &channel.workspace);
        let mut again = vec!["--unattended".to_owned()];
        if let Some(model) = &channel.model {
            again.extend(["--model".to_owned(), model.clone()]);
        }
        again.extend(channel.agent.iter().map(|agent| format!("--agent={agent}")));
        let of_conversation = |session: Option<SessionId>| {
            let place = match session {
                Some(session) => ["--resume".to_owned(), session.to_string()],
                None => ["-C".to_owned(), channel.workspace.display().to_string()],
            };
            let words = again.iter().cloned().chain(place).collect();
            Wanted {
                directory: channel.workspace.clone(),
                words,
                again: again.clone(),
                session,
                comes_back: true,
                // Its people see the questions in the conversation.
                tells_owner: false,
            }
        };
        let opened = match self.open(of_conversation(known)).await {
            // When there is no room, the session itself has no fault.
            Err(error) if self.room().is_err() => Err(error),
            // A session that was removed, or is another agent's, must not silence the conversation: a new one
            // begins. A session that cannot be had just now is waited for, because the words that were said
            // to it belong to it: for example, it is looked at in a terminal, or its project is not there.
            Err(error) if known.is_some_and(|known| self.is_over(known, &error)) => {
                self.log.note("not_resumed", json!({ "session": known, "why": format!("{error:#}") }));
                self.open(of_conversation(None)).await
            }
            opened => opened,
        };
        let DaemonAnswer::Opened { session, .. } = opened? else { bail!("the session was not opened") };
        if known != Some(session) {
            Sessions::begin(&self.home, name, at, (session, &channel.workspace))?;
        }
        Ok((session, self.introduce(session, speaker)?))
    }

    /// A connection to a session that runs, whose first line says whose it is.
    fn introduce(&self, session: SessionId, speaker: &Speaker) -> Result<net::UnixStream> {
        let mut stream = wire::connect(&self.home.daemon(), &session.to_string())
            .with_context(|| format!("session {session} cannot be reached"))?;
        let mut line = serde_json::to_vec(&Introduced { introduced: speaker.clone() })?;
        line.push(b'\n');
        stream.write_all(&line)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    /// Whether a session that cannot be opened now can never be opened again here.
    pub(super) fn is_over(&self, session: SessionId, error: &Error) -> bool {
        let is_wrong = error.downcast_ref::<Failure>().is_some_and(|failure| failure.code == exit::WRONG);
        !self.is_stopping.get() && (is_wrong || !self.home.of_session(session, "").exists())
    }

    pub(super) fn command(&self) -> Command {
        let mut command = program::again();
        command.arg("--home").arg(&self.home.root).args(["--color", "never"]).stdin(Stdio::null());
        command
    }

    /// Copies the home: returns the command's output, or says that the copy takes longer than a person waits.
    async fn copied(self: &Rc<Self>) -> Result<String> {
        let longer = "the backup takes longer and goes on; `bailey logs` at the machine shows its end";
        match timeout(PAGE_MAX, self.copy()?).await {
            Ok(told) => told.context("the backup was not finished")?.map_err(Error::msg),
            Err(_) => Ok(longer.to_owned()),
        }
    }

    /// Begins to copy the home, in a task of its own. The receiver gets the result.
    ///
    /// # Errors
    /// When a backup is being made already.
    pub(super) fn copy(self: &Rc<Self>) -> Result<oneshot::Receiver<Result<String, String>>> {
        if self.is_copying.replace(true) {
            bail!("a backup is being made already");
        }
        let (tell, told) = oneshot::channel();
        let daemon = self.clone();
        spawn_local(async move {
            let copied = daemon.page_within(&["backup"], COPY_MAX).await;
            daemon.is_copying.set(false);
            match &copied {
                Ok(told) => daemon.log.note("copied", json!({ "told": told.trim() })),
                Err(error) => daemon.log.note("not_copied", json!({ "why": format!("{error:#}") })),
            }
            tell.send(copied.map_err(|error| format!("{error:#}"))).ok();
        });
        Ok(told)
    }

    pub(super) async fn page(&self, words: &[&str]) -> Result<String> {
        self.page_within(words, PAGE_MAX).await
    }

    async fn page_within(&self, words: &[&str], most: Duration) -> Result<String> {
        let mut command = self.command();
        command.args(words).stderr(Stdio::null());
        let printed = tokio::task::spawn_blocking(move || command.output());
        let printed = timeout(most, printed).await.context("it took too long")???;
        if !printed.status.success() && printed.stdout.is_empty() {
            bail!("`bailey {}` failed ({})", words.join(" "), printed.status);
        }
        let text = String::from_utf8_lossy(&printed.stdout).into_owned();
        let cut = text.char_indices().map(|(at, _)| at).find(|at| *at >= PAGE_BYTES_MAX);
        Ok(match cut {
            Some(at) => format!("{}\n…", text.split_at(at).0),
            None => text,
        })
    }
}

/// The subject of a conversation that the daemon itself begins.
enum About<'a> {
    /// The results of this schedule.
    Schedule(&'a str),
    /// The questions of this session.
    Session(SessionId),
}

/// Only kinds of channels that write to a person by their id have such conversations; elsewhere the platform
/// chooses the names.
fn about<'a>(channel: &Channel, at: &'a str) -> Option<About<'a>> {
    let can_write = Kind::of(&channel.kind).is_some_and(|kind| kind.writes_to_people());
    let name = Conversation::split(at).1.filter(|_| can_write)?;
    Some(SessionId::parse(name).map_or(About::Schedule(name), About::Session))
}
