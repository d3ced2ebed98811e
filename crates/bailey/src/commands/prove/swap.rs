//! A directory of the project that is swapped for a link to the outside, all the time, while the kernel reads a file in it.
//!
//! The link leads to a place that the inside has, too (/etc), so that it is the way of opening that holds, and not the view.

use super::{
    stand::Stand,
    trial::{Attempt, Tried},
};
use anyhow::Result;
use bailey_kernel::Acted;
use bailey_protocol::{Action, Report, WsPath};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::{
    fs, io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// What the project's own file holds.
pub(super) const INSIDE: &str = "nothing\n";
/// How often the kernel reads, at least, and how often it must have met the directory and the link each.
const READS: usize = 60;
const EACH: usize = 3;
/// How long that may take.
const RACE_MAX: Duration = Duration::from_secs(12);

pub(super) async fn tried(stand: &Stand) -> Result<Tried> {
    let (plain, link) = (stand.project.join("plain"), stand.project.join("link"));
    std::os::unix::fs::symlink("/etc", &link)?;
    let control = fooled(&plain, &link)?;
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = thread::spawn({
        let (stop, plain, link) = (stop.clone(), plain.clone(), link.clone());
        move || {
            while !stop.load(Ordering::Relaxed) {
                swap(&plain, &link).ok();
                thread::yield_now();
            }
        }
    });
    let attack = raced(stand, &plain.join("passwd")).await;
    stop.store(true, Ordering::Relaxed);
    swapper.join().ok();
    Ok(Tried { attack: attack?, control })
}

fn swap(plain: &Path, link: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, plain, CWD, link, RenameFlags::EXCHANGE)?)
}

/// The control looks first and opens then, as one would; the swap comes just between.
fn fooled(plain: &Path, link: &Path) -> Result<Attempt> {
    let is_plain = fs::symlink_metadata(plain)?.is_dir();
    swap(plain, link)?;
    let read = fs::read(plain.join("passwd"));
    swap(plain, link)?;
    Ok(match read {
        Ok(bytes) if is_plain && bytes != INSIDE.as_bytes() => {
            Attempt::Reached("who looks first and opens then reads the file outside".into())
        }
        _ => Attempt::Nothing("there is no /etc/passwd to read".into()),
    })
}

async fn raced(stand: &Stand, file: &Path) -> Result<Attempt> {
    let path = WsPath(file.display().to_string());
    let (mut reads, mut read, mut refused) = (0, 0, 0);
    let begin = Instant::now();
    while reads < READS || read < EACH || refused < EACH {
        if begin.elapsed() > RACE_MAX {
            return Ok(Attempt::Nothing(format!(
                "of {reads} reads {read} met the directory and {refused} the link"
            )));
        }
        reads += 1;
        let acted = stand.host.act(Action::Read { path: path.clone() }).await?;
        match &acted {
            Acted::Done(output) if let Report::File(report) = output.report() => {
                if report.content.0 != INSIDE.as_bytes() {
                    return Ok(Attempt::Reached("a read showed the file outside".into()));
                }
                read += 1;
            }
            _ => refused += 1,
        }
    }
    Ok(Attempt::Refused(format!("{reads} reads showed nothing outside")))
}
