//! The package in a guest whose first process is systemd: the daemon runs as a hardened service there,
//! `bailey prove` holds under the same unit, and what is killed comes back.

use super::{archive::Tree, guest, root, trial};
use anyhow::{Context as _, Result, bail, ensure};
use std::{fs, path::Path, process::Stdio};

/// The oldest Debian with a kernel that has all the walls.
pub(super) const SUITE: &str = "bookworm";
const PACKAGES: &[&str] = &["systemd", "systemd-sysv", "dbus", "linux-image-amd64", "ca-certificates", "git"];

/// Begins once the guest is up, and ends it.
const UNIT: &str = "\
[Unit]
After=basic.target
[Service]
Type=oneshot
ExecStart=/bin/sh /trial.sh
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
[Install]
WantedBy=multi-user.target
";

/// `prove@.service` is the package's unit with another program to run. Each line that begins with `--` is
/// looked for afterwards.
const SETUP: &str = r#"
dpkg -i /package.deb >/dev/null
useradd -m ann
unit=/usr/lib/systemd/system/bailey@.service
sed -e '/^\(Type\|NotifyAccess\|WatchdogSec\|Restart\|ExecReload\)/d' \
    -e 's#^ExecStart=.*#ExecStart=bailey --color never prove --all\nType=oneshot\nStandardOutput=file:/proved#' $unit > /etc/systemd/system/prove@.service
systemctl enable trial.service 2>/dev/null
systemctl mask serial-getty@ttyS0.service 2>/dev/null
passwd -d root >/dev/null
"#;

const TRIAL: &str = r#"
as() { su ann -c "cd /home/ann && bailey --color never $1"; }
pid() { systemctl show bailey@ann -p MainPID --value; }
echo "-- $(systemctl --version | head -n 1), Linux $(uname -r)"
systemd-analyze verify bailey@ann.service && echo '-- verified'
systemd-analyze --no-pager security bailey@ann.service | tail -n 1 | sed 's/^/-- /'
systemctl start bailey@ann && echo '-- started'
as status | sed 's/^/-- /'
grep Umask /proc/$(pid)/status | sed 's/^/-- /'
systemctl enable bailey@ann 2>/dev/null && ls /etc/systemd/system/multi-user.target.wants | grep bailey@ | sed 's/^/-- enabled /'
systemctl reload bailey@ann && echo '-- reloaded'
systemctl start prove@ann && echo '-- proved'
grep ' held, ' /proved | sed 's/^/-- /'
grep -A 1 -E '^(NOT HELD|untried)' /proved
grep -E 'ended by the (memory|tasks|disk) limit' /proved | sed 's/^ */-- /'
kill -9 "$(pid)"
for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1; as status >/dev/null 2>&1 && break; done
as status | sed 's/^/-- again /'
systemctl stop bailey@ann && echo "-- stopped: $(systemctl show bailey@ann -p Result --value)"
systemctl start bailey@ann && as status | sed 's/^/-- once more /'
daemon=$(pid)
dpkg -r bailey >/dev/null 2>&1 && echo '-- removed'
ls "/proc/$daemon" >/dev/null 2>&1 && echo '-- a removed daemon runs'
ls /etc/systemd/system/multi-user.target.wants | grep bailey@ | sed 's/^/-- left /'
systemctl cat bailey@ann >/dev/null 2>&1 && echo '-- left its unit'
ls -d /home/ann/.bailey/daemon/log | sed 's/^/-- kept /'
sed 's/^/   /' /home/ann/.bailey/daemon/log
echo '-- end'
systemctl poweroff
"#;

/// What must be said for it to have worked.
const SAID: [&str; 13] = [
    "-- verified",
    "-- started",
    "-- reloaded",
    "-- proved",
    " 0 NOT HELD",
    "memory limit (enforced)",
    "-- again up",
    "-- stopped: success",
    "-- Umask:\t0022",
    "-- enabled bailey@ann.service",
    "-- once more up",
    "-- removed",
    "-- kept /home/ann/.bailey/daemon/log",
];

/// What must not be said.
const UNSAID: [&str; 2] = ["-- a removed daemon runs", "-- left "];

/// Installs the package in a guest, and tries the service.
pub(super) fn run(tree: &Tree, out: &Path) -> Result<()> {
    println!("\n== the package's service, in a guest with systemd");
    let place = root::copy(&root::made(SUITE, PACKAGES)?, "service")?;
    trial::bring(&tree.debian(out)?, &place)?;
    fs::rename(place.join(trial::name(&tree.debian(out)?)?), place.join("package.deb"))?;
    fs::write(place.join("trial.sh"), TRIAL)?;
    fs::write(place.join("etc/systemd/system/trial.service"), UNIT)?;
    print!("{}", root::run(&place, SETUP)?);
    let disk = out.join("service.img");
    guest::disk(&place, &disk)?;
    let said = booted(&place, &disk)?;
    let told: Vec<&str> = said.lines().filter(|line| line.starts_with("-- ")).collect();
    println!("{}", told.join("\n"));
    for wanted in SAID {
        ensure!(said.contains(wanted), "the guest never said `{wanted}`:\n{said}");
    }
    for unwanted in UNSAID {
        ensure!(!said.contains(unwanted), "the guest said `{unwanted}`:\n{said}");
    }
    fs::remove_file(disk)?;
    Ok(fs::remove_dir_all(place)?)
}

/// Runs the guest until it has ended; gives what it said on its serial line.
fn booted(place: &Path, disk: &Path) -> Result<String> {
    let mut machine = guest::machine(place, disk, "none")?;
    let output = machine.stdin(Stdio::null()).output().context(guest::NO_QEMU)?;
    let said = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    if !output.status.success() {
        bail!("the guest ended with {}:\n{said}{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(said)
}
