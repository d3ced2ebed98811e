use super::{EVENT_BYTES_MAX, Events, TooLong};
use proptest::prelude::*;

fn read(stream: &[u8], chunk: usize) -> Vec<String> {
    let mut events = Events::default();
    let mut data = Vec::new();
    for chunk in stream.chunks(chunk) {
        data.extend(events.push(chunk).unwrap());
    }
    data.extend(events.end());
    data
}

fn check(stream: &str, expected: &[&str]) {
    for chunk in [1, 2, 3, 7, 4096] {
        assert_eq!(read(stream.as_bytes(), chunk), expected, "{stream:?} in chunks of {chunk}");
    }
}

#[test]
fn data_of_events() {
    check("data: a\n\ndata:b\n\n", &["a", "b"]);
    check("event: x\nid: 7\nretry: 5\ndata: a\n\n", &["a"]);
    check(": comment\n\ndata: a\ndata: b\n\n", &["a\nb"]);
    check("data:  two spaces\n\n", &[" two spaces"]);
    check("dataset: no\nDATA: no\n\n", &[]);
}

/// Some servers keep a connection alive so. Control: what stands beside blank lines is told.
#[test]
fn blank_data_is_no_event() {
    check("data:\n\ndata\n\ndata: \n\ndata:\ndata:\n\ndata: a\n\ndata:\n", &["a"]);
    check("data:\ndata: a\n\n", &["\na"]);
}

#[test]
fn every_line_ending_and_a_byte_order_mark() {
    check("\u{feff}data: a\r\n\r\ndata: b\r\rdata: c\n\n", &["a", "b", "c"]);
    check("data: ä\r\ndata: ö\r\n\r\n", &["ä\nö"]);
}

#[test]
fn the_end_cuts_off_an_event() {
    check("data: a\n\ndata: [DONE]\n", &["a", "[DONE]"]);
    check("data: a\n\ndata: [DONE]", &["a", "[DONE]"]);
    check("data: a\n\nevent: x", &["a"]);
}

#[test]
fn a_line_and_an_event_are_bounded() {
    let piece = vec![b'x'; 1 << 20];
    let mut line = Events::default();
    line.push(b"data: ").unwrap();
    let pushed = (0..9).map(|_| line.push(&piece)).position(|pushed| pushed == Err(TooLong));
    assert_eq!(pushed, Some(7), "a line of 8 MiB and six bytes");

    let mut event = Events::default();
    let field = [b"data: ".as_slice(), &piece, b"\n"].concat();
    let pushed = (0..9).map(|_| event.push(&field)).position(|pushed| pushed == Err(TooLong));
    assert_eq!(pushed, Some(7), "an event of 8 MiB and its line feeds");
    assert_eq!(EVENT_BYTES_MAX, 8 << 20);
}

proptest! {
    #[test]
    fn chunks_change_nothing(stream in "(data: ?|event: |[a-c: ]|\r|\n|ä){0,80}", chunk in 1usize..9) {
        prop_assert_eq!(read(stream.as_bytes(), chunk), read(stream.as_bytes(), usize::MAX));
    }

    #[test]
    fn hostile_bytes_do_not_panic(stream in prop::collection::vec(any::<u8>(), 0..400), chunk in 1usize..50) {
        read(&stream, chunk);
    }
}
