//! Which variables are secrets, and that they hide themselves.

use crate::vault;
use bailey_secrets::{Secret, Vault, is_secret_name};

#[test]
fn names_of_secrets() {
    for name in [
        "ANTHROPIC_API_KEY",
        "GITHUB_TOKEN",
        "github_token",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
        "PGPASSWORD",
        "CLIENT_SECRET",
        "APP_SECRET_V2",
        "SECRET_KEY_BASE",
        "TOKEN",
        "DATABASE_URL",
        "SSH_PASSPHRASE",
        "GH_PAT",
    ] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in [
        "PATH",
        "HOME",
        "PWD",
        "OLDPWD",
        "LANG",
        "KEYBOARD",
        "MAX_TOKENS",
        "TOKENIZERS_PARALLELISM",
        "API_KEY_FILE",
        "GOOGLE_TOKEN_PATH",
        "SSH_AUTH_SOCK",
        "SECRET_NAME",
        "BYPASS",
        "COMPASS",
    ] {
        assert!(!is_secret_name(name), "{name}");
    }
}

#[test]
fn the_environment_gives_what_is_named() {
    let pairs = [("A_TOKEN", "one"), ("PLAIN", "two"), ("EMPTY_TOKEN", ""), ("ODD", "three")];
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let vault = Vault::from_env(pairs, &["ODD"]);
    assert_eq!(vault.names().collect::<Vec<_>>(), ["A_TOKEN", "ODD"]);
    assert_eq!(vault.get("ODD").map(Secret::expose), Some("three"));
    assert!(vault.get("PLAIN").is_none());
}

#[test]
fn secrets_hide_in_debug() {
    let vault = vault(&[("A_TOKEN", "do-not-print-me-42")]);
    let text = format!("{vault:?} {:?} {:?}", vault.get("A_TOKEN"), bailey_secrets::Redactor::new(&vault));
    assert!(text.contains("[secret]") && !text.contains("do-not-print"), "{text}");
}
