//! From a child of init to the payload: the lockdown, in an order that works, and then the payload itself.
//!
//! First what does not depend on the payload, while nobody waits for it: capabilities, as long as they may be
//! given up, then no_new_privs, which Landlock and seccomp need, then Landlock, whose rules are opened files.
//! None of it can be taken back. Then, where most of what comes has the same system calls, seccomp, which
//! forbids most of the above. Then this process waits, or one that borrows its memory, and has seen nothing
//! yet that anybody else wrote. With what is to be done come the limits, which can be lowered behind all of
//! that, and seccomp, where that is to have fewer calls, or nobody could say which.

use super::{Ground, init, way};
use crate::{
    charter,
    config::Shape,
    facts::{self, EarlyFacts, Namespaces, ProcessStatus},
    plan::{self, USER},
    ruleset,
    seccomp::{self, Sockets},
    sys::{self, Lender},
    wire::{self, Grant, Handover, Header, Job, Message, Named, Shown, Streams, Task, View},
    worker::{self, Unseen},
};
use bailey_protocol::{Command, Isolation, Level, Limits, Profile, Wall};
use rustix::{
    io::Errno,
    process::{
        DumpableBehavior, Resource, Rlimit, Signal, set_dumpable_behavior, set_parent_process_death_signal,
        setrlimit,
    },
    thread::{CapabilitySet, CapabilitySets},
};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    ffi::{CString, OsStr, OsString},
    fs::File,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

/// What a payload gets from init.
struct Start<'a> {
    ground: &'a Ground,
    header: &'a Header,
    job: Job,
    /// What it executes, where it executes something.
    words: Result<ExecArguments, String>,
    known: EarlyFacts,
    bound: Option<Bound>,
    sockets: Sockets,
    /// What of the workspace is masked.
    covered: Vec<PathBuf>,
    /// Standard input, output and error.
    streams: [OwnedFd; 3],
    control: BorrowedFd<'a>,
    /// The process whose memory this one borrows.
    lender: Option<Lender>,
}

/// Waits for something to do and becomes that; tells the runtime when it is refused.
pub(super) fn main(
    ground: &Ground,
    header: &Header,
    socket: OwnedFd,
    (is_ahead, sockets): (bool, Sockets),
) -> ! {
    if sys::close_all_but(&[socket.as_raw_fd(), 2]).is_err() {
        sys::exit(125);
    }
    let mut known = ahead(ground, header);
    let bound = known.as_mut().ok().and_then(|known| bind(ground, header, sockets, known));
    // A lender is as bound as what becomes of its memory. Where no namespace holds them, nothing would end
    // the two with their init.
    let lends = bound.is_some() && !ground.lacks(header.session, Wall::PidNamespace);
    let life =
        |lender| wait(ground, header, WaitingPayload { known, bound, sockets, socket, is_ahead, lender });
    let life = if lends { sys::go_on_beside(life) } else { life };
    match life(None) {}
}

/// What a payload's process has by the time that it waits.
struct WaitingPayload {
    known: Result<EarlyFacts, String>,
    bound: Option<Bound>,
    sockets: Sockets,
    /// To init.
    socket: OwnedFd,
    is_ahead: bool,
    lender: Option<Lender>,
}

/// Waits for something to do and becomes that.
fn wait(ground: &Ground, header: &Header, waiting: WaitingPayload) -> Infallible {
    let WaitingPayload { mut known, mut bound, sockets, socket, is_ahead, lender } = waiting;
    if lender.is_some()
        && let Err(errno) = rustix::process::setsid()
    {
        known = Err(format!("a new session: {errno}"));
    }
    if is_ahead {
        rehearse(ground, header);
    }
    // Where it is gone, so is this process.
    let _ = rustix::io::write(&socket, &rustix::process::getpid().as_raw_pid().to_ne_bytes());
    if let Some(kept) = bound.as_mut().and_then(|bound| bound.kept.take()) {
        // Init never receives it: on its way there it is open until init ends. Nothing counts on that, for
        // the kernel sends none where a command has filled what its user may have on the way (unix(7),
        // ETOOMANYREFS).
        let _ = wire::send(socket.as_fd(), &(), &[kept.as_fd()]);
    }
    // It ends with its init, which looks at the same while this process gets it ready.
    let order = wire::receive_with::<()>(socket.as_fd());
    let Ok(Some(((), tail, mut fds))) = order else { sys::exit(0) };
    init::call(init::PAYLOAD);
    let Some(Streams { paper, stdin, stdout, stderr, control }) = Streams::take(tail, &mut fds) else {
        sys::exit(125)
    };
    let read = |error: std::io::Error| format!("the job cannot be read: {error}");
    let job = paper.read().map_err(read);
    let ahead = job
        .as_ref()
        .ok()
        .filter(|job| job.way.is_none())
        .map(|job| ExecArguments::of(ground, header, job, None));
    // Whatever was refused there ends here.
    let checked = wire::receive::<Handover>(socket.as_fd());
    let Ok(Some((handover, mut fds))) = checked else { sys::exit(0) };
    let become_it = || {
        let Handover { limits, watched, mut absent, door } = handover;
        let (mut known, job) = (known?, job?);
        absent.append(&mut known.absent);
        let covered: Vec<OsString> =
            fds.pop_front().map(wire::unseal).transpose().map_err(read)?.unwrap_or_default();
        become_payload(Start {
            ground,
            header,
            words: ahead.unwrap_or_else(|| ExecArguments::of(ground, header, &job, door)),
            job,
            known: EarlyFacts { limits, watched, absent, ..known },
            bound,
            sockets,
            covered: covered.into_iter().map(PathBuf::from).collect(),
            streams: [stdin, stdout, stderr],
            control: control.as_fd(),
            lender,
        })
    };
    let Err(reason) = become_it();
    tell(control.as_fd(), &Message::Refused(reason));
    sys::exit(126)
}

/// The part of the lockdown that is the same whatever is to be done.
fn ahead(ground: &Ground, header: &Header) -> Result<EarlyFacts, String> {
    let lacks = |wall| ground.lacks(header.session, wall);
    let mut known = EarlyFacts::default();
    let shape = ground.shape(header.session);
    known.backend = shape.backend();
    if shape != Shape::Walled {
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    }
    first_where_memory_ends()?;
    // A limit of 0 would not keep a dump from a program that the host's core_pattern pipes it to; 1 does
    // (core(5)), and is too small for a file.
    limit([(Resource::Core, 1), (Resource::Nofile, 4096)])?;
    rustix::process::setsid().map_err(|error| format!("a new session: {error}"))?;
    if !lacks(Wall::NoCapabilities) {
        known.has_own_bounds = ground.keeps_bounds(shape);
        drop_capabilities()?;
    }
    if !lacks(Wall::NoNewPrivileges) {
        rustix::thread::set_no_new_privs(true).map_err(|error| format!("no_new_privs: {error}"))?;
    }
    if !lacks(Wall::Landlock) {
        match ruleset::restrict(&readable(ground, header), &writable(ground, header)) {
            // Nothing else keeps its signals in.
            Ok(abi) if shape == Shape::Copied && abi < ruleset::SCOPED => known.absent.push(format!(
                "landlock: version {abi} keeps no signals in, and no namespace does: it takes Linux 6.12"
            )),
            Ok(abi) => known.landlock_abi = abi,
            Err(reason) => known.absent.push(reason),
        }
    }
    // Nobody without capabilities can leave or change them.
    known.namespaces = Namespaces::of_self().apart_from(&ground.namespaces);
    Ok(known)
}

/// The system calls that this process bound itself to before it knew what is to be done.
struct Bound {
    program: &'static [sys::Instruction],
    /// With these it may bind itself to fewer.
    words: sys::SeccompSecret,
    /// Keeps the filter until init ends: it would be taken down where the command ends, while somebody waits
    /// for that.
    kept: Option<OwnedFd>,
}

/// Binds this process to the system calls that most of what comes has. None where there are none such, or it
/// is not bound.
fn bind(ground: &Ground, header: &Header, sockets: Sockets, known: &mut EarlyFacts) -> Option<Bound> {
    let program = usual(ground, header, sockets)?;
    let words = sys::random_words().ok()?;
    let filter = seccomp::with_door(program, words);
    let kept = sys::set_kept_seccomp_filter(&filter).ok();
    if kept.is_none() {
        sys::set_seccomp_filter(&filter, sys::SeccompSecret::default()).ok()?;
    }
    known.has_filter = true;
    known.status = Some(ProcessStatus::of_self());
    Some(Bound { program, words, kept })
}

/// The system calls of commands, of which none has more. Not where they are so few that nobody could receive
/// what is to be done.
fn usual(ground: &Ground, header: &Header, sockets: Sockets) -> Option<&'static [sys::Instruction]> {
    let is_walled =
        ground.shape(header.session) == Shape::Walled && !ground.lacks(header.session, Wall::Seccomp);
    // A command that asks for more was refused by then, but for a test's control.
    if !is_walled || header.view != View::Workspace || ground.is_trusting() {
        return None;
    }
    let profile = ground.config.calls.profile();
    let is_usual = matches!(profile, Profile::Standard | Profile::StandardNet);
    is_usual.then(|| seccomp::program(profile, sockets)).flatten()
}

/// Where memory runs out the kernel takes what is started here, and not its init, which tells of it, or
/// anybody of the host's (proc_pid_oom_score_adj(5)). Behind Landlock nobody changes it; where it cannot be
/// said, the kernel chooses.
fn first_where_memory_ends() -> Result<(), String> {
    // The kernel gives the files of a process that is not dumpable to root. This one knows nothing yet that
    // others do not.
    let dumpable = |behaviour| {
        set_dumpable_behavior(behaviour).map_err(|error| format!("whether it can be dumped: {error}"))
    };
    dumpable(DumpableBehavior::Dumpable)?;
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    dumpable(DumpableBehavior::NotDumpable)
}

/// As long as most orders are, or longer.
const REHEARSED_BYTES: usize = 2 << 10;

/// Goes through what an order takes, while nobody waits: in a process that was just forked, whatever is
/// touched first is a fault of a page. What comes of it is thrown away.
pub(super) fn rehearse(ground: &Ground, header: &Header) {
    sys::touch();
    let command = Command {
        argv: vec!["true".into()],
        cwd: header.yard.project.to_string_lossy().as_ref().into(),
        env: BTreeMap::new(),
        stdin: None,
        network: false,
        limits: header.limits.clone(),
        background: false,
    };
    let isolation = Isolation::default();
    let started = Message::Started(facts::look(&isolation, EarlyFacts::default()));
    let task = Task::Run(command, None);
    let job = Job { task, isolation, limits: header.limits.clone(), is_first: false, way: None };
    let grant = Grant {
        limits: BTreeSet::from([Wall::MemoryLimit]),
        absent: vec!["".into()],
        doors: 0,
        has_events: true,
    };
    let handover =
        Handover { limits: grant.limits.clone(), watched: BTreeSet::new(), absent: Vec::new(), door: None };
    let words = ExecArguments::of(ground, header, &job, None);
    let checked = charter::lease(&ground.config, header.session)
        .and_then(|lease| charter::check(&ground.config.calls, lease, header.view, &job));
    // Where the kernel reads them.
    let names = init::BUSY.map(|name| std::hint::black_box(name).to_bytes().first().copied());
    std::hint::black_box((
        names,
        words.is_ok(),
        again(&started),
        again(&handover),
        checked.is_ok(),
        come(&grant, &job),
    ));
}

/// Whether a packet with something to do arrives, with as many descriptors as one has.
fn come(grant: &Grant, job: &Job) -> Option<bool> {
    let (ours, theirs) = wire::pair().ok()?;
    let mut tail = serde_json::to_vec(job).ok()?;
    tail.resize(tail.len().max(REHEARSED_BYTES), b' ');
    // No socket: on its way the kernel looks for circles of them.
    let stderr = std::io::stderr();
    wire::send_with(ours.as_fd(), grant, &tail, &[stderr.as_fd(); 5]).ok()?;
    let (_, tail, mut fds) = wire::receive_with::<Grant>(theirs.as_fd()).ok()??;
    Some(Streams::take(tail, &mut fds)?.paper.read().is_ok())
}

/// Whether something can be written down and read again.
fn again<T: Serialize + DeserializeOwned>(value: &T) -> bool {
    serde_json::to_vec(value).is_ok_and(|bytes| serde_json::from_slice::<T>(&bytes).is_ok())
}

/// Messages go by write(2), which both profiles allow, and not by sendmsg(2).
fn tell(control: BorrowedFd<'_>, message: &Message) {
    if let Ok(bytes) = serde_json::to_vec(message) {
        let _ = rustix::io::write(control, &bytes);
    }
}

fn become_payload(start: Start<'_>) -> Result<Infallible, String> {
    let Start {
        ground,
        header,
        mut job,
        words,
        mut known,
        bound,
        sockets,
        covered,
        streams,
        control,
        mut lender,
    } = start;
    let lacks = |wall| ground.lacks(header.session, wall);
    let shape = ground.shape(header.session);
    if matches!(job.task, Task::Work(_)) {
        // A worker has fewer system calls and descriptors than its lender, and never lets go of its memory.
        lender.take().into_iter().for_each(Lender::end);
    }
    if let Task::Run(command, _) | Task::Git(command) = &job.task {
        let cwd = &command.cwd.0;
        std::env::set_current_dir(cwd)
            .map_err(|error| format!("the directory `{cwd}` cannot be entered: {error}"))?;
    }
    limit(limits(&job.limits, lacks(Wall::PidsLimit), &mut known))?;
    if let Task::Run(command, Some(named)) = &job.task {
        look_at_files(command, named)?;
    }
    // Our own worker needs no more than ever.
    let is_filtered = !lacks(Wall::Seccomp) || shape == Shape::Direct && matches!(job.task, Task::Work(_));
    let program = program(ground, header, sockets, &job);
    let is_bound = bound.as_ref().is_some_and(|bound| std::ptr::eq(bound.program, program));
    if is_filtered && !is_bound {
        let set = sys::set_seccomp_filter(program, bound.map(|bound| bound.words).unwrap_or_default());
        known.has_filter = set.is_ok();
        known.absent.extend(set.err().map(|error| format!("seccomp: {error}")));
    }
    known.has_unix_sockets = sockets == Sockets::Unix;
    if job.isolation.profile == Profile::Custom {
        ground.config.calls.name().clone_into(&mut known.custom);
    }
    let enforced = facts::look(&job.isolation, known);
    let tier = charter::lease(&ground.config, header.session)?.tier;
    let mut least = ground.config.tiers.least(tier);
    if shape != Shape::Walled {
        // Its owner took less; that it is no less than the tier wants is looked at below.
        job.isolation.minimum.retain(|wall| !lacks(*wall));
    }
    if shape == Shape::Direct {
        least = Level::None;
    }
    #[cfg(feature = "controls")]
    if ground.config.accept {
        job.isolation.minimum.retain(|wall| !lacks(*wall));
        // What is made nowhere here is refused all the same.
        least = if least > Level::Native { least } else { Level::None };
    }
    #[cfg(feature = "controls")]
    if bailey_protocol::broken::broken("tiers") {
        least = Level::None;
    }
    facts::check(&enforced, &job.isolation, (tier, least))?;
    if let Task::Run(..) = &job.task {
        let revealed: Vec<PathBuf> =
            job.isolation.revealed.iter().map(|path| PathBuf::from(&path.0)).collect();
        worker::settle(&header.yard.project, &covered, &revealed);
        warn(&job, header, &covered, &streams);
    }
    tell(control, &Message::Started(enforced));
    match job.task {
        Task::Run(..) | Task::Git(_) => execute(words?, streams, lender),
        Task::Work(mut request) => {
            if let worker::Request::Settle { masks, .. } = &mut request {
                masks.clone_from(&ground.config.masks);
            }
            let yard = &header.yard;
            let workspace = if shape == Shape::Copied { yard.copy() } else { yard.project.clone() };
            let workspace = workspace.to_string_lossy();
            let revealed = &job.isolation.revealed;
            let unseen = Unseen { masks: Some(&ground.masks), revealed, workspace: &workspace };
            work(request, unseen, streams)
        }
    }
}

/// What the command names must still be what a human said yes to. Whoever begins it has looked as well; this
/// look is inside, at what it will run itself, and before a filter may forbid the calls that it takes.
fn look_at_files(command: &Command, named: &Named) -> Result<(), String> {
    #[cfg(feature = "controls")]
    if bailey_protocol::broken::broken("named_files") {
        return Ok(());
    }
    if !worker::is_what_was_named(command, &named.path, named.digest)? {
        return Err(
            "a file that the command names is not what it was when a human said yes to it; ask for it again"
                .into(),
        );
    }
    Ok(())
}

/// Tells a first command's readers what it will not be able to change; the pipe is empty still.
fn warn(job: &Job, header: &Header, covered: &[PathBuf], [_, _, stderr]: &[OwnedFd; 3]) {
    if job.is_first
        && let Some(text) = worker::of_others(&header.yard.project, covered)
    {
        let _ = rustix::io::write(stderr, text.as_bytes());
    }
}

/// The worker always gets the strict profile, and what merges take.
fn program<'a>(ground: &'a Ground, header: &Header, sockets: Sockets, job: &Job) -> &'a [sys::Instruction] {
    match job.task {
        Task::Run(..) | Task::Git(_) if ground.shape(header.session) == Shape::Copied => &ground.alone,
        Task::Run(..) | Task::Git(_) => {
            let [network, unix] = &ground.calls;
            let own = if sockets == Sockets::Unix { unix } else { network };
            seccomp::program(job.isolation.profile, sockets).unwrap_or(own)
        }
        Task::Work(_) => seccomp::worker(),
    }
}

/// The limits of a job that its process has.
fn limits(limits: &Limits, without_pids: bool, known: &mut EarlyFacts) -> Vec<(Resource, u64)> {
    let mut rows = vec![(Resource::Fsize, limits.disk_bytes)];
    // A control group counts this command's alone.
    if !without_pids && !known.limits.contains(&Wall::PidsLimit) {
        // It counts all processes of the session's user namespace: its holder and each sandbox's init too,
        // and what else lives.
        rows.push((Resource::Nproc, u64::from(limits.pids) + 2));
        known.limits.insert(Wall::PidsLimit);
    }
    rows
}

fn limit(rows: impl IntoIterator<Item = (Resource, u64)>) -> Result<(), String> {
    for (resource, most) in rows {
        // Without walls a command of root's keeps its capabilities, and with them nothing may become more
        // than it was.
        let hard = rustix::process::getrlimit(resource).maximum.map_or(most, |hard| hard.min(most));
        setrlimit(resource, Rlimit { current: Some(hard), maximum: Some(hard) })
            .map_err(|error| format!("a limit of {resource:?}: {error}"))?;
    }
    Ok(())
}

/// Gives up what any execution could add, for this process and all it will start.
///
/// # Errors
/// When this process may not.
pub(super) fn drop_bounds() -> Result<(), String> {
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // The first that the kernel does not know.
            Err(Errno::INVAL) => break,
            done => done.map_err(|error| format!("capabilities: {error}"))?,
        }
    }
    Ok(())
}

/// Gives up every capability, for this process and all it will start; the bounding set the holder gave up.
///
/// # Errors
/// When one is left.
pub(super) fn drop_capabilities() -> Result<(), String> {
    keep_capabilities(CapabilitySet::empty())
}

/// The same but for these, where this process has them. Nothing that it executes gets them.
///
/// # Errors
/// When another one is left.
pub(super) fn keep_capabilities(kept: CapabilitySet) -> Result<(), String> {
    let text = |error: Errno| format!("capabilities: {error}");
    // A kernel before 4.3 has no ambient set.
    let _ = rustix::thread::clear_ambient_capability_set();
    let kept = match kept.is_empty() {
        true => kept,
        false => kept & rustix::thread::capabilities(None).map_err(text)?.permitted,
    };
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    rustix::thread::set_capabilities(None, sets).map_err(text)
}

/// What may be read: all that there is in a root of its own. Without one, what a root would hold.
fn readable(ground: &Ground, header: &Header) -> Vec<PathBuf> {
    let yard = &header.yard;
    if ground.shape(header.session) != Shape::Copied {
        return vec!["/".into()];
    }
    let of_kernel = OF_THE_KERNEL.iter().map(PathBuf::from);
    let own = match header.view {
        View::Workspace => header.extra_reads.iter().map(PathBuf::from).chain([yard.git()]).collect(),
        View::Commits => vec![yard.project.join(".git"), yard.upper()],
        View::Copy | View::Layers | View::Merge | View::Discard => {
            return of_kernel.chain([yard.project.clone(), yard.folder.clone()]).collect();
        }
    };
    ground.plan.bound().chain(own).chain(of_kernel).chain(DEVICES.iter().map(PathBuf::from)).collect()
}

/// What programs read of the kernel, and nothing of other processes. `self` is the payload's own process
/// alone.
const OF_THE_KERNEL: &[&str] = &[
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/self",
    "/proc/stat",
    "/proc/sys/kernel/ngroups_max",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/vm/overcommit_memory",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
];

const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

fn writable(ground: &Ground, header: &Header) -> Vec<PathBuf> {
    let yard = &header.yard;
    let devices = DEVICES.iter().map(PathBuf::from);
    match header.view {
        View::Workspace if ground.shape(header.session) == Shape::Copied => {
            let own = [yard.copy(), yard.folder.join("home"), yard.folder.join("tmp")];
            devices.chain(own).collect()
        }
        View::Workspace => {
            let fixed = ["/tmp", "/var/tmp", "/dev/shm", "/dev/pts"].iter().map(PathBuf::from);
            let own = [yard.project.clone(), ground.plan.home.clone()];
            fixed.chain(devices).chain(own).collect()
        }
        View::Layers => vec![yard.bases()],
        View::Copy => vec![yard.folder.clone()],
        View::Commits => vec![yard.handover(), "/dev/null".into()],
        View::Merge => vec![yard.project.clone(), yard.upper(), yard.backups(), yard.bases()],
        View::Discard => vec![yard.upper(), yard.bases()],
    }
}

/// Becomes the worker.
fn work(request: worker::Request, unseen: Unseen<'_>, streams: [OwnedFd; 3]) -> ! {
    let [stdin, stdout, _] = streams;
    if sys::close_all_but(&[stdin.as_raw_fd(), stdout.as_raw_fd()]).is_err() {
        sys::exit(125);
    }
    let served = worker::serve(request, unseen, File::from(stdin), File::from(stdout));
    sys::exit(i32::from(served.is_err()))
}

/// The arguments of execve(2).
#[derive(Default)]
struct ExecArguments {
    /// What the program may be; the first that there is counts.
    candidates: Vec<CString>,
    argv: Vec<CString>,
    env: Vec<CString>,
    /// Where it was looked for.
    path: String,
}

impl ExecArguments {
    /// Those of a job; none where our own worker does it. The network door listens at this port, where it has
    /// a way to that.
    fn of(ground: &Ground, header: &Header, job: &Job, door: Option<u16>) -> Result<Self, String> {
        let (command, env) = match &job.task {
            Task::Run(command, _) => {
                (command, environment(ground, header, command, door.zip(job.way.as_ref())))
            }
            Task::Git(command) => (command, of_git(ground, header)),
            Task::Work(_) => return Ok(Self::default()),
        };
        let text = |bytes: &[u8]| {
            CString::new(bytes).map_err(|_| "an argument or variable holds a NUL byte".to_owned())
        };
        let name = command.argv.first().ok_or("a command needs a program")?;
        let path = env.get("PATH").cloned().unwrap_or_default();
        Ok(Self {
            candidates: candidates(name, &path)
                .iter()
                .map(|path| text(path.as_os_str().as_bytes()))
                .collect::<Result<_, _>>()?,
            argv: command.argv.iter().map(|word| text(word.as_bytes())).collect::<Result<_, _>>()?,
            env: env
                .iter()
                .map(|(key, value)| text(format!("{key}={value}").as_bytes()))
                .collect::<Result<_, _>>()?,
            path,
        })
    }
}

/// Becomes the program.
fn execute(
    words: ExecArguments,
    streams: [OwnedFd; 3],
    lender: Option<Lender>,
) -> Result<Infallible, String> {
    let failed = |error: std::io::Error| format!("standard streams: {error}");
    // The warden has no standard input, so one of these may bear the number of another's place.
    let apart = |fd: OwnedFd| {
        if fd.as_raw_fd() > 2 { Ok(fd) } else { rustix::io::fcntl_dupfd_cloexec(&fd, 3) }
    };
    let streams = streams.map(apart);
    for (number, stream) in (0..).zip(streams) {
        let stream = stream.map_err(|error| failed(error.into()))?;
        sys::dup_to(stream.as_fd(), number).map_err(failed)?;
    }
    sys::close_on_exec_from(3).map_err(failed)?;
    sys::default_signals().map_err(failed)?;
    lender.into_iter().for_each(Lender::make_way);
    let ExecArguments { candidates, argv, env, path } = words;
    let mut worst = std::io::Error::from(Errno::NOENT);
    for candidate in &candidates {
        let error = sys::execve(candidate, &argv, &env);
        if error.kind() != std::io::ErrorKind::NotFound {
            worst = error;
        }
    }
    let name = argv.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    Err(match worst.kind() {
        std::io::ErrorKind::NotFound => {
            format!("the program `{name}` was not found in the sandbox (its PATH is {path})")
        }
        _ => format!("the program `{name}` cannot be executed: {worst}"),
    })
}

fn candidates(name: &str, path: &str) -> Vec<PathBuf> {
    if name.contains('/') {
        return vec![PathBuf::from(name)];
    }
    path.split(':').map(|directory| Path::new(directory).join(OsStr::new(name))).collect()
}

/// The variables of a command: few, and none of the host's by itself.
fn environment(
    ground: &Ground,
    header: &Header,
    command: &Command,
    way: Option<(u16, &Shown)>,
) -> BTreeMap<String, String> {
    let config = &ground.config;
    let project = header.yard.project.to_string_lossy().into_owned();
    let mut env = way.map(|(port, shown)| way::variables(port, shown)).unwrap_or_default();
    let mut set = |key: &str, value: String| env.insert(key.to_owned(), value);
    let shape = ground.shape(header.session);
    let home = match shape {
        Shape::Walled | Shape::Direct => ground.plan.home.clone(),
        Shape::Copied => header.yard.folder.join("home"),
    };
    set("HOME", home.to_string_lossy().into_owned());
    set("PATH", if shape == Shape::Direct { &config.path } else { &ground.plan.path }.clone());
    if shape != Shape::Direct {
        set("USER", USER.into());
        set("LOGNAME", USER.into());
    }
    let temporary = header.yard.folder.join("tmp").to_string_lossy().into_owned();
    set("TMPDIR", if shape == Shape::Copied { temporary } else { "/tmp".into() });
    set("LANG", config.locale.clone().unwrap_or_else(|| "C.UTF-8".into()));
    set("TERM", "dumb".into());
    // Gradle writes beside the files that it reads. So it gets a place to
    // write, and reads the shown cache besides.
    let gradle = home.join(".gradle/caches");
    if ground.plan.bound().any(|shown| shown.starts_with(&gradle)) {
        set("GRADLE_RO_DEP_CACHE", gradle.to_string_lossy().into_owned());
        set("GRADLE_USER_HOME", "/tmp/.gradle".into());
    }
    // What it compiles in passing would be changes of the project that nobody made, to be looked at and
    // applied.
    set("PYTHONDONTWRITEBYTECODE", "1".into());
    match shape {
        Shape::Walled if config.git.is_some() => set("GIT_CONFIG_SYSTEM", plan::GIT.into()),
        // The machine's own cannot be read, which no git gets over; one that is not there is none.
        Shape::Copied => set("GIT_CONFIG_SYSTEM", header.yard.git().to_string_lossy().into_owned()),
        Shape::Walled | Shape::Direct => None,
    };
    let git = GIT.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let git = git.chain([("safe.directory".to_owned(), project)]);
    let logins = way.map(|(_, shown)| way::logins(&shown.stand_ins)).unwrap_or_default();
    let mut count = 0;
    for (key, value) in git.chain(logins) {
        set(&format!("GIT_CONFIG_KEY_{count}"), key);
        set(&format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    set("GIT_CONFIG_COUNT", count.to_string());
    #[cfg(feature = "controls")]
    if bailey_protocol::broken::broken("environment") {
        env.extend(std::env::vars());
    }
    env.extend(config.env.clone());
    env.extend(command.env.clone());
    env
}

/// The variables of git where it looks at a session's commits: it reads nobody's configuration, follows no
/// replacement or graft, and takes no list of what lies where from the session.
fn of_git(ground: &Ground, header: &Header) -> BTreeMap<String, String> {
    let fixed = [
        ("LANG", "C.UTF-8"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_GRAFT_FILE", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
    ];
    let own = [
        ("PATH", ground.plan.path.clone()),
        ("HOME", header.yard.handover().to_string_lossy().into_owned()),
        ("GIT_CONFIG_COUNT", OF_COMMITS.len().to_string()),
    ];
    let fixed = fixed.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let mut env: BTreeMap<String, String> =
        fixed.chain(own.map(|(key, value)| (key.to_owned(), value))).collect();
    for (number, (key, value)) in OF_COMMITS.iter().enumerate() {
        env.insert(format!("GIT_CONFIG_KEY_{number}"), (*key).into());
        env.insert(format!("GIT_CONFIG_VALUE_{number}"), (*value).into());
    }
    env
}

const OF_COMMITS: &[(&str, &str)] = &[
    ("safe.bareRepository", "explicit"),
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.commitGraph", "false"),
    ("core.multiPackIndex", "false"),
    ("core.quotePath", "false"),
    ("pack.useBitmaps", "false"),
    ("pack.writeReverseIndex", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// Git inside the walls. Hooks run there, as they are normal work and can do no more than any command; what
/// git would start by itself for a foreign repository does not.
const GIT: &[(&str, &str)] = &[
    ("safe.bareRepository", "explicit"),
    ("core.fsmonitor", "false"),
    // No key of the person's is in here, and a commit that must be signed would not be made.
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    // A masked file has the size and time of the one it covers, but not its change time, inode and device.
    ("core.checkStat", "minimal"),
    ("core.trustctime", "false"),
];
