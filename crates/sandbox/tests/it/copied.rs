//! Landlock and a list of system calls alone, over a private copy: what they hold, each with its control in a
//! session without walls.

use crate::house::{As, House, Ran, everyone};
use bailey_kernel::{Acted, BoxFuture, Executor, Io, Output, Permit, ResolveError, Route};
use bailey_protocol::{
    Action, Command, EffectId, FileChange, FileDiff, Isolation, Level, Limits, Merge, MergeFile, MergeKind,
    Report, SessionId, Wall, WsPath,
};
use bailey_sandbox::{Config, Shape, Walls, Yard, worker::Request, worker::Response};
use bailey_testkit::{Bench, Setup};
use std::{
    fs,
    net::TcpListener,
    os::unix::{fs::PermissionsExt as _, net::UnixListener, process::CommandExt as _},
    path::PathBuf,
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};
use tokio_util::sync::CancellationToken;

pub(crate) fn house(who: As, shape: Shape) -> House {
    House::with(who, |config| shaped(config, shape))
}

fn shaped(config: &mut Config, shape: Shape) {
    config.tiers.internal = Level::Landlock;
    config.masks = vec![".env".into()];
    config.sessions.values_mut().for_each(|lease| lease.shape = shape);
}

/// Root gets none of this.
pub(crate) fn users() -> impl Iterator<Item = As> {
    everyone().into_iter().filter(|who| *who == As::User)
}

fn yard(house: &House) -> Yard {
    Yard { project: house.project.clone(), folder: house.folder.clone(), linked: None, home: None }
}

/// Where its commands work.
pub(crate) fn place(house: &House, shape: Shape) -> PathBuf {
    if shape == Shape::Copied { yard(house).copy() } else { house.project.clone() }
}

async fn settle(house: &House) {
    settle_with(house, Vec::new(), false).await;
}

/// Brings the copy up to date; what is in `own` is the session's, and `anew` throws the copy away first.
pub(crate) async fn settle_with(house: &House, own: Vec<WsPath>, anew: bool) {
    let yard = yard(house);
    let text = |path: PathBuf| path.display().to_string();
    let request = Request::Settle {
        project: text(yard.project.clone()),
        copy: text(yard.copy()),
        upper: text(yard.upper()),
        record: text(yard.copied()),
        own,
        anew,
        masks: Vec::new(),
    };
    let never = CancellationToken::new();
    let (reply, _) = house.native.work(house.session, request, &Isolation::default(), &never).await.unwrap();
    assert!(matches!(reply, Response::Settled), "{reply:?}");
}

async fn run(house: &House, shape: Shape, line: &str) -> Ran {
    if shape == Shape::Copied {
        settle(house).await;
    }
    let cwd = WsPath(place(house, shape).display().to_string());
    house.run(&Command { cwd, ..house.command(line) }, &Isolation::default()).await
}

#[tokio::test]
async fn a_command_works_in_the_copy_and_says_what_stood() {
    for who in users() {
        let house = house(who, Shape::Copied);
        house.write("a.txt", "a\n");
        house.write(".env", "KEY=1\n");
        let line = "echo changed > a.txt; ls -a; echo temporary > \"$TMPDIR/t\" && cat \"$TMPDIR/t\"; \
                    echo kept > ~/k && cat ~/k; mkdir d && cd d && pwd | grep -c copy; python3 -S -c 'print(1)'";
        let ran = run(&house, Shape::Copied, line).await;
        let printed = ran.text();
        assert!(printed.contains("temporary\nkept\n1\n1"), "{who:?}: {printed} {:?}", ran.outcome);
        assert!(!printed.contains(".env"), "a secret-looking file is left out: {printed}");
        let enforced = ran.enforced();
        assert_eq!(
            (enforced.backend.as_str(), Level::of(enforced)),
            ("landlock", Level::Landlock),
            "{enforced:?}"
        );
        assert!(!enforced.walls.contains(&Wall::NetNamespace));
        assert!(enforced.absent.iter().any(|why| why.contains("namespaces")), "{enforced:?}");
        assert_eq!(fs::read_to_string(house.project.join("a.txt")).unwrap(), "a\n");
        assert_eq!(fs::read_to_string(yard(&house).copy().join("a.txt")).unwrap(), "changed\n");
        settle(&house).await;
        assert_eq!(fs::read_to_string(yard(&house).upper().join("a.txt")).unwrap(), "changed\n");
    }
}

/// What looks like a secret is left out of the copy, and by no other name is it there.
#[tokio::test]
async fn nothing_of_the_project_itself_is_shown_beside_its_copy() {
    for who in users() {
        let house = house(who, Shape::Copied);
        house.write(".env", "KEY=1\n");
        let outside =
            tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o755)).tempdir().unwrap();
        let note = outside.path().join("note.txt");
        fs::write(&note, "of the host\n").unwrap();
        settle(&house).await;
        let read = async |shown: &std::path::Path, file: &std::path::Path| {
            let cwd = WsPath(place(&house, Shape::Copied).display().to_string());
            let command = Command { cwd, ..house.command(&format!("cat {}", file.display())) };
            let isolation =
                Isolation { extra_reads: vec![WsPath(shown.display().to_string())], ..Isolation::default() };
            house.run(&command, &isolation).await
        };
        let secret = house.project.join(".env");
        for shown in [&secret, &house.project, &house.project.parent().unwrap().to_path_buf()] {
            let ran = read(shown, &secret).await;
            assert!(ran.reason().contains("shows the project itself"), "{:?}", ran.outcome);
        }
        let control = read(&note, &note).await;
        assert_eq!(control.text(), "of the host\n", "the control: {:?}", control.outcome);
        // It was for that command: what is made ahead of the next one is made without it.
        house.ready().await;
        let cwd = WsPath(place(&house, Shape::Copied).display().to_string());
        let next = Command { cwd, ..house.command(&format!("cat {} 2>&1; echo end", note.display())) };
        let next = house.run(&next, &Isolation::default()).await.ok();
        assert!(next.contains("Permission denied") && next.ends_with("end"), "{next}");
    }
}

/// The broker that tells git who the person is, is bound by nothing: it goes nowhere that a command can lead
/// it.
#[tokio::test]
async fn git_knows_the_person_and_no_command_leads_the_broker_elsewhere() {
    const TEXT: &str = "[user]\n\tname = Ann Lee\n\temail = ann@example.com\n";
    let commit = "rm -rf r && git init -q r && cd r && echo a > a && git add a && git commit -qm one && \
                  git log -1 --format='%an <%ae>'";
    for who in users() {
        for identity in [None, Some(TEXT)] {
            let house = House::with(who, |config| {
                shaped(config, Shape::Copied);
                config.git = identity.map(str::to_owned);
            });
            let victim = house.home.join("victim");
            fs::create_dir_all(victim.join("git")).unwrap();
            house.give(&victim);
            let next = async |line: &str| {
                // As at the next start: all that waits is gone, and the broker makes everything anew.
                house.native.forget(house.session).unwrap();
                run(&house, Shape::Copied, line).await
            };
            let attacks = [
                format!("rm -rf ~/.config && ln -s {} ~/.config && echo set", victim.display()),
                "rm -rf ~/.config && echo hi > ~/.config && echo set".into(),
                format!("mkdir -p ~/.config && ln -s {} ~/.config/git; echo set", victim.display()),
            ];
            for attack in attacks {
                assert_eq!(next(&attack).await.ok(), "set", "{who:?}");
                let ran = next(commit).await;
                match identity {
                    Some(_) => assert_eq!(ran.ok(), "Ann Lee <ann@example.com>", "{who:?}"),
                    None => {
                        assert!(ran.text().contains("tell me who you are"), "the control: {}", ran.text())
                    }
                }
                let left: Vec<_> =
                    fs::read_dir(victim.join("git")).unwrap().chain(fs::read_dir(&victim).unwrap()).collect();
                assert_eq!(left.len(), 1, "{who:?}: something was put outside: {left:?}");
                assert!(next("rm -rf ~/.config; echo gone").await.ok() == "gone");
            }
            // The control: who is bound by nothing and follows that link gets there, and a command does not.
            let line = format!("ln -s {} ~/.config && echo x > ~/.config/git/config", victim.display());
            assert!(next(&line).await.text().contains("Permission denied"), "{who:?}");
            fs::write(house.folder.join("home/.config/git/config"), TEXT).unwrap();
            assert!(victim.join("git/config").exists());
            next("rm ~/.config").await.ok();
            // It lies where no command writes, and one that is damaged is mended.
            let Some(_) = identity else { continue };
            let own = house.folder.join("gitconfig");
            let line = format!(
                "echo x >> {0}; rm -f {0}; mv {0} ~/x; ln -sf /x {0}; cat {0} | head -n 1",
                own.display()
            );
            let ran = next(&line).await.text();
            assert!(ran.contains("[user]") && ran.contains("Permission denied"), "{who:?}: {ran}");
            fs::remove_file(&own).unwrap();
            std::os::unix::fs::symlink(victim.join("made"), &own).unwrap();
            assert_eq!(next(commit).await.ok(), "Ann Lee <ann@example.com>", "{who:?}");
            assert!(!victim.join("made").exists(), "{who:?}: a link was followed");
            // What cannot be written keeps no command from running.
            fs::remove_file(&own).unwrap();
            fs::create_dir_all(own.join("full")).unwrap();
            assert_eq!(next("echo runs").await.ok(), "runs", "{who:?}");
        }
    }
}

/// One line of Python for each way out, with what it prints when it is one.
const WAYS: &[(&str, &str)] = &[
    ("the project's own file is read", "open('{project}/a.txt').read()"),
    ("the project's own file is written", "open('{project}/w.txt', 'w')"),
    ("a key of the home is read", "open('{home}/.ssh/id').read()"),
    ("the home is listed", "__import__('os').listdir('{home}')"),
    ("the home is written", "open('{home}/.profile', 'a')"),
    ("another's temporary file is read", "open('{shared}').read()"),
    ("Bailey's own record is read", "open('{folder}/copied').read()"),
    ("what others run is listed", "open('/proc/{pid}/cmdline').read()[0]"),
    ("the variables of another process are read", "open('/proc/{pid}/environ').read()[0]"),
    ("a TCP port of the host is reached", "__import__('socket').create_connection(('127.0.0.1', {port}))"),
    (
        "a UDP socket is made",
        "__import__('socket').socket(__import__('socket').AF_INET, __import__('socket').SOCK_DGRAM)",
    ),
    ("an IPv6 socket is made", "__import__('socket').socket(__import__('socket').AF_INET6)"),
    (
        "a socket of the host is reached",
        "__import__('socket').socket(__import__('socket').AF_UNIX).connect('{socket}')",
    ),
    ("another process is signalled", "__import__('os').kill({pid}, 0) or __import__('os').kill({pid}, 18)"),
    ("another process's niceness is changed", "__import__('os').setpriority(0, {pid}, 19)"),
    ("another process's limits are changed", "__import__('resource').prlimit({pid}, 7, (64, 64))"),
];

#[tokio::test]
async fn landlock_and_a_list_of_calls_alone_keep_a_command_in() {
    if !std::path::Path::new("/usr/bin/python3").exists() {
        return println!("SKIPPED: there is no /usr/bin/python3");
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    for who in users() {
        let shared =
            tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o777)).tempdir().unwrap();
        let file = shared.path().join("of-another");
        fs::write(&file, "shared").unwrap();
        let socket = shared.path().join("socket");
        let _unix = UnixListener::bind(&socket).unwrap();
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).unwrap();
        for shape in [Shape::Copied, Shape::Direct] {
            let house = house(who, shape);
            house.write("a.txt", "a\n");
            fs::create_dir(house.home.join(".ssh")).unwrap();
            fs::write(house.home.join(".ssh/id"), "the key\n").unwrap();
            house.give(&house.home);
            fs::write(house.folder.join("copied"), "{}").unwrap();
            house.give(&house.folder);
            let victim = sleeper(&house);
            let fill = |way: &str| {
                way.replace("{project}", &house.project.display().to_string())
                    .replace("{home}", &house.home.display().to_string())
                    .replace("{folder}", &house.folder.display().to_string())
                    .replace("{shared}", &file.display().to_string())
                    .replace("{socket}", &socket.display().to_string())
                    .replace("{port}", &port)
                    .replace("{pid}", &victim.0.id().to_string())
            };
            let script: String = WAYS
                .iter()
                .map(|(what, way)| {
                    let way = fill(way);
                    format!(
                        "try:\n  {way}\n  print('OUT: {}')\nexcept Exception as e: print('kept:', e)\n",
                        what.replace('\'', "")
                    )
                })
                .collect();
            if shape == Shape::Copied {
                settle(&house).await;
            }
            let script_at = place(&house, shape).join("ways.py");
            fs::write(&script_at, script).unwrap();
            house.give(&script_at);
            let cwd = WsPath(place(&house, shape).display().to_string());
            let command = Command { cwd, ..house.command("/usr/bin/python3 -S ways.py") };
            let ran = house.run(&command, &Isolation::default()).await;
            let printed = ran.text();
            let lines: Vec<&str> = printed.lines().collect();
            assert_eq!(lines.len(), WAYS.len(), "{who:?} {shape:?}: {printed} {:?}", ran.outcome);
            for ((what, _), line) in WAYS.iter().zip(lines) {
                // The control: without walls the same line gets there.
                let is_out = shape == Shape::Direct;
                assert_eq!(line.starts_with("OUT"), is_out, "{who:?} {shape:?}, {what}: {line}");
            }
        }
    }
}

/// A process of the warden's user, which ends with its test.
struct Sleeper(process::Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn sleeper(house: &House) -> Sleeper {
    let mut command = process::Command::new("/usr/bin/sleep");
    command.arg("1000");
    if crate::house::is_root() && house.who == As::User {
        command.uid(crate::house::STRANGER).gid(crate::house::STRANGER);
    }
    Sleeper(command.spawn().unwrap())
}

#[tokio::test]
async fn more_than_landlock_is_wanted_and_nothing_runs() {
    for who in users() {
        let house = House::with(who, |config| {
            config.sessions.values_mut().for_each(|lease| lease.shape = Shape::Copied);
        });
        fs::create_dir_all(yard(&house).copy()).unwrap();
        house.give(&house.folder);
        let cwd = WsPath(yard(&house).copy().display().to_string());
        let command = Command { cwd, ..house.command("echo ran") };
        let ran = house.run(&command, &Isolation::default()).await;
        assert!(
            ran.reason().contains("needs the isolation `native`, and only `landlock` is here"),
            "{}",
            ran.reason()
        );
    }
}

#[tokio::test]
async fn the_worker_reads_and_changes_the_copy_and_nothing_beside() {
    for who in users() {
        let house = house(who, Shape::Copied);
        house.write("a.txt", "a\n");
        settle(&house).await;
        let never = CancellationToken::new();
        let change = |path: PathBuf| Request::Perform {
            action: Action::Change {
                files: vec![FileChange {
                    path: WsPath(path.display().to_string()),
                    base: None,
                    new: Some(bailey_protocol::Blob(b"new\n".to_vec())),
                }],
            },
        };
        let done = async |request| {
            house.native.work(house.session, request, &Isolation::default(), &never).await.unwrap().0
        };
        let reply = done(change(yard(&house).copy().join("n.txt"))).await;
        assert!(matches!(reply, Response::Report(_)), "{reply:?}");
        let reply = done(change(house.project.join("n.txt"))).await;
        assert!(matches!(reply, Response::Refused { .. }), "{reply:?}");
        assert!(!house.project.join("n.txt").exists());
    }
}

#[tokio::test]
async fn root_gets_no_session_behind_landlock_alone() {
    for who in everyone() {
        let house = house(who, Shape::Copied);
        fs::create_dir_all(yard(&house).copy()).unwrap();
        house.give(&house.folder);
        let cwd = WsPath(yard(&house).copy().display().to_string());
        let command = Command { cwd, ..house.command("echo ran") };
        let ran = house.run(&command, &Isolation::default()).await;
        match who {
            As::Root => assert!(ran.reason().contains("is not for root"), "{:?}", ran.outcome),
            // The control.
            As::User => assert_eq!(ran.text(), "ran\n"),
        }
    }
}

#[tokio::test]
async fn what_grows_past_a_limit_ends_there_too_and_a_copy_is_no_growth() {
    for who in users() {
        let house = house(who, Shape::Copied);
        house.write("large", &"x".repeat(12 << 20));
        let limited = async |line: &str, limits: Limits| {
            settle(&house).await;
            let cwd = WsPath(place(&house, Shape::Copied).display().to_string());
            let command = Command { cwd, limits, ..house.command(line) };
            house.run(&command, &Isolation::default()).await
        };
        let disk = Limits { disk_bytes: 8 << 20, ..house.command("").limits };
        let grows = "i=0; while [ $i -lt 12 ]; do head -c 1048576 /dev/zero > g$i; i=$((i+1)); sleep 0.1; done; sleep 3; echo through";
        let ran = limited(grows, disk.clone()).await;
        assert_eq!(ran.report().limit.as_deref(), Some("disk limit"), "{:?}", ran.outcome);
        assert!(ran.enforced().watched.contains(&Wall::DiskLimit), "{:?}", ran.enforced());
        let ran = limited("rm -f g*; sleep 1; echo through", disk).await;
        assert_eq!(ran.text(), "through\n", "the control: {:?}", ran.outcome);
        let takes = "head -c 201326592 /dev/zero | tail -c 201326592 | sleep 3; echo through";
        let memory = |bytes| Limits { memory_bytes: bytes, ..house.command("").limits };
        let ran = limited(takes, memory(64 << 20)).await;
        assert_eq!(ran.report().limit.as_deref(), Some("memory limit"), "{:?}", ran.outcome);
        let ran = limited("echo through", memory(64 << 20)).await;
        assert_eq!(ran.text(), "through\n", "the control: {:?}", ran.outcome);
        let enforced = ran.enforced();
        let is_told = |wall| enforced.walls.contains(&wall) || enforced.watched.contains(&wall);
        assert!(is_told(Wall::MemoryLimit), "{enforced:?}");
        assert!(is_told(Wall::PidsLimit), "{enforced:?}");
        let bomb = "for i in $(seq 400); do sleep 5 & done 2>/dev/null; echo through";
        let ran = limited(bomb, Limits { pids: 100, ..house.command("").limits }).await;
        assert!(
            !ran.text().contains("through"),
            "it ends where it can start nothing more: {:?}",
            ran.outcome
        );
        let ran =
            limited("for i in $(seq 40); do sleep 0.1 & done; wait; echo through", memory(1 << 30)).await;
        assert_eq!(ran.text(), "through\n", "the control: {:?}", ran.outcome);
    }
}

/// The walls of a process that ends, once that is wanted, as soon as the project's `a.txt` holds the old text
/// again.
struct Mortal {
    walls: Walls,
    file: PathBuf,
    is_doomed: AtomicBool,
}

impl Mortal {
    fn is_over(&self) -> bool {
        self.is_doomed.load(Ordering::Relaxed) && fs::read(&self.file).is_ok_and(|text| text == b"old\n")
    }
}

impl Executor for Mortal {
    fn routes(&self) -> Vec<Route> {
        self.walls.routes()
    }

    fn resolve<'a>(
        &'a self,
        session: SessionId,
        action: Action,
    ) -> BoxFuture<'a, Result<Action, ResolveError>> {
        self.walls.resolve(session, action)
    }

    fn perform<'a>(&'a self, permit: Permit, io: Io) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let mut performed = self.walls.perform(permit, io);
            let mut tick = tokio::time::interval(Duration::from_millis(1));
            // Whatever it waits for, it is asked first whether it still lives.
            std::future::poll_fn(|context| {
                if self.is_over() {
                    return Poll::Ready(Output::failed("killed"));
                }
                while tick.poll_tick(context).is_ready() {}
                performed.as_mut().poll(context)
            })
            .await
        })
    }
}

/// A session over a copy, with a journal of its own.
struct Kept {
    house: House,
    bench: Bench,
    mortal: Arc<Mortal>,
}

impl Kept {
    async fn new(who: As) -> Self {
        let rules = "[[rule]]\nname = \"all\"\nanswer = \"allow\"\nmatch = {}\n";
        let bench = Bench::new(Setup { rules: rules.into(), bare: true, ..Setup::default() }).await;
        let mut house = House::with(who, |config| {
            shaped(config, Shape::Copied);
            let lease = config.sessions.values().next().unwrap().clone();
            config.sessions.insert(bench.session, lease);
        });
        house.session = bench.session;
        let walls =
            Walls::new(house.native.clone(), bench.journal.seal(), "/nowhere".into(), "/usr/bin:/bin".into());
        let mortal =
            Arc::new(Mortal { walls, file: house.project.join("a.txt"), is_doomed: AtomicBool::new(false) });
        bench.registrar.register(vec![mortal.clone()]);
        Self { house, bench, mortal }
    }

    async fn act(&self, action: Action) -> Report {
        match self.bench.kernel.act(&self.bench.scope(), action, &[]).await.unwrap() {
            Acted::Done(output) => {
                // Told by a test that fails.
                println!("{:?}", output.outcome().status);
                output.report().clone()
            }
            other => panic!("it was not done: {other:?}"),
        }
    }

    async fn diff(&self) -> Vec<FileDiff> {
        let root = WsPath(self.house.project.display().to_string());
        match self.act(Action::Diff { root, also: Vec::new() }).await {
            Report::Diff(report) => report.files,
            other => panic!("no diff: {other:?}"),
        }
    }

    /// All of these changes one way, under the name of one apply.
    async fn merge(&self, direction: MergeKind, files: &[FileDiff]) -> Report {
        let state = |side: &Option<bailey_protocol::FileState>| side.as_ref().map(|side| side.state);
        let file = |file: &FileDiff| MergeFile::whole(file.path.clone(), state(&file.old), state(&file.new));
        let of = Some(EffectId::new(1, [7; 10]));
        self.act(Action::Merge(Merge::of_files(direction, of, files.iter().map(file).collect()))).await
    }
}

/// The next look brought the project's old text over the session's: nobody had said yet whose it is.
#[tokio::test]
async fn an_undo_that_is_killed_leaves_the_session_its_own() {
    for (who, is_killed) in users().flat_map(|who| [(who, false), (who, true)]) {
        let kept = Kept::new(who).await;
        kept.house.write("a.txt", "old\n");
        kept.house.write("b.txt", "b\n");
        settle(&kept.house).await;
        let copy = yard(&kept.house).copy();
        let line = "echo new > a.txt; rm b.txt";
        assert_eq!(run(&kept.house, Shape::Copied, line).await.text(), "");
        let files = kept.diff().await;
        assert_eq!(files.len(), 2, "{files:?}");
        kept.merge(MergeKind::Apply, &files).await;
        assert_eq!(fs::read_to_string(kept.house.project.join("a.txt")).unwrap(), "new\n");
        assert!(kept.diff().await.is_empty(), "the control: applied");
        kept.mortal.is_doomed.store(is_killed, Ordering::Relaxed);
        let undone = kept.merge(MergeKind::Undo, &files).await;
        assert_eq!(matches!(undone, Report::Merged { .. }), !is_killed, "{undone:?}");
        kept.mortal.is_doomed.store(false, Ordering::Relaxed);
        assert_eq!(fs::read_to_string(kept.house.project.join("a.txt")).unwrap(), "old\n");
        let left = kept.diff().await;
        assert_eq!(fs::read_to_string(copy.join("a.txt")).unwrap(), "new\n", "{who:?}, killed: {is_killed}");
        assert!(!copy.join("b.txt").exists());
        assert!(left.iter().any(|file| file.path.0.ends_with("a.txt")), "{left:?}");
        assert!(!kept.house.folder.join("copied.own").exists(), "it is over");
    }
}

/// What was not read once was taken for the session's from then on, and the user's own edit for one that it
/// took back.
#[tokio::test]
async fn a_file_that_nobody_may_read_for_a_moment_is_not_the_sessions() {
    for who in users() {
        let house = house(who, Shape::Copied);
        let file = house.write("a.txt", "a\n");
        settle(&house).await;
        house.write("a.txt", "of the host\n");
        let allow = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        allow(0o000);
        settle(&house).await;
        assert_eq!(fs::read_to_string(yard(&house).copy().join("a.txt")).unwrap(), "a\n", "{who:?}");
        allow(0o644);
        settle(&house).await;
        assert_eq!(
            fs::read_to_string(yard(&house).copy().join("a.txt")).unwrap(),
            "of the host\n",
            "{who:?}"
        );
    }
}

/// Whoever could not look said that the limit was reached, of this command and of each after it.
#[tokio::test]
async fn a_directory_that_nobody_may_read_is_no_limit_reached_and_hides_nothing_from_one() {
    for who in users() {
        let house = house(who, Shape::Copied);
        house.write("a.txt", "a\n");
        let run = async |line: &str| {
            settle(&house).await;
            let cwd = WsPath(place(&house, Shape::Copied).display().to_string());
            let limits = Limits { disk_bytes: 8 << 20, ..house.command("").limits };
            house.run(&Command { cwd, limits, ..house.command(line) }, &Isolation::default()).await
        };
        let locks = "for d in . ~ \"$TMPDIR\"; do mkdir -p \"$d/locked/deep\"; chmod 0 \"$d/locked/deep\" \"$d/locked\"; done; \
                     sleep 1; stat -c %a locked ~/locked \"$TMPDIR/locked\"; chmod 0 ~ \"$TMPDIR\"; sleep 1; echo through";
        let ran = run(locks).await;
        assert_eq!(ran.text(), "0\n0\n0\nthrough\n", "{who:?}: {:?}", ran.outcome);
        let ran = run("sleep 1; echo again > ~/k && cat ~/k").await;
        assert_eq!(ran.text(), "again\n", "{who:?}: {:?}", ran.outcome);
        // The control: nothing grows in one unseen.
        let grows = "mkdir ~/dark; cd ~/dark; chmod 300 ~/dark; \
                     i=0; while [ $i -lt 12 ]; do head -c 1048576 /dev/zero > g$i; i=$((i+1)); sleep 0.1; done; sleep 3; echo through";
        let ran = run(grows).await;
        assert_eq!(ran.report().limit.as_deref(), Some("disk limit"), "{who:?}: {:?}", ran.outcome);
    }
}

#[tokio::test]
async fn what_cannot_be_measured_is_told_as_that() {
    for who in users() {
        let house = house(who, Shape::Copied);
        house.write("a.txt", "a\n");
        settle(&house).await;
        let home = house.folder.join("home");
        let aside = house.folder.join("aside");
        let started = place(&house, Shape::Copied).join("started");
        let away = async {
            while !started.exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            fs::rename(&home, &aside).unwrap();
        };
        let cwd = WsPath(place(&house, Shape::Copied).display().to_string());
        let command = Command { cwd, ..house.command("touch started; sleep 30; echo through") };
        let isolation = Isolation::default();
        let (ran, ()) = tokio::join!(house.run(&command, &isolation), away);
        let limit = ran.report().limit.clone().unwrap_or_default();
        assert!(limit.contains("could not be measured"), "{who:?}: {limit} {:?}", ran.outcome);
    }
}
