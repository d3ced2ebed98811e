//! Who attacks: root or an ordinary user, with a home full of secrets and a toolchain, in a mount namespace
//! of their own.

use crate::{
    built::built,
    stage::{Ran, Stage},
};
use bailey_testkit::{ModelServer, Reply};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown},
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// An ordinary user, whose account is known in the actor's own mount namespace only.
const STRANGER: u32 = 54_321;

/// What stands in every secret file of the actor's home, and nowhere else.
pub(crate) const CANARY: &str = "canary-7d1f0c";

/// Files of the actor's home that no sandbox may show.
pub(crate) const SECRETS: &[&str] = &[
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".config/gh/hosts.yml",
    ".config/google-chrome/Default/Login Data",
    ".mozilla/firefox/x.default/logins.json",
    ".bash_history",
    ".gnupg/private-keys-v1.d/key",
    ".kube/config",
    ".docker/config.json",
    ".netrc",
    ".npmrc",
    ".cargo/credentials.toml",
    ".nvm/.npmrc",
    ".local/share/keyrings/login.keyring",
    "notes.txt",
];

/// Binds the toolchain and the program where the actor can read them, and a list of accounts with the
/// actor's, then becomes the actor. Who is not root links them.
const ENTER: &str = r#"
folder=$1 program=$2 tools=$3 uid=$4; shift 4
place() { mount --bind "$1" "$2"; }
[ "$(id -u)" = 0 ] || place() { rm -rf "$2"; ln -sfnT "$1" "$2"; }
for part in .cargo/bin .rustup/toolchains .rustup/settings.toml; do
    if [ -e "$tools/$part" ]; then place "$tools/$part" "$folder/user/$part" || exit 99; fi
done
place "$program" "$folder/bin/bailey" || exit 99
[ "$(id -u)" = 0 ] && place "$folder/passwd" /etc/passwd
if [ -n "$AMID" ]; then eval "$AMID" || exit 98; unset AMID; cd "$PWD"; fi
[ "$uid" = 0 ] && exec "$@"
[ "$(id -u)" = 0 ] || exec "$@"
exec setpriv --reuid "$uid" --regid "$uid" --clear-groups -- "$@"
"#;

const FOREIGN: &str = include_str!("../probes/foreign.py");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Root,
    User,
}

impl Who {
    /// Whether the test can play it: only root can be root.
    pub(crate) fn is_here(self) -> bool {
        let is_here = self == Self::User || is_root();
        if !is_here {
            println!("SKIPPED: the tests do not run as root");
        }
        is_here
    }
}

/// An attacker's surroundings.
pub(crate) struct Actor {
    pub(crate) stage: Stage,
    pub(crate) who: Who,
    /// Whether the network around the actor is one that the test made, with foreign addresses that answer.
    has_world: bool,
}

impl Actor {
    /// An actor whose project holds these files, committed.
    pub(crate) fn new(who: Who, files: &[(&str, &str)]) -> Self {
        let actor = Self { stage: Stage::new(files), who, has_world: false };
        fs::set_permissions(actor.stage.folder(), fs::Permissions::from_mode(0o755)).unwrap();
        for directory in
            ["bin", "home", "user/.cargo/bin", "user/.rustup/toolchains", "user/.nvm/versions/node/v1/bin"]
        {
            fs::create_dir_all(actor.stage.folder().join(directory)).unwrap();
        }
        fs::write(actor.stage.folder().join("bin/bailey"), "").unwrap();
        let account = format!("stranger:x:{STRANGER}:{STRANGER}::{}:/bin/sh\n", actor.user().display());
        let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default() + &account;
        fs::write(actor.stage.folder().join("passwd"), accounts).unwrap();
        fs::write(actor.user().join(".rustup/settings.toml"), "").unwrap();
        fs::write(actor.user().join(".nvm/versions/node/v1/bin/tool"), "a tool\n").unwrap();
        for name in SECRETS {
            actor.secret(name);
        }
        actor.own();
        actor
    }

    /// The same in a network namespace of the test's own, in which foreign addresses answer. Only root can
    /// make one.
    pub(crate) fn abroad(who: Who, files: &[(&str, &str)]) -> Self {
        let actor = Self { has_world: true, ..Self::new(who, files) };
        fs::write(actor.stage.folder().join("foreign.py"), FOREIGN).unwrap();
        actor
    }

    /// The actor's home directory.
    pub(crate) fn user(&self) -> PathBuf {
        fs::canonicalize(self.stage.folder()).unwrap().join("user")
    }

    fn secret(&self, name: &str) {
        let path = self.user().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{CANARY} of {name}\n")).unwrap();
    }

    /// Writes a file of the project, the actor's.
    pub(crate) fn write(&self, path: &str, content: &str) {
        self.stage.write(path, content);
        self.own();
    }

    /// Writes the human's configuration.
    pub(crate) fn configure(&self, config: &str) {
        fs::write(self.stage.home().join("config.toml"), config).unwrap();
        self.own();
    }

    /// Trusts the project's settings with this content, whatever it is, as `trust add` would not.
    pub(crate) fn trust(&self, settings: &str) {
        let digest = bailey_protocol::Digest::of;
        let project = self.stage.project();
        let record = format!(
            "project = {project:?}\nsettings = \"{}\"\nsince = \"2026-01-01T00:00:00Z\"\n",
            digest(settings.as_bytes())
        );
        let folder = self.stage.home().join("trust");
        fs::create_dir_all(&folder).unwrap();
        let name = format!("{}.toml", digest(project.as_os_str().as_encoded_bytes()));
        fs::write(folder.join(name), record).unwrap();
        self.own();
    }

    /// Makes all of it the actor's.
    pub(crate) fn own(&self) {
        if self.who == Who::User && is_root() {
            for part in ["user", "project", "home"] {
                own(&self.stage.folder().join(part));
            }
        }
    }

    /// A program run by the actor without any walls: the control of what walls keep out.
    pub(crate) fn outside(&self, argv: &[&str]) -> Ran {
        Ran::of(self.program(argv).output().unwrap())
    }

    /// The same where the host has mounted this; none, which is said, where the test may not mount.
    pub(crate) fn amid(&self, mounts: &str, arguments: &[&str]) -> Option<Ran> {
        let ran = is_root().then(|| Ran::of(self.command(arguments).env("AMID", mounts).output().unwrap()));
        let ran = ran.filter(|ran| ran.code != Some(98));
        if ran.is_none() {
            println!("SKIPPED: nothing can be mounted here");
        }
        ran
    }

    /// The same, to be started by the test.
    pub(crate) fn program(&self, argv: &[&str]) -> Command {
        self.enter(Path::new(env!("CARGO_BIN_EXE_bailey")), argv)
    }

    /// The binary under test.
    pub(crate) fn bailey(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    /// The same, to be started by the test.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.program(&self.argv(arguments))
    }

    fn argv<'a>(&self, arguments: &[&'a str]) -> Vec<&'a str> {
        // Paths of a stage live as long as its test.
        let program: &'static str = self.stage.folder().join("bin/bailey").display().to_string().leak();
        let home: &'static str = self.stage.home().display().to_string().leak();
        [&[program, "--home", home], arguments].concat()
    }

    /// A program inside the walls.
    pub(crate) fn inside(&self, argv: &[&str]) -> Ran {
        self.bailey(&[&["sandbox", "run", "--"], argv].concat())
    }

    /// A line of the shell inside the walls.
    pub(crate) fn sh(&self, script: &str) -> Ran {
        self.inside(&["sh", "-c", script])
    }

    /// What the outcome of a program inside the walls says, as JSON.
    pub(crate) fn outcome(&self, argv: &[&str]) -> Value {
        let ran = self.bailey(&[&["--json", "sandbox", "run", "--"], argv].concat());
        ran.lines().pop().unwrap_or_else(|| panic!("no outcome: {ran:?}"))
    }

    /// A program inside the walls that are left when these are taken away: refused, or accepted as a control.
    pub(crate) fn without(&self, walls: &str, accept: bool, argv: &[&str]) -> Ran {
        let arguments = [&["sandbox", "run", "--"], argv].concat();
        let mut command = self.enter(controls(), &self.argv(&arguments));
        command
            .env("BAILEY_CONTROL_WITHOUT", walls)
            .env("BAILEY_CONTROL_ACCEPT", if accept { "1" } else { "0" });
        Ran::of(command.output().unwrap())
    }

    /// A program inside the walls, where the gate knows of no program that it runs others.
    pub(crate) fn unread(&self, argv: &[&str]) -> Ran {
        let mut command = self.enter(controls(), &self.argv(&[&["sandbox", "run", "--"], argv].concat()));
        Ran::of(command.env("BAILEY_CONTROL_PROGRAMS", "none").output().unwrap())
    }

    /// Any command of the program whose walls can be taken away, without these.
    pub(crate) fn bailey_without(&self, walls: &str, arguments: &[&str]) -> Ran {
        let mut command = self.enter(controls(), &self.argv(arguments));
        Ran::of(command.env("BAILEY_CONTROL_WITHOUT", walls).output().unwrap())
    }

    /// One task with a scripted model and nobody at the terminal, events as JSON.
    pub(crate) fn task(&self, script: Vec<Reply>, options: &[&str]) -> (Ran, ModelServer) {
        let server = self.stage.model(script);
        self.own();
        let fixed = ["--json", "run", "--model", "test/model", "--approve", "never"];
        (self.bailey(&[&fixed, options, &["do it"]].concat()), server)
    }

    fn enter(&self, program: &Path, argv: &[&str]) -> Command {
        let foreign = self.stage.folder().join("foreign.py").display().to_string();
        let private = ["unshare", "--mount", "--propagation", "private"];
        let enter: Vec<&str> = match (is_root(), self.has_world) {
            (true, true) => [&private[..], &["--net", "--", "/usr/bin/python3", &foreign]].concat(),
            (true, false) => [&private[..], &["--"]].concat(),
            (false, _) => vec!["--"],
        };
        let mut command = Command::new("/usr/bin/env");
        let uid = if self.who == Who::Root { 0 } else { STRANGER };
        let user = self.user();
        let path = format!("{}/.cargo/bin:/usr/local/bin:/usr/bin:/bin", user.display());
        command
            .args(enter)
            .args(["/bin/sh", "-c", ENTER, "enter"])
            .arg(self.stage.folder())
            .arg(program)
            .arg(tools())
            .arg(uid.to_string())
            .args(argv)
            .current_dir(self.stage.project())
            .env_clear()
            .env("HOME", &user)
            .env("PATH", path)
            .env("LANG", "C.UTF-8")
            .env("AWS_SECRET_ACCESS_KEY", CANARY)
            .stdin(std::process::Stdio::null());
        command
    }
}

/// What a probe printed: by its name, how each attempt ended.
pub(crate) fn told(ran: &Ran) -> BTreeMap<String, String> {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// Says that an attack proved nothing here, and why.
pub(crate) fn could_not_be_tried(what: &str, why: impl std::fmt::Display) {
    println!("could not be tried: {what}: {why}");
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn own(path: &Path) {
    lchown(path, Some(STRANGER), Some(STRANGER)).unwrap();
    if path.symlink_metadata().unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            own(&entry.unwrap().path());
        }
    }
}

/// The home that holds the toolchain that the tests themselves use.
fn tools() -> PathBuf {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.and_then(|home| home.parent().map(Path::to_path_buf));
    home.or_else(|| std::env::var_os("HOME").map(PathBuf::from)).unwrap_or_else(|| "/root".into())
}

/// The program whose walls can be taken away, built into the same target directory; cargo's own lock lets one
/// test build it and the others wait.
pub(crate) fn controls() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        built(
            "bailey-controls",
            &["--package", "bailey", "--bin", "bailey-controls", "--features", "controls"],
        )
    })
}
