//! The home's folders of MCP servers, `mcp/NAME`: an installed program, the state that the server keeps, and
//! the tools that the owner agreed to. An installation is a program in the walls, too.

use crate::home::{Home, write_private};
use anyhow::{Context as _, Result};
use bailey_kernel::BoxFuture;
use bailey_peers::{Approved, Conversation, Language, Shelf, Streams};
use bailey_protocol::{CallReport, Digest};
use rustix::fs::OFlags;
use serde_json::{Map, Value};
use std::{
    fs::{self, DirBuilder},
    io::{self, Read as _},
    os::fd::AsRawFd as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::io::AsyncReadExt as _;

/// Stands for the folder of a server's installed program in its entry.
pub const PROGRAM: &str = "{program}";
/// The most bytes that an installation says.
const TOLD_BYTES_MAX: u64 = 64 << 10;

/// The lock file of an installed program, and its most bytes.
const LOCK: &str = "package-lock.json";
const LOCK_BYTES_MAX: u64 = 16 << 20;
/// The most bytes of a file of approved tools.
const APPROVED_BYTES_MAX: u64 = 16 << 20;

/// The folder of one server.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder of the server of this name.
    #[must_use]
    pub fn of(home: &Home, name: &str) -> Self {
        Self(home.root.join("mcp").join(name))
    }

    /// The server's state: its home directory inside, kept across sessions.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.0.join("state")
    }

    /// The installed program, where Bailey installed one.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.0.join("program")
    }

    /// The digest of a program's lock file, which names the version and the digest of each of its packages.
    /// `None` when there is no such file: what a package left in its place is not followed.
    #[must_use]
    pub fn lock(&self, program: &Path) -> Option<String> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let open = fs::OpenOptions::new().read(true).custom_flags(flags).open(program.join(LOCK)).ok()?;
        let about = open.metadata().ok().filter(|about| about.is_file() && about.len() <= LOCK_BYTES_MAX)?;
        let mut bytes = Vec::new();
        open.take(about.len()).read_to_end(&mut bytes).ok()?;
        Some(Digest::of(&bytes).to_string())
    }

    /// The program that is being installed.
    #[must_use]
    pub fn new_program(&self) -> PathBuf {
        self.0.join("program.new")
    }

    /// Makes room for a new program. The program of a change that was cut off is put back.
    ///
    /// # Errors
    /// When there is none.
    pub fn begin_install(&self) -> Result<()> {
        self.make()?;
        let old = self.0.join("program.old");
        if old.exists() && !self.program().exists() {
            fs::rename(&old, self.program()).context("the program of before cannot be put back")?;
        }
        let new = self.new_program();
        remove_tree(&new).and_then(|()| remove_tree(&old))?;
        // Another user may run inside; on the host the home above it is private.
        DirBuilder::new().mode(0o755).create(&new).with_context(|| format!("cannot make `{}`", new.display()))
    }

    /// Removes a program that was installed and is not used.
    pub fn abandon_install(&self) {
        remove_tree(&self.new_program()).ok();
    }

    /// Puts the new program in the place of the old one, which stays beside it: sessions may run it.
    ///
    /// # Errors
    /// When it cannot be moved. The old one is there then.
    pub fn finish_install(&self) -> Result<()> {
        let (old, now) = (self.0.join("program.old"), self.program());
        if now.exists() {
            fs::rename(&now, &old).with_context(|| format!("cannot move `{}`", now.display()))?;
        }
        if let Err(error) = fs::rename(self.new_program(), &now) {
            fs::rename(&old, &now).ok();
            return Err(error).with_context(|| format!("cannot move `{}`", now.display()));
        }
        Ok(())
    }

    /// Takes back [`Folder::finish_install`].
    pub fn undo_install(&self) {
        let (old, now) = (self.0.join("program.old"), self.program());
        if old.exists() && fs::rename(&now, self.new_program()).is_ok() {
            fs::rename(&old, &now).ok();
        }
        self.abandon_install();
    }

    /// An empty folder, for a session about no project.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn nowhere(&self) -> Result<PathBuf> {
        let nowhere = self.0.join("nothing");
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&nowhere);
        made.with_context(|| format!("cannot make `{}`", nowhere.display()))?;
        Ok(fs::canonicalize(nowhere)?)
    }

    /// Makes the folder and the state's, for this user alone.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn make(&self) -> Result<()> {
        let state = self.state();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&state);
        made.with_context(|| format!("cannot make `{}`", state.display()))
    }

    /// The tools that the owner agreed to; empty where the owner has not looked yet.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn approved(&self) -> Result<Vec<Approved>> {
        let path = self.0.join("approved.json");
        let size = match fs::metadata(&path) {
            Ok(found) => found.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(|| format!("cannot read `{}`", path.display())),
        };
        anyhow::ensure!(size <= APPROVED_BYTES_MAX, "`{}` is too long", path.display());
        let text = fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("`{}` has a mistake", path.display()))
    }

    /// Keeps the tools that the owner agrees to.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn approve(&self, tools: &[Approved]) -> Result<()> {
        self.make()?;
        write_private(&self.0.join("approved.json"), &serde_json::to_vec_pretty(tools)?)
    }

    /// Whether there is anything of it.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.0.exists()
    }

    /// Removes all of it, the consent first.
    ///
    /// # Errors
    /// When a part of it stays.
    pub fn remove(&self) -> Result<()> {
        fs::remove_file(self.0.join("approved.json")).ok();
        remove_tree(&self.0)
    }
}

/// Removes a folder that programs of others wrote: they may have taken rights away. No link is followed.
fn remove_tree(folder: &Path) -> Result<()> {
    let is_gone = |done: io::Result<()>| match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    };
    if is_gone(fs::remove_dir_all(folder)).is_err() {
        open_up(folder);
    }
    is_gone(fs::remove_dir_all(folder)).with_context(|| format!("cannot remove `{}`", folder.display()))
}

/// Gives the owner the rights in each directory back.
fn open_up(folder: &Path) {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(open) = rustix::fs::open(folder, flags, rustix::fs::Mode::empty()) else { return };
    // By its descriptor: the name may lead elsewhere by now.
    let own = format!("/proc/self/fd/{}", open.as_raw_fd());
    fs::set_permissions(own, fs::Permissions::from_mode(0o700)).ok();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        open_up(&entry.path());
    }
}

/// An installation of a server's program, which runs in the walls with its folder as its home.
#[derive(Debug, Clone)]
pub struct Install {
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    pub(crate) hosts: Vec<String>,
    told: Arc<Mutex<String>>,
}

impl Install {
    /// An installation for this server by this command, with a way to these hosts.
    #[must_use]
    pub fn new(name: &str, command: Vec<String>, hosts: Vec<String>) -> Self {
        Self { name: name.to_owned(), command, hosts, told: Arc::default() }
    }

    /// The words of the command at its end.
    #[must_use]
    pub fn told(&self) -> String {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).trim().to_owned()
    }

    pub(crate) fn argv(&self) -> Vec<String> {
        self.command.clone()
    }
}

/// A program that says something on its standard output, and ends.
impl Language for Install {
    fn ready(&self) -> Duration {
        Duration::from_secs(600)
    }

    fn begin(&self, streams: Streams, _: Arc<Shelf>) -> BoxFuture<'_, Result<Box<dyn Conversation>, String>> {
        Box::pin(async move {
            let (read, write) = streams.into_parts();
            drop(write);
            let mut told = String::new();
            let done = read.take(TOLD_BYTES_MAX).read_to_string(&mut told).await;
            done.map_err(|error| error.to_string())?;
            if !told.trim_end().ends_with('}') {
                return Err("it failed".into());
            }
            *self.told.lock().unwrap_or_else(PoisonError::into_inner) = told;
            Ok(Box::new(Over) as Box<dyn Conversation>)
        })
    }
}

/// There is nothing more to say.
struct Over;

impl Conversation for Over {
    fn call<'a>(
        &'a mut self,
        _: &'a str,
        _: Map<String, Value>,
    ) -> BoxFuture<'a, Result<CallReport, String>> {
        Box::pin(async { Err("it has ended".into()) })
    }
}

/// The words of an entry, with the folder of its program.
pub(crate) fn spelled(word: &str, program: Option<&Path>) -> String {
    match program {
        Some(program) => word.replace(PROGRAM, &program.display().to_string()),
        None => word.to_owned(),
    }
}
