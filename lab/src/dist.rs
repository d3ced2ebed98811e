//! `cargo xtask dist`: what a release consists of, made from one build: a tarball, a Debian package, an OCI
//! image, a bill of materials and the digests of all of them.

mod archive;
mod binary;
mod engine;
mod guest;
mod image;
mod root;
mod sbom;
mod service;
mod trial;
mod walk;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};
use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};
use xtask::target_dir;

/// The machine that artefacts are for, in each packager's words.
const ARCH: &str = "x86_64";
const DEBIAN_ARCH: &str = "amd64";
const OCI_ARCH: &str = "amd64";

/// Makes the artefacts; `--twice` builds them from two clones and compares, `--try` installs them in fresh
/// roots.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let mut wanted = Wanted::default();
    for option in options {
        match *option {
            "--install" => wanted.install = true,
            "--image" => wanted.image = true,
            "--twice" => wanted.twice = true,
            "--try" => wanted.trial = true,
            "--service" => wanted.service = true,
            "--walk" => wanted.walk = true,
            other => match other.strip_prefix("--program=") {
                Some(program) => wanted.program = Some(program.into()),
                None => bail!(
                    "`dist` has no option `{other}`: there are --install, --image, --twice, --try, --service, --walk and --program=FILE"
                ),
            },
        }
    }
    let out = target_dir().join("dist");
    let commit = wanted.twice.then(binary::committed).transpose()?;
    let program = match wanted.program {
        Some(program) => program,
        None => built(wanted.install, commit.as_deref())?,
    };
    fs::create_dir_all(&out)?;
    println!("\n== artefacts in {}", out.display());
    let mut made = vec![sbom::write(&out)?];
    let tree = archive::Tree::make(&program, &made, &out)?;
    made.push(tree.tarball(&out)?);
    let package = tree.debian(&out)?;
    made.push(package.clone());
    let image = wanted.image.then(|| image::write(&tree, &out)).transpose()?;
    if image.is_none() {
        println!("SKIPPED the OCI image: `--image` makes it, with debootstrap and as root");
    }
    made.extend(image.clone());
    checksums(&made, &out)?;
    if wanted.service {
        service::run(&tree, &out)?;
    }
    if wanted.walk {
        walk::run(&tree, &package, &out)?;
    }
    if wanted.trial {
        trial::run(&tree, &out)?;
        image.map_or(Ok(()), |image| engine::run(&image))?;
    }
    Ok(())
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "the options of a command line are each on or off")]
struct Wanted {
    install: bool,
    image: bool,
    twice: bool,
    trial: bool,
    service: bool,
    walk: bool,
    /// What is packed, where nothing is to be built.
    program: Option<PathBuf>,
}

/// The program, built here, and for a commit once more elsewhere.
fn built(install: bool, commit: Option<&str>) -> Result<PathBuf> {
    let build = binary::Build::prepare(install)?;
    println!("== build for {}", build.runs_on());
    let program = build.program()?;
    if let Some(commit) = commit {
        println!("\n== build again, from a clone of {commit} at another path");
        compare(&program, &build.again(commit)?)?;
    }
    Ok(program)
}

/// The version that the artefacts carry: the program's own.
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The moment that stands in every archive instead of the time of building: the last commit's, as
/// reproducible-builds.org defines `SOURCE_DATE_EPOCH` (seconds since 1970).
fn epoch() -> Result<String> {
    if let Ok(epoch) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(epoch);
    }
    output("git", &["log", "-1", "--format=%ct"]).context("the time of the last commit is not known")
}

/// What a program prints, trimmed.
fn output(program: &str, arguments: &[&str]) -> Result<String> {
    let output = std::process::Command::new(program)
        .args(arguments)
        .current_dir(xtask::root())
        .output()
        .with_context(|| format!("cannot run `{program}`"))?;
    if !output.status.success() {
        bail!(
            "`{program} {}` failed: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn digest(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(hex(&Sha256::digest(&bytes)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn compare(first: &Path, second: &Path) -> Result<()> {
    let (one, two) = (digest(first)?, digest(second)?);
    if one != two {
        bail!("two builds differ: {one} is {}, {two} is {}", first.display(), second.display());
    }
    println!("the same program both times: {one}");
    Ok(())
}

fn checksums(made: &[PathBuf], out: &Path) -> Result<()> {
    let mut lines = String::new();
    for path in made {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let line = format!("{}  {name}", digest(path)?);
        let size = fs::metadata(path)?.len();
        println!("{line}  {:.1} MB", size as f64 / 1e6);
        lines.push_str(&line);
        lines.push('\n');
    }
    fs::write(out.join("SHA256SUMS"), lines)?;
    Ok(())
}
