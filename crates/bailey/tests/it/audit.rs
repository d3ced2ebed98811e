//! What `bailey audit` proves, through the binary: signed, proven, checked elsewhere, and what was tampered with named.

use crate::stage::Stage;
use serde_json::Value;
use std::{fs, path::Path, process::Command};

/// A stage where two commands ran, each signed at its end, and the journal's first public key.
fn signed() -> (Stage, String) {
    let stage = Stage::new(&[("a", "a\n")]);
    for word in ["one", "two"] {
        assert_eq!(stage.ran(&["sandbox", "run", "--", "echo", word]).code, Some(0));
    }
    let key = stage.ran(&["audit", "key"]);
    assert_eq!(key.code, Some(0), "{}", key.stderr);
    (stage, key.stdout.trim().to_owned())
}

/// The number of the newest entry of this type.
fn entry(stage: &Stage, name: &str) -> String {
    let trail = stage.trail();
    let found = trail.iter().rfind(|entry| entry["type"] == name).unwrap();
    found["seq"].as_str().unwrap().to_owned()
}

/// `docs/audit_check.py`, away from any home; none without Python.
fn python(proof: &Path, key: &str) -> Option<(Option<i32>, String)> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/audit_check.py");
    let output = Command::new("python3").arg(script).arg(proof).arg(key).current_dir("/").output().ok()?;
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Some((output.status.code(), text))
}

#[test]
fn a_proof_is_checked_without_a_journal_and_by_another_program() {
    let (stage, key) = signed();
    let intent = entry(&stage, "intent");
    let proof = stage.folder().join("proof.json");
    let file = proof.to_str().unwrap();
    let made = stage.ran(&["audit", "prove", &intent, "--payload", "--out", file]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    // A home that cannot be made: the check looks at none.
    let check = |file: &str, key: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bailey"));
        command.args(["--home", "/proc/none", "audit", "check", file, "--key", key]).current_dir("/");
        crate::stage::Ran::of(command.output().unwrap())
    };
    let proven = check(file, &key);
    assert_eq!(proven.code, Some(0), "{}", proven.stderr);
    assert!(proven.stdout.starts_with(&format!("proven: this was entry {intent} of ")), "{}", proven.stdout);
    assert!(proven.stdout.contains("\"type\":\"intent\""));
    let growth = stage.folder().join("growth.json");
    let growth_file = growth.to_str().unwrap();
    assert_eq!(stage.ran(&["sandbox", "run", "--", "true"]).code, Some(0));
    assert_eq!(stage.ran(&["audit", "prove", "--since", "0", "-o", growth_file]).code, Some(0));
    let grown = check(growth_file, &key);
    assert!(grown.code == Some(0) && grown.stdout.contains("entries of checkpoint 0"), "{grown:?}");
    // Each refused, beside the control above: another word, another key, no proof.
    let forged = stage.folder().join("forged.json");
    let text = fs::read_to_string(&proof).unwrap();
    assert!(text.contains("merge") || text.contains("exec"));
    fs::write(&forged, text.replacen("\\\"kind\\\":\\\"", "\\\"kind\\\":\\\"x", 1)).unwrap();
    assert_ne!(fs::read_to_string(&forged).unwrap(), text);
    let refused = check(forged.to_str().unwrap(), &key);
    assert!(refused.code == Some(1) && refused.stderr.contains("leads to another root"), "{refused:?}");
    let stranger = "7".repeat(64);
    assert_eq!(check(file, &stranger).code, Some(1));
    assert_eq!(check(file, "short").code, Some(2));
    assert_eq!(check("/dev/null", &key).code, Some(1));
    let Some(other) = python(&proof, &key) else {
        println!("SKIPPED: there is no python3");
        return;
    };
    assert!(other.0 == Some(0) && other.1.starts_with("proven: entry "), "{other:?}");
    let other = python(&growth, &key).unwrap();
    assert!(other.0 == Some(0) && other.1.contains("are the first of the"), "{other:?}");
    for (file, key) in [(&forged, &key), (&proof, &stranger)] {
        let other = python(file, key).unwrap();
        assert!(other.0 == Some(1) && other.1.contains("this proves nothing"), "{other:?}");
    }
}

#[test]
fn verify_says_up_to_when_it_is_signed_and_by_whose_key() {
    let (stage, key) = signed();
    let verified = stage.ran(&["--json", "audit", "verify", "--key", &key]).lines().remove(0);
    assert_eq!(verified["signed"]["key"], Value::from(key.clone()));
    assert_eq!(verified["signed"]["newest"]["entries"], verified["entries"]);
    let shown = stage.ran(&["audit", "verify"]);
    assert!(shown.stdout.contains(&format!("by keys that follow from {key}")), "{}", shown.stdout);
    let other = stage.ran(&["audit", "verify", "--key", &"7".repeat(64)]);
    assert!(other.code == Some(1) && other.stderr.contains("this is another journal"), "{other:?}");
    // Journal and key made anew by whoever holds the machine: all is well, but for whoever kept the key.
    for name in ["journal.db", "journal.db-wal", "journal.db-shm", "journal.key"] {
        fs::remove_file(stage.home().join(name)).ok();
    }
    assert_eq!(stage.ran(&["sandbox", "run", "--", "true"]).code, Some(0));
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0), "the control: by itself it holds");
    assert_eq!(stage.ran(&["audit", "verify", "--key", &key]).code, Some(1));
}

#[test]
fn the_key_that_signs_is_out_of_reach_inside_the_walls() {
    let (stage, _) = signed();
    let key = stage.home().join("journal.key");
    let text = key.to_str().unwrap();
    assert!(
        fs::read(&key).unwrap().starts_with(b"bailey.key.1")
            || fs::read(&key).unwrap()[2048..].starts_with(b"bailey.key.1")
    );
    // The control: outside, its owner's programs read it.
    assert!(Command::new("cat").arg(&key).output().unwrap().status.success());
    let inside = stage.ran(&["sandbox", "run", "--", "cat", text]);
    assert!(inside.code == Some(1) && inside.stderr.contains("No such file"), "{inside:?}");
    let explained = stage.ran(&["policy", "explain", "read", text]);
    assert!(explained.stdout.contains("denied") || explained.stdout.contains("deny"), "{}", explained.stdout);
}
