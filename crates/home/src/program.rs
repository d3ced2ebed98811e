//! This program's own files: how to start the program again, and the files that an apply never writes. The
//! built-in rule `binaries` protects these: this program, and those programs of its owner's that it runs or
//! asks outside of a session's walls.

use crate::config::{Config, Declared, McpServer, Peer};
use anyhow::{Context as _, Result};
use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    fs,
    os::unix::process::CommandExt as _,
    path::{Component, Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// This running program, wherever its file is now.
const SELF: &str = "/proc/self/exe";
/// The kernel adds this to the path of a program whose file was replaced or removed since the program began.
const REPLACED: &str = " (deleted)";
/// How many links the kernel follows in one path (path_resolution(7)).
const LINKS_MAX: usize = 41;
/// The program that keeps the daemon running. It lies beside this one.
const BOOT: &str = "bailey-boot";

/// A command that starts this program again. Its argument 0 is the path where the first of these processes
/// found the program when it began: the file may have moved since, and another file may have taken its place.
pub fn again() -> Command {
    let mut command = Command::new(SELF);
    command.arg0(began());
    command
}

/// The paths of this program and of `bailey-boot`: the present ones, and those at the start, even if newer
/// files have taken these places meanwhile.
///
/// # Errors
/// When the kernel does not say where this program lies.
pub fn files() -> Result<Vec<String>> {
    let now = env::current_exe().context("cannot find this program's own file")?;
    Ok(of(&now, began()))
}

/// The paths of [`files`], and the owner's files that the configuration names: extensions and peers, with
/// their files, and programs that notify a person of a question. They may lie in a project. A session that
/// could write one of them there would choose its own judge, or run code outside of the walls.
///
/// # Errors
/// As for [`files`].
pub fn kept(config: &Config) -> Result<Vec<String>> {
    let mut all = files()?;
    let notify = config.approvals.escalation.iter().flat_map(|step| &step.notify).map(PathBuf::from);
    let declared = notify.chain(config.extensions.iter().flat_map(Declared::paths));
    let declared = declared.chain(config.peers.values().flat_map(Peer::paths));
    let declared = declared.chain(config.mcp.values().flat_map(McpServer::paths));
    let passed = declared.filter(|path| path.is_absolute()).flat_map(|path| passed(&path));
    all.extend(
        passed.filter(|path| !path.is_dir() || path.is_symlink()).map(|path| path.display().to_string()),
    );
    all.sort();
    all.dedup();
    Ok(all)
}

/// The path itself, each link on its way, and the file that it leads to in the end. A change to any of them
/// changes the meaning of the path.
fn passed(path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    let mut at = PathBuf::from("/");
    let mut rest: Vec<OsString> = names(path);
    while let Some(name) = rest.pop() {
        if name == ".." {
            at.pop();
            continue;
        }
        let here = at.join(name);
        match fs::read_link(&here) {
            Ok(target) if all.len() < LINKS_MAX => {
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                rest.extend(names(&target));
                all.push(here);
            }
            _ => at = here,
        }
    }
    all.push(at);
    all
}

/// The names in a path, in reverse order.
fn names(path: &Path) -> Vec<OsString> {
    let parts = path.components().rev();
    parts
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

/// The path of this program when it began, or when the process that started it began.
fn began() -> &'static Path {
    static BEGAN: OnceLock<PathBuf> = OnceLock::new();
    BEGAN.get_or_init(|| {
        let told = env::args_os().next().map(PathBuf::from);
        let told = told.filter(|path| path.is_absolute() && path != Path::new(SELF));
        told.or_else(|| env::current_exe().ok()).unwrap_or_else(|| SELF.into())
    })
}

fn of(now: &Path, began: &Path) -> Vec<String> {
    let shown = now.display().to_string();
    // A file may really have such a name. Then both paths are protected.
    let replaced = shown.strip_suffix(REPLACED).map(PathBuf::from);
    let programs = [Some(now), replaced.as_deref(), Some(began)].into_iter().flatten();
    let all: BTreeSet<PathBuf> =
        programs.flat_map(|program| [program.to_path_buf(), program.with_file_name(BOOT)]).collect();
    all.iter().map(|path| path.display().to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::of;
    use std::path::Path;

    #[test]
    fn a_program_whose_file_was_replaced_or_moved_is_also_the_one_that_lies_there() {
        let usual = Path::new("/usr/bin/bailey");
        assert_eq!(of(usual, usual), ["/usr/bin/bailey", "/usr/bin/bailey-boot"]);
        for now in ["/usr/bin/bailey (deleted)", "/usr/bin.old/bailey", "/usr/bin/bailey.old"] {
            let all = of(Path::new(now), usual);
            assert!(
                ["/usr/bin/bailey", "/usr/bin/bailey-boot", now].iter().all(|it| all.contains(&(*it).into())),
                "{all:?}"
            );
        }
        let moved_twice = of(Path::new("/a/bailey (deleted)"), usual);
        assert!(
            ["/a/bailey", "/usr/bin/bailey"].iter().all(|it| moved_twice.contains(&(*it).into())),
            "{moved_twice:?}"
        );
    }
}
