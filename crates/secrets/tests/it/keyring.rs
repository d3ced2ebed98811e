//! The kernel's own keyring, truly used.

use bailey_secrets::{Keyring, KeyringError};

/// A place of this test's own; `None`, with the reason printed, where there is no keyring.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn place(name: &str) -> Option<Keyring> {
    let place = Keyring::of(&format!("test-{name}-{}", std::process::id()));
    match place.read() {
        Err(KeyringError::Unavailable(error)) => {
            println!("SKIPPED: no keyring for this process: {error}");
            None
        }
        read => {
            assert!(read.unwrap().is_none());
            Some(place)
        }
    }
}

#[test]
fn what_is_kept_is_read_replaced_and_removed() {
    let Some(place) = place("kept") else { return };
    for text in ["A=1\n", "A=2\nB=\"ä\"\n"] {
        place.write(text).unwrap();
        assert_eq!(place.read().unwrap().unwrap().as_str(), text);
    }
    assert!(Keyring::of("test-of-another-home").read().unwrap().is_none());
    place.write("").unwrap();
    assert!(place.read().unwrap().is_none());
    place.write("").unwrap();
}

#[test]
fn another_process_of_the_user_reads_it() {
    let Some(place) = place("shared") else { return };
    place.write("A=1\n").unwrap();
    // What lies there is named, with who owns it, in a list of the kernel's.
    let keys = std::thread::spawn(|| std::fs::read_to_string("/proc/keys").unwrap()).join().unwrap();
    let line = keys.lines().find(|line| line.contains(&format!("bailey:test-shared-{}", std::process::id())));
    let line = line.unwrap_or_else(|| panic!("not listed: {keys}"));
    assert!(line.contains("3f3f0000"), "for this user alone: {line}");
    assert!(!keys.contains("A=1"));
    place.write("").unwrap();
}

#[test]
fn more_than_a_key_holds_is_refused() {
    let Some(place) = place("long") else { return };
    assert_eq!(place.write(&"x".repeat(40_000)), Err(KeyringError::TooLong(40_000)));
    assert!(place.read().unwrap().is_none());
}
