use super::{KeyFile, PATIENCE, SIZE, SLOT, State, parse};
use std::{fs, os::unix::fs::PermissionsExt as _, sync::mpsc, thread, time::Duration};

#[test]
fn what_another_process_writes_while_the_file_is_made_stays() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("journal.key");
    let other = fs::File::create(&path).unwrap();
    other.lock().unwrap();
    let opening = thread::spawn({
        let path = path.clone();
        move || KeyFile::open(&path).map(drop)
    });
    thread::sleep(Duration::from_millis(100));
    assert!(!opening.is_finished(), "the control: it came while the other one was at it");
    let written = vec![7; usize::try_from(SIZE).unwrap()];
    fs::write(&path, &written).unwrap();
    other.unlock().unwrap();
    opening.join().unwrap().unwrap();
    assert_eq!(fs::read(&path).unwrap(), written);
}

#[test]
fn a_file_that_others_may_read_is_taken_from_them_and_a_short_one_is_lengthened() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("journal.key");
    fs::write(&path, "short").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    KeyFile::open(&path).unwrap();
    let about = fs::metadata(&path).unwrap();
    assert_eq!((about.permissions().mode() & 0o777, about.len()), (0o600, SIZE));
    assert!(fs::read(&path).unwrap().starts_with(b"short\0"));
}

#[test]
fn a_short_one_that_another_process_keeps_locked_is_refused_and_named() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("journal.key");
    let other = fs::File::create(&path).unwrap();
    other.lock().unwrap();
    let (done, opened) = mpsc::channel();
    thread::spawn({
        let path = path.clone();
        move || done.send(KeyFile::open(&path).map(drop))
    });
    let refused = opened.recv_timeout(6 * PATIENCE).expect("it waits without an end").unwrap_err();
    let told = refused.to_string();
    assert!(told.contains("does not let go of it") && told.contains(path.to_str().unwrap()), "{told}");
    assert_eq!(fs::metadata(&path).unwrap().len(), 0, "it was written without the lock");
    other.unlock().unwrap();
    KeyFile::open(&path).expect("the control: let go of, it is opened");
}

/// Whatever its number, as where the line of another journal takes the place of one: what is there stays
/// until that is on disk.
#[test]
fn a_state_is_written_into_the_slot_that_is_not_in_use() {
    for epoch in [1000, 1001] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("journal.key");
        let keys = KeyFile::open(&path).unwrap();
        let held = keys.try_lock().unwrap().unwrap();
        let whole = || {
            let bytes = fs::read(&path).unwrap();
            let slot = |slot: usize| parse(bytes[slot * SLOT..][..SLOT].try_into().unwrap());
            [0, 1].map(|number| slot(number).map(|state| state.epoch))
        };
        keys.write(&held, &State { epoch, ..State::begin().unwrap() }).unwrap();
        assert_eq!(whole(), [Some(epoch), None]);
        let old = fs::read(&path).unwrap();
        keys.write(&held, &State { epoch: 1, ..State::begin().unwrap() }).unwrap();
        assert_eq!(whole(), [None, Some(1)], "behind {epoch}");
        // A crash before the old one is erased: that one counts, and the next is written over the other.
        let both = [&old[..SLOT], &fs::read(&path).unwrap()[SLOT..]].concat();
        fs::write(&path, both).unwrap();
        assert_eq!(keys.newest().unwrap().unwrap().epoch, epoch);
        keys.write(&held, &State { epoch: 2, ..State::begin().unwrap() }).unwrap();
        assert_eq!(whole(), [None, Some(2)], "behind {epoch}");
    }
}
