//! The first process of a sandbox: finishes the root, starts the payload, waits, and ends everything.

use super::{
    Ground, payload, root,
    watch::{self, NoRoutes},
};
use crate::{
    cgroup, charter,
    config::Shape,
    mask::{self, ENTRIES_MAX},
    seccomp::Sockets,
    stage,
    sys::{self, SignalFd},
    tree,
    wire::{self, Grant, Handover, Header, Job, Message, PayloadEnd, Streams, View},
};
use bailey_protocol::{SessionId, Wall, WsPath};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{AddressFamily, RecvFlags, SocketFlags, SocketType},
    process::{
        Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process,
        kill_process_group, prlimit, set_child_subreaper, set_parent_process_death_signal, wait,
    },
    thread::CapabilitySet,
};
use std::{
    collections::{BTreeSet, VecDeque},
    ffi::{CStr, OsStr},
    io,
    net::{Ipv4Addr, SocketAddrV4},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// The signals by which a holder says that a session's folder has grown too big, that it cannot be measured,
/// or that its disk is nearly full.
pub(super) const ABOVE_DISK: Signal = Signal::USR1;
pub(super) const UNMEASURED: Signal = Signal::USR2;
pub(super) const BELOW_RESERVE: Signal = Signal::POWER;
/// What ended a command then.
const SAID: [(Signal, &str); 3] = [
    (ABOVE_DISK, "disk limit"),
    (UNMEASURED, "fact that what it put on disk could not be measured"),
    (BELOW_RESERVE, "disk reserve"),
];

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// Connections that may wait for the network door.
const BACKLOG: i32 = 1024;
/// Between two looks at what can only be watched, at least and at most.
const TICK: Duration = Duration::from_millis(250);
const TICK_MAX: Duration = Duration::from_secs(1);

/// What an init is born with.
pub(super) struct Birth<'a> {
    pub(super) ground: &'a Ground,
    /// What it is for; of its limits the size of /dev/shm alone.
    pub(super) header: &'a Header,
    /// Whether the working directory is a staging root; not so where the mount namespace was left away.
    pub(super) has_root: bool,
    /// Which sockets a command has.
    pub(super) sockets: Sockets,
    /// Whether there is time until the order comes.
    pub(super) is_ahead: bool,
    /// The header's extra reads, where the holder did not leave them to be opened here.
    pub(super) extra: Vec<OwnedFd>,
    /// Where the one order comes from.
    pub(super) socket: OwnedFd,
}

/// An init that can be given something to do.
struct Ready {
    signals: SignalFd,
    no_routes: NoRoutes,
    /// The process that was made for the payload, or lends it its memory.
    first: Pid,
    payload: Pid,
    /// Where the payload's process waits.
    socket: OwnedFd,
}

/// Such as where memory ran out.
const GONE: &str = "the payload's process has ended";

/// How a holder is called, the processes of a sandbox that waits, and what these are called afterwards.
pub(super) const HOLDER: &CStr = c"bailey-holder";
const SPARE: &CStr = c"bailey-spare";
const INIT: &CStr = c"bailey-init";
pub(super) const PAYLOAD: &CStr = c"bailey-payload";
/// What a sandbox's processes are called once they have something to do.
pub(super) const BUSY: [&CStr; 2] = [INIT, PAYLOAD];

/// An init's life: it makes all of the sandbox that does not depend on what is to be done, waits for that,
/// and sees to it.
///
/// Whatever lies in the workspace it looks at afterwards only: what was looked at before may hide what the
/// host changed.
pub(super) fn main(birth: Birth<'_>) -> ! {
    let Birth { ground, header, has_root, sockets, is_ahead, extra, socket } = birth;
    // Of the holder's own descriptors none may live on here: the end of a socket tells that its last owner is
    // gone.
    let keep: Vec<RawFd> = extra.iter().chain([&socket]).map(AsRawFd::as_raw_fd).chain([2]).collect();
    if sys::close_all_but(&keep).is_err() {
        sys::exit(125);
    }
    call(SPARE);
    let mut ready = ready(ground, header, has_root.then_some(sockets), &extra, is_ahead);
    drop(extra);
    if ready.as_ref().is_ok_and(|ready| !is_ordered(&ready.signals, &socket)) {
        ready = Err(GONE.into());
    }
    if ready.as_ref().is_err_and(|reason| reason == GONE) && !watch::has_input(socket.as_fd()) {
        // Without this one, whoever orders next hears so, and has another made.
        sys::exit(0)
    }
    let order = wire::receive_with::<Grant>(socket.as_fd());
    let Ok(Some((grant, tail, mut rest))) = order else { sys::exit(0) };
    // The socket stays open until this process ends: where one closes while others are on their way, the
    // kernel looks for circles of them, where the payload is about to run.
    let Some(streams) = Streams::take(tail, &mut rest) else { sys::exit(125) };
    let ran = ready.and_then(|ready| run(ground, header, has_root, ready, &grant, &streams, rest));
    call(INIT);
    let reason = match ran {
        Ok((mut watch, over)) => {
            let Streams { paper, stdin, stdout, stderr, control } = streams;
            // Whoever reads of these reads to the payload's end, which is before this process's.
            drop((paper, stdin, stdout, stderr));
            let ended = watch.wait(&control);
            // Before the runtime, which may ask for the next at once.
            let _ = rustix::io::write(&over, &1u64.to_ne_bytes());
            drop(wire::tell(control.as_fd(), &Message::Ended(ended)));
            let_read(&control);
            sys::exit(0)
        }
        Err(reason) => reason,
    };
    // When nobody listens any more there is nobody to tell.
    drop(wire::tell(streams.control.as_fd(), &Message::Refused(ground.explained(reason))));
    sys::exit(125)
}

/// Waits for an order, or for nothing more where a child has ended before there was one.
fn is_ordered(signals: &SignalFd, socket: &OwnedFd) -> bool {
    let mut polled =
        [PollFd::new(socket, PollFlags::IN), PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
    // What goes wrong here goes wrong again where the order is received.
    let _ = rustix::io::retry_on_intr(|| poll(&mut polled, None));
    let [ordered, ended] = &polled;
    !ordered.revents().is_empty() || ended.revents().is_empty()
}

/// Waits a moment for whoever was told of the end to hear it: with this process the kernel takes down a whole
/// sandbox, perhaps where that one is to run.
///
/// Whoever was told lets go of its end last, which wakes this process: it would run in the place of the one
/// that wakes it, and take all of its processor's time for longer than most commands do.
fn let_read(control: &OwnedFd) {
    sys::give_way();
    let mut polled = [PollFd::new(control, PollFlags::IN)];
    let _ = poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 }));
}

/// Names this process; for people alone.
pub(super) fn call(name: &CStr) {
    let _ = rustix::thread::set_name(name);
}

/// All of the sandbox but what an order brings, with a process for the payload that waits for it, too.
fn ready(
    ground: &Ground,
    header: &Header,
    rooted: Option<Sockets>,
    extra: &[OwnedFd],
    is_ahead: bool,
) -> Result<Ready, String> {
    let text = |error: io::Error| error.to_string();
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    let mut sockets = Sockets::Network;
    if let Some(rooted) = rooted {
        let has_bound = root::finish(ground, header, extra)
            .map_err(|(what, error)| format!("{what}: {}", stage::explained(error)))?;
        sockets = if has_bound { Sockets::Network } else { rooted };
    }
    if ground.shape(header.session) != Shape::Walled {
        // What a command leaves behind comes to this process, where no namespace of its own holds it.
        set_child_subreaper(Some(getpid())).map_err(|error| error.to_string())?;
    }
    if !ground.lacks(header.session, Wall::UtsNamespace) {
        sys::set_host_name(crate::plan::USER).map_err(|error| format!("the host name: {error}"))?;
    }
    let signals = SignalFd::block(&[Signal::CHILD, ABOVE_DISK, UNMEASURED, BELOW_RESERVE]).map_err(text)?;
    let (ours, theirs) = wire::pair().map_err(text)?;
    let first = sys::fork(sys::Namespaces::default())
        .map_err(|error| format!("a process for the payload: {error}"))?;
    let Some(first) = first else { payload::main(ground, header, theirs, (is_ahead, sockets)) };
    if is_ahead {
        payload::rehearse(ground, header);
    }
    let no_routes = NoRoutes::open();
    drop(theirs);
    let payload = who(&ours).ok_or(GONE)?;
    Ok(Ready { signals, no_routes, first, payload, socket: ours })
}

/// Finishes the sandbox for what is to be done, gives up what init may and hands that over to the payload's
/// process.
fn run(
    ground: &Ground,
    header: &Header,
    has_root: bool,
    ready: Ready,
    grant: &Grant,
    streams: &Streams,
    mut rest: VecDeque<OwnedFd>,
) -> Result<(Watch, OwnedFd), String> {
    let Ready { signals, no_routes, first, payload, socket } = ready;
    let silent = |error| format!("the payload's process does not answer: {error}");
    let unread = |error: io::Error| format!("the job cannot be read: {error}");
    if !ground.is_trusting() {
        // The payload's process reads it, too, and must find what is looked at here: so nobody may be able to
        // change it by then.
        streams.paper.check().map_err(unread)?;
    }
    // It gets ready what is looked at here, and does none of it before it hears the rest.
    let (tail, fds) = streams.borrow();
    wire::send_with(socket.as_fd(), &(), tail, &fds).map_err(silent)?;
    let job = streams.paper.read().map_err(unread)?;
    if !ground.is_trusting() {
        let lease = charter::lease(&ground.config, header.session)?;
        charter::check(&ground.config.calls, lease, header.view, &job)?;
    }
    let doors: Vec<OwnedFd> = rest.drain(..grant.doors.min(rest.len())).collect();
    let over = rest.pop_front().ok_or("an order without descriptors")?;
    let events = rest.pop_front().filter(|_| grant.has_events);
    cgroup::join(&doors, &[first, payload]).map_err(|error| format!("the control group: {error}"))?;
    let covered = if has_root { cover(ground, header, &job)? } else { Vec::new() };
    if !job.isolation.unchanged.is_empty() {
        keep_unchanged(&job.isolation.unchanged, has_root)?;
    }
    // The payload's process gave up its own long ago, and has done nothing but wait since.
    if !ground.lacks(header.session, Wall::NoCapabilities) {
        // Over its own namespace's processes, to count the files of one that hides its descriptors.
        let kept = match ground.shape(header.session) {
            Shape::Walled => CapabilitySet::SYS_PTRACE,
            _ => CapabilitySet::empty(),
        };
        payload::keep_capabilities(kept)?;
    }
    let events = events.map(|events| {
        let before = cgroup::kills(&events);
        (events, before)
    });
    // Where there is no wall before the network, there is no door in it.
    let is_bare = ground.shape(header.session) != Shape::Walled;
    let door = (job.way.is_some() && !is_bare).then(|| listen(&streams.control)).transpose();
    let door = door.map_err(|error| format!("a listener for the network door: {error}"))?;
    let handover = handover(ground, header, grant, door);
    if handover.watched.contains(&Wall::PidsLimit) {
        bound(payload, job.limits.pids)?;
    }
    let memory_bytes = handover.watched.contains(&Wall::MemoryLimit).then_some(job.limits.memory_bytes);
    let masked = if covered.is_empty() { None } else { Some(sealed(&covered)?) };
    let masked: Vec<BorrowedFd<'_>> = masked.iter().map(AsFd::as_fd).collect();
    wire::send(socket.as_fd(), &handover, &masked).map_err(silent)?;
    let wall = Duration::from_millis(job.limits.wall_ms);
    let is_alone = !ground.lacks(header.session, Wall::NetNamespace);
    let no_routes = is_alone.then_some(no_routes);
    let disk_bytes = job.limits.disk_bytes;
    let watch = Watch {
        signals,
        payload,
        _socket: socket,
        memory_bytes,
        disk_bytes,
        events,
        wall,
        is_bare,
        no_routes,
    };
    Ok((watch, over))
}

fn sealed(covered: &[PathBuf]) -> Result<OwnedFd, String> {
    let paths: Vec<&OsStr> = covered.iter().map(|path| path.as_os_str()).collect();
    let bytes = serde_json::to_vec(&paths).map_err(|error| error.to_string())?;
    wire::sealed(&bytes).map_err(|error| error.to_string())
}

/// Whether neither a namespace nor a control group counts a sandbox's processes.
fn is_uncounted(ground: &Ground, session: SessionId, limits: &BTreeSet<Wall>) -> bool {
    ground.shape(session) == Shape::Copied && !limits.contains(&Wall::PidsLimit)
}

/// Lets a payload's user have so many tasks more than there are, whoever else starts some: a bomb ends at
/// that.
fn bound(payload: Pid, pids: u32) -> Result<(), String> {
    let most = watch::tasks_of_user().saturating_add(u64::from(pids));
    let limit = Rlimit { current: Some(most), maximum: Some(most) };
    match prlimit(Some(payload), Resource::Nproc, limit) {
        // It was lower already.
        Ok(_) | Err(Errno::PERM) => Ok(()),
        Err(errno) => Err(format!("a limit of its processes: {errno}")),
    }
}

/// What holds and what is watched; a limit is one or the other.
fn handover(ground: &Ground, header: &Header, grant: &Grant, door: Option<u16>) -> Handover {
    let (without, session) = (&ground.config.without, header.session);
    let limits: BTreeSet<Wall> = grant.limits.difference(without).copied().collect();
    let watched = [Wall::MemoryLimit, Wall::DiskLimit].into_iter();
    let mut watched: BTreeSet<Wall> =
        watched.filter(|wall| !limits.contains(wall) && !ground.lacks(session, *wall)).collect();
    if is_uncounted(ground, session, &limits) {
        watched.insert(Wall::PidsLimit);
    }
    let absent = grant.absent.iter().cloned();
    let absent = absent.chain(without.iter().map(|wall| format!("{wall}: left away by a test")));
    let shape = match ground.shape(session) {
        Shape::Walled => None,
        Shape::Copied => Some("namespaces: none can be made here, and your config.toml takes `landlock`"),
        Shape::Direct => Some("walls: there are none, by the owner's own word"),
    };
    let absent = absent.chain(shape.map(str::to_owned)).collect();
    Handover { limits, watched, absent, door }
}

/// Listens on the sandbox's own loopback, and gives the listener to the runtime: a socket stays in the
/// network that it was made in. Returns the port.
fn listen(control: &OwnedFd) -> io::Result<u16> {
    let kind = (AddressFamily::INET, SocketType::STREAM);
    let listener = rustix::net::socket_with(kind.0, kind.1, SocketFlags::CLOEXEC, None)?;
    rustix::net::bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    rustix::net::listen(&listener, BACKLOG)?;
    let address = SocketAddrV4::try_from(rustix::net::getsockname(&listener)?)?;
    wire::send(control.as_fd(), &Message::Listening, &[listener.as_fd()])?;
    Ok(address.port())
}

/// A directory of the person's own programs with more entries than this is not shown: to look through it
/// takes longer than most commands.
const OWN_MAX: usize = 20_000;

/// Masks what lies by now in the directories that the owner named, in those of the person's own programs, and
/// in the workspace. Returns what is masked there.
fn cover(ground: &Ground, header: &Header, job: &Job) -> Result<Vec<PathBuf>, String> {
    if header.view != View::Workspace {
        return Ok(Vec::new());
    }
    let failed = |error: io::Error| format!("masking secrets: {}", stage::explained(error));
    let revealed = job.isolation.revealed.iter().map(|path| PathBuf::from(&path.0)).collect();
    let root = tree::directory(".").map_err(failed)?;
    let project = &header.yard.project;
    let none = BTreeSet::new();
    for read in &ground.plan.reads {
        let masks = ground.masks.beneath(read);
        match mask::cover(root.as_fd(), read, project, &masks, &none, ENTRIES_MAX) {
            // Without knowing its names, nobody can tell which of them are secrets.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                mask::shut(root.as_fd(), read).map_err(failed)?;
            }
            done => done.map(drop).map_err(failed)?,
        }
    }
    for own in &ground.plan.own {
        let masks = ground.settings.beneath(own);
        if mask::cover(root.as_fd(), own, project, &masks, &none, OWN_MAX).is_err() {
            mask::shut(root.as_fd(), own).map_err(failed)?;
        }
    }
    mask::cover(root.as_fd(), project, Path::new("/"), &ground.masks, &revealed, ENTRIES_MAX).map_err(failed)
}

/// Makes places read-only, for this sandbox alone: other sandboxes of the session have mounts of their own.
fn keep_unchanged(places: &[WsPath], has_root: bool) -> Result<(), String> {
    if !has_root {
        return Err("a place that cannot be changed takes a mount namespace".into());
    }
    let failed = |error: io::Error| format!("a read-only place: {}", stage::explained(error));
    let root = tree::directory(".").map_err(failed)?;
    for place in places {
        let below = Path::new(place.0.trim_start_matches('/'));
        let mount = tree::beneath(root.as_fd(), below).map_err(failed)?;
        sys::mount_setattr(mount.as_fd(), false, sys::attr::READ_ONLY, None).map_err(failed)?;
    }
    Ok(())
}

/// What init waits for.
struct Watch {
    signals: SignalFd,
    payload: Pid,
    /// To its process, which may not have heard of its order yet; see where the other one closes.
    _socket: OwnedFd,
    /// Where memory is watched: how much there may be.
    memory_bytes: Option<u64>,
    /// How much there may be in files that have lost their names: the others the holder looks at.
    disk_bytes: u64,
    /// Where it is held: the group's count of killed processes, and how many were before this sandbox.
    events: Option<(OwnedFd, u64)>,
    /// How long it may take.
    wall: Duration,
    /// Whether no namespace holds together what is to be ended.
    is_bare: bool,
    /// Packets that found no way out, where the network is the session's.
    no_routes: Option<NoRoutes>,
}

impl Watch {
    /// Waits for the payload's end and ends all it left behind.
    fn wait(&mut self, control: &OwnedFd) -> PayloadEnd {
        let deadline = Instant::now().checked_add(self.wall);
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
            match self.next_event(control, deadline, kill_at) {
                Event::Cancel => {
                    kill_at.get_or_insert(now + GRACE);
                    self.signal_all(Signal::TERM);
                }
                Event::Gone => break None,
                Event::Disk(said) => {
                    limit = Some(said);
                    break None;
                }
                Event::Nothing => {}
            }
            if now >= look_at {
                let breach = self.breach();
                // What ends it was said first where something ends it already.
                limit = limit.or(breach);
                // A large tree takes long to look at, and is not looked at all the time.
                look_at = Instant::now() + (now.elapsed() * 3).clamp(TICK, TICK_MAX);
                if breach.is_some() {
                    break None;
                }
            }
        };
        let status = self.end(status);
        // The last breach may have come after the last look.
        if limit.is_none() && self.has_killed() {
            limit = Some("memory limit");
        }
        PayloadEnd {
            exit: status.and_then(|status| status.exit_status()),
            signal: status.and_then(|status| status.terminating_signal()),
            limit: limit.map(str::to_owned),
            // The network is the session's, and counts for all that lives in it.
            out_no_routes: self.no_routes.as_ref().map_or(0, NoRoutes::count),
        }
    }

    /// The limit that the tree is above. Where memory is held: whether the kernel had to kill one process of
    /// the tree, which ends the others too, as they counted on it.
    fn breach(&self) -> Option<&'static str> {
        let tree = if self.is_bare { watch::Tree::Below } else { watch::Tree::Namespace };
        let nameless = watch::Nameless::of(tree);
        let is_above = |limit| watch::is_memory_above(limit, tree, nameless.in_memory);
        if self.memory_bytes.is_some_and(is_above) || self.has_killed() {
            return Some("memory limit");
        }
        #[cfg(feature = "controls")]
        if bailey_protocol::broken::broken("disk") {
            return None;
        }
        (nameless.on_disk > self.disk_bytes).then_some("disk limit")
    }

    fn has_killed(&self) -> bool {
        self.events.as_ref().is_some_and(|(events, before)| cgroup::kills(events) > *before)
    }

    /// Takes every zombie; the payload's status when it is among them.
    fn reap(&mut self) -> Option<WaitStatus> {
        let mut found = None;
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            found = (pid == self.payload).then_some(status).or(found);
        }
        found
    }

    fn next_event(&self, control: &OwnedFd, deadline: Option<Instant>, kill_at: Option<Instant>) -> Event {
        let until = |at: Option<Instant>| at.map_or(TICK, |at| at.saturating_duration_since(Instant::now()));
        let wait = TICK.min(until(deadline.filter(|_| kill_at.is_none()))).min(until(kill_at));
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        let mut polled = [
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
            PollFd::new(control, PollFlags::IN),
        ];
        if poll(&mut polled, Some(&timeout)).is_err() {
            return Event::Nothing;
        }
        let asked = polled.last().is_some_and(|control| !control.revents().is_empty());
        while let Some(caught) = self.signals.next() {
            // Outside of this pid namespace the holder has no number here; without one, it is the parent.
            let holder = if self.is_bare { getppid().map_or(0, Pid::as_raw_pid) } else { 0 };
            let said = |said: &&(Signal, &str)| said.0.as_raw() == caught.signal;
            if let Some((_, said)) = SAID.iter().find(said)
                && i64::from(caught.sender) == i64::from(holder)
            {
                return Event::Disk(said);
            }
        }
        if !asked {
            return Event::Nothing;
        }
        match rustix::io::read(control, &mut [0u8; 16]) {
            Ok(0) | Err(_) => Event::Gone,
            Ok(_) => Event::Cancel,
        }
    }

    /// Signals everything in the sandbox; without a pid namespace, the payload's process group, and of what
    /// left that whoever is a child of this process by now.
    fn signal_all(&self, signal: Signal) {
        // Nobody left to signal is what we want.
        if sys::process_signals(signal).is_err() {
            let _ = kill_process_group(self.payload, signal);
            self.signal_children(signal);
        }
    }

    /// Where no namespace holds them together. A child's number is nobody else's until it was waited for.
    fn signal_children(&self, signal: Signal) {
        if self.is_bare {
            watch::children().for_each(|child| {
                let _ = kill_process(child, signal);
            });
        }
    }

    /// Kills what is left and waits until nothing is.
    fn end(&mut self, mut status: Option<WaitStatus>) -> Option<WaitStatus> {
        // In a pid namespace whatever lost its parent is the first process's child, so where that has none
        // there is nothing.
        let is_first = getpid().as_raw_pid() == 1;
        if status.is_some() && is_first && matches!(wait(WaitOptions::NOHANG), Err(Errno::CHILD)) {
            return status;
        }
        self.signal_all(Signal::KILL);
        loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, ended))) => status = (pid == self.payload).then_some(ended).or(status),
                Ok(None) | Err(Errno::INTR) => {}
                Err(_) => return status,
            }
            // With each that ended, its own children became this process's.
            self.signal_children(Signal::KILL);
        }
    }
}

/// Who waits for what is to be done, which it says first.
fn who(socket: &OwnedFd) -> Option<Pid> {
    let mut number = [0; size_of::<i32>()];
    let (read, _) =
        rustix::io::retry_on_intr(|| rustix::net::recv(socket, &mut number, RecvFlags::empty())).ok()?;
    (read == number.len()).then(|| Pid::from_raw(i32::from_ne_bytes(number)))?
}

enum Event {
    Nothing,
    Cancel,
    Gone,
    /// What the holder said of the folder.
    Disk(&'static str),
}
