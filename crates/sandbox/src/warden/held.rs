//! Holders' processes, as the warden knows them.

use super::{
    holder::{Claim, Kind},
    shown::{Identity, identity, programs},
    watch,
};
use crate::{
    cgroup::Group,
    plan::Plan,
    stage::OpenFolders,
    wire::{self, Header},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::Pid,
};
use std::{
    collections::BTreeMap,
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

/// For how long what was looked at counts as what is there, so that commands that follow one another closely
/// do not wait for a look each.
const MOMENT: Duration = Duration::from_millis(50);

/// A holder that is no session's yet.
pub(super) struct Unclaimed {
    pub(super) kind: Kind,
    pub(super) process: Pid,
    pub(super) socket: OwnedFd,
    /// The control group that it sits in.
    pub(super) group: Option<Group>,
    /// What it shows of the host's programs, as it was when it was mounted.
    programs: Vec<Identity>,
    /// The host's mounts, opened before it was made: it sees them as they were then.
    mounts: io::Result<File>,
}

/// What stands on the host when a holder is about to be made.
pub(super) struct Before {
    programs: Vec<Identity>,
    mounts: io::Result<File>,
}

impl Before {
    pub(super) fn look(plan: &Plan, has_programs: bool) -> Self {
        let programs = if has_programs { programs(plan) } else { Vec::new() };
        Self { programs, mounts: File::open("/proc/self/mounts") }
    }
}

impl Unclaimed {
    pub(super) fn new(
        kind: Kind,
        process: Pid,
        socket: OwnedFd,
        group: Option<Group>,
        before: Before,
    ) -> Self {
        let Before { programs, mounts } = before;
        Self { kind, process, socket, group, programs, mounts }
    }

    /// Whether it shows what stands on the host by now: neither was anything mounted since, nor has anything
    /// else taken the place of a program or a tool.
    pub(super) fn is_current(&self, plan: &Plan) -> bool {
        let Ok(mounts) = &self.mounts else { return false };
        // proc(5): a change of the mounts is told as an exceptional condition.
        let mut polled = [PollFd::new(mounts, PollFlags::PRI)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&now)).is_ok_and(|told| told == 0) && self.programs == programs(plan)
    }

    /// Makes it a session's.
    ///
    /// # Errors
    /// When it is gone.
    pub(super) fn claim(&self, claim: &Claim, opened: &OpenFolders) -> io::Result<()> {
        let trees: Vec<BorrowedFd<'_>> = opened.iter().map(AsFd::as_fd).collect();
        wire::send(self.socket.as_fd(), claim, &trees)
    }

    /// What it is once it was claimed; the project as it was before that was opened.
    pub(super) fn held(self, claim: Claim, project: Identity) -> SessionHolder {
        let Self { process, socket, group, programs, .. } = self;
        SessionHolder {
            process,
            socket,
            live: BTreeMap::new(),
            asked: 0,
            ready: None,
            is_broken: false,
            looked: Instant::now(),
            claim,
            project,
            programs,
            group,
        }
    }
}

/// A session's holder.
pub(super) struct SessionHolder {
    pub(super) process: Pid,
    pub(super) socket: OwnedFd,
    /// Sandboxes that live in it.
    pub(super) live: BTreeMap<u64, Living>,
    /// How many it was asked for.
    pub(super) asked: u64,
    /// Its sandbox that waits for the next order.
    pub(super) ready: Option<Ready>,
    /// Whether it makes no sandboxes any more.
    pub(super) is_broken: bool,
    /// When what it shows of the host was looked at last.
    looked: Instant,
    pub(super) claim: Claim,
    /// The project, as it was when it was mounted.
    project: Identity,
    /// What else it shows of the host, likewise.
    programs: Vec<Identity>,
    /// The control group that it sits in.
    pub(super) group: Option<Group>,
}

/// A sandbox that waits, and nothing lives beside it.
pub(super) struct Ready {
    /// Where its order goes to.
    pub(super) socket: OwnedFd,
    /// What the size of its /dev/shm follows.
    pub(super) memory_bytes: u64,
    /// See [`Living::over`].
    pub(super) over: OwnedFd,
}

impl Ready {
    /// Whether it is made for this.
    pub(super) fn fits(&self, header: &Header) -> bool {
        header.extra_reads.is_empty() && self.memory_bytes == header.limits.memory_bytes
    }
}

/// A sandbox that lives.
pub(super) struct Living {
    /// The control group of its own, where it has one.
    pub(super) group: Option<Group>,
    /// Its init adds to this eventfd when nothing else of it is left.
    pub(super) over: OwnedFd,
}

impl SessionHolder {
    /// Whether the last of a sandbox is about to go, which takes nothing but the kernel's time.
    pub(super) fn is_settling(&self) -> bool {
        self.live.values().any(|living| watch::has_input(living.over.as_fd()))
    }

    /// Whether it shows what stands on the host by now; of the programs and tools there, what stood there a
    /// moment ago.
    pub(super) fn is_current(&mut self, plan: &Plan) -> bool {
        let is_sure = !self.claim.view.has_programs() || self.looked.elapsed() < MOMENT;
        if !is_sure {
            self.looked = Instant::now();
        }
        self.project == identity(&self.claim.yard.project) && (is_sure || self.programs == programs(plan))
    }
}
