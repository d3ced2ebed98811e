//! Self-confinement: the process that parses what the world sends binds itself, before it hears the first of
//! it.
//!
//! Landlock leaves it the files that it is told of here, the ports of its servers, and signals to nobody;
//! seccomp leaves it what `seccomp/own.rs` lists, so that it starts no process, and no Unix socket leads out
//! of it. What needs more than that is done by the warden, which was started before and parses nothing of the
//! world.
//!
//! The kernel binds a thread and what it starts from then on, so this comes before the first other thread.

use crate::{seccomp, sys};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

/// What the process keeps. What does not exist when it is bound stays out of reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Files to read, and directories to read below.
    pub reads: Vec<PathBuf>,
    /// Files to read and write, such as a database with its log.
    pub writes: Vec<PathBuf>,
    /// TCP ports to connect to.
    pub ports: BTreeSet<u16>,
}

/// What holds now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confined {
    /// The Landlock ABI in force.
    pub landlock_abi: u32,
    /// What the kernel is too old for, in words.
    pub absent: Vec<&'static str>,
}

/// The process could not be bound; it must not go on.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// The rest would stay unbound.
    #[error("this process cannot bind itself, because it has {0} threads already")]
    Threads(usize),
    /// No Landlock, or a step of it failed.
    #[error("this process cannot bind itself: {0}")]
    Landlock(String),
    /// A system call failed.
    #[error("this process cannot bind itself: {0}: {1}")]
    System(&'static str, std::io::Error),
}

/// The newest ABI whose rights are handled; an older kernel leaves out what it does not know.
const NEWEST: ABI = ABI::V9;

/// How long a thread that was joined may take to be gone.
const THREADS_GONE: Duration = Duration::from_secs(1);

/// Of the system, read at any time: certificates, how names are resolved, the libraries that resolving loads,
/// and what the process is told about itself.
const SYSTEM: &[&str] = &[
    "/etc/ca-certificates",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/nsswitch.conf",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/lib",
    "/lib64",
    "/proc/self",
    "/run/NetworkManager/resolv.conf",
    "/run/resolvconf",
    "/run/systemd/resolve",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/share/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/share/pki/ca-trust-source",
    "/var/lib/ca-certificates",
];

/// Devices; the terminal also takes its own ioctls.
const DEVICES: &[&str] = &["/dev/null", "/dev/tty"];

/// Name servers are asked over TCP when an answer is long.
const DNS: u16 = 53;

impl Confinement {
    /// Binds this process, for good.
    ///
    /// # Errors
    /// When it has other threads, or the kernel has no Landlock or no seccomp. What was bound stays bound.
    pub fn bind(&self) -> Result<Confined, ConfineError> {
        wait_for_one_thread()?;
        self.bind_thread()
    }

    /// Tries all of it on a thread that ends then: what would hold. This process stays as it is.
    ///
    /// # Errors
    /// Those of [`Confinement::bind`].
    pub fn rehearse(&self) -> Result<Confined, ConfineError> {
        let bound = thread::scope(|scope| scope.spawn(|| self.bind_thread()).join());
        bound.unwrap_or_else(|_| Err(ConfineError::Landlock("the attempt did not come to an end".into())))
    }

    fn bind_thread(&self) -> Result<Confined, ConfineError> {
        rustix::thread::set_no_new_privs(true)
            .map_err(|error| ConfineError::System("no_new_privs", error.into()))?;
        let landlock_abi = self.landlock()?;
        sys::set_seccomp_filter(&seccomp::own(), sys::SeccompSecret::default())
            .map_err(|error| ConfineError::System("seccomp", error))?;
        let newer = [
            (3, "truncating files outside of its own"),
            (4, "connecting to other TCP ports"),
            (5, "ioctls of other devices"),
        ];
        let absent = newer.into_iter().filter(|(abi, _)| landlock_abi < *abi).map(|(_, what)| what).collect();
        Ok(Confined { landlock_abi, absent })
    }

    fn landlock(&self) -> Result<u32, ConfineError> {
        let status = self.rules().map_err(|error| ConfineError::Landlock(format!("landlock: {error}")))?;
        match (status.ruleset, status.landlock) {
            (RulesetStatus::NotEnforced, _) => {
                Err(ConfineError::Landlock("landlock: the kernel does not enforce it".into()))
            }
            (_, LandlockStatus::Available { effective_abi, .. }) => {
                Ok(u32::try_from(effective_abi as i32).unwrap_or(0))
            }
            _ => Err(ConfineError::Landlock(
                "the kernel has no Landlock, or it is not among the boot parameter `lsm=`; Linux 5.13 or newer has it"
                    .into(),
            )),
        }
    }

    fn rules(&self) -> Result<landlock::RestrictionStatus, RulesetError> {
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let write = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
        let mut ruleset = Ruleset::default()
            .handle_access(AccessFs::from_all(NEWEST))?
            .handle_access(AccessNet::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?
            .create()?;
        for path in SYSTEM.iter().map(Path::new).chain(self.reads.iter().map(PathBuf::as_path)) {
            ruleset = allow(ruleset, path, read)?;
        }
        for path in &self.writes {
            ruleset = allow(ruleset, path, write)?;
        }
        for path in DEVICES.iter().map(Path::new) {
            ruleset = allow(ruleset, path, write | AccessFs::IoctlDev)?;
        }
        for port in self.ports.iter().chain([&DNS]) {
            ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
        // It was set before, where the failure is told apart.
        ruleset.no_new_privs(false).restrict_self()
    }
}

/// Allows `access` at a path and below; of a file, what of it files can have. What is not there is left out.
fn allow(
    ruleset: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(fd) = PathFd::new(path) else { return Ok(ruleset) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    ruleset.add_rule(PathBeneath::new(fd, access))
}

/// A thread that was joined may be listed for a moment still.
fn wait_for_one_thread() -> Result<(), ConfineError> {
    let begin = Instant::now();
    loop {
        match sys::threads().map_err(|error| ConfineError::System("/proc/self/task", error))? {
            1 => return Ok(()),
            count if begin.elapsed() > THREADS_GONE => return Err(ConfineError::Threads(count)),
            _ => thread::sleep(Duration::from_micros(200)),
        }
    }
}
