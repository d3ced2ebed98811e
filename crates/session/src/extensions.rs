//! The owner's programs that answer: extensions of the policy, which judge, and peers, which have tools.
//!
//! Their files are read at the session's beginning: the digest of an extension is a part of the policy, and
//! that of a peer is kept. Each gets a place of its own inside the walls, which the warden grants to no other
//! program. A peer that sees the project runs in the session's own place instead.

use crate::{
    compose::new_session,
    config::{Approvals, Config, Declared, McpServer, Peer, ProgramCalls, Sight},
    home::Home,
    mcp::{Folder, Install, spelled},
    project,
};
use anyhow::{Context as _, Result};
use bailey_kernel::{HostGlob, Seal};
use bailey_mcp::Client;
use bailey_peers::{Effects, Employed, Runner, ToolsOf, Work};
use bailey_policy::{Extension, INSIDE, Policy};
use bailey_protocol::{Command, Digest, Isolation, Limits, SessionId, Tier, WsPath};
use bailey_sandbox::{Guest, Lease, Walls, Yard};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// The home and the temporary files of a peer that sees the project: in its own memory.
const OWN_PLACE: &str = "/dev/shm";

/// The most bytes of a server's state.
const STATE_BYTES_MAX: u64 = 1 << 30;
/// A longer file, such as a whole interpreter, counts by its length alone.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What has a say beside the rule files, as it was when a process began: extensions, and how much a human
/// looks at.
#[derive(Debug, Clone, Default)]
pub struct Extensions {
    all: Vec<(Declared, ProgramFiles)>,
    approvals: Approvals,
}

/// The part of a declaration that is about its program.
#[derive(Debug, Clone)]
struct ProgramDeclaration {
    command: Vec<String>,
    files: Vec<PathBuf>,
    profile: ProgramCalls,
    /// Further parts of the declaration that its digest covers.
    more: Vec<Vec<u8>>,
}

/// A program as its files are.
#[derive(Debug, Clone)]
struct ProgramFiles {
    /// Its command, with canonical paths.
    argv: Vec<String>,
    profile: ProgramCalls,
    /// Its own files, canonical: what it sees besides the programs of the system.
    reads: BTreeSet<PathBuf>,
    digest: Digest,
}

impl Extensions {
    /// Reads the files of what was declared.
    pub fn read(config: &Config) -> Self {
        let found = |declared: &Declared| (declared.clone(), ProgramFiles::of(&of_extension(declared)));
        let all = config.extensions.iter().map(found).collect();
        Self { all, approvals: config.approvals.clone() }
    }

    /// How much a human looks at.
    pub(crate) fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// The policy in which they have a say.
    pub fn join(&self, policy: Policy) -> Policy {
        let of = |(declared, found): &(Declared, ProgramFiles)| Extension {
            name: declared.name.clone(),
            kinds: declared.kinds.clone(),
            late: declared.late,
            program: found.digest,
        };
        self.approvals.join(policy).with_extensions(self.all.iter().map(of).collect())
    }
}

/// The programs of a session.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    /// What the warden is told of them.
    pub(crate) leases: BTreeMap<SessionId, Lease>,
    /// Directories of installed programs that the session's lease shows to its peers.
    pub(crate) installed: BTreeSet<PathBuf>,
    /// Remarks for a person.
    pub(crate) remarks: Vec<String>,
    employed: Vec<Employed>,
    /// Their own files, which are looked at again before one is started again.
    files: BTreeSet<PathBuf>,
}

impl Programs {
    /// A place for each extension and, in a session that runs turns, for each peer. The warden removes the
    /// places at its end.
    ///
    /// # Errors
    /// When one cannot be made.
    pub(crate) fn settle(
        home: &Home,
        extensions: &Extensions,
        (peers, servers): (&BTreeMap<String, Peer>, &BTreeMap<String, McpServer>),
        (session, project): (SessionId, &Path),
        config: &Config,
    ) -> Result<Self> {
        let mut settled = Self::default();
        for (declared, found) in &extensions.all {
            let (lease, place) =
                settled.place(home, declared.tier, None, |place| found.guest(place, Vec::new()))?;
            let words = of_extension(declared);
            settled.files.extend(found.reads.iter().cloned());
            settled.employed.push(Employed {
                name: declared.name.clone(),
                lease,
                guest: place,
                within: Duration::from_millis(declared.within_ms),
                look: Arc::new(move || ProgramFiles::of(&words).digest),
                work: Work::Judge,
            });
        }
        for (name, peer) in peers {
            let words = of_peer(peer);
            let (found, hosts) = (ProgramFiles::of(&words), peer.host_globs());
            let guest = |place: &Path| found.guest(place, hosts.clone());
            let is_within = peer.workspace != Sight::None;
            let (lease, mut guest) = match is_within {
                true => (session, guest(project)),
                false => settled.place(home, peer.tier, None, guest)?,
            };
            if is_within {
                within(home, (peer.workspace, project), &mut guest);
            }
            settled.files.extend(found.reads.iter().cloned());
            settled.employed.push(Employed {
                name: name.clone(),
                lease,
                guest,
                within: Duration::from_secs(peer.seconds),
                look: Arc::new(move || ProgramFiles::of(&words).digest),
                work: Work::Peer {
                    declared: found.digest,
                    hosts,
                    keys: BTreeSet::new(),
                    tools: ToolsOf::Frames(Effects(peer.effects.clone())),
                    is_within,
                },
            });
        }
        for (name, server) in servers {
            // One that cannot be used keeps no session from its work.
            if let Err(error) = settled.server(home, (name, server), (session, project), config) {
                settled.remarks.push(format!("the MCP server `{name}` is not used: {error:#}"));
            }
        }
        Ok(settled)
    }

    /// A place for an MCP server, with its state as its home.
    fn server(
        &mut self,
        home: &Home,
        (name, server): (&str, &McpServer),
        (session, project): (SessionId, &Path),
        config: &Config,
    ) -> Result<()> {
        if let Some(trusted) = &server.trusted {
            let now = project::mcp_servers(project)?.map(|text| Digest::of(text.as_bytes()).to_string());
            if now.as_ref() != Some(trusted) {
                self.remarks.push(format!(
                    "the MCP server `{name}` is not used, for the project's `.mcp.json` has changed since you \
                     trusted it: `bailey mcp trust` looks at it again"
                ));
                return Ok(());
            }
        }
        let folder = Folder::of(home, name);
        folder.make()?;
        let approved = folder.approved()?;
        let program = server.package.as_ref().map(|_| folder.program());
        if server.package.is_some()
            && (server.lock.is_none() || folder.lock(&folder.program()) != server.lock)
        {
            let short: String = server.lock.iter().flat_map(|lock| lock.chars()).take(12).collect();
            self.remarks.push(format!(
                "the MCP server `{name}` is not used, for its program is another one than the entry in \
                 config.toml names (lock {short}): `bailey mcp update {name}` installs it anew"
            ));
            return Ok(());
        }
        if approved.is_empty() {
            let remark = format!(
                "the MCP server `{name}` is not used, for you have not agreed to its tools: `bailey mcp \
                 approve {name}`"
            );
            self.remarks.push(remark);
        }
        let words = of_server(server);
        let (found, hosts) = (ProgramFiles::of(&words), server.host_globs());
        let keys: Vec<_> = config.network.keys.iter().filter(|it| server.keys.contains(&it.secret)).collect();
        let guest = |place: &Path| {
            let mut guest = found.guest(place, hosts.clone());
            // The program's folder is shown as a whole; no path in it is followed outside of the walls.
            let argv = guest.command.argv.iter().map(|word| spelled(word, program.as_deref()));
            guest.command.argv = argv.collect();
            guest.variables = keys.iter().map(|key| key.variable.clone()).collect();
            let env =
                server.env.iter().map(|(name, value)| (name.clone(), spelled(value, program.as_deref())));
            guest.command.env = env.collect();
            guest.command.limits =
                Limits { disk_bytes: STATE_BYTES_MAX, memory_bytes: 2 << 30, pids: 256, ..limits() };
            guest
        };
        let is_within = server.workspace != Sight::None;
        let (lease, guest) = match is_within {
            true => {
                let mut guest = guest(project);
                within(home, (server.workspace, project), &mut guest);
                guest.isolation.extra_reads.extend(program.iter().map(|it| WsPath(it.display().to_string())));
                self.installed.extend(program.clone());
                (session, guest)
            }
            false => self.place(home, server.tier, Some((folder.state(), program.clone())), |place| {
                let mut guest = guest(place);
                guest.command.cwd = WsPath(home.user.display().to_string());
                guest
            })?,
        };
        let root = is_within.then(|| WsPath(project.display().to_string()));
        self.files.extend(found.reads.iter().cloned());
        self.employed.push(Employed {
            name: name.to_owned(),
            lease,
            guest,
            within: Duration::from_secs(server.seconds),
            look: Arc::new(move || ProgramFiles::of(&words).digest),
            work: Work::Peer {
                declared: found.digest,
                hosts,
                keys: server.keys.iter().cloned().collect(),
                tools: ToolsOf::Foreign(Arc::new(Client::new(root)), approved),
                is_within,
            },
        });
        Ok(())
    }

    /// A place for an installation, with the new program's folder as its home.
    pub(crate) fn install(&mut self, home: &Home, install: &Install) -> Result<()> {
        let words = ProgramDeclaration {
            command: install.argv(),
            files: Vec::new(),
            profile: ProgramCalls::Standard,
            more: Vec::new(),
        };
        let hosts: Vec<HostGlob> =
            install.hosts.iter().filter_map(|host| host.clone().try_into().ok()).collect();
        let found = ProgramFiles::of(&words);
        let new = Folder::of(home, &install.name).new_program();
        let (lease, guest) = self.place(home, Tier::Untrusted, Some((new, None)), |place| {
            let mut guest = found.guest(place, hosts.clone());
            guest.command.cwd = WsPath(home.user.display().to_string());
            guest.command.limits =
                Limits { disk_bytes: 4 << 30, memory_bytes: 4 << 30, pids: 512, ..limits() };
            guest
        })?;
        self.employed.push(Employed {
            name: install.name.clone(),
            lease,
            guest,
            within: Duration::from_secs(1),
            look: Arc::new(move || ProgramFiles::of(&words).digest),
            work: Work::Peer {
                declared: found.digest,
                hosts,
                keys: BTreeSet::new(),
                tools: ToolsOf::Foreign(Arc::new(install.clone()), Vec::new()),
                is_within: false,
            },
        });
        Ok(())
    }

    /// Makes a place that is one program's: over an empty project, or over its installed program with its
    /// state as its home.
    fn place(
        &mut self,
        home: &Home,
        tier: Tier,
        kept: Option<(PathBuf, Option<PathBuf>)>,
        guest: impl FnOnce(&Path) -> Guest,
    ) -> Result<(SessionId, Guest)> {
        let id = new_session()?;
        let folder = home.session(id, true)?.path;
        let (state, program) = kept.map_or((None, None), |(state, program)| (Some(state), program));
        let project = match program {
            Some(program) => program,
            None => {
                let nothing = folder.join("nothing");
                fs::create_dir(&nothing).with_context(|| format!("cannot make `{}`", nothing.display()))?;
                nothing
            }
        };
        let guest = guest(&project);
        let lease = Lease {
            guest: Some(guest.clone()),
            tier,
            is_scratch: true,
            ..Yard { project, folder, linked: None, home: state }.into()
        };
        self.leases.insert(id, lease);
        Ok((id, guest))
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.employed.is_empty()
    }

    /// Their own files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.iter()
    }

    /// The runner that starts and asks them, by permits of the journal with this seal.
    pub(crate) fn run(self, walls: &Arc<Walls>, seal: Seal) -> Arc<Runner> {
        Arc::new(Runner::new(walls, seal, self.employed))
    }
}

/// The view of a program that sees the workspace.
fn within(home: &Home, (sight, project): (Sight, &Path), guest: &mut Guest) {
    // It leaves nothing in the session's home that a command obeys later.
    let home = home.user.display().to_string();
    let own = [home.as_str(), "/tmp", "/var/tmp"].map(WsPath::from);
    let project = (sight == Sight::Read).then(|| WsPath(project.display().to_string()));
    guest.isolation.unchanged = project.into_iter().chain(own).collect();
    guest.command.env.extend(["HOME", "TMPDIR"].map(|name| (name.into(), OWN_PLACE.into())));
}

fn of_server(server: &McpServer) -> ProgramDeclaration {
    let env = server.env.iter().map(|(name, value)| format!("{name}={value}"));
    let more = [format!("{:?}", server.workspace)].into_iter().chain(server.hosts.iter().cloned());
    let own = server.keys.iter().chain(&server.package).chain(&server.lock).cloned();
    ProgramDeclaration {
        command: server.command.clone(),
        files: server.files.clone(),
        profile: ProgramCalls::Standard,
        more: more.chain(own).chain(env).map(String::into_bytes).collect(),
    }
}

fn of_extension(declared: &Declared) -> ProgramDeclaration {
    let more = vec![declared.within_ms.to_string().into_bytes()];
    let (command, files) = (declared.command.clone(), declared.files.clone());
    ProgramDeclaration { command, files, profile: declared.profile, more }
}

fn of_peer(peer: &Peer) -> ProgramDeclaration {
    let more = [vec![format!("{:?}", peer.workspace)], peer.hosts.clone()].concat();
    let more = more.into_iter().map(String::into_bytes).collect();
    ProgramDeclaration {
        command: peer.command.clone(),
        files: peer.files.clone(),
        profile: peer.profile,
        more,
    }
}

impl ProgramFiles {
    fn of(words: &ProgramDeclaration) -> Self {
        let mut parts = words.more.clone();
        parts.push(format!("{:?}", words.profile).into());
        let mut reads = BTreeSet::new();
        let mut own = |path: &Path| {
            let path = fs::canonicalize(path).ok().filter(|path| path.is_file())?;
            let is_own = !INSIDE.iter().any(|inside| path.starts_with(inside) && *inside != "/tmp");
            parts.push(if is_own { digest(&path) } else { Vec::new() });
            reads.extend(Some(path.clone()).filter(|_| is_own));
            Some(path)
        };
        words.files.iter().for_each(|file| drop(own(file)));
        let word = |word: &String| match Path::new(word) {
            path if path.is_absolute() => {
                own(path).map_or_else(|| word.clone(), |path| path.display().to_string())
            }
            _ => word.clone(),
        };
        let argv: Vec<String> = words.command.iter().map(word).collect();
        parts.extend(argv.iter().map(|word| word.clone().into_bytes()));
        parts.extend(reads.iter().map(|path| path.display().to_string().into_bytes()));
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let digest = Digest::of_parts(&parts);
        Self { argv, profile: words.profile, reads, digest }
    }

    /// What runs in a place, with a way to these hosts.
    fn guest(&self, place: &Path, hosts: Vec<HostGlob>) -> Guest {
        let command = Command {
            argv: self.argv.clone(),
            cwd: WsPath(place.display().to_string()),
            env: BTreeMap::new(),
            stdin: None,
            network: !hosts.is_empty(),
            background: false,
            limits: limits(),
        };
        let profile = self.profile.into();
        let extra_reads = self.reads.iter().map(|path| WsPath(path.display().to_string())).collect();
        let isolation = Isolation { profile, extra_reads, ..Isolation::default() };
        Guest { command, isolation, variables: BTreeSet::new() }
    }
}

/// The limits of such a program. It lives as long as its session.
fn limits() -> Limits {
    Limits { wall_ms: u64::MAX, memory_bytes: 512 << 20, disk_bytes: 64 << 20, pids: 64, ..Limits::default() }
}

/// What a file holds; of one that cannot be read, that.
fn digest(path: &Path) -> Vec<u8> {
    let read = || -> io::Result<Vec<u8>> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        if length > FILE_BYTES_MAX {
            return Ok(format!("{length} bytes").into_bytes());
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(Digest::of(&bytes).to_string().into_bytes())
    };
    read().unwrap_or_else(|error| error.kind().to_string().into_bytes())
}
