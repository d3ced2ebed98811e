//! Where messages come from.

use super::{Chat, Doing};
use crate::{keys::Key, print::Printer, terminal::Terminal};
use anyhow::{Context as _, Result};
use std::{
    io::{self, IsTerminal as _},
    thread,
};
use tokio::sync::mpsc;

/// The longest line of a pipe, in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Where messages come from.
pub(super) enum Input {
    /// A terminal, key by key.
    Keys(Terminal),
    /// A terminal that can give only whole lines.
    Lines(Terminal),
    /// A pipe or a file: each line is a message, read when the one before is answered.
    Pipe(Lines),
}

/// A piece of input.
pub(crate) enum InputEvent {
    Keys(Vec<Key>),
    Line(String),
    End,
}

impl Input {
    pub(super) fn open(printer: &Printer) -> Result<Self> {
        if !io::stdin().is_terminal() {
            return Ok(Self::Pipe(Lines::open()?));
        }
        let terminal = Terminal::open().context("there is no terminal to talk on")?;
        Ok(if printer.is_live() { Self::Keys(terminal) } else { Self::Lines(terminal) })
    }
}

/// Waits for the next input. It waits forever when there is no conversation, when the conversation is ending,
/// or when the input is not wanted yet.
pub(crate) async fn came(chat: &mut Option<Chat>) -> InputEvent {
    let Some(chat) = chat.as_mut().filter(|chat| chat.leaving.is_none()) else {
        return std::future::pending().await;
    };
    match &mut chat.input {
        Input::Keys(terminal) => match terminal.read_keys().await {
            Ok(Some(read)) => InputEvent::Keys(read.keys),
            _ => InputEvent::End,
        },
        Input::Lines(terminal) => match terminal.read_line().await {
            Ok(Some(line)) => InputEvent::Line(line),
            _ => InputEvent::End,
        },
        Input::Pipe(_) if chat.doing != Doing::Nothing => std::future::pending().await,
        Input::Pipe(lines) => lines.next().await.map_or(InputEvent::End, InputEvent::Line),
    }
}

/// The lines of standard input. A thread reads them, because a file cannot be waited for asynchronously. It
/// reads one line when a line is wanted and never reads ahead, because the next line may be for the next
/// session, in a process of its own.
pub(super) struct Lines {
    wanted: mpsc::Sender<()>,
    lines: mpsc::Receiver<String>,
    is_wanted: bool,
}

impl Lines {
    fn open() -> Result<Self> {
        let (wanted, mut asked) = mpsc::channel(1);
        let (sender, lines) = mpsc::channel(1);
        let read = move || {
            while asked.blocking_recv().is_some() {
                let Some(line) = read_line() else { return };
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("input".into()).spawn(read).context("standard input cannot be read")?;
        Ok(Self { wanted, lines, is_wanted: false })
    }

    /// The next line; `None` at the end. If this call is given up, the next call gets the line.
    async fn next(&mut self) -> Option<String> {
        if !self.is_wanted {
            self.wanted.send(()).await.ok()?;
            self.is_wanted = true;
        }
        let line = self.lines.recv().await;
        self.is_wanted = false;
        line
    }
}

/// Reads a line of standard input, byte by byte.
fn read_line() -> Option<String> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while line.len() < LINE_BYTES_MAX && !line.ends_with(b"\n") {
        match rustix::io::retry_on_intr(|| rustix::io::read(io::stdin(), &mut byte)) {
            Ok(1..) => line.extend(byte),
            Ok(0) | Err(_) => break,
        }
    }
    (!line.is_empty())
        .then(|| String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(&line)).into_owned())
}
