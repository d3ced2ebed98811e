//! A directory of the project that is swapped for a link again and again, while the kernel reads a file in
//! it.
//!
//! A command inside the walls swaps them, so that the reads, which share its view, meet both. The link leads
//! to a place that also exists inside (/etc), so that only the way of opening can hold, and not the view.

use super::{
    attack::{Attempt, Tried},
    fixture::{Fixture, Side},
};
use crate::probe::{INSIDE, Swapped};
use anyhow::Result;
use bailey_kernel::Acted;
use bailey_protocol::{Action, Report, WsPath};
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

/// How often the reads must have met the directory, and how often the link.
const EACH: usize = 5;
/// The maximum time for commands to swap, one after the other, until the reads have met both. Each read is
/// journalled, and a disk that is still busy with other programs' files takes a fifth of a second for one
/// entry.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn tried(fixture: &Fixture) -> Result<Tried> {
    let control = fooled(&fixture.outside.join("race"))?;
    let (mut read, mut refused, mut leaked) = (0, 0, false);
    let begin = Instant::now();
    for round in 0.. {
        if begin.elapsed() > PATIENCE {
            break;
        }
        let words = fixture.words(&format!("swap {{yard}}/race{round}"), Side::Inside, None);
        let file = WsPath(format!("{}/race{round}/plain/passwd", fixture.host.workspace().0));
        let swapping = fixture.inside(words, fixture.limits.clone());
        tokio::pin!(swapping);
        // A refusal before the first successful read does not count: the directory may not exist yet.
        let mut has_begun = false;
        loop {
            let acted = tokio::select! {
                swapped = &mut swapping => match swapped?.attempt {
                    Attempt::Reached(_) => break,
                    other => return Ok(Tried { attack: other, control }),
                },
                acted = fixture.host.act(Action::Read { path: file.clone() }) => acted?,
            };
            match &acted {
                Acted::Done(output) if let Report::File(report) = output.report() => {
                    // A file that is still being written is also the file inside.
                    leaked |= !INSIDE.as_bytes().starts_with(&report.content.0);
                    (has_begun, read) = (true, read + 1);
                }
                _ => refused += usize::from(has_begun),
            }
        }
        if leaked {
            let attack = Attempt::Reached("a read showed the file outside".into());
            return Ok(Tried { attack, control });
        }
        if read >= EACH && refused >= EACH {
            let attack = Attempt::Refused(format!("{} reads showed nothing outside", read + refused));
            return Ok(Tried { attack, control });
        }
    }
    let attack = Attempt::Nothing(format!("{read} reads met the directory and {refused} the link"));
    Ok(Tried { attack, control })
}

/// The control looks first and then opens, as a simple program would. The swap comes between the two.
fn fooled(folder: &Path) -> Result<Attempt> {
    let swapped = Swapped::make(folder)?;
    let is_plain = fs::symlink_metadata(&swapped.plain)?.is_dir();
    swapped.swap()?;
    Ok(match fs::read(swapped.plain.join("passwd")) {
        Ok(bytes) if is_plain && bytes != INSIDE.as_bytes() => {
            Attempt::Reached("who looks first and opens then reads the file outside".into())
        }
        _ => Attempt::Nothing("there is no /etc/passwd to read".into()),
    })
}
