//! What the installed toolchain really writes, from two places: after the normaliser it is the same.

use bailey_llm::Normaliser;
use serde_json::{Value, json};
use std::{path::Path, process::Command};

const SOURCE: &str = "pub fn total(xs: &[i32]) -> i32 { let unused = 1; xs.iter().sum::<i32>() + 1 }
#[cfg(test)]
mod tests {
    #[test]
    fn adds() { assert_eq!(super::total(&[1, 2]), 3, \"a sum\"); }
    #[test]
    fn is_fine() { assert!(super::total(&[5]) > 1); }
}
";

/// A session's request after `cargo test` of this source in a fresh folder, and that folder.
fn request(source: &str, colour: &str) -> (Vec<u8>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let toy = folder.path().join("toy");
    std::fs::create_dir_all(toy.join("src")).unwrap();
    std::fs::write(toy.join("Cargo.toml"), "[package]\nname = \"toy\"\nedition = \"2024\"\n[workspace]\n")
        .unwrap();
    std::fs::write(toy.join("src/lib.rs"), source).unwrap();
    // One thread: libtest prints in the order in which tests end.
    let ran = Command::new(env!("CARGO"))
        .args(["test", "--offline", "--color", colour, "--", "--test-threads=1", "--color", colour])
        .current_dir(&toy)
        .env_remove("RUSTC_WRAPPER")
        .env("CARGO_TARGET_DIR", toy.join("target"))
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(101), "{}", String::from_utf8_lossy(&ran.stderr));
    let text = format!(
        "$ cargo test\nexit code 101 in {}\n--- stdout ---\n{}--- stderr ---\n{}",
        toy.display(),
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    let body = json!({ "messages": [{ "role": "tool", "tool_call_id": "c", "content": text }] });
    (body.to_string().into_bytes(), folder)
}

fn normalised(body: &[u8], folder: &Path) -> Value {
    Normaliser::new(&folder.join("toy").to_string_lossy()).request(body)
}

#[test]
fn cargo_test_is_the_same_in_two_places() {
    let (first, here) = request(SOURCE, "never");
    let (second, there) = request(SOURCE, "always");
    assert_ne!(first, second, "the control: as written they differ");
    let first = normalised(&first, here.path());
    assert_eq!(first, normalised(&second, there.path()));
    let visible = String::from_utf8(second).unwrap().replace("\\u001b", "␛");
    assert!(visible.contains("␛["), "the screen makes colours visible");
    assert_eq!(first, normalised(visible.as_bytes(), there.path()));
    let text = first["messages"][0]["content"].as_str().unwrap();
    for kept in [
        "exit code 101 in $WORKSPACE",
        "Compiling toy",
        "test tests::adds ... FAILED",
        "test tests::is_fine ... ok",
        "a sum",
        "left: 4",
    ] {
        assert!(text.contains(kept), "{kept:?} is not in {text}");
    }
    for gone in ["unused", &*here.path().to_string_lossy()] {
        assert!(!text.contains(gone), "{gone:?} is in {text}");
    }

    let (other, elsewhere) = request(&SOURCE.replace("+ 1 }", "+ 2 }"), "never");
    assert_ne!(first, normalised(&other, elsewhere.path()), "another result is another request");
}
