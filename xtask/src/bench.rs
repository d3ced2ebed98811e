//! `cargo xtask bench`: how long things take, side by side in one interleaved run.
//!
//! Absolute times are this machine's, at this minute; ratios of one run travel. What is not installed is skipped, and
//! said. Read `case.rs` first (how cases are run in turn), then `walls.rs`, `one_shot.rs`, `session.rs` and `inside.rs`
//! (what is run).

mod case;
mod inside;
mod lab;
mod one_shot;
mod session;
mod walls;

use crate::{cargo, check, target_dir};
use anyhow::{Context as _, Result, bail};
use std::{fs, path::PathBuf, process::Command};

/// Set for the release build of this program that measures.
const MEASURES: &str = "--measures";

/// Runs the benchmarks.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    match options {
        [] => {
            // What is measured in this process must be a release build, too.
            check(&mut cargo(&["build", "--quiet", "--release", "--locked", "-p", "bailey", "-p", "xtask"]))?;
            check(Command::new(target_dir().join("release/xtask")).args(["bench", MEASURES]))
        }
        [MEASURES] => measure(),
        [other, ..] => bail!("`bench` has no option `{other}`"),
    }
}

fn measure() -> Result<()> {
    let bailey = bailey()?;
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{processors} processors, load {}", load.trim());
    let size = fs::metadata(&bailey)?.len();
    println!("release binary: {:.1} MB\n", size as f64 / 1e6);
    walls::run(&bailey)?;
    one_shot::run(&bailey)?;
    session::run(&bailey)?;
    inside::run()
}

fn bailey() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    own.parent().map(|folder| folder.join("bailey")).context("this program lies nowhere")
}
