//! Control groups: the limits that the kernel holds for a whole tree of processes.
//!
//! A group is made by the warden as long as it may (as root, or in a delegated subtree), under its own group.
//! A holder sits in one from the start, because joining is dear (over a millisecond) and forking inside is
//! free: an effect that lives alone has it to itself, with limits of its own; one that runs beside another
//! joins another one.

mod memory;

pub use memory::{Gauge, Memory};

use bailey_protocol::{Limits, Wall};
use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};
use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    time::Duration,
};

/// Empty groups that are kept.
const SPARE_MAX: usize = 4;

/// Where this process may make groups.
#[derive(Debug)]
pub(crate) struct Cgroups {
    /// For version 1, one directory for each controller; for version 2 the one directory.
    parents: Vec<Parent>,
    made: u32,
    /// Empty ones that served before: to make one costs more than to set its limits.
    spare: Vec<Group>,
    /// Why something is missing.
    pub(crate) absent: Vec<String>,
}

#[derive(Debug)]
struct Parent {
    directory: PathBuf,
    controllers: Vec<Controller>,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Controller {
    Memory,
    Pids,
    Cpu,
}

const CONTROLLERS: [(Controller, &str, Wall); 3] = [
    (Controller::Memory, "memory", Wall::MemoryLimit),
    (Controller::Pids, "pids", Wall::PidsLimit),
    (Controller::Cpu, "cpu", Wall::CpuLimit),
];

/// One group, in all its hierarchies. Removed when dropped.
#[derive(Debug)]
pub(crate) struct Group {
    directories: Vec<(PathBuf, Vec<Controller>, Version)>,
    /// What was set last, where all of it holds: to write it again costs more than to remember it.
    set: Option<(Wanted, BTreeSet<Wall>)>,
    /// The file that counts processes killed for want of memory, once it was asked for.
    events: OnceCell<Option<OwnedFd>>,
}

/// What a group is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wanted {
    memory_bytes: u64,
    pids: u32,
    cpu_percent: Option<u32>,
}

impl Cgroups {
    /// Looks where groups can be made. Never fails: what cannot be held is watched, and said to be.
    /// Processor time is held only where that `has_cpu`.
    pub(crate) fn find(has_cpu: bool) -> Self {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mut cgroups = Self { parents: Vec::new(), made: 0, spare: Vec::new(), absent: Vec::new() };
        for (controller, name, wall) in CONTROLLERS {
            if controller == Controller::Cpu && !has_cpu {
                continue;
            }
            match one(&own, &mounts, name).or_else(|| two(&own, &mounts, name)) {
                Some((directory, version)) => cgroups.add(directory, version, controller),
                None => cgroups.absent.push(format!("{wall}: no control group of its own can be made here")),
            }
        }
        sweep(cgroups.parents.iter().map(|parent| parent.directory.as_path()));
        cgroups
    }

    fn add(&mut self, directory: PathBuf, version: Version, controller: Controller) {
        match self.parents.iter_mut().find(|parent| parent.directory == directory) {
            Some(parent) => parent.controllers.push(controller),
            None => self.parents.push(Parent { directory, controllers: vec![controller], version }),
        }
    }

    /// Takes back a group whose members are gone.
    pub(crate) fn take_back(&mut self, group: Group) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(group);
        }
    }

    /// An empty group; none where none can be made.
    pub(crate) fn make(&mut self) -> Option<Group> {
        if let Some(group) = self.spare.pop() {
            return Some(group);
        }
        self.made += 1;
        let name = format!("bailey-{}-{}", std::process::id(), self.made);
        let mut group = Group { directories: Vec::new(), set: None, events: OnceCell::new() };
        for parent in &self.parents {
            let directory = parent.directory.join(&name);
            fs::create_dir(&directory).ok()?;
            group.directories.push((directory, parent.controllers.clone(), parent.version));
        }
        (!group.directories.is_empty()).then_some(group)
    }
}

impl Group {
    /// Sets the limits, where they are not what stands there. Returns those that hold.
    pub(crate) fn limit(&mut self, limits: &Limits, cpu_percent: Option<u32>) -> BTreeSet<Wall> {
        let wanted = Wanted { memory_bytes: limits.memory_bytes, pids: limits.pids, cpu_percent };
        if let Some((_, walls)) = self.set.as_ref().filter(|(set, _)| *set == wanted) {
            return walls.clone();
        }
        let mut walls = BTreeSet::new();
        let mut holds_all = true;
        for (directory, controllers, version) in &self.directories {
            for controller in controllers {
                let set = match controller {
                    Controller::Memory => memory(directory, *version, limits.memory_bytes),
                    // The sandbox's init and its holder may be in it too.
                    Controller::Pids => put(directory, "pids.max", &(u64::from(limits.pids) + 2).to_string()),
                    Controller::Cpu => match cpu_percent {
                        Some(percent) => cpu(directory, *version, percent),
                        None => continue,
                    },
                };
                holds_all &= set.is_ok();
                let wall = CONTROLLERS.iter().find(|(known, ..)| known == controller).map(|(.., wall)| *wall);
                walls.extend(wall.filter(|_| set.is_ok()));
            }
        }
        // What failed is tried again the next time.
        self.set = holds_all.then(|| (wanted, walls.clone()));
        walls
    }

    /// Files that make a process of one thread that writes `0` to all of them a member. The right to is the
    /// opener's, so they can be handed to an unprivileged child.
    ///
    /// # Errors
    /// When one cannot be opened.
    pub(crate) fn doors(&self) -> io::Result<Vec<OwnedFd>> {
        let open = |(directory, _, version): &(PathBuf, Vec<Controller>, Version)| {
            // A process of one thread that moves that by itself need not stop all others from forking, for
            // which the kernel waits ten milliseconds and more; version 2 has no such file for whole
            // processes.
            let name = match version {
                Version::One => "tasks",
                Version::Two => "cgroup.procs",
            };
            OpenOptions::new().write(true).open(directory.join(name)).map(OwnedFd::from)
        };
        self.directories.iter().map(open).collect()
    }

    /// The file that counts processes killed for want of memory, for [`kills`].
    pub(crate) fn memory_events(&self) -> Option<BorrowedFd<'_>> {
        self.events.get_or_init(|| self.open_memory_events()).as_ref().map(AsFd::as_fd)
    }

    fn open_memory_events(&self) -> Option<OwnedFd> {
        let (directory, _, version) =
            self.directories.iter().find(|(_, controllers, _)| controllers.contains(&Controller::Memory))?;
        let name = match version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        File::open(directory.join(name)).ok().map(OwnedFd::from)
    }
}

/// Joins a group, with `child` where there is one by now.
///
/// # Errors
/// When a door is closed by now.
pub(crate) fn join(doors: &[OwnedFd], children: &[Pid]) -> io::Result<()> {
    for door in doors {
        rustix::io::write(door, b"0")?;
        for child in children {
            rustix::io::write(door, child.as_raw_pid().to_string().as_bytes())?;
        }
    }
    Ok(())
}

/// How many processes of a group the kernel has killed so far because its memory was used up.
pub(crate) fn kills(events: &OwnedFd) -> u64 {
    let mut bytes = [0; 4096];
    let read = rustix::io::pread(events, &mut bytes, 0).unwrap_or(0);
    let text = String::from_utf8_lossy(bytes.get(..read).unwrap_or_default()).into_owned();
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
}

impl Drop for Group {
    fn drop(&mut self) {
        for (directory, ..) in &self.directories {
            // The last member's end may take the kernel a moment longer than `wait` shows.
            for _ in 0..500 {
                match fs::remove_dir(directory) {
                    Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                        std::thread::sleep(Duration::from_micros(200))
                    }
                    _ => break,
                }
            }
        }
    }
}

/// Removes the groups of wardens that were killed. Each warden is looked for once, however many groups it
/// has.
fn sweep<'a>(parents: impl Iterator<Item = &'a Path>) {
    let mut lives: BTreeMap<i32, bool> = BTreeMap::new();
    for entry in parents.flat_map(|parent| fs::read_dir(parent).into_iter().flatten().flatten()) {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix("bailey-")?.split_once('-'));
        let owner = owner.and_then(|(owner, _)| Pid::from_raw(owner.parse().ok()?));
        let Some(owner) = owner else { continue };
        // There are as many as sessions that live, and a look into /proc for each is dear.
        let is_gone = || test_kill_process(owner) == Err(Errno::SRCH);
        if !*lives.entry(owner.as_raw_pid()).or_insert_with(|| !is_gone()) {
            drop(fs::remove_dir(entry.path()));
        }
    }
}

fn put(directory: &Path, file: &str, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(directory.join(file))?.write_all(value.as_bytes())
}

fn memory(directory: &Path, version: Version, bytes: u64) -> io::Result<()> {
    match version {
        Version::One => {
            // Swap first must not be below memory, so a group that is set again downwards needs both orders.
            let _ = put(directory, "memory.memsw.limit_in_bytes", &bytes.to_string());
            put(directory, "memory.limit_in_bytes", &bytes.to_string())?;
            let _ = put(directory, "memory.memsw.limit_in_bytes", &bytes.to_string());
            Ok(())
        }
        Version::Two => {
            put(directory, "memory.max", &bytes.to_string())?;
            let _ = put(directory, "memory.swap.max", "0");
            Ok(())
        }
    }
}

fn cpu(directory: &Path, version: Version, percent: u32) -> io::Result<()> {
    let quota = u64::from(percent) * 1000;
    match version {
        Version::One => {
            put(directory, "cpu.cfs_period_us", "100000")?;
            put(directory, "cpu.cfs_quota_us", &quota.to_string())
        }
        Version::Two => put(directory, "cpu.max", &format!("{quota} 100000")),
    }
}

/// This process's directory in the version 1 hierarchy of a controller, when it may make groups there.
fn one(own: &str, mounts: &str, controller: &str) -> Option<(PathBuf, Version)> {
    let directory = own_one(own, mounts, controller)?;
    may_make(&directory).then_some((directory, Version::One))
}

/// This process's directory in the hierarchy of a controller of version 1.
fn own_one(own: &str, mounts: &str, controller: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (names, path) = rest.split_once(':')?;
        names.split(',').any(|name| name == controller).then_some(path)
    })?;
    mounted(mounts, "cgroup", |options| options.split(',').any(|option| option == controller), path)
}

/// Where groups of version 2 with a controller can be made: where no process sits but in groups below (the
/// "no internal processes" of cgroups(7)). That is the root of all, or what this program's own group lies in,
/// once that was [settled](settle_group).
fn two(own: &str, mounts: &str, controller: &str) -> Option<(PathBuf, Version)> {
    let mut directory = own_two(own, mounts)?;
    if directory.ends_with(LEAF) {
        directory.pop();
    } else if directory.join("cgroup.type").exists() {
        // A controller of threads could be passed on here all the same, and then no process could join what
        // is below.
        return None;
    }
    if !lists(&directory, "cgroup.controllers", controller) || !may_make(&directory) {
        return None;
    }
    if !lists(&directory, "cgroup.subtree_control", controller) {
        put(&directory, "cgroup.subtree_control", &format!("+{controller}")).ok()?;
    }
    Some((directory, Version::Two))
}

/// The group of a process that settled.
const LEAF: &str = "bailey-main";

/// Moves this process, and so all that it starts, into a group below its own, where it is alone in that and
/// may: a service manager delegated it (`Delegate=yes`). So that limits of commands can be groups beside it.
pub fn settle_group() {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let Some(directory) = own_two(&own, &mounts) else { return };
    // The root of all is nobody's to settle in. What lists the processes comes last: it may be of thousands.
    let is_alone = || {
        fs::read_to_string(directory.join("cgroup.procs"))
            .is_ok_and(|processes| processes.trim() == std::process::id().to_string())
    };
    if !directory.join("cgroup.type").exists() || !may_make(&directory) || !is_alone() {
        return;
    }
    let leaf = directory.join(LEAF);
    // One that is there was left by whoever was this service before.
    drop(fs::create_dir(&leaf));
    // Where it cannot be, limits are watched, and each result says so.
    drop(put(&leaf, "cgroup.procs", "0"));
}

/// This process's directory in the hierarchy of version 2.
fn own_two(own: &str, mounts: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounted(mounts, "cgroup2", |_| true, path)
}

fn lists(directory: &Path, file: &str, controller: &str) -> bool {
    let text = fs::read_to_string(directory.join(file));
    text.is_ok_and(|text| text.split_whitespace().any(|name| name == controller))
}

/// Where a group's path is mounted (proc_pid_mountinfo(5)).
fn mounted(mounts: &str, kind: &str, fits: impl Fn(&str) -> bool, path: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, at) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let (file_system, options) = (after.next()?, after.nth(1)?);
        let below = Path::new(path).strip_prefix(root).ok()?;
        (file_system == kind && fits(options)).then(|| Path::new(at).join(below))
    })
}

fn may_make(directory: &Path) -> bool {
    rustix::fs::access(directory, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(test)]
mod tests;
