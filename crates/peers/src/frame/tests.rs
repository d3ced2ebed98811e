use super::{FRAME_BYTES_MAX, FrameError, Frames, Object, answer, frame, ready};
use crate::speech::{Speech, Spoken};
use bailey_kernel::extension::Answer;
use serde_json::{Value, json};

fn object(value: Value) -> Object {
    let Value::Object(object) = value else { panic!("no object") };
    object
}

fn said(json: &[u8]) -> Result<(u64, Spoken), FrameError> {
    let (number, object) = answer(json, "")?;
    Ok((number, Speech::Verdicts.answer(&object)?))
}

fn frames(bytes: &[u8]) -> Frames {
    Frames { bytes: bytes.into() }
}

#[test]
fn what_is_written_as_a_frame_is_read_as_one_however_it_is_cut() {
    let bytes = [frame(&object(json!({ "a": 1 }))).unwrap(), frame(&Object::new()).unwrap()].concat();
    assert_eq!(bytes.first_chunk(), Some(&[0, 0, 0, 7]));
    let mut cut = Frames::default();
    let mut read = Vec::new();
    for byte in bytes {
        cut.bytes.extend_from_slice(&[byte]);
        read.extend(cut.next().unwrap());
    }
    assert_eq!(read, [&b"{\"a\":1}"[..], b"{}"]);
    assert!(cut.bytes.is_empty());
}

#[test]
fn a_length_beyond_the_limit_is_refused_before_anything_is_kept() {
    let most = u32::try_from(FRAME_BYTES_MAX).unwrap();
    assert_eq!(frames(&most.to_be_bytes()).next(), Ok(None));
    assert_eq!(frames(&(most + 1).to_be_bytes()).next(), Err(FrameError::TooLong(most + 1)));
    assert_eq!(frames(&[0xff; 4]).next(), Err(FrameError::TooLong(u32::MAX)));
    let of = |bytes: usize| object(json!({ "": "x".repeat(bytes - r#"{"":""}"#.len()) }));
    assert_eq!(frame(&of(FRAME_BYTES_MAX + 1)), None);
    assert!(frame(&of(FRAME_BYTES_MAX)).is_some(), "control");
}

#[test]
fn only_the_words_of_the_protocol_are_an_answer() {
    let answer = said(br#"{"number":7,"answer":"deny","reason":"no","more":[1]}"#).unwrap();
    assert_eq!(answer, (7, Spoken::Verdict(Answer::Deny, "no".into())));
    assert_eq!(
        said(br#"{"number":7,"answer":"pass"}"#),
        Ok((7, Spoken::Verdict(Answer::Pass, String::new())))
    );
    for none in [
        "",
        "7",
        "{}",
        "[]",
        r#"[7,"allow",""]"#,
        r#"{"number":7}"#,
        r#"{"number":7,"answer":"yes"}"#,
        r#"{"number":-7,"answer":"deny"}"#,
        r#"{"number":7,"number":8,"answer":"allow"}"#,
        r#"{"number":7,"answer":"allow"} "#,
        r#"{"number":"7","answer":"deny"}"#,
        r#"{"number":7,"answer":"allow","answer":"deny"}"#,
        "{\"number\":7,\"answer\":\"allow\"}x",
    ] {
        assert_eq!(said(none.as_bytes()).is_ok(), none.ends_with("} "), "{none}");
    }
    assert!(ready(br#"{"ready":1}"#).is_ok());
    assert!(ready(br#"{"ready":2}"#).is_err() && ready(b"{}").is_err() && ready(b"[1]").is_err());
}
