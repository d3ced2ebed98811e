//! What the walls are, as the kernel tells it to the very process that they are to hold.

use crate::config::Shape;
use bailey_protocol::{Enforced, Isolation, Level, Tier, Wall};
use std::{collections::BTreeSet, fs};

/// Which namespaces a process is in, by the kernel's inode numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Namespaces(Vec<(Wall, String)>);

const NAMESPACES: [(Wall, &str); 7] = [
    (Wall::UserNamespace, "user"),
    (Wall::MountNamespace, "mnt"),
    (Wall::PidNamespace, "pid"),
    (Wall::NetNamespace, "net"),
    (Wall::IpcNamespace, "ipc"),
    (Wall::UtsNamespace, "uts"),
    (Wall::CgroupNamespace, "cgroup"),
];

impl Namespaces {
    /// Reads /proc/self/ns. What cannot be read is left out, and so counts as shared.
    pub(crate) fn of_self() -> Self {
        let read = |name: &str| fs::read_link(format!("/proc/self/ns/{name}")).ok();
        let known = NAMESPACES
            .iter()
            .filter_map(|(wall, name)| Some((*wall, read(name)?.to_string_lossy().into_owned())));
        Self(known.collect())
    }

    /// Those that differ from another process's.
    pub(crate) fn apart_from(&self, other: &Self) -> BTreeSet<Wall> {
        let differs = |(wall, id): &&(Wall, String)| {
            other.0.iter().find(|(theirs, _)| theirs == wall).is_some_and(|(_, theirs)| theirs != id)
        };
        self.0.iter().filter(differs).map(|(wall, _)| *wall).collect()
    }
}

/// The facts that were known before the last wall stood.
#[derive(Debug, Clone)]
pub(crate) struct EarlyFacts {
    /// What the walls are made of, or `none`.
    pub(crate) backend: &'static str,
    /// Namespaces that are not the warden's.
    pub(crate) namespaces: BTreeSet<Wall>,
    /// The Landlock ABI in force; 0 for none.
    pub(crate) landlock_abi: u32,
    /// What the kernel says of this process, where nothing of that changes any more.
    pub(crate) status: Option<ProcessStatus>,
    /// Whether our own filter of system calls was taken: a container's may have stood before.
    pub(crate) has_filter: bool,
    /// The name of the owner's own profile, where that is in force.
    pub(crate) custom: String,
    /// Whether the bounding set of capabilities is still the user's own.
    pub(crate) has_own_bounds: bool,
    /// Whether its programs may make Unix sockets between them.
    pub(crate) has_unix_sockets: bool,
    /// Limits that the kernel holds.
    pub(crate) limits: BTreeSet<Wall>,
    /// Limits that init or the holder watches.
    pub(crate) watched: BTreeSet<Wall>,
    /// Reasons for what is absent.
    pub(crate) absent: Vec<String>,
}

impl Default for EarlyFacts {
    fn default() -> Self {
        Self {
            backend: Shape::Walled.backend(),
            namespaces: BTreeSet::new(),
            landlock_abi: 0,
            status: None,
            has_filter: false,
            custom: String::new(),
            has_own_bounds: false,
            has_unix_sockets: false,
            limits: BTreeSet::new(),
            watched: BTreeSet::new(),
            absent: Vec::new(),
        }
    }
}

/// What the kernel says of this process (proc_pid_status(5)).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProcessStatus {
    is_filtered: bool,
    has_no_new_privileges: bool,
    /// Whether no execution could add a capability.
    has_no_bounds: bool,
    has_no_capabilities: bool,
}

impl ProcessStatus {
    /// Reads /proc/self/status. What cannot be read does not hold.
    pub(crate) fn of_self() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(str::trim)
                .unwrap_or_default()
        };
        let is_zero = |name: &str| !field(name).is_empty() && field(name).bytes().all(|digit| digit == b'0');
        Self {
            is_filtered: field("Seccomp") == "2",
            has_no_new_privileges: field("NoNewPrivs") == "1",
            has_no_bounds: is_zero("CapBnd"),
            has_no_capabilities: ["CapInh", "CapPrm", "CapEff", "CapAmb"].into_iter().all(is_zero),
        }
    }
}

/// Looks at this process.
pub(crate) fn look(isolation: &Isolation, known: EarlyFacts) -> Enforced {
    let mut walls = known.namespaces;
    let status = known.status.unwrap_or_else(ProcessStatus::of_self);
    if known.has_filter && status.is_filtered {
        walls.insert(Wall::Seccomp);
    }
    if status.has_no_new_privileges {
        walls.insert(Wall::NoNewPrivileges);
    }
    // Who was never root may not empty the bounding set. It bounds what an execution adds, and under
    // no_new_privs none adds anything.
    let is_bound = status.has_no_bounds || known.has_own_bounds && status.has_no_new_privileges;
    if is_bound && status.has_no_capabilities {
        walls.insert(Wall::NoCapabilities);
    }
    if known.landlock_abi > 0 {
        walls.insert(Wall::Landlock);
    }
    walls.extend(known.limits);
    Enforced {
        backend: known.backend.into(),
        profile: isolation.profile,
        custom: known.custom,
        walls,
        watched: known.watched,
        landlock_abi: known.landlock_abi,
        has_unix_sockets: known.has_unix_sockets,
        out_no_routes: 0,
        absent: known.absent,
    }
}

/// Compares what is with what a decision demands, and with what the owner said of the tier when the warden
/// started: that holds whatever the order of a decision says.
///
/// # Errors
/// Names every wall that is missing, and the reasons that are known.
pub(crate) fn check(
    enforced: &Enforced,
    isolation: &Isolation,
    (tier, least): (Tier, Level),
) -> Result<(), String> {
    let mut missing: Vec<String> =
        isolation.minimum.difference(&enforced.walls).map(|wall| wall.name().to_owned()).collect();
    if isolation.minimum.contains(&Wall::Landlock) && enforced.landlock_abi < isolation.landlock_abi {
        missing.push(format!("landlock ABI {} (here: {})", isolation.landlock_abi, enforced.landlock_abi));
    }
    let mut text = match tier.check(least, Level::of(enforced)) {
        _ if !missing.is_empty() => {
            format!("not run, because the policy demands walls that are missing here: {}", missing.join(", "))
        }
        Ok(()) => return Ok(()),
        Err(refusal) => refusal,
    };
    for reason in &enforced.absent {
        text.push_str("; ");
        text.push_str(reason);
    }
    text.push_str("; `bailey doctor` says how to get them");
    Err(text)
}
