//! What is kept ready for a session: it shows the host as it is, and does not grow.

use crate::house::{House, LOOKS, descendants, everyone};
use bailey_protocol::{Isolation, Profile, Status, Wall};
use bailey_sandbox::{Calls, Lease};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_layer_that_holds_nothing_has_nobody_who_looks_through_it() {
    for who in everyone() {
        let house = House::new(who);
        house.write("there", "one");
        assert_eq!(house.sh("cat there").await.ok(), "one");
        assert_eq!(house.ready().await.len(), house.spare, "{who:?}: one for the next command");
        // The control: where it holds something, if only that something is gone, there are two.
        assert_eq!(house.sh("rm there").await.ok(), "");
        assert_eq!(house.ready().await.len(), house.spare + LOOKS, "{who:?}");
    }
}

#[tokio::test]
async fn one_set_of_walls_serves_a_session() {
    for who in everyone() {
        let house = House::new(who);
        let look = "readlink /proc/self/ns/user /proc/self/ns/net";
        let first = (house.sh(look).await.ok(), holders(&house));
        for _ in 0..5 {
            assert_eq!((house.sh(look).await.ok(), holders(&house)), first, "{who:?}");
        }
        assert_eq!(first.1.len(), 1, "{who:?}");
        // The control: what is given up is made anew.
        house.native.forget(house.session).unwrap();
        house.sh(look).await.ok();
        assert_ne!(holders(&house), first.1, "{who:?}");
    }
}

/// Each of these changes was hidden by a mount that had been looked at before.
#[tokio::test]
async fn a_command_sees_what_changed_while_its_walls_stood_ready() {
    for who in everyone() {
        let house = House::new(who);
        house.write("written", "one");
        house.write("renamed", "one");
        house.write("deleted", "one");
        house.write("folder/inner", "one");
        let look = "cat written renamed deleted new folder/inner 2>/dev/null; ls . folder | tr '\\n' ' '";
        assert_eq!(house.sh(look).await.ok(), "oneoneoneone.: deleted folder renamed written  folder: inner");
        for round in 0..3 {
            let spares = house.ready().await;
            let of = |pid: &u32| fs::read_link(format!("/proc/{pid}/ns/pid_for_children")).ok();
            let namespaces: Vec<String> =
                spares.iter().filter_map(of).map(|link| link.to_string_lossy().into_owned()).collect();
            house.write("written", &format!("{round}a "));
            fs::rename(house.write("other", &format!("{round}b ")), house.project.join("renamed")).unwrap();
            drop(fs::remove_file(house.project.join("deleted")));
            house.write("new", &format!("{round}c "));
            fs::rename(house.project.join("folder"), house.project.join(format!("old{round}"))).unwrap();
            house.write("folder/inner", &format!("{round}d "));
            let text = house
                .sh("cat written renamed new folder/inner; cat deleted 2>&1; readlink /proc/self/ns/pid")
                .await
                .text();
            let changed =
                format!("{round}a {round}b {round}c {round}d cat: deleted: No such file or directory\n");
            let namespace = text.strip_prefix(&changed).unwrap_or_else(|| panic!("{who:?}: {text}")).trim();
            // The control: it ran in what had waited. Only root can look.
            assert!(
                namespaces.is_empty() || namespaces.contains(&namespace.to_owned()),
                "{who:?}: {namespace}"
            );
        }
        // The control: a command that looked before, and lives on, is shown an old one.
        house.write("said", "");
        let long = "cat renamed; : > looked; while [ ! -e /tmp/go ]; do sleep 0.02; done; cat renamed";
        let looked = house.folder.join("upper/looked");
        let (long, ()) = tokio::join!(house.sh(long), async {
            while !looked.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            fs::rename(house.write("other", "late"), house.project.join("renamed")).unwrap();
            house.sh(": > /tmp/go").await.ok();
        });
        assert_eq!(long.ok(), "2b 2b", "{who:?}: the control");
        assert_eq!(house.sh("cat renamed").await.ok(), "late", "{who:?}");
    }
}

/// Filters of system calls that a process is bound to, as the kernel counts them.
fn filters(status: &str) -> usize {
    let line = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Most commands have the same system calls, so what waits has them already; where it is fewer, it gets
/// these, too.
#[tokio::test]
async fn what_waits_is_bound_to_its_system_calls_already() {
    const LOOK: &str = "cat /proc/self/status";
    let own = Calls::custom("own", Profile::Standard);
    for who in everyone() {
        let outside = filters(&fs::read_to_string("/proc/self/status").unwrap());
        let net = Calls::named(Profile::StandardNet);
        for (calls, waits) in [(Calls::default(), 1), (net, 1), (own.clone(), 0)] {
            let house = House::with(who, |config| config.calls = calls.clone());
            let asked = |profile| Isolation { profile, ..Isolation::default() };
            house.run(&house.command(":"), &asked(calls.profile())).await.ok();
            let bound = || {
                let of = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/status")).ok();
                house.spares().iter().filter_map(of).map(|status| filters(&status) - outside).sum::<usize>()
            };
            house.ready().await;
            // Soon, for what is there may not be ready yet: what becomes the command and what lends it its
            // memory, and not its init.
            let begin = Instant::now();
            while bound() < 2 * waits && begin.elapsed() < Duration::from_secs(20) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            assert_eq!(bound(), 2 * waits, "{who:?} {calls:?}");
            // Those of the one that waits stay behind those that are fewer; a list of one's own has none that
            // are.
            let fewer = (waits == 1).then_some((Profile::Strict, 2));
            for (profile, count) in
                [(calls.profile(), 1)].into_iter().chain(fewer).chain([(calls.profile(), 1)])
            {
                house.ready().await;
                let ran = house.run(&house.command(LOOK), &asked(profile)).await;
                assert_eq!(filters(&ran.ok()) - outside, count, "{who:?} {calls:?} {profile:?}");
                assert!(ran.enforced().walls.contains(&Wall::Seccomp));
                assert_eq!(ran.enforced().profile, profile);
            }
        }
    }
}

/// Only what waits knows the words by which it binds itself to fewer calls, and a program is told none.
#[tokio::test]
async fn a_program_binds_itself_to_nothing() {
    const TRY: &str = "import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
made = set()
for first in (0, 1, 0xffffffff, int.from_bytes(os.urandom(4), 'little')):
    for second in (0, 1, 0xffffffff, int.from_bytes(os.urandom(4), 'little')):
        libc.syscall(ctypes.c_long(317), ctypes.c_long(1), ctypes.c_long(0), ctypes.c_void_p(0), ctypes.c_long(first), ctypes.c_long(second))
        made.add(errno.errorcode[ctypes.get_errno()])
print(*sorted(made))";
    let mut own = Calls::custom("own", Profile::Standard);
    own.allow("seccomp").unwrap();
    // The control: where the owner gave it to commands, the kernel looks at what it is given.
    for (calls, answer) in [(Calls::default(), "EPERM"), (own, "EFAULT")] {
        for who in everyone() {
            let house = House::with(who, |config| config.calls = calls.clone());
            house.write("try.py", TRY);
            let isolation = Isolation { profile: calls.profile(), ..Isolation::default() };
            for _ in 0..2 {
                house.ready().await;
                let ran = house.run(&house.command("/usr/bin/python3 -S try.py"), &isolation).await;
                assert_eq!(ran.ok(), answer, "{who:?} {calls:?}");
            }
        }
    }
}

/// What is short travels in the order itself, and what is long in a file of memory.
#[tokio::test]
async fn a_command_may_be_of_any_length() {
    for who in everyone() {
        let house = House::new(who);
        for bytes in [1, 8 << 10, 14 << 10, 15 << 10, 16 << 10, 17 << 10, 100 << 10] {
            let mut command = house.command("printf %s \"$0\" | wc -c");
            command.argv.push("x".repeat(bytes));
            house.ready().await;
            let ran = house.run(&command, &Isolation::default()).await;
            assert_eq!(ran.ok().trim(), bytes.to_string(), "{who:?}");
        }
    }
}

/// Where memory runs out the kernel takes what waits first.
#[tokio::test]
async fn one_of_those_that_wait_takes_the_others_along() {
    for who in everyone() {
        let house = House::new(who);
        house.sh(":").await.ok();
        for of_all in 0..3 {
            let spares = house.ready().await;
            // An init and its two children.
            let killed = *spares.get(of_all).unwrap();
            kill_process(Pid::from_raw(killed.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
            let begin = Instant::now();
            while spares.iter().any(|pid| Path::new(&format!("/proc/{pid}")).exists()) {
                assert!(begin.elapsed() < Duration::from_secs(20), "{who:?}: the others wait on");
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            assert_eq!(house.sh("echo here").await.ok(), "here", "{who:?}");
        }
    }
}

/// What waits was made for the usual limits; a command with others is counted without it.
#[tokio::test]
async fn what_was_passed_over_takes_no_place_of_a_command() {
    const COUNT: &str = "import os, time
count = 0
try:
    while count < 50:
        if os.fork() == 0:
            time.sleep(60)
        count += 1
except OSError:
    pass
print(count, flush=True)
os._exit(0)";
    for who in everyone() {
        let house = House::new(who);
        house.write("count.py", COUNT);
        let mut command = house.command("exec /usr/bin/python3 -S count.py");
        command.limits.pids = 10;
        let mut counts = Vec::new();
        for memory_bytes in [64 << 20, 64 << 20, 65 << 20] {
            command.limits.memory_bytes = memory_bytes;
            house.ready().await;
            counts.push(house.run(&command, &Isolation::default()).await.ok());
        }
        assert!(counts.iter().all(|count| Some(count) == counts.first()), "{who:?}: {counts:?}");
    }
}

/// Tools and files of the system are mounted once for a session: a package manager that puts others in their
/// place is seen.
#[tokio::test]
async fn what_took_the_place_of_a_tool_is_seen() {
    for who in everyone() {
        let house = House::with(who, |config| {
            fs::create_dir_all(config.user_home.join(".cargo/bin")).unwrap();
            fs::write(config.user_home.join(".cargo/bin/version"), "one").unwrap();
        });
        house.give(&house.home);
        assert_eq!(house.sh("cat ~/.cargo/bin/version").await.ok(), "one");
        for is_prepared in [true, false] {
            // Beside what has stood ready for longer than a moment.
            house.ready().await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            let tools = house.home.join(".cargo");
            fs::rename(tools.join("bin"), tools.join(format!("old-{is_prepared}"))).unwrap();
            fs::create_dir(tools.join("bin")).unwrap();
            fs::write(tools.join("bin/version"), format!("{is_prepared}")).unwrap();
            house.give(&house.home);
            if is_prepared {
                house.native.prepare(house.session).unwrap();
            }
            assert_eq!(house.sh("cat ~/.cargo/bin/version").await.ok(), format!("{is_prepared}"), "{who:?}");
        }
    }
}

#[tokio::test]
async fn a_holder_made_ahead_shows_what_stands_on_the_host_when_a_session_takes_it() {
    for who in everyone() {
        let version = "cat ~/.cargo/bin/version";
        for is_replaced in [false, true] {
            let house = House::with(who, |config| {
                fs::create_dir_all(config.user_home.join(".cargo/bin")).unwrap();
                fs::write(config.user_home.join(".cargo/bin/version"), "one").unwrap();
            });
            house.give(&house.home);
            let ahead = made_ahead(&house).await;
            let bin = house.home.join(".cargo/bin");
            if is_replaced {
                fs::rename(&bin, bin.with_extension("old")).unwrap();
                fs::create_dir(&bin).unwrap();
            }
            fs::write(bin.join("version"), "two").unwrap();
            house.give(&house.home);
            assert_eq!(house.sh(version).await.ok(), "two", "{who:?}");
            // The control: where nothing took the place of anything, it is the one that waited.
            assert_eq!(holders(&house) != [ahead], is_replaced, "{who:?}");
        }
    }
}

/// What is mounted on the host meanwhile a process in a mount namespace of its own does not see.
#[tokio::test]
async fn what_is_mounted_after_a_holder_was_made_ahead_is_seen() {
    if !crate::house::is_root() {
        println!("SKIPPED: only root can mount");
        return;
    }
    // Of this test's thread alone, and of what it starts.
    #[expect(deprecated, reason = "no descriptor is shared or given up")]
    rustix::thread::unshare(rustix::thread::UnshareFlags::NEWNS).unwrap();
    let private = rustix::mount::MountPropagationFlags::PRIVATE | rustix::mount::MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).unwrap();
    for who in everyone() {
        for is_mounted in [false, true] {
            let house = House::new(who);
            let ahead = made_ahead(&house).await;
            if is_mounted {
                let flags = rustix::mount::MountFlags::empty();
                rustix::mount::mount("tmpfs", &house.project, "tmpfs", flags, None).unwrap();
                house.give(&house.project);
            }
            house.write("a.txt", "a");
            assert_eq!(house.sh("cat a.txt").await.ok(), "a", "{who:?}");
            assert_eq!(holders(&house) != [ahead], is_mounted, "{who:?}");
            if is_mounted {
                rustix::mount::unmount(&house.project, rustix::mount::UnmountFlags::DETACH).unwrap();
            }
        }
    }
}

/// The holder that waits for the first session.
async fn made_ahead(house: &House) -> u32 {
    let begin = Instant::now();
    loop {
        if let [holder] = holders(house)[..]
            && fs::read_to_string(format!("/proc/{holder}/comm")).is_ok_and(|name| name == "bailey-holder\n")
        {
            return holder;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "none is made ahead");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A program cannot move the private directory that the project is mounted in.
#[tokio::test]
async fn a_project_in_the_home_stays_where_it_is_and_is_mounted_anew() {
    for who in everyone() {
        let house = House::with(who, |config| {
            let project = config.user_home.join("work/project");
            fs::create_dir_all(&project).unwrap();
            fs::write(project.join("a.txt"), "one").unwrap();
            let lease: &mut Lease = config.sessions.values_mut().next().unwrap();
            lease.yard.project = project;
        });
        house.give(&house.home);
        let project = house.home.join("work/project");
        let run = async |line: &str| {
            let mut command = house.command(line);
            command.cwd.0 = project.display().to_string();
            house.run(&command, &Isolation::default()).await
        };
        let moved = run("cat a.txt; mv ~/work ~/moved").await.text();
        assert!(moved.starts_with("one") && moved.contains("busy"), "{who:?}: {moved}");
        fs::write(project.join("a.new"), "two").unwrap();
        house.give(&house.home);
        fs::rename(project.join("a.new"), project.join("a.txt")).unwrap();
        assert_eq!(run("cat a.txt").await.ok(), "two", "{who:?}");
        assert_eq!(holders(&house).len(), 1, "{who:?}");
    }
}

#[tokio::test]
async fn what_waits_and_is_killed_is_made_anew() {
    for who in everyone() {
        let house = House::new(who);
        house.write("a.txt", "one");
        let spares = house.ready().await;
        for is_gone in [true, false] {
            for pid in &house.spares() {
                kill(*pid);
            }
            while is_gone && house.spares().iter().any(|pid| spares.contains(pid)) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            let ran = house.sh("cat a.txt").await;
            match &ran.outcome.status {
                Status::Done => assert_eq!(ran.ok(), "one", "{who:?}"),
                // It was given the order in the moment that it died in.
                Status::Failed { reason } => {
                    assert!(!is_gone && reason.contains("ended the sandbox"), "{who:?} {reason}")
                }
                other => panic!("{who:?}: {other:?}"),
            }
            assert_eq!(house.sh("cat a.txt").await.ok(), "one", "{who:?}");
        }
        assert!(house.spares().iter().all(|pid| !spares.contains(pid)), "{who:?}: {spares:?}");
    }
}

/// With a holder all that lived in it goes, before another one mounts the same layers.
#[tokio::test]
async fn a_killed_holder_is_replaced() {
    for who in everyone() {
        let house = House::new(who);
        house.write("a.txt", "one");
        assert_eq!(house.sh("echo two > b.txt").await.ok(), "", "{who:?}: both views have a holder");
        let before = house.ready().await;
        holders(&house).iter().for_each(|pid| kill(*pid));
        // One may be given an order in the moment that it dies in.
        while house.sh("cat a.txt").await.outcome.status != Status::Done {}
        assert_eq!(house.sh("cat a.txt").await.ok(), "one", "{who:?}");
        let after = house.ready().await;
        assert!(after.iter().all(|pid| !before.contains(pid)), "{who:?}");
        // No zombie and no orphan is left with the warden.
        assert_eq!(holders(&house).len(), 2, "{who:?}");
    }
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    // It may have ended with another one.
    let _ = kill_process(pid, Signal::KILL);
}

#[tokio::test]
async fn a_thousand_commands_leave_nothing_behind() {
    const COMMANDS: usize = 1_000;
    for who in everyone() {
        let house = House::new(who);
        house.write(".env", "KEY=1\n");
        let mut command = house.command("");
        command.argv = vec!["/bin/true".into()];
        let mut before = None;
        for number in 0..COMMANDS {
            house.run(&command, &Isolation::default()).await.ok();
            if number == 20 {
                house.ready().await;
                before = Some(Kept::of(&house));
            }
        }
        let before = before.unwrap();
        house.ready().await;
        let after = Kept::of(&house);
        println!("{who:?}: after 20 commands {before:?}, after {COMMANDS} {after:?}");
        // What waits may be busy with itself still; what each command left would be as many as there were
        // commands.
        let is_kept = |before: usize, after: usize| after <= before + COMMANDS / 4;
        assert_eq!((before.processes, before.groups), (after.processes, after.groups), "{who:?}");
        assert!(is_kept(before.descriptors, after.descriptors), "{who:?}: {before:?} {after:?}");
        assert!(is_kept(before.mounts, after.mounts), "{who:?}: {before:?} {after:?}");
        assert!(after.memory <= before.memory + 1024, "{who:?}: {before:?} {after:?}");
        // The control: what lives is counted.
        let cancel = CancellationToken::new();
        let (sleep, isolation) = (house.command("exec sleep 60"), Isolation::default());
        let (one, two) =
            (house.run_until(&sleep, &isolation, &cancel), house.run_until(&sleep, &isolation, &cancel));
        let (_, _, during) = tokio::join!(one, two, async {
            let begin = Instant::now();
            while house.processes_of_sandboxes() < 4 {
                assert!(begin.elapsed() < Duration::from_secs(20), "the control never began");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let during = Kept::of(&house);
            cancel.cancel();
            during
        });
        assert!(during.processes > before.processes && during.mounts > before.mounts, "{during:?}");
    }
}

/// The children of the warden.
fn holders(house: &House) -> Vec<u32> {
    let warden = house.native.warden().id();
    let is_child = |pid: &u32| {
        let children = fs::read_to_string(format!("/proc/{warden}/task/{warden}/children")).unwrap();
        children.split_whitespace().any(|child| child == pid.to_string())
    };
    descendants(warden).into_iter().filter(is_child).collect()
}

/// What a warden and its holders have of the kernel.
#[derive(Debug)]
struct Kept {
    processes: usize,
    descriptors: usize,
    mounts: usize,
    groups: usize,
    /// Anonymous memory, in KiB.
    memory: u64,
}

impl Kept {
    fn of(house: &House) -> Self {
        let processes = house.processes();
        let of = |pid: &u32, name: &str| Path::new("/proc").join(pid.to_string()).join(name);
        let count = |path| fs::read_dir(path).map_or(0, Iterator::count);
        let lines = |path| fs::read_to_string(path).map_or(0, |text| text.lines().count());
        let anonymous = |pid: &u32| {
            let status = fs::read_to_string(of(pid, "status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or_default();
            line.split_whitespace().next().and_then(|value| value.parse::<u64>().ok()).unwrap_or(0)
        };
        Self {
            processes: processes.len(),
            descriptors: processes.iter().map(|pid| count(of(pid, "fd"))).sum(),
            mounts: processes.iter().map(|pid| lines(of(pid, "mountinfo"))).sum(),
            groups: groups(Path::new("/sys/fs/cgroup"), &format!("bailey-{}-", house.native.warden().id())),
            memory: processes.iter().map(anonymous).sum(),
        }
    }
}

/// Control groups whose names begin so.
fn groups(at: &Path, prefix: &str) -> usize {
    let entries = fs::read_dir(at).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let of = |entry: fs::DirEntry| {
        let is_one = entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
        usize::from(is_one) + groups(&entry.path(), prefix)
    };
    directories.map(of).sum()
}

/// Descriptors on their way are counted by user, and all sandboxes of one have the same.
#[tokio::test]
async fn what_a_command_puts_on_its_way_holds_up_no_other_session() {
    const FLOOD: &str = "import array, socket, time
pairs, sent = [], 0
try:
    while sent < 20000:
        if sent % 2530 == 0:
            pairs.append(socket.socketpair())
        rights = array.array('i', [1] * 253)
        pairs[-1][0].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        sent += 253
except OSError:
    open('full', 'w').write('yes')
time.sleep(60)";
    if !Path::new("/usr/bin/python3").exists() {
        return println!("SKIPPED: there is no /usr/bin/python3");
    }
    for who in everyone() {
        let (hostile, house) = (House::new(who), House::new(who));
        hostile.write("flood.py", FLOOD);
        let cancel = CancellationToken::new();
        let (command, isolation) =
            (hostile.command("exec /usr/bin/python3 -S flood.py"), Isolation::default());
        let others = async {
            let begin = Instant::now();
            let full = hostile.folder.join("upper/full");
            while !full.exists() {
                assert!(begin.elapsed() < Duration::from_secs(20), "{who:?}: they are never too many");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            // The first has its sandbox made for it, the next one ahead.
            for _ in 0..2 {
                let ran = tokio::time::timeout(Duration::from_secs(20), house.sh("echo here")).await;
                assert_eq!(ran.expect("it is held up").ok(), "here", "{who:?}");
                house.ready().await;
            }
            cancel.cancel();
        };
        tokio::join!(hostile.run_until(&command, &isolation, &cancel), others);
        // The control: where none is on its way any more, nothing changes.
        assert_eq!(house.sh("echo here").await.ok(), "here", "{who:?}");
    }
}
