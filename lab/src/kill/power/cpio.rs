//! An initial file system for a guest, in the kernel's format:
//! <https://docs.kernel.org/driver-api/early-userspace/buffer-format.html>.

use anyhow::Result;
use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_777;

/// An archive that grows.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    directories: BTreeSet<PathBuf>,
}

impl Archive {
    /// A directory, and those above it.
    pub(super) fn directory(&mut self, path: &Path) -> Result<()> {
        let path = path.strip_prefix("/").unwrap_or(path);
        if path.as_os_str().is_empty() || !self.directories.insert(path.into()) {
            return Ok(());
        }
        self.parent(path)?;
        self.entry(path, DIRECTORY, b"")
    }

    /// The bytes of a file of the host, with its mode.
    pub(super) fn file(&mut self, path: &Path, from: &Path) -> Result<()> {
        let mode = fs::metadata(from)?.permissions().mode() & 0o777;
        self.parent(path)?;
        self.entry(path, FILE | mode, &fs::read(from)?)
    }

    /// A symbolic link.
    pub(super) fn link(&mut self, path: &Path, to: &str) -> Result<()> {
        self.parent(path)?;
        self.entry(path, LINK, to.as_bytes())
    }

    pub(super) fn finish(mut self) -> Result<Vec<u8>> {
        self.entry(Path::new("TRAILER!!!"), 0, b"")?;
        Ok(self.bytes)
    }

    fn parent(&mut self, path: &Path) -> Result<()> {
        path.parent().map_or(Ok(()), |parent| self.directory(parent))
    }

    fn entry(&mut self, path: &Path, mode: u32, content: &[u8]) -> Result<()> {
        self.entries += 1;
        let name = path.strip_prefix("/").unwrap_or(path).display().to_string();
        let (size, length) = (u32::try_from(content.len())?, u32::try_from(name.len() + 1)?);
        // Number, mode, user, group, links, time, size, four of devices, length of the name, checksum.
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, length, 0];
        self.bytes.extend(b"070701");
        fields.iter().for_each(|field| self.bytes.extend(format!("{field:08X}").bytes()));
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend(content);
        self.align();
        Ok(())
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}
