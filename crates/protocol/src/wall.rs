//! What the walls are made of, what a decision demands of them, and what was enforced.

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
    /// What compilers, interpreters, package builds and local servers need.
    #[default]
    Standard,
    /// The same, and asking which network interfaces and routes there are (netlink).
    StandardNet,
    /// A list that the owner wrote.
    Custom,
}

impl Profile {
    /// Those with a list of their own, the smallest first.
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

    /// The named one that people call so; `basic` is `strict`, `advanced` is `standard`.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "basic" => Some(Self::Strict),
            "advanced" => Some(Self::Standard),
            _ => Self::NAMED.into_iter().find(|profile| profile.name() == name),
        }
    }

    /// Whether who was granted this one may have that one: the same, or a smaller one with a list of its own.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self == other || self != Self::Custom && other < self
    }
}

/// The isolation that a decision demands. Below it the effect does not run.
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
        }
    }
}

/// What the walls of one effect were, as read back from the kernel where it tells.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Enforced {
    /// The backend, such as `native`.
    pub backend: String,
    /// The profile of system calls.
    pub profile: Profile,
    /// The name of the owner's own profile; empty for the others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub custom: String,
    /// What stood.
    pub walls: BTreeSet<Wall>,
    /// What could only be watched: a breach ends the tree within two seconds.
    pub watched: BTreeSet<Wall>,
    /// The Landlock ABI in force; 0 when there was none.
    pub landlock_abi: u32,
    /// Whether its programs may make Unix sockets between them.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub has_unix_sockets: bool,
    /// `OutNoRoutes` of the sandbox's own network namespace (/proc/net/snmp): packets that found no way out.
    #[serde(with = "decimal")]
    pub out_no_routes: u64,
    /// What was wanted and absent, each with its reason.
    pub absent: Vec<String>,
}
