use super::*;
use bailey_protocol::{Digest, Outcome};

fn file(content: &[u8]) -> FileReport {
    let (size, digest) = (content.len() as u64, Some(Digest::of(content)));
    FileReport { content: Blob(content.to_vec()), size, digest, mode: 0o644 }
}

fn write(old: Option<&[u8]>, new: &str) -> Result<Plan, String> {
    let base = old.map(file);
    let new = Some(new.as_bytes().to_vec());
    plan(vec![NewContent { path: "x".into(), base: base.as_ref(), source: None, new }])
}

#[test]
fn a_mark_over_a_secret_is_refused() {
    let error = write(Some(b"KEY=sk-123\n"), "KEY=[redacted:KEY]\n").unwrap_err();
    assert!(error.starts_with("refused to write `[redacted:KEY]` to `x`"), "{error}");
    assert!(write(None, "[redacted:A]").is_err());
    // One more than before stands for a secret, too.
    assert!(write(Some(b"[redacted:A] and secret"), "[redacted:A] and [redacted:A]").is_err());
    assert!(write(Some(b"[redacted:B]"), "[redacted:A]").is_err());
}

/// The control: the same text without its mark, with a mark that was there, and with what only looks like
/// one.
#[test]
fn other_text_is_not_refused() {
    for (old, new) in [
        (Some("KEY=sk-123\n"), "KEY=other\n"),
        (Some("see [redacted:KEY]\n"), "now see [redacted:KEY]!\n"),
        (Some("[redacted:A][redacted:A]"), "[redacted:A]"),
        (None, "[redacted:never closed\n]"),
        (None, "redacted:KEY"),
    ] {
        assert!(matches!(write(old.map(str::as_bytes), new), Ok(Plan::Act(_))), "{new}");
    }
}

#[test]
fn a_move_may_carry_its_marks() {
    let moved = |source: &'static [u8]| {
        let new = Some(b"[redacted:A]".to_vec());
        plan(vec![NewContent { path: "y".into(), base: None, source: Some(source), new }])
    };
    assert!(moved(b"[redacted:A]").is_ok());
    assert!(moved(b"the secret").is_err());
}

#[test]
fn a_change_names_what_it_replaces() {
    let Ok(Plan::Act(Action::Change { files })) = write(Some(b"old"), "new") else { panic!() };
    assert_eq!(files[0].base, Some(Digest::of(b"old")));
    let Ok(Plan::Act(Action::Change { files })) = write(None, "new") else { panic!() };
    assert_eq!(files[0].base, None);
}

#[test]
fn what_was_not_read_whole_is_not_changed() {
    let mut large = file(b"head");
    (large.digest, large.size) = (None, 9_000_000);
    let outcome =
        Outcome { status: Status::Done, enforced: None, duration_ms: 0, report: Report::File(large) };
    let error = base(&"x".into(), &Output::new(outcome)).unwrap_err();
    assert!(error.contains("9000000 bytes, more than can be read at once"), "{error}");
    let error = base(&"x".into(), &Output::failed("it is masked")).unwrap_err();
    assert_eq!(error, "cannot change `x`, because reading it failed: it is masked");
}
