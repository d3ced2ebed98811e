//! A holder: the process whose user and mount namespace all live sandboxes of one session share.

use super::{Ground, init, payload, probe, watch};
use crate::{
    cgroup,
    config::{Shape, Yard},
    ids,
    seccomp::Sockets,
    stage::{self, Base, OpenTools, Stage},
    sys::{self, Namespaces, SignalFd},
    tree,
    wire::{self, Forward, Header, Message, Streams, View},
};
use bailey_protocol::{Limits, SessionId, Wall};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, WaitOptions, kill_process, set_parent_process_death_signal, wait, waitpid},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{HashMap, VecDeque},
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
    time::{Duration, Instant},
};

/// The warden has written the maps (or needs not to).
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Go;

/// What a holder is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Word {
    /// An order that it sees to.
    Start(Box<Forward>),
    /// One that went to the sandbox that waits, which the warden knows by [`Notice::Ready`]. With it comes
    /// the control socket.
    Began {
        /// Which it is.
        number: u64,
        /// How much it may put on disk, and what the next is likely to be limited to.
        limits: Limits,
    },
}

/// What the warden hears. Sandboxes are counted from 0.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Notice {
    /// A sandbox waits for its order, which can be given to it directly: so an order waits for one process
    /// less. With this comes where it waits.
    Ready {
        /// Which order it waits for.
        number: u64,
        /// What the size of its /dev/shm follows.
        memory_bytes: u64,
    },
    /// This sandbox is gone.
    Ended(u64),
    /// This one was not made, and this holder will make none.
    Refused(u64),
}

/// What a holder is born for: any session of this shape, and views that have programs or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) shape: Shape,
    pub(super) has_programs: bool,
}

/// Makes a holder a session's. The trees that it cannot open come with it.
///
/// Of the order that it is made for it keeps nothing that was allowed for one effect alone: it makes
/// sandboxes ahead of others.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Claim {
    session: SessionId,
    pub(super) yard: Yard,
    pub(super) view: View,
    /// What the next sandbox is likely to be limited to.
    limits: Limits,
}

impl Claim {
    pub(super) fn of(header: &Header) -> Self {
        let Header { session, yard, view, limits, extra_reads: _ } = header.clone();
        Self { session, yard, view, limits }
    }

    /// What the next sandbox is likely to be for.
    fn next(&self) -> Header {
        let Self { session, yard, view, limits } = self.clone();
        Header { session, yard, view, extra_reads: Vec::new(), limits }
    }
}

/// What a holder is born with, besides what the warden knows.
pub(super) struct Birth {
    pub(super) kind: Kind,
    pub(super) is_root: bool,
    pub(super) tools: OpenTools,
    /// Of the control group that it sits in.
    pub(super) doors: Vec<OwnedFd>,
    pub(super) socket: OwnedFd,
}

/// Between two looks at the session's folder, at least and at most: a breach is over within two seconds, as
/// long as a look takes less than one.
const TICK: Duration = Duration::from_millis(250);
const TICK_MAX: Duration = Duration::from_secs(1);

/// A holder's life. It ends with the warden's socket.
///
/// What does not depend on the session it does first, for whoever's it will be.
pub(super) fn main(ground: &Ground, birth: Birth) -> ! {
    // The warden's other sockets must not live on here: their closing is what ends other holders.
    let trees = birth.tools.iter().map(|(_, tree)| tree.as_raw_fd());
    let own = [birth.socket.as_raw_fd(), 2].into_iter().chain(birth.doors.iter().map(AsRawFd::as_raw_fd));
    let keep: Vec<RawFd> = trees.chain(own).collect();
    if sys::close_all_but(&keep).is_err() {
        sys::exit(125);
    }
    // What it forks bears this until it has a name of its own.
    init::call(init::HOLDER);
    let Birth { kind, is_root, tools, doors, socket } = birth;
    let base = prepare(ground, kind, is_root, tools, doors, &socket);
    let Ok(Some((claim, opened))) = wire::receive::<Claim>(socket.as_fd()) else { sys::exit(0) };
    let build = |base: Base| base.build(&ground.plan, &claim.yard, claim.view, opened);
    let stage = base.and_then(|base| base.map(build).transpose().map_err(|error| error.to_string()));
    let code = match stage {
        Ok(stage) => Holder::new(ground, claim, stage, socket).serve(),
        Err(reason) => refuse(&ground.explained(reason), &socket),
    };
    sys::exit(i32::from(code.is_err()))
}

fn prepare(
    ground: &Ground,
    kind: Kind,
    is_root: bool,
    tools: OpenTools,
    doors: Vec<OwnedFd>,
    socket: &OwnedFd,
) -> Result<Option<Base>, String> {
    let text = |error: io::Error| error.to_string();
    let lacks = |wall| ground.lacks_in(kind.shape, wall);
    if wire::receive::<Go>(socket.as_fd()).map_err(text)?.is_none() {
        return Err("the warden is gone".into());
    }
    cgroup::join(&doors, &[]).map_err(|error| format!("the control group: {error}"))?;
    drop(doors);
    let map = |error: io::Error| format!("the user namespace cannot be set up: {error}");
    match (lacks(Wall::UserNamespace), is_root) {
        (true, _) => {}
        (false, true) => ids::become_user().map_err(map)?,
        (false, false) => ids::map_self(ground.user.0, ground.user.1).map_err(map)?,
    }
    // After the change of ids, which would undo it.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    if !lacks(Wall::NetNamespace) {
        sys::loopback_up().map_err(|error| format!("the loopback device: {error}"))?;
    }
    // Nothing that is started from here on needs any; what this process has itself, it keeps.
    if !lacks(Wall::NoCapabilities) && !ground.keeps_bounds(kind.shape) {
        payload::drop_bounds()?;
    }
    if lacks(Wall::MountNamespace) {
        return Ok(None);
    }
    stage::lay(&ground.plan, kind.has_programs, tools, ground.binds())
        .map(Some)
        .map_err(|error| error.to_string())
}

/// Answers every order with the reason why there can be no sandbox.
fn refuse(reason: &str, socket: &OwnedFd) -> io::Result<()> {
    while let Some((word, tail, mut fds)) = wire::receive_with::<Word>(socket.as_fd())? {
        // Nothing that could begin without this process was ever told of.
        let Word::Start(forward) = word else { continue };
        let streams = Streams::take(tail, &mut fds);
        if let Some(streams) = &streams {
            drop(wire::tell(streams.control.as_fd(), &Message::Refused(reason.to_owned())));
        }
        // The streams close afterwards: whoever sees that may count on the warden's knowing.
        wire::send(socket.as_fd(), &Notice::Refused(forward.number), &[])?;
    }
    Ok(())
}

/// One sandbox, as its holder knows it.
struct LiveSandbox {
    /// Which the warden counts it as.
    number: u64,
    /// Where its runtime listens.
    control: OwnedFd,
    disk_bytes: u64,
    /// How much has to stay free on the disk.
    floor: u64,
    /// Whether it was told that the disk limit is reached.
    is_told: bool,
}

/// A sandbox that waits for something to do. Nothing of the workspace was looked at in it.
struct Spare {
    init: Pid,
    socket: OwnedFd,
    /// What the size of its /dev/shm follows.
    memory_bytes: u64,
}

struct Holder<'a> {
    ground: &'a Ground,
    claim: Claim,
    /// None when the mount namespace was left away.
    stage: Option<Stage>,
    /// The session's folder, where commands work on a copy that lies in it.
    folder: Option<OwnedFd>,
    /// Bytes that lay in it before anything ran.
    before: u64,
    socket: OwnedFd,
    /// By the process id of its init.
    live: HashMap<Pid, LiveSandbox>,
    /// Made while nothing lives.
    spare: Option<Spare>,
    /// Whether one died by itself: then the next is made when it is needed.
    has_lost_spare: bool,
    /// By which signal it did.
    lost_by: Option<i32>,
    /// Which order comes next.
    next: u64,
    /// Whether a sandbox may have looked at the overlay, which then may hide what the host changed since.
    has_served: bool,
}

impl<'a> Holder<'a> {
    fn new(ground: &'a Ground, claim: Claim, stage: Option<Stage>, socket: OwnedFd) -> Self {
        let is_copied = ground.shape(claim.session) == Shape::Copied && claim.view == View::Workspace;
        let folder = is_copied.then(|| tree::directory(claim.yard.folder.to_str()?).ok()).flatten();
        Self {
            ground,
            claim,
            stage,
            folder,
            before: 0,
            socket,
            live: HashMap::new(),
            spare: None,
            has_lost_spare: false,
            lost_by: None,
            next: 0,
            has_served: false,
        }
    }

    fn serve(mut self) -> io::Result<()> {
        let served = self.listen();
        // Whoever waits for this process counts on the overlay's being unmounted.
        self.dismiss();
        served
    }

    fn listen(&mut self) -> io::Result<()> {
        let signals = SignalFd::block(&[Signal::CHILD])?;
        let mut look_at = Instant::now() + TICK;
        loop {
            // At once, and not with the next order, which need not wait for it then.
            if self.is_used()
                && let Err(reason) = self.renew()
            {
                return refuse(&self.ground.explained(reason), &self.socket);
            }
            self.keep_ready();
            let has_order = self.wait(&signals, look_at)?;
            while signals.next().is_some() {}
            self.reap()?;
            if self.is_used() {
                continue;
            }
            if Instant::now() >= look_at {
                let begin = Instant::now();
                self.look_at_disk();
                look_at = Instant::now() + (begin.elapsed() * 3).clamp(TICK, TICK_MAX);
            }
            if has_order {
                let Some((word, tail, mut fds)) = wire::receive_with::<Word>(self.socket.as_fd())? else {
                    return Ok(());
                };
                if self.live.is_empty() {
                    self.measure();
                    look_at = Instant::now() + TICK;
                }
                self.has_served = true;
                match word {
                    Word::Start(forward) => {
                        let streams = Streams::take(tail, &mut fds).ok_or_else(without_descriptors)?;
                        self.start(&forward, streams, fds)?;
                    }
                    Word::Began { number, limits } => {
                        self.began(number, limits, fds.pop_front().ok_or_else(without_descriptors)?)?;
                    }
                }
            }
        }
    }

    /// Whether the overlay may hide what the host changed since, and nothing lives any more that looks at it.
    fn is_used(&self) -> bool {
        self.has_served && self.live.is_empty()
    }

    /// Makes a sandbox for what comes next, while nothing else is to be done.
    fn keep_ready(&mut self) {
        // Beside one that lives it would be a process more in that one's limits, and be of no use after its
        // end.
        let is_idle =
            self.live.is_empty() && !self.has_served && self.spare.is_none() && !self.has_lost_spare;
        let is_for_many = matches!(self.claim.view, View::Workspace | View::Layers);
        if is_idle && is_for_many && !watch::has_input(self.socket.as_fd()) {
            // What fails here fails again, and is told, when it is needed.
            match self.make(&self.claim.next(), Vec::new(), true) {
                Ok(spare) => {
                    self.offer(&spare);
                    self.spare = Some(spare);
                }
                Err(_) => self.has_lost_spare = true,
            }
        }
    }

    /// Tells the warden of the sandbox that waits. Not of one whose folder is measured before anything runs
    /// in it.
    fn offer(&self, spare: &Spare) {
        if self.folder.is_none() {
            let ready = Notice::Ready { number: self.next, memory_bytes: spare.memory_bytes };
            // Where it does not get there, its orders come here.
            let _ = wire::send(self.socket.as_fd(), &ready, &[spare.socket.as_fd()]);
        }
    }

    /// Ends the sandbox that waits, and waits for that.
    fn dismiss(&mut self) {
        let Some(Spare { init, .. }) = self.spare.take() else { return };
        // It may have ended by itself.
        let _ = kill_process(init, Signal::KILL);
        let _ = waitpid(Some(init), WaitOptions::empty());
    }

    /// Unix sockets are there where no socket of the host can be reached: neither by a name nor, in a network
    /// of one's own, by an abstract one.
    fn sockets(&self, header: &Header) -> Sockets {
        let is_alone = !self.ground.lacks(header.session, Wall::NetNamespace);
        match &self.stage {
            Some(stage) if is_alone && header.view == View::Workspace && stage.bound().is_none() => {
                Sockets::Unix
            }
            _ => Sockets::Network,
        }
    }

    /// A sandbox that waits for its order, made ahead of it or not.
    fn make(&self, header: &Header, extra: Vec<OwnedFd>, is_ahead: bool) -> Result<Spare, String> {
        let (ours, theirs) = wire::pair().map_err(|error| error.to_string())?;
        let made = sys::fork(namespaces(self.ground, header));
        match made.map_err(|error| probe::why(&error, self.ground.disabled.clone()))? {
            None => init::main(init::Birth {
                ground: self.ground,
                header,
                has_root: self.stage.is_some(),
                sockets: self.sockets(header),
                is_ahead,
                extra,
                socket: theirs,
            }),
            Some(init) => Ok(Spare { init, socket: ours, memory_bytes: header.limits.memory_bytes }),
        }
    }

    /// Waits for an order, a child's end or, while a sandbox lives, the next look at its folder. Where none
    /// does, only for a while.
    fn wait(&self, signals: &SignalFd, look_at: Instant) -> io::Result<bool> {
        let wait = look_at.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(1),
            tv_nsec: wait.subsec_nanos().into(),
        };
        let mut polled = [
            PollFd::new(&self.socket, PollFlags::IN),
            PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN),
        ];
        rustix::io::retry_on_intr(|| poll(&mut polled, (!self.live.is_empty()).then_some(&timeout)))?;
        Ok(polled.first().is_some_and(|first| !first.revents().is_empty()))
    }

    /// Tells of every sandbox that is gone: first the warden, then, by closing the control socket, the
    /// runtime. So when the runtime asks for the next one, the warden already knows.
    fn reap(&mut self) -> io::Result<()> {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if self.spare.take_if(|spare| spare.init == pid).is_some() {
                self.has_lost_spare = true;
                self.lost_by = status.terminating_signal();
            }
            let Some(LiveSandbox { number, control, .. }) = self.live.remove(&pid) else { continue };
            self.tell_gone(number, &control, status.terminating_signal())?;
        }
        Ok(())
    }

    fn tell_gone(&self, number: u64, control: &OwnedFd, signal: Option<i32>) -> io::Result<()> {
        drop(wire::tell(control.as_fd(), &Message::Gone { signal }));
        wire::send(self.socket.as_fd(), &Notice::Ended(number), &[])
    }

    /// Lets go of what the last sandboxes looked at. All of them are waited for, so nothing keeps their mount
    /// alive.
    fn renew(&mut self) -> Result<(), String> {
        self.has_served = false;
        (self.has_lost_spare, self.lost_by) = (false, None);
        // Made beside the old mount, it was passed over: it would keep that alive.
        self.dismiss();
        let Some(stage) = &mut self.stage else { return Ok(()) };
        let Claim { yard, view, .. } = &self.claim;
        stage.renew(&self.ground.plan, yard, *view).map_err(|error| error.to_string())
    }

    /// The session's folder, with the parts of it that grow; none where nothing is watched.
    fn growing(&self) -> Option<(BorrowedFd<'_>, [&'static str; 3])> {
        match (&self.stage, &self.folder) {
            (Some(stage), _) => Some((stage.folder.as_fd(), ["upper", "home", "tmp"])),
            (None, Some(folder)) => Some((folder.as_fd(), ["copy", "home", "tmp"])),
            (None, None) => None,
        }
    }

    /// What the folder holds before anything runs: a copy of a project is no growth.
    fn measure(&mut self) {
        let used = || watch::disk_used(self.folder.as_ref()?.as_fd(), self.growing()?.1, u64::MAX).ok();
        self.before = used().or_else(used).unwrap_or(0);
    }

    /// Tells each sandbox whose folder has grown too big; one that does not go by the next look is killed.
    fn look_at_disk(&mut self) {
        let Some((folder, parts)) = self.growing() else { return };
        #[cfg(feature = "controls")]
        if bailey_protocol::broken::broken("disk") {
            return;
        }
        // Files without a name that no look can find count here as well.
        let free = watch::free(folder).map_or(u64::MAX, |(free, _)| free);
        let most = self.live.values().map(|live| live.disk_bytes).max().unwrap_or(0);
        let most = self.before.saturating_add(most);
        // A folder that cannot be measured cannot be bounded; that is no limit reached, and is told as what
        // it is.
        let look = || watch::disk_used(folder, parts, most);
        // A command may take a right away just when it was given back.
        let (used, says) = match look().or_else(|_| look()) {
            Ok(used) => (used.saturating_sub(self.before), init::ABOVE_DISK),
            Err(_) => (u64::MAX, init::UNMEASURED),
        };
        for (pid, live) in &mut self.live {
            let says = match (used > live.disk_bytes, free < live.floor) {
                (true, _) => says,
                (false, true) => init::BELOW_RESERVE,
                (false, false) => continue,
            };
            let signal = if live.is_told { Signal::KILL } else { says };
            live.is_told = true;
            // It may have ended by itself.
            let _ = kill_process(*pid, signal);
        }
    }

    fn start(&mut self, forward: &Forward, streams: Streams, mut fds: VecDeque<OwnedFd>) -> io::Result<()> {
        let extra = fds.drain(..forward.extra.min(fds.len())).collect();
        let number = forward.number;
        self.next = number + 1;
        match self.hand_over(forward, &streams, extra, &fds) {
            Ok(init) => {
                self.enter(init, number, streams.control, forward.header.limits.clone());
                Ok(())
            }
            Err(reason) => {
                let refused = Message::Refused(self.ground.explained(reason));
                drop(wire::tell(streams.control.as_fd(), &refused));
                wire::send(self.socket.as_fd(), &Notice::Ended(number), &[])
            }
        }
    }

    /// Learns of an order that went to the sandbox that waits.
    fn began(&mut self, number: u64, limits: Limits, control: OwnedFd) -> io::Result<()> {
        self.next = number + 1;
        match self.spare.take() {
            Some(spare) => {
                self.enter(spare.init, number, control, limits);
                Ok(())
            }
            // It is gone already, with or without having done it.
            None => self.tell_gone(number, &control, self.lost_by),
        }
    }

    fn enter(&mut self, init: Pid, number: u64, control: OwnedFd, limits: Limits) {
        let disk_bytes = limits.disk_bytes;
        let free = self.growing().and_then(|(folder, _)| watch::free(folder));
        let floor = free.map_or(0, |free| watch::floor(self.ground.config.reserve_bytes, free));
        self.live.insert(init, LiveSandbox { number, control, disk_bytes, floor, is_told: false });
        self.claim.limits = limits;
    }

    /// Gives an order to the sandbox that waits, where that fits, or to one that is made for it. Returns its
    /// init.
    fn hand_over(
        &mut self,
        forward: &Forward,
        streams: &Streams,
        extra: Vec<OwnedFd>,
        rest: &VecDeque<OwnedFd>,
    ) -> Result<Pid, String> {
        let (tail, mut fds) = streams.borrow();
        fds.extend(rest.iter().map(AsFd::as_fd));
        let Header { extra_reads, limits, .. } = &forward.header;
        let fits = |spare: &mut Spare| extra_reads.is_empty() && spare.memory_bytes == limits.memory_bytes;
        if let Some(spare) = self.spare.take_if(fits) {
            // It may have died, and is reaped with the others.
            if wire::send_with(spare.socket.as_fd(), &forward.grant, tail, &fds).is_ok() {
                return Ok(spare.init);
            }
        }
        // It would be two processes more in this one's limits.
        self.dismiss();
        let made = self.make(&forward.header, extra, false)?;
        wire::send_with(made.socket.as_fd(), &forward.grant, tail, &fds)
            .map_err(|error| format!("the sandbox does not answer: {error}"))?;
        Ok(made.init)
    }
}

fn without_descriptors() -> io::Error {
    io::Error::other("an order without descriptors")
}

fn namespaces(ground: &Ground, header: &Header) -> Namespaces {
    const EACH: [(Wall, Namespaces); 5] = [
        (Wall::PidNamespace, Namespaces::PID),
        (Wall::MountNamespace, Namespaces::MOUNT),
        (Wall::IpcNamespace, Namespaces::IPC),
        (Wall::UtsNamespace, Namespaces::UTS),
        (Wall::CgroupNamespace, Namespaces::CGROUP),
    ];
    EACH.iter()
        .filter(|(wall, _)| !ground.lacks(header.session, *wall))
        .fold(Namespaces::default(), |all, (_, namespace)| all.with(*namespace))
}
