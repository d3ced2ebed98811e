//! Whether what the walls are made of can be made here, and why not. It is tried by a process of its own, for
//! whoever has tried it lives in them.

use super::ARGUMENT;
use rustix::{
    io::Errno,
    mount::{MountPropagationFlags, mount_change},
    thread::UnshareFlags,
};
use std::{
    fs, io,
    path::Path,
    process::{Command, ExitCode, Stdio},
    thread::sleep,
    time::Duration,
};

/// The second argument of such a process.
pub(super) const PROBE: &str = "probe";
/// How it ends where namespaces are forbidden or unknown, and where there were none left.
const FORBIDDEN: u8 = 3;
const USED_UP: u8 = 4;

/// How often it is tried where none is left, and how long after one another: others may give some back.
const TRIES: u32 = 6;
const BETWEEN: Duration = Duration::from_millis(100);

/// Every kind that the walls take, with the word that the kernel has for it in the name of its limit
/// (namespaces(7)).
const KINDS: [(UnshareFlags, &str); 7] = [
    (UnshareFlags::NEWUSER, "user"),
    (UnshareFlags::NEWNS, "mnt"),
    (UnshareFlags::NEWNET, "net"),
    (UnshareFlags::NEWPID, "pid"),
    (UnshareFlags::NEWIPC, "ipc"),
    (UnshareFlags::NEWUTS, "uts"),
    (UnshareFlags::NEWCGROUP, "cgroup"),
];

/// What a try told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Able,
    /// By the kernel, or by somebody's rule.
    Forbidden,
    /// As many as there may be are in use, by others of this user.
    UsedUp,
    /// Nothing about namespaces.
    Nothing,
}

/// Whether the walls' namespaces can be made here: `exe` tries, whose `main` calls
/// [`warden_main`](super::warden_main) first.
///
/// # Errors
/// When it cannot be tried, or what is short now, such as processes or namespaces, says nothing about it.
pub fn can_make_namespaces(exe: &Path) -> io::Result<bool> {
    let mut command = Command::new(exe);
    command.args([ARGUMENT, PROBE]).env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let ended = command.status()?;
    let code = ended.code().and_then(|code| u8::try_from(code).ok());
    match code {
        Some(0) => Ok(true),
        Some(FORBIDDEN) => Ok(false),
        Some(USED_UP) => Err(io::Error::other(NONE_LEFT)),
        _ => Err(io::Error::other(format!("whether namespaces can be made here cannot be tried: {ended}"))),
    }
}

const NONE_LEFT: &str = "the namespaces that there may be here are used up just now; try again";

/// The life of the process that tries.
pub(super) fn main() -> ExitCode {
    let told = told(try_all, zero(read).is_some(), sees_every_limit(), || sleep(BETWEEN));
    match told {
        Attempt::Able => ExitCode::SUCCESS,
        Attempt::Forbidden => FORBIDDEN.into(),
        Attempt::UsedUp => USED_UP.into(),
        Attempt::Nothing => ExitCode::FAILURE,
    }
}

/// What several tries tell. A limit of 0 namespaces is told as no space, and so is one that others use up,
/// which passes: then a session must not be one without walls for its whole life.
fn told(
    mut attempt: impl FnMut() -> io::Result<()>,
    is_one_zero: bool,
    sees_every_limit: bool,
    mut wait: impl FnMut(),
) -> Attempt {
    for _ in 0..TRIES {
        match attempt() {
            Ok(()) => return Attempt::Able,
            Err(error) if is_rule(&error) => return Attempt::Forbidden,
            Err(error) if !is_none_left(&error) => return Attempt::Nothing,
            Err(_) if is_one_zero => return Attempt::Forbidden,
            Err(_) => wait(),
        }
    }
    // Around a user namespace of a container's own there may be one that has none, which nobody in it can
    // see.
    if sees_every_limit { Attempt::UsedUp } else { Attempt::Forbidden }
}

#[expect(deprecated, reason = "this process has one thread and shares no table of descriptors with another")]
fn try_all() -> io::Result<()> {
    let all = KINDS.iter().fold(UnshareFlags::empty(), |all, (flag, _)| all | *flag);
    rustix::thread::unshare(all)?;
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

fn is_rule(error: &io::Error) -> bool {
    is_any(error, &[Errno::PERM, Errno::ACCESS, Errno::NOSYS, Errno::INVAL])
}

fn is_none_left(error: &io::Error) -> bool {
    is_any(error, &[Errno::NOSPC, Errno::USERS])
}

fn is_any(error: &io::Error, of: &[Errno]) -> bool {
    of.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Whether no user namespace lies around this one: the first one has all there is for itself
/// (user_namespaces(7)).
fn sees_every_limit() -> bool {
    read("/proc/self/uid_map").is_some_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"]))
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The kind of namespaces of which there may be none, with the file that says so.
fn zero(read: impl Fn(&str) -> Option<String>) -> Option<(&'static str, String)> {
    let file = |kind: &str| format!("/proc/sys/user/max_{kind}_namespaces");
    let mut files = KINDS.iter().map(|(_, kind)| (*kind, file(kind)));
    files.find(|(_, file)| read(file).as_deref() == Some("0"))
}

/// The setting that disables namespaces here, if there is one, and what enables them.
pub(super) fn disabled() -> Option<String> {
    disabled_by(read)
}

fn disabled_by(read: impl Fn(&str) -> Option<String>) -> Option<String> {
    const KNOBS: [(&str, &str, &str); 2] = [
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "an AppArmor profile for this program that allows `userns`",
        ),
    ];
    if let Some((kind, file)) = zero(&read) {
        let fix = format!("sysctl user.max_{kind}_namespaces=10000");
        return Some(format!("{kind} namespaces are disabled ({file} is 0): {fix} enables them"));
    }
    let found = KNOBS.into_iter().find(|(path, bad, _)| read(path).as_deref() == Some(bad));
    found
        .map(|(path, bad, fix)| format!("user namespaces are disabled ({path} is {bad}): {fix} enables them"))
}

/// Why the kernel gave no namespaces, where this is the setting that may disable some; what allows this
/// program others does not show there.
pub(super) fn why(error: &io::Error, disabled: Option<String>) -> String {
    why_of(error, disabled, zero(read).is_some())
}

fn why_of(error: &io::Error, disabled: Option<String>, is_one_zero: bool) -> String {
    match disabled {
        Some(disabled) if is_rule(error) || (is_none_left(error) && is_one_zero) => disabled,
        _ if is_none_left(error) => NONE_LEFT.into(),
        _ => format!("namespaces cannot be made here: {error}"),
    }
}

#[cfg(test)]
mod tests;
