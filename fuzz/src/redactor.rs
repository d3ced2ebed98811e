//! The redactor: a known secret in every form that it covers, among any bytes.

use bailey_secrets::{Redactor, Secret, Vault};
use std::{fmt::Write as _, sync::OnceLock};

const SECRET: &str = "kR7-vQ2/pLx9+Zt4'wN8$q\"5";
/// What stands around a form, so that the bytes beside it are no part of it.
const EDGE: char = '|';
const STANDARD: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

struct Forms {
    knows: Redactor,
    /// What stands for each control character.
    forms: Vec<String>,
    /// What must be in no part of the output, once white space is out of it.
    cores: Vec<String>,
}

/// Control characters stand for forms of the secret, so that they are met often. None of them is left,
/// however the bytes are cut; and text stays text.
pub(crate) fn redactor(data: &[u8]) {
    static FORMS: OnceLock<Forms> = OnceLock::new();
    let Forms { knows, forms, cores } = FORMS.get_or_init(forms);
    let mut bytes = Vec::new();
    for byte in data {
        match forms.get(usize::from(*byte)) {
            Some(form) if *byte != b'\n' && *byte != b'\t' => {
                bytes.extend_from_slice(format!("{EDGE}{form}{EDGE}").as_bytes());
            }
            _ => bytes.push(*byte),
        }
    }
    let whole = knows.redact_bytes(&bytes);
    let shown = String::from_utf8_lossy(&whole);
    for form in forms {
        assert!(!shown.contains(form.as_str()), "a form is still there: {form}");
    }
    for part in shown.split(EDGE) {
        let part: String = part.split_whitespace().collect();
        for core in cores {
            assert!(!part.contains(core.as_str()), "a part of a form is still there: {core}");
        }
    }
    let mut stream = knows.stream();
    let mut pieces = Vec::new();
    for piece in bytes.chunks(1 + data.len() % 29) {
        pieces.extend(stream.push(piece));
    }
    pieces.extend(stream.finish());
    assert_eq!(pieces, whole.as_ref(), "what is shown depends on how a stream is cut");
    if let Ok(text) = str::from_utf8(&bytes) {
        assert_eq!(knows.redact(text).text.as_bytes(), whole.as_ref(), "text and bytes differ");
        assert!(str::from_utf8(&whole).is_ok(), "text became something else");
    }
}

fn forms() -> Forms {
    let mut vault = Vault::default();
    vault.insert("SECRET".into(), Secret::new(SECRET.into()));
    let hex: String = bytes(SECRET, "", |_| true);
    let upper = hex.to_uppercase();
    let mut cores = vec![SECRET.to_owned(), hex.clone(), upper.clone()];
    let mut forms = vec![
        SECRET.to_owned(),
        hex.clone(),
        upper,
        wrapped(&hex, 60, "\n"),
        wrapped(&hex, 2, " "),
        bytes(SECRET, "%", |_| true),
        bytes(SECRET, "%", |byte| !byte.is_ascii_alphanumeric()),
        serde_json::Value::from(SECRET).to_string(),
        serde_json::Value::from(serde_json::Value::from(SECRET).to_string()).to_string(),
        // Line feed and tab stand for themselves.
        String::from(SECRET),
        String::from(SECRET),
        format!("'{}'", SECRET.replace('\'', "'\\''")),
        SECRET
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_string() } else { format!("\\{c}") })
            .collect(),
        wrapped(SECRET, 10, "\r\n    "),
    ];
    for alphabet in [STANDARD, URL_SAFE] {
        for before in ["", "a", "ab"] {
            let text = format!("{before}{SECRET}");
            let known = (8 * before.len()).div_ceil(6)..8 * text.len() / 6;
            cores.push(base64(alphabet, &text)[known].to_owned());
            let encoded = base64(alphabet, &format!("{text} and what is after it, for some lines more"));
            forms.push(wrapped(&encoded, 64, "\n"));
            forms.push(wrapped(&encoded, 76, "\\n"));
            forms.push(wrapped(&encoded, 7, "\n"));
        }
    }
    forms.truncate(32);
    Forms { knows: Redactor::new(&vault), forms, cores }
}

/// Hexadecimal of the bytes that are meant, after a prefix; the others as they are.
fn bytes(text: &str, prefix: &str, is_meant: fn(u8) -> bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if is_meant(byte) {
            let _ = write!(out, "{prefix}{byte:02x}");
        } else {
            out.push(byte.into());
        }
    }
    out
}

fn wrapped(text: &str, columns: usize, end: &str) -> String {
    let lines: Vec<&str> =
        text.as_bytes().chunks(columns).filter_map(|line| str::from_utf8(line).ok()).collect();
    lines.join(end)
}

fn base64(alphabet: &[u8], text: &str) -> String {
    let mut out = String::new();
    for three in text.as_bytes().chunks(3) {
        let number = three
            .iter()
            .chain(&[0; 3])
            .take(3)
            .fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        for place in 0..=three.len() {
            out.push(alphabet[number >> (18 - 6 * place) & 63].into());
        }
    }
    out
}
