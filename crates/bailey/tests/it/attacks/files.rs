//! A19, A20, A23, A57: files that no sandbox may show, by whatever name and however fast they change.

use super::{
    actor::{Actor, CANARY, SECRETS, Who, could_not_be_tried, is_root, told},
    control::{Lack, Lacks, judge},
};
use crate::stage::Ran;
use bailey_testkit::{Call, Message, Reply};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write as _,
    os::unix::fs::symlink,
    path::Path,
    process::Stdio,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

const REACH: &str = include_str!("../probes/reach.py");

/// What a user cannot read either, or a small system does not have. Whoever is root in a container may be
/// kept from the first process, too; Bailey's own is looked into in the same way and has no excuse.
const OF_THE_HOST: &Lacks = &[
    (FIRST, Lack::Root),
    (FIRST, Lack::Answer(&["EACCES", "EPERM"])),
    (&["/etc/shadow", "/root"], Lack::Root),
    (&["/etc/ssh", "/boot", "/var/log"], Lack::Answer(&["ENOENT"])),
];

const FIRST: &[&str] = &["/proc/1/environ", "/proc/1/mem", "/proc/1/fd", "/proc/1/root", "/proc/1/cwd"];

attack!(a19_secrets_of_the_host_are_not_there);
fn a19_secrets_of_the_host_are_not_there(who: Who) {
    let actor = Actor::new(who, &[("reach.py", REACH)]);
    // Another session, which holds something of its own, and a Bailey that is at work.
    let kept = actor.bailey(&["sandbox", "run", "--keep", "--", "sh", "-c", "echo other > other.txt"]);
    assert_eq!(kept.code, Some(0), "{kept:?}");
    let other = fs::read_dir(actor.stage.home().join("sessions")).unwrap().next().unwrap().unwrap().path();
    let mut busy =
        actor.command(&["sandbox", "run", "--", "sleep", "20"]).stdout(Stdio::piped()).spawn().unwrap();
    let bailey = busy.id();
    let mut paths: Vec<String> =
        SECRETS.iter().map(|name| format!("{}/{name}", actor.user().display())).collect();
    let home = fs::canonicalize(actor.stage.home()).unwrap();
    paths.extend(["", "journal.db", "sessions"].map(|name| home.join(name).display().to_string()));
    paths.push(other.join("upper/other.txt").display().to_string());
    paths.extend(["environ", "mem", "fd", "root", "cwd"].map(|name| format!("/proc/{bailey}/{name}")));
    paths.extend(["environ", "mem", "fd", "root", "cwd"].map(|name| format!("/proc/1/{name}")));
    paths.extend(["/etc/shadow", "/etc/ssh", "/root", "/var/log", "/sys", "/boot"].map(String::from));
    let probe: Vec<&str> =
        ["/usr/bin/python3", "reach.py"].into_iter().chain(paths.iter().map(String::as_str)).collect();
    let (inside, outside) = (told(&actor.inside(&probe)), told(&actor.outside(&probe)));
    busy.kill().unwrap();
    busy.wait().unwrap();
    for path in &paths {
        let answer = inside[path].as_str();
        assert!(["ENOENT", "EACCES", "EPERM"].contains(&answer), "{path}: {answer}");
        judge(
            who,
            path,
            (outside[path] == "ok").then_some("outside").ok_or(&[&*outside[path]][..]),
            OF_THE_HOST,
        );
    }
}

attack!(a19_keys_of_the_kernels_keyring_are_not_even_named);
fn a19_keys_of_the_kernels_keyring_are_not_even_named(who: Who) {
    let actor = Actor::new(who, &[]);
    let store = ["secrets", "set", "--store", "keyring", "TEST_API_KEY"];
    let mut storing = actor.command(&store).stdin(Stdio::piped()).spawn().unwrap();
    storing.stdin.take().unwrap().write_all(b"sk-test-of-the-keyring-4711\n").unwrap();
    if !storing.wait().unwrap().success() {
        return could_not_be_tried("the keyring", "this user has none");
    }
    let look = ["cat", "/proc/keys", "/proc/key-users"];
    let (inside, outside) = (actor.inside(&look), actor.outside(&look));
    let removed = actor.bailey(&["secrets", "rm", "--store", "keyring", "TEST_API_KEY"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert_eq!((inside.code, inside.stdout.as_str()), (Some(0), ""), "{inside:?}");
    assert!(outside.stdout.contains("bailey:"), "the control: {outside:?}");
}

attack!(a19_the_environment_of_the_host_is_not_there);
fn a19_the_environment_of_the_host_is_not_there(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    let look = ["sh", "-c", "env; tr '\\0' '\\n' < /proc/self/environ; tr '\\0' '\\n' < /proc/1/environ"];
    let ran = actor.inside(&look);
    assert!(ran.stdout.contains("HOME=") && !ran.stdout.contains(CANARY), "{ran:?}");
    assert!(actor.outside(&look).stdout.contains(CANARY), "the control");
}

/// Tools and their arguments that name a path in one way or another.
fn reads(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("fs_read", json!({ "path": path })),
        ("fs_list", json!({ "path": path })),
        ("search_grep", json!({ "pattern": CANARY, "path": path })),
        ("fs_patch", json!({ "patch": format!("--- {path}\n+++ {path}\n@@ -1 +1 @@\n-{CANARY}\n+x\n") })),
    ]
}

/// One reply with all these calls.
fn calls(calls: Vec<(&str, Value)>) -> Reply {
    let call = |(number, (name, arguments)): (usize, (&str, Value))| Call {
        id: format!("c{number}"),
        name: name.into(),
        arguments,
    };
    let calls = calls.into_iter().enumerate().map(call).collect();
    Reply::Message(Message { calls, usage: (10, 5), ..Message::default() })
}

/// What the tools brought back, all of it together.
fn seen(ran: &Ran) -> String {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.results().join("\n")
}

attack!(a20_no_spelling_of_a_path_leads_outside);
fn a20_no_spelling_of_a_path_leads_outside(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a needle\n"), ("sub/b.txt", "b\n")]);
    let user = actor.user().display().to_string();
    symlink(actor.user().join(".ssh"), actor.stage.project().join("link")).unwrap();
    symlink("../user", actor.stage.project().join("up")).unwrap();
    actor.own();
    let spellings = [
        format!("{user}/.ssh/id_ed25519"),
        "~/.ssh/id_ed25519".into(),
        "../user/.ssh/id_ed25519".into(),
        "sub/../../user/.ssh/id_ed25519".into(),
        "./././../user//.ssh/./id_ed25519".into(),
        "link/id_ed25519".into(),
        "up/.ssh/id_ed25519".into(),
        "sub/../up/notes.txt".into(),
        format!("/proc/self/root{user}/notes.txt"),
        format!("/proc/1/root{user}/notes.txt"),
        "/proc/self/cwd/../user/notes.txt".into(),
        format!("//{user}/notes.txt"),
        format!("{user}/NOTES.TXT"),
        format!("{user}/notes.txt."),
        format!("{user}/no\u{74}\u{301}es.txt"),
        format!("{user}/notes.txt\u{200b}"),
        format!("{user}\0/notes.txt"),
    ];
    let script = spellings.iter().map(|path| calls(reads(path))).chain([Reply::text("done")]).collect();
    let (ran, _model) = actor.task(script, &[]);
    let text = seen(&ran);
    assert!(!text.contains(&format!("{CANARY} of")), "{text}");
    // The controls: those that are paths at all lead there outside, and the tools do read what they may.
    let there = |path: &&String| {
        let path = path.replace("~", &user);
        !path.contains('\0') && actor.outside(&["cat", &path]).stdout.contains(CANARY)
    };
    let real: Vec<&String> = spellings.iter().filter(there).collect();
    assert!(real.len() >= 10, "{real:?}");
    let (ran, _model) = actor.task(vec![calls(reads("sub/../a.txt")), Reply::text("done")], &[]);
    assert!(seen(&ran).contains("a needle"), "{ran:?}");
}

/// Exchanges two paths, over and over, while a closure runs. Returns how often.
fn while_swapping<T>(one: &Path, other: &Path, work: impl FnOnce(&AtomicUsize) -> T) -> (T, usize) {
    let (stop, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    let done = thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_micros(50));
            }
        });
        // Also where the work panics, which would wait for the other thread.
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _stop = Stop(&stop);
        work(&swaps)
    });
    (done, swaps.into_inner())
}

attack!(a57_a_directory_that_becomes_a_link_during_a_search);
fn a57_a_directory_that_becomes_a_link_during_a_search(who: Who) {
    let files: Vec<(String, &str)> =
        (0..50).map(|n| (format!("d/{n}/id_ed25519"), "harmless needle\n")).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let actor = Actor::new(who, &files);
    let (directory, link) = (actor.stage.project().join("d/7"), actor.stage.folder().join("swap"));
    symlink(actor.user().join(".ssh"), &link).unwrap();
    // Each time by another name of the same place: a model that repeats a failing call is stopped.
    let looks = |time: usize| {
        let place = format!("d/{}7", "./".repeat(time));
        let each = [
            ("search_grep", json!({ "pattern": "canary|needle" })),
            ("search_grep", json!({ "pattern": "canary|needle", "path": place })),
            ("fs_read", json!({ "path": format!("{place}/id_ed25519") })),
            ("fs_list", json!({ "path": place })),
            (
                "command_run",
                json!({ "command": format!("for i in $(seq 20); do cat {place}/id_ed25519; done 2>/dev/null") }),
            ),
        ];
        calls(each.into())
    };
    let script = || (0..12).map(looks).chain([Reply::text("done")]).collect();
    let mut text = String::new();
    let states = ["harmless needle", "id_ed25519  16 bytes", "exit code: 1"];
    let is_met = |text: &str| states.iter().all(|state| text.contains(state));
    // Every swap that is counted happens while a task is at work. Which state a tool meets is luck, and on a
    // busy machine takes longer.
    let ((), swaps) = while_swapping(&directory, &link, |swaps| {
        for task in 0.. {
            let is_enough = swaps.load(Ordering::Relaxed) >= 10_000;
            if is_enough && (is_met(&text) || task >= 20) {
                break;
            }
            let (ran, _model) = actor.task(script(), &[]);
            text.push_str(&seen(&ran));
        }
    });
    println!("{swaps} swaps");
    assert!(is_met(&text), "it did read, and the tools met both the directory and the link: {text}");
    assert!(!text.contains(&format!("{CANARY} of")), "{text}");
    // The control: outside, the same race shows the key.
    let read = ["sh", "-c", "for i in $(seq 400); do cat d/7/id_ed25519; done 2>/dev/null"];
    let (raced, _) = while_swapping(&directory, &link, |_| actor.outside(&read));
    assert!(raced.stdout.contains(CANARY), "the control");
}

attack!(a20_a_link_swapped_inside_changes_nothing_outside);
fn a20_a_link_swapped_inside_changes_nothing_outside(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n"), ("d/x", "x\n")]);
    let outside = actor.user().join("target");
    fs::write(&outside, "as it was\n").unwrap();
    actor.own();
    // One command swaps a file for a link while the tools write to it.
    let swap = format!(
        "i=0; while [ $i -lt 300 ]; do rm -f d/x; ln -s {0} d/x; rm -f d/x; echo x > d/x; i=$((i+1)); done",
        outside.display()
    );
    let write = || ("fs_write", json!({ "path": "d/x", "content": "owned\n" }));
    let race = calls(vec![
        ("command_run", json!({ "command": swap, "reads": [], "writes": [] })),
        write(),
        write(),
        write(),
    ]);
    let (ran, _model) = actor.task(vec![race, calls(vec![write()]), Reply::text("done")], &["--apply"]);
    assert!(matches!(ran.code, Some(0 | 3 | 6)), "{ran:?}");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "as it was\n");
    // The control: such a link followed outside changes it.
    let follow = format!("ln -sf {} d/y; echo owned > d/y", outside.display());
    actor.outside(&["sh", "-c", &follow]);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "owned\n");
}

attack!(a20_what_inside_cannot_link_or_move_out);
fn a20_what_inside_cannot_link_or_move_out(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    let user = actor.user().display().to_string();
    let tricks = [
        format!("ln {user}/notes.txt stolen; cat stolen"),
        format!("ln -s {user}/notes.txt stolen; cat stolen"),
        format!("mv {user}/notes.txt stolen; cat stolen"),
        format!("cp -r {user}/.ssh stolen; cat stolen/id_ed25519"),
        format!("cd ..; cat user/notes.txt; cd {user}; cat notes.txt"),
        format!("cat /proc/self/cwd/../user/notes.txt /proc/$PPID/root{user}/notes.txt"),
        format!("tar c {user}/.ssh | tar xO"),
        format!("mount --bind {user} . ; cat notes.txt"),
    ];
    for trick in &tricks {
        let ran = actor.sh(trick);
        assert!(!ran.stdout.contains(CANARY), "{trick}: {ran:?}");
        assert!(actor.user().join("notes.txt").is_file(), "{trick}");
    }
    for trick in tricks.iter().filter(|trick| !trick.starts_with("mount") && !trick.starts_with("mv")) {
        let ran = actor.outside(&["sh", "-c", &format!("rm -rf stolen; {trick}")]);
        assert!(ran.stdout.contains(CANARY), "the control of {trick}: {ran:?}");
    }
    // The system's own files cannot be written, nor linked into the workspace; there is no way to keep one
    // writable.
    let writes =
        "for f in /usr/x /etc/x /x /proc/sys/kernel/core_pattern /proc/self/oom_score_adj /sys/x /dev/x; do
                  if { echo 1 > $f; } 2>/dev/null; then echo wrote $f; fi; done
                  ln /usr/bin/env ./env 2>/dev/null && echo linked; chmod u+s a.txt 2>/dev/null; true";
    let ran = actor.sh(writes);
    let wrote: Vec<&str> = ran.stdout.lines().filter(|line| !line.contains("oom_score_adj")).collect();
    assert_eq!((ran.code, wrote), (Some(0), Vec::new()), "{ran:?}");
}

attack!(a23_what_the_model_says_of_places_widens_nothing);
fn a23_what_the_model_says_of_places_widens_nothing(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a needle\n")]);
    let user = actor.user().display().to_string();
    let project = actor.stage.project().display().to_string();
    let steal = format!(
        "pwd; cat {user}/notes.txt; echo owned > {user}/owned; echo owned > /usr/owned; cat notes.txt"
    );
    let cwds = ["/", "..", "../user", &user, "/root", "/proc/self/root", "/usr", "~", "link"];
    symlink(&user, actor.stage.project().join("link")).unwrap();
    let mut script: Vec<Reply> = cwds
        .iter()
        .map(|cwd| {
            calls(vec![
                ("command_run", json!({ "command": steal, "cwd": cwd })),
                ("git_run", json!({ "args": ["status"], "cwd": cwd })),
            ])
        })
        .collect();
    let environment = json!({
        "LD_PRELOAD": format!("{user}/evil.so"), "HOME": user, "PATH": format!("{user}:/usr/bin"),
        "GIT_DIR": format!("{user}/.git"), "GIT_WORK_TREE": "/", "GIT_CONFIG_COUNT": "0",
        "GIT_SSH_COMMAND": steal, "PAGER": steal, "BASH_ENV": format!("{user}/.bashrc"), "ENV": format!("{user}/.bashrc"),
        "BAILEY_HOME": user, "BAILEY_CONTROL_WITHOUT": "seccomp", "BAILEY_CONTROL_ACCEPT": "1",
    });
    let look = format!("{steal}; grep Seccomp: /proc/self/status; git log");
    script.push(calls(vec![("command_run", json!({ "command": look, "env": environment }))]));
    let writes = [format!("{user}/owned"), "../user/owned".into(), "/usr/owned".into(), "link/owned".into()];
    let writes =
        writes.iter().map(|path| ("fs_write", json!({ "path": path, "content": "owned" }))).collect();
    script.extend([calls(writes), Reply::text("done")]);
    let (ran, _model) = actor.task(script, &["--apply"]);
    let text = ran.results().join("\n");
    assert!(matches!(ran.code, Some(0)), "{ran:?}");
    assert!(!text.contains(&format!("{CANARY} of")), "{text}");
    assert!(text.contains("Seccomp:\t2"), "the variables took no wall away: {text}");
    assert!(!actor.user().join("owned").exists() && !Path::new("/usr/owned").exists());
    assert!(!actor.stage.project().join("owned").exists());
    // The control: outside, the same line does it.
    let steal = steal.replace("echo owned > /usr/owned;", "");
    let ran = actor.outside(&["sh", "-c", &steal]);
    assert!(ran.stdout.contains(CANARY) && actor.user().join("owned").is_file(), "{ran:?} in {project}");
}

/// Rules of a human who lets the agent read one directory outside.
fn outside_rules(directory: &Path) -> String {
    let rule = |name: &str, fields: &str| {
        format!(
            "[[rule]]\nname = \"{name}\"\nanswer = \"allow\"\nreason = \"a test\"\nmatch = {{ {fields} }}\n\n"
        )
    };
    [
        rule(
            "outside",
            &format!(
                "action = [\"read\", \"stat\", \"list\", \"search\"], path = \"{}/**\"",
                directory.display()
            ),
        ),
        rule(
            "workspace",
            "action = [\"read\", \"stat\", \"list\", \"search\", \"diff\"], path = \"{workspace}/**\"",
        ),
        rule("models", "action = \"model\""),
    ]
    .concat()
}

attack!(a20_an_allowed_read_outside_follows_no_link);
fn a20_an_allowed_read_outside_follows_no_link(who: Who) {
    if !is_root() {
        println!("SKIPPED: a directory outside of every place of the walls needs root");
        return;
    }
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    // Not below /tmp, where the walls have files of their own.
    let outside = tempfile::Builder::new().prefix("bailey-outside-").tempdir_in("/srv").unwrap();
    let at = fs::canonicalize(outside.path()).unwrap();
    fs::create_dir_all(at.join("real")).unwrap();
    for name in ["ok.txt", "real/id_ed25519"] {
        fs::write(at.join(name), "harmless needle\n").unwrap();
    }
    symlink(actor.user().join(".ssh/id_ed25519"), at.join("file")).unwrap();
    symlink(actor.user().join(".ssh"), at.join("directory")).unwrap();
    symlink(actor.user().join(".ssh"), at.join("swap")).unwrap();
    fs::set_permissions(&at, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::create_dir_all(actor.stage.home().join("policy")).unwrap();
    fs::write(actor.stage.home().join("policy/rules.toml"), outside_rules(&at)).unwrap();
    actor.own();
    let path = |name: &str| at.join(name).display().to_string();
    let names = ["file", "directory/id_ed25519", "directory", "."];
    let mut script: Vec<Reply> = names.iter().map(|name| calls(reads(&path(name))[..3].to_vec())).collect();
    let race = ["real/id_ed25519", "real"];
    // Each under a spelling of its own: the same failing call again and again would pause the turn.
    let spelled = |number: usize| path(&format!("{}{}", "./".repeat(number), race[number % 2]));
    script.extend((0..20).map(|number| calls(reads(&spelled(number))[..3].to_vec())));
    script.extend([calls(vec![("fs_read", json!({ "path": path("ok.txt") }))]), Reply::text("done")]);
    let ((ran, _model), swaps) =
        while_swapping(&at.join("real"), &at.join("swap"), |_| actor.task(script, &[]));
    let text = seen(&ran);
    println!("{swaps} swaps");
    assert!(text.contains("harmless needle"), "the control: what is allowed is read: {text}");
    assert!(!text.contains(&format!("{CANARY} of")), "{text}");
    let followed = actor.outside(&["cat", &path("file"), &path("directory/id_ed25519")]);
    assert_eq!(followed.stdout.matches(CANARY).count(), 2, "the control: {followed:?}");
}

attack!(a57_odd_files_block_nothing_and_fill_nothing);
fn a57_odd_files_block_nothing_and_fill_nothing(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a needle\n")]);
    let project = actor.stage.project();
    let mut odd = vec!["fifo"];
    rustix::fs::mkfifoat(CWD, project.join("fifo"), 0o644.into()).unwrap();
    fs::File::create(project.join("sparse")).unwrap().set_len(10 << 30).unwrap();
    if is_root() {
        let device = rustix::fs::makedev(1, 5);
        rustix::fs::mknodat(
            CWD,
            project.join("zero"),
            rustix::fs::FileType::CharacterDevice,
            0o666.into(),
            device,
        )
        .unwrap();
        odd.push("zero");
    } else {
        could_not_be_tried("a device", "only root can make one");
    }
    actor.own();
    let each = odd.iter().flat_map(|name| {
        [
            ("fs_read", json!({ "path": name })),
            ("fs_edit", json!({ "path": name, "old": "a", "new": "b" })),
            ("fs_exists", json!({ "path": name })),
            ("search_grep", json!({ "pattern": "needle", "path": name })),
        ]
    });
    let all = [
        ("search_grep", json!({ "pattern": "needle" })),
        ("fs_list", json!({ "path": "." })),
        ("fs_read", json!({ "path": "sparse" })),
    ];
    let script = vec![calls(each.chain(all).collect()), Reply::text("done")];
    let begin = Instant::now();
    let (ran, _model) = actor.task(script, &[]);
    let text = seen(&ran);
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    assert!(text.contains("a.txt") && text.len() < 100_000, "{} bytes", text.len());
    // The control: a plain read of the FIFO blocks.
    let ran = actor.outside(&["timeout", "0.5", "cat", "fifo"]);
    assert_eq!(ran.code, Some(124), "{ran:?}");
}
