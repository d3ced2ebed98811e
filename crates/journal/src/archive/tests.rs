use super::*;
use crate::{chain, checkpoint::Secret, merkle};

/// Entries of a chain: each body, and the hash that it gets.
fn chained(count: u64) -> Vec<(String, Digest)> {
    let mut previous = Digest([0; 32]);
    let body = |n: u64| {
        format!(r#"{{"v":1,"seq":"{n}","time":"2026-01-02T03:04:05Z","payload":null,"type":"stopped"}}"#)
    };
    let link = |n| {
        let body = body(n);
        previous = chain::link(&previous, body.as_bytes());
        (body, previous)
    };
    (1..=count).map(link).collect()
}

fn several(leaves: &[Digest], places: &[u64], from: u64, path: &mut Vec<Digest>) {
    if places.is_empty() {
        path.push(merkle::root(leaves));
    } else if leaves.len() > 1 {
        let middle = merkle::split(leaves.len() as u64);
        let (left, right) = leaves.split_at(middle as usize);
        let (first, rest) = places.split_at(places.partition_point(|place| *place < from + middle));
        several(left, first, from, path);
        several(right, rest, from + middle, path);
    }
}

/// A file of these entries (from 1) of so many, and the key that it is checked with.
fn file(numbers: &[u64], count: u64) -> (Vec<u8>, PublicKey) {
    let chain = chained(count);
    let leaves: Vec<Digest> = chain.iter().map(|(_, hash)| leaf(hash)).collect();
    let places: Vec<u64> = numbers.iter().map(|number| number - 1).collect();
    let mut path = Vec::new();
    several(&leaves, &places, 0, &mut path);
    let secret = Secret::new([7; 32]);
    let statement = Statement {
        journal: chain[0].1,
        epoch: 0,
        entries: count,
        root: merkle::root(&leaves),
        head: chain[chain.len() - 1].1,
        time: "2026-01-02T03:04:05Z".parse().unwrap(),
        next: PublicKey::of(&Secret::new([8; 32])),
    };
    let mut to = Writer::new(Vec::new());
    to.line(&Head::new(Several(path), vec![Checkpoint::sign(&statement, &secret)])).unwrap();
    for number in numbers {
        let at = *number as usize;
        let previous = if at == 1 { Digest([0; 32]) } else { chain[at - 2].1 };
        let body = chain[at - 1].0.clone();
        to.line(&ProvenEntry { number: *number, previous, body, payload: None }).unwrap();
    }
    (to.to, PublicKey::of(&secret))
}

#[test]
fn any_entries_of_any_journal_stand_under_its_root() {
    for count in 1..=20 {
        for pattern in [1_u64, 0b1011, 0b1_1100_0101, u64::MAX, 1 << 19, 0xAAAA_AAAA] {
            let numbers: Vec<u64> = (1..=count).filter(|n| pattern >> (n - 1) & 1 == 1).collect();
            if numbers.is_empty() {
                continue;
            }
            let (bytes, key) = file(&numbers, count);
            let sealed = check(&bytes[..], &key).unwrap();
            assert_eq!((sealed.entries, sealed.signed.entries), (numbers.len() as u64, count));
            assert!(bytes.starts_with(BEGINS));
        }
    }
}

#[test]
fn what_is_left_away_doubled_or_moved_is_refused() {
    let (bytes, key) = file(&[3, 4, 7], 9);
    let text = String::from_utf8(bytes).unwrap();
    assert!(check(text.as_bytes(), &key).is_ok(), "the control");
    let lines: Vec<&str> = text.lines().collect();
    let joined = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let forged = [
        joined(&lines[..3]),
        joined(&[lines[0], lines[1], lines[1], lines[2], lines[3]]),
        joined(&[lines[0], lines[2], lines[1], lines[3]]),
        joined(&lines[1..]),
        joined(&lines[..1]),
        text.trim_end().to_owned(),
        text.replacen("\"number\":3", "\"number\":0", 1),
        text.replacen("\"path\":[", &format!("\"path\":[\"{}\",", "1".repeat(64)), 1),
        text.replacen("stopped", "stopper", 1),
        String::new(),
    ];
    for forged in forged {
        assert!(check(forged.as_bytes(), &key).is_err(), "{forged}");
    }
    assert!(matches!(
        check(text.as_bytes(), &PublicKey::of(&Secret::new([9; 32]))),
        Err(ArchiveError::Forged(_))
    ));
}
