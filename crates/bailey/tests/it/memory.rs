//! A daemon whose memory runs short: nothing new begins, what costs least makes room, and nothing that was
//! accepted is lost.

use crate::{
    daemon::{Daemon, PATIENCE, end},
    stage::{Ran, Stage},
};
use bailey_testkit::{Gate, Message, ModelServer, Reply};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

fn home(stage: &Stage, script: Vec<Reply>) -> ModelServer {
    let model = stage.model(script);
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("model = \"test/model\"\n{own}")).unwrap();
    model
}

/// Tasks that are due on one day of a year, and else when somebody says so.
fn add(stage: &Stage, name: &str) {
    let words = format!("the task of {name}");
    let ran = stage.ran(&["schedule", "add", name, "--cron", "0 0 1 1 *", &words]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn run(stage: &Stage, name: &str) -> Ran {
    stage.ran(&["--json", "schedule", "run", name])
}

fn wait<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come");
        thread::sleep(Duration::from_millis(50));
    }
}

/// What stands for the machine's memory, of which so much is taken.
struct Machine(PathBuf);

impl Machine {
    fn is(&self, percent: u64) {
        let new = self.0.with_extension("new");
        fs::write(&new, format!("MemTotal: 10000 kB\nMemAvailable: {} kB\n", 10_000 - percent * 100))
            .unwrap();
        fs::rename(new, &self.0).unwrap();
    }
}

/// A daemon that takes a file for what the machine has.
fn daemon(stage: &Stage) -> (Daemon<'_>, Machine) {
    let machine = Machine(stage.folder().join("meminfo"));
    machine.is(50);
    (begin(stage, &machine), machine)
}

fn begin<'a>(stage: &'a Stage, machine: &Machine) -> Daemon<'a> {
    Daemon::with(stage, "BAILEY_CONTROL_MEMINFO", &machine.0)
}

fn sessions(daemon: &Daemon<'_>) -> Vec<Value> {
    daemon.status()["sessions"].as_array().unwrap().clone()
}

#[test]
fn where_memory_is_short_nothing_new_begins_and_it_comes_back_by_itself() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let model = home(&stage, vec![Reply::text("done"), Reply::text("done"), Reply::text("done")]);
    add(&stage, "one");
    let (daemon, machine) = daemon(&stage);
    // The control: with room it is taken.
    assert_eq!(run(&stage, "one").code, Some(0));
    model.wait_for(1);
    assert_eq!(daemon.status()["memory"]["state"], "free");
    machine.is(81);
    let refused = run(&stage, "one");
    for word in ["memory is short: 81 %", "all that this machine has", "from 80 % on", "memory.hold_percent"]
    {
        assert!(refused.code == Some(1) && refused.stderr.contains(word), "{word}: {refused:?}");
    }
    let chat = stage.ran(&["chat", "--model", "test/model"]);
    assert!(chat.code == Some(1) && chat.stderr.contains("memory is short"), "{chat:?}");
    let memory = daemon.status()["memory"].clone();
    assert!(memory["state"] == "held" && memory["percent"] == 81 && memory["group"] == false, "{memory}");
    assert_eq!(memory["limit_bytes"], (10_000_u64 * 1024).to_string());
    assert!(stage.ran(&["status"]).stdout.contains("memory is short: 81 %"));
    // A session that runs is come to, short or not: nothing begins for it.
    assert_eq!(sessions(&daemon).len(), 1);
    // What is due meanwhile stays due: as if it had been written down years ago.
    let path = stage.home().join("schedules.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    value["one"]["since"] = "2020-06-01T00:00:00Z".into();
    fs::write(&path, value.to_string()).unwrap();
    wait("that it is held", || stage.ran(&["logs"]).stdout.contains("schedules [\"one\"]").then_some(()));
    assert_eq!(model.requests().len(), 1);
    // A little less is not free yet.
    machine.is(77);
    assert_eq!(run(&stage, "one").code, Some(1));
    machine.is(74);
    // It is done by itself, and once.
    model.wait_for(2);
    wait("that it is free", || (daemon.status()["memory"]["state"] == "free").then_some(()));
    assert_eq!(run(&stage, "one").code, Some(0));
    model.wait_for(3);
    assert_eq!(model.requests().len(), 3);
}

#[test]
fn sessions_make_room_in_order_and_a_turn_that_was_cut_goes_on_later() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let gates = [Gate::default(), Gate::default()];
    let held = |gate: &Gate, text: &str| Reply::Held(gate.clone(), Message::text(text));
    let script = vec![
        Reply::text("rests"),
        held(&gates[0], "the first is done"),
        held(&gates[1], "never heard"),
        Reply::text("the second is done"),
    ];
    let model = home(&stage, script);
    let names = ["rest", "first", "second"];
    names.iter().for_each(|name| add(&stage, name));
    let (daemon, machine) = daemon(&stage);
    let ids: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(number, name)| {
            let ran = run(&stage, name);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            model.wait_for(number + 1);
            let listed = stage.ran(&["--json", "schedule", "list"]).lines();
            let one = listed.iter().find(|it| it["name"] == *name).unwrap();
            one["session"].as_str().unwrap().to_owned()
        })
        .collect();
    let states = || -> Vec<(String, bool)> {
        let of = |it: &Value| (it["session"].as_str().unwrap().to_owned(), it["working"] == true);
        sessions(&daemon).iter().map(of).collect()
    };
    wait("two turns", || (states().iter().filter(|(_, working)| *working).count() == 2).then_some(()));
    // The control: with room, and where it is only held, all stay.
    machine.is(85);
    thread::sleep(Duration::from_millis(2500));
    assert_eq!(states().len(), 3);
    machine.is(95);
    wait("room", || (states() == [(ids[1].clone(), true)]).then_some(()));
    // The last turn goes on, and what was cut does not begin while it is short.
    thread::sleep(Duration::from_millis(2500));
    assert_eq!(states(), [(ids[1].clone(), true)]);
    assert_eq!(model.requests().len(), 3);
    assert_eq!(daemon.status()["memory"]["state"], "shedding");
    let log = stage.ran(&["--json", "logs"]).lines();
    let cut: Vec<&Value> =
        log.iter().filter(|it| it["what"] == "made_room" && it["was_working"] == true).collect();
    assert!(cut.len() == 1 && cut[0]["session"] == ids[2].as_str(), "{cut:?}");
    let place = |what: &dyn Fn(&Value) -> bool| log.iter().position(what).unwrap();
    let rested = place(&|it| it["what"] == "closed" && it["session"] == ids[0].as_str());
    assert!(rested < place(&|it| it["what"] == "made_room" && it["was_working"] == true), "who rests first");
    machine.is(50);
    model.wait_for(4);
    assert!(model.requests()[3].body.to_string().contains("the task of second"));
    gates[0].open();
    wait("the ends", || states().iter().all(|(_, working)| !working).then_some(()));
    let shown = |id: &str| stage.ran(&["sessions", "show", id]).stdout;
    assert!(shown(&ids[1]).contains("the first is done"));
    let second = shown(&ids[2]);
    assert!(second.contains("the second is done") && !second.contains("never heard"), "{second}");
    assert_eq!(second.matches("the task of second").count(), 1, "{second}");
    gates[1].open();
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
}

/// A control group of this test's own with a limit to its memory; none where none can be made.
struct Group(PathBuf);

impl Group {
    fn new(limit: u64) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let path = |name: &str| {
            own.lines().find_map(|line| Some(line.split_once(name)?.1.trim_start_matches('/').to_owned()))
        };
        let name = format!("bailey-test-{}", std::process::id());
        let places = [
            (
                path(":memory:").map(|path| Path::new("/sys/fs/cgroup/memory").join(path)),
                "memory.limit_in_bytes",
            ),
            (path("0::").map(|path| Path::new("/sys/fs/cgroup").join(path)), "memory.max"),
        ];
        for (place, file) in places {
            let Some(group) = place.map(|place| place.join(&name)) else { continue };
            if fs::create_dir(&group).is_ok() {
                if fs::write(group.join(file), limit.to_string()).is_ok() {
                    return Some(Self(group));
                }
                fs::remove_dir(&group).ok();
            }
        }
        None
    }

    /// The same command, by a process of the group.
    fn within(&self, command: &Command) -> Command {
        let mut inside = Command::new("sh");
        let script = format!("echo $$ > '{}/cgroup.procs' && exec \"$@\"", self.0.display());
        inside.args(["-c", &script, "sh"]).arg(command.get_program()).args(command.get_args());
        inside.current_dir(command.get_current_dir().unwrap_or(Path::new("/")));
        inside
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn the_limit_of_a_real_control_group_counts_without_what_is_given_back() {
    let Some(group) = Group::new(1 << 30) else {
        return println!("SKIPPED: no control group with a limit to memory can be made here");
    };
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let model = home(&stage, vec![Reply::text("done"), Reply::text("done")]);
    add(&stage, "one");
    let started = group.within(&stage.bailey(&["start"])).stderr(Stdio::null()).status().unwrap();
    assert!(started.success());
    let daemon = Daemon::of(&stage);
    // Where the group has more room than the machine, the machine is what counts.
    assert_eq!(daemon.status()["memory"]["state"], "free");
    // Files that were read fill the group as well, and are given back.
    let big = stage.folder().join("big");
    let mut write = Command::new("dd");
    write.args(["if=/dev/zero", "bs=1M", "count=1100", "status=none"]).arg(format!("of={}", big.display()));
    assert!(group.within(&write).status().unwrap().success());
    // The control: with that alone it is taken.
    let taken = run(&stage, "one");
    assert_eq!(taken.code, Some(0), "{taken:?}");
    model.wait_for(1);
    let script = "import sys\nheld = bytearray(870 << 20)\nfor at in range(0, len(held), 4096):\n    held[at] = 1\nprint('holds', flush=True)\nsys.stdin.read()\n";
    let mut python = Command::new("python3");
    python.args(["-c", script]);
    let mut holder = group.within(&python).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "holds");
    let refused = run(&stage, "one");
    let is_told = refused.stderr.contains("memory is short")
        && refused.stderr.contains("1.0 GiB")
        && refused.stderr.contains("its control group");
    assert!(refused.code == Some(1) && is_told, "{refused:?} {}", daemon.status());
    let memory = daemon.status()["memory"].clone();
    assert!(memory["group"] == true && memory["limit_bytes"] == "1073741824", "{memory}");
    end(holder.id().into(), "-KILL");
    holder.wait().unwrap();
    wait("room", || (run(&stage, "one").code == Some(0)).then_some(()));
    model.wait_for(2);
    drop(daemon);
    fs::remove_file(big).unwrap();
}

#[test]
fn who_waits_for_room_begins_when_the_one_before_has_what_it_needs() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let gate = Gate::default();
    let held = |text: &str| Reply::Held(gate.clone(), Message::text(text));
    let script =
        vec![held("never heard"), held("never heard"), held("the one is done"), held("the other is done")];
    let model = home(&stage, script);
    let names = ["one", "other"];
    names.iter().for_each(|name| add(&stage, name));
    let (running, machine) = daemon(&stage);
    for (number, name) in names.iter().enumerate() {
        assert_eq!(run(&stage, name).code, Some(0));
        model.wait_for(number + 1);
    }
    let working = |daemon: &Daemon<'_>| sessions(daemon).iter().filter(|it| it["working"] == true).count();
    wait("two turns", || (working(&running) == 2).then_some(()));
    // Both go on with the next daemon, for which there is no room yet.
    running.kill();
    machine.is(85);
    std::mem::forget(running);
    let again = begin(&stage, &machine);
    thread::sleep(Duration::from_millis(1500));
    assert!(sessions(&again).is_empty());
    machine.is(50);
    model.wait_for(3);
    // What the first takes is seen by now, and there is no room for the second.
    machine.is(85);
    thread::sleep(Duration::from_millis(7500));
    assert_eq!((sessions(&again).len(), model.requests().len()), (1, 3));
    machine.is(50);
    model.wait_for(4);
    gate.open();
    wait("the ends", || sessions(&again).iter().all(|it| it["working"] == false).then_some(()));
}
