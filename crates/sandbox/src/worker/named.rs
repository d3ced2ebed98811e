//! What a command names, by content: a person who says yes to `./deploy.sh prod` has seen that script, and not what stands there
//! later.
//!
//! Named is the program, that of a shell's line, too, the interpreter of its first line, and each regular file that a word of the arguments leads to, also a
//! word of a shell's line. Whatever else a command reads is held by the walls and not by this.

use super::{
    beneath::{Root, type_of},
    error::{Error, errno},
    read::below,
    resolve,
};
use bailey_protocol::{Command, Digest, Hasher, WsPath};
use rustix::fs::{FileType, fstat};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Seek as _, SeekFrom},
};

/// Words that are looked at; a command of more is not bound, and so not run on a yes.
const WORDS_MAX: usize = 4_096;
/// Bytes of all that is named; beyond them likewise.
const BYTES_MAX: u64 = 1 << 30;
/// Bytes of a first line that names an interpreter, as the kernel reads them.
const LINE_BYTES_MAX: usize = 256;
const CHUNK: usize = 1 << 16;

/// What ends a word of a shell's line, besides white space, and what parts an option from its value.
const BETWEEN: &[char] =
    &[';', '|', '&', '<', '>', '(', ')', '{', '}', '\'', '"', '`', '$', '=', ',', ':', '@'];

/// The digest of what a command names. `path` are the directories in which its program is looked for.
///
/// # Errors
/// When it names more than can be looked at, or what it names cannot be read.
pub(super) fn named(command: &Command, path: &str) -> Result<Digest, Error> {
    let root = Root::open("/")?;
    let mut files = Files { root, cwd: &command.cwd.0, left: BYTES_MAX, found: BTreeMap::new() };
    let line = command.argv.get(2).and_then(|line| line.split_whitespace().next());
    let programs = command.argv.first().map(String::as_str).into_iter().chain(line);
    for program in programs.filter(|program| !program.contains('/')) {
        for folder in path.split(':').filter(|folder| folder.starts_with('/')) {
            if files.take(&format!("{folder}/{program}"))? {
                break;
            }
        }
    }
    let words = |text| -> Vec<&str> {
        let text: &str = text;
        let parts = text.split(|c: char| c.is_whitespace() || BETWEEN.contains(&c));
        std::iter::once(text).chain(parts).filter(|word| !word.is_empty()).collect()
    };
    let mut all: Vec<&str> = command.argv.iter().flat_map(|argument| words(argument.as_str())).collect();
    all.sort_unstable();
    all.dedup();
    if all.len() > WORDS_MAX {
        return Err(Error::path("the command", "has too many words to see what they name"));
    }
    for word in all {
        files.take(word)?;
    }
    Ok(files.digest())
}

/// Whether a command still names what it did; why that cannot be seen.
pub(crate) fn is_what_was_named(command: &Command, path: &str, then: Digest) -> Result<bool, String> {
    named(command, path).map(|now| now == then).map_err(|error| error.to_string())
}

struct Files<'a> {
    root: Root,
    cwd: &'a str,
    /// Bytes that may still be read.
    left: u64,
    /// By canonical path.
    found: BTreeMap<String, Digest>,
}

impl Files<'_> {
    /// Takes the file that a word leads to; whether there is one.
    fn take(&mut self, word: &str) -> Result<bool, Error> {
        // What is no path, such as a word with a NUL or one longer than a path may be, leads nowhere.
        let Ok(path) = resolve::canonical(word, self.cwd) else { return Ok(false) };
        if self.found.contains_key(&path) {
            return Ok(true);
        }
        let at = WsPath(path.clone());
        let Ok(fd) = self.root.file(below(&at)?) else { return Ok(false) };
        let stat = fstat(&fd).map_err(Error::system("read", &path))?;
        if type_of(&stat) != FileType::RegularFile {
            return Ok(false);
        }
        let mut file = File::from(fd);
        let digest = self.read(&mut file, &path, stat.st_mode)?;
        self.found.insert(path.clone(), digest);
        if let Some(interpreter) = interpreter(&mut file) {
            self.take(&interpreter)?;
        }
        Ok(true)
    }

    fn read(&mut self, file: &mut File, path: &str, mode: u32) -> Result<Digest, Error> {
        let mut hasher = Hasher::default();
        hasher.update(&mode.to_be_bytes());
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = file.read(&mut chunk).map_err(|error| Error::system("read", path)(errno(&error)))?;
            self.left = self
                .left
                .checked_sub(read as u64)
                .ok_or_else(|| Error::path(path, "makes what the command names more than 1 GiB"))?;
            hasher.update(chunk.get(..read).unwrap_or_default());
            if read == 0 {
                return Ok(hasher.finish());
            }
        }
    }

    fn digest(&self) -> Digest {
        let parts: Vec<&[u8]> =
            self.found.iter().flat_map(|(path, digest)| [path.as_bytes(), &digest.0[..]]).collect();
        Digest::of_parts(&parts)
    }
}

/// The interpreter that a script's first line names.
fn interpreter(file: &mut File) -> Option<String> {
    let mut head = Vec::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(LINE_BYTES_MAX as u64).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let program = std::str::from_utf8(line).ok()?.split_whitespace().next()?;
    Some(program.to_owned())
}

#[cfg(test)]
mod tests {
    use super::named;
    use bailey_protocol::{Command, Limits};
    use std::{collections::BTreeMap, fs};

    #[test]
    fn a_lines_program_is_named_by_content_wherever_it_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        for program in ["tool", "other"] {
            fs::write(folder.path().join(program), "as it was").unwrap();
        }
        let named = |argv: &[&str]| {
            let argv = argv.iter().map(|word| (*word).to_owned()).collect();
            let (env, limits) = (BTreeMap::new(), Limits::default());
            let command = Command {
                argv,
                cwd: "/".into(),
                env,
                stdin: None,
                network: false,
                limits,
                background: false,
            };
            named(&command, path).unwrap()
        };
        let lines: [&[&str]; 3] =
            [&["tool", "status"], &["sh", "-c", "tool status"], &["sh", "-c", "other status"]];
        let before = lines.map(&named);
        fs::write(folder.path().join("tool"), "another one").unwrap();
        let after = lines.map(&named);
        assert!(before[0] != after[0] && before[1] != after[1], "the program is another one");
        assert_eq!(before[2], after[2], "control");
    }
}
