use super::Capture;

fn check(limit: u64, pushes: &[&str], head: &str, tail: &str, total: u64) {
    let mut capture = Capture::new(limit);
    for bytes in pushes {
        capture.push(bytes.as_bytes());
    }
    let stream = capture.finish();
    assert_eq!(
        (stream.head.lossy().as_ref(), stream.tail.lossy().as_ref(), stream.total),
        (head, tail, total)
    );
}

#[test]
fn keeps_all_below_the_limit_and_both_ends_above_it() {
    check(8, &[], "", "", 0);
    check(8, &["abc"], "abc", "", 3);
    check(8, &["abcd", "efgh"], "abcdefgh", "", 8);
    check(8, &["abcdefghi"], "abcd", "fghi", 9);
    check(8, &["a", "b", "cdefg", "h", "i", "jklmnopqrstuvwxyz"], "abcd", "wxyz", 26);
    check(7, &["0123456789"], "012", "6789", 10);
    check(0, &["abc"], "", "", 3);
}
