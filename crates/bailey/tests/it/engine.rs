//! A container engine of the tests' own: a real one, with nothing of what the machine's has.

use crate::stage::{Ran, Stage};
use std::{
    env, fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// An ordinary user, to whom the engine's socket is opened.
pub(crate) const USER: u32 = 54_321;

/// What is shown of this machine instead of an image with programs: links lead to `/usr`.
const LINKS: [(&str, &str); 3] = [("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")];

/// A Docker daemon with all that it keeps in a folder of its own.
pub(crate) struct Engine {
    daemon: Child,
    folder: PathBuf,
}

impl Engine {
    /// One in a stage's folder, which others may then look into, with an image `walls`; none, which is said,
    /// where there cannot be one.
    pub(crate) fn of(stage: &Stage) -> Option<Self> {
        let folder = fs::canonicalize(stage.folder()).unwrap();
        fs::create_dir(folder.join("engine")).unwrap();
        let engine = Self::start(&folder.join("engine")).map_err(|why| println!("SKIPPED: {why}")).ok()?;
        engine.image();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        Some(engine)
    }

    /// None, and why, where there cannot be one.
    fn start(folder: &Path) -> Result<Self, String> {
        if env::var_os("BAILEY_TEST_ALL").is_none_or(|value| value != "1") {
            return Err("a container engine is started only with BAILEY_TEST_ALL=1".into());
        }
        if fs::metadata("/proc/self").unwrap().uid() != 0 {
            return Err("only root can start a container engine".into());
        }
        if Path::new("/var/run/docker.pid").exists() {
            return Err("an engine runs here already, and a second one would take its network away".into());
        }
        let file = |name: &str| folder.join(name).display().to_string();
        let daemon = Command::new("/usr/sbin/dockerd")
            .args(["--data-root", &file("data"), "--exec-root", &file("exec"), "--pidfile", &file("pid")])
            .args(["-H", &format!("unix://{}", file("sock")), "--bridge", "none"])
            .args(["--iptables=false", "--ip6tables=false"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join("log")).unwrap())
            .spawn()
            .map_err(|error| format!("/usr/sbin/dockerd: {error}"))?;
        let engine = Self { daemon, folder: folder.to_path_buf() };
        let begin = Instant::now();
        while engine.docker(&["version"]).code != Some(0) {
            if begin.elapsed() > Duration::from_secs(60) {
                let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
                return Err(format!("the engine does not answer: {log}"));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        fs::set_permissions(folder.join("sock"), fs::Permissions::from_mode(0o666)).unwrap();
        Ok(engine)
    }

    /// A program that finds the engine.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("DOCKER_HOST", format!("unix://{}", self.folder.join("sock").display()))
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn docker(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command("/usr/bin/docker").args(arguments).output().unwrap())
    }

    /// An image `walls` in which nothing lies but what makes a container one.
    fn image(&self) {
        let root = self.folder.join("root");
        // The engine puts its own init into `sbin`.
        let folders = [
            "usr",
            "sbin",
            "etc/alternatives",
            "proc",
            "sys",
            "dev",
            "tmp",
            "root",
            "run",
            "var/tmp",
            "home",
        ];
        for name in folders {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for (name, target) in LINKS {
            symlink(target, root.join(name)).unwrap();
        }
        for name in ["tmp", "var/tmp"] {
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o1777)).unwrap();
        }
        fs::write(root.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n").unwrap();
        fs::write(root.join("etc/group"), "root:x:0:\n").unwrap();
        let import = format!("tar -C '{}' -c . | docker import - walls", root.display());
        let imported = Ran::of(self.command("/bin/sh").args(["-c", &import]).output().unwrap());
        assert_eq!(imported.code, Some(0), "{imported:?}");
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.daemon);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        self.daemon.wait().ok();
    }
}
