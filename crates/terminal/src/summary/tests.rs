use super::{Changed, Summary, counted};
use crate::{print::Color, print::Printer};
use bailey_protocol::{Answer, ApprovalId, Card, Happening, PathCount, SessionId};

#[test]
fn files_go_to_the_project_and_back() {
    let mut summary =
        Summary { changed: vec![Changed::new("kept"), Changed::new("moved")], ..Summary::default() };
    let paths = |files: &[Changed]| files.iter().map(|file| file.path.clone()).collect::<Vec<_>>();
    summary.merged("apply", &["moved".into(), "new".into()]);
    assert_eq!(
        (paths(&summary.changed), paths(&summary.applied)),
        (vec!["kept".into()], vec!["new".into(), "moved".into()])
    );
    summary.merged("undo", &["moved".into()]);
    assert_eq!(paths(&summary.applied), ["new"]);
}

/// If the counts went by position in a list, a FIFO before them would give each path the numbers of the next
/// path, and the last path would get no numbers.
#[test]
fn counts_go_by_path_and_every_path_is_told() {
    let count = |path: &str, more, less, now: Option<&str>| PathCount {
        path: path.into(),
        more,
        less,
        now: now.map(Into::into),
    };
    let counts = [
        count("src/main.rs", 1, 0, None),
        count("notes.txt", 300, 2, None),
        count("aaa", 0, 0, Some("not compared")),
    ];
    let files = ["aaa", "evil\n+++ b/x", "notes.txt", "src/main.rs"].map(String::from);
    let printer = Printer::new(false, Color::Never);
    let summary = |files: &[String], counts: &[PathCount]| Summary {
        changed: counted(files, counts),
        ..Summary::default()
    };
    let told = summary(&files, &counts).changes(&printer);
    assert_eq!(told, ["aaa  not compared", "evil\n+++ b/x", "notes.txt  +300 −2", "src/main.rs  +1 −0"]);
    let many: Vec<String> = (0..9).map(|at| format!("file-{at}")).collect();
    let lines = summary(&many, &[]).lines(&printer, 100);
    let named = lines.iter().filter(|line| line.contains("file-")).count();
    assert!(lines.iter().any(|line| line.contains(&format!("and {} more", many.len() - named))), "{lines:?}");
}

/// After a turn was cut off, a summary knows only the rest of the turn. It says so, and does not say that
/// nothing was done.
#[test]
fn of_a_turn_that_was_cut_off_no_more_is_told_than_is_known() {
    let printer = Printer::new(false, Color::Never);
    let mut summary = Summary::default();
    let told = |summary: &Summary| summary.lines(&printer, 100).join("\n");
    assert!(told(&summary).contains("no tool was called"), "the control");
    summary.take(&Happening::GoingOn);
    let lines = told(&summary);
    assert!(
        lines.contains("earlier work is not shown here") && lines.contains("since the interruption: "),
        "{lines}"
    );
    assert!(!lines.contains("no tool was called"), "{lines}");
    summary.calls.insert("command.run".into(), 2);
    let lines = told(&summary);
    assert!(lines.contains("2 command.run") && lines.contains("earlier work is not shown here"), "{lines}");
}

/// Control: after the answer the next step is another message.
#[test]
fn the_next_step_of_an_open_question_is_its_answer() {
    let printer = Printer::new(false, Color::Never);
    let session = SessionId::parse("01890a5d-ac96-774b-bcce-b302099a8057");
    let mut summary = Summary { session, ..Summary::default() };
    let (id, again) = (ApprovalId::new([7; 16]), "resume 099a8057 \"…\"");
    let card = Card {
        title: String::new(),
        reasons: Vec::new(),
        parts: Vec::new(),
        origins: Vec::new(),
        caveats: Vec::new(),
        once: false,
        pattern: None,
        reasoned: false,
        whole: true,
    };
    summary.take(&Happening::Ask { id, call: None, card });
    let told = summary.lines(&printer, 100).join("\n");
    assert!(told.contains("bailey approvals approve 07070707") && !told.contains(again), "{told}");
    summary.take(&Happening::Answered { id, answer: Answer::Yes, why: String::new() });
    let told = summary.lines(&printer, 100).join("\n");
    assert!(!told.contains("approvals") && told.contains(again), "{told}");
}
