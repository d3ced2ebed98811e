use super::{Asker, CrashPoint, swap};
use crate::{
    sys::{Instruction, SeccompSecret, set_seccomp_filter},
    wire::Swapped,
};
use bailey_protocol::AGENT_FILE_BYTES_MAX;
use std::{
    cell::RefCell,
    fs,
    os::unix::fs::{MetadataExt as _, symlink},
    path::Path,
};

/// Somebody who waits to the end.
impl<F: Fn(CrashPoint)> Asker for F {
    fn waits(&self) -> bool {
        true
    }

    fn reached(&self, step: CrashPoint) {
        self(step);
    }
}

/// Somebody who was killed while they waited.
struct Gone;

impl Asker for Gone {
    fn waits(&self) -> bool {
        false
    }

    fn reached(&self, step: CrashPoint) {
        assert_eq!(step, CrashPoint::Asked);
    }
}

fn quietly(path: &Path, old: Option<&str>, new: Option<&str>) -> Swapped {
    swap(path, old.map(str::as_bytes), new.map(str::as_bytes), &|_: CrashPoint| {})
}

fn is_refused(swapped: &Swapped, because: &str) -> bool {
    matches!(swapped, Swapped::Refused(reason) if reason.contains(because))
}

#[test]
fn it_is_made_changed_looked_at_and_removed() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("agent.toml");
    assert_eq!(quietly(&path, None, None), Swapped::Done, "there is none");
    assert_eq!(quietly(&path, None, Some("a")), Swapped::Done);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert_eq!(quietly(&path, None, Some("b")), Swapped::Differs);
    assert_eq!(quietly(&path, Some("b"), Some("c")), Swapped::Differs);
    assert_eq!(fs::read_to_string(&path).unwrap(), "a");
    assert_eq!(quietly(&path, Some("a"), Some("a")), Swapped::Done);
    assert_eq!(quietly(&path, Some("a"), Some("b")), Swapped::Done);
    assert_eq!(fs::read_to_string(&path).unwrap(), "b");
    assert_eq!(quietly(&path, Some("b"), None), Swapped::Done);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn whatever_else_stands_there_stays() {
    let home = tempfile::tempdir().unwrap();
    let (path, other) = (home.path().join("agent.toml"), home.path().join("config.toml"));
    fs::write(&other, "x").unwrap();
    symlink(&other, &path).unwrap();
    assert!(is_refused(&quietly(&path, Some("x"), Some("y")), "is a link"));
    fs::remove_file(&path).unwrap();
    fs::hard_link(&other, &path).unwrap();
    assert!(is_refused(&quietly(&path, Some("x"), Some("y")), "a hard link"));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(is_refused(&quietly(&path, None, Some("y")), "is no file"));
    fs::remove_dir(&path).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    assert!(is_refused(&quietly(&path, None, Some("y")), "is no file"), "and nobody waits for a writer");
    fs::remove_file(&path).unwrap();
    let long = "x".repeat(AGENT_FILE_BYTES_MAX + 1);
    assert!(is_refused(&quietly(&path, None, Some(&long)), "at most"));
    fs::write(&path, &long).unwrap();
    assert!(is_refused(&quietly(&path, Some(&long), Some("y")), "is longer"));
    fs::remove_file(&path).unwrap();
    if rustix::process::geteuid().is_root() {
        fs::write(&path, "x").unwrap();
        std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
        assert!(is_refused(&quietly(&path, Some("x"), Some("y")), "somebody else"));
        fs::remove_file(&path).unwrap();
    }
    assert_eq!(fs::read_to_string(&other).unwrap(), "x");
    // The control: where nothing stands in its way, it is written, also over what a killed one left.
    symlink(&other, home.path().join(".agent.toml.new")).unwrap();
    assert_eq!(quietly(&path, None, Some("y")), Swapped::Done);
    assert_eq!(
        (fs::read_to_string(&other).unwrap(), fs::read_to_string(&path).unwrap()),
        ("x".into(), "y".into())
    );
}

#[test]
fn at_each_step_the_file_is_the_old_one_or_the_new_one() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("agent.toml");
    let (old, new) = ("o".repeat(9_000), "n".repeat(16_000));
    fs::write(&path, &old).unwrap();
    let seen = RefCell::new(Vec::new());
    let look = |step: CrashPoint| seen.borrow_mut().push((step, fs::read_to_string(&path).unwrap()));
    assert_eq!(swap(&path, Some(old.as_bytes()), Some(new.as_bytes()), &look), Swapped::Done);
    let expected = [
        (CrashPoint::Asked, old.clone()),
        (CrashPoint::Beside, old),
        (CrashPoint::Renamed, new.clone()),
        (CrashPoint::Done, new),
    ];
    assert_eq!(seen.into_inner(), expected);
}

#[test]
fn of_two_sessions_at_once_one_changes_it() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("agent.toml");
    let second = RefCell::new(Vec::new());
    let meanwhile = |step: CrashPoint| {
        if step == CrashPoint::Beside {
            second.borrow_mut().push(quietly(&path, None, Some("second")));
        }
    };
    assert_eq!(swap(&path, None, Some(b"first"), &meanwhile), Swapped::Done);
    assert!(is_refused(&second.borrow()[0], "another session"), "{second:?}");
    assert_eq!(quietly(&path, None, Some("second")), Swapped::Differs, "it is the first one's");
    assert_eq!(fs::read_to_string(&path).unwrap(), "first");
}

#[test]
fn nothing_is_changed_for_somebody_who_is_gone() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("agent.toml");
    fs::write(&path, "old").unwrap();
    assert!(is_refused(&swap(&path, Some(b"old"), Some(b"new"), &Gone), "nobody waits"));
    assert!(is_refused(&swap(&path, Some(b"old"), None, &Gone), "nobody waits"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(swap(&path, Some(b"old"), Some(b"old"), &Gone), Swapped::Done, "a look changes nothing");
    assert_eq!(quietly(&path, Some("old"), Some("new")), Swapped::Done, "the control: who waits is heard");
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
}

/// From here on, of this thread, every fsync fails.
fn break_disk() {
    let instruction = |code: u32, jf: u8, k: u32| Instruction { code: code as u16, jt: 0, jf, k };
    let fails = libc::SECCOMP_RET_ERRNO | libc::EIO as u32;
    rustix::thread::set_no_new_privs(true).unwrap();
    set_seccomp_filter(
        &[
            instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
            instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, libc::SYS_fsync as u32),
            instruction(libc::BPF_RET | libc::BPF_K, 0, fails),
            instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        ],
        SeccompSecret::default(),
    )
    .unwrap();
}

#[test]
fn a_disk_that_fails_after_the_change_does_not_undo_what_is_said_of_it() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("agent.toml");
    fs::write(&path, "old").unwrap();
    let change = |broken: CrashPoint| {
        let fail = |step: CrashPoint| {
            if step == broken {
                break_disk()
            }
        };
        swap(&path, Some(b"old"), Some(b"new"), &fail)
    };
    // A filter is its thread's until that ends.
    let on_its_own =
        |broken: CrashPoint| std::thread::scope(|scope| scope.spawn(|| change(broken)).join().unwrap());
    assert!(
        is_refused(&on_its_own(CrashPoint::Asked), "cannot be written"),
        "the control: before it, nothing is done"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(on_its_own(CrashPoint::Renamed), Swapped::Done);
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
}
