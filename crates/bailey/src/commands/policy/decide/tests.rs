use super::{LINE_BYTES_MAX, next};
use std::io::{BufReader, Cursor};

#[test]
fn lines_end_at_their_end_and_too_long_ones_leave_nothing() {
    let long = "x".repeat(LINE_BYTES_MAX + 1);
    let text = format!("one\n\n{long}\ntwo\r\nthree");
    let mut input = BufReader::with_capacity(1000, Cursor::new(text));
    let mut lines = Vec::new();
    while let Some(line) = next(&mut input).unwrap() {
        lines.push(line.map(|line| String::from_utf8(line).unwrap()));
    }
    let long = Err(format!("a line of more than {LINE_BYTES_MAX} bytes"));
    assert_eq!(lines, [Ok("one".into()), Ok(String::new()), long, Ok("two\r".into()), Ok("three".into())]);
}
