//! The list of a copy's files with their digests, in the format that sha256sum(1) writes and reads.

use super::{BLOCK, beneath::Beneath};
use anyhow::{Context as _, Result, bail};
use bailey_protocol::Hasher;
use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Component, Path, PathBuf},
};

/// The file name of the list.
pub(super) const NAME: &str = "SHA256SUMS";
/// In bytes: the longest path, the longest list, and how much of a file is read at a time.
const PATH_BYTES_MAX: usize = 4096;
const LIST_BYTES_MAX: u64 = 8 << 20;
const PIECE: usize = 256 << 10;

/// The digests of the files, by their paths beneath the copy.
#[derive(Debug, Default)]
pub(super) struct Sums {
    digests: BTreeMap<PathBuf, String>,
    bytes: u64,
}

/// The files of a list as they lie in a copy. Their content was not read yet.
#[derive(Debug)]
pub(super) struct Measured {
    copy: Beneath,
    files: Vec<Listed>,
}

/// The files that match the list. Only these are copied.
#[derive(Debug)]
pub(super) struct Compared(Measured);

/// A file of a list.
#[derive(Debug)]
struct Listed {
    path: PathBuf,
    digest: String,
    /// The file's length when it was measured: no more than this is read or written.
    bytes: u64,
}

impl Sums {
    /// Adds a file of a copy to the list.
    pub(super) fn add(&mut self, copy: &Path, path: &Path) -> Result<()> {
        let text = path.to_str().filter(|text| !text.contains(['\n', '\\']));
        let text = text
            .with_context(|| format!("`{}` has a name that no list of digests can hold", path.display()))?;
        let (digest, bytes) = digest(&copy.join(path))?;
        self.digests.insert(text.into(), digest);
        self.bytes += bytes;
        Ok(())
    }

    pub(super) fn files(&self) -> usize {
        self.digests.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.digests.keys()
    }

    pub(super) fn write(&self, copy: &Path) -> Result<()> {
        let line = |(path, digest): (&PathBuf, &String)| format!("{digest}  {}\n", path.display());
        let text: String = self.digests.iter().map(line).collect();
        bailey_home::home::write_private(&copy.join(NAME), text.as_bytes())
    }

    /// Reads the list of a copy. The list names files beneath the copy, each once, and nothing else.
    ///
    /// # Errors
    /// Names the line that is wrong, and why.
    pub(super) fn read(copy: &Beneath) -> Result<Self> {
        let shown = copy.shown(Path::new(NAME));
        let mut text = String::new();
        let file = copy.file(Path::new(NAME)).with_context(|| {
            format!("`{}` is not a backup of a home: it has no readable {NAME}", copy.path().display())
        })?;
        file.take(LIST_BYTES_MAX + 1)
            .read_to_string(&mut text)
            .with_context(|| format!("`{}`", shown.display()))?;
        Self::parse(&text).map_err(|(line, why)| anyhow::anyhow!("`{}`, line {line}: {why}", shown.display()))
    }

    fn parse(text: &str) -> Result<Self, (usize, &'static str)> {
        if text.len() as u64 > LIST_BYTES_MAX {
            return Err((1, "it is longer than any list of a home"));
        }
        let mut digests = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let wrong = |why| (number + 1, why);
            let (digest, name) = line.split_once("  ").ok_or(wrong("it is not `digest  name`"))?;
            let is_digest = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
            let path = PathBuf::from(name);
            let is_beneath = path.components().all(|part| matches!(part, Component::Normal(_)));
            // No file has a longer path (limits.h), and looking at each part of a longer one takes time.
            if !is_digest || name.is_empty() || name.len() > PATH_BYTES_MAX || !is_beneath {
                return Err(wrong("it names no file of the copy"));
            }
            if digests.insert(path, digest.to_ascii_lowercase()).is_some() {
                return Err(wrong("it names a file twice"));
            }
        }
        Ok(Self { digests, bytes: 0 })
    }

    /// Takes paths out of the list, and returns them.
    pub(super) fn leave(&mut self, is_left: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        self.digests.extract_if(.., |path, _| is_left(path)).map(|(path, _)| path).collect()
    }

    /// Checks that all listed paths are files of the copy, and measures how long each is.
    ///
    /// # Errors
    /// When a path is not a file of the copy.
    pub(super) fn measure(self, copy: Beneath) -> Result<Measured> {
        let listed = |(path, digest): (PathBuf, String)| {
            let bytes = copy.file(&path)?.metadata()?.len();
            Ok(Listed { path, digest, bytes })
        };
        let files = self.digests.into_iter().map(listed).collect::<Result<_>>()?;
        Ok(Measured { copy, files })
    }
}

impl Measured {
    /// The bytes that the files take on a disk.
    pub(super) fn room(&self) -> u64 {
        let rooms = self.files.iter().map(|file| file.bytes.next_multiple_of(BLOCK));
        rooms.fold(0, u64::saturating_add)
    }

    /// Checks that each file matches its digest, and writes nothing.
    ///
    /// # Errors
    /// When a file does not match.
    pub(super) fn compare(self) -> Result<Compared> {
        self.files
            .iter()
            .try_for_each(|file| file.pass(self.copy.file(&file.path)?, io::sink(), &self.copy))?;
        Ok(Compared(self))
    }
}

impl Compared {
    /// Copies the listed files, and nothing else, to another place. A user who can write to the copy may have
    /// changed it since it was compared, so the written bytes are compared, too.
    ///
    /// # Errors
    /// When a file no longer matches its digest, or cannot be copied.
    pub(super) fn copy_to(&self, to: &Path) -> Result<()> {
        let Self(Measured { copy, files }) = self;
        for file in files {
            let (from, to) = (copy.file(&file.path)?, to.join(&file.path));
            to.parent().map_or(Ok(()), bailey_home::home::make_private)?;
            let cannot = || format!("cannot copy `{}`", copy.shown(&file.path).display());
            let write = create(&to, &from).with_context(cannot)?;
            file.pass(from, &write, copy)?;
            write.sync_all().with_context(cannot)?;
        }
        Ok(())
    }
}

impl Listed {
    /// Passes on as many bytes as were measured, and checks their digest against the list.
    fn pass(&self, from: File, to: impl Write, copy: &Beneath) -> Result<()> {
        let shown = copy.shown(&self.path);
        let (digest, _) =
            pass(from.take(self.bytes), to).with_context(|| format!("cannot copy `{}`", shown.display()))?;
        if digest != self.digest {
            bail!("`{}` differs from the list: the backup is damaged, so use another one", shown.display());
        }
        Ok(())
    }
}

/// Copies one file, which must not be a link, with access for its owner alone, and waits for the disk.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    let cannot = || format!("cannot copy `{}`", from.display());
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let mut read = OpenOptions::new().read(true).custom_flags(flags).open(from).with_context(cannot)?;
    if !read.metadata()?.is_file() {
        bail!("{}: it is not a file", cannot());
    }
    let mut write = create(to, &read).with_context(cannot)?;
    io::copy(&mut read, &mut write).and_then(|_| write.sync_all()).with_context(cannot)
}

/// Makes a file for another one's content, with access for its owner alone. A program stays executable.
fn create(to: &Path, from: &File) -> io::Result<File> {
    let mode = 0o600 | from.metadata()?.permissions().mode() & 0o100;
    OpenOptions::new().write(true).create_new(true).mode(mode).open(to)
}

fn digest(path: &Path) -> Result<(String, u64)> {
    let read = File::open(path).and_then(|file| pass(file, io::sink()));
    read.with_context(|| format!("cannot read `{}`", path.display()))
}

/// Passes all bytes on. Returns their digest and their number.
fn pass(mut from: impl Read, mut to: impl Write) -> io::Result<(String, u64)> {
    let (mut hasher, mut length, mut piece) = (Hasher::default(), 0, vec![0; PIECE]);
    loop {
        let read = from.read(&mut piece)?;
        let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
        hasher.update(bytes);
        to.write_all(bytes)?;
        length += bytes.len() as u64;
    }
    Ok((hasher.finish().to_string(), length))
}

#[cfg(test)]
mod tests {
    use super::{Beneath, Compared, NAME, Sums};
    use std::{fs, os::unix::fs::symlink, path::Path};
    use tempfile::TempDir;

    #[test]
    fn a_list_names_files_beneath_it_and_nothing_else() {
        let digest = "a".repeat(64);
        let parse = |name: &str| Sums::parse(&format!("{digest}  {name}\n")).map(|sums| sums.files());
        assert_eq!(parse("policy/mine.toml"), Ok(1));
        for name in ["../evil", "/etc/passwd", "a/../../b", "", "./a", "a/./../b"] {
            assert!(parse(name).is_err(), "{name}");
        }
        for text in [
            "x",
            &format!("{digest} a"),
            &format!("{}  a", "g".repeat(64)),
            &format!("{digest}  a\n{digest}  a"),
            &format!("{digest}  {}a", "a/".repeat(2048)),
        ] {
            assert!(Sums::parse(text).is_err(), "{text}");
        }
    }

    /// A compared copy of one file, in the folder `place`.
    fn compared(place: &TempDir) -> Compared {
        let copy = place.path().join("copy");
        fs::create_dir_all(copy.join("policy")).unwrap();
        fs::write(copy.join("policy/mine.toml"), "as it was\n").unwrap();
        let mut list = Sums::default();
        list.add(&copy, Path::new("policy/mine.toml")).unwrap();
        list.write(&copy).unwrap();
        let copy = Beneath::open(&copy).unwrap();
        Sums::read(&copy).unwrap().measure(copy).unwrap().compare().unwrap()
    }

    #[test]
    fn what_is_changed_behind_a_comparison_is_not_taken() {
        type Change = fn(&Path);
        let changes: [(&str, Change, &str); 4] = [
            (
                "another text",
                |copy| fs::write(copy.join("policy/mine.toml"), "as it is\n\n").unwrap(),
                "differs from the list",
            ),
            (
                "cut off",
                |copy| fs::write(copy.join("policy/mine.toml"), "as it").unwrap(),
                "differs from the list",
            ),
            ("gone", |copy| fs::remove_file(copy.join("policy/mine.toml")).unwrap(), "is missing"),
            (
                "a link in a folder's place",
                |copy| {
                    fs::rename(copy.join("policy"), copy.with_file_name("outside")).unwrap();
                    symlink("../outside", copy.join("policy")).unwrap();
                },
                "lies behind one",
            ),
        ];
        for (what, change, why) in changes {
            let place = tempfile::tempdir().unwrap();
            let compared = compared(&place);
            change(&place.path().join("copy"));
            let error = compared.copy_to(&place.path().join("home")).unwrap_err().to_string();
            assert!(error.contains(why), "{what}: {error}");
        }
        // The control.
        let place = tempfile::tempdir().unwrap();
        compared(&place).copy_to(&place.path().join("home")).unwrap();
        assert_eq!(fs::read_to_string(place.path().join("home/policy/mine.toml")).unwrap(), "as it was\n");
    }

    #[test]
    fn no_more_is_written_than_was_measured() {
        let place = tempfile::tempdir().unwrap();
        let compared = compared(&place);
        let file =
            fs::OpenOptions::new().write(true).open(place.path().join("copy/policy/mine.toml")).unwrap();
        file.set_len(1 << 24).unwrap();
        compared.copy_to(&place.path().join("home")).unwrap();
        assert_eq!(fs::read_to_string(place.path().join("home/policy/mine.toml")).unwrap(), "as it was\n");
    }

    #[test]
    fn a_list_that_is_a_link_is_no_list() {
        let place = tempfile::tempdir().unwrap();
        drop(compared(&place));
        let copy = place.path().join("copy");
        let read = || Sums::read(&Beneath::open(&copy).unwrap());
        assert_eq!(read().unwrap().files(), 1, "the control");
        fs::rename(copy.join(NAME), place.path().join("list")).unwrap();
        symlink("../list", copy.join(NAME)).unwrap();
        let error = format!("{:#}", read().unwrap_err());
        assert!(error.contains("is not a backup of a home") && error.contains("is a link"), "{error}");
    }
}
