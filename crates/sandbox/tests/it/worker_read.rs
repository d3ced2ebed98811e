//! Reads, looks and listings, on hostile ground too.

use super::{Ground, mode, perform};
use bailey_protocol::{Action, Digest, FileKind, FileReport, Report, ToolUse, WsPath};
use std::sync::mpsc;
use std::time::Duration;

fn read(path: WsPath) -> Result<FileReport, String> {
    perform(Action::Read { path }).map(|report| match report {
        Report::File(report) => report,
        other => panic!("{other:?}"),
    })
}

#[test]
fn a_file_is_read_whole_with_its_digest_and_mode() {
    let ground = Ground::new();
    let path = ground.file("a.sh", "echo\n");
    mode(&path, 0o750);
    let report = read(ground.ws("a.sh")).unwrap();
    assert_eq!(report.content.0, b"echo\n");
    assert_eq!((report.size, report.mode), (5, 0o750));
    assert_eq!(report.digest, Some(Digest::of(b"echo\n")));
}

#[test]
fn a_huge_sparse_file_gives_its_beginning_at_once() {
    let ground = Ground::new();
    let path = ground.file("big", "start");
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(10 << 30).unwrap();
    let report = read(ground.ws("big")).unwrap();
    assert_eq!(report.content.0.len(), 8 << 20);
    assert!(report.content.0.starts_with(b"start"));
    assert_eq!((report.size, report.digest), (10 << 30, None));
}

/// The control: a plain open of the FIFO does wait.
#[test]
fn what_is_no_file_is_refused_without_waiting() {
    let ground = Ground::new();
    ground.fifo("fifo");
    ground.socket("socket");
    ground.dir("dir");
    let path = ground.text("fifo");
    assert!(
        timed(
            {
                let path = path.clone();
                move || std::fs::File::open(path).is_ok()
            },
            200
        )
        .is_none()
    );
    let cases = [
        (ground.ws("fifo"), "is a FIFO"),
        (ground.ws("socket"), "is a socket"),
        (ground.ws("dir"), "is a directory"),
        (WsPath("/dev/zero".into()), "is a device"),
        (ground.ws("absent"), "nothing is there"),
    ];
    for (path, reason) in cases {
        let refused = timed(move || read(path).unwrap_err(), 5_000).expect("it waited");
        assert!(refused.contains(reason), "{refused}");
    }
    // Lets the control's thread end.
    std::fs::OpenOptions::new().write(true).open(path).unwrap();
}

/// The control: `std::fs` follows every one of these links.
#[test]
fn a_path_that_became_a_symlink_is_refused() {
    let ground = Ground::new();
    ground.file("outside/secret", "secret");
    ground.link("ws/file", "../outside/secret");
    ground.link("ws/dir", "../outside");
    for at in ["ws/file", "ws/dir/secret"] {
        assert_eq!(ground.read(at), "secret");
        assert!(read(ground.ws(at)).unwrap_err().contains("symbolic link"), "{at}");
    }
    let dotted = WsPath(format!("{}/ws/../outside/secret", ground.text("")));
    assert!(read(dotted).unwrap_err().contains("is not canonical"));
    assert!(perform(Action::List { path: ground.ws("ws/dir") }).is_err());
}

/// A mask has no permission bits. The control: with them, the same thread reads the file.
#[test]
fn a_masked_file_says_what_to_do() {
    let ground = Ground::new();
    let path = ground.file(".env", "KEY=1");
    let (masked, plain) = std::thread::spawn(move || {
        drop_capabilities();
        mode(&path, 0o000);
        let masked = read(ground.ws(".env"));
        mode(&path, 0o600);
        (masked, read(ground.ws(".env")))
    })
    .join()
    .unwrap();
    assert!(masked.unwrap_err().contains(
        "is masked because its name looks like a secret's, or is a file that nobody may read; only the user can reveal what is masked: with `--reveal PATH`"
    ));
    assert_eq!(plain.unwrap().content.0, b"KEY=1");
}

#[test]
fn a_look_tells_what_is_there() {
    let ground = Ground::new();
    ground.file("file", "12345");
    ground.link("link", "file");
    ground.fifo("fifo");
    let look = |at: &str| match perform(Action::Stat { path: ground.ws(at) }).unwrap() {
        Report::Stat(report) => report.found,
        other => panic!("{other:?}"),
    };
    assert_eq!(look("file"), Some(FileKind::File));
    assert_eq!(look(""), Some(FileKind::Directory));
    assert_eq!(look("link"), Some(FileKind::Symlink));
    assert_eq!(look("fifo"), Some(FileKind::Other));
    assert_eq!(look("absent/too"), None);
}

#[test]
fn a_listing_is_sorted_and_bounded() {
    use std::os::unix::ffi::OsStrExt;
    let ground = Ground::new();
    for n in 0..2_010 {
        ground.file(&format!("{n:05}"), "");
    }
    std::fs::write(ground.path.join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
    ground.link("000-link", "/nowhere");
    let Report::List(report) = perform(Action::List { path: ground.ws("") }).unwrap() else { panic!() };
    assert_eq!((report.entries.len(), report.more), (2_000, 12));
    assert_eq!((report.entries[0].name.as_str(), report.entries[0].kind), ("000-link", FileKind::Symlink));
    assert_eq!(report.entries[1].name, "00000");
    let few = Ground::new();
    std::fs::write(few.path.join(std::ffi::OsStr::from_bytes(b"caf\xe9")), "").unwrap();
    let Report::List(report) = perform(Action::List { path: few.ws("") }).unwrap() else { panic!() };
    assert_eq!(report.entries[0].name, "caf\u{fffd}");
}

#[test]
fn other_kinds_are_not_performed() {
    let action = Action::Tool(ToolUse::judged("x".into(), None, "{}".into()));
    assert!(perform(action).unwrap_err().contains("`tool` is not an action on files"));
}

fn timed<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static, ms: u64) -> Option<T> {
    let (tell, hear) = mpsc::channel();
    std::thread::spawn(move || tell.send(work()));
    hear.recv_timeout(Duration::from_millis(ms)).ok()
}

/// Root would read everything; a worker inside the walls has no capability either.
fn drop_capabilities() {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none }).unwrap();
}
