use super::Mask;
use bailey_secrets::{Redactor, Secret, Vault};
use std::sync::Arc;

const KEY: &str = "ghp_Zk3vQ9sX1bN7tR5wY2mC8dF6hJ4lP0aE";

fn mask(lag: Option<usize>) -> Mask {
    let vault: Vault = [("KEY".to_owned(), Secret::new(KEY.into()))].into_iter().collect();
    let mut mask = Mask::new(&Redactor::of_values(&vault), &Arc::default());
    mask.lag = lag.unwrap_or(mask.lag);
    mask
}

/// The pieces in which a body comes out that goes in in these.
fn pieces(mut mask: Mask, parts: &[&[u8]]) -> (Vec<usize>, Vec<u8>) {
    let mut all: Vec<_> = parts.iter().map(|part| mask.through(part)).collect();
    all.push(mask.rest());
    (all.iter().map(|piece| piece.len()).collect(), all.concat())
}

/// Whoever chose what a server answers must not see by its pieces how much of a guess is right.
#[test]
fn how_a_body_comes_out_does_not_tell_what_it_begins_with() {
    let wide = mask(None).lag;
    for filler in [0, 100, wide, 3 * wide] {
        for between in ["", " ", "                                "] {
            let body = |guess: &str| {
                let spread: Vec<String> = guess.chars().map(String::from).collect();
                let spread = spread.join(between);
                [vec![b'.'; filler], spread.into_bytes()].concat()
            };
            for length in 1..KEY.len() {
                let wrong = body(&format!("{}!", &KEY[..length - 1]));
                let right = body(&KEY[..length]);
                for rest in [b"".as_slice(), b"|and more"] {
                    let (of_right, text) = pieces(mask(None), &[&right, rest]);
                    assert_eq!(text, [right.as_slice(), rest].concat());
                    assert_eq!(of_right, pieces(mask(None), &[&wrong, rest]).0, "{filler} {length}");
                }
            }
        }
    }
    let (right, wrong) = (pieces(mask(Some(0)), &[b"|ghp_Zk3"]).0, pieces(mask(Some(0)), &[b"|ghp_Zk!"]).0);
    assert_ne!(right, wrong, "the control: without the lag it does");
}

#[test]
fn what_is_masked_is_masked_wherever_it_is_cut() {
    let body = format!("before {KEY} after {KEY}");
    for at in 0..body.len() {
        let (one, other) = body.as_bytes().split_at(at);
        let (_, text) = pieces(mask(None), &[one, other]);
        assert_eq!(text, b"before [redacted:KEY] after [redacted:KEY]");
    }
}
