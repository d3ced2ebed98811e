//! The guest's serial line as a person has it: a login, a shell, and what is typed and read there.

use super::super::guest;
use anyhow::{Context as _, Result, bail};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    io::{Read as _, Write as _},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// How long may pass until something comes: the guest is emulated.
const PATIENCE: Duration = Duration::from_secs(900);
/// What the shell says when it waits: the exit code of the last command, behind a line's beginning.
const PROMPT: &str = r"PS1='\n<$?>$ '";

pub(super) struct Console {
    machine: Child,
    keys: ChildStdin,
    screen: Arc<(Mutex<Vec<u8>>, Condvar)>,
    /// How much of the screen was read.
    seen: usize,
}

impl Console {
    pub(super) fn boot(mut machine: Command) -> Result<Self> {
        machine.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut machine = machine.spawn().context(guest::NO_QEMU)?;
        let keys = machine.stdin.take().context("no standard input")?;
        let mut output = machine.stdout.take().context("no standard output")?;
        let screen = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let of_thread = screen.clone();
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut piece) {
                lock(&of_thread.0).extend(piece.iter().take(length));
                of_thread.1.notify_all();
            }
        });
        Ok(Self { machine, keys, screen, seen: 0 })
    }

    pub(super) fn log_in(&mut self, user: &str, password: &str) -> Result<()> {
        self.wait_for("login: ")?;
        self.keys(&format!("{user}\r"))?;
        self.wait_for("Password: ")?;
        self.keys(&format!("{password}\r"))?;
        self.wait_for("$ ")?;
        self.keys(&format!("stty cols 160 rows 50; {PROMPT}\r"))?;
        self.ended().map(drop)
    }

    pub(super) fn keys(&mut self, keys: &str) -> Result<()> {
        self.keys.write_all(keys.as_bytes())?;
        Ok(self.keys.flush()?)
    }

    /// Waits for the shell's prompt; the last command's exit code, and what came before the prompt.
    pub(super) fn ended(&mut self) -> Result<(i32, String)> {
        self.wait("the shell's prompt", |new| Some((prompt(new)?, new.len())))
    }

    /// Waits until this is on the screen, and gives what came with it.
    pub(super) fn wait_for(&mut self, text: &str) -> Result<String> {
        let is_there = |new: &str| match new.find(text) {
            Some(at) => Some((new.get(..at + text.len()).map(str::to_owned), at + text.len())),
            None => prompt(new).map(|_| (None, 0)),
        };
        let found = self.wait(text, is_there)?;
        found.with_context(|| format!("it ended before it said `{text}`"))
    }

    fn wait<T>(&mut self, what: &str, found: impl Fn(&str) -> Option<(T, usize)>) -> Result<T> {
        let deadline = Instant::now() + PATIENCE;
        let mut screen = lock(&self.screen.0);
        loop {
            let new = String::from_utf8_lossy(screen.get(self.seen..).unwrap_or_default()).into_owned();
            if let Some((found, end)) = found(&new) {
                self.seen += end;
                return Ok(found);
            }
            if Instant::now() > deadline || self.machine.try_wait()?.is_some() {
                bail!("{what} did not come: {new}");
            }
            let waited = self.screen.1.wait_timeout(screen, Duration::from_millis(200));
            screen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        // `timeout` hands it on to the machine; killed, it would leave that behind.
        let process = i32::try_from(self.machine.id()).map(Pid::from_raw);
        process.map(|process| kill(process, Signal::SIGTERM).ok()).ok();
        self.machine.wait().ok();
    }
}

/// The exit code that a prompt at the end says, and what was said before it.
fn prompt(screen: &str) -> Option<(i32, String)> {
    let (said, rest) = screen.rsplit_once("\n<")?;
    let (code, rest) = rest.split_once(">$ ")?;
    let code = code.parse().ok().filter(|_| rest.is_empty())?;
    Some((code, said.to_owned()))
}

fn lock(screen: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was shown, without what moves a cursor or colours it.
pub(super) fn plain(shown: &str) -> String {
    let mut plain = String::new();
    let mut rest = shown;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        let is_end: fn(char) -> bool = match after.chars().next() {
            Some('[') => |c| c.is_ascii_alphabetic(),
            Some(']') => |c| c == '\u{7}',
            _ => |_| true,
        };
        rest = after.find(is_end).and_then(|at| after.get(at + 1..)).unwrap_or_default();
    }
    plain.push_str(rest);
    // Of a line that was written over, the last state.
    let lines = plain.replace("\r\n", "\n");
    let lines = lines.lines().map(|line| line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default());
    lines.map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn what_moves_a_cursor_is_no_text() {
        assert_eq!(
            plain("\u{1b}[1;31mred\u{1b}[0m\r\n 10%\r100%\r\n\u{1b}]0;title\u{7}end"),
            "red\n100%\nend\n"
        );
    }
}
