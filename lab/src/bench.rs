//! `cargo xtask bench`: how long things take, side by side in one interleaved run.
//!
//! Absolute times are this machine's, at this minute; ratios of one run travel. What is not installed is
//! skipped, and said. Read `case.rs` first (how cases are run in turn), then `walls.rs`, `reader.rs`,
//! `one_shot.rs`, `session.rs`, `merges.rs`, `inside.rs`, `door.rs` and `daemon.rs` (what is run).

mod case;
mod daemon;
mod door;
mod inside;
mod lab;
mod merges;
mod one_shot;
mod reader;
mod session;
mod walls;

use anyhow::{Context as _, Result, bail};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use xtask::{cargo, check, target_dir};

/// Set for the release build of this program that measures.
const MEASURES: &str = "--measures";

/// A part of the benchmarks, by the name of its file.
type Part = (&'static str, fn(&Path) -> Result<()>);

const PARTS: [Part; 8] = [
    ("walls", walls::run),
    ("reader", reader::run),
    ("one_shot", one_shot::run),
    ("session", session::run),
    ("merges", merges::run),
    ("inside", |_| inside::run()),
    ("door", door::run),
    ("daemon", daemon::run),
];

/// Runs the benchmarks, or the parts of these names.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    if let [MEASURES, parts @ ..] = options {
        return measure(parts);
    }
    if let Some(other) = options.iter().find(|name| !PARTS.iter().any(|(part, _)| part == *name)) {
        bail!(
            "`bench` has no part `{other}`: walls, reader, one_shot, session, merges, inside, door, daemon"
        );
    }
    // What is measured in this process must be a release build, too.
    check(&mut cargo(&["build", "--quiet", "--release", "--locked", "-p", "bailey", "-p", "lab"]))?;
    check(Command::new(target_dir().join("release/lab")).args(["bench", MEASURES]).args(options))
}

/// What [`door`] runs inside the walls.
pub(crate) fn asks(words: &[&str]) -> Result<()> {
    door::client::main(words)
}

fn measure(parts: &[&str]) -> Result<()> {
    let bailey = bailey()?;
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{processors} processors, load {}", load.trim());
    let size = fs::metadata(&bailey)?.len();
    println!("release binary: {:.1} MB\n", size as f64 / 1e6);
    let mut wanted = PARTS.iter().filter(|(name, _)| parts.is_empty() || parts.contains(name));
    wanted.try_for_each(|(_, run)| run(&bailey))
}

fn bailey() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    own.parent().map(|folder| folder.join("bailey")).context("this program lies nowhere")
}
