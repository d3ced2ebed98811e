//! The daemon's chat channels: a process for each, which is begun again when it ends, and what it asks for.

use super::{
    Daemon,
    bridge::{self, Answer, Answered, Asked, What},
    ended, process, reader,
    wire::{self, ChannelState, Introduced, Told, Wanted},
};
use crate::{
    channels::{People, Sessions},
    config::{Channel, Config},
    exit,
};
use anyhow::{Context as _, Result, bail};
use bailey_protocol::{Role, Speaker};
use rustix::{
    net::{AddressFamily, SocketFlags, SocketType},
    process::{Signal, kill_process_group},
};
use serde_json::json;
use std::{
    cell::RefCell,
    io::{self, Write as _},
    os::{
        fd::AsFd as _,
        unix::{net, process::CommandExt as _},
    },
    process::{Command, Stdio},
    rc::Rc,
    time::Duration,
};
use tokio::{
    io::Interest,
    net::UnixStream,
    sync::Semaphore,
    task::spawn_local,
    time::{Instant, sleep, timeout},
};

/// How long the process of a channel is left before it is begun again, at first and at most.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// One that lived so long begins anew at once.
const LIVED: Duration = Duration::from_secs(300);
/// How long a channel may take to say that everything stops.
const LAST_WORD: Duration = Duration::from_millis(300);
/// How much of what it asks for is looked after at once.
const AT_ONCE_MAX: usize = 16;
/// What a page may take, and how much of it is told, in bytes.
const PAGE_MAX: Duration = Duration::from_secs(30);
const PAGE_BYTES_MAX: usize = 3500;

/// A channel that is kept up.
pub(super) struct Kept {
    state: RefCell<ChannelState>,
    /// The daemon's end; none while no process runs.
    socket: RefCell<Option<Rc<UnixStream>>>,
    /// Whether it is to be begun no more.
    is_over: std::cell::Cell<bool>,
}

impl Kept {
    pub(super) fn state(&self) -> ChannelState {
        self.state.borrow().clone()
    }

    /// Ends its process, where it stands: what it was about lies in its notes.
    pub(super) fn end(&self) {
        self.is_over.set(true);
        if let Some(socket) = self.socket.borrow_mut().take() {
            rustix::net::shutdown(&*socket, rustix::net::Shutdown::Both).ok();
        }
    }
}

impl Daemon {
    /// Keeps up what the configuration names, and nothing else.
    pub(super) fn keep_channels(self: &Rc<Self>, config: &Config) {
        let mut kept = self.channels.borrow_mut();
        kept.iter().for_each(|channel| channel.end());
        kept.clear();
        for (name, channel) in &config.channels {
            let state = ChannelState { name: name.clone(), up: false, note: "begins".into() };
            let one = Rc::new(Kept {
                state: RefCell::new(state),
                socket: RefCell::default(),
                is_over: std::cell::Cell::default(),
            });
            kept.push(one.clone());
            spawn_local(self.clone().keep_up(one, name.clone(), channel.clone()));
        }
    }

    async fn keep_up(self: Rc<Self>, kept: Rc<Kept>, name: String, channel: Channel) {
        let mut pause = PAUSE_MIN;
        while !kept.is_over.get() && !self.is_stopping.get() {
            let begun = Instant::now();
            let ended = self.run_channel(&kept, &name, &channel).await;
            let why = match ended {
                Ok(code) if code == Some(i32::from(exit::WRONG)) => {
                    // Its last words say why; the owner mends it and says so.
                    kept.state.borrow_mut().up = false;
                    self.log.note("channel_given_up", json!({ "channel": name }));
                    return;
                }
                Ok(_) => "its process ended".to_owned(),
                Err(error) => format!("{error:#}"),
            };
            *kept.state.borrow_mut() = ChannelState { name: name.clone(), up: false, note: why.clone() };
            if kept.is_over.get() || self.is_stopping.get() {
                return;
            }
            self.log.note("channel_ended", json!({ "channel": name, "why": why }));
            pause = if begun.elapsed() > LIVED { PAUSE_MIN } else { (pause * 2).min(PAUSE_MAX) };
            sleep(pause).await;
        }
    }

    /// Runs the process of a channel to its end: its exit code.
    async fn run_channel(
        self: &Rc<Self>,
        kept: &Rc<Kept>,
        name: &str,
        channel: &Channel,
    ) -> Result<Option<i32>> {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let mut child = Command::new("/proc/self/exe")
            .arg("--home")
            .arg(&self.home.root)
            .args(["channels", "run", name])
            .current_dir("/")
            .process_group(0)
            .env_remove("NOTIFY_SOCKET")
            .env_remove("WATCHDOG_USEC")
            .env_remove("WATCHDOG_PID")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("no process can be started")?;
        let err = child.stderr.take().context("a process has no pipes")?;
        let group = process(child.id());
        let remarks = Rc::new(RefCell::new(Vec::new()));
        let said = spawn_local(self.clone().listen(reader(err.into())?, remarks.clone()));
        let socket = Rc::new(UnixStream::from_std(net::UnixStream::from(ours))?);
        *kept.socket.borrow_mut() = Some(socket.clone());
        *kept.state.borrow_mut() = ChannelState { name: name.into(), up: true, note: String::new() };
        self.log.note("channel_begun", json!({ "channel": name, "pid": child.id() }));
        let turns = Rc::new(Semaphore::new(AT_ONCE_MAX));
        while let Some(asked) = receive(&socket).await {
            let (daemon, socket, turns) = (self.clone(), socket.clone(), turns.clone());
            let (name, channel) = (name.to_owned(), channel.clone());
            spawn_local(async move {
                let _turn = turns.acquire().await;
                let number = asked.number;
                let answered = daemon.serve_channel(&name, &channel, asked).await;
                let (answer, stream) =
                    answered.unwrap_or_else(|error| (Answer::Refused(format!("{error:#}")), None));
                let answered = Answered { number, answer };
                // Who has ended needs no answer.
                bridge::send(&*socket, &answered, stream.as_ref().map(|stream| stream.as_fd())).ok();
            });
        }
        kept.socket.borrow_mut().take();
        drop(socket);
        // It ends with its line; who does not is no channel any more.
        let status = match timeout(super::ENDING_MAX, ended(child)).await {
            Ok(status) => status,
            Err(_) => {
                group.map(|group| kill_process_group(group, Signal::KILL));
                None
            }
        };
        timeout(super::ENDING_MAX, said).await.ok();
        if let Some(last) = remarks.borrow().last() {
            kept.state.borrow_mut().note = last.strip_prefix("error: ").unwrap_or(last).to_owned();
        }
        Ok(status.and_then(|status| status.code()))
    }

    /// What somebody at a channel asks for, by who they are to the owner.
    async fn serve_channel(
        self: Rc<Self>,
        name: &str,
        channel: &Channel,
        asked: Asked,
    ) -> Result<(Answer, Option<net::UnixStream>)> {
        let people = People::of(&self.home, name)?;
        let Some(speaker) = people.speaker(name, &asked.id) else {
            // Whoever writes again and again writes nothing here.
            if people.is_noted(&asked.id) {
                return Ok((Answer::Stranger(None), None));
            }
            let code = People::change(&self.home, name, |people| people.ask(&asked.id, &asked.name))?;
            let new = code.filter(|(_, is_new)| *is_new).map(|(code, _)| code);
            if new.is_some() {
                self.log.note("stranger", json!({ "channel": name, "id": asked.id, "name": asked.name }));
            }
            return Ok((Answer::Stranger(new), None));
        };
        let looks_after = matches!(speaker.role, Role::Owner | Role::Operator);
        let denied = || Ok((Answer::Denied("that is for those who look after this home".into()), None));
        match asked.what {
            What::Connection => {
                let stream = self.connect(name, channel, &asked.at, &speaker).await?;
                Ok((Answer::Connected(speaker), Some(stream)))
            }
            What::Clear => {
                Sessions::set(&self.home, name, &asked.at, None)?;
                Ok((Answer::Done("the next message begins a new session".into()), None))
            }
            What::Told(_) | What::Estop if !looks_after => denied(),
            What::Told(page) => Ok((Answer::Done(self.page(page.words()).await?), None)),
            What::Estop => {
                self.log.note("estop", json!({ "by": speaker.line() }));
                let reason = format!("by {}", speaker.line());
                let mut command = self.command();
                command.args(["estop", "--reason", &reason]).stdout(Stdio::null());
                spawn_local(async move {
                    // The channel's process ends with all others, and is to say that it does.
                    sleep(LAST_WORD).await;
                    let stopped = tokio::task::spawn_blocking(move || command.status()).await;
                    if !stopped.is_ok_and(|status| status.is_ok_and(|status| status.success())) {
                        self.log.note("not_stopped", json!({}));
                    }
                });
                let told = "everything stops; nothing begins until `bailey estop --release` at the machine";
                Ok((Answer::Done(told.into()), None))
            }
        }
    }

    /// A connection to a conversation's session, introduced as theirs.
    async fn connect(
        self: &Rc<Self>,
        name: &str,
        channel: &Channel,
        at: &str,
        speaker: &Speaker,
    ) -> Result<net::UnixStream> {
        let known = Sessions::of(&self.home, name).get(at);
        let mut again = Vec::new();
        if let Some(model) = &channel.model {
            again.extend(["--model".to_owned(), model.clone()]);
        }
        let wanted = |session: Option<bailey_protocol::SessionId>| {
            let place = match session {
                Some(session) => ["--resume".to_owned(), session.to_string()],
                None => ["-C".to_owned(), channel.workspace.display().to_string()],
            };
            let words = again.iter().cloned().chain(place).collect();
            Wanted { directory: channel.workspace.clone(), words, again: again.clone(), session }
        };
        let opened = match self.open(wanted(known)).await {
            // One that was removed, or cannot be gone on with, is no reason to say nothing any more.
            Err(error) if known.is_some() && !self.is_stopping.get() => {
                self.log.note("not_resumed", json!({ "session": known, "why": format!("{error:#}") }));
                self.open(wanted(None)).await
            }
            opened => opened,
        };
        let Told::Opened { session, .. } = opened? else { bail!("the session was not opened") };
        if known != Some(session) {
            Sessions::set(&self.home, name, at, Some(session))?;
        }
        let mut stream = wire::connect(&self.home.daemon(), &session.to_string())
            .with_context(|| format!("session {session} cannot be reached"))?;
        let mut line = serde_json::to_vec(&Introduced { introduced: speaker.clone() })?;
        line.push(b'\n');
        stream.write_all(&line)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("/proc/self/exe");
        command.arg("--home").arg(&self.home.root).args(["--color", "never"]).stdin(Stdio::null());
        command
    }

    pub(super) async fn page(&self, words: &[&str]) -> Result<String> {
        let mut command = self.command();
        command.args(words).stderr(Stdio::null());
        let printed = tokio::task::spawn_blocking(move || command.output());
        let printed = timeout(PAGE_MAX, printed).await.context("it took too long")???;
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

/// The next question of a channel's process; none when it has ended, or says what is none.
async fn receive(socket: &UnixStream) -> Option<Asked> {
    loop {
        socket.readable().await.ok()?;
        let received = socket.try_io(Interest::READABLE, || bridge::receive::<Asked>(socket));
        match received {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            received => return received.ok()?.map(|(asked, _)| asked),
        }
    }
}
