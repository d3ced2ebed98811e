//! Bailey's home: the paths of everything in it, and the checks that it belongs to its owner alone.

mod folder;
pub mod reserve;
pub mod swap;

pub use folder::{Folder, Holds, SCRATCH, file_system, places};

use crate::agents;
use anyhow::{Context as _, Result, bail};
use bailey_kernel::Paper;
use bailey_protocol::{SessionId, exit::Mistyped};
use rustix::fs::{FlockOperation, flock};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    fs::{self, File},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// A database without a table is one page at most, in bytes.
const EMPTY_JOURNAL: u64 = 4096;

/// Any of these entries shows that a directory is a home, or was prepared to be one, or that a separate disk
/// is mounted there.
const OF_HOME: [&str; 17] = [
    "config.toml",
    ".env",
    "secrets.sealed",
    "models.toml",
    "boot.conf",
    "journal.db",
    "agent.toml",
    "SOUL.md",
    "IDENTITY.md",
    "USER.md",
    "sessions",
    "policy",
    "profiles",
    "agents",
    "channels",
    "backups",
    "lost+found",
];

/// The name of a copy that the home keeps of itself: the moment when the copy was made.
pub const COPY_NAME: &str = "%Y%m%dT%H%M%SZ";
/// The message of a backup about an old copy that it could not remove. The daemon recognises the message by
/// this text.
pub const OLD_STAYS: &str = "an old copy stays, and takes its room";

/// Bailey's home and the user's home.
#[derive(Debug, Clone)]
pub struct Home {
    /// Bailey's home, as a canonical path.
    pub root: PathBuf,
    /// The user's home, as a canonical path.
    pub user: PathBuf,
    /// The named agent that works. `None`: the home's own agent.
    pub agent: Option<String>,
}

/// The directories of a home that a command is about to make. Dropping this value removes them again, unless
/// the command came to its end: if the command refuses the home, a leftover directory would later pass for
/// one.
#[derive(Debug)]
pub struct NewDirectories(Vec<PathBuf>);

impl NewDirectories {
    /// Looks at the place of the home, before the home is opened.
    pub fn at(root: &Path) -> Result<Self> {
        let innermost = std::path::absolute(root)?.join("sessions");
        let missing = innermost.ancestors().take_while(|path| path.symlink_metadata().is_err());
        Ok(Self(missing.map(Path::to_path_buf).collect()))
    }

    /// Keeps the directories.
    pub fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for NewDirectories {
    fn drop(&mut self) {
        // The innermost directory goes first. A directory with content stays.
        self.0.iter().for_each(|folder| drop(fs::remove_dir(folder)));
    }
}

impl Home {
    /// The path of the home, which may not exist yet. The order: the flag, `BAILEY_HOME`,
    /// `$XDG_DATA_HOME/bailey` if that directory exists, `~/.bailey`. An empty variable counts as not set. A
    /// relative `$XDG_DATA_HOME` counts as not set, too (XDG Base Directory Specification): otherwise a
    /// repository could bring its own home.
    pub fn place(flag: Option<PathBuf>) -> Result<PathBuf> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let xdg = set("XDG_DATA_HOME").filter(|dir| dir.is_absolute()).map(|dir| dir.join("bailey"));
        let named = flag.or_else(|| set("BAILEY_HOME")).or_else(|| xdg.filter(|dir| dir.is_dir()));
        named.map_or_else(|| Ok(user_home()?.join(".bailey")), Ok)
    }

    /// Whether a home, or anything else, exists at this path.
    pub fn is_at(root: &Path) -> Result<bool> {
        root.try_exists().with_context(|| format!("cannot look at `{}`", root.display()))
    }

    /// Checks that a home exists.
    ///
    /// # Errors
    /// When no home exists there.
    pub fn expect(root: &Path) -> Result<()> {
        anyhow::ensure!(
            Self::is_at(root)?,
            "there is no home at `{}`; name another home (--home DIR or BAILEY_HOME), or create this one \
             with `bailey init`",
            root.display()
        );
        Ok(())
    }

    /// Finds the home and makes its missing directories.
    pub fn open(flag: Option<PathBuf>) -> Result<Self> {
        let user = user_home()?;
        let root = Self::place(flag)?;
        if root.is_dir() {
            is_fit(&root)?;
        }
        make_private(&root)
            .map_err(|error| anyhow::anyhow!("{error:#}; to name another home: --home DIR or BAILEY_HOME"))?;
        let root = fs::canonicalize(&root).with_context(|| format!("cannot find `{}`", root.display()))?;
        // This comes first: an interrupted restore may still have to move folders of the old home to these
        // places.
        swap::finish(&root)?;
        make_private(&root.join("sessions"))?;
        reserve::keep(&root);
        Ok(Self { root, user, agent: None })
    }

    /// The owner's settings.
    pub fn config(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// The same home, for one of its named agents.
    ///
    /// # Errors
    /// When no agent has this name.
    pub fn of_agent(&self, name: Option<&str>) -> Result<Self> {
        let home = Self { agent: name.map(str::to_owned), ..self.clone() };
        if let Some(name) = name
            && !(agents::is_name(name) && home.agent_settings().exists())
        {
            let new = format!(", `bailey agent new {name}` makes it");
            let new = if agents::is_name(name) { new } else { String::new() };
            return Err(Mistyped(format!(
                "there is no agent `{name}` in this home; `bailey agent list` shows all{new}"
            ))
            .into());
        }
        Ok(home)
    }

    /// The directory of the named agents, with one directory for each of them.
    pub(crate) fn agents(&self) -> PathBuf {
        self.root.join("agents")
    }

    /// The directory of the agent's own files, which no other agent uses.
    fn own(&self) -> PathBuf {
        self.agent.as_ref().map_or_else(|| self.root.clone(), |name| self.agents().join(name))
    }

    /// The directory of a channel.
    pub fn channel(&self, name: &str) -> PathBuf {
        self.root.join("channels").join(name)
    }

    /// Makes the directory of a channel, private to its owner.
    pub fn make_channel(&self, name: &str) -> Result<PathBuf> {
        make_private(&self.root.join("channels"))?;
        let folder = self.channel(name);
        make_private(&folder)?;
        Ok(folder)
    }

    /// The notes of the process that talks with the platform. No other process reads them.
    pub fn bridge(&self, name: &str) -> PathBuf {
        self.channel(name).join("bridge")
    }

    /// The owner's settings for a named agent.
    pub fn agent_settings(&self) -> PathBuf {
        self.own().join(agents::SETTINGS)
    }

    /// The file that tells the agent about itself and its person. It is the only file here that an agent can
    /// ask to change.
    pub fn agent_file(&self) -> PathBuf {
        self.own().join("agent.toml")
    }

    /// The file of a paper, which says who the agent or its person is. No agent can write it.
    pub fn paper(&self, paper: Paper) -> PathBuf {
        match paper {
            Paper::User => self.root.join(paper.name()),
            Paper::Identity | Paper::Soul => self.own().join(paper.name()),
        }
    }

    /// The directory of the owner's rules.
    pub fn policy(&self) -> PathBuf {
        self.root.join("policy")
    }

    /// The human's own lists of system calls.
    pub(crate) fn profiles(&self) -> PathBuf {
        self.root.join("profiles")
    }

    /// The file of secrets in plain text.
    pub fn env_file(&self) -> PathBuf {
        self.root.join(".env")
    }

    /// The sealed store of secrets.
    pub(crate) fn sealed(&self) -> PathBuf {
        self.root.join("secrets.sealed")
    }

    /// The records of the projects whose own settings are trusted.
    pub(crate) fn trust(&self) -> PathBuf {
        self.root.join("trust")
    }

    /// The human's own facts about models: windows and prices.
    pub fn catalogue(&self) -> PathBuf {
        self.root.join("models.toml")
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal.db")
    }

    /// A warning about a home that has sessions, but not the journal that knows them. A new journal begins
    /// then, and without the warning the sessions would disappear silently.
    pub fn forgotten(&self) -> Option<String> {
        let bytes = |path: &Path| fs::metadata(path).map_or(0, |about| about.len());
        let log = self.root.join("journal.db-wal");
        if bytes(&self.journal()) > EMPTY_JOURNAL || bytes(&log) > 0 {
            return None;
        }
        let sessions = fs::read_dir(self.root.join("sessions")).ok()?.count();
        (sessions > 0).then(|| {
            format!(
                "`{}` holds nothing, and `sessions` beside it has {sessions} of them: it was emptied, moved away, or copied without \
                 `{}`. A new journal begins and does not know them, and where the old one was ever signed, the new one is stopped, as that may \
                 have been; to have them back, put a copy of both in place",
                self.journal().display(),
                log.display()
            )
        })
    }

    /// The archive of the data that left the journal.
    pub fn archive(&self) -> PathBuf {
        self.root.join("archive")
    }

    /// The daemon's directory: its lock, log and sockets.
    pub fn daemon(&self) -> PathBuf {
        self.root.join("daemon")
    }

    /// The file in which the daemon reports its state.
    pub fn health(&self) -> PathBuf {
        self.root.join("health.json")
    }

    /// The record of how much telemetry the collector has received.
    pub fn telemetry(&self) -> PathBuf {
        self.root.join("telemetry")
    }

    /// The record of who may open the page.
    pub fn page(&self) -> PathBuf {
        self.root.join("page")
    }

    /// The note about a workspace that was made ready ahead.
    pub fn ready(&self, session: SessionId) -> PathBuf {
        self.root.join("pool").join(format!("{session}.json"))
    }

    /// Marks a session as used: removes the note that made it ready, so that no other task begins in it.
    ///
    /// # Errors
    /// When the note cannot be removed.
    pub fn spend(&self, session: SessionId) -> Result<()> {
        let note = self.ready(session);
        match fs::remove_file(&note) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove `{}`", note.display()))
            }
            _ => Ok(()),
        }
    }

    /// The copies that the home keeps of itself.
    pub fn backups(&self) -> PathBuf {
        self.root.join("backups")
    }

    /// The messages of conversations.
    pub fn history(&self) -> PathBuf {
        self.root.join("chat-history")
    }
}

/// Reads a JSON file of the home. Returns the default value when the file does not exist.
///
/// # Errors
/// When the file cannot be read, or is damaged.
pub fn read_json<T: Default + DeserializeOwned>(path: &Path) -> Result<T> {
    match fs::read(path) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes).with_context(|| format!("`{}` is damaged", path.display()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(error).with_context(|| format!("cannot read `{}`", path.display())),
    }
}

/// Changes a JSON file, one process after the other. A process waits for `lock`, which is a separate file,
/// because the change replaces the JSON file.
///
/// # Errors
/// The errors of `change`, after which nothing is changed. Also when the file cannot be read or written.
pub fn change_json<T, R>(lock: &Path, path: &Path, change: impl FnOnce(&mut T) -> Result<R>) -> Result<R>
where
    T: DeserializeOwned + Serialize + Default,
{
    let _lock = wait_for(lock)?;
    let mut value = read_json(path)?;
    let changed = change(&mut value)?;
    write_private(path, &serde_json::to_vec_pretty(&value)?)?;
    Ok(changed)
}

/// Waits until no other process holds this file's lock, and holds it until the returned file is dropped.
///
/// # Errors
/// When the file cannot be made or locked.
pub(crate) fn wait_for(lock: &Path) -> Result<File> {
    let cannot = || format!("cannot lock `{}`", lock.display());
    let mut options = fs::OpenOptions::new();
    let lock =
        options.write(true).create(true).truncate(false).mode(0o600).open(lock).with_context(cannot)?;
    flock(&lock, FlockOperation::LockExclusive).with_context(cannot)?;
    Ok(lock)
}

/// Writes a file of mode 600 completely or not at all: the old content stays until the new text is on disk.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    write(path, bytes, File::sync_all)
}

/// The same for a file that Bailey can make again from other sources: a loss of power may leave it empty.
pub(crate) fn write_made(path: &Path, bytes: &[u8]) -> Result<()> {
    write(path, bytes, |_| Ok(()))
}

fn write(path: &Path, bytes: &[u8], harden: impl Fn(&File) -> io::Result<()>) -> Result<()> {
    use std::io::Write as _;
    let cannot = || format!("cannot write `{}`", path.display());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let new = path.with_file_name(name);
    let written =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new).and_then(
            |mut file| {
                file.write_all(bytes)?;
                harden(&file)?;
                fs::rename(&new, path)?;
                harden(&File::open(path.parent().unwrap_or(Path::new("/")))?)
            },
        );
    if written.is_err() {
        fs::remove_file(&new).ok();
    }
    written.with_context(cannot)
}

/// Checks, before anything changes there, that the user owns the directory and that it serves no other
/// purpose: a home is for its owner alone.
fn is_fit(root: &Path) -> Result<()> {
    let shown = root.display();
    let about = fs::metadata(root)?;
    let (owner, me) = (about.uid(), rustix::process::geteuid().as_raw());
    if owner != me {
        bail!(
            "`{shown}` belongs to user {owner}, and you are {me}: use a home of your own (--home DIR or BAILEY_HOME)"
        );
    }
    if about.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    let mut names = fs::read_dir(root).with_context(|| format!("cannot read `{shown}`"))?.peekable();
    let is_of_home = |entry: fs::DirEntry| OF_HOME.iter().any(|own| entry.file_name() == *own);
    if names.peek().is_some() && !names.flatten().any(is_of_home) {
        bail!(
            "`{shown}` is open to others and holds other things than a home of Bailey's: name a new or empty directory (--home DIR or BAILEY_HOME)"
        );
    }
    Ok(())
}

fn user_home() -> Result<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    let Some(home) = home else { bail!("HOME is not set: set it to your home directory") };
    fs::canonicalize(&home)
        .with_context(|| format!("HOME is `{}`, which does not exist", Path::new(&home).display()))
}

/// Makes a directory of mode 700, or makes an existing directory private.
pub fn make_private(dir: &Path) -> Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .with_context(|| format!("cannot make `{}`", dir.display()))?;
    let mode = fs::metadata(dir)?.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).with_context(|| {
            format!("`{}` can be read by others, and that cannot be changed", dir.display())
        })?;
    }
    Ok(())
}
