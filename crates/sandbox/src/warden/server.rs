//! The warden's loop: orders from the runtime, notices from its holders.

use super::{
    Ground, Order,
    held::{Before, Living, Ready, SessionHolder, Unclaimed},
    holder::{self, Birth, Claim, Kind, Notice, Word},
    own, probe, remove,
    shown::identity,
    watch,
};
use crate::{
    cgroup::{Cgroups, Group},
    charter,
    config::{Lease, NOT_FOR_ROOT, Shape, Yard},
    ids::{Ids, map_child},
    stage::{self, OpenFolders, OpenTools, StageError},
    sys::{self, Namespaces},
    tree,
    wire::{self, Forward, Grant, Header, Layer, Message, Streams, Swap, Swapped, View, Wish},
};
use bailey_protocol::{Blob, Level, Limits, SessionId, Wall};
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    io::Errno,
    process::{Pid, Signal, WaitOptions, kill_process, waitpid},
};
use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    io::{self, Write as _},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
    time::{Duration, Instant},
};

/// A session and what its sandboxes see.
type HolderKey = (SessionId, View);

pub(super) struct Server {
    socket: OwnedFd,
    ground: Ground,
    ids: Ids,
    holders: BTreeMap<HolderKey, SessionHolder>,
    /// Made while nothing else was to be done.
    unclaimed: Option<Unclaimed>,
    /// Whether that could not be done: then the next is made when it is needed.
    has_failed: bool,
    cgroups: Cgroups,
}

/// How long nothing is asked for before a holder is made ahead: whoever asked has the processors until then,
/// and while a sandbox lives somebody waits for its end.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
const PAUSE_BESIDE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How long a merge waits for sandboxes that are about to end.
const LAST: Duration = Duration::from_millis(250);
/// What most sessions begin with.
const USUAL: Kind = Kind { shape: Shape::Walled, has_programs: true };

impl Server {
    pub(super) fn new(socket: OwnedFd, ground: Ground) -> io::Result<Self> {
        let ids = Ids::new(!ground.config.without.contains(&Wall::UserNamespace));
        let cgroups = Cgroups::find(ground.config.cpu_percent.is_some());
        Ok(Self {
            socket,
            ground,
            ids,
            holders: BTreeMap::new(),
            unclaimed: None,
            has_failed: false,
            cgroups,
        })
    }

    /// Serves until the runtime is gone, then ends every holder and waits for it.
    pub(super) fn serve(mut self) -> io::Result<()> {
        let served = self.listen();
        let holders = std::mem::take(&mut self.holders).into_values();
        // All end at once, then each is waited for. One in which something lives ends that first; another may
        // still be busy with its mounts.
        if let Some(unclaimed) = self.unclaimed.take() {
            self.dismiss(unclaimed);
        }
        let ending = holders.map(|holder| (holder.process, holder.live, holder.group)).collect::<Vec<_>>();
        for (process, ..) in ending.iter().filter(|(_, live, _)| live.is_empty()) {
            let _ = kill_process(*process, Signal::KILL);
        }
        for (process, ..) in &ending {
            let _ = waitpid(Some(*process), WaitOptions::empty());
        }
        self.wait_for_orphans();
        for lease in self.ground.config.sessions.values().filter(|lease| lease.is_scratch) {
            let folder = &lease.yard.folder;
            if let Err(error) = remove(folder) {
                super::tell(&format!("bailey: `{}` could not be removed: {error}\n", folder.display()));
            }
        }
        served
    }

    fn listen(&mut self) -> io::Result<()> {
        loop {
            let is_beside = self.holders.values().any(|holder| !holder.live.is_empty());
            let pause = self.wants_spare().then_some(if is_beside { PAUSE_BESIDE } else { PAUSE });
            let is_ordered = {
                let sockets = [self.socket.as_fd()]
                    .into_iter()
                    .chain(self.holders.values().map(|holder| holder.socket.as_fd()));
                let mut polled: Vec<PollFd<'_>> =
                    sockets.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
                let told = rustix::io::retry_on_intr(|| poll(&mut polled, pause.as_ref()))?;
                if told == 0 {
                    // What fails here fails again, and is told, when it is needed.
                    self.unclaimed = self.bear(USUAL).ok();
                    self.has_failed = self.unclaimed.is_none();
                    continue;
                }
                polled.first().is_some_and(|first| !first.revents().is_empty())
            };
            // Notices first: an order must not meet a holder whose last sandbox has just gone.
            self.hear_holders();
            if is_ordered {
                let Some((order, tail, fds)) = wire::receive_with::<Order>(self.socket.as_fd())? else {
                    return Ok(());
                };
                match order {
                    Order::Start(wish) => self.start(wish, tail, fds),
                    Order::Prepare { session } => self.prepare(session),
                    Order::Forget { session } => self.forget(session),
                    Order::Look { session } => self.look(session, &fds),
                    Order::Lacks { session, below } => self.lacks(session, &below, &fds),
                    Order::Swap => self.swap(fds),
                }
            }
        }
    }

    fn hear_holders(&mut self) {
        let keys: Vec<HolderKey> = self.holders.keys().copied().collect();
        for key in keys {
            let Some(holder) = self.holders.get_mut(&key) else { continue };
            let mut is_gone = false;
            while !is_gone && watch::has_input(holder.socket.as_fd()) {
                let ended = match wire::receive::<Notice>(holder.socket.as_fd()) {
                    Ok(Some((Notice::Ready { number, memory_bytes }, mut fds))) => {
                        // One for an order that has come meanwhile has that, or will be gone with what that
                        // does.
                        let socket = fds.pop_front().filter(|_| number == holder.asked);
                        holder.ready = socket.zip(counter().ok()).map(|(socket, over)| Ready {
                            socket,
                            memory_bytes,
                            over,
                        });
                        continue;
                    }
                    Ok(Some((Notice::Ended(number), _))) => number,
                    Ok(Some((Notice::Refused(number), _))) => {
                        holder.is_broken = true;
                        number
                    }
                    // And with it, by their parent's death, all its sandboxes.
                    Ok(None) | Err(_) => {
                        is_gone = true;
                        continue;
                    }
                };
                let group = holder.live.remove(&ended).and_then(|living| living.group);
                group.into_iter().for_each(|group| self.cgroups.take_back(group));
            }
            let is_over = holder.live.is_empty() && key.1.is_for_once() && holder.asked > 0;
            if is_gone || is_over {
                self.retire(&key);
            }
        }
    }

    /// Waits for what has ended in a session but for the last of it: whoever asks for the next was told
    /// before that was gone.
    fn settle(&mut self, session: SessionId) {
        while let Some(holder) =
            self.holders.iter().find(|(key, held)| key.0 == session && held.is_settling())
        {
            // An interruption is no answer; then it is asked again.
            let _ = poll(&mut [PollFd::new(&holder.1.socket, PollFlags::IN)], None);
            self.hear_holders();
        }
    }

    /// Ends a holder and waits for it: when this returns, its overlay is unmounted.
    fn retire(&mut self, key: &HolderKey) {
        let Some(SessionHolder { process, socket, live, group, .. }) = self.holders.remove(key) else {
            return;
        };
        drop(socket);
        let _ = waitpid(Some(process), WaitOptions::empty());
        self.wait_for_orphans();
        live.into_values()
            .map(|living| living.group)
            .chain([group])
            .flatten()
            .for_each(|group| self.cgroups.take_back(group));
    }

    /// What a killed holder leaves is this process's to end and to wait for: it keeps its mounts until it is
    /// gone. With each that ends, its own children become this process's, where no namespace holds them.
    fn wait_for_orphans(&self) {
        let is_orphan = |pid: &Pid| {
            let held = self.holders.values().map(|held| held.process);
            let unclaimed = self.unclaimed.iter().map(|unclaimed| unclaimed.process);
            !held.chain(unclaimed).any(|known| known == *pid)
        };
        while let Some(orphan) = watch::children().find(is_orphan) {
            let _ = kill_process(orphan, Signal::KILL);
            if waitpid(Some(orphan), WaitOptions::empty()).is_err() {
                return;
            }
        }
    }

    /// Makes what a session's next effects need before they come. What fails here fails again, and is told,
    /// then.
    fn prepare(&mut self, session: SessionId) {
        // Whoever says what comes next was told of the last one's end before that was gone, and a holder is
        // looked at afterwards.
        self.settle(session);
        for view in [View::Workspace, View::Layers] {
            // What commands leave alone needs nobody who looks through it.
            let is_idle = self.ground.shape(session) == Shape::Direct || self.is_bare(session);
            if view == View::Layers && is_idle {
                continue;
            }
            let key = (session, view);
            let wish = Wish { session, view, extra_reads: Vec::new(), limits: Limits::default() };
            let Ok(header) = self.header(wish) else { continue };
            self.retire_stale(&key, &header);
            if !self.holders.contains_key(&key)
                && let Ok(holder) = self.make(&header)
            {
                self.holders.insert(key, holder);
            }
        }
    }

    fn forget(&mut self, session: SessionId) {
        self.settle(session);
        for view in View::ALL {
            let key = (session, view);
            if self.holders.get(&key).is_some_and(|holder| holder.live.is_empty()) {
                self.retire(&key);
            }
        }
    }

    /// Most commands change nothing. To see that takes no sandbox: whether a directory of our own has an
    /// entry depends on nothing that a command wrote into one.
    fn look(&mut self, session: SessionId, fds: &VecDeque<OwnedFd>) {
        let Some(control) = fds.front() else { return };
        let layer = if self.is_at_rest_and_bare(session) { Layer::Bare } else { Layer::Unknown };
        // When nobody listens any more there is nobody to tell.
        drop(wire::tell(control.as_fd(), &layer));
    }

    /// Where the layer holds nothing, what is absent from the project is absent from what the session sees.
    fn lacks(&mut self, session: SessionId, below: &str, fds: &VecDeque<OwnedFd>) {
        let Some(control) = fds.front() else { return };
        let lacks = self.is_at_rest_and_bare(session)
            && self.ground.config.sessions.get(&session).is_some_and(|lease| {
                let project = tree::directory(&lease.yard.project);
                project.is_ok_and(|project| tree::is_absent(project.as_fd(), Path::new(below)))
            });
        // When nobody listens any more there is nobody to tell.
        drop(wire::tell(control.as_fd(), &lacks));
    }

    /// Whether a session's layer holds nothing, and nothing lives that could change that.
    fn is_at_rest_and_bare(&mut self, session: SessionId) -> bool {
        self.settle(session);
        let may_change =
            self.holders.get(&(session, View::Workspace)).is_some_and(|held| !held.live.is_empty());
        !may_change && self.is_bare(session)
    }

    /// Whether a session's layer is an overlay's and holds nothing now, not even that something was deleted.
    fn is_bare(&self, session: SessionId) -> bool {
        let has_none = |mut entries: fs::ReadDir| entries.next().is_none();
        self.ground.config.sessions.get(&session).is_some_and(|lease| {
            lease.shape == Shape::Walled && fs::read_dir(lease.yard.upper()).is_ok_and(has_none)
        })
    }

    /// Changes the agent's own file, where this process was told of one.
    fn swap(&self, mut fds: VecDeque<OwnedFd>) {
        let (Some(swap), Some(control)) = (fds.pop_front(), fds.pop_front()) else { return };
        let unseal: fn(OwnedFd) -> io::Result<Swap> =
            if self.ground.is_trusting() { wire::unseal } else { wire::unseal_short };
        let swapped = match (&self.ground.config.agent_file, unseal(swap)) {
            (None, _) => Swapped::Refused("the agent has no file of its own here".into()),
            (Some(_), Err(error)) => Swapped::Refused(error.to_string()),
            (Some(path), Ok(Swap { old, new })) => {
                let bytes = |blob: &Option<Blob>| blob.as_ref().map(|blob| blob.0.clone());
                let listener = Listener { control: control.as_fd(), ground: &self.ground };
                own::swap(path, bytes(&old).as_deref(), bytes(&new).as_deref(), &listener)
            }
        };
        // When nobody listens any more there is nobody to tell.
        drop(wire::tell(control.as_fd(), &swapped));
    }

    fn start(&mut self, wish: Wish, tail: Vec<u8>, mut fds: VecDeque<OwnedFd>) {
        let Some(streams) = Streams::take(tail, &mut fds) else { return };
        if let Err(reason) = self.try_start(wish, &streams) {
            // When nobody listens any more there is nobody to tell.
            drop(wire::tell(streams.control.as_fd(), &Message::Refused(self.ground.explained(reason))));
        }
    }

    fn try_start(&mut self, wish: Wish, streams: &Streams) -> Result<(), String> {
        let header = self.header(wish)?;
        self.settle(header.session);
        self.make_room(&header)?;
        let key = (header.session, header.view);
        self.retire_stale(&key, &header);
        if !self.holders.contains_key(&key) {
            let holder = self.make(&header)?;
            self.holders.insert(key, holder);
        }
        let extra = self.open_extra_reads(&header)?;
        let holder = self.holders.get_mut(&key).ok_or("the holder is gone")?;
        // One that lives alone finds itself in the holder's own group; where only our own worker runs,
        // nothing is held.
        let is_beside = !holder.live.is_empty() && header.view.has_programs();
        let mut own = if is_beside { self.cgroups.make() } else { None };
        let doors = own.as_ref().map(Group::doors).transpose();
        let doors = doors.map_err(|error| format!("a control group: {error}"))?.unwrap_or_default();
        let mut group = if is_beside { own.as_mut() } else { holder.group.as_mut() };
        let cpu_percent = self.ground.config.cpu_percent;
        let limits = group.as_mut().map(|group| group.limit(&header.limits, cpu_percent)).unwrap_or_default();
        let events = group.and_then(|group| group.memory_events());
        // Whatever it waited for, that was this one.
        let ready = holder.ready.take().filter(|ready| ready.fits(&header) && !is_beside);
        let (ready, over) = match ready {
            Some(Ready { socket, over, .. }) => (Some(socket), over),
            None => (None, counter().map_err(|error| error.to_string())?),
        };
        let number = holder.asked;
        let absent = self.cgroups.absent.clone();
        let grant = Grant { limits, absent, doors: doors.len(), has_events: events.is_some() };
        let (tail, mut fds) = streams.borrow();
        fds.extend(extra.iter().chain(&doors).map(AsFd::as_fd).chain([over.as_fd()]).chain(events));
        if ready.is_some_and(|ready| wire::send_with(ready.as_fd(), &grant, tail, &fds).is_ok()) {
            // First that one, for which somebody waits.
            std::thread::yield_now();
            let began = Word::Began { number, limits: header.limits };
            if wire::send(holder.socket.as_fd(), &began, &[streams.control.as_fd()]).is_err() {
                // Nobody would tell of its end. With its holder it ends at once, and whoever waits hears so
                // much.
                self.retire(&key);
                return Ok(());
            }
        } else {
            let forward = Forward { number, header, extra: extra.len(), grant };
            wire::send_with(holder.socket.as_fd(), &Word::Start(Box::new(forward)), tail, &fds)
                .map_err(|error| format!("the holder does not answer: {error}"))?;
        }
        holder.live.insert(number, Living { group: own, over });
        holder.asked += 1;
        Ok(())
    }

    /// What a wish comes to, where the owner's words at the start allow it.
    fn header(&self, wish: Wish) -> Result<Header, String> {
        let Wish { session, view, extra_reads, limits } = wish;
        let lease = charter::lease(&self.ground.config, session)?;
        if !self.ground.is_trusting() {
            charter::reads(&self.ground.hidden, lease, &extra_reads)?;
        }
        if lease.shape == Shape::Direct && view != View::Workspace {
            return Err("this session has no layer: what it does, it does in the project itself".into());
        }
        if lease.shape == Shape::Copied && self.ids.is_root() {
            return Err(format!("Landlock alone {NOT_FOR_ROOT}"));
        }
        if lease.shape == Shape::Copied {
            self.nothing_shown(lease)?;
        }
        if lease.shape != Shape::Copied && view == View::Copy {
            return Err("this session has no copy of its project".into());
        }
        let yard = lease.yard.clone();
        Ok(Header { session, yard, view, extra_reads, limits })
    }

    /// Where nothing can be put over a part of what every command reads, what is to be out of reach must not
    /// lie in it.
    fn nothing_shown(&self, lease: &Lease) -> Result<(), String> {
        let Lease { yard, .. } = lease;
        let own = [&yard.project, &yard.folder].into_iter().chain(&self.ground.config.hidden);
        for path in own {
            if let Some(shown) = self.ground.plan.bound().find(|shown| path.starts_with(shown)) {
                let (path, shown) = (path.display(), shown.display());
                return Err(format!(
                    "Landlock alone cannot keep `{path}` from commands: it lies in `{shown}`, which they read"
                ));
            }
        }
        Ok(())
    }

    /// A holder is of no use when it is broken, when meanwhile something else has taken the place of the
    /// project or of another file that it shows, or when the session works elsewhere.
    fn retire_stale(&mut self, key: &HolderKey, header: &Header) {
        let Some(holder) = self.holders.get_mut(key).filter(|holder| holder.live.is_empty()) else { return };
        if !holder.is_current(&self.ground.plan) || holder.is_broken || holder.claim.yard != header.yard {
            self.retire(key);
        }
    }

    /// A merge writes where the overlay's layers lie, so nothing else of the session may live beside it.
    fn make_room(&mut self, header: &Header) -> Result<(), String> {
        let rivals: &[View] = match header.view {
            View::Merge | View::Discard => &View::ALL,
            View::Workspace | View::Layers | View::Commits | View::Copy => &[View::Merge, View::Discard],
        };
        for view in rivals {
            let key = (header.session, *view);
            self.wait_for_last(&key);
            match self.holders.get(&key) {
                Some(holder) if !holder.live.is_empty() => {
                    return Err(
                        "a command of this session is still running: wait for its end or cancel it".into()
                    );
                }
                Some(_) => self.retire(&key),
                None => {}
            }
        }
        Ok(())
    }

    /// Waits a moment for sandboxes that end: on a busy machine the end of the last one is told late.
    fn wait_for_last(&mut self, key: &HolderKey) {
        let until = Instant::now() + LAST;
        while let Some(holder) = self.holders.get(key).filter(|holder| !holder.live.is_empty()) {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(left) = Timespec::try_from(left) else { return };
            if left.tv_sec == 0 && left.tv_nsec == 0 {
                return;
            }
            let _ = poll(&mut [PollFd::new(&holder.socket, PollFlags::IN)], Some(&left));
            self.hear_holders();
        }
    }

    /// Whether a session has no holder yet, nor one that waits for it.
    fn wants_spare(&self) -> bool {
        let mut sessions = self.ground.config.sessions.iter();
        self.unclaimed.is_none()
            && !self.has_failed
            && sessions.any(|(session, lease)| {
                lease.shape == Shape::Walled && !self.holders.contains_key(&(*session, View::Workspace))
            })
    }

    fn make(&mut self, header: &Header) -> Result<SessionHolder, String> {
        check_yard(&self.ground, header)?;
        let claim = Claim::of(header);
        let project = identity(&header.yard.project);
        let kind =
            Kind { shape: self.ground.shape(header.session), has_programs: header.view.has_programs() };
        let opened = if kind.shape == Shape::Walled {
            stage::open(&mut self.ids, &header.yard, header.view)
                .map_err(|error| explained(&self.ground, &error))?
        } else {
            stage::folders(&self.ids, &header.yard, header.view).map_err(|error| error.to_string())?;
            if kind.shape == Shape::Copied {
                fs::create_dir_all(header.yard.copy()).map_err(|error| format!("the copy: {error}"))?;
                self.write_git(&header.yard);
            }
            OpenFolders::new()
        };
        if let Some(unclaimed) = self.unclaimed.take_if(|unclaimed| unclaimed.kind == kind) {
            if unclaimed.is_current(&self.ground.plan) && unclaimed.claim(&claim, &opened).is_ok() {
                return Ok(unclaimed.held(claim, project));
            }
            self.dismiss(unclaimed);
        }
        let unclaimed = self.bear(kind)?;
        unclaimed.claim(&claim, &opened).map_err(|error| error.to_string())?;
        Ok(unclaimed.held(claim, project))
    }

    /// Where there is no /etc of the session's own, git finds who the person is in a file that no command can
    /// write: this process is bound by nothing, so it goes nowhere that a command could put a link. What says
    /// the same stays, for a process that waits may read that very file. Without it everything works but a
    /// commit, and git says why.
    fn write_git(&self, yard: &Yard) {
        let (Some(git), at) = (&self.ground.config.git, yard.git()) else { return };
        if fs::read(&at).is_ok_and(|found| found == git.as_bytes()) {
            return;
        }
        let _ = fs::remove_file(&at);
        let made = fs::File::create_new(&at).and_then(|mut file| file.write_all(git.as_bytes()));
        // Half of it would be a mistake in the configuration of every git.
        let _ = made.or_else(|_| fs::remove_file(&at));
    }

    /// Makes a holder, whoever's it will be.
    fn bear(&mut self, kind: Kind) -> Result<Unclaimed, String> {
        let is_walled = kind.shape == Shape::Walled;
        // What is replaced while it is opened is taken for replaced since.
        let before = Before::look(&self.ground.plan, kind.has_programs);
        // Root makes user namespaces before it makes the holder.
        let tools = if is_walled && kind.has_programs {
            stage::open_tools(&mut self.ids, &self.ground.plan)
        } else {
            OpenTools::new()
        };
        let is_mapped = self.ids.is_root() && is_walled;
        let (ours, theirs) = wire::pair().map_err(|error| error.to_string())?;
        // Where only our own worker runs, nothing needs to be held.
        let group = if kind.has_programs { self.cgroups.make() } else { None };
        let doors = group.as_ref().and_then(|group| group.doors().ok()).unwrap_or_default();
        let mut namespaces = Namespaces::default();
        for (wall, flag) in [
            (Wall::UserNamespace, Namespaces::USER),
            (Wall::MountNamespace, Namespaces::MOUNT),
            (Wall::NetNamespace, Namespaces::NET),
        ] {
            if !self.ground.lacks_in(kind.shape, wall) {
                namespaces = namespaces.with(flag);
            }
        }
        let Some(process) = sys::fork(namespaces).map_err(|error| no_namespaces(&self.ground, &error))?
        else {
            holder::main(&self.ground, Birth { kind, is_root: is_mapped, tools, doors, socket: theirs })
        };
        drop((theirs, doors));
        if is_mapped {
            map_child(process).map_err(|error| format!("the uid map of a user namespace: {error}"))?;
        }
        wire::send(ours.as_fd(), &holder::Go, &[]).map_err(|error| error.to_string())?;
        Ok(Unclaimed::new(kind, process, ours, group, before))
    }

    /// Ends a holder that is no session's.
    fn dismiss(&mut self, unclaimed: Unclaimed) {
        let Unclaimed { process, group, .. } = unclaimed;
        // It may have ended by itself.
        let _ = kill_process(process, Signal::KILL);
        let _ = waitpid(Some(process), WaitOptions::empty());
        group.into_iter().for_each(|group| self.cgroups.take_back(group));
    }

    /// Root opens these for its unprivileged holders; an ordinary user's open them themselves.
    fn open_extra_reads(&self, header: &Header) -> Result<Vec<OwnedFd>, String> {
        if !self.ids.is_root() || self.ground.shape(header.session) != Shape::Walled {
            return Ok(Vec::new());
        }
        let open = |path: &String| {
            tree::open_canonical(Path::new(path)).map_err(|error| format!("`{path}` cannot be read: {error}"))
        };
        header.extra_reads.iter().map(open).collect()
    }
}

/// Who waits for what comes of a change of the agent's own file.
struct Listener<'a> {
    control: BorrowedFd<'a>,
    #[cfg_attr(
        not(feature = "controls"),
        expect(dead_code, reason = "it says where a test ends everything")
    )]
    ground: &'a Ground,
}

impl own::Asker for Listener<'_> {
    fn waits(&self) -> bool {
        let mut polled = [PollFd::from_borrowed_fd(self.control, PollFlags::empty())];
        poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|over| over == 0)
    }

    /// Ends everything where a test says, or the runtime alone, as by kill -9.
    #[cfg(feature = "controls")]
    fn reached(&self, step: own::CrashPoint) {
        let is_at =
            |suffix: &str| self.ground.config.crash_at.as_deref() == Some(&format!("{step:?}{suffix}"));
        let (all, alone) = (is_at(""), is_at(" alone"));
        if (all || alone)
            && let Some(runtime) = rustix::process::getppid()
        {
            let _ = kill_process(runtime, Signal::KILL);
        }
        if all {
            let _ = kill_process(rustix::process::getpid(), Signal::KILL);
        }
        if alone {
            // Until it is gone.
            let mut polled = [PollFd::from_borrowed_fd(self.control, PollFlags::empty())];
            let _ = poll(&mut polled, None);
        }
    }

    #[cfg(not(feature = "controls"))]
    fn reached(&self, _: own::CrashPoint) {}
}

/// To which a sandbox's init adds when nothing else of it is left.
fn counter() -> Result<OwnedFd, Errno> {
    eventfd(0, EventfdFlags::CLOEXEC)
}

/// A workspace that contains the home (or the session's folder) would show what the walls are there to hide.
fn check_yard(ground: &Ground, header: &Header) -> Result<(), String> {
    let project = &header.yard.project;
    for (path, what) in
        [(&ground.plan.home, "your home directory"), (&header.yard.folder, "Bailey's own files")]
    {
        if path.starts_with(project) {
            return Err(format!(
                "`{}` cannot be a workspace, because {what} (`{}`) lies in it: open a directory beneath instead",
                project.display(),
                path.display()
            ));
        }
    }
    Ok(())
}

/// Says why something could not be opened: making what maps its owner takes a user namespace.
fn explained(ground: &Ground, error: &StageError) -> String {
    probe::disabled().map_or_else(|| error.to_string(), |why| format!("{why}{}", stand_in(ground)))
}

/// Says why the kernel gave no namespaces.
fn no_namespaces(ground: &Ground, error: &io::Error) -> String {
    format!("{}{}", probe::why(error, probe::disabled()), stand_in(ground))
}

/// What the owner can take in their place; nothing where that is so already, and for root, who is not held by
/// Landlock alone.
fn stand_in(ground: &Ground) -> &'static str {
    if rustix::process::geteuid().is_root() || ground.config.tiers.internal <= Level::Landlock {
        return "";
    }
    "; or, where Landlock alone is enough for you, `internal = \"landlock\"` below [sandbox.tiers] in config.toml \
     (`bailey guide sandbox` says what it does not stop)"
}
