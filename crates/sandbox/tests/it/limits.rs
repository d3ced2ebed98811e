//! Every limit ends what breaks it, within two seconds, and says which it was.

use crate::house::{As, House, everyone};
use bailey_protocol::{Isolation, Limits, Status, Wall};
use std::time::{Duration, Instant};

/// A breach must be over by then: two seconds to end it, and what a loaded machine needs to commit it.
const SOON: Duration = Duration::from_secs(30);

async fn check(house: &House, line: &str, limits: Limits, expected: &str) {
    let begin = Instant::now();
    let mut command = house.command(line);
    command.limits = limits;
    let ran = house.run(&command, &Isolation::default()).await;
    assert_eq!(ran.report().limit.as_deref(), Some(expected), "{:?}: {line}: {}", house.who, ran.text());
    assert!(begin.elapsed() < SOON, "{:?}: {line} took {:?}", house.who, begin.elapsed());
    house.expect_gone(line).await;
}

#[tokio::test]
async fn memory_of_the_whole_tree() {
    let hog = "import time\nkeep = [bytearray(1 << 20) for _ in range(60)]\ntime.sleep(60)\n";
    for who in everyone() {
        let house = House::new(who);
        house.write("hog.py", hog);
        let limits = Limits { memory_bytes: 150 << 20, ..Limits::default() };
        // One of them is below the limit, four are not.
        let one = "timeout 1 /usr/bin/python3 hog.py; exit 0";
        let mut command = house.command(one);
        command.limits = limits.clone();
        let ran = house.run(&command, &Isolation::default()).await;
        ran.ok();
        assert_eq!(ran.report().limit, None);
        let stands = if ran.enforced().walls.contains(&Wall::MemoryLimit) { "enforced" } else { "watched" };
        println!("{who:?}: the memory limit is {stands}");
        assert_ne!(
            ran.enforced().walls.contains(&Wall::MemoryLimit),
            ran.enforced().watched.contains(&Wall::MemoryLimit)
        );
        check(&house, "for i in 1 2 3 4; do /usr/bin/python3 hog.py & done; wait", limits, "memory limit")
            .await;
        // It is not held against the next one, which lives in the same control group.
        let ran = house.sh("echo ran").await;
        assert_eq!((ran.ok().as_str(), &ran.report().limit), ("ran", &None));
    }
}

#[tokio::test]
async fn disk_of_the_session() {
    for who in everyone() {
        let house = House::new(who);
        let limits = Limits { disk_bytes: 20 << 20, ..Limits::default() };
        for place in [".", "/tmp", "$HOME"] {
            let fill = format!("for i in 1 2 3 4; do head -c 8M /dev/zero > {place}/fill$i; done; sleep 60");
            check(&house, &fill, limits.clone(), "disk limit").await;
            house.sh(&format!("rm {place}/fill*")).await.ok();
        }
        let inodes = "mkdir d; i=0; while [ $i -lt 40000 ]; do : > d/$i; i=$((i+1)); done; sleep 60";
        check(&house, inodes, limits.clone(), "disk limit").await;
        // One file is held by the kernel: a write past the limit fails.
        house.sh("rm -r d").await.ok();
        let mut command = house.command("head -c 30M /dev/zero > big; ls -l big");
        command.limits = limits;
        let ran = house.run(&command, &Isolation::default()).await;
        assert!(!ran.text().contains(" 31457280 "), "{}", ran.text());
    }
}

/// Files that never had a name, of a process that hides its descriptors, were counted nowhere.
#[tokio::test]
async fn files_without_a_name_of_a_process_that_hides_them() {
    const HIDE: &str = "import ctypes, os, sys, time\n\
        if len(sys.argv) > 1: ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n\
        kept = [os.open('.', os.O_TMPFILE | os.O_RDWR) for _ in range(4)]\n\
        for one in kept: os.write(one, b'x' * (8 << 20))\n\
        print('written', flush=True)\n\
        time.sleep(60)\n";
    for who in everyone() {
        let house = House::new(who);
        house.write("hide.py", HIDE);
        let limits = Limits { disk_bytes: 20 << 20, ..Limits::default() };
        // The control: where it hides nothing, the same is seen.
        for hidden in ["", " hidden"] {
            let line = format!("/usr/bin/python3 hide.py{hidden}");
            check(&house, &line, limits.clone(), "disk limit").await;
        }
    }
}

/// A file that no look finds, such as one that is on its way through a
/// socket, takes room on the disk all the same.
#[tokio::test]
async fn a_disk_is_not_filled_up() {
    const SEND: &str = "import array, os, socket, time\n\
        one, other = socket.socketpair()\n\
        file = os.open('.', os.O_TMPFILE | os.O_RDWR)\n\
        os.posix_fallocate(file, 0, 512 << 20)\n\
        one.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [file]))])\n\
        os.close(file)\n\
        time.sleep(3)\n\
        print('kept', flush=True)\n";
    for who in everyone() {
        let house = |reserve: fn(u64) -> u64| {
            House::with(who, |config| {
                let folder = config.sessions.values().next().unwrap().yard.folder.clone();
                let stat = rustix::fs::statvfs(folder.parent().unwrap()).unwrap();
                config.reserve_bytes = Some(reserve(stat.f_bavail * stat.f_frsize));
            })
        };
        let run = async |house: &House| {
            house.write("send.py", SEND);
            house.run(&house.command("/usr/bin/python3 send.py"), &Isolation::default()).await
        };
        let ran = run(&house(|free| free.saturating_sub(256 << 20))).await;
        assert_eq!(ran.report().limit.as_deref(), Some("disk reserve"), "{who:?}: {}", ran.text());
        // The control: without a reserve it is not seen.
        let ran = run(&house(|_| 0)).await;
        assert_eq!((ran.report().limit.as_deref(), ran.ok().as_str()), (None, "kept"), "{who:?}");
    }
}

#[tokio::test]
async fn processes() {
    let bomb = "for i in $(seq 60); do sleep 3 & done 2>&1; echo done";
    for who in everyone() {
        let house = House::new(who);
        let mut command = house.command(bomb);
        command.limits.pids = 20;
        let ran = house.run(&command, &Isolation::default()).await;
        assert!(ran.text().contains("fork"), "{who:?}: {}", ran.text());
        assert!(ran.enforced().walls.contains(&Wall::PidsLimit));
        // The control: with room enough the same command forks them all.
        let ran = house.run(&house.command(bomb), &Isolation::default()).await;
        assert_eq!(ran.ok(), "done");
    }
}

#[tokio::test]
async fn wall_time_ends_politely_and_then_not() {
    for who in everyone() {
        let house = House::new(who);
        let limits = Limits { wall_ms: 300, ..Limits::default() };
        check(&house, "sleep 60", limits.clone(), "time limit").await;
        let mut command = house.command("trap 'echo asked; exit 7' TERM; while :; do sleep 0.1; done");
        command.limits = limits.clone();
        let ran = house.run(&command, &Isolation::default()).await;
        assert_eq!((ran.report().exit, ran.report().limit.as_deref()), (Some(7), Some("time limit")));
        assert!(ran.text().contains("asked"));
        // One that does not listen is killed after the grace time, with all that it started.
        let begin = Instant::now();
        check(&house, "trap '' TERM; setsid sleep 61 & while :; do sleep 0.1; done", limits, "time limit")
            .await;
        assert!(begin.elapsed() >= Duration::from_secs(2));
    }
}

#[tokio::test]
async fn output_is_kept_at_both_ends_and_counted() {
    let house = House::new(As::User);
    let mut command = house.command("echo first; head -c 3000000 /dev/zero; echo last; echo mistake >&2");
    command.limits.output_bytes = 4096;
    let ran = house.run(&command, &Isolation::default()).await;
    let report = ran.report();
    assert_eq!(ran.outcome.status, Status::Done);
    assert!(report.stdout.head.0.starts_with(b"first\n") && report.stdout.tail.0.ends_with(b"last\n"));
    assert_eq!((report.stdout.head.0.len(), report.stdout.tail.0.len()), (2048, 2048));
    assert_eq!(report.stdout.total, 3_000_011);
    assert_eq!(report.stderr.head.0, b"mistake\n");
}

/// What ends on being told so may be looked at in the same moment as its limit is said.
#[tokio::test]
async fn a_limit_that_was_said_stays_said() {
    let line = "trap \"python3 -S -c 'import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(0.6)'; exit 0\" TERM; \
                while :; do sleep 0.05; done";
    for who in everyone() {
        let house = House::new(who);
        let mut command = house.command(line);
        command.limits.wall_ms = 1_000;
        let ran = house.run(&command, &Isolation::default()).await;
        assert_eq!(ran.report().limit.as_deref(), Some("time limit"), "{who:?}: {:?}", ran.outcome);
    }
}

/// Each command has as many processes as it may, also beside one that uses up its own.
#[tokio::test]
async fn the_processes_of_one_command_are_not_anothers() {
    let start = "for i in $(seq 30); do sleep 60 & done; : > started; ";
    for who in everyone() {
        let house = House::new(who);
        let mut first =
            house.command(&format!("{start} while [ ! -e /tmp/go ]; do sleep 0.05; done; kill $(jobs -p)"));
        first.limits.pids = 40;
        let mut second = house.command(&format!("{start} kill $(jobs -p); : > /tmp/go; echo all"));
        second.limits.pids = 40;
        let started = house.folder.join("upper/started");
        let isolation = Isolation::default();
        let (first, second) = tokio::join!(house.run(&first, &isolation), async {
            while !started.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let second = house.run(&second, &isolation).await;
            house.sh(": > /tmp/go").await.ok();
            second
        });
        first.report();
        if second.enforced().absent.iter().any(|why| why.contains("no control group")) {
            println!(
                "SKIPPED for {who:?}: no control groups can be made, and what else counts them counts the session's"
            );
            continue;
        }
        assert_eq!(second.ok(), "all", "{who:?}: {:?}", second.outcome);
    }
}
