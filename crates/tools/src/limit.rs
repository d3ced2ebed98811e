//! What a limit was, and which setting of the owner's raises it.

use crate::exec::printed;
use bailey_protocol::{Enforced, ExecReport, Limits, Wall};

/// SIGXFSZ: a file would have become larger than the limit.
const TOO_LARGE: i32 = 25;
/// What libraries and shells say where no process can be started any more.
const NO_PROCESS: [&str; 4] =
    ["Resource temporarily unavailable", "Cannot fork", "can't fork", "can't start new thread"];
/// What they say of a file that would become too large.
const NO_FILE: [&str; 2] = ["File too large", "File size limit exceeded"];

/// A limit by the name that a report has for it, with how much it was: `memory limit of 4096 MiB`.
#[must_use]
pub fn limit(name: &str, limits: &Limits) -> String {
    match name {
        "time limit" => format!("{name} of {} s", limits.wall_ms / 1000),
        "memory limit" => format!("{name} of {} MiB", limits.memory_bytes >> 20),
        "disk limit" => format!("{name} of {} MiB", limits.disk_bytes >> 20),
        _ => name.to_owned(),
    }
}

/// What is to be known of a limit that ended a command where it was watched and not held; nothing where the
/// kernel held it.
#[must_use]
pub fn burst(name: &str, enforced: Option<&Enforced>) -> &'static str {
    let wall = match name {
        "memory limit" => Wall::MemoryLimit,
        "disk limit" | "disk reserve" => Wall::DiskLimit,
        _ => return "",
    };
    match enforced.is_some_and(|enforced| enforced.watched.contains(&wall)) {
        true => ", which is watched here and not held: for a moment it may have been more",
        false => "",
    }
}

/// Which setting raises the limit that ended a command, or that it seems to have met, and failed of: nothing
/// counts what the kernel refuses a command, so its own words are what there is. None where nothing speaks
/// for a limit.
#[must_use]
pub fn raise(report: &ExecReport, limits: &Limits) -> Option<String> {
    let raise = |setting| format!("the human can raise `{setting}` in [limits] of config.toml");
    match report.limit.as_deref() {
        Some("time limit") => return Some(raise("command_seconds")),
        Some("memory limit") => return Some(raise("command_memory_mib")),
        Some("disk limit") => {
            return Some(format!(
                "what earlier commands of the session left counts, too (its changes, its own home and /tmp): remove \
                 some of that, or {}",
                raise("command_disk_mib")
            ));
        }
        Some("disk reserve") => {
            return Some(
                "the disk of the session's folder was nearly full: make room there, or the human can lower `reserve_mib` \
                 in [sandbox] of config.toml"
                    .to_owned(),
            );
        }
        Some(_) => return None,
        None if report.exit == Some(0) => return None,
        None => {}
    }
    let text = printed(report);
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if report.signal == Some(TOO_LARGE) || report.exit == Some(128 + TOO_LARGE) || says(&NO_FILE) {
        let most = limits.disk_bytes >> 20;
        let setting = raise("command_disk_mib");
        return Some(format!(
            "no file of a command becomes larger than the disk limit of {most} MiB; {setting}"
        ));
    }
    says(&NO_PROCESS).then(|| {
        let setting = raise("command_processes");
        format!(
            "if it could not start a process: a command has {} processes and threads at most; {setting}",
            limits.pids
        )
    })
}
