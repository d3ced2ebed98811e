//! A guest: a program that lives beside the sessions, is written to, and answers. It has walls of its own,
//! which the warden was told of at its start, and ends with the hand that holds it.

use crate::{
    config::Guest,
    native::{self, Native},
    running::{Running, Source, Story, hear, packets, pump},
    wire::{Job, Task},
};
use bailey_protocol::{Outcome, SessionId, Stream};
use bytes::BytesMut;
use rustix::pipe::PipeFlags;
use std::{
    io,
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
use tokio_util::sync::CancellationToken;

/// The most that is kept of what it writes to its standard error, in bytes.
const TOLD_BYTES: u64 = 4 << 10;
/// How long is waited, after its end, to learn how it ended.
const END: Duration = Duration::from_millis(500);

/// A guest while it lives.
#[derive(Debug)]
pub(crate) struct Visit {
    stdin: Sender,
    stdout: Receiver,
    control: UnixDatagram,
    story: Story,
    told: JoinHandle<Stream>,
    begin: Instant,
}

/// How a visit ended.
#[derive(Debug)]
pub(crate) struct Parting {
    /// What is known of how it ended by itself, and what it last wrote to its standard error.
    pub(crate) told: String,
    /// The same for the journal.
    pub(crate) outcome: Outcome,
}

impl Native {
    /// The one program of a lease that is a guest's.
    pub(crate) fn guest(&self, lease: SessionId) -> Option<&Guest> {
        self.warden().sessions().get(&lease).and_then(|lease| lease.guest.as_ref())
    }

    /// Starts it. The warden compares: no other program runs there.
    ///
    /// # Errors
    /// When the warden was not told of it, or is gone. That it was refused is heard later.
    pub(crate) fn receive(&self, lease: SessionId, guest: Guest) -> io::Result<Visit> {
        let Guest { command, isolation } = guest;
        let limits = command.limits.clone();
        let job = Job { task: Task::Run(command, None), isolation, limits, is_first: false, way: None };
        let (theirs, stdin) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let Running { stdout, stderr, control } = self.launch(lease, &job, Some(theirs))?;
        // Read all the time, so that it need not wait to be heard; nobody is shown it while it lives.
        let told = tokio::spawn(async move {
            let (out, _) = mpsc::channel(1);
            pump(stderr, Source::Stderr, TOLD_BYTES, out, &CancellationToken::new()).await
        });
        let (stdin, begin) = (Sender::from_owned_fd(stdin)?, Instant::now());
        Ok(Visit { stdin, stdout, control: packets(control)?, story: Story::default(), told, begin })
    }
}

impl Visit {
    /// Writes to it. Dropped half-way, part of it is written.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdin.write_all(bytes).await
    }

    /// Reads more of what it wrote; false when it ended, or never began. Nothing is lost when this is
    /// dropped.
    pub(crate) async fn read(&mut self, into: &mut BytesMut) -> bool {
        self.stdout.read_buf(into).await.is_ok_and(|read| read > 0)
    }

    /// The same of what is there already; none when nothing is.
    pub(crate) fn read_now(&self, into: &mut BytesMut) -> Option<bool> {
        match self.stdout.try_read_buf(into) {
            Ok(read) => Some(read > 0),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(_) => Some(false),
        }
    }

    /// Ends it, with all that it started.
    pub(crate) async fn end(mut self, by_itself: bool) -> Parting {
        // What it was started in was said before anything ran; how it ended comes last.
        let is_told = |story: &Story| !by_itself && story.enforced.is_some();
        let heard = async {
            while !is_told(&self.story) {
                let Some((message, _)) = hear(&self.control).await else { return };
                self.story.take(message);
            }
        };
        timeout(END, heard).await.ok();
        let Self { stdin, stdout, control, story, told, begin } = self;
        drop((stdin, stdout, control));
        let stderr = timeout(END, told).await.ok().and_then(Result::ok).unwrap_or_default();
        let last =
            String::from_utf8_lossy(&[&*stderr.head.0, &*stderr.tail.0].concat()).trim_end().to_owned();
        let lines =
            ended(&story).filter(|_| by_itself).into_iter().chain(Some(last).filter(|it| !it.is_empty()));
        let lines: Vec<String> = lines.collect();
        Parting {
            told: lines.join("\n"),
            outcome: native::outcome(story, Stream::default(), stderr, !by_itself, begin),
        }
    }
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
