use super::{Hidden, check, reads};
use crate::worker::Keep;
use crate::{
    config::{Config, Guest, Lease, Yard},
    seccomp::Calls,
    wire::{Job, Shown, Task, View},
    worker::{Carried, Request},
};
use bailey_kernel::StandIn;
use bailey_protocol::{Action, Command, Isolation, Limits, Merge, MergeKind, Profile, WsPath};
use std::collections::BTreeMap;

fn lease() -> Lease {
    Yard { project: "/work/p".into(), folder: "/home/u/.bailey/sessions/1".into(), linked: None, home: None }
        .into()
}

fn job(task: Task) -> Job {
    Job { task, isolation: Isolation::default(), limits: Limits::default(), is_first: false, way: None }
}

fn command() -> Task {
    let command = Command {
        argv: vec!["true".into()],
        cwd: WsPath("/work/p".into()),
        env: BTreeMap::new(),
        stdin: None,
        network: false,
        background: false,
        limits: Limits::default(),
    };
    Task::Run(command, None)
}

fn merge(direction: MergeKind, upper: &str, project: &str, backup: &str) -> Task {
    let merge = Merge::of_files(direction, None, Vec::new());
    Task::Work(Request::Merge {
        merge,
        upper: upper.into(),
        project: project.into(),
        backup: backup.into(),
        carried: None,
        bases: None,
    })
}

#[test]
fn what_the_owner_hid_is_not_shown_nor_what_holds_it() {
    let config = Config {
        user_home: "/home/{u}".into(),
        hidden: vec!["/srv/keys".into()],
        hidden_in_home: [".ssh", ".config/gh", ".cargo/credentials*", ".*_history"].map(String::from).into(),
        ..Config::default()
    };
    let hidden = Hidden::new(&config).unwrap();
    for path in [
        "/",
        "/home",
        "/home/{u}",
        "/home/{u}/.ssh",
        "/home/{u}/.ssh/id",
        "/home/{u}/.config",
        "/home/{u}/.config/gh/hosts.yml",
        "/home/{u}/.cargo",
        "/home/{u}/.cargo/credentials.toml",
        "/home/{u}/.bash_history",
        "/srv",
        "/srv/keys/a",
        "/proc/1/root/etc",
        "/run/docker.sock",
        "/home/{u}/notes/../.ssh",
        "notes",
    ] {
        assert!(hidden.check(path).is_err(), "{path}");
    }
    for path in
        ["/home/{u}/notes", "/home/{u}/.config/fish", "/home/{u}/.cargo/bin", "/srv/data", "/home/u/.ssh"]
    {
        assert_eq!(hidden.check(path), Ok(()), "{path}");
    }
}

#[test]
fn a_job_gets_the_view_that_it_needs_and_no_other() {
    let lease = lease();
    assert_eq!(check(&Calls::default(), &lease, View::Workspace, &job(command())), Ok(()));
    for view in [View::Merge, View::Discard, View::Layers, View::Commits] {
        assert!(check(&Calls::default(), &lease, view, &job(command())).is_err(), "a command in {view:?}");
    }
    let read = Task::Work(Request::Perform { action: Action::Read { path: WsPath("/work/p/a".into()) } });
    assert!(check(&Calls::default(), &lease, View::Merge, &job(read)).is_err());
}

#[test]
fn git_looks_at_commits_where_nothing_of_the_project_is_writable_and_there_is_no_network() {
    let (lease, Task::Run(command, _)) = (lease(), command()) else { panic!() };
    let git = || job(Task::Git(command.clone()));
    let is_granted = |view, job: &Job| check(&Calls::default(), &lease, view, job).is_ok();
    assert!(is_granted(View::Commits, &git()), "the control");
    for view in [View::Workspace, View::Merge, View::Discard, View::Layers] {
        assert!(!is_granted(view, &git()), "git in {view:?}");
    }
    let way = Shown { pass: "pass".into(), stand_ins: Vec::new(), own_hosts: Vec::new() };
    assert!(!is_granted(View::Commits, &Job { way: Some(way), ..git() }));
    let revealed = vec![WsPath("/work/p/.env".into())];
    for isolation in [
        Isolation { revealed, ..Isolation::default() },
        Isolation { profile: Profile::StandardNet, ..Isolation::default() },
        Isolation { minimum: Default::default(), ..Isolation::default() },
    ] {
        assert!(!is_granted(View::Commits, &Job { isolation, ..git() }));
    }
    let (upper, backup) = ("/home/u/.bailey/sessions/1/upper", "/home/u/.bailey/sessions/1/backups/7");
    for (folder, is_own) in
        [("/home/u/.bailey/sessions/1/handover", true), ("/home/u/.bailey/sessions/1/upper", false)]
    {
        let Task::Work(Request::Merge { merge, upper, project, backup, .. }) =
            merge(MergeKind::Apply, upper, "/work/p", backup)
        else {
            panic!()
        };
        let carried = Some(Carried { folder: folder.into(), fates: Vec::new() });
        let task = Task::Work(Request::Merge { merge, upper, project, backup, carried, bases: None });
        assert_eq!(is_granted(View::Merge, &job(task)), is_own, "{folder}");
    }
    for (folder, is_own) in [("/home/u/.bailey/sessions/1/bases", true), ("/work/p", false)] {
        let bases = Some(Keep { folder: folder.into(), masks: Vec::new() });
        let (upper, project) = (upper.into(), "/work/p".into());
        let task = Task::Work(Request::Diff { upper, project, is_copy: false, also: Vec::new(), bases });
        assert_eq!(is_granted(View::Layers, &job(task)), is_own, "{folder}");
    }
}

#[test]
fn a_copy_is_brought_up_to_date_in_its_own_session() {
    let settle = |project: &str, part: &str| {
        let own = |name: &str| format!("{}/{name}", if name == part { "/work/p" } else { FOLDER });
        job(Task::Work(Request::Settle {
            project: project.into(),
            copy: own("copy/p"),
            upper: own("upper"),
            record: own("copied"),
            own: Vec::new(),
            anew: false,
            masks: Vec::new(),
        }))
    };
    let granted = |view, job: &Job| check(&Calls::default(), &lease(), view, job).is_ok();
    assert!(granted(View::Copy, &settle("/work/p", "")), "the control");
    assert!(!granted(View::Workspace, &settle("/work/p", "")), "in another view");
    for (project, part) in [("/work", ""), ("/work/p", "copy/p"), ("/work/p", "upper"), ("/work/p", "copied")]
    {
        assert!(!granted(View::Copy, &settle(project, part)), "{project} {part}");
    }
}

const FOLDER: &str = "/home/u/.bailey/sessions/1";

#[test]
fn a_merge_writes_where_its_session_may() {
    let lease = lease();
    let (upper, project) = ("/home/u/.bailey/sessions/1/upper", "/work/p");
    let backup = "/home/u/.bailey/sessions/1/backups/7";
    assert_eq!(
        check(&Calls::default(), &lease, View::Merge, &job(merge(MergeKind::Apply, upper, project, backup))),
        Ok(())
    );
    assert_eq!(
        check(
            &Calls::default(),
            &lease,
            View::Discard,
            &job(merge(MergeKind::Discard, upper, project, backup))
        ),
        Ok(())
    );
    for (upper, project, backup) in [
        ("/work/p/upper", project, backup),
        (upper, "/work/p/.git", backup),
        (upper, project, "/work/p/.git/hooks"),
        (upper, project, "/home/u/.bailey/sessions/1/backups"),
        (upper, project, "/home/u/.bailey/sessions/1/backups/.."),
        (upper, project, "/home/u/.bailey/sessions/1/backups/7/../../x"),
    ] {
        let forged = job(merge(MergeKind::Apply, upper, project, backup));
        assert!(
            check(&Calls::default(), &lease, View::Merge, &forged).is_err(),
            "{upper} {project} {backup}"
        );
    }
}

#[test]
fn only_what_the_human_revealed_is_revealed() {
    let path = WsPath("/work/p/.env".into());
    let mut job = job(command());
    job.isolation.revealed = vec![path.clone()];
    assert!(check(&Calls::default(), &lease(), View::Workspace, &job).is_err());
    let told = Lease { revealed: [path].into(), ..lease() };
    assert_eq!(check(&Calls::default(), &told, View::Workspace, &job), Ok(()));
    // Whoever sits there may have said yes to a card, about a file of the project.
    let attended = Lease { is_attended: true, ..lease() };
    assert_eq!(check(&Calls::default(), &attended, View::Workspace, &job), Ok(()));
    for elsewhere in ["/work/q/.env", "/work/p/../q/.env", "/home/u/.ssh/id", ".env"] {
        job.isolation.revealed = vec![WsPath(elsewhere.into())];
        assert!(check(&Calls::default(), &attended, View::Workspace, &job).is_err(), "{elsewhere}");
    }
}

#[test]
fn a_command_gets_no_larger_list_of_system_calls_than_the_owner_chose() {
    let ask = |granted: &Calls, profile: Profile| {
        let isolation = Isolation { profile, ..Isolation::default() };
        check(granted, &lease(), View::Workspace, &Job { isolation, ..job(command()) })
    };
    let own = Calls::custom("own", Profile::Strict);
    for profile in Profile::NAMED {
        assert_eq!(ask(&Calls::named(profile), profile), Ok(()));
        assert!(ask(&own, profile).is_err(), "{profile:?} in place of a list of the owner's own");
        assert!(ask(&Calls::named(profile), Profile::Custom).is_err());
    }
    assert!(ask(&Calls::named(Profile::Strict), Profile::Standard).is_err());
    assert!(ask(&Calls::default(), Profile::StandardNet).is_err());
    assert_eq!(ask(&Calls::named(Profile::StandardNet), Profile::Strict), Ok(()));
    assert_eq!(ask(&own, Profile::Custom), Ok(()));
}

#[test]
fn a_place_that_is_one_programs_serves_nothing_else() {
    let Task::Run(command, _) = command() else { panic!("no command") };
    let isolation =
        Isolation { profile: Profile::Strict, extra_reads: vec!["/opt/x.py".into()], ..Isolation::default() };
    let guest =
        Guest { command: command.clone(), isolation: isolation.clone(), variables: Default::default() };
    let place = Lease { guest: Some(guest), ..lease() };
    let job = |task| Job { isolation: isolation.clone(), ..job(task) };
    let calls = Calls::default();
    assert_eq!(
        check(&calls, &place, View::Workspace, &job(Task::Run(command.clone(), None))),
        Ok(()),
        "control"
    );
    let other = Command { argv: vec!["sh".into()], ..command.clone() };
    let wider = Job { isolation: Isolation::default(), ..job(Task::Run(command.clone(), None)) };
    let larger =
        Job { limits: Limits { pids: 9999, ..Limits::default() }, ..job(Task::Run(command.clone(), None)) };
    let work = job(Task::Work(Request::Perform { action: Action::Read { path: "/work/p/a".into() } }));
    for refused in [job(Task::Run(other, None)), wider, larger, work] {
        assert!(check(&calls, &place, View::Workspace, &refused).is_err(), "{refused:?}");
    }
    // A way to the network goes to the one that was granted it, and stand-ins of keys to no such program.
    let way = |stand_ins: Vec<StandIn>| Shown { pass: "p".into(), stand_ins, own_hosts: Vec::new() };
    let asks =
        |command: &Command, way: Shown| Job { way: Some(way), ..job(Task::Run(command.clone(), None)) };
    let networked = Command { network: true, ..command.clone() };
    let guest =
        Guest { command: networked.clone(), isolation: isolation.clone(), variables: Default::default() };
    let outward = Lease { guest: Some(guest), ..lease() };
    assert_eq!(
        check(&calls, &outward, View::Workspace, &asks(&networked, way(Vec::new()))),
        Ok(()),
        "control"
    );
    let stand_in = StandIn { variable: "KEY".into(), value: "x".into(), user: None };
    assert!(check(&calls, &outward, View::Workspace, &asks(&networked, way(vec![stand_in]))).is_err());
    assert!(check(&calls, &place, View::Workspace, &asks(&command, way(Vec::new()))).is_err());
    let hidden = Hidden::default();
    assert_eq!(reads(&hidden, &place, &["/opt/x.py".into()]), Ok(()), "control");
    assert!(reads(&hidden, &place, &["/opt/y.py".into()]).is_err());
    assert_eq!(reads(&hidden, &lease(), &["/opt/y.py".into()]), Ok(()), "a session's is another matter");
}
