//! `bailey chat` where people have their terminals: in tmux, at 80 columns and 24 rows, and at the far end of
//! ssh.

use crate::{stage::Stage, terminal::Terminal};
use bailey_testkit::Reply;
use serde_json::json;
use std::{
    fs,
    net::{TcpListener, TcpStream},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(30);

/// A tmux server of its own with one pane.
struct Tmux<'a> {
    stage: &'a Stage,
}

impl<'a> Tmux<'a> {
    /// `bailey chat` in a pane of 80 by 24; none, with a line that says so, where there is no tmux.
    fn chat(stage: &'a Stage, environment: &str) -> Option<Self> {
        let bailey = stage.bailey(&["chat", "--no-onboarding", "--model", "test/model"]);
        let words = std::iter::once(bailey.get_program()).chain(bailey.get_args());
        let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
        let tmux = Self { stage };
        let line = format!("exec env {environment} {}", words.join(" "));
        let mut start = tmux.command(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24"]);
        match start.arg(line).output() {
            Ok(output) => assert!(output.status.success(), "{output:?}"),
            Err(error) => {
                println!("SKIPPED: no tmux: {error}");
                return None;
            }
        }
        Some(tmux)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut tmux = Command::new("tmux");
        // A socket's path must be short.
        tmux.arg("-S").arg(self.stage.folder().join("tmux")).args(arguments);
        tmux.current_dir(self.stage.project()).env_remove("TMUX").env_remove("NO_COLOR");
        tmux
    }

    fn ran(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn keys(&self, text: &str) {
        assert!(self.ran(&["send-keys", "-l", text]).status.success());
        assert!(self.ran(&["send-keys", "Enter"]).status.success());
    }

    /// What a person sees; with `-e` also how it is coloured.
    fn screen(&self, options: &[&str]) -> String {
        let output = self.ran(&[&["capture-pane", "-p"], options].concat());
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until the screen is so, and has come to rest.
    fn wait_for(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let since = Instant::now();
        let mut last = String::new();
        loop {
            let screen = self.screen(&[]);
            if is_so(&screen) && screen == last {
                return screen;
            }
            assert!(since.elapsed() < PATIENCE, "{what} did not come: {screen}");
            last = screen;
            thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.command(&["kill-server"]).output().ok();
    }
}

fn script() -> Vec<Reply> {
    let words = "some **bold** words that go on ".repeat(8);
    vec![
        Reply::calls([("c1", "fs_edit", json!({ "path": "a.txt", "old": "one", "new": "two" }))]),
        Reply::text(&format!("# It is done\n{words}")),
        Reply::text("again"),
    ]
}

/// How often a row begins with this.
fn rows(screen: &str, begin: &str) -> usize {
    screen.lines().filter(|row| row.starts_with(begin)).count()
}

#[test]
fn in_tmux_a_conversation_fits_80_columns_and_24_rows() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let _model = stage.model(script());
    let Some(tmux) = Tmux::chat(&stage, "LC_ALL=C.UTF-8") else { return };
    tmux.wait_for("the prompt", |screen| rows(screen, "›") == 1);
    tmux.keys("/help");
    let help = tmux.wait_for("the help", |screen| screen.contains("put a space before it"));
    assert!(help.contains("› /help") && help.contains("/diff "), "all of it is on one screen: {help}");
    tmux.keys("repair it");
    let said = tmux.wait_for("the answer", |screen| screen.contains("done in"));
    assert!(said.contains("✓ fs.edit a.txt  allowed"), "{said}");
    assert!(said.contains("│ It is done") && !said.contains("**"), "{said}");
    let barred: Vec<&str> =
        said.lines().filter(|row| row.starts_with("│ some") || row.starts_with("│ words")).collect();
    assert!(!barred.is_empty() && said.lines().all(|row| row.chars().count() <= 80), "{said}");
    // Every row of the answer has its bar: none was broken by the terminal itself.
    let answer = said.split("│ It is done").nth(1).unwrap().split("done in").next().unwrap();
    assert!(answer.trim().lines().all(|row| row.starts_with('│')), "{said}");
    assert!(tmux.screen(&["-e"]).contains("\u{1b}[36m│"), "in colour: {:?}", tmux.screen(&["-e"]));

    // A window that changes its size draws the message once, where it belongs.
    assert!(tmux.ran(&["send-keys", "-l", "a draft"]).status.success());
    tmux.wait_for("the draft", |screen| screen.contains("› a draft"));
    assert!(tmux.ran(&["resize-window", "-x", "60", "-y", "16"]).status.success());
    let small = tmux.wait_for("the draft again", |screen| rows(screen, "› a draft") == 1);
    assert!(small.lines().all(|row| row.chars().count() <= 60), "{small}");
    tmux.keys("");
    tmux.wait_for("the second answer", |screen| screen.contains("│ again"));
    tmux.keys("/diff");
    let diff = tmux.wait_for("the diff", |screen| screen.contains("a.txt  +1 −1"));
    assert!(diff.contains("-one") && diff.contains("+two"), "{diff}");
    tmux.keys("/quit");
    let since = Instant::now();
    while tmux.ran(&["has-session"]).status.success() {
        assert!(since.elapsed() < PATIENCE, "it stays: {}", tmux.screen(&[]));
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn in_tmux_without_colour_there_is_none() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let _model = stage.model(script());
    let Some(tmux) = Tmux::chat(&stage, "LC_ALL=C.UTF-8 NO_COLOR=1") else { return };
    tmux.wait_for("the prompt", |screen| rows(screen, "›") == 1);
    tmux.keys("repair it");
    tmux.wait_for("the answer", |screen| screen.contains("done in"));
    let screen = tmux.screen(&["-e"]);
    assert!(screen.contains("│ It is done") && !screen.contains('\u{1b}'), "{screen:?}");
}

/// An ssh server on the loopback with keys and a home of its own, while this lives.
struct Far(Child);

impl Drop for Far {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A server, and a client that gets in there. None, with a line that says so, where there is no client, or no
/// server (dropbear: unlike OpenSSH's it starts nothing when it is installed).
fn ssh(stage: &Stage) -> Option<(Far, Command)> {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("SKIPPED: only root can mount");
        return None;
    }
    let home = fs::canonicalize(stage.folder()).unwrap().join("far");
    fs::create_dir_all(home.join(".ssh")).unwrap();
    let keys: [(&str, &[&str], &str); 2] = [
        ("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f"], "user"),
        ("dropbearkey", &["-t", "ed25519", "-f"], "host"),
    ];
    for (program, arguments, file) in keys {
        let made = Command::new(program).args(arguments).arg(home.join(file)).output();
        if !made.is_ok_and(|made| made.status.success()) {
            println!("SKIPPED: no {program}");
            return None;
        }
    }
    fs::copy(home.join("user.pub"), home.join(".ssh/authorized_keys")).unwrap();
    for path in [&home, &home.join(".ssh")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    }
    fs::write(home.join("passwd"), format!("root:x:0:0::{}:/bin/sh\n", home.display())).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // Its root has another home, where its keys are; nobody else sees that.
    let serve = "mount --bind passwd /etc/passwd && exec dropbear -F -E -s -r host -P pid -p \"$0\"";
    let mut server = Command::new("unshare");
    server.args(["--mount", "--propagation", "private", "sh", "-c", serve, &format!("127.0.0.1:{port}")]);
    let server = Far(server.current_dir(&home).stderr(Stdio::null()).spawn().unwrap());
    let since = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(since.elapsed() < PATIENCE, "the server does not listen");
        thread::sleep(Duration::from_millis(20));
    }
    let known = format!("UserKnownHostsFile={}/known", home.display());
    let mut ssh = Command::new("ssh");
    ssh.args(["-F", "/dev/null", "-tt", "-p", &port.to_string(), "-i"]).arg(home.join("user"));
    for option in
        ["BatchMode=yes", "IdentitiesOnly=yes", "StrictHostKeyChecking=no", "LogLevel=ERROR", &known]
    {
        ssh.args(["-o", option]);
    }
    ssh.arg("root@127.0.0.1").current_dir(stage.project());
    Some((server, ssh))
}

#[test]
fn over_ssh_a_conversation_works_and_a_lost_connection_ends_it() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let model = stage.model(script());
    let Some((_far, mut command)) = ssh(&stage) else { return };
    let bailey = stage.bailey(&["chat", "--no-onboarding", "--model", "test/model"]);
    let words = std::iter::once(bailey.get_program()).chain(bailey.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let line = format!("cd '{}' && LC_ALL=C.UTF-8 exec {}", stage.project().display(), words.join(" "));
    command.arg(line);
    let Some(mut terminal) = Terminal::run(&stage, &command) else { return };
    terminal.wait_for("› ");
    terminal.keys("repair it\r");
    let shown = terminal.wait_for("done in");
    assert!(shown.contains("fs.edit") && shown.contains("It is done") && !shown.contains("**"), "{shown}");
    terminal.keys("/apply\r");
    terminal.wait_for("applied: a.txt");
    assert_eq!(stage.read("a.txt"), "two\n");
    terminal.keys("go on\r");
    terminal.wait_for("again");
    assert_eq!(model.requests().len(), 3);
    // The client goes, as when a laptop is closed: the far end ends by itself, and the chain holds.
    terminal.close();
    let since = Instant::now();
    let is_free = || {
        let session =
            stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
        stage.ran(&["sessions", "undo", &session]).code == Some(0)
    };
    while !is_free() {
        assert!(since.elapsed() < PATIENCE, "the session is still held");
        thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(stage.read("a.txt"), "one\n");
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
}
