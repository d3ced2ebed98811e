//! The `.env` file: its lines, its limits, its mode.

use bailey_secrets::{DOTENV_BYTES_MAX, EnvFileError, Secret, parse_dotenv, read_env_file};
use std::{fs, os::unix::fs::PermissionsExt};

fn check(text: &str, expected: &[(&str, &str)]) {
    let pairs = parse_dotenv(text).unwrap();
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(pairs, expected);
}

#[test]
fn lines() {
    check(
        "A=1\r\n\n# comment\n  B = two words # note\nexport C='a # \"b\" \\n'\n",
        &[("A", "1"), ("B", "two words"), ("C", "a # \"b\" \\n")],
    );
    check(r#"D="x\ny \"q\" \$z \\" # note"#, &[("D", "x\ny \"q\" $z \\")]);
    check(
        "\u{feff}E=a#b\nF=\nG= # nothing\nexported=1",
        &[("E", "a#b"), ("F", ""), ("G", ""), ("exported", "1")],
    );
    check("H=é=ü", &[("H", "é=ü")]);
}

#[test]
fn wrong_lines_are_named_without_their_value() {
    for (text, line) in [
        ("A=1\nhunter2hunter2", 2),
        ("1A=hunter2", 1),
        ("A B=hunter2", 1),
        ("A='hunter2", 1),
        ("\n\nA=\"hunter2", 3),
        ("A='x' hunter2", 1),
        ("A=\"hunter2\\q\"", 1),
        ("A=hunter2\0", 1),
        ("A=1\nA=hunter2", 2),
    ] {
        let error = parse_dotenv(text).unwrap_err();
        assert_eq!(error.line, line, "{text}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn the_size_is_limited() {
    let text = |bytes: usize| format!("A={}", "x".repeat(bytes - 2));
    assert!(parse_dotenv(&text(DOTENV_BYTES_MAX)).is_ok());
    assert!(parse_dotenv(&text(DOTENV_BYTES_MAX + 1)).is_err());
}

#[test]
fn a_file_that_others_can_read_is_refused_with_the_fix() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(".env");
    assert!(read_env_file(&path).unwrap().is_none());
    fs::write(&path, "A_TOKEN=abc").unwrap();
    for mode in [0o644, 0o640, 0o602] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let error = read_env_file(&path).unwrap_err();
        assert!(matches!(error, EnvFileError::Mode { .. }), "{error}");
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
    // Control: the same file is read once only its owner can reach it.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let pairs = read_env_file(&path).unwrap().unwrap();
    assert_eq!(
        pairs.first().map(|(name, value): &(String, Secret)| (name.as_str(), value.expose())),
        Some(("A_TOKEN", "abc"))
    );
}
