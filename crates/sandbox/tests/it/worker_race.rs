//! A directory is swapped for a symlink to the outside, all the time, while it is searched, read and written
//! (attack A57). The control runs in the same loop: a reader that follows symlinks does leak.

use super::{Ground, perform};
use bailey_protocol::{Action, FileChange, Report};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Each round is a search by content, one by name, a read, a listing and a change.
const ROUNDS: u64 = 2_500;

#[test]
fn a_swapped_directory_never_shows_or_takes_anything_outside() {
    let ground = Ground::new();
    for n in 0..20 {
        ground.file(&format!("ws/dir/{n}.txt"), "inside\n");
    }
    ground.file("ws/dir/same.txt", "inside\n");
    ground.file("outside/same.txt", "OUTSIDE\n");
    ground.file("outside/only-outside.txt", "OUTSIDE\n");
    ground.link("ws/other", "../outside");
    let stop = Arc::new(AtomicBool::new(false));
    let swaps = Arc::new(AtomicU64::new(0));
    let swapper = std::thread::spawn({
        let (stop, swaps, dir, other) =
            (stop.clone(), swaps.clone(), ground.text("ws/dir"), ground.text("ws/other"));
        move || {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &dir, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
                std::thread::yield_now();
            }
        }
    });
    let (mut leaks, mut seen, mut refused) = (0_u64, 0_u64, 0_u64);
    let mut round = 0;
    while round < ROUNDS || swaps.load(Ordering::Relaxed) < 10_000 {
        let naive = std::fs::read_to_string(ground.path.join("ws/dir/same.txt")).unwrap_or_default();
        leaks += u64::from(naive.contains("OUTSIDE"));
        for (pattern, glob) in [(Some("SIDE|side"), None), (None, Some("*.txt"))] {
            let (pattern, glob) = (pattern.map(Into::into), glob.map(Into::into));
            let report = perform(Action::Search { root: ground.ws("ws"), pattern, glob });
            let Report::Search(report) = report.unwrap() else { panic!() };
            seen += report.found.len() as u64;
            for found in report.found {
                assert!(!found.text.contains("OUTSIDE") && !found.path.contains("only-outside"), "{found:?}");
            }
        }
        match perform(Action::Read { path: ground.ws("ws/dir/same.txt") }) {
            Ok(Report::File(file)) => assert_eq!(file.content.0, b"inside\n"),
            _ => refused += 1,
        }
        if let Ok(Report::List(list)) = perform(Action::List { path: ground.ws("ws/dir") }) {
            assert!(list.entries.iter().all(|entry| entry.name != "only-outside.txt"));
        }
        let file = FileChange { path: ground.ws("ws/dir/written"), base: None, new: Some("x".into()) };
        perform(Action::Change { files: vec![file] }).ok();
        assert!(!ground.has("outside/written"));
        round += 1;
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert!(leaks > 0, "the control never leaked: there was no race in {round} rounds");
    assert!(seen > 0 && refused > 0 && refused < round, "{seen} hits, {refused} of {round} reads refused");
}
