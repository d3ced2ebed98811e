//! What the host changed in the project while a process of the session lives in the background: the overlay
//! is not mounted anew beneath that, and may show it as it was.

use super::beneath::{Root, names, type_of};
use super::error::Error;
use super::ignores::Ignores;
use bailey_protocol::{Outside, WsPath};
use rustix::fs::{FileType, Stat};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How long is looked at most, and at how many entries: a command's result waits for it.
const TIME_MAX: Duration = Duration::from_millis(200);
const VISITS_MAX: usize = 50_000;
/// How many are named.
const NAMED_MAX: usize = 10;

/// What of `project` changed since then (Unix time in nanoseconds), ignored files left out. A directory is
/// named where something of it came, went away or has another name: what went away nobody can name.
pub(super) fn changed(project: &str, since: u64) -> Result<Outside, Error> {
    let root = Root::open(project)?;
    let deadline = Instant::now() + TIME_MAX;
    let mut outside = Outside::default();
    let mut visits = 0;
    let repository = Ignores::of_repository(&root).unwrap_or_else(|_| Rc::new(Ignores::none()));
    let mut pending = VecDeque::from([(String::new(), repository)]);
    while let Some((at, rules)) = pending.pop_front() {
        if visits >= VISITS_MAX || outside.paths.len() >= NAMED_MAX || Instant::now() >= deadline {
            outside.more = true;
            break;
        }
        // A directory that went away, or is a symlink now, is told by the one above it.
        let Ok(dir) = root.dir(&at) else { continue };
        let rules = rules.below(&root, &at);
        let Ok((mut names, more)) = names(&dir, VISITS_MAX - visits) else { continue };
        visits += names.len();
        outside.more |= more;
        names.sort_unstable();
        if rustix::fs::fstat(&dir).is_ok_and(|stat| is_since(&stat, since)) {
            outside.paths.push(WsPath(root.absolute(&at)));
        }
        for (child, stat) in rules.keep(&dir, &at, &names) {
            if type_of(&stat) == FileType::Directory {
                pending.push_back((child, rules.clone()));
            } else if is_since(&stat, since) {
                outside.paths.push(WsPath(root.absolute(&child)));
            }
        }
    }
    outside.more |= outside.paths.len() > NAMED_MAX;
    outside.paths.truncate(NAMED_MAX);
    Ok(outside)
}

fn is_since(stat: &Stat, since: u64) -> bool {
    i128::from(stat.st_ctime) * 1_000_000_000 + i128::from(stat.st_ctime_nsec) >= i128::from(since)
}
