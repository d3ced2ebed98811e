//! Reads from the controlling terminal before there is a session: a secret, without showing it, or an answer.

use anyhow::{Context as _, Result, bail};
use bailey_secrets::Secret;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::{
    error::Error,
    fmt,
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
};

/// The person ended the program at a question, with Ctrl-C.
#[derive(Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing was given")
    }
}

impl Error for Interrupted {}

/// The longest secret that can be typed, in bytes.
const TYPED_BYTES_MAX: usize = 32 << 10;

/// Asks for a secret. `instead` tells the user how to give it when there is no terminal.
///
/// # Errors
/// When there is no terminal, or the user gives up: [`Interrupted`] on Ctrl-C, another error on Ctrl-D.
pub fn secret(question: &str, instead: &str) -> Result<Secret> {
    let mut terminal = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/tty")
        .with_context(|| format!("there is no terminal to ask for {question}; {instead}"))?;
    let old = tcgetattr(&terminal)?;
    // Text that was typed before the question appeared is no answer to it, so this discards it.
    tcsetattr(&terminal, OptionalActions::Flush, &silent(&old))?;
    let typed = terminal
        .write_all(format!("{question} (not shown): ").as_bytes())
        .map_err(Into::into)
        .and_then(|()| read(&mut terminal));
    // The terminal goes back to the user's settings in every case.
    tcsetattr(&terminal, OptionalActions::Now, &old)?;
    terminal.write_all(b"\n")?;
    typed
}

/// The longest answer, in bytes: the longest line that a terminal gives.
const ANSWER_BYTES_MAX: usize = 4096;

/// Asks a question, and reads a line as the answer. Returns `None` when the terminal was closed, or the user
/// wants to stop (Ctrl-D).
///
/// # Errors
/// When there is no terminal.
pub fn answer(question: &str) -> Result<Option<String>> {
    let mut terminal = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/tty")
        .context("there is no terminal to ask on")?;
    terminal.write_all(question.as_bytes())?;
    let (mut typed, mut byte) = (Vec::new(), [0]);
    while typed.len() < ANSWER_BYTES_MAX {
        if terminal.read(&mut byte)? == 0 {
            return Ok(None);
        }
        if byte[0] == b'\n' {
            break;
        }
        typed.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&typed);
    Ok(Some(text.chars().filter(|c| !c.is_control()).collect::<String>().trim().to_owned()))
}

/// The terminal settings for a secret: one byte at a time, without echo, and without signals, so that a
/// Ctrl-C cannot leave the terminal silent.
fn silent(old: &Termios) -> Termios {
    let mut silent = old.clone();
    silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
    silent.special_codes[SpecialCodeIndex::VMIN] = 1;
    silent
}

fn read(terminal: &mut File) -> Result<Secret> {
    let mut typed = Vec::with_capacity(TYPED_BYTES_MAX);
    let mut byte = [0];
    loop {
        if terminal.read(&mut byte)? == 0 {
            bail!("the terminal was closed");
        }
        match byte[0] {
            b'\n' | b'\r' => break,
            3 => return Err(Interrupted.into()),
            4 => bail!("nothing was given"),
            8 | 127 => {
                typed.pop();
            }
            // Ctrl-U: from the start again.
            21 => typed.clear(),
            other if typed.len() < TYPED_BYTES_MAX => typed.push(other),
            _ => bail!("it is longer than 32 KiB"),
        }
    }
    String::from_utf8(typed).map(Secret::new).context("it is not UTF-8")
}
