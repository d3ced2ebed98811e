//! Where messages come from.

use super::{Chat, Doing};
use crate::{front::terminal::Terminal, print::Printer};
use anyhow::{Context as _, Result};
use std::{
    io::{self, BufRead as _, IsTerminal as _, Read as _},
    thread,
};
use tokio::sync::mpsc;

/// The longest line of a pipe, in bytes.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Where messages come from.
pub(super) enum Input {
    /// A terminal, key by key.
    Keys(Terminal),
    /// A terminal that can do nothing but lines.
    Lines(Terminal),
    /// A pipe or a file: each line is a message, read when the one before is answered.
    Pipe(mpsc::Receiver<String>),
}

/// What came.
pub(in crate::front) enum Came {
    Keys(Vec<u8>),
    Line(String),
    End,
}

impl Input {
    pub(super) fn open(printer: &Printer) -> Result<Self> {
        if !io::stdin().is_terminal() {
            return Ok(Self::Pipe(lines()?));
        }
        let terminal = Terminal::open().context("there is no terminal to talk on")?;
        Ok(if printer.is_live() { Self::Keys(terminal) } else { Self::Lines(terminal) })
    }
}

/// What comes next; never where there is no conversation, or where it is not wanted yet.
pub(in crate::front) async fn came(chat: &mut Option<Chat>) -> Came {
    let Some(chat) = chat.as_mut().filter(|chat| chat.leaving.is_none()) else {
        return std::future::pending().await;
    };
    match &mut chat.input {
        Input::Keys(terminal) => match terminal.read().await {
            Ok(bytes) if !bytes.is_empty() => Came::Keys(bytes),
            _ => Came::End,
        },
        Input::Lines(terminal) => match terminal.read_line().await {
            Ok(Some(line)) => Came::Line(line),
            _ => Came::End,
        },
        Input::Pipe(_) if chat.doing != Doing::Nothing => std::future::pending().await,
        Input::Pipe(lines) => lines.recv().await.map_or(Came::End, Came::Line),
    }
}

/// The lines of standard input. They are read by a thread, because a file cannot be waited for.
fn lines() -> Result<mpsc::Receiver<String>> {
    let (sender, lines) = mpsc::channel(1);
    let read = move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
            let text = String::from_utf8_lossy(&line).into_owned();
            if !matches!(read, Ok(1..)) || sender.blocking_send(text).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("input".into()).spawn(read).context("standard input cannot be read")?;
    Ok(lines)
}
