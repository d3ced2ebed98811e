//! What the inside of a sandbox looks like, as a list: worked out once from the host and the [`Config`].

use crate::{charter::Hidden, config::Config, mask::Masks, toolchain};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The root of every sandbox, but for what belongs to one session.
#[derive(Debug)]
pub(crate) struct Plan {
    /// In the order in which it is built.
    pub(crate) system: Vec<PlanEntry>,
    /// What lies inside of the home: built after the private home stands.
    pub(crate) tools: Vec<PlanEntry>,
    /// Those of them that the owner named, where secrets are masked.
    pub(crate) reads: Vec<PathBuf>,
    /// Those of them that hold what the person put there, where secrets are masked, too.
    pub(crate) own: Vec<PathBuf>,
    /// The home directory, the same path inside and outside.
    pub(crate) home: PathBuf,
    /// PATH inside.
    pub(crate) path: String,
}

/// One thing at one absolute path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PlanEntry {
    pub(crate) at: PathBuf,
    pub(crate) what: EntryKind,
}

/// The kind of an entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// The host's directory or file of the same path, read-only.
    Bind,
    /// The same, of the user: its owner is mapped to the inside's user where the two differ.
    BindOwn,
    /// The host's device.
    Device,
    /// A symbolic link.
    Link(PathBuf),
    /// A file with this text.
    Text(String),
    /// An empty directory.
    Directory,
}

/// Where those are found that a command trusts which has a way to the network.
pub(crate) const AUTHORITY: &str = "/etc/ssl/bailey-door.pem";

/// Where git inside reads the system's configuration, wherever the host's git has its own.
pub(crate) const GIT: &str = "/etc/gitconfig";

/// What Node.js loads there before a program, and what that is.
pub(crate) const NODE: &str = "/etc/ssl/bailey-door.cjs";
const FOR_NODE: &str = include_str!("warden/way.cjs");

/// The user inside.
pub(crate) const USER: &str = "bailey";
/// Its uid and gid inside.
pub(crate) const ID: u32 = 1000;

/// Top-level directories of programs; symbolic links on systems with a merged /usr.
const TOP: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Files and directories of /etc that programs need and that hold no secret. A trailing `*` stands for the
/// rest of a name.
const ETC: &[&str] = &[
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "fonts",
    "java-*",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "perl",
    "pki/ca-trust/extracted",
    "pki/tls/certs",
    "protocols",
    "python3*",
    "services",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
];

const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom"];

impl Plan {
    /// Looks at the host.
    pub(crate) fn new(config: &Config, hidden: &Hidden, settings: &Masks) -> Self {
        let home = config.user_home.clone();
        let may_be_seen = |path: &&PathBuf| path.to_str().is_some_and(|path| hidden.check(path).is_ok());
        let reads: Vec<PathBuf> =
            config.reads.iter().filter(|path| path.is_dir()).filter(may_be_seen).cloned().collect();
        let mut system: Vec<PlanEntry> = TOP.iter().filter_map(|path| mirror(Path::new(path))).collect();
        let own = toolchain::own_in_home(&home, settings);
        let tools = toolchain::in_home(&home, settings).into_iter();
        let tools: Vec<PathBuf> = tools.chain(own.iter().chain(&reads).cloned()).collect();
        let prefixes = toolchain::on_path(&config.path);
        let visible: Vec<PathBuf> = TOP
            .iter()
            .map(PathBuf::from)
            .chain(prefixes.iter().cloned())
            .chain(tools.iter().cloned())
            .collect();
        system.extend(prefixes.into_iter().map(|at| PlanEntry { at, what: EntryKind::Bind }));
        system.extend(etc());
        system.extend(written(&home));
        if let Some(git) = config.git.clone() {
            system.push(PlanEntry { at: GIT.into(), what: EntryKind::Text(git) });
        }
        if let Some(authority) = config.authority.clone() {
            system.push(PlanEntry { at: AUTHORITY.into(), what: EntryKind::Text(authority) });
            system.push(PlanEntry { at: NODE.into(), what: EntryKind::Text(FOR_NODE.into()) });
        }
        system.extend(dev());
        Self {
            system,
            tools: tools.into_iter().map(|at| PlanEntry { at, what: EntryKind::BindOwn }).collect(),
            reads,
            own,
            path: toolchain::path_inside(&config.path, &visible),
            home,
        }
    }
}

impl Plan {
    /// The parts of the host that it shows, where nothing in them is to be masked.
    pub(crate) fn bound(&self) -> impl Iterator<Item = PathBuf> {
        let is_bound = |entry: &&PlanEntry| match entry.what {
            EntryKind::Bind | EntryKind::BindOwn => true,
            // Those of devices lead to whatever a process has open.
            EntryKind::Link(_) => !entry.at.starts_with("/dev"),
            EntryKind::Device | EntryKind::Text(_) | EntryKind::Directory => false,
        };
        let is_masked = |entry: &&PlanEntry| self.reads.contains(&entry.at) || self.own.contains(&entry.at);
        let tools = self.tools.iter().filter(move |entry| !is_masked(entry));
        self.system.iter().chain(tools).filter(is_bound).map(|entry| entry.at.clone())
    }
}

/// The host's path as it is: a link stays a link, the rest is bound.
fn mirror(path: &Path) -> Option<PlanEntry> {
    let what = match fs::read_link(path) {
        Ok(target) => EntryKind::Link(target),
        Err(_) if path.exists() => EntryKind::Bind,
        Err(_) => return None,
    };
    Some(PlanEntry { at: path.to_path_buf(), what })
}

fn etc() -> Vec<PlanEntry> {
    let names = || fs::read_dir("/etc").into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut entries = Vec::new();
    for pattern in ETC {
        match pattern.strip_suffix('*') {
            None => entries.extend(mirror(&Path::new("/etc").join(pattern))),
            Some(prefix) => entries.extend(
                names()
                    .filter(|name| name.to_str().is_some_and(|name| name.starts_with(prefix)))
                    .filter_map(|name| mirror(&Path::new("/etc").join(name))),
            ),
        }
    }
    entries
}

/// Files of /etc that are written anew: the host's would name its users, hosts and resolvers.
fn written(home: &Path) -> Vec<PlanEntry> {
    let home = home.display();
    let text =
        |at: &str, text: String| PlanEntry { at: Path::new("/etc").join(at), what: EntryKind::Text(text) };
    vec![
        text(
            "passwd",
            format!("{USER}:x:{ID}:{ID}::{home}:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n"),
        ),
        text("group", format!("{USER}:x:{ID}:\nnogroup:x:65534:\n")),
        text("hosts", format!("127.0.0.1 localhost {USER}\n::1 localhost\n")),
        text("hostname", format!("{USER}\n")),
        text("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n".into()),
        text("resolv.conf", String::new()),
    ]
}

fn dev() -> Vec<PlanEntry> {
    let at = |name: &str| Path::new("/dev").join(name);
    let link = |name: &str, to: &str| PlanEntry { at: at(name), what: EntryKind::Link(to.into()) };
    let mut entries: Vec<PlanEntry> =
        DEVICES.iter().map(|name| PlanEntry { at: at(name), what: EntryKind::Device }).collect();
    entries.extend([
        link("fd", "/proc/self/fd"),
        link("stdin", "/proc/self/fd/0"),
        link("stdout", "/proc/self/fd/1"),
        link("stderr", "/proc/self/fd/2"),
        link("ptmx", "pts/ptmx"),
    ]);
    entries.extend(
        ["/dev/pts", "/dev/shm", "/proc", "/tmp", "/run", "/var/tmp"]
            .map(|path| PlanEntry { at: path.into(), what: EntryKind::Directory }),
    );
    entries
}
