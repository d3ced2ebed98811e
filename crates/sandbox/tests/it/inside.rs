//! The worker behind the walls: reads, changes, scans and merges of a session.

use crate::house::{As, House, everyone, is_root};
use bailey_protocol::{
    Action, Blob, FileChange, Isolation, Limits, Merge, MergeFile, MergeKind, MergeState, Profile, Report,
    SessionId, Wall, WsPath,
};
use bailey_sandbox::{
    WorkError,
    worker::{Request, Response},
};
use std::{fs, os::unix::fs::MetadataExt, time::Duration};
use tokio_util::sync::CancellationToken;

impl House {
    async fn work(&self, request: Request) -> Result<Response, WorkError> {
        let cancel = CancellationToken::new();
        let (reply, enforced) =
            self.native.work(self.session, request, &Isolation::default(), &cancel).await?;
        assert_eq!(enforced.profile, Profile::Strict);
        assert!(Isolation::default().minimum.is_subset(&enforced.walls));
        Ok(reply)
    }

    async fn perform(&self, action: Action) -> Result<Report, String> {
        match self.work(Request::Perform { action }).await.map_err(|error| error.to_string())? {
            Response::Report(report) => Ok(report),
            Response::Refused { reason } => Err(reason),
            other => panic!("{other:?}"),
        }
    }

    fn path(&self, name: &str) -> WsPath {
        WsPath(self.project.join(name).display().to_string())
    }

    async fn merge(&self, direction: MergeKind, files: Vec<MergeFile>) -> Response {
        let text = |path: &std::path::Path| path.display().to_string();
        let merge = Merge::of_files(direction, None, files);
        let request = Request::Merge {
            merge,
            upper: text(&self.folder.join("upper")),
            project: text(&self.project),
            backup: text(&self.folder.join("backups/one")),
            carried: None,
            bases: None,
        };
        self.work(request).await.unwrap()
    }

    /// What differs between the layer and the project, as an apply wants it.
    async fn differences(&self) -> Vec<MergeFile> {
        let (upper, project) = (self.folder.join("upper"), &self.project);
        let request = Request::Diff {
            is_copy: false,
            upper: upper.display().to_string(),
            project: project.display().to_string(),
            also: Vec::new(),
            bases: None,
        };
        let Response::Diff(diff) = self.work(request).await.unwrap() else { panic!("no diff") };
        let file = |file: bailey_protocol::FileDiff| {
            MergeFile::whole(file.path, file.old.map(|state| state.state), file.new.map(|state| state.state))
        };
        diff.files.into_iter().map(file).collect()
    }
}

#[tokio::test]
async fn reads_and_changes_share_the_layer_with_commands() {
    for who in everyone() {
        let house = House::with(who, |config| config.masks = vec![".env".into()]);
        house.write("a.txt", "a\n");
        house.write(".env", "TOKEN=x\n");
        house.sh("echo b > b.txt").await.ok();
        let Ok(Report::File(file)) = house.perform(Action::Read { path: house.path("b.txt") }).await else {
            panic!()
        };
        assert_eq!(file.content, Blob::from("b\n"));
        let change = FileChange { path: house.path("new/c.txt"), base: None, new: Some(Blob::from("c\n")) };
        house.perform(Action::Change { files: vec![change] }).await.unwrap();
        assert_eq!(house.sh("cat new/c.txt").await.ok(), "c");
        assert!(!house.project.join("new").exists());
        // What is masked for commands is masked for reads, and what is not in the walls is not there.
        let masked = house.perform(Action::Read { path: house.path(".env") }).await.unwrap_err();
        assert!(masked.contains("is masked"), "{masked}");
        let absent = house.perform(Action::Read { path: "/etc/shadow".into() }).await;
        assert!(absent.is_err(), "{absent:?}");
    }
}

#[tokio::test]
async fn a_session_is_scanned_applied_undone_and_discarded() {
    for who in everyone() {
        let house = House::new(who);
        house.write("a.txt", "a\n");
        house.write("gone.txt", "gone\n");
        house.sh("echo more >> a.txt; rm gone.txt; mkdir d; echo new > d/new.txt").await.ok();
        let request = Request::Scan {
            upper: house.folder.join("upper").display().to_string(),
            project: house.project.display().to_string(),
            known: Vec::new(),
            since: u64::MAX,
            outside: false,
            bases: None,
        };
        let Response::Scanned { touched, .. } = house.work(request).await.unwrap() else { panic!() };
        let names: Vec<&str> =
            touched.iter().filter_map(|touched| touched.path.relative_to(house.project.to_str()?)).collect();
        assert!(["a.txt", "d/new.txt", "gone.txt"].iter().all(|name| names.contains(name)), "{names:?}");

        let files = house.differences().await;
        let Response::Report(Report::Merged { files: results, .. }) =
            house.merge(MergeKind::Apply, files.clone()).await
        else {
            panic!()
        };
        assert!(results.iter().all(|result| result.state == MergeState::Done), "{results:?}");
        assert_eq!(fs::read_to_string(house.project.join("a.txt")).unwrap(), "a\nmore\n");
        assert!(!house.project.join("gone.txt").exists());
        let owner = |name: &str| fs::metadata(house.project.join(name)).unwrap().uid();
        assert_eq!(owner("d/new.txt"), owner("."));
        assert_eq!(house.sh("cat d/new.txt").await.ok(), "new");

        let back =
            files.iter().map(|file| MergeFile::whole(file.path.clone(), file.new, file.base)).collect();
        let Response::Report(Report::Merged { files: results, .. }) =
            house.merge(MergeKind::Undo, back).await
        else {
            panic!()
        };
        assert!(results.iter().all(|result| result.state == MergeState::Done), "{results:?}");
        assert_eq!(fs::read_to_string(house.project.join("a.txt")).unwrap(), "a\n");
        assert_eq!(fs::read_to_string(house.project.join("gone.txt")).unwrap(), "gone\n");

        assert_eq!(house.sh("cat a.txt").await.ok(), "a\nmore");
        let Response::Report(_) = house.merge(MergeKind::Discard, files).await else { panic!() };
        assert_eq!(
            house.sh("cat a.txt gone.txt; ls d 2>/dev/null; echo end").await.ok(),
            "a\ngone\nend",
            "{who:?}"
        );
    }
}

#[tokio::test]
async fn nothing_is_merged_beside_a_living_command() {
    for who in everyone() {
        let house = House::new(who);
        house.write("a.txt", "a\n");
        house.sh("echo more >> a.txt").await.ok();
        let files = house.differences().await;
        let (command, isolation, cancel) =
            (house.command("sleep 30"), Isolation::default(), CancellationToken::new());
        let merge = async {
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            let request = Request::Merge {
                merge: Merge::of_files(MergeKind::Discard, None, files.clone()),
                upper: house.folder.join("upper").display().to_string(),
                project: house.project.display().to_string(),
                backup: house.folder.join("backups/one").display().to_string(),
                carried: None,
                bases: None,
            };
            let refused = house.work(request).await;
            cancel.cancel();
            refused
        };
        let (_, refused) = tokio::join!(house.run_until(&command, &isolation, &cancel), merge);
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("still running"), "{refused}");
        // The control: afterwards it is.
        let Response::Report(_) = house.merge(MergeKind::Discard, files).await else { panic!() };
    }
}

/// A path is made canonical and then read in one sandbox; what saw the file is used up, and nothing waits for
/// long.
#[tokio::test]
async fn a_worker_that_saw_names_only_waits_a_moment_for_the_next_request() {
    for who in everyone() {
        let house = House::new(who);
        house.write("a.txt", "one");
        let resolve = || Request::Resolve {
            action: Action::Read { path: "a.txt".into() },
            workspace: house.project.display().to_string(),
        };
        let path = house.path("a.txt");
        let Response::Resolved(action) = house.work(resolve()).await.unwrap() else { panic!() };
        assert_eq!(action, Action::Read { path });
        // It waits for a moment, which is over at once on a busy machine.
        let mut rounds = 0;
        while house.processes_of_sandboxes() == 0 {
            rounds += 1;
            assert!(rounds < 100, "it never waits");
            house.work(resolve()).await.unwrap();
        }
        house.perform(action.clone()).await.unwrap();
        assert_eq!(house.processes_of_sandboxes(), 0, "it saw the file");

        house.work(resolve()).await.unwrap();
        let begin = std::time::Instant::now();
        while house.processes_of_sandboxes() > 0 {
            assert!(begin.elapsed() < Duration::from_secs(10), "nobody asked it again");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }

        // A command does not share what the waiting one sees.
        house.sh("cat a.txt").await.ok();
        house.work(resolve()).await.unwrap();
        fs::rename(house.write("b.txt", "two"), house.project.join("a.txt")).unwrap();
        assert_eq!(house.sh("cat a.txt").await.ok(), "two");
    }
}

/// What lends a program its memory until it begins has more than a worker may, and would share it for as long
/// as that lives.
#[tokio::test]
async fn a_worker_shares_its_memory_with_nobody() {
    for who in everyone() {
        let house = House::new(who);
        house.write("a.txt", "one");
        house.sh("cat a.txt").await.ok();
        let spares = house.ready().await;
        assert_eq!(spares.len(), house.spare, "the control: there is one that lends");
        // Only root can look. What is not ready yet has some.
        let open = |pid: &u32| Some(fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count());
        let begin = std::time::Instant::now();
        while spares.iter().any(|pid| open(pid).is_some()) && !spares.iter().any(|pid| open(pid) == Some(0)) {
            assert!(begin.elapsed() < Duration::from_secs(10), "{who:?}: the lender has descriptors");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let resolve = || Request::Resolve {
            action: Action::Read { path: "a.txt".into() },
            workspace: house.project.display().to_string(),
        };
        // It waits for a moment, in which its init has to take notice of the other one's end.
        let mut seen = Vec::new();
        for _ in 0..100 {
            house.work(resolve()).await.unwrap();
            seen = house.payloads();
            if matches!(seen.as_slice(), [(_, beside)] if beside.is_empty()) {
                break;
            }
        }
        assert!(matches!(seen.as_slice(), [(_, beside)] if beside.is_empty()), "{who:?}: {seen:?}");
    }
}

#[tokio::test]
async fn the_worker_is_refused_without_its_walls() {
    let house = House::with(As::User, |config| config.without.extend([Wall::Seccomp]));
    let refused = house.perform(Action::Read { path: house.path("a.txt") }).await.unwrap_err();
    assert!(refused.contains("seccomp"), "{refused}");
    let stranger = SessionId::new(7, [7; 10]);
    let request = Request::Perform { action: Action::Stat { path: house.path("a.txt") } };
    let cancel = CancellationToken::new();
    let refused = house.native.work(stranger, request, &Isolation::default(), &cancel).await.unwrap_err();
    assert!(refused.to_string().contains("no workspace"), "{refused}");
}

/// Sessions keep apart: no home, temporary file or layer is shared, whoever the warden is.
#[tokio::test]
async fn sessions_do_not_see_each_other() {
    let other = SessionId::new(2, [2; 10]);
    let house = House::with(if is_root() { As::Root } else { As::User }, |config| {
        let mut lease = config.sessions.values().next().unwrap().clone();
        lease.yard.folder.set_file_name("other");
        fs::create_dir(&lease.yard.folder).unwrap();
        config.sessions.insert(other, lease);
    });
    house.sh("echo s > ~/mine; echo s > /tmp/mine; echo s > mine").await.ok();
    let (out, mut pieces) = tokio::sync::mpsc::channel(1);
    pieces.close();
    let look = "ls ~ /tmp . | grep mine; ls /; echo end";
    let own = house.sh(look).await.ok();
    assert_eq!(own.matches("mine\n").count(), 3, "the control: its own session sees each: {own}");
    let command = bailey_protocol::Command { limits: Limits::default(), ..house.command(look) };
    let outcome =
        house.native.exec(other, &command, &Isolation::default(), out, &CancellationToken::new()).await;
    let Report::Exec(report) = outcome.report else { panic!("{:?}", outcome.status) };
    let text = report.stdout.head.lossy().into_owned();
    assert!(text.ends_with("end\n") && !text.contains("mine"), "{text}");
}
