//! The tree of files that an installation consists of, and its two wrappings: a tarball, and a Debian package
//! as deb(5) describes it. Both are the same bytes each time: sorted names, no owners, one time.

use super::{ARCH, DEBIAN_ARCH, epoch, output, version};
use anyhow::{Context as _, Result};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};
use xtask::{check, root};

/// The files below a prefix such as `/usr` or `/usr/local`.
pub(super) struct Tree {
    pub(super) path: PathBuf,
}

impl Tree {
    /// Lays the program out with its manual, completions and documents; `documents` are put beside the
    /// licence.
    pub(super) fn make(program: &Path, documents: &[PathBuf], out: &Path) -> Result<Self> {
        let path = out.join(format!("bailey-{}-{ARCH}-linux", version()));
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        put(program, &path.join("bin/bailey"), 0o755)?;
        let boot = program.with_file_name("bailey-boot");
        put(&boot, &path.join("bin/bailey-boot"), 0o755).context(
            "what looks after the daemon is not beside the program: cargo build -p bailey --bin bailey-boot",
        )?;
        let shells = [
            ("bash", "share/bash-completion/completions/bailey"),
            ("zsh", "share/zsh/site-functions/_bailey"),
            ("fish", "share/fish/vendor_completions.d/bailey.fish"),
        ];
        for (shell, file) in shells {
            let text = printed(program, &["completions", shell])?;
            write(&path.join(file), &text)?;
        }
        let unit = "bailey@.service";
        put(&root().join("packaging").join(unit), &path.join("lib/systemd/system").join(unit), 0o644)?;
        put(&root().join("packaging/tmpfiles.conf"), &path.join("lib/tmpfiles.d/bailey.conf"), 0o644)?;
        let own = ["README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "docs/daemon.md"]
            .map(|name| root().join(name));
        for document in own.iter().chain(documents) {
            let name = document.file_name().context("a document without a name")?;
            put(document, &path.join("share/doc/bailey").join(name), 0o644)?;
        }
        Ok(Self { path })
    }

    /// `tar -xzf FILE --strip-components=1 -C /usr/local` installs it.
    pub(super) fn tarball(&self, out: &Path) -> Result<PathBuf> {
        let name = self.path.file_name().context("a tree without a name")?.to_string_lossy().into_owned();
        let file = out.join(format!("{name}.tar.gz"));
        tar(out, &name, &file)?;
        Ok(file)
    }

    /// The package, with scripts that do nothing but have the service manager read its unit, and end what
    /// runs from it before it goes: a home is never its business.
    pub(super) fn debian(&self, out: &Path) -> Result<PathBuf> {
        self.debian_as(version(), out)
    }

    /// The same package under another version, so that an upgrade can be tried.
    pub(super) fn debian_as(&self, version: &str, out: &Path) -> Result<PathBuf> {
        let work = out.join("deb");
        if work.exists() {
            fs::remove_dir_all(&work)?;
        }
        let data = work.join("data");
        fs::create_dir_all(&data)?;
        check(Command::new("cp").args(["-a", "-T"]).arg(&self.path).arg(data.join("usr")))?;
        write(&work.join("control/control"), control(version, &self.path)?.as_bytes())?;
        for script in ["postinst", "prerm", "postrm"] {
            put(&root().join("packaging").join(script), &work.join("control").join(script), 0o755)?;
        }
        write(&work.join("debian-binary"), b"2.0\n")?;
        tar(&data, ".", &work.join("data.tar.gz"))?;
        tar(&work.join("control"), ".", &work.join("control.tar.gz"))?;
        let file = out.join(format!("bailey_{version}_{DEBIAN_ARCH}.deb"));
        if file.exists() {
            fs::remove_file(&file)?;
        }
        // `D`: no times, owners or modes of this machine.
        let mut ar = Command::new("ar");
        ar.arg("rcD").arg(&file).args(["debian-binary", "control.tar.gz", "data.tar.gz"]);
        check(ar.current_dir(&work))?;
        fs::remove_dir_all(&work)?;
        Ok(file)
    }
}

fn control(version: &str, tree: &Path) -> Result<String> {
    let size = output("du", &["-sk", "--apparent-size", &tree.display().to_string()])?;
    let size = size.split_whitespace().next().unwrap_or("0").to_owned();
    Ok(format!(
        "Package: bailey\nVersion: {version}\nArchitecture: {DEBIAN_ARCH}\nMaintainer: The Bailey founders <bailey@example.invalid>\n\
         Installed-Size: {size}\nDepends: libc6 (>= 2.31)\nRecommends: ca-certificates, git\nSection: utils\nPriority: optional\n\
         Description: self-hosted runtime for AI agents, behind walls\n \
         Inside the walls an agent may do anything; through the gate nothing\n passes without a permit.\n"
    ))
}

/// A gzipped archive of `name` in `dir`, the same bytes for the same files.
pub(super) fn tar(dir: &Path, name: &str, file: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]);
    tar.arg(format!("--mtime=@{}", epoch()?)).args(["--use-compress-program=gzip -n -9", "-cf"]).arg(file);
    check(tar.arg("-C").arg(dir).arg(name))
}

fn printed(program: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(program).args(arguments).output()?;
    anyhow::ensure!(output.status.success(), "`bailey {}` failed", arguments.join(" "));
    Ok(output.stdout)
}

fn put(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    write(to, &bytes)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
    Ok(())
}

fn write(to: &Path, bytes: &[u8]) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file without a directory")?)?;
    fs::write(to, bytes).with_context(|| format!("cannot write {}", to.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o644))?;
    Ok(())
}
