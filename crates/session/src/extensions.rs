//! The policy's extensions, from what the human declared to what runs: their files are read for the policy's
//! digest, each gets a place of its own inside the walls, and then somebody asks them.

use crate::{
    compose::new_session,
    config::{Approvals, Config, Declared},
    home::Home,
};
use anyhow::{Context as _, Result};
use bailey_kernel::Seal;
use bailey_policy::{Extension, INSIDE, Policy};
use bailey_protocol::{Command, Digest, Isolation, Limits, SessionId, WsPath};
use bailey_sandbox::{Employed, Guest, Lease, Native, Runner, Yard};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// A longer file, such as a whole interpreter, counts by its length alone.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What has a say beside the rule files, as it was when a process began: extensions, and how much a human
/// looks at.
#[derive(Debug, Clone, Default)]
pub struct Extensions {
    all: Vec<Found>,
    approvals: Approvals,
}

/// One of them.
#[derive(Debug, Clone)]
struct Found {
    declared: Declared,
    /// Its command, with canonical paths.
    argv: Vec<String>,
    /// Its own files, canonical: what it sees besides the programs of the system.
    reads: BTreeSet<PathBuf>,
    program: Digest,
}

impl Extensions {
    /// Reads the files of what was declared.
    pub fn read(config: &Config) -> Self {
        let approvals = config.approvals.clone();
        Self { all: config.extensions.iter().map(Found::of).collect(), approvals }
    }

    /// How much a human looks at.
    pub(crate) fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// The policy in which they have a say.
    pub fn join(&self, policy: Policy) -> Policy {
        let of = |found: &Found| Extension {
            name: found.declared.name.clone(),
            kinds: found.declared.kinds.clone(),
            late: found.declared.late,
            program: found.program,
        };
        self.approvals.join(policy).with_extensions(self.all.iter().map(of).collect())
    }

    /// What is looked at again before one is started again.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.all.iter().flat_map(|found| &found.reads)
    }

    /// A place for each, with nothing in it, which the warden removes at its end.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn settle(&self, home: &Home) -> Result<Settled> {
        let mut settled = Settled::default();
        for found in &self.all {
            let id = new_session()?;
            let folder = home.session(id, true)?.path;
            let project = folder.join("nothing");
            fs::create_dir(&project).with_context(|| format!("cannot make `{}`", project.display()))?;
            let guest = found.guest(&project);
            let yard = Yard { project, folder, linked: None };
            let tier = found.declared.tier;
            settled.leases.insert(id, Lease { guest: Some(guest), tier, is_scratch: true, ..yard.into() });
            let within = Duration::from_millis(found.declared.within_ms);
            let declared = found.declared.clone();
            settled.employed.push(Employed {
                name: declared.name.clone(),
                lease: id,
                within,
                look: Arc::new(move || Found::of(&declared).program),
            });
        }
        Ok(settled)
    }
}

/// Extensions that have a place to run in.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// What the warden is told of them.
    pub(crate) leases: BTreeMap<SessionId, Lease>,
    employed: Vec<Employed>,
}

impl Settled {
    /// Whoever starts and asks them, by permits of the journal with this seal.
    pub(crate) fn run(self, native: &Arc<Native>, seal: Seal) -> Runner {
        Runner::new(native, seal, self.employed)
    }
}

impl Found {
    fn of(declared: &Declared) -> Self {
        let mut parts =
            vec![declared.within_ms.to_string().into_bytes(), format!("{:?}", declared.profile).into()];
        let mut reads = BTreeSet::new();
        let mut own = |path: &Path| {
            let path = fs::canonicalize(path).ok().filter(|path| path.is_file())?;
            let is_own = !INSIDE.iter().any(|inside| path.starts_with(inside) && *inside != "/tmp");
            parts.push(if is_own { digest(&path) } else { Vec::new() });
            reads.extend(Some(path.clone()).filter(|_| is_own));
            Some(path)
        };
        declared.files.iter().for_each(|file| drop(own(file)));
        let word = |word: &String| match Path::new(word) {
            path if path.is_absolute() => {
                own(path).map_or_else(|| word.clone(), |path| path.display().to_string())
            }
            _ => word.clone(),
        };
        let argv: Vec<String> = declared.command.iter().map(word).collect();
        parts.extend(argv.iter().map(|word| word.clone().into_bytes()));
        parts.extend(reads.iter().map(|path| path.display().to_string().into_bytes()));
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let program = Digest::of_parts(&parts);
        Self { declared: declared.clone(), argv, reads, program }
    }

    fn guest(&self, project: &Path) -> Guest {
        let command = Command {
            argv: self.argv.clone(),
            cwd: WsPath(project.display().to_string()),
            env: BTreeMap::new(),
            stdin: None,
            network: false,
            background: false,
            limits: limits(),
        };
        let extra_reads = self.reads.iter().map(|path| WsPath(path.display().to_string())).collect();
        let isolation =
            Isolation { profile: self.declared.profile.into(), extra_reads, ..Isolation::default() };
        Guest { command, isolation }
    }
}

/// What an extension may use up. It lives as long as its session.
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
