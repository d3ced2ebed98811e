//! Finds the project's directory, and reads the one file of it that the main process reads.

mod remarks;

pub use remarks::remarks;

use crate::home::places;
use anyhow::{Context as _, Result, bail};
use bailey_kernel::Standpoint;
use bailey_protocol::{WsPath, shell_word};
use rustix::{
    fs::{Access, AtFlags, CWD, Mode, OFlags, ResolveFlags, accessat, openat, openat2},
    io::Errno,
};
use std::{
    fs::File,
    io::Read as _,
    path::{Component, Path, PathBuf},
};

/// The path of a project's settings within the project.
pub const SETTINGS: &str = ".bailey/config.toml";
/// A file of a project that names MCP servers, as other clients have it.
pub const MCP_SERVERS: &str = ".mcp.json";
/// The largest size of a project's settings, in bytes.
const SETTINGS_BYTES_MAX: u64 = 64 << 10;

/// The root of the repository that contains `directory`, or else the directory itself, as a canonical path.
/// This looks only at names.
pub fn find(directory: Option<&Path>, home: &crate::home::Home) -> Result<(PathBuf, WsPath)> {
    let named = directory.unwrap_or(Path::new("."));
    let start = std::fs::canonicalize(named)
        .with_context(|| format!("there is no directory `{}`", named.display()))?;
    if !start.is_dir() {
        bail!("`{}` is not a directory", named.display());
    }
    let root = start.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(&start).to_path_buf();
    // A directory that holds a home, as `/` does, is too large. Bailey's own home is no project.
    if home.user.starts_with(&root) || home.root.starts_with(&root) || root.starts_with(&home.root) {
        bail!(
            "`{}` cannot be a workspace: it is, or holds, a home directory; go to a project's directory, or name one \
             with -C DIR",
            root.display()
        );
    }
    let protected = bailey_policy::protected_places(&home.user.display().to_string()).find(|path| {
        let path = Path::new(path);
        root.starts_with(path) || path.starts_with(&root) && path.exists()
    });
    if let Some(path) = protected {
        bail!(
            "`{}` cannot be a workspace: it is, lies in, or holds `{path}`, which no agent may touch; go to a project's \
             directory, or name one with -C DIR",
            root.display()
        );
    }
    // These places hold the changes of other sessions, when their home cannot hold them.
    let is_near = |place: &PathBuf| root.starts_with(place) || place.starts_with(&root);
    if let Some(place) = places().into_iter().find(is_near) {
        bail!(
            "`{}` cannot be a workspace: it is, lies in, or holds `{}`, where sessions keep what they changed; go to a \
             project's directory, or name one with -C DIR",
            root.display(),
            place.display()
        );
    }
    if let Some(what) = of_others(&root) {
        bail!(
            "`{}` cannot be a workspace: it is {what}; go to a project's directory, or name one with -C DIR",
            root.display()
        );
    }
    // Each sandbox has its own versions of these directories. They would hide the project and lose the work
    // in it.
    if let Some(own) = ["/dev", "/proc", "/sys"].into_iter().find(|own| root.starts_with(own)) {
        bail!(
            "`{}` cannot be a workspace: every sandbox has a {own} of its own; move the project elsewhere",
            root.display()
        );
    }
    let Some(text) = root.to_str() else {
        bail!("`{}` is not UTF-8: a workspace's path must be", root.display());
    };
    // Neither a rule nor a card could tell such a path from another one.
    if text.contains(char::is_control) {
        bail!(
            "`{}` cannot be a workspace: there is a line feed or another control character in its path; rename it",
            text.escape_debug()
        );
    }
    let workspace = WsPath(text.to_owned());
    is_readable(&root)?;
    Ok((root, workspace))
}

/// The user's directory in the workspace that [`find`] found for it, and the workspace's path as the user
/// writes it.
///
/// # Errors
/// When the directory does not exist.
pub fn standpoint(directory: Option<&Path>, workspace: &WsPath) -> Result<Standpoint> {
    let named = directory.unwrap_or(Path::new("."));
    let there = std::fs::canonicalize(named)
        .with_context(|| format!("there is no directory `{}`", named.display()))?;
    let root = Path::new(&workspace.0);
    // If a path has no unambiguous name, the nearest directory above it that has one stands in.
    let nameable = |path: &Path| {
        let text = path.to_str().filter(|text| !text.contains(char::is_control))?;
        Some(WsPath(text.to_owned()))
    };
    let start = there.ancestors().find_map(nameable).filter(|start| start.is_within(&workspace.0));
    let leads_there = |path: &&Path| std::fs::canonicalize(path).is_ok_and(|found| found == root);
    let spelled = spelled(directory)?;
    // A link within the project belongs to the project, and exists inside the sandbox as well.
    let spelled = spelled.ancestors().filter(|path| !path.starts_with(root)).find(leads_there);
    Ok(Standpoint { start: start.filter(|start| start != workspace), spelled: spelled.and_then(nameable) })
}

/// A directory's absolute path as the user writes it. The shell's `PWD` keeps the links that the user went
/// through.
///
/// # Errors
/// When the directory does not exist.
pub fn spelled(directory: Option<&Path>) -> Result<PathBuf> {
    let named = directory.unwrap_or(Path::new("."));
    let cannot = || format!("there is no directory `{}`", named.display());
    let there = std::fs::canonicalize(named).with_context(cannot)?;
    let here = std::fs::canonicalize(".").with_context(cannot)?;
    let is_here =
        |path: &PathBuf| path.is_absolute() && std::fs::canonicalize(path).is_ok_and(|it| it == here);
    let base = std::env::var_os("PWD").map(PathBuf::from).filter(is_here).unwrap_or(here);
    let mut path = PathBuf::new();
    for part in base.join(named).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    // `..` after a link leads to another directory than the text suggests.
    Ok(if std::fs::canonicalize(&path).is_ok_and(|it| it == there) { path } else { there })
}

/// Directories that belong to the system, with everything in them.
const SYSTEM: &[&str] = &[
    "/bin",
    "/boot",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/sbin",
    "/usr/bin",
    "/usr/include",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/libx32",
    "/usr/sbin",
];
/// Directories that belong to the system themselves. A project may lie below them, as in `/usr/src/app` or
/// `/var/www/html`.
const PLACES: &[&str] = &[
    "/",
    "/media",
    "/opt",
    "/run",
    "/tmp",
    "/usr",
    "/usr/local",
    "/usr/local/bin",
    "/usr/local/etc",
    "/usr/local/lib",
    "/usr/local/sbin",
    "/usr/local/share",
    "/usr/local/src",
    "/usr/share",
    "/usr/src",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/log",
    "/var/mail",
    "/var/opt",
    "/var/spool",
    "/var/tmp",
];
/// The directory of users' homes, and root's home.
const HOMES: &str = "/home";
const HOME_OF_ROOT: &str = "/root";

/// Describes a directory that cannot be a project: a directory of the system, or any user's home, even if
/// `HOME` does not name it.
fn of_others(root: &Path) -> Option<&'static str> {
    let is = |place: &&str| root == Path::new(place);
    if SYSTEM.iter().any(|place| root.starts_with(place)) || PLACES.iter().any(is) {
        return Some("a directory of the system's");
    }
    let is_home =
        is(&HOMES) || is(&HOME_OF_ROOT) || root.parent().is_some_and(|above| above == Path::new(HOMES));
    is_home.then_some("a home directory, or holds them")
}

/// Checks that the user may list the project and go into it: Bailey cannot mask files that it cannot look
/// through.
fn is_readable(root: &Path) -> Result<()> {
    let may = Access::READ_OK | Access::EXEC_OK;
    match accessat(CWD, root, may, AtFlags::EACCESS) {
        Err(Errno::ACCESS) => bail!(
            "cannot read the project `{0}`: permission denied. Ask its owner for access (chmod o+rx {1}), \
             or work in a project of your own",
            root.display(),
            shell_word(&root.display().to_string())
        ),
        _ => Ok(()),
    }
}

/// Checks that a session's project is still at its path.
///
/// # Errors
/// When it is not there. The error says why that may be, and how to go on.
pub fn still_there(workspace: &WsPath) -> Result<()> {
    if Path::new(&workspace.0).is_dir() {
        return Ok(());
    }
    bail!(
        "the project `{workspace}` is not there: it was deleted, moved or renamed. The changes of the \
         session are kept: put the directory back at that path, then look with `bailey sessions list` and \
         `bailey sessions diff SESSION`; `bailey sessions rm SESSION` removes the session"
    )
}

/// The text of a project's `.bailey/config.toml`, or `None` if the file does not exist.
///
/// # Errors
/// When the file is a link, lies behind one, is too long, or cannot be read.
pub fn settings(root: &Path) -> Result<Option<String>> {
    text(root, SETTINGS)
}

/// The text of a project's `.mcp.json`, which names MCP servers, or `None` if the file does not exist.
///
/// # Errors
/// As for [`settings`].
pub fn mcp_servers(root: &Path) -> Result<Option<String>> {
    text(root, MCP_SERVERS)
}

/// The text of a file of a project. Bailey follows no link on the way, so that the path cannot lead to a file
/// elsewhere, and reads only a regular file.
fn text(root: &Path, name: &str) -> Result<Option<String>> {
    let shown = root.join(name);
    let cannot = || format!("cannot read `{}`", shown.display());
    let dir = match openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(dir) => dir,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error).with_context(cannot),
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file =
        match openat2(dir, name, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(Errno::LOOP) => bail!("`{}` is, or lies behind, a link: make it a file", shown.display()),
            Err(error) => return Err(error).with_context(cannot),
        };
    if !file.metadata().with_context(cannot)?.is_file() {
        bail!("`{}` is not a regular file", shown.display());
    }
    let mut text = String::new();
    file.take(SETTINGS_BYTES_MAX + 1).read_to_string(&mut text).with_context(cannot)?;
    if text.len() as u64 > SETTINGS_BYTES_MAX {
        bail!("`{}` is longer than {SETTINGS_BYTES_MAX} bytes", shown.display());
    }
    Ok(Some(text))
}
