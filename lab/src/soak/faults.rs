//! What breaks: processes by kill -9, the model for some seconds at a time, and once the disk is full for a
//! minute.

use super::Yard;
use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    collections::BTreeMap,
    fmt, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

/// How big the disk is, and how long it is full.
const DISK: &str = "size=2g,mode=700";
const FULL: Duration = Duration::from_secs(60);
/// Between faults.
const PAUSE: Duration = Duration::from_secs(15);
/// How long the model is down.
const OUTAGE_SECONDS: u64 = 10;
/// The size of a piece that fills the disk, in bytes.
const PIECE: usize = 1 << 20;

/// A file system of its own for the whole of it, which can be filled without harm to anything else.
#[derive(Debug, Clone)]
pub(super) struct Disk(Option<PathBuf>);

impl Disk {
    pub(super) fn mount(folder: &Path) -> Self {
        let mounted = mount(Some("none"), folder, Some("tmpfs"), MsFlags::empty(), Some(DISK));
        Self(mounted.is_ok().then(|| folder.to_owned()))
    }

    pub(super) fn unmount(&self) {
        if let Some(folder) = &self.0 {
            umount2(folder, MntFlags::MNT_DETACH).ok();
        }
    }

    /// Full for a minute.
    fn fill(&self) -> bool {
        let Some(folder) = &self.0 else { return false };
        let path = folder.join("filler");
        let Ok(mut file) = fs::File::create(&path) else { return false };
        let end = Instant::now() + FULL;
        while Instant::now() < end {
            // Whatever is freed meanwhile is taken, too.
            if file.write_all(&[7; PIECE]).is_err() {
                thread::sleep(Duration::from_millis(100));
            }
        }
        drop(file);
        fs::remove_file(&path).is_ok()
    }
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(_) => write!(f, "on a disk of its own ({DISK}), which will be full for a minute"),
            None => write!(f, "SKIPPED: a full disk, because only root can mount one"),
        }
    }
}

/// Breaks one thing after the other until the time is over; how often each broke.
pub(super) fn run(yard: &Yard, disk: &Disk, time: Duration) -> BTreeMap<&'static str, usize> {
    let mut broken = BTreeMap::new();
    let mut count = 0_usize;
    let mut was_full = false;
    while !yard.is_over.load(Ordering::SeqCst) {
        thread::sleep(PAUSE);
        if yard.is_over.load(Ordering::SeqCst) {
            break;
        }
        if !was_full && yard.begun.elapsed() > time / 2 {
            was_full = true;
            if disk.fill() {
                *broken.entry("the disk was full for a minute").or_default() += 1;
            }
            continue;
        }
        count += 1;
        let what = match count % 8 {
            0 => end_daemon(yard),
            2 => {
                yard.outage_until.store(yard.seconds() + OUTAGE_SECONDS, Ordering::Relaxed);
                Some("the model was down for 10 s")
            }
            4 => end_page(yard),
            _ => end_session(yard, count),
        };
        if let Some(what) = what {
            *broken.entry(what).or_default() += 1;
        }
    }
    broken
}

fn end_session(yard: &Yard, count: usize) -> Option<&'static str> {
    let status = yard.lines(&["--json", "status"]).ok()?.pop()?;
    let sessions = status["sessions"].as_array()?;
    let working: Vec<_> = sessions.iter().filter(|session| session["working"] == true).collect();
    let session = working.get(count % working.len().max(1))?;
    end(session["pid"].as_i64()?)?;
    Some("a session's process was killed in a turn")
}

fn end_daemon(yard: &Yard) -> Option<&'static str> {
    let status = yard.lines(&["--json", "status"]).ok()?.pop()?;
    end(status["pid"].as_i64()?)?;
    thread::sleep(Duration::from_secs(1));
    for _ in 0..20 {
        if yard.start().is_ok() {
            return Some("the daemon was killed");
        }
        thread::sleep(Duration::from_secs(1));
    }
    None
}

fn end_page(yard: &Yard) -> Option<&'static str> {
    let name = format!("{} web serve", yard.home().display());
    let found = Command::new("pgrep").args(["-f", &name]).output().ok()?;
    let pid = String::from_utf8(found.stdout).ok()?.lines().next()?.parse().ok()?;
    end(pid)?;
    Some("the page's process was killed")
}

fn end(pid: i64) -> Option<()> {
    kill(Pid::from_raw(i32::try_from(pid).ok()?), Signal::SIGKILL).ok()
}
