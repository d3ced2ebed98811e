//! What stands around a command, and that it is refused when something is missing.

use crate::house::{As, House, everyone};
use bailey_protocol::{Isolation, Level, Profile, Wall};
use std::{collections::BTreeSet, fs, os::unix::fs::MetadataExt};

#[tokio::test]
async fn a_command_runs_in_full_walls_as_an_unprivileged_user() {
    for who in everyone() {
        let house = House::new(who);
        house.write("a.txt", "of the project\n");
        let ran = house.sh("id -u; cat a.txt; echo new > b.txt; sleep 0.2").await;
        assert_eq!(ran.ok(), "1000\nof the project");
        assert!(Isolation::default().minimum.is_subset(&ran.enforced().walls), "{:?}", ran.enforced());
        assert!(!house.project.join("b.txt").exists());
        let upper = house.folder.join("upper/b.txt");
        assert_eq!(fs::read_to_string(&upper).unwrap(), "new\n");
        let owner = fs::metadata(&house.project).unwrap().uid();
        assert_eq!(fs::metadata(&upper).unwrap().uid(), owner);
    }
}

#[tokio::test]
async fn its_processes_are_nobody_on_the_host() {
    for who in everyone() {
        let house = House::new(who);
        let pids = async {
            tokio::time::sleep(std::time::Duration::from_millis(700)).await;
            house
                .processes()
                .into_iter()
                .skip(1)
                .map(|pid| fs::metadata(format!("/proc/{pid}/status")).map(|_| pid))
                .collect::<Vec<_>>()
        };
        let command = house.command("sleep 1.5");
        let isolation = Isolation::default();
        let (ran, pids) = tokio::join!(house.run(&command, &isolation), pids);
        ran.ok();
        let uid = |pid: &u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status"));
            status.ok().map(|status| {
                status.lines().find_map(|line| line.strip_prefix("Uid:").map(str::to_owned)).unwrap()
            })
        };
        assert!(pids.len() >= 3, "holder, init, payload: {pids:?}");
        for pid in pids.into_iter().flatten() {
            if let Some(uid) = uid(&pid) {
                assert_ne!(uid.split_whitespace().next(), Some("0"), "{who:?}: {uid}");
            }
        }
    }
}

#[tokio::test]
async fn every_wall_taken_away_is_a_refusal() {
    for who in everyone() {
        let demanded = Isolation::default();
        for wall in demanded.minimum.iter().copied() {
            let house = House::with(who, |config| config.without = BTreeSet::from([wall]));
            let ran = house.run(&house.command("echo ran > ran.txt; echo ran"), &demanded).await;
            let reason = ran.reason();
            let named = reason.contains(wall.name()) || (who, wall) == (As::User, Wall::UserNamespace);
            assert!(named, "{who:?} without {wall}: {reason}");
            assert!(!house.folder.join("upper/ran.txt").exists());
            assert!(!house.project.join("ran.txt").exists());
        }
        // The control: demanding nothing, the same command runs.
        let house = House::new(who);
        assert_eq!(house.sh("echo ran").await.ok(), "ran");
    }
}

/// Whoever took the runtime over writes the orders; the owner's word about a tier was there before.
#[tokio::test]
async fn an_order_that_demands_no_walls_still_gets_those_of_its_tier() {
    let nothing = Isolation { minimum: BTreeSet::new(), landlock_abi: 0, ..Isolation::default() };
    for who in everyone() {
        for wall in Isolation::default().minimum {
            let house = House::with(who, |config| config.without = BTreeSet::from([wall]));
            let ran = house.run(&house.command("echo ran > ran.txt; echo ran"), &nothing).await;
            let reason = ran.reason();
            let is_tier = reason.contains("internal code needs the isolation `native`");
            assert!(is_tier || (who, wall) == (As::User, Wall::UserNamespace), "{who:?}, {wall}: {reason}");
            assert!(!house.folder.join("upper/ran.txt").exists());
        }
        // The control: the same order, with less said of the tier.
        let house = House::with(who, |config| {
            config.without = BTreeSet::from([Wall::NetNamespace]);
            config.tiers.internal = Level::Landlock;
        });
        assert_eq!(house.run(&house.command("echo ran"), &nothing).await.ok(), "ran", "{who:?}");
    }
}

#[tokio::test]
async fn a_level_that_is_not_made_here_refuses_all_of_its_tier() {
    let house = House::with(As::User, |config| config.tiers.internal = Level::Microvm);
    let ran = house.run(&house.command("echo ran"), &Isolation::default()).await;
    let reason = ran.reason();
    assert!(reason.contains("needs the isolation `microvm`, and only `native` is here"), "{reason}");
    assert!(
        reason.contains("makes none like that yet") && reason.contains("internal = \"native\""),
        "{reason}"
    );
    // The control.
    assert_eq!(House::new(As::User).sh("echo ran").await.ok(), "ran");
}

#[tokio::test]
async fn a_limit_that_cannot_be_enforced_can_be_demanded() {
    let house = House::new(As::User);
    let mut isolation = Isolation::default();
    isolation.minimum.insert(Wall::DiskLimit);
    let ran = house.run(&house.command("echo ran"), &isolation).await;
    assert!(ran.reason().contains("disk limit"), "{}", ran.reason());
    isolation.minimum.remove(&Wall::DiskLimit);
    isolation.landlock_abi = 1000;
    let ran = house.run(&house.command("echo ran"), &isolation).await;
    assert!(ran.reason().contains("landlock ABI 1000"), "{}", ran.reason());
}

#[tokio::test]
async fn the_strict_profile_computes_on_files_and_makes_no_socket() {
    let line = "cat a.txt | wc -c > count; cat count; /usr/bin/python3 -S -c 'import socket; socket.socket()' 2>&1 | tail -1";
    for who in everyone() {
        let house = House::new(who);
        house.write("a.txt", "12345");
        let strict = Isolation { profile: Profile::Strict, ..Isolation::default() };
        // In what is made for it, and in what waited behind the system calls of other commands.
        for waits in [false, true] {
            if waits {
                house.ready().await;
            }
            let ran = house.run(&house.command(line), &strict).await;
            assert_eq!(ran.ok(), "5\nPermissionError: [Errno 1] Operation not permitted", "{who:?}");
            assert_eq!(ran.enforced().profile, Profile::Strict);
        }
        // The control: the standard profile makes one.
        assert_eq!(house.sh(line).await.ok(), "5");
    }
}

/// What computes on files does so, whichever names of the calls its library knows.
#[tokio::test]
async fn the_strict_profile_lets_common_tools_change_files() {
    const LINES: &[&str] = &[
        "bash -c 'echo b > b; mv b c; rm c'",
        "sed -i s/one/two/ a.txt && grep -q two a.txt",
        "mkdir d && rmdir d",
        "/usr/bin/python3 -S -c 'import os; open(\"f\", \"w\"); os.rename(\"f\", \"g\"); os.unlink(\"g\"); os.mkdir(\"h\")'",
        "tar cf x.tar a.txt && tar tf x.tar",
        "sort -o a.txt a.txt && ln -s a.txt l && ln a.txt n && chmod 600 n",
        "printf 'all:\n\techo made > made\n' > Makefile && make -s && cat made",
    ];
    for who in everyone() {
        let house = House::new(who);
        let strict = Isolation { profile: Profile::Strict, ..Isolation::default() };
        for line in LINES {
            house.write("a.txt", "one\n");
            let ran = house.run(&house.command(line), &strict).await;
            assert_eq!(ran.report().exit, Some(0), "{who:?}: {line}: {}", ran.text());
            assert_eq!(ran.enforced().profile, Profile::Strict);
        }
    }
}

#[tokio::test]
async fn a_mask_that_is_no_glob_is_an_error_at_the_start() {
    let config = bailey_sandbox::Config { masks: vec!["{a".into()], ..Default::default() };
    let error = bailey_sandbox::Warden::start("/proc/self/exe".as_ref(), &config).unwrap_err();
    assert!(error.to_string().contains("`{a`"), "{error}");
}

#[test]
fn a_program_that_is_no_warden_is_an_error_at_the_start() {
    let error = bailey_sandbox::Warden::start("/bin/true".as_ref(), &Default::default()).unwrap_err();
    assert!(error.to_string().contains("did not start"), "{error}");
}
