//! The warden: the process that makes every sandbox.
//!
//! It is this program executed again, so that it inherits no memory of the runtime, and it stays
//! single-threaded, so that it may fork. It parses nothing but what the runtime sends, and grants nothing but
//! what it was told of at the start (`charter.rs`). The chain is: runtime → warden → one *holder* for each
//! session and view (user, mount and network namespace, the root, the overlay, which is mounted anew whenever
//! nothing lives that looked at it) → one *init* for each effect (pid, mount, ipc, uts and cgroup namespace)
//! → the payload. While nothing lives in a holder, the processes of its next effect wait there. When any link
//! goes, all below it go: the runtime's end closes the control sockets, and every child asked for SIGKILL at
//! its parent's end. (The warden itself does not ask for that: the kernel sends it when the *thread* that
//! started it ends.)

mod container;
mod held;
mod holder;
mod init;
mod own;
mod payload;
mod probe;
mod root;
mod scratch;
mod server;
mod shown;
mod watch;
mod way;

pub use own::read_own;
pub use probe::can_make_namespaces;
pub use scratch::remove;

use crate::{
    cgroup,
    charter::Hidden,
    config::{Config, Lease, Shape},
    facts::Namespaces,
    mask,
    plan::Plan,
    seccomp::{self, Sockets},
    sys,
    toolchain::{OF_SETTINGS, SETTINGS},
    wire::{self, Streams, Wish},
};
use bailey_protocol::{Profile, SessionId, Wall};
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{self, Write as _},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
    process::{Child, ExitCode, Stdio},
    time::Duration,
};

/// The private first argument that turns this program into the warden.
const ARGUMENT: &str = "__warden";

/// The first packet, and the answer to it. The configuration comes with it in a memfd.
#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    version: u32,
}

/// What the runtime asks of the warden.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Start a sandbox; five descriptors come with it.
    Start(Wish),
    /// Make ready what a session's first sandboxes will need.
    Prepare {
        /// Its name.
        session: SessionId,
    },
    /// Give up what is kept ready for a session.
    Forget {
        /// Its name.
        session: SessionId,
    },
    /// Say whether a session's layer holds nothing, once what ran there is gone; one descriptor comes with
    /// it, where that [`Layer`](wire::Layer) goes.
    Look {
        /// Its name.
        session: SessionId,
    },
    /// Say whether, besides, the project has nothing at a path below it; one descriptor comes with it, where
    /// that goes.
    Lacks {
        /// The session's name.
        session: SessionId,
        /// The path, relative to the project.
        below: String,
    },
    /// Change the agent's own file; two descriptors come with it: a memfd with the [`Swap`](wire::Swap), and
    /// where the [`Swapped`](wire::Swapped) goes.
    Swap,
}

const VERSION: u32 = 1;

/// The longest that a warden may take to say that it is ready.
const START_MAX: Duration = Duration::from_secs(30);

/// What every holder and init knows, worked out once.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) config: Config,
    pub(crate) plan: Plan,
    pub(crate) hidden: Hidden,
    pub(crate) masks: mask::Masks,
    /// Those, and names of settings, for the person's own programs.
    pub(crate) settings: mask::Masks,
    /// The owner's own list of system calls, compiled.
    pub(crate) calls: [Vec<sys::Instruction>; 2],
    /// That of commands where Landlock and this list stand alone, compiled.
    pub(crate) alone: Vec<sys::Instruction>,
    /// The warden's own namespaces, which no sandbox may share.
    pub(crate) namespaces: Namespaces,
    /// The warden's effective uid and gid.
    pub(crate) user: (u32, u32),
    /// Whether the warden lives in a container.
    pub(crate) is_in_container: bool,
    /// The setting that disables namespaces here, which no holder sees.
    pub(crate) disabled: Option<String>,
}

/// The warden's process, and the runtime's end of the socket to it.
#[derive(Debug)]
struct Process {
    socket: OwnedFd,
    child: Child,
}

/// The runtime's end of the warden.
#[derive(Debug)]
pub struct Warden {
    process: Process,
    sessions: BTreeMap<SessionId, Lease>,
    masks: Vec<String>,
}

/// A warden that was executed and has not said yet that it is ready: whoever starts it has other things to do
/// meanwhile.
#[derive(Debug)]
pub struct Coming(Process);

/// The warden could not be started.
#[derive(Debug, thiserror::Error)]
#[error("the maker of sandboxes did not start: {0}")]
pub struct StartError(#[from] io::Error);

impl Warden {
    /// Starts the warden: `exe`, whose `main` calls [`warden_main`] first.
    ///
    /// # Errors
    /// When it cannot be executed or does not take its configuration.
    pub fn start(exe: &Path, config: &Config) -> Result<Self, StartError> {
        let coming = Coming::execute(exe)?;
        coming.tell(config)?;
        coming.ready(config)
    }

    /// Sends an order for a sandbox.
    pub(crate) fn make(&self, wish: Wish, streams: &Streams) -> io::Result<()> {
        let (tail, fds) = streams.borrow();
        self.send(&Order::Start(wish), tail, &fds)
    }

    /// Sends another order.
    pub(crate) fn order(&self, order: &Order, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.send(order, &[], fds)
    }

    fn send(&self, order: &Order, tail: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        wire::send_with(self.process.socket.as_fd(), order, tail, fds).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                io::Error::other("the maker of sandboxes has ended; start Bailey again")
            }
            _ => error,
        })
    }

    /// What it was told of each session.
    pub(crate) fn sessions(&self) -> &BTreeMap<SessionId, Lease> {
        &self.sessions
    }

    /// The names of files that are masked.
    pub(crate) fn masks(&self) -> &[String] {
        &self.masks
    }

    /// The warden's process id on the host.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.child.id()
    }
}

/// Lets this process, the warden and its holders have as many descriptors as they may. A look at a folder
/// opens the directories in one another's place. And whoever may have no more than what commands of the same
/// user have put on their way to others can send none (unix(7), ETOOMANYREFS); these stay near the lower
/// limit that each command has.
fn reach_far() {
    let hard = getrlimit(Resource::Nofile).maximum;
    // Where it fails there are as many as before.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard });
}

impl Coming {
    /// Executes `exe`, whose `main` calls [`warden_main`] first.
    ///
    /// # Errors
    /// When it cannot be executed.
    pub fn execute(exe: &Path) -> Result<Self, StartError> {
        cgroup::settle_group();
        reach_far();
        let (ours, theirs) = wire::pair()?;
        let mut command = std::process::Command::new(exe);
        command.arg(ARGUMENT).env_clear();
        #[cfg(feature = "controls")]
        match bailey_protocol::broken::broken("environment") {
            true => command.envs(std::env::vars()),
            false => {
                command.envs(std::env::vars().filter(|(name, _)| name == bailey_protocol::broken::VARIABLE))
            }
        };
        let child = command
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()?;
        Ok(Self(Process { socket: ours, child }))
    }

    /// Tells it all that it may ever grant.
    ///
    /// # Errors
    /// When a mask or a hidden place is no pattern, or it has ended.
    pub fn tell(&self, config: &Config) -> Result<(), StartError> {
        // Looked at here too, where the error reaches somebody.
        mask::read(&config.masks)?;
        Hidden::new(config)?;
        let sealed = wire::sealed(&serde_json::to_vec(config).map_err(io::Error::other)?)?;
        let told = wire::send(self.0.socket.as_fd(), &Hello { version: VERSION }, &[sealed.as_fd()]);
        told.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => early(),
            _ => StartError(error),
        })
    }

    /// Waits until it takes orders by `config`, which it was told.
    ///
    /// # Errors
    /// When it ends before, or is another program: one that never becomes the warden would take orders and
    /// lose them.
    pub fn ready(self, config: &Config) -> Result<Warden, StartError> {
        let Self(process) = self;
        timeout(&process.socket, Some(START_MAX))?;
        match wire::receive::<Hello>(process.socket.as_fd())? {
            Some((Hello { version: VERSION }, _)) => {}
            Some(_) => return Err(StartError(io::Error::other("it is of another version"))),
            None => return Err(early()),
        }
        timeout(&process.socket, None)?;
        Ok(Warden { process, sessions: config.sessions.clone(), masks: config.masks.clone() })
    }
}

fn early() -> StartError {
    StartError(io::Error::other("it ended before it was ready"))
}

impl Drop for Process {
    /// Closes the warden's socket, which ends it and all sandboxes, and waits for that.
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        drop(self.child.wait());
    }
}

/// Becomes the warden if the program was executed as one: the first call of `main`, before any thread or
/// runtime. `None` means that the program was meant.
pub fn warden_main(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let is_warden = args.nth(1).is_some_and(|first| first == ARGUMENT);
    let is_probe = args.next().is_some_and(|second| second == probe::PROBE);
    if is_warden && is_probe {
        return Some(probe::main());
    }
    is_warden.then(|| match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("bailey warden: {error}\n"));
            ExitCode::FAILURE
        }
    })
}

fn run() -> io::Result<()> {
    sys::close_all_but(&[0, 1, 2])?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    sys::assert_one_thread()?;
    // So that it can wait for what a killed holder leaves.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    // A Ctrl-C at the terminal is for the runtime, which ends what runs in order; it must not take the walls
    // down.
    rustix::process::setsid()?;
    // Standard input must be the socket only as long as it takes to get here.
    let socket = sys::adopt(0)?;
    let Some((hello, mut fds)) = wire::receive::<Hello>(socket.as_fd())? else { return Ok(()) };
    if hello.version != VERSION {
        return Err(io::Error::other("the runtime speaks another version"));
    }
    let config = fds.pop_front().ok_or_else(|| io::Error::other("the configuration is missing"))?;
    let ground = Ground::new(wire::unseal(config)?)?;
    wire::send(socket.as_fd(), &Hello { version: VERSION }, &[])?;
    server::Server::new(socket, ground)?.serve()
}

impl Ground {
    fn new(config: Config) -> io::Result<Self> {
        // Compiled before anything forks, so that no sandbox does it again.
        for profile in Profile::NAMED {
            for sockets in [Sockets::Network, Sockets::Unix] {
                seccomp::program(profile, sockets);
            }
        }
        seccomp::worker();
        let hidden = Hidden::new(&config)?;
        let with = |names: &[&str]| -> Vec<String> {
            config.masks.iter().cloned().chain(names.iter().map(|name| (*name).to_owned())).collect()
        };
        let unseen = mask::compile(&with(&[SETTINGS, OF_SETTINGS].concat()))?;
        Ok(Self {
            plan: Plan::new(&config, &hidden, &unseen),
            settings: mask::compile(&with(SETTINGS))?,
            hidden,
            masks: mask::compile(&config.masks)?,
            calls: [Sockets::Network, Sockets::Unix].map(|sockets| config.calls.compile(sockets)),
            alone: config.calls.compile_alone(),
            namespaces: Namespaces::of_self(),
            user: (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
            is_in_container: container::is_here(),
            disabled: probe::disabled(),
            config,
        })
    }

    /// A reason why there is no sandbox, with the way out where it is the container's doing.
    fn explained(&self, reason: String) -> String {
        container::explained(reason, self.is_in_container, self.user.0 == 0)
    }

    /// What stands between a session and the host.
    fn shape(&self, session: SessionId) -> Shape {
        self.config.sessions.get(&session).map_or(Shape::Walled, |lease| lease.shape)
    }

    /// Whether a session's sandboxes do without this wall.
    fn lacks(&self, session: SessionId, wall: Wall) -> bool {
        self.lacks_in(self.shape(session), wall)
    }

    /// Whether sandboxes of this shape do without this wall.
    fn lacks_in(&self, shape: Shape, wall: Wall) -> bool {
        shape.lacks(wall) || self.config.without.contains(&wall)
    }

    /// Whether the bounding set of capabilities stays as it is: somebody who was never root and has no user
    /// namespace may not change it.
    fn keeps_bounds(&self, shape: Shape) -> bool {
        shape == Shape::Copied && self.user.0 != 0
    }

    /// Whether directories of the host are bound into a root, so that sockets in them can be connected to.
    fn binds(&self) -> bool {
        #[cfg(feature = "controls")]
        if bailey_protocol::broken::broken("overlay") {
            return true;
        }
        #[cfg(feature = "controls")]
        return self.config.binds;
        #[cfg(not(feature = "controls"))]
        false
    }

    /// Whether a test has it believe the runtime.
    fn is_trusting(&self) -> bool {
        #[cfg(feature = "controls")]
        return self.config.trusting;
        #[cfg(not(feature = "controls"))]
        false
    }
}

fn timeout(socket: &OwnedFd, after: Option<Duration>) -> io::Result<()> {
    use rustix::net::sockopt::{Timeout, set_socket_timeout};
    Ok(set_socket_timeout(socket, Timeout::Recv, after)?)
}

/// Writes to standard error; nobody is left to tell when that fails.
fn tell(text: &str) {
    drop(io::stderr().write_all(text.as_bytes()));
}
