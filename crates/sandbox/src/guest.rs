//! A guest: a program that lives beside the sessions, is written to, and answers. The warden was told of it
//! and of its walls at the start. Its [`Streams`] are its standard input and output. It ends when its
//! [`Visit`] is dropped.

use crate::{
    config::Guest,
    executor::Stay,
    native::{self, Native},
    running::{OutputStream, Running, Story, hear, packets, pump},
    wire::{Job, Message, Shown, Task},
};
use bailey_kernel::{Door, Gateway, Pass, RequestSource, StandIn};
use bailey_protocol::{Outcome, Report, SessionId, Stream, Touched};
use bytes::BytesMut;
use rustix::{
    net::{SendFlags, send},
    pipe::PipeFlags,
};
use std::{
    collections::BTreeSet,
    io,
    net::TcpListener,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        UnixDatagram,
        unix::pipe::{Receiver, Sender},
    },
    sync::mpsc,
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The most that is kept of what it writes to its standard error, in bytes.
const TOLD_BYTES: u64 = 4 << 10;
/// How long is waited, after its end, to learn how it ended.
const END: Duration = Duration::from_millis(500);
/// The same of a program in a session's workspace: it is asked to end, and killed 2 s later.
const END_WITHIN: Duration = Duration::from_secs(5);

/// The standard input and output of a guest.
#[derive(Debug)]
pub struct Streams {
    stdin: Sender,
    stdout: Receiver,
}

/// A guest while it lives.
#[derive(Debug)]
pub struct Visit {
    control: UnixDatagram,
    story: Story,
    told: JoinHandle<Stream>,
    begin: Instant,
    /// Ends the serving of its requests to the network.
    _network: Option<DropGuard>,
    /// Where it is one in the workspace of a session.
    stay: Option<Stay>,
}

/// How a visit ended.
#[derive(Debug)]
pub struct Parting {
    /// What is known of how it ended by itself, and what it last wrote to its standard error.
    pub told: String,
    /// The same for the journal.
    pub outcome: Outcome,
}

impl Native {
    /// Whether a lease is one program's.
    pub(crate) fn is_guests(&self, lease: SessionId) -> bool {
        self.warden().sessions().get(&lease).is_some_and(|lease| lease.guest.is_some())
    }

    /// Starts it. In a lease of its own the warden compares: no other program runs there. Its requests to the
    /// network, where it has a way there, pass by this door.
    pub(crate) async fn receive(
        &self,
        lease: SessionId,
        guest: Guest,
        network: Option<(Arc<dyn Gateway>, Door)>,
        stay: Option<Stay>,
    ) -> io::Result<(Visit, Streams)> {
        let Guest { command, isolation, variables } = guest;
        let limits = command.limits.clone();
        let pass = Pass::random().map_err(io::Error::other)?;
        let shown = network.as_ref().map(|(gateway, _)| Shown {
            pass: pass.expose().to_owned(),
            stand_ins: stand_ins(&**gateway, &variables),
            own_hosts: gateway.own_hosts(),
        });
        let is_first = stay.is_some() && self.begins(lease).await;
        let job = Job { task: Task::Run(command, None), isolation, limits, is_first, way: shown };
        let (theirs, stdin) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let Running { stdout, stderr, control } = self.launch(lease, &job, Some(theirs))?;
        // Read all the time, so that it need not wait to be heard; nobody is shown it while it lives.
        let told = tokio::spawn(async move {
            let (out, _) = mpsc::channel(1);
            pump(stderr, OutputStream::Stderr, TOLD_BYTES, out, &CancellationToken::new()).await
        });
        let (stdin, begin) = (Sender::from_owned_fd(stdin)?, Instant::now());
        let (control, story) = (packets(control)?, Story::default());
        let mut visit = Visit { control, story, told, begin, _network: None, stay };
        if let Some((gateway, door)) = network {
            visit.serve(gateway, pass, door).await;
        }
        Ok((visit, Streams { stdin, stdout }))
    }
}

impl Streams {
    /// Writes to it. When this is dropped half-way, a part is written.
    ///
    /// # Errors
    /// When it has ended, or closed its standard input.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdin.write_all(bytes).await
    }

    /// Reads more of its output; false when it ended, or never began. Nothing is lost when this is dropped.
    pub async fn read(&mut self, into: &mut BytesMut) -> bool {
        self.stdout.read_buf(into).await.is_ok_and(|read| read > 0)
    }

    /// The same, of bytes that are there already; `None` when there are none.
    pub fn read_now(&self, into: &mut BytesMut) -> Option<bool> {
        match self.stdout.try_read_buf(into) {
            Ok(read) => Some(read > 0),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(_) => Some(false),
        }
    }

    /// Its standard output to read, and its standard input to write.
    #[must_use]
    pub fn into_parts(self) -> (Receiver, Sender) {
        (self.stdout, self.stdin)
    }
}

impl Visit {
    /// Has its requests served, as soon as it listens for them. A sandbox that was refused never does.
    async fn serve(&mut self, gateway: Arc<dyn Gateway>, pass: Pass, door: Door) {
        while let Some((message, found)) = hear(&self.control).await {
            if let (Message::Listening, Some(found)) = (&message, found) {
                let until = CancellationToken::new();
                let way = RequestSource { listener: TcpListener::from(found), pass, door };
                tokio::spawn(gateway.serve(way, until.clone()));
                self._network = Some(until.drop_guard());
                return;
            }
            self.story.take(message);
            if self.story.ended.is_some() || self.story.refusal().is_some() {
                return;
            }
        }
    }

    /// The paths of a session's workspace that it changed since the last look, where it sees one.
    pub async fn look(&self) -> Vec<Touched> {
        match &self.stay {
            Some(stay) => stay.look().await,
            None => Vec::new(),
        }
    }

    /// Ends it, with all that it started. Its streams are closed by then.
    pub async fn end(mut self, by_itself: bool) -> Parting {
        let is_within = self.stay.is_some();
        if is_within && !by_itself {
            // A merge may follow at once, and finds nothing alive in the workspace.
            send(&self.control, b"t", SendFlags::DONTWAIT | SendFlags::NOSIGNAL).ok();
        }
        // What it was started in was said before anything ran; how it ended comes last.
        let is_told = |story: &Story| match is_within {
            true => story.ended.is_some() || story.refusal().is_some(),
            false => !by_itself && story.enforced.is_some(),
        };
        let heard = async {
            while !is_told(&self.story) {
                let Some((message, _)) = hear(&self.control).await else { return };
                self.story.take(message);
            }
        };
        timeout(if is_within { END_WITHIN } else { END }, heard).await.ok();
        let Self { control, story, told, begin, _network, stay } = self;
        drop((control, _network));
        let touched = match stay {
            Some(stay) => stay.look().await,
            None => Vec::new(),
        };
        let stderr = timeout(END, told).await.ok().and_then(Result::ok).unwrap_or_default();
        let last =
            String::from_utf8_lossy(&[&*stderr.head.0, &*stderr.tail.0].concat()).trim_end().to_owned();
        let lines =
            ended(&story).filter(|_| by_itself).into_iter().chain(Some(last).filter(|it| !it.is_empty()));
        let lines: Vec<String> = lines.collect();
        let mut outcome = native::outcome(story, Stream::default(), stderr, !by_itself, begin);
        if let Report::Exec(report) = &mut outcome.report {
            report.touched = touched;
        }
        Parting { told: lines.join("\n"), outcome }
    }
}

/// The stand-ins that a guest is shown.
fn stand_ins(gateway: &dyn Gateway, variables: &BTreeSet<String>) -> Vec<StandIn> {
    let mut all = gateway.stand_ins();
    all.retain(|own| variables.contains(&own.variable));
    all
}

/// How it ended, in words.
fn ended(story: &Story) -> Option<String> {
    if let Some(reason) = story.refusal() {
        return Some(reason);
    }
    let ended = story.ended.as_ref()?;
    let limit = ended.limit.as_ref().map(|limit| format!("it was over its {limit}"));
    let signal = ended.signal.map(|signal| format!("signal {signal} ended it"));
    limit.or(signal).or_else(|| ended.exit.map(|exit| format!("it ended with exit code {exit}")))
}
