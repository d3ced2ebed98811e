//! Tasks that run Bailey for long, at its limits or beside others: `cargo xtask kill`, `soak`, `bench` and
//! `dist`.
//!
//! `cargo xtask` builds this program and passes its arguments on. It links Bailey's own crates, to measure
//! from inside and to play the servers that Bailey talks with.

#![expect(clippy::print_stdout, reason = "a developer's tool talks to its developer")]

mod bench;
mod dist;
mod kill;
mod line;
mod record;
mod soak;

use anyhow::{Result, bail};
use std::{path::Path, process::ExitCode};

fn main() -> ExitCode {
    xtask::tell(run)
}

fn run(arguments: &[&str]) -> Result<()> {
    match arguments {
        ["kill", options @ ..] => kill::run(options),
        ["bench", options @ ..] => bench::run(options),
        ["dist", options @ ..] => dist::run(options),
        ["soak", options @ ..] => soak::run(options),
        // `cargo xtask demo --record`.
        ["record", bailey] => record::run(Path::new(bailey)),
        // The client of `bench door`.
        ["asks", words @ ..] => bench::asks(words),
        // The first process of a guest of `kill --power`.
        ["guest", mode] => kill::power::guest::run(mode),
        _ => bail!("see `cargo xtask help`"),
    }
}
