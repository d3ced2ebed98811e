//! What a user does with the artefacts, in fresh systems: install, use, upgrade while a session lives,
//! uninstall.

use super::{archive::Tree, root};
use anyhow::{Context as _, Result, ensure};
use std::{fs, path::Path};
use xtask::root as source;

/// A repository of its own, a recorded session in it, and what must be true of them afterwards.
const USE: &str = r#"
mkdir -p /work/project && cd /work/project
printf 'one\n' > a.txt
bailey version
bailey sandbox run -- sh -c 'echo two > a.txt; ls -A /root 2>&1 || true; cat a.txt'
test "$(cat a.txt)" = one
bailey audit verify
"#;

/// Tries the tarball and the package.
pub(super) fn run(tree: &Tree, out: &Path) -> Result<()> {
    let base = root::made(root::OLD, &[])?;
    println!("\n== the tarball in a fresh Debian 11");
    let tarball = tree.tarball(out)?;
    let place = root::copy(&base, "tarball")?;
    bring(&tarball, &place)?;
    let script = format!(
        "tar -xzf /{} --strip-components=1 -C /usr/local\n{USE}\n\
         rm -r /usr/local/bin/bailey /usr/local/bin/bailey-boot /usr/local/share/doc/bailey\n\
         test ! -e /usr/local/bin/bailey\ntest -f /root/.bailey/journal.db && echo 'uninstalled; the home stays'",
        name(&tarball)?
    );
    print!("{}", root::run(&place, &script)?);

    println!("\n== the package: install, upgrade while a command runs, remove");
    let (old, new) = (tree.debian_as("0.0.9", out)?, tree.debian(out)?);
    let place = root::copy(&base, "package")?;
    bring(&old, &place)?;
    bring(&new, &place)?;
    let script = format!(
        "dpkg -i /{}\n{USE}\n\
         bailey sandbox run -- sh -c 'sleep 3; echo the old program ends well' > /tmp/live 2>&1 & live=$!\n\
         sleep 1; dpkg -i /{}\n\
         bailey sandbox run -- echo 'the new program runs beside it'\n\
         wait $live; cat /tmp/live\nbailey audit verify\n\
         dpkg -r bailey; test ! -e /usr/bin/bailey; test -f /root/.bailey/journal.db && echo 'removed; the home stays'",
        name(&old)?,
        name(&new)?
    );
    let said = root::run(&place, &script)?;
    print!("{said}");
    ensure!(said.contains("the old program ends well"), "the upgrade broke a command that ran");
    fs::remove_file(old)?;
    Ok(())
}

pub(super) fn bring(file: &Path, root: &Path) -> Result<()> {
    fs::copy(file, root.join(name(file)?)).with_context(|| format!("cannot bring {}", file.display()))?;
    Ok(())
}

pub(super) fn name(file: &Path) -> Result<String> {
    Ok(file
        .file_name()
        .with_context(|| format!("{} of {}", file.display(), source().display()))?
        .to_string_lossy()
        .into_owned())
}
