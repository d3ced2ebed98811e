//! A container's engine forbids by default what the walls are made of. Then the reason alone, an `Operation
//! not permitted`, helps nobody: the line is named that allows it.

use rustix::io::Errno;
use std::path::Path;

/// What engines put into their containers.
const MARKS: [&str; 2] = ["/.dockerenv", "/run/.containerenv"];

/// The line that allows what the walls need. `IMAGE` is where the reader's own begins.
const LINE: &str = r#"mkdir -p "$HOME/.bailey" && docker run --rm -it --user "$(id -u):$(id -g)" --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined -e HOME -v "$HOME/.bailey:$HOME/.bailey" -v "$PWD:$PWD" -w "$PWD" IMAGE bailey run …"#;

/// What root needs besides, who plays other users.
const OF_ROOT: &str = "; for root also --cap-add SYS_ADMIN --cap-add SYS_PTRACE";

/// Whether this is a container's own file system.
pub(super) fn is_here() -> bool {
    MARKS.iter().any(|mark| Path::new(mark).exists())
}

/// A reason why there is no sandbox; in a container, where it is one of permission, with the way out.
pub(super) fn explained(reason: String, is_in_container: bool, is_root: bool) -> String {
    let is_forbidden = [Errno::PERM, Errno::ACCESS, Errno::NOSYS]
        .iter()
        .any(|errno| reason.contains(&format!("(os error {})", errno.raw_os_error())));
    if !is_in_container || !is_forbidden {
        return reason;
    }
    let of_root = if is_root { OF_ROOT } else { "" };
    format!(
        "{reason}: a container with default options forbids what the walls are made of; this allows it: {LINE}{of_root}"
    )
}
