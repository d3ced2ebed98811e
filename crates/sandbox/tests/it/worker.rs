//! The worker, called as the warden's child calls it, on plain directories: it needs no walls to be right.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests: a panic is how a test fails"
)]

#[path = "worker_bases.rs"]
mod bases;
#[path = "worker_change.rs"]
mod change;
#[path = "worker_layer.rs"]
mod layer;
#[path = "worker_merge.rs"]
mod merge;
#[path = "worker_race.rs"]
mod race;
#[path = "worker_read.rs"]
mod read;
#[path = "worker_resolve.rs"]
mod resolve;
#[path = "worker_search.rs"]
mod search;

use bailey_protocol::{Action, Report, WsPath};
use bailey_sandbox::worker::{Request, Response, run};
use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A directory of the test's own, at a canonical path.
struct Ground {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

impl Ground {
    fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    fn within(parent: &Path) -> Self {
        let dir = tempfile::tempdir_in(parent).unwrap();
        let path = dir.path().canonicalize().unwrap();
        Self { _dir: dir, path }
    }

    fn text(&self, at: &str) -> String {
        self.path.join(at).to_str().unwrap().trim_end_matches('/').to_owned()
    }

    fn ws(&self, at: &str) -> WsPath {
        WsPath(self.text(at))
    }

    /// A file with this content and mode 644, and the directories it lies in.
    fn file(&self, at: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path.join(at);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        mode(&path, 0o644);
        path
    }

    fn dir(&self, at: &str) -> PathBuf {
        let path = self.path.join(at);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn link(&self, at: &str, target: &str) {
        let path = self.path.join(at);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    fn fifo(&self, at: &str) {
        mknodat(CWD, self.path.join(at), FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    }

    fn socket(&self, at: &str) {
        mknodat(CWD, self.path.join(at), FileType::Socket, Mode::from_raw_mode(0o644), 0).unwrap();
    }

    /// A whiteout as overlayfs makes it where that is allowed, else one of the other kind.
    fn whiteout(&self, at: &str) {
        let path = self.path.join(at);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if mknodat(CWD, &path, FileType::CharacterDevice, Mode::empty(), 0).is_err() {
            self.file_whiteout(at);
        }
    }

    fn file_whiteout(&self, at: &str) {
        let path = self.file(at, "");
        setxattr(path, "user.overlay.whiteout", b"y", XattrFlags::empty()).unwrap();
    }

    fn opaque(&self, at: &str, value: &[u8]) {
        let path = self.dir(at);
        setxattr(path, "user.overlay.opaque", value, XattrFlags::empty()).unwrap();
    }

    fn read(&self, at: &str) -> String {
        String::from_utf8(fs::read(self.path.join(at)).unwrap()).unwrap()
    }

    fn has(&self, at: &str) -> bool {
        self.path.join(at).symlink_metadata().is_ok()
    }
}

fn mode(path: &Path, bits: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
}

fn mode_of(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Performs an action; the report or the refusal's reason.
fn perform(action: Action) -> Result<Report, String> {
    match run(Request::Perform { action }) {
        Response::Report(report) => Ok(report),
        Response::Refused { reason } => Err(reason),
        other => panic!("{other:?}"),
    }
}
