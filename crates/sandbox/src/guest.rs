//! A guest: a program that lives beside the sessions, is written to, and answers. It has walls of its own, which the warden
//! was told of at its start, and ends with the hand that holds it.

use crate::{
    native::Native,
    running::{Running, Source, Story, hear, pump},
    wire::{Job, Task},
};
use bailey_protocol::SessionId;
use bytes::BytesMut;
use rustix::pipe::PipeFlags;
use std::{io, time::Duration};
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
    told: JoinHandle<bailey_protocol::Stream>,
}

impl Native {
    /// Starts the one program of a lease that is a guest's.
    ///
    /// # Errors
    /// When the warden was not told of it, or is gone. That it was refused is heard later.
    pub(crate) fn receive(&self, lease: SessionId) -> io::Result<Visit> {
        let guest = self.warden().sessions().get(&lease).and_then(|lease| lease.guest.as_ref());
        let guest = guest.ok_or_else(|| io::Error::other("the maker of sandboxes was not told of it"))?;
        let job = Job {
            task: Task::Run(guest.command.clone()),
            isolation: guest.isolation.clone(),
            limits: guest.command.limits.clone(),
            is_first: false,
        };
        let (theirs, stdin) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let Running { stdout, mut stderr, control } = self.launch(lease, &job, Some(theirs))?;
        // Read all the time, so that it need not wait to be heard; nobody is shown it while it lives.
        let told = tokio::spawn(async move {
            let (out, _) = mpsc::channel(1);
            pump(&mut stderr, Source::Stderr, TOLD_BYTES, out, &CancellationToken::new()).await
        });
        Ok(Visit { stdin: Sender::from_owned_fd(stdin)?, stdout, control, story: Story::default(), told })
    }
}

impl Visit {
    /// Writes to it. Dropped half-way, part of it is written.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdin.write_all(bytes).await
    }

    /// Reads more of what it wrote; false when it ended, or never began. Nothing is lost when this is dropped.
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

    /// Ends it, with all that it started; tells what is known of how it ended by itself, and what it last wrote to its
    /// standard error.
    pub(crate) async fn end(mut self, by_itself: bool) -> String {
        if by_itself {
            let heard = async {
                while let Some(message) = hear(&self.control).await {
                    self.story.take(message);
                }
            };
            timeout(END, heard).await.ok();
        }
        let Self { stdin, stdout, control, story, told } = self;
        drop((stdin, stdout, control));
        let mut lines: Vec<String> = ended(&story).filter(|_| by_itself).into_iter().collect();
        if let Ok(Ok(told)) = timeout(END, told).await {
            let bytes = [told.head.0, told.tail.0].concat();
            lines.extend(
                Some(String::from_utf8_lossy(&bytes).trim_end().to_owned()).filter(|told| !told.is_empty()),
            );
        }
        lines.join("\n")
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
