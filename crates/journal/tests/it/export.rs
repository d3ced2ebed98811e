//! An export can be checked by somebody who has nothing but SHA-256 and the rule in `chain.rs`.

use crate::support::{command, desk};
use bailey_protocol::Report;
use sha2::{Digest as _, Sha256};

/// The independent verifier: `hash(n) = SHA-256 over ("bailey.journal.1", hash(n-1), body(n))`, each part
/// preceded by its length as 64 bits, big-endian. Answers the head.
fn verify(lines: &[String]) -> Result<String, usize> {
    let mut previous = [0_u8; 32];
    for (number, line) in lines.iter().enumerate() {
        let hash = &line["{\"hash\":\"".len()..][..64];
        let rest = &line["{\"hash\":\"".len() + 64 + "\",\"entry\":".len()..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<serde_json::Value>();
        values.next().ok_or(number)?.map_err(|_| number)?;
        let body = &rest[..values.byte_offset()];
        let mut sha = Sha256::new();
        for part in [b"bailey.journal.1".as_slice(), &previous, body.as_bytes()] {
            sha.update((part.len() as u64).to_be_bytes());
            sha.update(part);
        }
        previous = sha.finalize().into();
        let hex: String = previous.iter().map(|byte| format!("{byte:02x}")).collect();
        if hex != hash {
            return Err(number);
        }
    }
    Ok(previous.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[tokio::test]
async fn exported_lines_hash_to_the_chain() {
    let desk = desk().await;
    let session = desk.session().await;
    // Words that look like the end of an entry.
    desk.run(session, command("echo \",\"payload\":null} ü"), Report::Nothing).await;
    let exported = desk.journal.export(0, 1000).await.unwrap();
    let positions: Vec<u64> = exported.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(positions, [1, 2, 3, 4, 5]);
    let mut lines: Vec<String> = exported.into_iter().map(|(_, line)| line).collect();
    let verified = desk.journal.verify().await.unwrap();
    assert_eq!(verify(&lines), Ok(verified.head.to_string()));
    for line in &lines {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    // Control: one changed letter is found.
    lines[3] = lines[3].replace("echo", "Echo");
    assert_eq!(verify(&lines), Err(3));
}
