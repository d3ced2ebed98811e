use super::{Streams, streams};
use bailey_journal::{Fact, Recorded, Stored, Terms, fact::ENTRY_VERSION};
use bailey_protocol::{Answer, ApprovalId, CallId, Digest, Seq, Timestamp};
use serde_json::json;

/// The compared parts of a question of this call, with this reason, and of its answer.
fn told(call: Option<&str>, reason: &str, answer: Answer, why: &str) -> Streams {
    let approval = ApprovalId::new([7; 16]);
    let card = json!({ "title": "run", "reasons": [reason], "effect": { "role": "agent" } }).to_string();
    let asked = Fact::Asked {
        approval,
        digest: Digest::of(b"effect"),
        action: Some(Digest::of(b"action")),
        target: "true".into(),
        call: call.map(|call| CallId(call.into())),
        until: None,
        terms: Terms::default(),
        again: None,
    };
    let answered = Fact::Answered { approval, answer, by: "owner".into(), person: None };
    let entries = [(asked, card), (answered, why.to_owned())].into_iter().zip(1..);
    let entries = entries.map(|((fact, payload), seq)| Recorded {
        entry: Stored {
            v: ENTRY_VERSION,
            seq: Seq(seq),
            time: Timestamp::UNIX_EPOCH,
            session: None,
            effect: None,
            payload: None,
            fact,
        },
        payload: Some(payload.into()),
    });
    streams(&entries.collect::<Vec<_>>(), str::to_owned)
}

#[test]
fn questions_are_compared_by_their_reasons_and_answers_by_what_they_say() {
    let once = || told(Some("c1"), "rule `a`", Answer::Yes, "it is a test");
    assert_eq!(once(), once(), "the control");
    for other in [
        told(Some("c1"), "rule `b`", Answer::Yes, "it is a test"),
        told(Some("c1"), "rule `a`", Answer::No, "it is a test"),
        told(Some("c1"), "rule `a`", Answer::Yes, "it is none"),
        told(Some("c2"), "rule `a`", Answer::Yes, "it is a test"),
    ] {
        assert_ne!(other, once());
    }
}
