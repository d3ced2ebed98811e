use super::Normaliser;
use serde_json::{Value, json};

const WORKSPACE: &str = "/tmp/run-Qx81/toy";

fn normaliser() -> Normaliser {
    Normaliser::new(WORKSPACE)
}

fn check(text: &str, expected: &str) {
    assert_eq!(normaliser().request(json!(text).to_string().as_bytes()), Value::from(expected), "{text:?}");
}

/// A tool's result on each wire.
fn results(text: &str) -> [Value; 3] {
    let anthropic = json!({ "type": "tool_result", "tool_use_id": "t", "content": text });
    let blocks =
        json!({ "type": "tool_result", "tool_use_id": "t", "content": [{ "type": "text", "text": text }] });
    [anthropic, blocks, json!({ "role": "tool", "tool_call_id": "t", "content": text })]
}

fn check_result(text: &str, expected: &str) {
    for (result, expected) in results(text).iter().zip(results(expected)) {
        assert_eq!(normaliser().request(result.to_string().as_bytes()), expected);
    }
}

#[test]
fn paths() {
    check("at /tmp/run-Qx81/toy/src/lib.rs.", "at $WORKSPACE/src/lib.rs.");
    check("`/tmp/run-Qx81/toy`", "`$WORKSPACE`");
    check("/tmp/run-Qx81/toy2 /tmp/run-Qx81/toy-x", "$PARENT/toy2 $PARENT/toy-x");
    check("/tmp/run-Qx81", "$PARENT");
    check("/tmp/other", "/tmp/other");
    let shallow = Normaliser::new("/tmp/toy/").request(br#""/tmp/x /tmp/toy/a""#);
    assert_eq!(shallow, "/tmp/x $WORKSPACE/a");
}

#[test]
fn times() {
    check("finished in 1.23s", "finished in $TIME");
    check("target(s) in 0.45s", "target(s) in $TIME");
    check("in 1m 02s", "in $TIME");
    check("v1.2s3 and 5 s", "v1.2s3 and 5 s");
    check("version 1.23", "version 1.23");
}

#[test]
fn hashes() {
    check("deps/toy-8348ca7a80742723)", "deps/toy-$HASH)");
    check("deps/toy-8348347380742723", "deps/toy-$HASH");
    check("8348ca7a80742723", "$HASH");
    check("1234567890123456 abcdefabcdefabcdef", "1234567890123456 abcdefabcdefabcdef");
    check("8348ca7a8074272", "8348ca7a8074272");
    check("deadbeef00", "deadbeef00");
}

#[test]
fn colours_go() {
    check("\u{1b}[1m\u{1b}[38;5;9merror\u{1b}[0m: x", "error: x");
    check("␛[32mok␛(B␛[m", "ok");
    check("println!(\"␛[2J\")", "println!(\"␛[2J\")");
}

/// What `cargo test` of Rust 1.95 wrote, wrapped as the command's result is.
fn cargo_test(stderr: &str, thread: &str, seconds: &str) -> String {
    format!(
        "$ cargo test\nexit code 101\n--- stdout ---\n\nrunning 3 tests\ntest tests::adds ... FAILED\n\
         test tests::empty_is_zero ... FAILED\ntest tests::is_fine ... ok\n\nfailures:\n\n\
         ---- tests::adds stdout ----\n\nthread 'tests::adds' ({thread}) panicked at src/lib.rs:5:25:\n\
         assertion `left == right` failed\n  left: 4\n right: 3\n\nfailures:\n    tests::adds\n\
         test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in {seconds}s\n\n\
         --- stderr ---\n{stderr}"
    )
}

const STDERR: &str = "   Compiling toy v0.1.0 (/tmp/run-Qx81/toy)\nwarning: unused variable: `unused`\n \
    --> src/lib.rs:1:39\n  |\n1 | pub fn total(xs: &[i32]) -> i32 { let unused = 1; }\n\
    warning: `toy` (lib) generated 1 warning\n    Finished `test` profile target(s) in 0.20s\n     \
    Running unittests src/lib.rs (target/debug/deps/toy-8348ca7a80742723)\nerror: test failed, to rerun pass `--lib`";

/// The same with other words, other line art, and errors where there were warnings.
const REWORDED: &str = "   Compiling toy v0.1.0 (/tmp/run-Qx81/toy)\nFehler[E7]: unbenutzt: `unused`\n \
    ==> src/lib.rs Zeile 1\n  ¦\n1 ¦ pub fn total(xs: &[i32]) -> i32 { let unused = 1; }\n  = Rat: weg damit\n\
    \n    Finished `test` profile target(s) in 3.70s\n     \
    Running unittests src/lib.rs (target/debug/deps/toy-00ff8ca7a8074272)\nFehler: ein Test schlug fehl";

/// What stays of both.
const STEPS: &str = "$DIAGNOSTICS\n   Compiling toy v0.1.0 ($WORKSPACE)\n    Finished `test` profile target(s) in \
    $TIME\n     Running unittests src/lib.rs (target/debug/deps/toy-$HASH)";

#[test]
fn what_cargo_test_wrote() {
    let expected = |stderr| cargo_test(stderr, "$THREAD", "$TIME").replace("$TIMEs", "$TIME");
    check_result(&cargo_test(STDERR, "17828", "0.07"), &expected(STEPS));
    check_result(&cargo_test(REWORDED, "1", "1.00"), &expected(STEPS));
    let coloured = cargo_test("\u{1b}[1m\u{1b}[92m   Compiling\u{1b}[0m toy v1", "1", "12.30")
        .replace("ok\n", "\u{1b}[32mok\u{1b}[0m\n");
    check_result(&coloured, &expected("$DIAGNOSTICS\n   Compiling toy v1"));
}

#[test]
fn panics_and_results_of_tests_on_standard_error_stay() {
    let panic = "thread 'main' panicked at src/main.rs:2:5:\nno\nmore\n";
    let results = "running 1 test\ntest a ... FAILED\ntest result: FAILED. 0 passed";
    check_result(
        &format!("$ cargo run\n--- stderr ---\nwarning: x\n{panic}\nand this goes\n{results}"),
        &format!("$ cargo run\n--- stderr ---\n$DIAGNOSTICS\n{}\n{results}", panic.trim_end()),
    );
}

#[test]
fn diagnostics_end_at_the_next_part() {
    check_result(
        "$ cd a && cargo build\n--- stderr ---\na\nb\n--- note ---\nkept",
        "$ cd a && cargo build\n--- stderr ---\n$DIAGNOSTICS\n--- note ---\nkept",
    );
}

#[test]
fn only_results_of_cargo_lose_their_diagnostics() {
    let other = "$ make cargo-cult\n--- stderr ---\nreal";
    check_result(other, other);
    let no_command = "cargo\n--- stderr ---\nreal";
    check_result(no_command, no_command);
    check("$ cargo test\n--- stderr ---\nreal", "$ cargo test\n--- stderr ---\nreal");
}

#[test]
fn everything_else_stays() {
    let result = "$ cargo test\nexit code 101\n--- stdout ---\ntest a ... ok\nthread 'a' panicked at src/lib.rs:5:25:\n left: 4";
    check_result(result, result);
    let call = json!({ "type": "tool_use", "id": "toolu_0123456789abcdef", "name": "fs_edit", "input": { "new": "fn x() -> u8 { 4 }" } });
    assert_eq!(normaliser().request(call.to_string().as_bytes()), call);
}

#[test]
fn responses_name_the_workspace_and_come_back() {
    let stored = normaliser().response("{\"path\":\"/tmp/run-Qx81/toy/a\"} in 0.45s");
    assert_eq!(stored, "{\"path\":\"$WORKSPACE/a\"} in 0.45s");
    assert_eq!(Normaliser::new("/elsewhere").replayed(&stored), "{\"path\":\"/elsewhere/a\"} in 0.45s");
}

#[test]
fn every_text_is_redacted() {
    let normaliser = normaliser().redacting(|text| text.replace("sk-1", "[key]"));
    assert_eq!(normaliser.request(br#"{"a":["sk-1"]}"#), json!({ "a": ["[key]"] }));
    assert_eq!(normaliser.response("sk-1"), "[key]");
}
