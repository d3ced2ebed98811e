//! A fresh system in a folder, and a way to run a script in it as if it were the machine: debootstrap makes
//! it, pivot_root enters it (who is in a chroot cannot make user namespaces).

use anyhow::{Result, bail};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use xtask::{check, target_dir};

/// Debian 11 has glibc 2.31, the oldest that a release runs with.
pub(super) const OLD: &str = "bullseye";
const MIRROR: &str = "http://deb.debian.org/debian";

const ENTER: &str = r#"
set -eu
mount --bind "$1" "$1"
cd "$1"
mkdir -p .old
mount --rbind /dev dev
mount --rbind /sys sys
pivot_root . .old
mount -t proc proc /proc
mount -t tmpfs tmpfs /tmp
umount -l /.old
exec sh -eu -c "$2"
"#;

/// A system of this Debian with these packages; made once, and kept in `target/`.
pub(super) fn made(suite: &str, packages: &[&str]) -> Result<PathBuf> {
    let name = if packages.is_empty() { suite.to_owned() } else { format!("{suite}-{}", packages.join("-")) };
    let path = target_dir().join("dist-roots").join(name);
    if path.join("etc/debian_version").exists() && !path.join("debootstrap").exists() {
        return Ok(path);
    }
    if path.exists() {
        fs::remove_dir_all(&path)?;
    }
    fs::create_dir_all(&path)?;
    println!("debootstrap {suite} into {}", path.display());
    let mut make = Command::new("debootstrap");
    make.arg("--variant=minbase");
    if !packages.is_empty() {
        make.arg(format!("--include={}", packages.join(",")));
    }
    make.arg(suite);
    check(make.arg(&path).arg(MIRROR).stdout(Stdio::null()))?;
    Ok(path)
}

/// A copy to spoil.
pub(super) fn copy(of: &Path, name: &str) -> Result<PathBuf> {
    let path = of.with_file_name(format!("try-{name}"));
    if path.exists() {
        fs::remove_dir_all(&path)?;
    }
    check(Command::new("cp").args(["-a", "--reflink=auto", "-T"]).arg(of).arg(&path))?;
    Ok(path)
}

/// Runs a script in a root, and gives what it printed.
pub(super) fn run(root: &Path, script: &str) -> Result<String> {
    let mut enter = Command::new("unshare");
    enter.args(["--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "sh", "-c", ENTER, "sh"]);
    enter.arg(root).arg(script).env_clear().env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    enter.env("HOME", "/root").env("LANG", "C.UTF-8").stdin(Stdio::null());
    let output = enter.output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let wrong = String::from_utf8_lossy(&output.stderr);
        bail!("in {}: {}\n{said}{wrong}", root.display(), output.status);
    }
    Ok(said)
}
