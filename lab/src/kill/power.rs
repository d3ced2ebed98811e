//! `cargo xtask kill --power N`: the machine loses its power.
//!
//! A Linux guest in QEMU runs the real binary, with its home on a disk, and tells the serial console what the
//! binary says. QEMU is killed at a random moment: what the guest's page cache held is gone, what the guest
//! had flushed is on the disk. A second guest opens the same disk and reads the journal. Every entry that was
//! reported as lasting must be there, and the chain must hold. The control is a program that never waits for
//! the disk: in the same rig, killed as soon as it shows a question, it must lose an entry. Killed later it
//! may be lucky: the walls' overlay flushes its disk when it is unmounted, after every command.
//!
//! What a real drive does with what it was told to flush is not tested: the disk is a file of the host, and
//! the host lives.
//!
//! Read `guest.rs` first (what happens inside), then `rig.rs` (what it runs on), then `check.rs`.

mod check;
mod cpio;
pub(crate) mod guest;
mod rig;

use super::{Build, Program, dice::Dice};
use anyhow::{Context as _, Result, bail, ensure};
use check::{Reported, read_back};
use guest::BEGIN;
use rig::{QUESTION, Rig};
use std::time::{Duration, Instant};

/// The kill comes within this time after the program was started, or after it first asked: in turn, since
/// what comes first is a new journal, and what comes then is work.
const SPAN: Duration = Duration::from_secs(15);
/// How often the control may be lucky: the guest's kernel flushes by itself now and then.
const LUCK: usize = 3;

/// Loses the power so many times.
pub(super) fn run(times: usize, seed: Option<u64>, build: Build) -> Result<()> {
    let mut dice = Dice::new(seed);
    println!(
        "seed {}: `cargo xtask kill --power {times} --seed {}` kills at the same moments\n",
        dice.seed(),
        dice.seed()
    );
    let begin = Instant::now();
    let rig = Rig::new(&Program::build(build)?)?;
    let careless = Rig::new(&Program::build(Build { controls: true, ..build })?)?;
    println!("guest: {}\n", rig.kernel());
    let mut lasting = 0;
    for number in 1..=times {
        // The control's moment, one of work, one of a journal that is being made.
        let (from, after) = match number % 3 {
            1 => (QUESTION, Duration::ZERO),
            2 => (QUESTION, dice.within(SPAN)),
            _ => (BEGIN, dice.within(SPAN)),
        };
        let (reported, found) = lose_power(&rig, "run", from, after)?;
        let since = if from == BEGIN { "the start" } else { "a question" };
        let told = format!("{number:>3}  {:>6.3} s after {since}: {reported}", after.as_secs_f64());
        let kept = found.holds(&reported).with_context(|| told.clone())?;
        println!("{told}; {kept}");
        lasting += usize::from(reported.entries() > 0);
    }
    ensure!(lasting * 2 >= times, "only {lasting} of {times} guests came far enough to report anything");
    println!("\n{lasting} of {times} guests had reported entries as lasting, and none of those was lost");
    let seen = control(&careless).context("the control")?;
    println!("control: with `synchronous=OFF` the check fails: {seen}");
    println!("\n{:.0} s\neverything holds", begin.elapsed().as_secs_f64());
    Ok(())
}

/// One guest that is killed, and what another finds.
fn lose_power(rig: &Rig, mode: &str, from: &str, after: Duration) -> Result<(Reported, check::Found)> {
    let disk = rig.disk()?;
    let console = rig.killed(&disk, mode, from, after)?;
    let reported = Reported::read(&console);
    let found = read_back(&rig.whole(&disk, "look")?)?;
    Ok((reported, found))
}

/// The program that never waits for the disk; what the check says of it.
fn control(rig: &Rig) -> Result<String> {
    for _ in 0..LUCK {
        let (reported, found) = lose_power(rig, "careless", QUESTION, Duration::ZERO)?;
        if let Err(error) = found.holds(&reported) {
            return Ok(format!("{reported}; {error:#}"));
        }
    }
    bail!("{LUCK} times a program that never waits for the disk lost nothing, so this shows nothing")
}
