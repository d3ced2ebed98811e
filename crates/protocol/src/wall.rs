//! The parts of the walls, the parts that a decision demands, and the parts that were enforced.

use crate::{WsPath, number::decimal};
use alloc::{collections::BTreeSet, string::String, vec::Vec};
use core::fmt;
use serde::{Deserialize, Serialize};

/// One part of the walls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the kernel's own")]
pub enum Wall {
    UserNamespace,
    MountNamespace,
    PidNamespace,
    NetNamespace,
    IpcNamespace,
    UtsNamespace,
    CgroupNamespace,
    Seccomp,
    NoNewPrivileges,
    NoCapabilities,
    Landlock,
    MemoryLimit,
    PidsLimit,
    CpuLimit,
    DiskLimit,
}

impl Wall {
    /// Its name in the journal and on screens.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UserNamespace => "user namespace",
            Self::MountNamespace => "mount namespace",
            Self::PidNamespace => "pid namespace",
            Self::NetNamespace => "net namespace",
            Self::IpcNamespace => "ipc namespace",
            Self::UtsNamespace => "uts namespace",
            Self::CgroupNamespace => "cgroup namespace",
            Self::Seccomp => "seccomp",
            Self::NoNewPrivileges => "no_new_privs",
            Self::NoCapabilities => "no capabilities",
            Self::Landlock => "landlock",
            Self::MemoryLimit => "memory limit",
            Self::PidsLimit => "pids limit",
            Self::CpuLimit => "cpu limit",
            Self::DiskLimit => "disk limit",
        }
    }
}

impl fmt::Display for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The named lists of system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// About 80 calls: computing on files and pipes it was given. No sockets.
    Strict,
    /// The calls that compilers, interpreters, package builds and local servers need.
    #[default]
    Standard,
    /// The standard calls, and queries for the network interfaces and routes (netlink).
    StandardNet,
    /// A list that the owner wrote.
    Custom,
}

impl Profile {
    /// The profiles with a list of their own, the smallest first.
    pub const NAMED: [Self; 3] = [Self::Strict, Self::Standard, Self::StandardNet];

    /// Its name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Standard => "standard",
            Self::StandardNet => "standard-net",
            Self::Custom => "custom",
        }
    }

    /// The profile that people call by this name; `basic` is `strict`, `advanced` is `standard`.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "basic" => Some(Self::Strict),
            "advanced" => Some(Self::Standard),
            _ => Self::NAMED.into_iter().find(|profile| profile.name() == name),
        }
    }

    /// Whether a grant of this profile also permits `other`: the same profile, or a smaller one with a list
    /// of its own.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self == other || self != Self::Custom && other < self
    }
}

/// The isolation that a decision demands. With less isolation the effect does not run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Isolation {
    /// The system calls allowed.
    pub profile: Profile,
    /// The walls that must stand.
    pub minimum: BTreeSet<Wall>,
    /// The lowest Landlock ABI accepted.
    pub landlock_abi: u32,
    /// Paths outside the workspace that this one effect may read, canonical.
    pub extra_reads: Vec<WsPath>,
    /// Masked files of the workspace that the human revealed for this session.
    pub revealed: Vec<WsPath>,
    /// Places that this effect sees and cannot change, each a mount of its own: the workspace, the home, the
    /// directories of temporary files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchanged: Vec<WsPath>,
}

impl Default for Isolation {
    /// Standard profile; user, mount, pid, net and ipc namespaces, seccomp, no_new_privs, no capabilities and
    /// Landlock of any ABI.
    fn default() -> Self {
        Self {
            profile: Profile::Standard,
            minimum: BTreeSet::from([
                Wall::UserNamespace,
                Wall::MountNamespace,
                Wall::PidNamespace,
                Wall::NetNamespace,
                Wall::IpcNamespace,
                Wall::Seccomp,
                Wall::NoNewPrivileges,
                Wall::NoCapabilities,
                Wall::Landlock,
            ]),
            landlock_abi: 1,
            extra_reads: Vec::new(),
            revealed: Vec::new(),
            unchanged: Vec::new(),
        }
    }
}

/// The walls of one effect, as read back from the kernel where the kernel tells.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Enforced {
    /// The backend, such as `native`.
    pub backend: String,
    /// The profile of system calls.
    pub profile: Profile,
    /// The name of the owner's own profile; empty for the others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub custom: String,
    /// The walls that were in force.
    pub walls: BTreeSet<Wall>,
    /// The walls that could only be watched: a breach ends the process tree within two seconds.
    pub watched: BTreeSet<Wall>,
    /// The Landlock ABI in force; 0 without Landlock.
    pub landlock_abi: u32,
    /// Whether its programs may make Unix sockets between them.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub has_unix_sockets: bool,
    /// `OutNoRoutes` of the sandbox's own network namespace (/proc/net/snmp): packets that found no way out.
    #[serde(with = "decimal")]
    pub out_no_routes: u64,
    /// The parts that were wanted and absent, each with its reason.
    pub absent: Vec<String>,
}
