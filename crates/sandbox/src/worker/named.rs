//! What a command names, by content: a person who says yes to `./deploy.sh prod` has seen that script, and
//! not what stands there later.
//!
//! Named is the program, that of a shell's line, too, the interpreter of its first line, and each regular
//! file that a word of the arguments, of a variable or of the standard input leads to, also a word of a
//! shell's line and the value of an option, from where the command starts or from a directory that is named:
//! `cd sub && ./run.sh`. Whatever else a command reads is held by the walls and not by this.

use super::{
    beneath::{Root, type_of},
    error::{Error, errno},
    read::below,
    resolve,
};
use bailey_protocol::{Command, Digest, Hasher, WsPath};
use rustix::fs::{FileType, fstat};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{Read, Seek as _, SeekFrom},
};

mod words;

/// Words that are looked at; a command of more is not bound, and so not run on a yes.
const WORDS_MAX: usize = 1 << 16;
/// Directories in which words are looked for times words; beyond them likewise.
const LOOKS_MAX: usize = 1 << 18;
/// Bytes of all that is named; beyond them likewise.
const BYTES_MAX: u64 = 1 << 30;
/// Bytes of a first line that names an interpreter, as the kernel reads them.
const LINE_BYTES_MAX: usize = 256;
const CHUNK: usize = 1 << 16;

/// The digest of what a command names. `path` are the directories in which its program is looked for.
///
/// # Errors
/// When it names more than can be looked at, or what it names cannot be read.
pub(super) fn named(command: &Command, path: &str) -> Result<Digest, Error> {
    let root = Root::open("/")?;
    let mut files = Files { root, left: BYTES_MAX, found: BTreeMap::new() };
    let cwd = command.cwd.0.as_str();
    let line = command.argv.get(2).and_then(|line| line.split_whitespace().next());
    let programs = command.argv.first().map(String::as_str).into_iter().chain(line);
    for program in programs.filter(|program| !program.contains('/')) {
        for folder in path.split(':').filter(|folder| folder.starts_with('/')) {
            if matches!(files.take(&format!("{folder}/{program}"), cwd)?, Took::File) {
                break;
            }
        }
    }
    let stdin = command.stdin.as_ref().map(|stdin| String::from_utf8_lossy(&stdin.0));
    let texts = command.argv.iter().chain(command.env.values()).map(String::as_str).chain(stdin.as_deref());
    let mut all = BTreeSet::new();
    for text in texts {
        all.extend(words::of(text));
        if all.len() > WORDS_MAX {
            return Err(Error::path("the command", "has too many words to see what they name"));
        }
    }
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    files.take_all(&all, cwd)?;
    Ok(files.digest())
}

/// Whether a command still names what it did; why that cannot be seen.
pub(crate) fn is_what_was_named(command: &Command, path: &str, then: Digest) -> Result<bool, String> {
    named(command, path).map(|now| now == then).map_err(|error| error.to_string())
}

struct Files {
    root: Root,
    /// Bytes that may still be read.
    left: u64,
    /// By canonical path.
    found: BTreeMap<String, Digest>,
}

/// What a word leads to.
enum Took {
    Nothing,
    File,
    /// By its canonical path.
    Folder(String),
}

impl Files {
    /// Takes what words lead to, from here and from each directory that one of them leads to: the command may
    /// go there first.
    fn take_all(&mut self, words: &[&str], cwd: &str) -> Result<(), Error> {
        let mut folders = vec![cwd.to_owned()];
        let mut looks = 0;
        let mut next = 0;
        while let Some(folder) = folders.get(next).cloned() {
            for word in words.iter().filter(|word| next == 0 || !word.starts_with('/')) {
                looks += 1;
                if looks > LOOKS_MAX {
                    return Err(Error::path("the command", "has too many words to see what they name"));
                }
                if let Took::Folder(path) = self.take(word, &folder)?
                    && !folders.contains(&path)
                {
                    folders.push(path);
                }
            }
            next += 1;
        }
        Ok(())
    }

    /// Takes the file that a word leads to from here.
    fn take(&mut self, word: &str, folder: &str) -> Result<Took, Error> {
        // What is no path, such as a word with a NUL or one longer than a path may be, leads nowhere.
        let Ok(path) = resolve::canonical(word, folder) else { return Ok(Took::Nothing) };
        if self.found.contains_key(&path) {
            return Ok(Took::File);
        }
        let at = WsPath(path.clone());
        let at = below(&at)?;
        // A command may go through a directory that nobody can list.
        if self.root.stat(at).ok().flatten().is_some_and(|stat| type_of(&stat) == FileType::Directory) {
            return Ok(Took::Folder(path));
        }
        let Ok(fd) = self.root.file(at) else { return Ok(Took::Nothing) };
        let stat = fstat(&fd).map_err(Error::system("read", &path))?;
        // What the kernel tells of itself and of processes is another thing at each look, and nobody's file.
        let of_kernel = self.root.stat("proc").ok().flatten().is_some_and(|proc| proc.st_dev == stat.st_dev);
        if type_of(&stat) != FileType::RegularFile || of_kernel {
            return Ok(Took::Nothing);
        }
        let mut file = File::from(fd);
        let digest = self.read(&mut file, &path, stat.st_mode)?;
        self.found.insert(path.clone(), digest);
        if let Some(interpreter) = interpreter(&mut file) {
            self.take(&interpreter, folder)?;
        }
        Ok(Took::File)
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
    use bailey_protocol::{Command, Digest, Limits};
    use std::{collections::BTreeMap, fs, path::Path};

    /// The digest of what this names in this directory, with these variables.
    fn digest(folder: &Path, argv: &[&str], env: &[(&str, &str)]) -> Digest {
        let command = Command {
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            cwd: folder.to_str().unwrap().into(),
            env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            stdin: None,
            network: false,
            limits: Limits::default(),
            background: false,
        };
        named(&command, "/usr/bin").unwrap()
    }

    #[test]
    fn a_script_is_named_below_each_directory_that_is_named_and_in_variables() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::create_dir_all(folder.join("sub/deep")).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        for (line, env, file) in [
            ("cd sub && ./run.sh", &[][..], "sub/run.sh"),
            ("cd sub; cd deep; sh run.sh", &[], "sub/deep/run.sh"),
            ("cd ./sub && cd ../sub/deep && ./run.sh", &[], "sub/deep/run.sh"),
            ("make", &[("BASH_ENV", "./x.sh")], "x.sh"),
            ("make", &[("PYTHONPATH", "sub:sub/deep"), ("MAIN", "run.sh")], "sub/deep/run.sh"),
            ("sh './my script.sh'", &[], "my script.sh"),
            ("sh ./a=b,c.sh;true", &[], "a=b,c.sh"),
            ("sh \"it's.sh\"", &[], "it's.sh"),
            ("sh 'a\"b.sh'", &[], "a\"b.sh"),
            ("sh a\u{a0}b.sh", &[], "a\u{a0}b.sh"),
            ("sh 'a\tb.sh'", &[], "a\tb.sh"),
            ("sh sub/'a b'.sh", &[], "sub/a b.sh"),
            ("sh a\\ b.sh", &[], "a b.sh"),
            ("sed -fx.sed a.txt", &[], "x.sed"),
            ("make -kjfMakefile.x", &[], "Makefile.x"),
            ("tool --from='its name.sh'", &[], "its name.sh"),
        ] {
            let named = || digest(folder, &["sh", "-c", line], env);
            write(file, "as it was");
            let before = named();
            // The control: what it does not name.
            write("sub/other.sh", "another one");
            assert_eq!(named(), before, "{line}");
            write(file, "another one");
            assert_ne!(named(), before, "{line}");
            fs::remove_file(folder.join(file)).unwrap();
            assert_ne!(named(), before, "{line}");
        }
    }

    #[test]
    fn a_word_of_the_standard_input_names_a_file_too() {
        let folder = tempfile::tempdir().unwrap();
        let named = || {
            let command = Command {
                argv: vec!["sh".into()],
                cwd: folder.path().to_str().unwrap().into(),
                env: BTreeMap::new(),
                stdin: Some(b"echo begun\nsh x.sh\n".to_vec().into()),
                network: false,
                limits: Limits::default(),
                background: false,
            };
            named(&command, "/usr/bin").unwrap()
        };
        fs::write(folder.path().join("x.sh"), "as it was").unwrap();
        let before = named();
        fs::write(folder.path().join("y.sh"), "another one").unwrap();
        assert_eq!(named(), before, "control: what it does not name");
        fs::write(folder.path().join("x.sh"), "another one").unwrap();
        assert_ne!(named(), before);
    }

    /// It was another thing at the second look, so that a yes to it never held.
    #[test]
    fn what_the_kernel_tells_of_processes_is_nobodys_file() {
        let folder = tempfile::tempdir().unwrap();
        let named = || digest(folder.path(), &["cat", "/proc/self/stat", "/proc/uptime"], &[]);
        let before = named();
        std::thread::sleep(std::time::Duration::from_millis(30));
        assert_eq!(named(), before);
        // The control: a file of somebody's that is reached by way of it.
        let script = folder.path().join("x.sh");
        let way = format!("/proc/self/root{}", script.display());
        let named = || digest(folder.path(), &["sh", &way], &[]);
        fs::write(&script, "as it was").unwrap();
        let before = named();
        fs::write(&script, "another one").unwrap();
        assert_ne!(named(), before);
    }

    #[test]
    fn many_directories_and_words_are_looked_at_in_time() {
        let folder = tempfile::tempdir().unwrap();
        let words: Vec<String> = (0..200).map(|n| format!("d{n}")).collect();
        words.iter().for_each(|word| fs::create_dir(folder.path().join(word)).unwrap());
        let argv: Vec<&str> = words.iter().map(String::as_str).collect();
        digest(folder.path(), &argv, &[]);
    }

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
