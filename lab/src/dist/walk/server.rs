//! The server of docs/daemon.md, typed.

use super::{MODEL, NEWER, PASSWORD, RELEASE, Walk};
use crate::dist::version;
use anyhow::{Context as _, Result, ensure};

/// What the page names and does not ask to type here.
pub(super) const ELSEWHERE: &[&str] = &[];

const SUDO: (&str, &str) = ("password for ann: ", "correct horse\r");

pub(super) fn walk(walk: &mut Walk) -> Result<()> {
    ensure!(SUDO.1.trim() == PASSWORD, "one password");
    walk.remarks("Install, a home, a project");
    let install = "sudo apt install ./bailey_VERSION_amd64.deb";
    walk.does_as(install, &install.replace("VERSION", version()), &[SUDO])?;
    walk.does("bailey init --no-questions")?;
    walk.does_as(
        "bailey secrets set ANTHROPIC_API_KEY",
        "bailey secrets set ANTHROPIC_API_KEY",
        &[("(not shown): ", "sk-ant-0123456789abcdef\r")],
    )?;
    let provider = format!(
        "\n[providers.anthropic]\nwire = \"anthropic\"\nbase_url = \"http://{MODEL}\"\nkey_env = \"ANTHROPIC_API_KEY\"\n"
    );
    walk.tells("# what is not as on the page: the provider is a stand-in on this machine", "");
    walk.adds(&provider)?;
    walk.does("bailey doctor")?;
    let proved = if std::env::var_os("SKIP_PROVE").is_some() {
        walk.page.has("bailey prove")?;
        " 0 NOT HELD".into()
    } else {
        walk.does("bailey prove")?
    };
    ensure!(proved.contains(" 0 NOT HELD"), "{proved}");
    let clone = "git clone … ~/project";
    walk.does_as(clone, &clone.replace('…', "theirs"), &[])?;

    walk.remarks("The daemon, the page, copies");
    walk.does("sudo systemctl enable --now bailey@$USER")?;
    walk.does("bailey status")?;
    walk.does("bailey web link")?;
    let backup = walk.page.toml("[backup]")?;
    walk.uncomments(backup.lines().nth(1).context("a line beneath `[backup]`")?)?;
    walk.does("bailey reload")?;
    walk.does("bailey backup /mnt/disk/bailey")?;

    walk.remarks("From day to day");
    walk.does("bailey approvals list")?;
    walk.does("bailey schedule list")?;
    walk.does("bailey audit log")?;
    walk.does("bailey audit verify")?;
    walk.page.has("bailey logs -f")?;
    walk.types("bailey logs -f", &[("up", "\u{3}")], 130)?;
    walk.does("sudo journalctl -u bailey@$USER")?;
    walk.does("bailey reload")?;
    walk.does("bailey estop")?;
    walk.does_as("bailey estop --release", "bailey estop --release", &[RELEASE])?;

    walk.remarks("A newer version");
    let upgrade =
        "bailey backup && sudo apt install ./bailey_NEWER_amd64.deb && sudo systemctl restart bailey@$USER";
    walk.does_as(upgrade, &upgrade.replace("NEWER", NEWER), &[])?;
    walk.does("bailey status")?;
    walk.does("sudo systemctl stop bailey@$USER")?;
    let downgrade = "sudo apt install --allow-downgrades ./bailey_OLDER_amd64.deb";
    walk.does_as(downgrade, &downgrade.replace("OLDER", version()), &[("[Y/n] ", "y\r")])?;
    let restore = "bailey restore /mnt/disk/bailey";
    walk.does_as(restore, restore, &[("[y/N] ", "y\r")])?;
    walk.does("sudo systemctl start bailey@$USER")?;
    walk.does("bailey audit verify")?;
    Ok(())
}
