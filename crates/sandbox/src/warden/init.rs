//! The first process of a sandbox: finishes the root, starts the payload, waits, and ends everything.

use super::{
    Ground,
    payload::{self, Start},
    watch,
};
use crate::{
    cgroup, charter,
    facts::Known,
    mask, stage,
    sys::{self, SignalFd, attr},
    tree::{self, Access},
    wire::{self, Ended, Forward, Job, Message, Streams, View},
};
use bailey_protocol::Wall;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    mount::MountAttrFlags,
    process::{
        Pid, Signal, WaitOptions, WaitStatus, kill_process_group, set_parent_process_death_signal, wait,
    },
};
use std::{
    collections::{BTreeSet, VecDeque},
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd, RawFd},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// Between two looks at what can only be watched.
const TICK: Duration = Duration::from_millis(250);

/// An init's life. `root` is the staging root's descriptor; none when the mount namespace was left away. After the
/// streams, `rest` holds what the forward counts.
pub(super) fn main(
    ground: &Ground,
    root: Option<RawFd>,
    forward: &Forward,
    streams: Streams<OwnedFd>,
    rest: VecDeque<OwnedFd>,
) -> ! {
    let Streams { job, stdin, stdout, stderr, control } = streams;
    let streams = [stdin, stdout, stderr];
    let Err(reason) = run(ground, root, forward, job, streams, &control, rest) else { sys::exit(0) };
    // When nobody listens any more there is nobody to tell.
    drop(wire::send(control.as_fd(), &Message::Refused(ground.explained(reason)), &[]));
    sys::exit(125)
}

fn run(
    ground: &Ground,
    root: Option<RawFd>,
    forward: &Forward,
    job: OwnedFd,
    streams: [OwnedFd; 3],
    control: &OwnedFd,
    mut rest: VecDeque<OwnedFd>,
) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    let job: Job = wire::unseal(job).map_err(|error| format!("the job cannot be read: {error}"))?;
    if !ground.is_trusting() {
        let lease = charter::lease(&ground.config, forward.header.session)?;
        charter::check(&ground.config.calls, lease, forward.header.view, &job)?;
    }
    let extra: Vec<OwnedFd> = rest.drain(..forward.extra.min(rest.len())).collect();
    let doors: Vec<OwnedFd> = rest.drain(..forward.doors.min(rest.len())).collect();
    let events = rest.pop_front().filter(|_| forward.has_events);
    cgroup::join(&doors).map_err(|error| format!("the control group: {error}"))?;
    let covered = enclose(ground, root.is_some(), forward, &job, &extra)?;
    let mut keep: Vec<RawFd> = streams.iter().chain([control]).map(AsRawFd::as_raw_fd).collect();
    keep.extend(events.as_ref().map(AsRawFd::as_raw_fd));
    keep.push(2);
    // Their owners here are not dropped but forgotten, so that no number is closed twice.
    std::mem::forget((extra, doors));
    sys::close_all_but(&keep).map_err(text)?;

    let limits = job.limits.clone();
    let signals = SignalFd::block(&[Signal::CHILD, Signal::USR1]).map_err(text)?;
    let events = events.map(|events| {
        let before = cgroup::kills(&events);
        (events, before)
    });
    let known = known(ground, forward);
    let watches_memory = known.watched.contains(&Wall::MemoryLimit);
    let child = sys::fork(sys::Namespaces::default())
        .map_err(|error| format!("a process for the payload: {error}"))?;
    let Some(child) = child else {
        drop((signals, events));
        payload::main(Start { ground, header: &forward.header, job, known, covered, streams, control })
    };
    drop(streams);
    let memory_bytes = watches_memory.then_some(limits.memory_bytes);
    let watch = Watch { signals, control, child, memory_bytes, events };
    let ended = watch.wait(Duration::from_millis(limits.wall_ms));
    drop(wire::send(control.as_fd(), &Message::Ended(ended), &[]));
    Ok(())
}

/// What holds and what is watched; a limit is one or the other.
fn known(ground: &Ground, forward: &Forward) -> Known {
    let without = &ground.config.without;
    let limits: BTreeSet<Wall> = forward.limits.difference(without).copied().collect();
    let watched = [Wall::MemoryLimit, Wall::DiskLimit].into_iter();
    let watched = watched.filter(|wall| !limits.contains(wall) && !without.contains(wall)).collect();
    let absent = forward.absent.iter().cloned();
    let absent = absent.chain(without.iter().map(|wall| format!("{wall}: left away by a test"))).collect();
    Known { limits, watched, absent, ..Known::default() }
}

/// The rest of the root, for this effect alone, and then no way back: the old root goes, capabilities go. Returns what is
/// masked.
fn enclose(
    ground: &Ground,
    has_root: bool,
    forward: &Forward,
    job: &Job,
    extra: &[OwnedFd],
) -> Result<Vec<PathBuf>, String> {
    let without = &ground.config.without;
    let mut covered = Vec::new();
    if has_root {
        covered = finish_root(ground, forward, job, extra)
            .map_err(|(what, error)| format!("{what}: {}", stage::explained(error)))?;
    }
    if !without.contains(&Wall::UtsNamespace) {
        sys::set_host_name(crate::plan::USER).map_err(|error| format!("the host name: {error}"))?;
    }
    if !without.contains(&Wall::NoCapabilities) {
        payload::drop_capabilities()?;
    }
    Ok(covered)
}

type Step = (String, io::Error);

fn finish_root(
    ground: &Ground,
    forward: &Forward,
    job: &Job,
    extra: &[OwnedFd],
) -> Result<Vec<PathBuf>, Step> {
    let mut covered = Vec::new();
    let header = &forward.header;
    let step = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| (what, error)
    };
    let root = tree::directory(".").map_err(step("the root"))?;
    proc(ground, &root).map_err(step("/proc (a fully visible one is needed outside)"))?;
    if header.view == View::Workspace {
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let size = (job.limits.memory_bytes / 4).to_string();
        let shm = tree::make("tmpfs", &[("size", &size), ("mode", "1777")], attributes)
            .map_err(step("/dev/shm"))?;
        put(&root, Path::new("/dev/shm"), &shm).map_err(step("/dev/shm"))?;
        for (number, path) in header.extra_reads.iter().enumerate() {
            extra_read(&root, path, extra.get(number)).map_err(step(path))?;
        }
        let revealed = job.isolation.revealed.iter().map(|path| PathBuf::from(&path.0)).collect();
        covered = mask::cover(root.as_fd(), &header.yard.project, &ground.masks, &revealed)
            .map_err(step("masking secrets"))?;
    }
    sys_read_only(&root).map_err(step("the root"))?;
    rustix::process::pivot_root(".", ".").map_err(|error| step("pivot_root")(error.into()))?;
    tree::detach(".").map_err(step("the old root"))?;
    std::env::set_current_dir("/").map_err(step("the new root"))?;
    Ok(covered)
}

/// What a fresh /proc still tells of the host's user: the kernel's keys, whose names are no part of any namespace.
const OF_THE_USER: [&str; 2] = ["proc/keys", "proc/key-users"];

/// A fresh /proc; without a pid namespace of its own there can be none, and the host's is bound.
fn proc(ground: &Ground, root: &OwnedFd) -> io::Result<()> {
    if ground.config.without.contains(&Wall::PidNamespace) {
        return put(root, Path::new("/proc"), &tree::open(Path::new("/proc"))?);
    }
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    put(root, Path::new("/proc"), &tree::make("proc", &[], attributes)?)?;
    for name in OF_THE_USER {
        match tree::beneath(root.as_fd(), Path::new(name)) {
            Ok(place) => tree::attach(tree::open_at(root.as_fd(), "dev/null")?.as_fd(), place.as_fd())?,
            // A kernel without keys.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn extra_read(root: &OwnedFd, path: &str, opened: Option<&OwnedFd>) -> io::Result<()> {
    let path = Path::new(path);
    let own;
    let tree = match opened {
        Some(tree) => tree,
        None => {
            own = tree::open_canonical(path)?;
            &own
        }
    };
    tree::restrict(tree.as_fd(), Access::ReadOnly, None)?;
    put(root, path, tree)
}

fn put(root: &OwnedFd, at: &Path, tree: &OwnedFd) -> io::Result<()> {
    let place = tree::place(root.as_fd(), at, tree::kind_of(tree.as_fd())?)?;
    tree::attach(tree.as_fd(), place.as_fd())
}

/// The root's own tmpfs; what is mounted beneath keeps its attributes.
fn sys_read_only(root: &OwnedFd) -> io::Result<()> {
    sys::mount_setattr(root.as_fd(), false, attr::READ_ONLY, None)
}

/// What init waits for.
struct Watch<'a> {
    signals: SignalFd,
    control: &'a OwnedFd,
    child: Pid,
    /// Where memory is watched: how much there may be.
    memory_bytes: Option<u64>,
    /// Where it is held: the group's count of killed processes, and how many were before this sandbox.
    events: Option<(OwnedFd, u64)>,
}

impl Watch<'_> {
    /// Waits for the payload's end and ends all it left behind.
    fn wait(&self, wall: Duration) -> Ended {
        let deadline = Instant::now().checked_add(wall);
        // The network is the session's, and counts for all that lives in it.
        let had_no_route = watch::out_no_routes();
        let mut kill_at: Option<Instant> = None;
        let mut limit: Option<&str> = None;
        let mut look_at = Instant::now() + TICK;
        let status = loop {
            if let Some(status) = self.reap() {
                break Some(status);
            }
            let now = Instant::now();
            if limit.is_none() && deadline.is_some_and(|deadline| now >= deadline) {
                limit = Some("time limit");
                kill_at.get_or_insert(now + GRACE);
                self.signal_all(Signal::TERM);
            }
            if kill_at.is_some_and(|at| now >= at) {
                break None;
            }
            match self.next_event(deadline, kill_at) {
                Event::Cancel => {
                    kill_at.get_or_insert(now + GRACE);
                    self.signal_all(Signal::TERM);
                }
                Event::Gone => break None,
                Event::Disk => {
                    limit = Some("disk limit");
                    break None;
                }
                Event::Nothing => {}
            }
            if now >= look_at {
                look_at = now + TICK;
                if self.is_out_of_memory() {
                    limit = Some("memory limit");
                    break None;
                }
            }
        };
        let status = self.end(status);
        // The last breach may have come after the last look.
        if limit.is_none() && self.has_killed() {
            limit = Some("memory limit");
        }
        Ended {
            exit: status.and_then(|status| status.exit_status()),
            signal: status.and_then(|status| status.terminating_signal()),
            limit: limit.map(str::to_owned),
            out_no_routes: watch::out_no_routes().saturating_sub(had_no_route),
        }
    }

    /// Where the limit is watched: whether the tree is above it. Where it is held: whether the kernel had to kill one
    /// process of the tree, which ends the others too, as they counted on it.
    fn is_out_of_memory(&self) -> bool {
        self.memory_bytes.is_some_and(watch::is_memory_above) || self.has_killed()
    }

    fn has_killed(&self) -> bool {
        self.events.as_ref().is_some_and(|(events, before)| cgroup::kills(events) > *before)
    }

    /// Takes every zombie; the payload's status when it is among them.
    fn reap(&self) -> Option<WaitStatus> {
        let mut found = None;
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid == self.child {
                found = Some(status);
            }
        }
        found
    }

    fn next_event(&self, deadline: Option<Instant>, kill_at: Option<Instant>) -> Event {
        let until = |at: Option<Instant>| at.map_or(TICK, |at| at.saturating_duration_since(Instant::now()));
        let wait = TICK.min(until(deadline.filter(|_| kill_at.is_none()))).min(until(kill_at));
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        let mut polled = [
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
            PollFd::new(self.control, PollFlags::IN),
        ];
        if poll(&mut polled, Some(&timeout)).is_err() {
            return Event::Nothing;
        }
        let asked = polled.last().is_some_and(|control| !control.revents().is_empty());
        while let Some(caught) = self.signals.next() {
            // Only the holder, outside of this pid namespace, has no number here.
            if caught.signal == Signal::USR1.as_raw() && caught.sender == 0 {
                return Event::Disk;
            }
        }
        if !asked {
            return Event::Nothing;
        }
        match rustix::io::read(self.control, &mut [0u8; 16]) {
            Ok(0) | Err(_) => Event::Gone,
            Ok(_) => Event::Cancel,
        }
    }

    /// Signals everything in the sandbox; where a test left the pid namespace away, the payload's process group.
    fn signal_all(&self, signal: Signal) {
        // Nobody left to signal is what we want.
        if sys::process_signals(signal).is_err() {
            let _ = kill_process_group(self.child, signal);
        }
    }

    /// Kills what is left and waits until nothing is.
    fn end(&self, mut status: Option<WaitStatus>) -> Option<WaitStatus> {
        self.signal_all(Signal::KILL);
        loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, ended))) if pid == self.child => status = Some(ended),
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return status,
            }
        }
    }
}

enum Event {
    Nothing,
    Cancel,
    Gone,
    Disk,
}
