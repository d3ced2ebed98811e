//! A25, A27: what grows without end is ended with all that it started, and the runtime itself is not walled
//! in.

use super::actor::{Actor, Who};
use crate::stage::Ran;
use bailey_testkit::{Gate, Message, Reply};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    fs,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Two seconds to end what is watched, and what a loaded machine adds.
const SOON: Duration = Duration::from_secs(12);

const LIMITS: &str = "[limits]\ncommand_seconds = 20\ncommand_memory_mib = 200\ncommand_disk_mib = 8\ncommand_processes = 40\n";

/// Processes of the host whose arguments or variables hold a text.
fn marked(mark: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let own = std::process::id().to_string();
    let holds = |path: &std::path::PathBuf| {
        ["cmdline", "environ"].iter().any(|file| {
            fs::read(path.join(file)).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(mark))
        })
    };
    processes
        .filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit()))
        .filter(|path| !path.ends_with(&own))
        .filter(holds)
        .map(|path| path.display().to_string())
        .collect()
}

struct Bomb {
    name: &'static str,
    /// `$1` is for how many seconds it rests at its end. What was not stopped says `grown`.
    script: &'static str,
    /// The limit that ends it; none when the kernel only refuses more.
    limit: Option<&'static str>,
    control: Control,
}

/// Where the same script grows as it likes.
enum Control {
    /// Inside, with the limits that hold by default.
    Room,
    /// Outside, as it has no limit of its own.
    Outside,
    /// In a script of its own, below: nobody wants this one without walls.
    Apart,
}

const BOMBS: &[Bomb] = &[
    Bomb {
        name: "fork bomb",
        script: "(b() { b | b & b; }; b) 2>/dev/null & exec /usr/bin/python3 -c 'import os, time\nn = 0\ntry:\n  while n < 500:\n    if os.fork() == 0: time.sleep(60); os._exit(0)\n    n += 1\nexcept OSError: print(\"bounded at\", n)'",
        limit: None,
        control: Control::Apart,
    },
    Bomb {
        name: "processes",
        script: "exec /usr/bin/python3 -c 'import os, time\nn = 0\ntry:\n  while n < 60:\n    if os.fork() == 0: time.sleep(60); os._exit(0)\n    n += 1\n  print(\"grown\")\nexcept OSError: print(\"bounded at\", n)'",
        limit: None,
        control: Control::Room,
    },
    Bomb {
        name: "memory in one process",
        script: "/usr/bin/python3 -c 'import sys, time\nkeep = [bytearray(1 << 20) for _ in range(600)]\nprint(\"grown\", flush=True)\ntime.sleep(int(sys.argv[1]))' $1",
        limit: Some("memory limit"),
        control: Control::Room,
    },
    Bomb {
        name: "memory in shared memory",
        script: "head -c 300M /dev/zero > /dev/shm/fill; sleep 1; [ $(stat -c %s /dev/shm/fill) -lt 220000000 ] && echo bounded || echo grown",
        limit: None,
        control: Control::Room,
    },
    Bomb {
        name: "disk",
        script: "for i in 1 2 3 4; do head -c 9M /dev/zero > fill$i && n=$i; done; [ $n = 4 ] && echo grown; sleep $1",
        limit: Some("disk limit"),
        control: Control::Room,
    },
    Bomb {
        name: "inodes",
        script: "mkdir d; i=0; while [ $i -lt 60000 ]; do : > d/$i; i=$((i+1)); done; echo grown; sleep $1",
        limit: Some("disk limit"),
        control: Control::Room,
    },
    Bomb {
        name: "descriptors",
        script: "exec /usr/bin/python3 -c 'import os, resource\nmost = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\nresource.setrlimit(resource.RLIMIT_NOFILE, (most, most))\nfds = []\ntry:\n  while len(fds) < 5000: fds.append(os.open(\"/dev/null\", 0))\n  print(\"grown\")\nexcept OSError: print(\"bounded at\", len(fds))'",
        limit: None,
        control: Control::Outside,
    },
    Bomb {
        name: "daemons",
        script: "for i in 1 2 3; do (setsid nohup sleep 300 >/dev/null 2>&1 &); done; setsid sh -c 'sleep 299 & sleep 298' & echo bounded",
        limit: None,
        control: Control::Apart,
    },
];

attack!(a25_bombs_are_bounded_and_reaped);
fn a25_bombs_are_bounded_and_reaped(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    actor.configure(LIMITS);
    for bomb in BOMBS {
        is_bounded(&actor, bomb);
    }
    // The controls: with room enough the same growth is no breach, and a daemon without walls survives what
    // started it.
    actor.configure("");
    for Bomb { name, script, control, .. } in BOMBS {
        let argv = ["sh", "-c", script, "control", "0"];
        let ran = match control {
            Control::Room => actor.inside(&argv),
            Control::Outside => actor.outside(&argv),
            Control::Apart => continue,
        };
        assert!(ran.code == Some(0) && ran.stdout.contains("grown"), "the control of {name}: {ran:?}");
    }
    let left = Left::by(&actor, "control", "setsid sh -c 'sleep 60; true' $0 >/dev/null 2>&1 &");
    wait_until(|| left.lives());
}

/// One script ends within its limits and leaves nothing.
fn is_bounded(actor: &Actor, Bomb { name, script, limit, .. }: &Bomb) {
    let mark = mark(actor.who, name);
    let begin = Instant::now();
    let outcome = actor.outcome(&["sh", "-c", script, &mark, "30"]);
    let elapsed = begin.elapsed();
    let report = &outcome["report"];
    assert!(elapsed < SOON, "{name}: {elapsed:?}: {outcome}");
    assert_eq!(find(report, "limit"), limit.map_or(Value::Null, |limit| json!(limit)), "{name}: {outcome}");
    if script.contains("bounded") {
        assert!(report.to_string().contains("bounded"), "{name}: {outcome}");
    }
    assert_eq!(marked(&mark), Vec::<String>::new(), "{name} left something");
    let watched = |wall: &str| outcome["enforced"]["watched"].to_string().contains(wall);
    println!(
        "held: {name} in {elapsed:?} (memory {}, disk {})",
        if watched("memory_limit") { "watched" } else { "enforced" },
        if watched("disk_limit") { "watched" } else { "enforced" },
    );
}

attack!(a25_a_bomb_in_the_background_is_bounded_and_reaped);
fn a25_a_bomb_in_the_background_is_bounded_and_reaped(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    let is_tried = |bomb: &&Bomb| matches!(bomb.control, Control::Room) && bomb.name != "inodes";
    for Bomb { name, script, limit, .. } in BOMBS.iter().filter(is_tried) {
        let mark = mark(actor.who, name);
        let (outcome, told) = in_the_background(&actor, LIMITS, &["sh", "-c", script, &mark, "60"]);
        let report = &outcome["report"];
        assert_eq!(
            find(report, "limit"),
            limit.map_or(Value::Null, |limit| json!(limit)),
            "{name}: {outcome}"
        );
        match limit {
            Some(limit) => {
                assert!(told.contains(&format!("process 1 was ended by the {limit}")), "{name}: {told}")
            }
            None => assert!(report.to_string().contains("bounded"), "{name}: {outcome}"),
        }
        assert_eq!(marked(&mark), Vec::<String>::new(), "{name} left something");
        // The control: the same with room enough.
        let (outcome, told) = in_the_background(&actor, "", &["sh", "-c", script, "control", "0"]);
        assert!(find(&outcome["report"], "limit").is_null() && told.contains("grown"), "{name}: {outcome}");
    }
}

/// What became of a command that was begun in the background and ended by itself: its outcome, and what its
/// model was told. Both say of each limit whether it was enforced or watched.
fn in_the_background(actor: &Actor, limits: &str, argv: &[&str]) -> (Value, String) {
    let gate = Gate::default();
    let begin = json!({ "argv": argv, "background": true });
    let model = actor.stage.model(vec![
        Reply::calls([("c1", "command_run", begin)]),
        Reply::Held(gate.clone(), Message::calls([("c2", "command_run", json!({ "argv": ["true"] }))])),
        Reply::text("done"),
    ]);
    let provider = fs::read_to_string(actor.stage.home().join("config.toml")).unwrap();
    actor.configure(&format!("{limits}\n{provider}"));
    let mut command =
        actor.command(&["--json", "run", "--model", "test/model", "--approve", "never", "do it"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    model.wait_for(2);
    wait_until(|| !newest_outcome(actor).is_null());
    gate.open();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let begun = ran.lines().into_iter().find(|event| event["type"] == "result").unwrap();
    let outcome = newest_outcome(actor);
    let (enforced, told) = (&outcome["enforced"], model.requests().last().unwrap().json().to_string());
    assert_eq!(&begun["enforced"], enforced, "{begun}");
    for limit in ["memory_limit", "disk_limit"] {
        let says = |how: &str| enforced[how].as_array().unwrap().contains(&json!(limit));
        assert_ne!(says("watched"), says("walls"), "{limit} is held or watched: {outcome}");
    }
    (outcome, told)
}

/// The outcome of what was begun last in the background, once it has one.
fn newest_outcome(actor: &Actor) -> Value {
    let lines = actor.bailey(&["audit", "export"]).lines();
    let payload = |line: &Value| -> Value {
        line["payload"].as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    };
    let begun = lines.iter().rfind(|line| payload(line)["action"]["background"] == true).unwrap();
    let is_its = |line: &&Value| {
        line["entry"]["type"] == "outcome" && line["entry"]["effect"] == begun["entry"]["effect"]
    };
    lines.iter().find(is_its).map(payload).unwrap_or_default()
}

/// A text that stands in the arguments of one test's processes alone.
fn mark(who: Who, name: &str) -> String {
    format!("mark-{}-{who:?}-{}", std::process::id(), name.replace(' ', "-"))
}

/// What a script leaves behind where no walls are; it is ended with the test.
struct Left(String);

impl Left {
    /// Runs a script, with its mark as `$0`, outside.
    fn by(actor: &Actor, name: &str, script: &str) -> Self {
        let left = Self(mark(actor.who, name));
        actor.outside(&["sh", "-c", script, &left.0]);
        left
    }

    fn lives(&self) -> bool {
        !marked(&self.0).is_empty()
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        for path in marked(&self.0) {
            let pid = path.trim_start_matches("/proc/").parse().ok().and_then(Pid::from_raw);
            pid.map(|pid| kill_process(pid, Signal::KILL));
        }
    }
}

const GROW: &str = include_str!("../probes/grow.py");

const LOW_LIMITS: &str = "[limits]\ncommand_memory_mib = 100\ncommand_disk_mib = 4\n";

/// What grows, past which of the low limits, in bytes, and what ends it.
const GROWTHS: [(&str, u64, &str); 8] = [
    ("memory", 100 << 20, "memory limit"),
    ("processes", 100 << 20, "memory limit"),
    ("disk", 4 << 20, "disk limit"),
    ("inodes", 4 << 20, "disk limit"),
    ("unnamed", 4 << 20, "disk limit"),
    ("deep", 4 << 20, "disk limit"),
    ("memfd", 100 << 20, "memory limit"),
    ("segment", 100 << 20, "memory limit"),
];

/// From a breach to the tree's end, in seconds.
const ENDED_WITHIN: f64 = 2.0;

attack!(a25_what_grows_past_a_limit_ends_within_two_seconds);
fn a25_what_grows_past_a_limit_ends_within_two_seconds(who: Who) {
    let actor = Actor::new(who, &[("grow.py", GROW)]);
    actor.configure(LOW_LIMITS);
    for (way, limit, name) in GROWTHS {
        let limit = limit.to_string();
        let outcome = actor.outcome(&["/usr/bin/python3", "grow.py", way, &limit, "15"]);
        assert_eq!(find(&outcome["report"], "limit"), json!(name), "{way}: {outcome}");
        if !outcome["enforced"]["watched"].to_string().contains(&name.replace(' ', "_")) {
            println!("held: {way} (enforced)");
            continue;
        }
        let (took, held_up) = lasted(&outcome);
        assert!(took < ENDED_WITHIN + held_up, "{way}: {took} s, the machine held it up for {held_up} s");
        println!(
            "held: {way} (watched): {took:.2} s after the breach (the machine held it up for {held_up:.2} s)"
        );
    }
    // What is mapped and open is there once: six tenths of the limit are no breach.
    let outcome = actor.outcome(&["/usr/bin/python3", "grow.py", "mapped", "0", "2"]);
    assert_eq!(find(&outcome["report"], "limit"), Value::Null, "{outcome}");
    // The control: with room enough the same tree goes on for longer than that.
    actor.configure("");
    for (way, limit, _) in GROWTHS {
        let outcome = actor.outcome(&["/usr/bin/python3", "grow.py", way, &limit.to_string(), "3"]);
        assert_eq!(find(&outcome["report"], "limit"), Value::Null, "{way}: {outcome}");
        assert!(lasted(&outcome).0 > ENDED_WITHIN, "the control of {way}: {outcome}");
    }
}

/// How long a tree that grew went on after it was over the limit, and for how long the machine held it up
/// meanwhile: both in seconds, by its own clock.
fn lasted(outcome: &Value) -> (f64, f64) {
    let text = find(&outcome["report"], "stdout")["head"].as_str().unwrap_or_default().to_owned();
    let times = |word: &str| -> Vec<f64> {
        let time = |line: &str| line.strip_prefix(word)?.trim().parse().ok();
        text.lines().filter_map(time).collect()
    };
    let over = *times("over").first().unwrap_or_else(|| panic!("it never went over: {outcome}"));
    let beats: Vec<f64> = times("beat").into_iter().filter(|beat| *beat >= over).collect();
    let last = beats.last().copied().unwrap_or(over);
    let held_up = beats.windows(2).map(|pair| (pair[1] - pair[0] - 0.025).max(0.0)).sum();
    (last - over, held_up)
}

/// The value of a name, however deep.
fn find(value: &Value, name: &str) -> Value {
    match value {
        Value::Object(map) => map
            .get(name)
            .cloned()
            .or_else(|| map.values().map(|inner| find(inner, name)).find(|found| !found.is_null()))
            .unwrap_or(Value::Null),
        _ => Value::Null,
    }
}

attack!(a25_a_runtime_that_is_killed_leaves_nothing);
fn a25_a_runtime_that_is_killed_leaves_nothing(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    // Each bears the mark, also those whose arguments are their own.
    let script = "export MARK=$0; setsid sh -c 'sleep 301; true' $0 & sleep 302; true";
    let killed = |mut command: Command, mark: &str| {
        let mut parent = command.stdout(Stdio::null()).spawn().unwrap();
        // What prepares the script bears the mark, too: the family is there with its youngest.
        let youngest = format!("sh\0-c\0sleep 301; true\0{mark}\0");
        let is_it =
            |path: &String| fs::read(format!("{path}/cmdline")).is_ok_and(|read| read == youngest.as_bytes());
        wait_until(|| marked(mark).iter().any(is_it));
        parent.kill().unwrap();
        parent.wait().unwrap();
    };
    let marked_script = mark(who, "killed");
    let run = ["sandbox", "run", "--", "sh", "-c", script, &marked_script];
    killed(actor.command(&run), &marked_script);
    wait_until(|| marked(&marked_script).is_empty());
    // The control: what another parent started lives on.
    let left = Left(mark(who, "orphan"));
    killed(actor.program(&["sh", "-c", script, &left.0]), &left.0);
    thread::sleep(Duration::from_millis(300));
    // One that is just about to execute a program has no arguments for a moment.
    wait_until(|| left.lives());
}

fn wait_until(holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not come");
        thread::sleep(Duration::from_millis(20));
    }
}

attack!(a27_nothing_is_inherited_and_the_runtime_is_not_walled_in);
fn a27_nothing_is_inherited_and_the_runtime_is_not_walled_in(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    let secret = actor.user().join("notes.txt").display().to_string();
    // Descriptors 7 and 251 of whoever starts Bailey are open on a secret.
    let open = "exec 7<\"$0\"; python3 -c 'import os,sys; os.dup2(7, 251); os.set_inheritable(7, True)
os.execvp(sys.argv[1], sys.argv[1:])' \"$@\"";
    let look =
        "ls /proc/self/fd; ls /proc/1/fd 2>/dev/null; cat <&7; cat /proc/self/fd/7 /proc/self/fd/251; true";
    let program = actor.stage.folder().join("bin/bailey").display().to_string();
    let home = actor.stage.home().display().to_string();
    let bailey = [program.as_str(), "--home", &home, "sandbox", "run", "--"];
    let enter = ["bash", "-c", open, &secret];
    let ran = actor.outside(&[&enter, &bailey[..], &["bash", "-c", look]].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "0\n1\n2\n3\n"), "{ran:?}");
    let control = actor.outside(&[&enter[..], &["bash", "-c", look]].concat());
    assert!(control.stdout.contains(super::actor::CANARY), "the control: {control:?}");
    // While a command is at work, the runtime is in none of its namespaces, and bound by rules of its own
    // only.
    let mut busy =
        actor.command(&["sandbox", "run", "--", "sleep", "2"]).stdout(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_millis(1000));
    let namespace = |of: &str, kind: &str| fs::read_link(format!("/proc/{of}/ns/{kind}")).unwrap();
    // (The actor stands in a mount namespace that this test made.)
    for kind in ["user", "pid", "net", "ipc", "uts", "cgroup"] {
        assert_eq!(namespace(&busy.id().to_string(), kind), namespace("self", kind), "{kind}");
    }
    assert_eq!(busy.wait().unwrap().code(), Some(0));
}
