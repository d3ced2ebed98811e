//! The input guard.

use crate::redactor;
use bailey_secrets::Guarded;
use base64::{Engine as _, engine::general_purpose::STANDARD};

const VALUE: &str = "x7Kq9Lm2pBdW4TzRw8NsYc3H";

#[test]
fn a_message_that_is_mostly_a_credential_is_blocked_with_advice() {
    let guard = redactor(&[("MY_TOKEN", VALUE)]);
    let shape = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0");
    let key =
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", "A1b2C3d4E5f6G7h8".repeat(4));
    for (text, name) in [
        (VALUE.to_owned(), "MY_TOKEN"),
        (format!("  {VALUE}\n\n"), "MY_TOKEN"),
        (format!("my key: {VALUE}"), "MY_TOKEN"),
        (STANDARD.encode(VALUE), "MY_TOKEN"),
        (format!("TOKEN={shape}"), "github-token"),
        (key, "private-key"),
    ] {
        let Guarded::Blocked(advice) = guard.guard(&text) else { panic!("{text} was not blocked") };
        assert!(advice.contains(name) && advice.contains("bailey secrets set"), "{advice}");
        assert!(!advice.contains(VALUE) && !advice.contains(&shape), "{advice}");
    }
    // Control: a value that is not known and has no shape is a message like any other.
    assert_eq!(redactor(&[]).guard(VALUE), Guarded::Pass);
}

#[test]
fn a_longer_message_is_redacted_and_any_other_passes() {
    let guard = redactor(&[("MY_TOKEN", VALUE)]);
    let about = "please have a look at why the deployment fails with this one, it is the third time today";
    let found = guard.guard(&format!("{about}: {VALUE}"));
    assert_eq!(found, Guarded::Redacted(format!("{about}: [redacted:MY_TOKEN]")));
    for text in ["", " ", about, "x7Kq9Lm2", "[redacted:MY_TOKEN]"] {
        assert_eq!(guard.guard(text), Guarded::Pass, "{text}");
    }
}
