//! What a commit has at a path, beside what stands in the project there (git-diff-tree(1),
//! gitformat-index(5)).

use super::beneath::{Root, look, type_of};
use super::state::{Unreadable, open_file, pour};
use rustix::fs::{FileType, readlinkat};
use sha1::{Digest as _, Sha1};
use std::fmt::Write as _;

/// A commit's entry, by mode and name of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlobEntry<'a> {
    mode: &'a str,
    id: &'a str,
}

impl<'a> BlobEntry<'a> {
    /// What a line of `git diff-tree --raw` says of the newer side.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(line).ok()?.strip_prefix(':')?.split(' ');
        let (mode, id) = (words.nth(1)?, words.nth(1)?);
        Some(Self { mode, id })
    }

    /// Whether the project holds it at `at`, byte for byte. Where git would write a file otherwise than it
    /// keeps it, as for other ends of lines, it is another one.
    ///
    /// `has_modes`: whether git looks whether a file there is a program.
    pub(super) fn is_at(self, project: &Root, at: &str, has_modes: bool) -> Result<bool, Unreadable> {
        let Some((dir, name)) = project.place(at)? else { return Ok(self.is_nothing()) };
        let Some(stat) = look(&dir, name.as_ref())? else { return Ok(self.is_nothing()) };
        match (self.mode, type_of(&stat)) {
            // To git a directory is nothing but what is in it.
            (_, FileType::Directory) => Ok(self.is_nothing()),
            ("120000", FileType::Symlink) => {
                let target = readlinkat(&dir, name, Vec::new())?.into_bytes();
                let mut hasher = blob(target.len() as u64);
                hasher.update(&target);
                Ok(self.is_named(hasher))
            }
            ("100644" | "100755", FileType::RegularFile) => {
                let (file, stat) = open_file(&dir, name.as_ref())?;
                let size = u64::try_from(stat.st_size).unwrap_or_default();
                let is_program = stat.st_mode & 0o100 != 0;
                let is_alike = !has_modes || is_program == (self.mode == "100755");
                let mut hasher = blob(size);
                let read = pour(file, size, |bytes| {
                    hasher.update(bytes);
                    Ok(())
                })?;
                Ok(read == size && is_alike && self.is_named(hasher))
            }
            _ => Ok(false),
        }
    }

    /// Whether the commit has nothing there.
    pub(super) fn is_nothing(self) -> bool {
        self.mode == "000000"
    }

    fn is_named(self, hasher: Sha1) -> bool {
        hex(&hasher.finalize()) == self.id
    }
}

/// What the name of a blob of so many bytes begins with.
fn blob(size: u64) -> Sha1 {
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {size}\0"));
    hasher
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").ok();
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt as _, os::unix::fs::symlink};

    #[test]
    fn what_a_commit_has_is_told_from_anything_else() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "hello\n").unwrap();
        fs::write(dir.path().join("program"), "hello\n").unwrap();
        fs::set_permissions(dir.path().join("program"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("hello\n", dir.path().join("link")).unwrap();
        fs::create_dir(dir.path().join("folder")).unwrap();
        symlink(dir.path(), dir.path().join("linked")).unwrap();
        let project = Root::open(dir.path().to_str().unwrap()).unwrap();
        // As `git hash-object` names them.
        const HELLO: &str = "ce013625030ba8dba906f756967f9e9ca394464a";
        const OTHER: &str = "ce013625030ba8dba906f756967f9e9ca394464b";
        const NONE: &str = "0000000000000000000000000000000000000000";
        for (mode, id, at, is_it) in [
            ("100644", HELLO, "file", true),
            ("100644", OTHER, "file", false),
            ("100755", HELLO, "file", false),
            ("100755", HELLO, "program", true),
            ("120000", HELLO, "file", false),
            ("120000", HELLO, "link", true),
            ("100644", HELLO, "link", false),
            ("100644", HELLO, "absent", false),
            ("100644", HELLO, "folder", false),
            ("160000", HELLO, "folder", false),
            ("000000", NONE, "absent", true),
            ("000000", NONE, "absent/deeper", true),
            ("000000", NONE, "folder", true),
            ("000000", NONE, "linked/deeper", true),
            ("100644", HELLO, "linked/file", false),
            ("000000", NONE, "file", false),
        ] {
            let line = format!(":100644 {mode} {NONE} {id} M");
            let entry = BlobEntry::read(line.as_bytes()).unwrap();
            assert_eq!(entry.is_at(&project, at, true).unwrap(), is_it, "{mode} {id} {at}");
        }
        // Where git takes no notice of modes, they are no difference; a link is one all the same.
        for (mode, at, is_it) in
            [("100755", "file", true), ("100644", "program", true), ("100755", "link", false)]
        {
            let line = format!(":100644 {mode} {NONE} {HELLO} M");
            let entry = BlobEntry::read(line.as_bytes()).unwrap();
            assert_eq!(entry.is_at(&project, at, false).unwrap(), is_it, "{mode} {at}");
        }
        for line in ["", "M", ":100644 100644 x", "100644 100644 a b M"] {
            assert_eq!(BlobEntry::read(line.as_bytes()), None, "{line}");
        }
    }
}
