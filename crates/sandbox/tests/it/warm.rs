//! What is kept ready for a session: it shows the host as it is, and does not grow.

use crate::house::{House, descendants, everyone};
use bailey_protocol::Isolation;
use bailey_sandbox::Lease;
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// Commands that a session has in the test of every run; `cargo xtask test --all` has more.
const COMMANDS: usize = 200;

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
            house.native.prepare(house.session).unwrap();
            house.write("written", &format!("{round}a "));
            fs::rename(house.write("other", &format!("{round}b ")), house.project.join("renamed")).unwrap();
            drop(fs::remove_file(house.project.join("deleted")));
            house.write("new", &format!("{round}c "));
            fs::rename(house.project.join("folder"), house.project.join(format!("old{round}"))).unwrap();
            house.write("folder/inner", &format!("{round}d "));
            let text = house.sh("cat written renamed new folder/inner; cat deleted 2>&1").await.text();
            let expected =
                format!("{round}a {round}b {round}c {round}d cat: deleted: No such file or directory\n");
            assert_eq!(text, expected, "{who:?}");
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

/// Tools and files of the system are mounted once for a session: a package manager that puts others in their place is seen.
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

/// A program can move the private directory that the project is mounted in, but not keep its mount.
#[tokio::test]
async fn a_project_in_the_home_is_mounted_again_where_a_program_moved_its_place() {
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
        run("cat a.txt; mv ~/work ~/moved").await.ok();
        fs::write(project.join("a.new"), "two").unwrap();
        house.give(&house.home);
        fs::rename(project.join("a.new"), project.join("a.txt")).unwrap();
        assert_eq!(run("cat a.txt; ls -A ~/moved/project").await.ok(), "two", "{who:?}");
        assert_eq!(holders(&house).len(), 1, "{who:?}");
    }
}

#[tokio::test]
async fn many_commands_leave_nothing_behind() {
    many(COMMANDS).await;
}

#[tokio::test]
#[ignore = "takes a minute"]
async fn a_thousand_commands_leave_nothing_behind() {
    many(1000).await;
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

async fn many(count: usize) {
    for who in everyone() {
        let house = House::new(who);
        house.write(".env", "KEY=1\n");
        let mut command = house.command("");
        command.argv = vec!["/bin/true".into()];
        let mut before = None;
        for number in 0..count {
            house.run(&command, &Isolation::default()).await.ok();
            if number == 20 {
                before = Some(Kept::of(&house));
            }
        }
        let before = before.unwrap();
        // What the last one left is on its way out.
        let begin = Instant::now();
        let after = loop {
            let after = Kept::of(&house);
            let is_same = Kept { memory: before.memory, ..after } == before;
            if is_same || begin.elapsed() > Duration::from_secs(10) {
                break after;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        println!("{who:?}: after 20 commands {before:?}, after {count} {after:?}");
        assert_eq!(Kept { memory: before.memory, ..after }, before, "{who:?}");
        assert!(after.memory <= before.memory + 1024, "{who:?}: {before:?} {after:?}");
        // The control: what lives is counted.
        let cancel = CancellationToken::new();
        let (sleep, isolation) = (house.command("sleep 60"), Isolation::default());
        let (_, during) = tokio::join!(house.run_until(&sleep, &isolation, &cancel), async {
            while Kept::of(&house).processes < before.processes + 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            house.sh("true").await.ok();
            let during = Kept::of(&house);
            cancel.cancel();
            during
        });
        assert!(during.descriptors > before.descriptors && during.mounts > before.mounts, "{during:?}");
    }
}

/// What a warden and its holders have of the kernel.
#[derive(Debug, PartialEq, Eq)]
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
