//! What a guest runs on: a kernel of Debian's, an initial file system with the program and what it needs, a
//! disk, QEMU.

use super::{
    cpio::Archive,
    guest::{BEGIN, END},
};
use crate::kill::Program;
use anyhow::{Context as _, Result, bail, ensure};
use std::{
    collections::BTreeSet,
    fs,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};
use tempfile::{NamedTempFile, TempDir};
use xtask::{check as must, target_dir};

/// How each question of the program ends.
pub(super) const QUESTION: &str = "or [n]o and why: ";
const QEMU: &str = "qemu-system-x86_64";
/// In the order in which they are loaded.
const MODULES: [&str; 7] = [
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci",
    "drivers/block/virtio_blk",
    "fs/overlayfs/overlay",
];
/// What the guest executes besides this program and the one under test.
const PROGRAMS: [&str; 3] = ["/bin/sh", "/sbin/ip", "/usr/bin/setsid"];
/// Every command is Red here: what is Red is what the journal promises to keep.
const RULES: &str = "[[rule]]\nname = \"ask\"\nanswer = \"review\"\nreason = \"the host is asked\"\nmatch = { action = \"exec\" }\n";
/// Some of this kernel's boots under emulation hang or panic, before there is a disk.
const BOOT: Duration = Duration::from_secs(180);
const BOOTS: usize = 4;
/// How long a guest may look.
const LOOK: Duration = Duration::from_secs(300);
const MEGABYTE: u64 = 1 << 20;

/// Everything but a disk.
#[derive(Debug)]
pub(super) struct Rig {
    folder: TempDir,
    kernel: PathBuf,
}

impl Rig {
    pub(super) fn new(program: &Program) -> Result<Self> {
        must(Command::new(QEMU).arg("--version").stdout(Stdio::null())).context(
            "power loss needs QEMU: `apt-get install qemu-system-x86`, or `cargo xtask test --all --install`",
        )?;
        let root = kernel_package()?;
        let kernel = only(&root.join("boot"), "vmlinuz-")?;
        let modules = only(&root.join("lib/modules"), "")?.join("kernel");
        let folder = tempfile::Builder::new().prefix("bailey-power-").tempdir()?;
        let mut archive = Archive::default();
        for (number, name) in MODULES.iter().enumerate() {
            let file = modules.join(name).with_extension("ko");
            archive
                .file(Path::new(&format!("/modules/{number}.ko")), &file)
                .with_context(|| format!("cannot read `{}`", file.display()))?;
        }
        for (name, from) in [("/init", &std::env::current_exe()?), ("/bailey", program.path())] {
            let stripped = folder.path().join("stripped");
            must(Command::new("strip").arg("-o").arg(&stripped).arg(from))?;
            archive.file(Path::new(name), &stripped)?;
        }
        user_land(&mut archive, &std::env::current_exe()?)?;
        fs::write(folder.path().join("initrd"), archive.finish()?)?;
        fs::create_dir_all(folder.path().join("disk/project"))?;
        fs::create_dir_all(folder.path().join("disk/home/policy"))?;
        let default = bailey_policy::DEFAULT_RULES;
        fs::write(folder.path().join("disk/home/policy/rules.toml"), format!("{default}\n{RULES}"))?;
        Ok(Self { folder, kernel })
    }

    /// The kernel's name.
    pub(super) fn kernel(&self) -> String {
        self.kernel.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// A new disk, as a file of the host.
    pub(super) fn disk(&self) -> Result<NamedTempFile> {
        let disk = NamedTempFile::new_in(self.folder.path())?;
        disk.as_file().set_len(64 * MEGABYTE)?;
        let mut mke2fs = Command::new("mke2fs");
        mke2fs.args(["-q", "-t", "ext4", "-d"]).arg(self.folder.path().join("disk")).arg(disk.path());
        must(&mut mke2fs)?;
        Ok(disk)
    }

    /// Runs a guest and kills QEMU at this time after its console showed a word; what it showed in all.
    pub(super) fn killed(
        &self,
        disk: &NamedTempFile,
        mode: &str,
        from: &str,
        after: Duration,
    ) -> Result<String> {
        let mut guest = self.begun(disk, mode)?;
        guest.read(Instant::now() + BOOT, from)?;
        guest.read(Instant::now() + after, END)?;
        let works = !guest.is_over && !guest.shown.contains(END);
        ensure!(works, "the guest did not work: {}", guest.shown);
        Ok(guest.stop())
    }

    /// Runs a guest to its end; what its console showed.
    pub(super) fn whole(&self, disk: &NamedTempFile, mode: &str) -> Result<String> {
        let mut guest = self.begun(disk, mode)?;
        guest.read(Instant::now() + LOOK, END)?;
        ensure!(guest.shown.contains(END), "the guest did not end: {}", guest.shown);
        Ok(guest.stop())
    }

    fn begun(&self, disk: &NamedTempFile, mode: &str) -> Result<Guest> {
        let mut shown = String::new();
        for _ in 0..BOOTS {
            let mut guest = Guest::start(self, disk.path(), mode)?;
            guest.read(Instant::now() + BOOT, BEGIN)?;
            if guest.shown.contains(BEGIN) {
                return Ok(guest);
            }
            shown = guest.stop();
            ensure!(!shown.contains(END), "the guest could not be set up: {shown}");
        }
        bail!("no guest of {BOOTS} came to its first process in {} s: {shown}", BOOT.as_secs())
    }
}

/// A running guest; it is killed when dropped.
struct Guest {
    qemu: Child,
    keys: ChildStdin,
    console: mpsc::Receiver<Vec<u8>>,
    shown: String,
    answered: usize,
    /// QEMU ended by itself, as it does when the kernel gives up.
    is_over: bool,
}

impl Guest {
    fn start(rig: &Rig, disk: &Path, mode: &str) -> Result<Self> {
        // The guest's own cache is what gets lost, so the host's may be used.
        let drive = format!("file={},if=virtio,format=raw,cache=writeback", disk.display());
        let line = format!("console=ttyS0 quiet loglevel=1 panic=-1 no_timer_check -- guest {mode}");
        let mut qemu = Command::new(QEMU)
            .args([
                "-machine",
                "pc,accel=tcg",
                "-cpu",
                "max",
                "-m",
                "512",
                "-smp",
                "1",
                "-nodefaults",
                "-no-reboot",
            ])
            .args(["-display", "none", "-serial", "stdio", "-kernel"])
            .arg(&rig.kernel)
            .arg("-initrd")
            .arg(rig.folder.path().join("initrd"))
            .args(["-append", &line, "-drive", &drive])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let keys = qemu.stdin.take().context("no serial line")?;
        let mut line = qemu.stdout.take().context("no serial line")?;
        let (send, console) = mpsc::channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = line.read(&mut bytes) {
                if send.send(bytes.iter().copied().take(count).collect()).is_err() {
                    return;
                }
            }
        });
        Ok(Self { qemu, keys, console, shown: String::new(), answered: 0, is_over: false })
    }

    /// Reads the console up to a time or a word, and answers with yes each question that was there before.
    fn read(&mut self, until: Instant, word: &str) -> Result<()> {
        while !self.shown.contains(word) && Instant::now() < until {
            let asked = self.shown.matches(QUESTION).count();
            if asked > self.answered {
                self.answered = asked;
                self.keys.write_all(b"y\n")?;
            }
            match self.console.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.shown.push_str(&String::from_utf8_lossy(&bytes)),
                Err(mpsc::RecvTimeoutError::Timeout) => return Ok(()),
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    self.is_over = true;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// SIGKILL; what was shown up to then.
    fn stop(mut self) -> String {
        std::mem::take(&mut self.shown)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// Debian's kernel for machines in a cloud, unpacked; fetched once.
fn kernel_package() -> Result<PathBuf> {
    let folder = target_dir().join("guest-kernel");
    let root = folder.join("root");
    if root.join("boot").is_dir() {
        return Ok(root);
    }
    fs::create_dir_all(&folder)?;
    let script = "set -e
        package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \\(linux-image-[0-9]\\)/\\1/p' | head -n 1)
        [ -n \"$package\" ] || { echo 'apt knows no linux-image-cloud-amd64; run apt-get update' >&2; exit 1; }
        apt-get download -qq -o APT::Sandbox::User=root $package
        rm -rf unpacked; dpkg -x $package*.deb unpacked; rm $package*.deb; mv unpacked root";
    must(Command::new("sh").args(["-c", script]).current_dir(&folder))
        .context("power loss needs a guest's kernel, and Debian's could not be fetched")?;
    Ok(root)
}

fn only(folder: &Path, start: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read `{}`", folder.display()))?;
    let mut found = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
    found
        .next()
        .map(|entry| entry.path())
        .with_context(|| format!("`{}` has no `{start}…`", folder.display()))
}

/// The programs that the guest executes and every library that one of them loads, at the host's own places.
fn user_land(archive: &mut Archive, own: &Path) -> Result<()> {
    for (name, to) in
        [("/bin", "usr/bin"), ("/sbin", "usr/sbin"), ("/lib", "usr/lib"), ("/lib64", "usr/lib64")]
    {
        archive.link(Path::new(name), to)?;
    }
    for name in ["/usr/bin", "/usr/sbin", "/usr/lib64", "/etc", "/root"] {
        archive.directory(Path::new(name))?;
    }
    let mut wanted: BTreeSet<PathBuf> = PROGRAMS.iter().map(PathBuf::from).collect();
    for program in PROGRAMS.iter().map(Path::new).chain([own]) {
        let output = Command::new("ldd").arg(program).output().context("ldd")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        wanted.extend(text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from));
    }
    let mut there = BTreeSet::new();
    for path in wanted.iter().filter(|path| path.as_path() != own) {
        let real = fs::canonicalize(path).with_context(|| path.display().to_string())?;
        if there.insert(real.clone()) {
            archive.file(&real, &real)?;
        }
        // Its name may be a link in a folder that is one.
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
        let named = fs::canonicalize(parent)?.join(name);
        if there.insert(named.clone()) {
            archive.link(&named, &real.display().to_string())?;
        }
    }
    Ok(())
}
