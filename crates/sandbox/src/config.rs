//! What the walls are told once, by the composition root: the host's facts and the owner's choices.

use crate::seccomp::Calls;
use bailey_protocol::{Command, Isolation, SessionId, Tier, Tiers, Wall, WsPath};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

/// What holds for every sandbox of one home. The warden gets it when it starts; it reads no environment
/// itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Config {
    /// The user's home directory on the host, absolute. Inside, a private directory stands in its place.
    pub user_home: PathBuf,
    /// The host's PATH. What of it exists inside is kept, in its order.
    pub path: String,
    /// The locale inside; none means `C.UTF-8`.
    pub locale: Option<String>,
    /// Directories that the owner lets every sandbox with programs read, absolute and canonical. Files in
    /// them that look like secrets are masked, and places that no sandbox may see are not shown at all.
    #[serde(default)]
    pub reads: Vec<PathBuf>,
    /// Names of secret-looking files, in gitignore syntax, relative to a workspace's root.
    pub masks: Vec<String>,
    /// The certificate authority of the network door, as PEM text (RFC 7468): trusted by commands that have a
    /// way to it.
    #[serde(default)]
    pub authority: Option<String>,
    /// The system's configuration of git inside, as text: the person's name and e-mail, below the
    /// repository's own configuration.
    #[serde(default)]
    pub git: Option<String>,
    /// Variables for every command, such as git's author; a command's own come on top.
    pub env: BTreeMap<String, String>,
    /// The sessions that sandboxes may be made for. The warden learns of no other later.
    #[serde(default)]
    pub sessions: BTreeMap<SessionId, Lease>,
    /// Absolute places that a decision's extra reads may not be, lie in or hold, whatever the runtime says.
    #[serde(default)]
    pub hidden: Vec<PathBuf>,
    /// The same below the user's home, as globs without a leading slash.
    #[serde(default)]
    pub hidden_in_home: Vec<String>,
    /// The agent's own file, absolute: the one file that the runtime may have changed outside of every
    /// sandbox. None where no agent works.
    #[serde(default)]
    pub agent_file: Option<PathBuf>,
    /// The system calls of commands: no command gets another list, or a larger one.
    #[serde(default)]
    pub calls: Calls,
    /// Hundredths of a processor that one command may use in all, where control groups can enforce it.
    pub cpu_percent: Option<u32>,
    /// Bytes that a command leaves free on the disk of its session's folder; `None` for 1 GiB or a twentieth
    /// of the disk, the smaller.
    #[serde(default)]
    pub reserve_bytes: Option<u64>,
    /// The least isolation of each tier: nothing runs behind less, whatever an order says.
    #[serde(default)]
    pub tiers: Tiers,
    /// Walls to leave away. Only tests set it: to prove that what is missing is refused, and as the control
    /// of an attack. A wall that is left away is reported as absent like any other.
    #[serde(default)]
    pub without: BTreeSet<Wall>,
    /// Whether a command runs although [`Config::without`] leaves less than was demanded of its walls: the
    /// control of an attack.
    #[cfg(feature = "controls")]
    #[serde(default)]
    pub accept: bool,
    /// Whether the warden believes the runtime: the control of a forged request.
    #[cfg(feature = "controls")]
    #[serde(default)]
    pub trusting: bool,
    /// Whether directories of the host are bound, and not shown through overlays: the control of a connection
    /// to a socket in one.
    #[cfg(feature = "controls")]
    #[serde(default)]
    pub binds: bool,
    /// The step of a change of the agent's own file at which everything ends, as by kill -9.
    #[cfg(feature = "controls")]
    #[serde(default)]
    pub crash_at: Option<String>,
}

/// What one session has of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Where it works.
    pub yard: Yard,
    /// Whose code runs there.
    pub tier: Tier,
    /// Masked files of the project that the human revealed, and directories of such, canonical.
    pub revealed: BTreeSet<WsPath>,
    /// Whether a human is there whom a card may ask to reveal another one. The warden sees no cards: where
    /// this holds, it believes the runtime about masked files of the project.
    pub is_attended: bool,
    /// Whether nothing of it is kept: the warden removes the session's folder at its own end.
    pub is_scratch: bool,
    /// What stands between it and the host.
    #[serde(default)]
    pub shape: Shape,
    /// The one program that it is for, where it is no session's.
    pub guest: Option<Guest>,
    /// Directories of installed programs that its peers read, canonical. They may lie where nothing else is
    /// shown of.
    #[serde(default)]
    pub programs: BTreeSet<PathBuf>,
}

/// What stands between a session and the host, as its owner said before it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Shape {
    /// Every wall, and the project beneath a layer.
    #[default]
    Walled,
    /// Landlock and a list of system calls, where there can be no namespaces: over a private copy of the
    /// project.
    Copied,
    /// Nothing: what runs is the warden's user, in the project itself.
    Direct,
}

/// Why root gets no session behind Landlock alone.
pub const NOT_FOR_ROOT: &str = "is not for root: it judges neither modes nor times, and root could change those of any file of this machine; \
                                run it as an ordinary user (in a container: --user)";

impl Shape {
    /// Whether it does without this wall.
    pub(crate) fn lacks(self, wall: Wall) -> bool {
        match self {
            Self::Walled => false,
            // The kernel counts a user's processes, not a session's, where no namespace tells them apart.
            Self::Copied => !matches!(
                wall,
                Wall::Seccomp
                    | Wall::NoNewPrivileges
                    | Wall::NoCapabilities
                    | Wall::Landlock
                    | Wall::CpuLimit
                    | Wall::MemoryLimit
                    | Wall::DiskLimit
            ),
            // Setuid programs still give no privileges.
            Self::Direct => wall != Wall::NoNewPrivileges,
        }
    }

    /// What the walls are called in an outcome.
    #[must_use]
    pub fn backend(self) -> &'static str {
        match self {
            Self::Walled => "native",
            Self::Copied => "landlock",
            Self::Direct => "none",
        }
    }
}

/// A program that lives beside the sessions and answers the runtime, such as an extension of the policy:
/// behind walls of its own, over an empty project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guest {
    /// What runs; nothing else does.
    pub command: Command,
    /// Its walls, with the files of its own that it reads.
    pub isolation: Isolation,
    /// The variables that hold stand-ins of the owner's keys, of those that commands have.
    #[serde(default)]
    pub variables: BTreeSet<String>,
}

impl From<Yard> for Lease {
    /// A session to be kept, that nothing was revealed to and that nobody watches.
    fn from(yard: Yard) -> Self {
        let tier = Tier::Internal;
        Self {
            yard,
            tier,
            revealed: BTreeSet::new(),
            is_attended: false,
            is_scratch: false,
            shape: Shape::Walled,
            guest: None,
            programs: BTreeSet::new(),
        }
    }
}

/// Where one session works.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Yard {
    /// The project, absolute and canonical: the lower layer, at the same path inside.
    pub project: PathBuf,
    /// The session's own folder, absolute and canonical, on a file system that overlays accept as an upper
    /// layer. The warden makes `upper`, `work`, `home`, `tmp` and `backups` in it.
    pub folder: PathBuf,
    /// Another absolute path by which the person knows the project, for it leads there through a link of the
    /// host's: inside, a link stands there.
    #[serde(default)]
    pub linked: Option<PathBuf>,
    /// A directory that is the home inside, absolute and canonical, where that is not the folder's own: what
    /// a program leaves there is there at its next start.
    #[serde(default)]
    pub home: Option<PathBuf>,
}

impl Yard {
    /// The upper layer: what the session changed.
    #[must_use]
    pub fn upper(&self) -> PathBuf {
        self.folder.join("upper")
    }

    /// Where git makes ready what of the session's commits goes to the project.
    #[must_use]
    pub fn handover(&self) -> PathBuf {
        self.folder.join("handover")
    }

    /// Where scans keep the texts that the project held when the session first changed them.
    #[must_use]
    pub fn bases(&self) -> PathBuf {
        self.folder.join("bases")
    }

    /// The session's own copy of the project, where it has one in the place of an overlay.
    #[must_use]
    pub fn copy(&self) -> PathBuf {
        self.folder.join("copy").join(self.project.file_name().unwrap_or_default())
    }

    /// What git reads of the system's, where the session has no /etc of its own.
    pub(crate) fn git(&self) -> PathBuf {
        self.folder.join("gitconfig")
    }

    /// What of the project was copied, as it was then.
    #[must_use]
    pub fn copied(&self) -> PathBuf {
        self.folder.join("copied")
    }

    /// Where applies keep what they replaced.
    #[must_use]
    pub fn backups(&self) -> PathBuf {
        self.folder.join("backups")
    }
}
