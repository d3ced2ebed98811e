use super::{KeyFile, SIZE};
use std::{fs, os::unix::fs::PermissionsExt as _, thread, time::Duration};

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
