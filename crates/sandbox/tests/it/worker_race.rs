//! A directory is swapped for a symlink to the outside, all the time, while it is searched, read and written
//! (attack A57). The control runs in the same loop: a reader that follows symlinks does leak.

use super::{Ground, perform};
use bailey_protocol::{Action, FileChange, Report};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Each round is a search by content, one by name, a read, a listing and a change.
const ROUNDS: u64 = 2_500;
/// How long two threads may take to meet in a race, on a machine with other work.
const RACE_MAX: Duration = Duration::from_secs(60);

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
    let begin = Instant::now();
    let mut round = 0;
    while round < ROUNDS || swaps.load(Ordering::Relaxed) < 10_000 || leaks == 0 {
        assert!(
            begin.elapsed() < RACE_MAX,
            "{round} rounds without a race: the control leaked {leaks} times"
        );
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
    assert!(seen > 0 && refused > 0 && refused < round, "{seen} hits, {refused} of {round} reads refused");
}

/// The user's editor saves (by rename) at every moment of an apply: what it wrote last is always there in the
/// end. The control compares first and renames then, as one would; in the same rounds it loses saves.
#[test]
fn a_save_in_the_middle_of_an_apply_is_never_lost() {
    let (mut lost, mut kept) = (0, 0);
    let near = std::path::Path::new("/dev/shm");
    let mut usual = Duration::ZERO;
    let begin = Instant::now();
    let mut round = 0;
    // More rounds where a busy machine ran the two threads one after the other so far.
    while round < 300 || lost == 0 || kept == 0 {
        assert!(
            round < 300 || begin.elapsed() < RACE_MAX,
            "{round} rounds: {lost} lost by the control, {kept} kept"
        );
        let ground = if near.is_dir() { Ground::within(near) } else { Ground::new() };
        for at in ["project/edit", "control/edit"] {
            ground.file(at, "base");
        }
        ground.file("upper/edit", "session");
        let files = super::merge::all(&ground);
        while_saving(&ground, "control/edit", round, Duration::from_micros(round % 100 * 10), || {
            if ground.read("control/edit") == "base" {
                ground.file("control/new", "session");
                std::thread::sleep(Duration::from_millis(2));
                std::fs::rename(ground.path.join("control/new"), ground.path.join("control/edit")).unwrap();
            }
        });
        lost += u64::from(ground.read("control/edit") != "user");
        // From before the first look to after the last rename, again and again.
        let delay = usual.mul_f64((round % 30) as f64 / 20.0);
        while_saving(&ground, "project/edit", round, delay, || {
            let start = Instant::now();
            let states = super::merge::merge(&ground, bailey_protocol::MergeKind::Apply, &files).unwrap();
            usual = (usual + start.elapsed()) / 2;
            kept += u64::from(matches!(states[0], bailey_protocol::MergeState::Conflict { .. }));
        });
        assert_eq!(ground.read("project/edit"), "user", "round {round}");
        round += 1;
    }
}

/// Runs `work` while another thread saves `user` over the file, `delay` after the one of the two that begins
/// first: in turns, for on a single free core the first may be through before the second is let in.
fn while_saving(ground: &Ground, at: &str, round: u64, delay: Duration, work: impl FnOnce()) {
    let [saving, working] = [AtomicBool::new(false), AtomicBool::new(false)];
    let (saved, target) = (ground.file("saved", "user"), ground.path.join(at));
    let first = if round.is_multiple_of(2) { &saving } else { &working };
    let begin = |mine: &AtomicBool| {
        mine.store(true, Ordering::Release);
        while !first.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        let saver = scope.spawn(|| {
            begin(&saving);
            let start = Instant::now();
            while start.elapsed() < delay {
                std::thread::yield_now();
            }
            std::fs::rename(&saved, &target).unwrap();
        });
        begin(&working);
        work();
        saver.join().unwrap();
    });
}
