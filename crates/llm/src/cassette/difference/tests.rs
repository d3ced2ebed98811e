use super::difference;
use serde_json::{Value, json};

fn check(expected: Value, got: Value, place: &str, lines: &str) {
    assert_eq!(difference(&expected, &got), Some((place.into(), lines.into())));
}

#[test]
fn the_first_difference_is_named() {
    let request = |text: &str| json!({ "messages": [{ "content": "same" }, { "content": text }], "a/b": 1 });
    assert_eq!(difference(&request("x"), &request("x")), None);
    check(
        request("one\ntwo\nthree"),
        request("one\n2\nthree"),
        "`/messages/1/content`",
        "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three",
    );
    check(json!({ "a/b": 1 }), json!({ "a/b": 2 }), "`/a~1b`", "@@ -1 +1 @@\n-1\n+2");
}

#[test]
fn what_is_missing_is_named() {
    check(json!([1]), json!([1, "two"]), "`/1`", "@@ -1 +1 @@\n-(nothing)\n+two");
    check(json!({ "a": 1 }), json!({}), "`/a`", "@@ -1 +1 @@\n-1\n+(nothing)");
    check(json!(1), json!("x"), "the whole request", "@@ -1 +1 @@\n-1\n+x");
}

#[test]
fn it_stays_short() {
    let long = (0..500).map(|n| format!("{n}{}\n", "x".repeat(1000))).collect::<String>();
    let (_, lines) = difference(&json!(""), &json!(long)).unwrap();
    assert!(lines.len() < 8000 && lines.ends_with("more lines"), "{}", lines.len());
}
