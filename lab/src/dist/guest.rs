//! A made system as a machine of its own: a disk image of it that QEMU boots, emulated where this machine has
//! nothing better.

use anyhow::{Context as _, Result};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use xtask::check;

const QEMU: &str = "qemu-system-x86_64";
/// How long a guest may take, in seconds: it is emulated.
const SECONDS_MAX: &str = "3600";
/// What a guest's disk holds at most.
const DISK: &str = "3G";
pub(super) const NO_QEMU: &str = "the guest needs QEMU: apt-get install qemu-system-x86";

/// Puts what is in `place` on a disk.
pub(super) fn disk(place: &Path, file: &Path) -> Result<()> {
    fs::remove_file(file).ok();
    check(Command::new("truncate").args(["-s", DISK]).arg(file))?;
    check(Command::new("mkfs.ext4").args(["-q", "-F", "-d"]).arg(place).arg(file))
}

/// What boots it, with its serial line as standard input and output; `nic` is its network.
pub(super) fn machine(place: &Path, disk: &Path, nic: &str) -> Result<Command> {
    let boot = |kind: &str| -> Result<PathBuf> {
        let found = fs::read_dir(place.join("boot"))?.flatten().map(|entry| entry.path());
        let is_it =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(kind));
        found.into_iter().find(is_it).with_context(|| format!("the guest's system has no {kind}"))
    };
    let drive = format!("file={},format=raw,if=virtio", disk.display());
    let mut machine = Command::new("timeout");
    machine.args(["--foreground", SECONDS_MAX, QEMU, "-m", "2048", "-smp", "2", "-no-reboot", "-nic", nic]);
    machine.args(["-display", "none", "-monitor", "none", "-serial", "stdio"]);
    machine.arg("-kernel").arg(boot("vmlinuz")?).arg("-initrd").arg(boot("initrd")?);
    machine.args(["-append", "root=/dev/vda rw console=ttyS0 quiet", "-drive", &drive]);
    Ok(machine)
}
