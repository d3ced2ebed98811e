use super::{Both, Threeway, splices};
use bailey_protocol::{Blob, Digest, FileDiff, FileKind, FileState, Part, file_state};
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// The new text of the project; `None` when both sides changed the same lines.
fn merged(base: &str, old: &str, new: &str) -> Option<String> {
    let splices = splices(base.as_bytes(), old.as_bytes(), new.as_bytes()).ok()?;
    let part = Part { of: Digest::of(b""), mode: 0o644, splices, rebases: true };
    Some(String::from_utf8(part.compose(old.as_bytes(), new.as_bytes()).unwrap()).unwrap())
}

#[test]
fn changes_apart_from_each_other_are_put_together() {
    for (base, old, new, expected) in [
        ("1\n2\n3\n", "one\n2\n3\n", "1\n2\nthree\n", "one\n2\nthree\n"),
        ("1\n2\n3\n", "2\n3\n", "1\n2\n3\n4\n", "2\n3\n4\n"),
        ("1\n2\n3\n4\n5\n", "0\n1\n2\n3\n4\n5\n", "1\n2\n3\n5\n", "0\n1\n2\n3\n5\n"),
        // The same change on both sides comes once.
        ("1\n2\n3\n", "one\n2\n3\n", "one\n2\nthree\n", "one\n2\nthree\n"),
        ("1\n", "1\nx\n", "1\nx\n", "1\nx\n"),
        // A last line without an end, on one side or on all of them.
        ("1\n2\n3", "one\n2\n3", "1\n2\nthree", "one\n2\nthree"),
        ("1\n2\n3", "one\n2\n3", "1\n2\n3\n", "one\n2\n3\n"),
        // Line ends belong to lines.
        ("1\r\n2\r\n3\r\n", "one\r\n2\r\n3\r\n", "1\r\n2\r\nthree\r\n", "one\r\n2\r\nthree\r\n"),
        ("1\n2\n3\n", "1\r\n2\n3\n", "1\n2\n3\r\n", "1\r\n2\n3\r\n"),
        ("", "", "1\n", "1\n"),
        ("", "1\n", "", "1\n"),
        ("1\n", "", "1\n", ""),
        ("1\n", "1\n", "", ""),
    ] {
        assert_eq!(merged(base, old, new).as_deref(), Some(expected), "{base:?} {old:?} {new:?}");
    }
}

#[test]
fn changes_that_touch_are_an_overlap_at_the_line_where_they_begin() {
    for (base, old, new, line) in [
        ("1\n2\n3\n", "1\ntwo\n3\n", "1\nTWO\n3\n", 1),
        ("1\n2\n3\n", "1\ntwo\n3\n", "1\n2\nTHREE\n", 1),
        ("1\n2\n3\n", "0\n1\ntwo\n3\n", "1\n3\n", 2),
        // The order of two lines at one place cannot be told.
        ("1\n2\n", "1\na\n2\n", "1\nb\n2\n", 1),
        ("", "a\n", "b\n", 0),
        ("1", "1\n2", "1\n3", 0),
        ("1\n", "", "1\n2\n", 0),
        // A change of all line ends is a change of all lines.
        ("1\n2\n", "1\r\n2\r\n", "1\ntwo\n", 0),
    ] {
        let merged = splices(base.as_bytes(), old.as_bytes(), new.as_bytes());
        assert_eq!(merged, Err(line), "{base:?} {old:?} {new:?}");
    }
}

/// A text of short lines, many of them equal. Its last line may have no end.
fn text() -> impl Strategy<Value = String> {
    (prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "", "d\r"]), 0..12), any::<bool>())
        .prop_map(|(lines, ends)| lines.join("\n") + if ends { "\n" } else { "" })
}

/// For each line of a base, the change on each side: the line goes, is replaced, gets one more line after it,
/// or stays. All lines of the base are different.
fn edits() -> impl Strategy<Value = Vec<(u8, u8)>> {
    prop::collection::vec((0..8_u8, 0..8_u8), 0..12)
}

fn edited(edits: &[(u8, u8)], side: &str, of: impl Fn(&(u8, u8)) -> u8) -> String {
    let lines = edits.iter().enumerate().map(|(n, edit)| match of(edit) {
        0 => String::new(),
        1 => format!("{side}{n}\n"),
        2 => format!("{n}\n{side}{n}\n"),
        _ => format!("{n}\n"),
    });
    lines.collect()
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn an_unchanged_side_gives_the_other_one(base in text(), side in text()) {
        prop_assert_eq!(merged(&base, &base, &side), Some(side.clone()));
        prop_assert_eq!(merged(&base, &side, &base), Some(side.clone()));
        prop_assert_eq!(merged(&base, &side, &side), Some(side));
    }

    #[test]
    fn it_is_the_same_from_both_sides(base in text(), one in text(), other in text()) {
        prop_assert_eq!(merged(&base, &one, &other), merged(&base, &other, &one));
    }

    #[test]
    fn it_holds_each_change_of_either_side_and_nothing_else(edits in edits()) {
        let base = edited(&edits, "", |_| 7);
        let one = edited(&edits, "x", |edit| edit.0);
        let other = edited(&edits, "y", |edit| edit.1);
        if let Some(merged) = merged(&base, &one, &other) {
            let (base, one, other) = (lines(&base), lines(&one), lines(&other));
            for line in &base {
                prop_assert_eq!(lines(&merged).contains(line), one.contains(line) && other.contains(line));
            }
            for line in one.iter().chain(&other).filter(|line| !base.contains(line)) {
                prop_assert!(lines(&merged).contains(line), "{:?} is lost in {:?}", line, merged);
            }
            let own: Vec<_> = lines(&merged).into_iter().filter(|line| !base.contains(line)).collect();
            prop_assert!(own.iter().all(|line| one.contains(line) || other.contains(line)));
        } else {
            let touches = edits.iter().enumerate().any(|(n, edit)| {
                let before = n.checked_sub(1).and_then(|n| edits.get(n)).map_or((7, 7), |edit| *edit);
                let is = |edit: u8| edit < 3;
                (is(edit.0) && (is(edit.1) || is(before.1))) || (is(edit.1) && is(before.0))
            });
            prop_assert!(touches, "changes apart from each other are no overlap: {:?}", edits);
        }
    }
}

fn side(content: &str, mode: u32) -> FileState {
    let (state, size) = (file_state(mode, content.as_bytes()), content.len() as u64);
    FileState { state, kind: FileKind::File, mode, size, content: Some(Blob::from(content)) }
}

fn compared(base: FileState, old: FileState, new: FileState) -> FileDiff {
    let (base, old, new) = (Some(base), Some(old), Some(new));
    FileDiff { path: "/w/a".into(), old, new, base, refused: None, remarks: Vec::new(), marks: Vec::new() }
}

/// A change to the base, the project's side and the layer's side.
type Spoil = fn(&mut [FileState; 3]);

#[test]
fn only_text_on_a_base_that_was_recorded_is_put_together() {
    let sides = || [side("1\n2\n3\n", 0o644), side("one\n2\n3\n", 0o644), side("1\n2\nthree\n", 0o644)];
    let [base, ..] = sides();
    let recorded = Some(base.state);
    let merge = |change: Spoil, recorded| {
        let mut sides = sides();
        change(&mut sides);
        let [base, old, new] = sides;
        Threeway::default().merge(&compared(base, old, new), recorded)
    };
    let Both::Merged(state, part) = merge(|_| {}, recorded) else { panic!("the control is put together") };
    assert_eq!(state, side("one\n2\nthree\n", 0o644));
    assert!(part.rebases && part.of == sides()[2].state);

    assert_eq!(merge(|_| {}, None), Both::Unknown, "no base was recorded");
    assert_eq!(merge(|_| {}, Some(Digest::of(b"x"))), Both::Unknown, "another base was recorded");
    let spoils: [(&str, Spoil); 6] = [
        ("a mode of the user's", |it| it[1] = side("one\n2\n3\n", 0o755)),
        ("a mode of the session's", |it| it[2] = side("1\n2\nthree\n", 0o755)),
        ("no text", |it| it[2] = side("1\n2\nthree\0\n", 0o644)),
        ("a link", |it| it[1].kind = FileKind::Symlink),
        ("content that is not at hand", |it| it[1].content = None),
        ("content without its key", |it| it[1].content = Some(Blob::from("[redacted]\n2\n3\n"))),
    ];
    for (what, spoil) in spoils {
        assert_eq!(merge(spoil, recorded), Both::Unknown, "{what}");
    }
    assert_eq!(merge(|it| it[2] = side("1\n2\n3\n", 0o644), recorded), Both::Same);
    assert_eq!(merge(|it| it[2] = side("ONE\n2\n3\n", 0o644), recorded), Both::Overlapping(1));
}

const TOO_MANY: &str = "1 MiB of short lines in no order";

/// The time that a hostile file may cost. The bound is loose, because other tests run at the same time.
#[test]
fn a_hostile_text_costs_a_bounded_time() {
    let few = |seed: usize| {
        let line = |n: usize| if (n * (n + seed) / 7).is_multiple_of(3) { "a\n" } else { "b\n" };
        (0..100_000).map(line).collect::<String>()
    };
    // As many lines as a kept text can have, of two kinds, in no order.
    let most = |mut seed: u32| {
        let mut text = String::with_capacity(1 << 20);
        while text.len() + 2 <= 1 << 20 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.push_str(if seed >> 31 == 0 { "\n" } else { "a\n" });
        }
        text
    };
    let own = |side: &str| (0..100_000).map(|n| format!("{side}{n}\n")).collect::<String>();
    let long = |byte: &str| byte.repeat(1 << 20);
    for (what, texts) in [
        ("100,000 short lines, many of them equal", [few(0), few(1), few(5)]),
        (
            "100,000 equal lines",
            ["a\n".repeat(100_000), "a\n".repeat(99_999), "b\n".to_owned() + &"a\n".repeat(99_999)],
        ),
        ("100,000 lines of each side's own", [own("x"), own("y"), own("z")]),
        (TOO_MANY, [most(1), most(2), most(3)]),
        ("one line of 1 MiB", [long("x"), long("y"), long("z")]),
    ] {
        let begin = Instant::now();
        let [base, old, new] = texts.map(|text| side(&text, 0o644));
        let recorded = Some(base.state);
        let file = compared(base, old, new);
        let both = Threeway::default().merge(&file, recorded);
        let took = begin.elapsed();
        println!("{what}: {took:?}, {}", if matches!(both, Both::Merged(..)) { "merged" } else { "kept" });
        assert!(took < Duration::from_secs(20), "{what}: {took:?}");
        assert_eq!(both == Both::Unknown, what == TOO_MANY, "{what}: {both:?}");
    }
    let spent = &mut Threeway { left: Duration::ZERO };
    let file = compared(side("1\n", 0o644), side("0\n1\n2\n", 0o644), side("1\n", 0o644));
    assert_eq!(spent.merge(&file, Some(side("1\n", 0o644).state)), Both::Unknown, "no time is left");
}
