//! The owner's programs that answer: extensions of the policy, which judge, and peers, which have tools.
//!
//! Their files are read at the session's beginning: the digest of an extension is a part of the policy, and
//! that of a peer is kept. Each gets a place of its own inside the walls, which the warden grants to no other
//! program. A peer that sees the project runs in the session's own place instead.

use crate::{
    compose::new_session,
    config::{Approvals, Config, Declared, Peer, ProgramCalls, Sight},
    home::Home,
};
use anyhow::{Context as _, Result};
use bailey_kernel::{HostGlob, Seal};
use bailey_peers::{Effects, Employed, Runner, Work};
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
        peers: &BTreeMap<String, Peer>,
        (session, project): (SessionId, &Path),
    ) -> Result<Self> {
        let mut settled = Self::default();
        for (declared, found) in &extensions.all {
            let (lease, place) =
                settled.place(home, declared.tier, |place| found.guest(place, Vec::new()))?;
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
                false => settled.place(home, peer.tier, guest)?,
            };
            if is_within {
                // It leaves nothing in the session's home that a command obeys later.
                let home = home.user.display().to_string();
                let own = [home.as_str(), "/tmp", "/var/tmp"].map(WsPath::from);
                let project = (peer.workspace == Sight::Read).then(|| WsPath(project.display().to_string()));
                guest.isolation.unchanged = project.into_iter().chain(own).collect();
                guest.command.env = ["HOME", "TMPDIR"].map(|name| (name.into(), OWN_PLACE.into())).into();
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
                    effects: Effects(peer.effects.clone()),
                    is_within,
                },
            });
        }
        Ok(settled)
    }

    /// Makes a place that is one program's.
    fn place(
        &mut self,
        home: &Home,
        tier: Tier,
        guest: impl FnOnce(&Path) -> Guest,
    ) -> Result<(SessionId, Guest)> {
        let id = new_session()?;
        let folder = home.session(id, true)?.path;
        let project = folder.join("nothing");
        fs::create_dir(&project).with_context(|| format!("cannot make `{}`", project.display()))?;
        let guest = guest(&project);
        let lease = Lease {
            guest: Some(guest.clone()),
            tier,
            is_scratch: true,
            ..Yard { project, folder, linked: None }.into()
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
        Guest { command, isolation }
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
