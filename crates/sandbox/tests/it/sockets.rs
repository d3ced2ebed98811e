//! Unix sockets: a session's own programs talk over them, and no socket of the host can be reached.

use crate::house::{As, House, Ran, everyone, is_root};
use bailey_protocol::{Isolation, WsPath};
use bailey_sandbox::Calls;
use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        net::{UnixDatagram, UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
};

/// Connects to a socket at each path, and sends to the one beside it.
const KNOCK: &str = "
import socket, sys, errno
for path in sys.argv[1:]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        s = socket.socket(socket.AF_UNIX, kind)
        try: s.connect(path + '.' + str(int(kind))); print('reached')
        except OSError as e: print(errno.errorcode[e.errno])
";

/// Sockets of the host that anybody may connect to.
struct Listening(#[expect(dead_code, reason = "it listens")] Vec<(UnixListener, UnixDatagram)>);

impl Listening {
    fn at(paths: &[PathBuf]) -> Self {
        let open = |path: PathBuf| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        let listen = |path: &PathBuf| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let [stream, message] = ["1", "2"].map(|kind| path.with_extension(kind));
            let both = (UnixListener::bind(&stream).unwrap(), UnixDatagram::bind(&message).unwrap());
            [stream, message].into_iter().for_each(open);
            both
        };
        Self(paths.iter().map(listen).collect())
    }
}

/// Places of the host that a command is shown, in the order of the paths.
struct Shown {
    house: House,
    paths: Vec<PathBuf>,
    _listening: Listening,
    _shared: tempfile::TempDir,
}

impl Shown {
    fn new(who: As) -> Self {
        let shared = tempfile::tempdir().unwrap();
        fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let root = shared.path().canonicalize().unwrap();
        let (read, extra) = (root.join("read"), root.join("extra"));
        let mut home = PathBuf::new();
        fs::create_dir_all(&read).unwrap();
        let house = House::with(who, |config| {
            home.clone_from(&config.user_home);
            fs::create_dir_all(home.join(".cargo/registry")).unwrap();
            config.reads = vec![read.clone()];
        });
        let paths: Vec<PathBuf> =
            [house.project.clone(), read, home.join(".cargo/registry"), extra.join("deep")]
                .map(|place| place.join("sock"))
                .into();
        let listening = Listening::at(&paths);
        house.give(&house.project);
        Self { house, paths, _listening: listening, _shared: shared }
    }

    async fn knock(&self) -> Vec<String> {
        let extra = self.paths.last().unwrap().parent().unwrap().parent().unwrap();
        let mut command = self.house.command("");
        command.argv = ["/usr/bin/python3", "-c", KNOCK].map(String::from).into();
        command.argv.extend(self.paths.iter().map(|path| path.display().to_string()));
        let extra_reads = vec![WsPath(extra.display().to_string())];
        let isolation = Isolation { extra_reads, ..Isolation::default() };
        let ran = self.house.run(&command, &isolation).await;
        ran.ok().lines().map(str::to_owned).collect()
    }
}

fn has_python() -> bool {
    let has = Path::new("/usr/bin/python3").exists();
    if !has {
        println!("SKIPPED: there is no /usr/bin/python3");
    }
    has
}

/// In the project, in a directory that the owner named, in a cache of the home, and in what one effect may
/// read besides; as root through mounts that map owners.
#[tokio::test]
async fn no_socket_of_the_host_is_reached_through_what_is_shown() {
    if !has_python() {
        return;
    }
    for who in everyone() {
        let shown = Shown::new(who);
        assert_eq!(shown.knock().await, ["ECONNREFUSED"; 8], "{who:?}");
        // The control outside; the attack of the same number has that where just the overlays are away.
        for path in &shown.paths {
            UnixStream::connect(path.with_extension("1")).unwrap();
        }
    }
}

async fn python(house: &House, program: &str) -> Ran {
    house.write("program.py", program);
    house.sh("/usr/bin/python3 program.py").await
}

#[tokio::test]
async fn programs_of_a_session_talk_over_sockets() {
    if !has_python() {
        return;
    }
    let talks = [
        (
            "import multiprocessing as m\nif __name__ == '__main__':\n  with m.Manager() as a:\n    d = a.dict(); d[1] = 2; print(dict(d))",
            "{1: 2}",
        ),
        (
            "import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n  m.set_start_method('forkserver')\n  with m.Pool(2) as p: print(p.map(f, [1, 2, 3]))",
            "[1, 4, 9]",
        ),
        (
            "import asyncio\nasync def s(r, w): w.write(await r.read(3)); w.close()\nasync def main():\n  async with await asyncio.start_unix_server(s, 'here.sock'):\n    r, w = await asyncio.open_unix_connection('here.sock'); w.write(b'hey'); w.write_eof(); print((await r.read()).decode())\nasyncio.run(main())",
            "hey",
        ),
        // An abstract name, and a pair that carries messages.
        (
            "import socket as s\na = s.socket(s.AF_UNIX, s.SOCK_DGRAM); a.bind('\\0own'); b = s.socket(s.AF_UNIX, s.SOCK_DGRAM); b.sendto(b'hey', '\\0own'); print(a.recv(9))\nc, d = s.socketpair(s.AF_UNIX, s.SOCK_DGRAM); c.send(b'x'); d.recv(1)",
            "b'hey'",
        ),
    ];
    for who in everyone() {
        let house = House::new(who);
        for (program, printed) in talks {
            let ran = python(&house, program).await;
            assert_eq!(ran.ok(), printed, "{who:?}");
            assert!(ran.enforced().has_unix_sockets, "{who:?}");
        }
    }
}

/// As a server in the background and its client have it: two sandboxes of one session, and nobody of the
/// host.
#[tokio::test]
async fn a_socket_is_there_for_the_next_command_of_the_session_and_not_for_the_host() {
    if !has_python() {
        return;
    }
    for who in everyone() {
        let house = House::new(who);
        let serve = "import socket as s\na = s.socket(s.AF_UNIX); a.bind('own.sock'); a.listen(); c, _ = a.accept(); c.send(b'served')";
        let knock = "import socket as s, time\na = s.socket(s.AF_UNIX)\nfor _ in range(500):\n  try: a.connect('own.sock'); break\n  except OSError: time.sleep(0.01)\nprint(a.recv(9).decode())";
        house.write("serve.py", serve);
        house.write("knock.py", knock);
        let served = house.command("/usr/bin/python3 serve.py");
        let isolation = Isolation::default();
        let (_, knocked) = tokio::join!(house.run(&served, &isolation), async {
            let upper = house.folder.join("upper/own.sock");
            while !upper.exists() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            // What lies there is not the inode that listens.
            let outside = std::os::unix::net::UnixStream::connect(&upper).map_err(|error| error.kind());
            assert_eq!(outside.err(), Some(std::io::ErrorKind::ConnectionRefused), "{who:?}");
            house.sh("/usr/bin/python3 knock.py").await
        });
        assert_eq!(knocked.ok(), "served", "{who:?}");
    }
}

/// A list of one's own has what the named one has that it began as, and no other kind of socket comes with
/// it.
#[tokio::test]
async fn other_families_stay_refused() {
    if !has_python() {
        return;
    }
    let tries = "import socket as s, errno\nfor f, k, p in ((1, 1, 0), (1, 5, 0), (1, 1, 3), (2, 5, 0), (2, 3, 1), (16, 3, 0), (17, 3, 0), (40, 1, 0), (38, 5, 0)):\n  try: s.socket(f, k, p); print('made')\n  except OSError as e: print(errno.errorcode[e.errno])";
    let expected = ["made", "made", "EPERM", "EPERM", "EPERM", "EPERM", "EPERM", "EPERM", "EPERM"];
    for calls in [Calls::default(), Calls::custom("own", bailey_protocol::Profile::Standard)] {
        let house = House::with(As::User, |config| config.calls = calls.clone());
        let isolation = Isolation { profile: calls.profile(), ..Isolation::default() };
        house.write("tries.py", tries);
        let ran = house.run(&house.command("/usr/bin/python3 tries.py"), &isolation).await;
        assert_eq!(ran.ok().lines().collect::<Vec<_>>(), expected, "{calls:?}");
    }
}

/// Something is mounted below a directory that is shown: its entries are shown one by one, as they are,
/// nobody writes the directory, and the next command has it, too.
#[tokio::test]
async fn what_is_mounted_below_is_shown_and_no_socket_of_it_reached() {
    if !has_python() || !is_root() {
        return println!("SKIPPED: only root mounts a file system");
    }
    let mut home = PathBuf::new();
    let house = House::with(As::User, |config| {
        home.clone_from(&config.user_home);
        let bin = home.join("bin");
        fs::create_dir_all(bin.join("below: it")).unwrap();
        fs::create_dir(bin.join("locked")).unwrap();
        fs::create_dir(bin.join("locked/below")).unwrap();
        fs::write(bin.join("locked/a.txt"), "locked\n").unwrap();
        symlink("below: it", bin.join("link")).unwrap();
        config.reads = vec![];
    });
    let (bin, below) = (home.join("bin"), home.join("bin/below: it"));
    for at in [&below, &bin.join("locked/below")] {
        mount(&["mount", "-t", "tmpfs", "-o", "mode=755", "none", at.to_str().unwrap()]);
    }
    let _listening = Listening::at(&[below.join("sock")]);
    fs::write(below.join("a.txt"), "there\n").unwrap();
    house.give(&home);
    fs::set_permissions(bin.join("locked"), fs::Permissions::from_mode(0o0)).unwrap();
    let line = format!(
        "cat bin/link/a.txt; echo no > bin/own; mv bin elsewhere; cat bin/locked/a.txt; \
         /usr/bin/python3 -c \"$KNOCK\" '{}'",
        below.join("sock").display()
    );
    let mut command = house.command(&format!("cd {}; {line}", home.display()));
    command.env.insert("KNOCK".into(), KNOCK.into());
    let mut rans = Vec::new();
    // The plan was made when there was no mount there yet: a holder sees what there is when it is made.
    for _ in 0..2 {
        rans.push(house.run(&command, &Isolation::default()).await);
    }
    for at in [&below, &bin.join("locked/below")] {
        mount(&["umount", "-l", at.to_str().unwrap()]);
    }
    for ran in rans {
        assert_eq!(ran.ok(), "there\nECONNREFUSED\nECONNREFUSED", "{}", ran.text());
        let refused = ran.report().stderr.head.lossy().to_string();
        for why in ["Read-only file system", "Device or resource busy", "Permission denied"] {
            assert!(refused.contains(why), "{why}: {refused}");
        }
    }
}

fn mount(words: &[&str]) {
    let (program, words) = words.split_first().unwrap();
    assert!(std::process::Command::new(program).args(words).status().unwrap().success());
}

/// A program that is installed on the host while a session goes on is there for the next command, also where
/// an earlier one did not find it.
#[tokio::test]
async fn what_comes_to_the_host_later_is_found_later() {
    for who in everyone() {
        let mut home = PathBuf::new();
        let house = House::with(who, |config| {
            home.clone_from(&config.user_home);
            fs::create_dir_all(home.join(".cargo/bin")).unwrap();
            config.path = format!("{}/.cargo/bin:/usr/bin:/bin", home.display());
        });
        assert_eq!(house.sh("newly").await.report().exit, Some(127), "{who:?}");
        let program = home.join(".cargo/bin/newly");
        fs::write(&program, "#!/bin/sh\necho found\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(house.sh("newly").await.ok(), "found", "{who:?}");
    }
}
