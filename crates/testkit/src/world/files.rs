//! The files of a small world, and what can be done with them.

use super::output;
use bailey_protocol::{
    Blob, ChangedFile, Command, DiffReport, Digest, ExecReport, FileChange, FileDiff, FileKind, FileReport,
    FileState, ListReport, Listed, Merge, MergeFile, MergeKind, MergeResult, MergeState, Outcome, Report,
    Stream, Touched, WsPath, file_state,
};
use std::collections::BTreeMap;

/// The project, and the layer over it.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) project: BTreeMap<String, Vec<u8>>,
    /// None: deleted.
    layer: BTreeMap<String, Option<Vec<u8>>>,
    /// What the project held of a path when it came into the layer, or after the last merge.
    bases: BTreeMap<String, Vec<u8>>,
}

impl Files {
    pub(super) fn get(&self, path: &str) -> Option<Vec<u8>> {
        match self.layer.get(path) {
            Some(content) => content.clone(),
            None => self.project.get(path).cloned(),
        }
    }

    /// Writes to the layer; answers what the project held when that is the first time.
    fn set(&mut self, path: &WsPath, content: Option<Vec<u8>>) -> Option<Touched> {
        let first = !self.layer.contains_key(&path.0);
        self.layer.insert(path.0.clone(), content);
        if first {
            self.rebase(&path.0);
        }
        let base = self.project.get(&path.0).map(|content| state(content));
        first.then(|| Touched { path: path.clone(), base, unsure: false })
    }

    /// Remembers what the project holds there.
    fn rebase(&mut self, path: &str) {
        self.bases.remove(path);
        self.bases.extend(self.project.get(path).map(|content| (path.to_owned(), content.clone())));
    }

    pub(super) fn read(&self, path: &WsPath) -> Outcome {
        let Some(content) = self.get(&path.0) else { return Outcome::failed("no such file") };
        let (size, digest) = (content.len() as u64, Some(Digest::of(&content)));
        output(Report::File(FileReport { content: Blob(content), size, digest, mode: 0o644 }))
    }

    pub(super) fn list(&self, path: &WsPath) -> Outcome {
        let names = self.project.keys().chain(self.layer.keys()).filter(|name| self.get(name).is_some());
        let mut entries: BTreeMap<String, Listed> = BTreeMap::new();
        for name in names {
            let Some(rest) = WsPath(name.clone()).relative_to(&path.0).map(str::to_owned) else { continue };
            let (name, kind) = match rest.split_once('/') {
                Some((folder, _)) => (folder.to_owned(), FileKind::Directory),
                None => (rest, FileKind::File),
            };
            entries.insert(name.clone(), Listed { name, kind, size: 0 });
        }
        output(Report::List(ListReport { entries: entries.into_values().collect(), more: 0 }))
    }

    pub(super) fn change(&mut self, changes: &[FileChange]) -> Outcome {
        let digest = |content: Option<Vec<u8>>| content.map(|content| Digest::of(&content));
        for change in changes {
            if digest(self.get(&change.path.0)) != change.base {
                return Outcome::failed(format!("`{}` is not what it was when it was read", change.path));
            }
        }
        let mut files = Vec::new();
        for FileChange { path, base, new } in changes {
            let new = new.as_ref().map(|blob| blob.0.clone());
            let now = digest(new.clone());
            let touched = self.set(path, new);
            files.push(ChangedFile { path: path.clone(), old: *base, new: now, touched });
        }
        output(Report::Changed { files })
    }

    /// `echo WORDS`, `cat FILE`, `write FILE WORDS`, `true` and `false`; `sh -c LINE` is cut at white space.
    pub(super) fn exec(&mut self, command: &Command, canonical: impl Fn(&str) -> WsPath) -> Outcome {
        let mut words: Vec<String> = command.argv.clone();
        if let [_, dash_c, line] = words.as_slice()
            && dash_c == "-c"
        {
            words = line.split_whitespace().map(str::to_owned).collect();
        }
        let mut report = ExecReport { exit: Some(0), ..ExecReport::default() };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["true", ..] => {}
            ["false", ..] => report.exit = Some(1),
            ["echo", rest @ ..] => report.stdout = stream(format!("{}\n", rest.join(" ")).as_bytes()),
            ["cat", name] => match self.get(&canonical(name).0) {
                Some(content) => report.stdout = stream(&content),
                None => {
                    report.exit = Some(1);
                    report.stderr = stream(b"cat: no such file\n");
                }
            },
            ["write", name, rest @ ..] => {
                report.touched.extend(self.set(&canonical(name), Some(rest.join(" ").into_bytes())));
            }
            _ => {
                report.exit = Some(127);
                report.stderr = stream(b"sh: not found\n");
            }
        }
        output(Report::Exec(report))
    }

    pub(super) fn diff(&self) -> Outcome {
        let side = |content: &Vec<u8>| FileState {
            state: state(content),
            kind: FileKind::File,
            mode: MODE,
            size: content.len() as u64,
            content: Some(Blob(content.clone())),
        };
        let mut files = Vec::new();
        for (path, new) in &self.layer {
            let old = self.project.get(path);
            if old != new.as_ref() {
                let base = self.bases.get(path).filter(|base| Some(*base) != old).map(side);
                let (old, new) = (old.map(side), new.as_ref().map(side));
                files.push(FileDiff {
                    path: WsPath(path.clone()),
                    old,
                    new,
                    base,
                    refused: None,
                    remarks: Vec::new(),
                    marks: Vec::new(),
                });
            }
        }
        output(Report::Diff(DiffReport { files, ..DiffReport::default() }))
    }

    pub(super) fn merge(&mut self, merge: &Merge) -> Outcome {
        if merge.direction == MergeKind::Discard {
            self.layer.clear();
            self.bases.clear();
            return output(Report::Merged { files: Vec::new(), tips: Vec::new() });
        }
        let mut results = Vec::new();
        for file in &merge.files {
            let (from, to) = match merge.direction {
                MergeKind::Apply => (file.base, file.new),
                _ => (file.new, file.base),
            };
            let state = self.move_one(file, from, to);
            results.push(MergeResult { path: file.path.clone(), state });
        }
        output(Report::Merged { files: results, tips: Vec::new() })
    }

    /// An apply takes its content from the layer, or splices it from there; an undo from what was kept beside
    /// it.
    fn move_one(&mut self, file: &MergeFile, from: Option<Digest>, to: Option<Digest>) -> MergeState {
        let path = file.path.0.as_str();
        let now = self.project.get(path).map(|content| state(content));
        if now == to {
            return MergeState::Already;
        }
        if now != from {
            return MergeState::Conflict { reason: "somebody changed it meanwhile".into() };
        }
        let kept = |state: Option<Digest>| {
            format!("kept:{path}:{}", state.map_or_else(String::new, |s| s.to_string()))
        };
        let layer = self.layer.get(path).cloned().flatten();
        let part = file.part.as_ref().zip(layer.as_ref()).zip(self.project.get(path));
        let spliced = part.and_then(|((part, layer), old)| part.compose(old, layer));
        let sources = [layer, spliced, self.project.get(&kept(to)).cloned()];
        let content = sources.into_iter().flatten().find(|content| Some(state(content)) == to);
        match (to, content) {
            (Some(_), None) => return MergeState::Failed { reason: "nobody has that content".into() },
            (_, content) => {
                if let Some(old) = self.project.remove(path) {
                    self.project.insert(kept(now), old);
                }
                if let Some(content) = content {
                    if file.part.as_ref().is_some_and(|part| part.rebases) {
                        self.layer.insert(path.into(), Some(content.clone()));
                    }
                    self.project.insert(path.into(), content);
                }
                self.rebase(path);
            }
        }
        MergeState::Done
    }
}

/// Every file here has the same mode.
const MODE: u32 = 0o644;

fn state(content: &[u8]) -> Digest {
    file_state(MODE, content)
}

fn stream(bytes: &[u8]) -> Stream {
    Stream { head: Blob(bytes.to_vec()), tail: Blob::default(), total: bytes.len() as u64 }
}
