use super::*;
use crate::diff;
use proptest::prelude::*;

/// Parses a patch of one updated file and applies it.
fn patched(text: &str, patch: &str) -> Result<String, PatchError> {
    let files = parse(patch)?;
    let [FilePatch { path, change: Change::Update(hunks), .. }] = files.as_slice() else {
        panic!("not one update: {files:?}")
    };
    apply(path, text, hunks)
}

fn check(text: &str, patch: &str, expected: &str) {
    assert_eq!(patched(text, patch).as_deref(), Ok(expected), "{patch}");
}

fn refused(text: &str, patch: &str) -> String {
    patched(text, patch).unwrap_err().to_string()
}

const HEAD: &str = "--- a/x\n+++ b/x\n";
const FILE: &str = "one\ntwo\nthree\nfour\nfive\n";

fn unified(body: &str) -> String {
    format!("{HEAD}{body}")
}

fn envelope(body: &str) -> String {
    format!("*** Begin Patch\n*** Update File: x\n{body}*** End Patch\n")
}

#[test]
fn applies_unified_hunks() {
    check(FILE, &unified("@@ -2,2 +2,2 @@\n two\n-three\n+3\n"), "one\ntwo\n3\nfour\nfive\n");
    check(
        FILE,
        &unified("@@ -1 +1 @@\n-one\n+1\n@@ -5 +5,2 @@\n-five\n+5\n+6\n"),
        "1\ntwo\nthree\nfour\n5\n6\n",
    );
    check(FILE, &unified("@@ -2,0 +3 @@\n+2.5\n"), "one\ntwo\n2.5\nthree\nfour\nfive\n");
    check(FILE, &unified("@@ -0,0 +1 @@\n+zero\n"), "zero\none\ntwo\nthree\nfour\nfive\n");
    check("a\n\nb\n", &unified("@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n"), "a\n\nc\n");
}

#[test]
fn finds_a_unique_place_when_the_line_number_is_wrong() {
    check(FILE, &unified("@@ -40,2 +40,2 @@\n two\n-three\n+3\n"), "one\ntwo\n3\nfour\nfive\n");
    check(FILE, &unified("@@ ... @@\n-four\n+4\n"), "one\ntwo\nthree\n4\nfive\n");
    // A stated line decides between equal places.
    check("a\nb\na\nb\n", &unified("@@ -3,2 +3,2 @@\n a\n-b\n+c\n"), "a\nb\na\nc\n");
    // Whole lines only.
    assert!(refused("xtwo\ntwoy\n", &unified("@@ -9 +9 @@\n-two\n+2\n")).contains("does not apply"));
}

#[test]
fn a_removed_line_may_look_like_a_header() {
    check("-- a\nb\n", &unified("@@ -1,2 +1 @@\n--- a\n b\n"), "b\n");
}

#[test]
fn line_ends_are_kept() {
    check("a\r\nb\r\n", &unified("@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n"), "a\r\nc\r\nd\r\n");
    check("a\nb", &unified("@@ -1,2 +1,2 @@\n a\n-b\n+c\n"), "a\nc");
    check("a\nb", &unified("@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n"), "a\nc\n");
    check("a\nb\n", &unified("@@ -2 +2 @@\n-b\n+b\n\\ No newline at end of file\n"), "a\nb");
    check("a\r\nb", &unified("@@ -1,2 +1,2 @@\n a\n-b\n+c\n"), "a\r\nc");
    check("a", &unified("@@ -1,0 +2 @@\n+b\n"), "a\nb");
}

#[test]
fn applies_the_envelope() {
    check(FILE, &envelope("@@\n two\n-three\n+3\n four\n"), "one\ntwo\n3\nfour\nfive\n");
    check(FILE, &envelope("-one\n+1\n@@\n-five\n+5\n*** End of File\n"), "1\ntwo\nthree\nfour\n5\n");
    let code = "class A:\n  def f():\n    pass\nclass B:\n  def f():\n    pass\n";
    let expected = "class A:\n  def f():\n    pass\nclass B:\n  def f():\n    return\n";
    check(code, &envelope("@@ class B:\n@@   def f():\n-    pass\n+    return\n"), expected);
    check(code, &envelope("@@ class B:\n   def f():\n-    pass\n+    return\n"), expected);
    check("a\n", &envelope("+b\n"), "a\nb\n");
}

#[test]
fn reads_creation_deletion_and_moves() {
    let git = "diff --git a/new.txt b/new.txt\nnew file mode 100644\nindex 000..e69\n--- /dev/null\n+++ b/new.txt\n\
               @@ -0,0 +1 @@\n+hi\ndiff --git a/empty b/empty\nnew file mode 100644\nindex 000..e69\n\
               diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n\
               diff --git a/from b/to\nsimilarity index 100%\nrename from from\nrename to to\n";
    let files = parse(git).unwrap();
    let names: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.to.as_deref())).collect();
    assert_eq!(names, [("new.txt", None), ("empty", None), ("gone", None), ("from", Some("to"))]);
    assert_eq!(files[0].change, Change::Create("hi\n".into()));
    assert_eq!(files[1].change, Change::Create(String::new()));
    assert!(matches!(&files[2].change, Change::Delete(hunks) if hunks[0].old == "bye\n"));

    let envelope = "*** Begin Patch\n*** Add File: a\n+x\n+\n*** Delete File: b\n*** Update File: c\n*** Move to: d\n\
                    @@\n-1\n+2\n*** End Patch";
    let files = parse(envelope).unwrap();
    assert_eq!(files[0].change, Change::Create("x\n\n".into()));
    assert_eq!(files[1].change, Change::Delete(vec![]));
    assert_eq!((files[2].path.as_str(), files[2].to.as_deref()), ("c", Some("d")));
}

#[test]
fn layout_around_a_patch_is_passed_over() {
    let patch = format!("Here it is:\n```diff\n{HEAD}@@ -1 +1 @@ fn x\n-one\n+1\n```\n\n");
    check(FILE, &patch, "1\ntwo\nthree\nfour\nfive\n");
    let mail =
        format!("From 1\nSubject: [PATCH] x\n\n---\n x | 2 +-\n\n{HEAD}@@ -1 +1 @@\n-one\n+1\n-- \n2.47\n");
    check(FILE, &mail, "1\ntwo\nthree\nfour\nfive\n");
}

#[test]
fn says_which_line_of_the_patch_is_wrong() {
    let cases = [
        ("", "the patch names no file"),
        ("hello\n", "the patch names no file"),
        ("@@ -1 +1 @@\n-a\n+b\n", "patch line 1: a hunk without a file"),
        ("*** Begin Patch\n*** Update File: x\n@@\n-a\n+b\n", "`*** End Patch` is missing"),
        ("*** Begin Patch\n*** Update File: x\n*** End Patch\n", "updated without a hunk"),
        (
            "*** Begin Patch\n*** Add File: x\nfoo\n*** End Patch\n",
            "patch line 3: each line of an added file",
        ),
        ("*** Begin Patch\nfoo\n*** End Patch\n", "patch line 2: expected `*** Add File"),
        (
            "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+c\n",
            "patch line 7: the hunk ends too early: its header promises 1",
        ),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n+c\n", "patch line 6: a line outside of any hunk"),
        (
            "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n-b\n+c\n",
            "patch line 5: the hunk has more lines than its header",
        ),
        ("--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "`x` and `y` are two files"),
        ("--- a/x\n+++ b/x\n", "`x` has no hunk"),
        ("--- a/x\n+++ b/x\n@@ -x +1 @@\n-a\n", "is no hunk header"),
        ("--- a/x\n+++ b/x\n@@ -1 +99999999999999999999999 @@\n-a\n", "is no hunk header"),
        ("--- \"a/x\"\n+++ \"b/x\"\n@@ -1 +1 @@\n-a\n+b\n", "quoted file names"),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "`old mode 100644` is not supported"),
        ("diff --git a/x b/x\nnew file mode 120000\n", "mode 100644, not 120000"),
        ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "binary content"),
        (
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/./x\n+++ b/./x\n@@ -1 +1 @@\n-a\n+b\n",
            "is in the patch twice",
        ),
        ("--- /dev/null\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "a new file has no old lines"),
    ];
    for (patch, expected) in cases {
        let error = parse(patch).unwrap_err().to_string();
        assert!(error.contains(expected), "{patch}\ngave: {error}\nnot: {expected}");
    }
    assert_eq!(parse(&"x".repeat(BYTES_MAX + 1)), Err(PatchError::TooLarge(BYTES_MAX + 1)));
}

#[test]
fn says_why_a_hunk_does_not_apply() {
    insta::assert_snapshot!(refused(FILE, &unified("@@ -2,2 +2,2 @@\n two\n-trhee\n+3\n")), @"hunk 1 of `x` does not apply: line 3 is not the patch's old line 2");
    insta::assert_snapshot!(refused(FILE, &unified("@@ -5,2 +5,1 @@\n five\n-six\n")), @"hunk 1 of `x` does not apply: the file ends before line 6, the patch's old line 2");
    insta::assert_snapshot!(refused("a\nb\na\nb\n", &envelope("@@\n a\n-b\n+c\n")), @"hunk 1 of `x` does not apply: its old lines stand at several places (lines 1, 3), none of which it names; give more context lines");
    insta::assert_snapshot!(refused("fn alpha() {}\n", &envelope("@@\n-fn alpa() {}\n+x\n")), @"hunk 1 of `x` does not apply: its old lines are not in the file; most like its first line are these lines, which you can read: 1");
    insta::assert_snapshot!(refused(FILE, &envelope("@@ class X\n-one\n+1\n")), @"hunk 1 of `x` does not apply: no line `class X` follows");
    insta::assert_snapshot!(refused(FILE, &unified("@@ -2 +2 @@\n-two\n+2\n\\ No newline at end of file\n")), @"hunk 1 of `x` does not apply: `\\ No newline at end of file` stands before the file's end");
    // Hunks are placed in order: the second cannot go before the first.
    assert!(refused(FILE, &unified("@@ -4 +4 @@\n-four\n+4\n@@ -2 +2 @@\n-two\n+2\n")).starts_with("hunk 2"));
    let inserted = refused(FILE, &unified("@@ -4 +4 @@\n-four\n+4\n@@ -2,0 +3 @@\n+x\n"));
    assert!(inserted.contains("it lies before the end of the hunk before it"), "{inserted}");
    // A last line without a newline is no beginning of a longer line.
    let open = unified("@@ -1 +1 @@\n-on\n\\ No newline at end of file\n+x\n");
    assert!(refused(FILE, &open).contains("line 1 is not the patch's old line 1"));
    assert!(refused(FILE, &unified("@@ -99,0 +99 @@\n+x\n")).contains("the file has no line 99"));
}

#[test]
fn a_hostile_patch_is_placed_in_linear_time() {
    let text = "\n".repeat(1 << 20);
    let body = format!("@@\n{}-x\n+y\n", " \n".repeat(1 << 18));
    assert!(refused(&text, &envelope(&body)).contains("not in the file"));
}

proptest! {
    /// What a diff says, a patch does, whatever the lines are.
    #[test]
    fn applying_a_diff_gives_the_new_text(old in "([abc]?[ \r+-]?\n){0,12}[abc]{0,2}", new in "([abc]?[ \r+-]?\n){0,12}[abc]{0,2}") {
        prop_assume!(old != new);
        let patch = unified(&diff::hunks(&old, &new));
        prop_assert_eq!(patched(&old, &patch), Ok(new), "{}", patch);
    }

    /// Deleting every line leaves nothing.
    #[test]
    fn applying_a_deletion_leaves_nothing(old in "([abc]{0,2}\n){1,9}[abc]{0,2}") {
        prop_assert_eq!(patched(&old, &unified(&diff::hunks(&old, ""))), Ok(String::new()));
    }

    #[test]
    fn no_patch_panics(text in "([ab@+-]{0,3}\n){0,9}", body in "((@@ -[0-9],[0-9] \\+[0-9],[0-9] @@|[ +-][ab]{0,2}|\\\\)\n){0,12}") {
        let _ = parse(&unified(&body)).map(|files| for file in files {
            if let Change::Update(hunks) = file.change { let _ = apply("x", &text, &hunks); }
        });
        let _ = parse(&envelope(&body));
        let _ = parse(&text);
    }
}
