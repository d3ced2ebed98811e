use super::{Changed, Part, Story, counted};
use crate::{cli::Color, print::Printer};
use bailey_protocol::Happening;

#[test]
fn files_go_to_the_project_and_back() {
    let mut story = Story { changed: vec![Changed::new("kept"), Changed::new("moved")], ..Story::default() };
    let paths = |files: &[Changed]| files.iter().map(|file| file.path.clone()).collect::<Vec<_>>();
    story.merged("apply", &["moved".into(), "new".into()]);
    assert_eq!(
        (paths(&story.changed), paths(&story.applied)),
        (vec!["kept".into()], vec!["new".into(), "moved".into()])
    );
    story.merged("undo", &["moved".into()]);
    assert_eq!(paths(&story.applied), ["new"]);
}

#[test]
fn lines_are_counted_by_the_hunks() {
    let diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n one\n--- two\n+++ two\n+three\n--- a/y\n+++ b/y\nbinary file of 3 bytes\n\
                diff --git a/m b/m\nold mode 100644\nnew mode 100755\n\
                diff --git a/n b/n\nold mode 100644\nnew mode 100755\n--- a/n\n+++ b/n\n@@ -1 +1 @@\n-a\n+b\n\
                --- /dev/null\n+++ b/z\n@@ -0,0 +1 @@\n+z\n\\ No newline at end of file\n";
    let files: Vec<String> = ["x", "y", "m", "n", "z"].map(Into::into).into();
    let counts: Vec<(usize, usize)> =
        counted(diff, &files).iter().map(|file| (file.more, file.less)).collect();
    assert_eq!(counts, [(2, 1), (0, 0), (0, 0), (1, 1), (1, 0)]);
}

/// Of a turn that was cut off a story knows the rest: it says so, and not that nothing was done.
#[test]
fn of_a_turn_that_was_cut_off_no_more_is_told_than_is_known() {
    let printer = Printer::new(false, Color::Never);
    let mut story = Story::default();
    let told = |story: &Story| story.lines(&printer, 100, Part::Turn).join("\n");
    assert!(told(&story).contains("no tool was called"), "the control");
    story.take(&Happening::GoingOn);
    let lines = told(&story);
    assert!(lines.contains("before it was cut off") && lines.contains("since it was cut off: "), "{lines}");
    assert!(!lines.contains("no tool was called"), "{lines}");
    story.calls.insert("command.run".into(), 2);
    let lines = told(&story);
    assert!(lines.contains("2 command.run") && lines.contains("before it was cut off"), "{lines}");
}
