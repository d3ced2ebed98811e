//! A session without walls: where its owner asked for that by name, and nowhere else.

use crate::{
    house::{As, House, everyone},
    life::Left,
};
use bailey_protocol::{Isolation, Level, Wall};
use bailey_sandbox::Shape;
use std::{collections::BTreeSet, fs, net::TcpListener, os::unix::fs::MetadataExt as _};

pub(crate) fn direct(who: As) -> House {
    House::with(who, |config| config.sessions.values_mut().for_each(|lease| lease.shape = Shape::Direct))
}

#[tokio::test]
async fn without_walls_a_command_is_the_owners_and_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let line = format!(
        "echo changed > a.txt; cat \"$HOME/key\"; /usr/bin/python3 -S -c 'import socket; \
         socket.create_connection((\"127.0.0.1\", {port})); print(\"connected\")' 2>&1 | tail -1"
    );
    for who in everyone() {
        for is_direct in [true, false] {
            let house = if is_direct { direct(who) } else { House::new(who) };
            let file = house.write("a.txt", "a\n");
            fs::write(house.home.join("key"), "of the owner\n").unwrap();
            house.give(&house.home);
            let ran = house.sh(&line).await;
            let enforced = ran.enforced();
            let changed = fs::read_to_string(&file).unwrap();
            if is_direct {
                assert_eq!(ran.text().trim(), "of the owner\nconnected", "{who:?}");
                assert_eq!((enforced.backend.as_str(), Level::of(enforced)), ("none", Level::None));
                assert!(!enforced.walls.contains(&Wall::Landlock), "{enforced:?}");
                assert!(enforced.absent.iter().any(|why| why.contains("there are none")), "{enforced:?}");
                assert_eq!(changed, "changed\n");
            } else {
                assert!(!ran.text().contains("of the owner") && !ran.text().contains("connected"));
                assert_eq!((enforced.backend.as_str(), changed.as_str()), ("native", "a\n"), "the control");
            }
        }
    }
}

#[tokio::test]
async fn a_limit_of_time_ends_a_command_without_walls() {
    for who in everyone() {
        let house = direct(who);
        let mut command = house.command("sleep 1000");
        command.limits.wall_ms = 300;
        let ran = house.run(&command, &Isolation::default()).await;
        let bailey_protocol::Report::Exec(report) = &ran.outcome.report else { panic!("{:?}", ran.outcome) };
        assert_eq!(report.limit.as_deref(), Some("time limit"), "{who:?}: {:?}", ran.outcome);
    }
}

#[tokio::test]
async fn without_walls_what_is_made_belongs_to_who_bailey_is() {
    for who in everyone() {
        let house = direct(who);
        house.write("a.txt", "a\n");
        house.sh("echo new > b.txt").await.ok();
        let (made, project) = (house.project.join("b.txt"), house.project.clone());
        let owners: BTreeSet<u32> =
            [made, project].iter().map(|path| fs::metadata(path).unwrap().uid()).collect();
        assert_eq!(owners.len(), 1, "{who:?}: {owners:?}");
    }
}

/// Its holder and its init die by their parents' deaths; what has left the process group goes to the warden.
#[tokio::test]
async fn the_end_of_bailey_ends_what_runs_without_walls() {
    for who in everyone() {
        let left = Left::new(who, 4);
        let line = format!(
            "setsid sh -c 'sleep {0} & sleep {0}' & sleep {0} & echo begun > begun; exec sleep {0}",
            left.0
        );
        let house = direct(who);
        let (native, begun) = (house.native.clone(), house.project.join("begun"));
        let (session, command) = (house.session, house.command(&line));
        let runs = tokio::spawn(async move {
            let (out, _) = tokio::sync::mpsc::channel(1);
            let never = tokio_util::sync::CancellationToken::new();
            native.exec(session, &command, &Isolation::default(), out, &never).await
        });
        while !begun.exists() || left.living().len() < 4 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let warden = house.native.warden().id();
        runs.abort();
        drop(runs.await);
        drop(house);
        assert!(!std::path::Path::new(&format!("/proc/{warden}/exe")).exists(), "the warden has ended");
        assert_eq!(left.living(), Vec::<u32>::new(), "{who:?}");
    }
}
