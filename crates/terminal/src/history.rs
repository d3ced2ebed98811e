//! The messages of earlier conversations, in a file in Bailey's home: one JSON string a line, readable only
//! by the owner. A message that holds a secret is never written.

use crate::print::Printer;
use std::{
    borrow::Cow,
    fs::{self, File, OpenOptions},
    io::{Read as _, Write as _},
    mem,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// How many messages are kept.
const MESSAGES_MAX: usize = 1_000;
/// The longest message that is kept, in bytes.
const MESSAGE_BYTES_MAX: usize = 16 << 10;
/// How much of the file is read, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The history of a home. The file is opened before this process binds itself; afterwards messages are only
/// added to it.
#[derive(Debug, Default)]
pub struct History {
    file: Option<File>,
    earlier: Vec<String>,
}

impl History {
    /// Reads the earlier messages. If the file cannot be read, there are no earlier messages; if it cannot be
    /// written, no message is kept.
    pub fn open(path: &Path) -> Self {
        let earlier = load(path);
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path).ok();
        Self { file, earlier }
    }

    /// The messages of earlier conversations, the newest last. Only the first call gives them.
    pub(super) fn take(&mut self) -> Vec<String> {
        mem::take(&mut self.earlier)
    }

    /// Keeps a message, unless it holds a secret or begins with a blank.
    pub(super) fn add(&mut self, printer: &Printer, message: &str) {
        let is_secret = matches!(printer.redact(message), Cow::Owned(_));
        if is_secret || message.starts_with(' ') || message.len() > MESSAGE_BYTES_MAX {
            return;
        }
        let (Some(file), Ok(mut line)) = (&mut self.file, serde_json::to_string(message)) else { return };
        line.push('\n');
        file.write_all(line.as_bytes()).ok();
    }
}

fn load(path: &Path) -> Vec<String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    if read.is_err() {
        return Vec::new();
    }
    let lines = bytes.split(|byte| *byte == b'\n');
    let mut messages: Vec<String> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    if messages.len() > 2 * MESSAGES_MAX || bytes.len() as u64 == FILE_BYTES_MAX {
        messages.drain(..messages.len().saturating_sub(MESSAGES_MAX));
        shorten(path, &messages).ok();
    }
    messages
}

fn shorten(path: &Path, messages: &[String]) -> std::io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    for message in messages {
        writeln!(file, "{}", serde_json::to_string(message)?)?;
    }
    fs::rename(fresh, path)
}

#[cfg(test)]
mod tests {
    use super::{History, MESSAGES_MAX};
    use crate::{print::Color, print::Printer};
    use bailey_secrets::{Redactor, Secret, Vault};
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn messages_come_back_and_what_holds_a_secret_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        let mut history = History::open(&path);
        let mut vault = Vault::default();
        vault.insert("KEY".into(), Secret::new("sk-very-secret-0123456789".into()));
        let printer = Printer::new(false, Color::Never);
        printer.hide(Redactor::new(&vault));
        for message in [
            "one\ntwo",
            "the key is sk-very-secret-0123456789",
            " not this",
            "ghp_0123456789abcdefghijABCDEFGHIJ012345",
            "three",
        ] {
            history.add(&printer, message);
        }
        assert_eq!(History::open(&path).take(), ["one\ntwo", "three"]);
        let mode = std::fs::metadata(folder.path().join("history")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_long_history_is_shortened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        let lines: String = (0..3 * MESSAGES_MAX).map(|n| format!("\"m{n}\"\n")).collect();
        std::fs::write(&path, lines).unwrap();
        assert_eq!(History::open(&path).take().len(), MESSAGES_MAX);
        assert_eq!(History::open(&path).take().last().unwrap(), &format!("m{}", 3 * MESSAGES_MAX - 1));
    }
}
