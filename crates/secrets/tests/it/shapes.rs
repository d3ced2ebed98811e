//! Credentials by their shape, and what only looks like one.

use crate::{redact, redactor};
use std::borrow::Cow;

/// Forty characters such as tokens are made of. The examples are put together here, so that no scanner takes
/// this file for a leak.
const RUN: &str = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0";

#[test]
fn each_shape_is_found() {
    let r = RUN;
    let upper = &RUN.to_uppercase();
    for (text, id) in [
        (format!("sk-ant-api03-{r}"), "anthropic-key"),
        (format!("sk-{r}"), "openai-key"),
        (format!("sk-proj-{r}-{r}"), "openai-key"),
        (format!("sk_live_{r}"), "stripe-key"),
        (format!("ghp_{r}"), "github-token"),
        (format!("gho_{r}"), "github-token"),
        (format!("ghs_{r}"), "github-token"),
        (format!("github_pat_{r}_{r}"), "github-token"),
        (format!("glpat-{r}"), "gitlab-token"),
        (format!("xoxb-123456789012-{r}"), "slack-token"),
        (format!("xoxp-123456789012-{r}"), "slack-token"),
        (format!("AKIA{}", &upper[..16]), "aws-key"),
        (format!("AIza{}", &r[..35]), "google-key"),
        (format!("npm_{}", &r[..36]), "npm-token"),
        (format!("hf_{}", &r[..34]), "huggingface-token"),
        (format!("pypi-AgEIcHlwaS5vcmc{r}"), "pypi-token"),
        (format!("AGE-SECRET-KEY-1{upper}"), "age-key"),
        (format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{r}"), "jwt"),
        (format!("-----BEGIN RSA PRIVATE KEY-----\n{r}\n{r}\n-----END RSA PRIVATE KEY-----"), "private-key"),
        (
            format!("-----BEGIN OPENSSH PRIVATE KEY-----\\n{r}\\n-----END OPENSSH PRIVATE KEY-----"),
            "private-key",
        ),
        (
            format!(
                "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n{r}\n-----END RSA PRIVATE KEY-----"
            ),
            "private-key",
        ),
    ] {
        let redactor = redactor(&[]);
        let expected = format!("[redacted:{id}]");
        for (before, after) in
            [("", ""), ("key=", "\n"), ("\"", "\","), ("{\\\"a\\\":1}\\n", " x"), ("?k=%3D", "&x")]
        {
            let found = redact(&redactor, &format!("{before}{text}{after}"));
            assert_eq!(found, format!("{before}{expected}{after}"), "{text}");
        }
    }
}

#[test]
fn values_of_authorization_lines() {
    let redactor = redactor(&[]);
    for (text, expected) in [
        (format!("Authorization: Bearer {RUN}\r\n"), "Authorization: [redacted:authorization]\r\n"),
        (format!("authorization: bearer {RUN}"), "authorization: [redacted:authorization]"),
        ("Authorization: Basic dXNlcjpwYXNzdzByZA==".into(), "Authorization: [redacted:authorization]"),
        (
            format!("{{\"Authorization\": \"Bearer {RUN}\"}}"),
            "{\"Authorization\": \"[redacted:authorization]\"}",
        ),
        (
            format!("\\\"authorization\\\":\\\"Bearer {RUN}\\\""),
            "\\\"authorization\\\":\\\"[redacted:authorization]\\\"",
        ),
        (format!("a Bearer {RUN} elsewhere"), &format!("a Bearer {RUN} elsewhere")),
        ("Authorization: Bearer YOUR_API_KEY_HERE".into(), "Authorization: Bearer YOUR_API_KEY_HERE"),
        ("Authorization: Bearer $TOKEN".into(), "Authorization: Bearer $TOKEN"),
    ] {
        assert_eq!(redact(&redactor, &text), expected);
    }
}

#[test]
fn a_private_key_without_an_end_and_text_after_one() {
    let redactor = redactor(&[]);
    let cut = format!("-----BEGIN PRIVATE KEY-----\n{RUN}\n{RUN}\n");
    assert_eq!(redact(&redactor, &cut), "[redacted:private-key]");
    let block = format!("{cut}-----END PRIVATE KEY-----\nand more text\n");
    assert_eq!(redact(&redactor, &block), "[redacted:private-key]\nand more text\n");
    // An endless one is bounded.
    let found = redact(&redactor, &format!("-----BEGIN PRIVATE KEY-----\n{}", RUN.repeat(10_000)));
    assert!(found.len() > 200_000, "{}", found.len());
}

/// What is hidden is hidden from the human, too, who is asked about it.
#[test]
fn a_private_key_hides_nothing_that_no_key_has() {
    let redactor = redactor(&[]);
    let shown = |line: &str| {
        redact(&redactor, &format!("-----BEGIN PRIVATE KEY-----\n{RUN}\n{line}\n-----END PRIVATE KEY-----"))
    };
    for (line, seen) in [
        ("curl evil", "evil\n"),
        ("curl\\\n  evil", "evil\n"),
        ("x: rm -rf", "rm -rf\n"),
        ("a|sh", "|sh\n"),
        ("Qw==\nmake", "make\n"),
        ("Qw==\\nmake\\n", "make\\n"),
    ] {
        assert!(shown(line).contains(seen), "{line}: {}", shown(line));
    }
    // The control: lines of keys, as programs print them, are no text.
    for line in [
        "Qw==",
        "    Qw==",
        &format!("  12\t{RUN}\n  13\tQw==\n  14\t"),
        &format!("\"{RUN}\\n\" +\n  \"Qw==\\n\" +\n  \""),
        &format!("{RUN}\\/{RUN}\\nQw==\\n"),
        &format!("dir/my_key.pem:3:{RUN}\ndir/my_key.pem:4:Qw==\n"),
        &format!("{RUN} {RUN} Qw== "),
        &format!("\\\n{RUN}\\\nQw==\\\n"),
    ] {
        assert_eq!(shown(line), "[redacted:private-key]", "{line}");
    }
    let pgp = format!(
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\nComment: a few words - here\n\n{RUN}\n=Qw8a\n-----END PGP PRIVATE KEY BLOCK-----"
    );
    assert_eq!(redact(&redactor, &pgp), "[redacted:private-key]");
}

#[test]
fn ordinary_text_is_left_alone() {
    let redactor = redactor(&[("MY_TOKEN", "x7Kq9Lm2pBdW")]);
    for text in [
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "task-550e8400-e29b-41d4-a716-446655440000 and disk-0123456789abcdef0123456789abcdef",
        "550e8400-e29b-41d4-a716-446655440000",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
        "npm_config_registry=https://registry.npmjs.org/ npm_package_name",
        "sk-learn-style-estimators-and-transformers-in-general",
        "let hf_dataset = load(\"hf_internal_testing\"); ghp_ is a prefix, AKIA too, and sk-ant-",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx sk-ant-XXXXXXXXXXXXXXXXXXXXXXXX",
        "-----BEGIN CERTIFICATE-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n-----END CERTIFICATE-----",
        "a file begins with -----BEGIN PRIVATE KEY----- and is secret.",
        "data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbXX0=",
        "eyJ.eyJ. eyJhbGciOi",
        "the bearer of this letter, Token ring, Basic English",
        "fn authorization(bearer: &str) -> Basic { todo(Token) }",
    ] {
        let found = redactor.redact(text);
        assert!(matches!(found.text, Cow::Borrowed(_)), "{} became {}", text, found.text);
    }
}
