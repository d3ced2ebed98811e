//! A directory as it stands: every path with its kind, mode, bytes or target, and time.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

/// What stands at one path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    kind: &'static str,
    mode: u32,
    content: Vec<u8>,
    /// Of the last change of the content, in nanoseconds.
    time: i128,
}

/// Everything below a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree {
    nodes: BTreeMap<PathBuf, Node>,
}

impl Tree {
    pub(crate) fn of(root: &Path) -> Self {
        let mut nodes = BTreeMap::new();
        let mut waiting = vec![root.to_path_buf()];
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                let node = Node::at(&path);
                if node.kind == "directory" {
                    waiting.push(path.clone());
                }
                nodes.insert(path.strip_prefix(root).unwrap().to_path_buf(), node);
            }
        }
        Self { nodes }
    }

    pub(crate) fn holds(&self, path: &str) -> bool {
        self.nodes.contains_key(Path::new(path))
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.nodes.keys().map(PathBuf::as_path)
    }

    /// Whether the same stands at this path in both; times do not count.
    pub(crate) fn agrees(&self, other: &Self, path: &Path) -> bool {
        let state =
            |tree: &Self| tree.nodes.get(path).map(|node| (node.kind, node.mode, node.content.clone()));
        state(self) == state(other)
    }

    /// Whether this path below the same root still is as it is here.
    pub(crate) fn is_at(&self, root: &Path, path: &Path) -> bool {
        let known = self.nodes.get(path.strip_prefix(root).unwrap());
        let now = fs::symlink_metadata(path).ok();
        let size = |node: &Node| u64::try_from(node.content.len()).unwrap();
        match (known, now) {
            (Some(node), Some(meta)) => {
                node.mode == meta.permissions().mode() & 0o7777 && size(node) == meta.len()
            }
            (known, now) => known.is_none() == now.is_none(),
        }
    }

    /// What differs, one line a path. A file's time counts, so that a merge that rewrites what it need not is
    /// seen; for what lies at or below a `named` path it does not, or nothing does.
    pub(crate) fn differences(&self, other: &Self, named: &[&str], ignore_named: bool) -> Vec<String> {
        let new = other.nodes.keys().filter(|path| !self.nodes.contains_key(*path));
        let differs = |path: &&PathBuf| {
            let is_named = named.iter().any(|name| path.starts_with(name));
            let (one, other) = (self.nodes.get(*path), other.nodes.get(*path));
            let timed = !is_named && one.is_some_and(|node| node.kind == "file");
            !(is_named && ignore_named)
                && one.map(|node| node.state(timed)) != other.map(|node| node.state(timed))
        };
        let paths = self.nodes.keys().chain(new).filter(differs);
        let tell = |path: &PathBuf| {
            format!("{}: {:?} / {:?}", path.display(), self.nodes.get(path), other.nodes.get(path))
        };
        paths.map(tell).collect()
    }
}

impl Node {
    fn at(path: &Path) -> Self {
        let meta = fs::symlink_metadata(path).unwrap();
        let (kind, content) = match meta.file_type() {
            kind if kind.is_dir() => ("directory", Vec::new()),
            kind if kind.is_symlink() => {
                ("link", fs::read_link(path).unwrap().as_os_str().as_bytes().to_vec())
            }
            kind if kind.is_file() => ("file", fs::read(path).unwrap()),
            kind if kind.is_fifo() => ("fifo", Vec::new()),
            _ => ("other", Vec::new()),
        };
        let time = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
        Self { kind, mode: meta.permissions().mode() & 0o7777, content, time }
    }

    fn state(&self, timed: bool) -> (&str, u32, &[u8], Option<i128>) {
        (self.kind, self.mode, &self.content, timed.then_some(self.time))
    }
}
