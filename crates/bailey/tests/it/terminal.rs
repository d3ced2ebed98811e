//! The binary on a terminal of its own, and what a person types there.

use crate::stage::Stage;
use std::{
    io::{Read as _, Write as _},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running command on a pseudo-terminal, which util-linux's `script` makes.
pub(crate) struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: Arc<(Mutex<Vec<u8>>, Condvar)>,
    /// How much of the screen was waited for.
    seen: usize,
}

impl Terminal {
    /// Starts the binary with these arguments; `None`, and a line that says so, where there is no `script`.
    pub(crate) fn start(stage: &Stage, arguments: &[&str]) -> Option<Self> {
        Self::run(stage, &stage.bailey(arguments))
    }

    /// The same with a command of the binary that was made ready before. The terminal is so wide that no card
    /// is broken up, however long the names of temporary folders are.
    pub(crate) fn run(stage: &Stage, bailey: &Command) -> Option<Self> {
        let user = stage.home().join("USER.md");
        // A home that was asked already who its person is.
        if bailey.get_args().any(|word| word == "chat") && !user.exists() {
            std::fs::create_dir_all(stage.home()).unwrap();
            std::fs::write(user, "").unwrap();
        }
        Self::first(stage, bailey)
    }

    /// The same over a home as it is: its first conversation begins with questions.
    pub(crate) fn first(stage: &Stage, bailey: &Command) -> Option<Self> {
        let words = std::iter::once(bailey.get_program()).chain(bailey.get_args());
        let words: Vec<String> = words.map(|word| quoted(word.to_str().unwrap())).collect();
        let mut script = Command::new("script");
        script
            .args(["--quiet", "--return", "--command"])
            .arg(format!("stty cols 400; exec {}", words.join(" ")))
            .arg("/dev/null");
        script.current_dir(bailey.get_current_dir().unwrap_or(&stage.project()));
        script.env("SHELL", "/bin/sh").env("TERM", "xterm");
        for (name, value) in bailey.get_envs() {
            match value {
                Some(value) => script.env(name, value),
                None => script.env_remove(name),
            };
        }
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = match script.spawn() {
            Ok(child) => child,
            Err(error) => {
                println!("SKIPPED: no `script` to make a terminal with: {error}");
                return None;
            }
        };
        let mut output = child.stdout.take().unwrap();
        let screen = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let of_thread = screen.clone();
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut piece) {
                of_thread.0.lock().unwrap().extend_from_slice(&piece[..length]);
                of_thread.1.notify_all();
            }
        });
        let keys = child.stdin.take().unwrap();
        Some(Self { child, keys, screen, seen: 0 })
    }

    /// Types.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until this is on the screen, after what was waited for last; gives what came with it.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        self.wait_for_in_turn(&[text])
    }

    /// The same of several texts, each behind the one before it.
    pub(crate) fn wait_for_in_turn(&mut self, texts: &[&str]) -> String {
        let deadline = Instant::now() + PATIENCE;
        let has_all = |new: &str| {
            texts.iter().try_fold(new, |rest, text| rest.split_once(text).map(|(_, rest)| rest)).is_some()
        };
        let mut screen = self.screen.0.lock().unwrap();
        loop {
            let new = String::from_utf8_lossy(&screen[self.seen..]).into_owned();
            if has_all(&new) {
                self.seen = screen.len();
                return new;
            }
            let is_over = self.child.try_wait().unwrap().is_some() || Instant::now() > deadline;
            screen = self.screen.1.wait_timeout(screen, Duration::from_millis(100)).unwrap().0;
            assert!(!is_over || screen.len() > self.seen + new.len(), "{texts:?} did not come: {new}");
        }
    }

    /// What came since the last wait.
    pub(crate) fn news(&self) -> String {
        String::from_utf8_lossy(&self.screen.0.lock().unwrap()[self.seen..]).into_owned()
    }

    /// The process that `script` runs: the binary.
    pub(crate) fn process(&self) -> u32 {
        let script = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{script}/task/{script}/children")).unwrap();
        children.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Makes it so many cells wide and high.
    pub(crate) fn size(&self, columns: u16, rows: u16) {
        let terminal = format!("/proc/{}/fd/0", self.process());
        let terminal = std::fs::canonicalize(terminal).unwrap();
        let mut stty = Command::new("stty");
        stty.arg("-F").arg(terminal).args(["cols", &columns.to_string(), "rows", &rows.to_string()]);
        assert!(stty.status().unwrap().success());
    }

    /// Closes it in the middle, as a window is closed.
    pub(crate) fn close(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end; gives the exit code and the whole screen.
    pub(crate) fn end(mut self) -> (i32, String) {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    self.child.kill().unwrap();
                    panic!("it did not end: {}", String::from_utf8_lossy(&self.screen.0.lock().unwrap()));
                }
                None => thread::sleep(Duration::from_millis(10)),
            }
        };
        // The reader may still hold the last piece.
        thread::sleep(Duration::from_millis(50));
        let screen = String::from_utf8_lossy(&self.screen.0.lock().unwrap()).into_owned();
        (status.code().unwrap_or(-1), screen)
    }
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
