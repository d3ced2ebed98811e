//! How the daemon is run: as a process, or in a container that lets the walls stand.

use crate::settings::{DaemonHost, Settings};
use std::{
    fs,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    process::{self, Command, Stdio},
};

/// Takes the engine's own filters away, which forbid the stricter ones that Bailey makes for each command. As
/// an ordinary user this is enough, and the container's processes have no capability.
const OPTIONS: &str = "--security-opt seccomp=unconfined --security-opt apparmor=unconfined \
                       --security-opt systempaths=unconfined";
/// What root needs besides.
const OF_ROOT: &str = "--cap-add SYS_ADMIN --cap-add SYS_PTRACE";

/// The daemon, which ends when its standard input does.
pub(crate) fn daemon(settings: &Settings) -> Command {
    bailey(settings, &["start", "--foreground", "--held"], Some(&name()))
}

/// What says which walls can stand there.
pub(crate) fn doctor(settings: &Settings) -> Command {
    bailey(settings, &["sandbox", "doctor"], None)
}

/// Looks whether the walls can stand where the daemon is to run.
///
/// # Errors
/// Which is missing, in Bailey's words.
pub(crate) fn walls(settings: &Settings) -> Result<(), String> {
    let output = doctor(settings).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("it cannot be tried: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Err(format!("the walls cannot stand there, so nothing is started ({}):\n{said}", output.status))
}

/// Ends what a client that was killed leaves: the container's processes are the engine's.
pub(crate) fn kill(settings: &Settings) {
    if let DaemonHost::Container { engine, .. } = &settings.place {
        Command::new(engine).args(["rm", "--force", &name()]).output().ok();
    }
}

fn name() -> String {
    format!("bailey-boot-{}", process::id())
}

fn bailey(settings: &Settings, words: &[&str], name: Option<&str>) -> Command {
    let home = settings.home.as_os_str();
    match &settings.place {
        DaemonHost::Process { bailey } => {
            let mut command = Command::new(bailey);
            command.arg("--home").arg(home).args(words);
            command
        }
        DaemonHost::Container { engine, image, mounts, options } => {
            let mut command = Command::new(engine);
            command.args(["run", "--rm", "--interactive", "--init"]).args(OPTIONS.split(' '));
            command.args(name.iter().flat_map(|name| ["--name", name]));
            // Nobody else may use it. It is made first, for an engine would make it as root.
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&settings.home).ok();
            if let Ok(about) = fs::metadata(&settings.home) {
                let (user, group) = (about.uid(), about.gid());
                command.args(["--user", &format!("{user}:{group}")]);
                command.args(OF_ROOT.split(' ').filter(|_| user == 0));
            }
            // Schedules go by the clock on this machine's wall.
            let zone = fs::metadata("/etc/localtime").map(|_| "--volume=/etc/localtime:/etc/localtime:ro");
            command.args(["--env", "HOME", "--env", "TZ"]).args(zone);
            let places = std::iter::once(&settings.home).chain(mounts).map(|place| place.display());
            command.args(places.map(|place| format!("--volume={place}:{place}")));
            command.args(options).arg(image).args(["bailey", "--home"]).arg(home).args(words);
            command
        }
    }
}
