//! `cargo xtask demo`: a stranger sees the product do its work, and can check that it did.

mod check;
mod picture;
mod project;

use crate::{cargo, check as must, root, target_dir};
use anyhow::{Context as _, Result, bail};
pub use project::Project;
use std::{
    io::IsTerminal as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The task of the demo.
pub const TASK: &str = "make the tests pass";

/// What a test may change, to see that the demo notices.
#[derive(Debug, Default)]
struct Options {
    record: bool,
    /// Draws the run to the README's picture instead.
    svg: bool,
    other_bug: bool,
    /// Leave the files, as on a terminal.
    keep: bool,
    /// A program that is built already.
    bailey: Option<PathBuf>,
}

/// Runs the demo.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let mut chosen = Options::default();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match *option {
            "--bailey" => chosen.bailey = Some(options.next().context("`--bailey` needs a FILE")?.into()),
            "--keep" => chosen.keep = true,
            "--svg" => chosen.svg = true,
            "--record" => chosen.record = true,
            "--plant-another-bug" => chosen.other_bug = true,
            other => bail!("`demo` has no option `{other}`"),
        }
    }
    let bailey = chosen.bailey.map_or_else(build, Ok)?;
    let project = Project::make(chosen.other_bug)?;
    if chosen.record {
        return crate::lab(&["record", &bailey.display().to_string()]);
    }
    let cassette = cassette();
    let mut run = command(&bailey, &project);
    run.args(["run", "--apply", "--approve", "never", "-C"]).arg(project.crate_dir());
    run.arg("--model").arg(format!("replay:{}", cassette.display())).arg(TASK);
    if chosen.svg {
        let typed = format!("bailey run --apply \"{TASK}\"");
        return picture::draw(&run, &typed, &root().join("docs").join("demo.svg"));
    }
    // A pipe of the program that started this one is no context of the task.
    run.stdin(Stdio::null());
    println!("Bailey repairs a small crate with a planted bug: {}", project.crate_dir().display());
    println!(
        "The model is a RECORDING: only its words are played. What you see it do happens now, inside the walls.\n"
    );
    println!("$ bailey run --apply \"{TASK}\"\n");
    must(&mut run).context("the run did not come to its end, so this demo shows nothing")?;
    println!("\n$ bailey audit log\n");
    must(command(&bailey, &project).args(["audit", "log", "-n", "200"]))?;
    println!("\n$ bailey audit verify\n");
    must(command(&bailey, &project).args(["audit", "verify"]))?;
    println!("\nWhat the journal says, and what the tests say outside of the agent:\n");
    check::run(&bailey, &project)?;
    let folder = if chosen.keep || std::io::stdout().is_terminal() { Some(project.keep()) } else { None };
    println!("{}", next(folder.as_deref()));
    Ok(())
}

fn build() -> Result<PathBuf> {
    // With cargo's own progress: a first build takes minutes, and silence looks like a hang.
    must(&mut cargo(&["build", "--locked", "-p", "bailey"]))?;
    let bailey = target_dir().join("debug").join("bailey");
    if bailey.is_file() { Ok(bailey) } else { bail!("cargo built no `{}`", bailey.display()) }
}

/// The recording of the model.
#[must_use]
pub fn cassette() -> PathBuf {
    root().join("demo").join("cassette.json")
}

/// Bailey over the demo's own home.
#[must_use]
pub fn command(bailey: &Path, project: &Project) -> Command {
    let mut command = Command::new(bailey);
    command.arg("--home").arg(project.home()).env_remove("BAILEY_HOME");
    command
}

/// How to go on. On a terminal the demo's files are kept, for whoever wants to look at them.
fn next(folder: Option<&Path>) -> String {
    let kept =
        folder.map(|folder| format!("\nEverything lies in {} (delete it when you like).", folder.display()));
    format!(
        "{}\nTo go on with a real model, as docs/quickstart.md says in more words:\n\n  \
         cargo install --locked --path crates/bailey\n  \
         bailey init && bailey secrets set ANTHROPIC_API_KEY\n  \
         cd YOUR/REPOSITORY && bailey run \"make the tests pass\"\n",
        kept.unwrap_or_default()
    )
}
