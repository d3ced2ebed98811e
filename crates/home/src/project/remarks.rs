//! Remarks about parts of a project that do not work inside the walls. The user gets them before anything
//! starts, instead of a puzzling error later.

use bailey_protocol::shell_word;
use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// How many names of a project Bailey looks at. More would delay every start.
const NAMES_MAX: usize = 4096;
/// How many files of other users a remark names.
const NAMED_MAX: usize = 3;

/// One remark for each problem that the user should know about, with advice. This looks only at names and
/// owners, of the project and of the entries directly in it, and follows no link.
pub fn remarks(root: &Path) -> Vec<String> {
    [repository_elsewhere(root), of_others(root), of_other_groups(root)].into_iter().flatten().collect()
}

/// A worktree or a submodule: git's own directory is outside of the project, where no sandbox can see it.
fn repository_elsewhere(root: &Path) -> Option<String> {
    fs::symlink_metadata(root.join(".git")).ok().filter(fs::Metadata::is_file)?;
    let shown = root.display();
    Some(format!(
        "`{shown}` is a worktree or a submodule: its repository lies elsewhere, so git does not work inside the walls; files \
         are read and changed as ever. Where the agent needs git, give it a clone: git clone {} DIR",
        word(root)
    ))
}

/// Files that the sandbox's only user does not own: no command inside can change them.
fn of_others(root: &Path) -> Option<String> {
    let me = match rustix::process::geteuid() {
        // When root runs Bailey, the sandbox acts as the owner of the project.
        root_user if root_user.is_root() => fs::symlink_metadata(root).ok()?.uid(),
        user => user.as_raw(),
    };
    let others = owned_by_others(root, me);
    let (first, owner) = others.first()?;
    // A user who does not own the project should not take over files in it.
    if first == root {
        return Some(format!(
            "{} belongs to user {owner}, not {me}: no command inside the walls can change their files. Work \
             as the owner, or on your own copy: cp -r {} DIR",
            name(root, root),
            word(root)
        ));
    }
    let (belong, them) = if others.len() == 1 { ("belongs", "it") } else { ("belong", "them") };
    let paths: Vec<&Path> = others.iter().map(|(path, _)| path.as_path()).collect();
    let (named, words) = (listed(root, &paths), words(&paths));
    Some(format!(
        "{named} {belong} to user {owner}, not {me}: no command inside the walls can change {them}. Unless a program needs {them} \
         so, make {them} yours: sudo chown -R {me} {words}"
    ))
}

/// Files of the sandbox's user that belong to another group, as in a shared directory. No process inside is
/// in that group.
fn of_other_groups(root: &Path) -> Option<String> {
    let of_project = fs::symlink_metadata(root).ok()?;
    let (me, group) = match rustix::process::geteuid() {
        root_user if root_user.is_root() => (of_project.uid(), of_project.gid()),
        user => (user.as_raw(), rustix::process::getegid().as_raw()),
    };
    let entries = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let paths = std::iter::once(root.to_path_buf()).chain(entries.take(NAMES_MAX));
    let owned = paths.filter_map(|path| fs::symlink_metadata(&path).ok().map(|about| (path, about)));
    let others: Vec<PathBuf> =
        owned.filter(|(_, about)| about.uid() == me && about.gid() != group).map(|(path, _)| path).collect();
    let paths: Vec<&Path> = others.iter().map(PathBuf::as_path).collect();
    paths.first()?;
    let (named, words) = (listed(root, &paths), words(&paths));
    Some(format!(
        "{named}: of another group than {group}, in which nobody inside the walls is, so that no command can change what belongs to \
         it. Unless it is shared so: chgrp -R {group} {words}"
    ))
}

/// The names of the first of these paths, and the number of the others.
fn listed(root: &Path, paths: &[&Path]) -> String {
    let named: Vec<String> = paths.iter().take(NAMED_MAX).map(|path| name(root, path)).collect();
    let more = match paths.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    named.join(", ") + &more
}

/// The same paths as shell words.
fn words(paths: &[&Path]) -> String {
    paths.iter().take(NAMED_MAX).map(|path| word(path)).collect::<Vec<_>>().join(" ")
}

/// A path as one shell word. The author of an archive may have chosen the directory's name, and the user
/// pastes the line, with `sudo`.
fn word(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

fn name(root: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(root).ok().filter(|inside| !inside.as_os_str().is_empty());
    format!("`{}`", inside.unwrap_or(path).display())
}

/// Looks at the project itself and the entries directly in it. To go deeper, it would have to open
/// directories that only the sandbox may open.
fn owned_by_others(root: &Path, me: u32) -> Vec<(PathBuf, u32)> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let paths = std::iter::once(root.to_path_buf()).chain(entries.take(NAMES_MAX));
    let owned = paths.filter_map(|path| fs::symlink_metadata(&path).ok().map(|about| (path, about.uid())));
    owned.filter(|(_, owner)| *owner != me).collect()
}
