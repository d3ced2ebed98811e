//! The list of a copy's files with their digests, as sha256sum(1) writes and reads it.

use anyhow::{Context as _, Result, bail};
use bailey_protocol::Hasher;
use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Component, Path, PathBuf},
};

/// The list's own name.
pub(super) const NAME: &str = "SHA256SUMS";
/// The longest list, and how much of a file is read at a time, in bytes.
const LIST_BYTES_MAX: u64 = 8 << 20;
const PIECE: usize = 256 << 10;

/// Files by their paths beneath the copy.
#[derive(Debug, Default)]
pub(super) struct Sums {
    digests: BTreeMap<PathBuf, String>,
    bytes: u64,
}

impl Sums {
    /// Takes a file of a copy in.
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
        crate::home::write_private(&copy.join(NAME), text.as_bytes())
    }

    /// The list of a copy. It names files beneath it, each once, and nothing else.
    ///
    /// # Errors
    /// What is wrong with it, and in which line.
    pub(super) fn read(copy: &Path) -> Result<Self> {
        let path = copy.join(NAME);
        let mut text = String::new();
        let file = File::open(&path)
            .with_context(|| format!("`{}` is no copy of a home: it has no {NAME}", copy.display()))?;
        file.take(LIST_BYTES_MAX + 1)
            .read_to_string(&mut text)
            .with_context(|| format!("`{}`", path.display()))?;
        Self::parse(&text).map_err(|(line, why)| anyhow::anyhow!("`{}`, line {line}: {why}", path.display()))
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
            if !is_digest || name.is_empty() || !is_beneath {
                return Err(wrong("it names no file of the copy"));
            }
            if digests.insert(path, digest.to_ascii_lowercase()).is_some() {
                return Err(wrong("it names a file twice"));
            }
        }
        Ok(Self { digests, bytes: 0 })
    }

    /// Copies what is listed, and nothing else, to another place; each file is what the list says of it there.
    ///
    /// # Errors
    /// When a file is not what the list says, or cannot be copied.
    pub(super) fn copy_to(&self, copy: &Path, to: &Path) -> Result<()> {
        for (path, digest) in &self.digests {
            let (from, to) = (copy.join(path), to.join(path));
            if let Some(folder) = to.parent() {
                crate::home::make_private(folder)?;
            }
            self::copy(&from, &to)?;
            if self::digest(&to)?.0 != *digest {
                bail!("`{}` is not what the list says: the copy is damaged", from.display());
            }
        }
        Ok(())
    }
}

/// Copies one file, which is no link, for its owner alone, and waits for the disk. A program stays one.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    let cannot = || format!("cannot copy `{}`", from.display());
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let mut read = OpenOptions::new().read(true).custom_flags(flags).open(from).with_context(cannot)?;
    let about = read.metadata()?;
    if !about.is_file() {
        bail!("{}: it is no file", cannot());
    }
    let mode = 0o600 | about.permissions().mode() & 0o100;
    let mut write =
        OpenOptions::new().write(true).create_new(true).mode(mode).open(to).with_context(cannot)?;
    io::copy(&mut read, &mut write).and_then(|_| write.sync_all()).with_context(cannot)
}

fn digest(path: &Path) -> Result<(String, u64)> {
    let cannot = || format!("cannot read `{}`", path.display());
    let mut file = File::open(path).with_context(cannot)?;
    let (mut hasher, mut length, mut piece) = (Hasher::default(), 0, vec![0; PIECE]);
    loop {
        let read = file.read(&mut piece).with_context(cannot)?;
        let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
        hasher.update(bytes);
        length += bytes.len() as u64;
    }
    Ok((hasher.finish().to_string(), length))
}

#[cfg(test)]
mod tests {
    use super::Sums;

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
        ] {
            assert!(Sums::parse(text).is_err(), "{text}");
        }
    }
}
