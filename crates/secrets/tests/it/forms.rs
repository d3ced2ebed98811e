//! Forms that no list of spellings can hold: wrapped, quoted, coloured, encoded here and there.

use crate::{redact, redactor, vault};
use bailey_secrets::{Redactor, has_mark};
use base64::{Engine as _, engine::general_purpose::*};

const VALUE: &str = "x7K/q9+Lm\"2p$Bd'W 5tR\\nQ8z%41vC3";

fn wrapped(text: &str, columns: usize, line_end: &str) -> String {
    let lines: Vec<&str> =
        (0..text.len()).step_by(columns).map(|at| &text[at..text.len().min(at + columns)]).collect();
    lines.join(line_end)
}

fn each_byte(value: &str) -> String {
    value.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

fn every_other_byte(value: &str) -> String {
    let one = |(at, c): (usize, char)| {
        if at % 2 == 0 || c == '%' { format!("%{:02X}", c as u32) } else { c.to_string() }
    };
    value.chars().enumerate().map(one).collect()
}

fn hex(value: &str) -> String {
    value.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Each form, by what makes it.
fn forms(value: &str) -> Vec<(String, String)> {
    let mut forms = Vec::new();
    for (name, engine) in [
        ("standard", STANDARD),
        ("unpadded", STANDARD_NO_PAD),
        ("url", URL_SAFE),
        ("url unpadded", URL_SAFE_NO_PAD),
    ] {
        for before in ["", "a", "ab", "user:"] {
            let long = format!("{before}{value}{}", "and more after it ".repeat(6));
            let encoded = engine.encode(&long);
            for columns in [16, 64, 76] {
                for end in ["\n", "\r\n", "\n    ", "\\n", "\" \\\n  \"", "\\\\n"] {
                    let name = format!("Base64 {name} after {before:?}, {columns} columns, {end:?}");
                    forms.push((name, wrapped(&encoded, columns, end)));
                }
            }
        }
    }
    let quoted = value.replace('\'', "'\\''");
    let doubled = value.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$");
    let printf: String = value
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_string() } else { format!("\\{c}") })
        .collect();
    let json = serde_json::to_string(value).unwrap();
    for (name, text) in [
        ("in single quotes", format!("'{quoted}'")),
        ("in both quotes", format!("'{}'", value.replace('\'', "'\"'\"'"))),
        ("in double quotes", format!("\"{doubled}\"")),
        ("printf %q", printf),
        ("JSON", json.clone()),
        ("JSON twice", serde_json::to_string(&json).unwrap()),
        ("JSON thrice", serde_json::to_string(&serde_json::to_string(&json).unwrap()).unwrap()),
        ("each byte in percent", each_byte(value)),
        ("every other in percent", every_other_byte(value)),
        ("percent of Base64", each_byte(&STANDARD.encode(value))),
        ("a line of a terminal", wrapped(value, 20, "\n")),
        ("hexadecimal", hex(value)),
        ("upper case hexadecimal", hex(value).to_uppercase()),
        ("hexadecimal in lines", wrapped(&hex(value), 60, "\n")),
        ("hexadecimal in pairs", wrapped(&hex(value), 4, " ")),
        ("a part in colour", value.replacen("q9+", "\u{1b}[01;31m\u{1b}[Kq9+\u{1b}[m\u{1b}[K", 1)),
    ] {
        forms.push((name.to_owned(), text));
    }
    forms
}

#[test]
fn a_known_secret_is_taken_out_in_every_form() {
    let (knows, control) =
        (redactor(&[("MY_TOKEN", VALUE)]), redactor(&[("MY_TOKEN", "another-Val7e-entirely")]));
    for (name, form) in forms(VALUE) {
        let text = format!("before |{form}| after");
        let found = redact(&knows, &text);
        assert!(has_mark(&found), "{name}: {text}");
        // Nothing of ten characters in a row of it is left but what Base64 holds of the text around it.
        if !name.starts_with("Base64") {
            let rest = found.replace("[redacted:MY_TOKEN]", "");
            assert!(rest.trim_matches(['"', '\'', '\\']).len() < 30, "{name}: {found}");
        }
        let mut stream = knows.stream();
        let mut pieces: Vec<u8> = text.bytes().flat_map(|byte| stream.push(&[byte])).collect();
        pieces.extend(stream.finish());
        assert_eq!(String::from_utf8(pieces).unwrap(), found, "{name}, byte by byte");
        // Control: with only the value unknown, it shows.
        assert_eq!(redact(&control, &text), text, "{name}");
    }
}

#[test]
fn wrapped_base64_leaves_no_part_of_the_value() {
    let knows = redactor(&[("MY_TOKEN", VALUE)]);
    for before in ["", "a", "ab"] {
        let encoded = STANDARD.encode(format!("{before}{VALUE}"));
        for columns in [4, 16, 64, 76] {
            let found = redact(&knows, &wrapped(&encoded, columns, "\n"));
            let left: String = found.replace("[redacted:MY_TOKEN]", "").split_whitespace().collect();
            // What is left are characters that hold bits of the neighbours too: at most two on each side, and padding.
            assert!(left.len() <= 7, "{columns}: {found}");
        }
    }
}

#[test]
fn a_part_of_a_value_of_several_lines_is_taken_out() {
    let lines =
        ["-----BEGIN SECRET-----", "k7Jq2LmP9xVb4TzRw8Ns", "Yc3HdF6gKe1Ua5QoXi0B", "-----END SECRET-----"];
    let knows = redactor(&[("MY_KEY", &lines.join("\n"))]);
    assert_eq!(redact(&knows, &format!("3: {}\n", lines[2])), "3: [redacted:MY_KEY]\n");
    assert_eq!(redact(&knows, lines[0]), lines[0]);
    // Control: the same lines of a value that is not known.
    assert_eq!(redact(&redactor(&[]), lines[2]), lines[2]);
}

#[test]
fn what_is_far_apart_or_weak_is_no_secret() {
    let knows = redactor(&[("ONE", "x7Kq9Lm2pBdW"), ("WEAK", "\"a1\" \"b2\" \"c3\"")]);
    let far = format!("x7Kq9L{}m2pBdW", " ".repeat(40));
    for text in [far.as_str(), "x7Kq9L|m2pBdW", "x7Kq9L\n> m2pBdW", "a1b2c3", "x7 Kq 9L m2 pB d"] {
        assert_eq!(redact(&knows, text), text);
    }
    let near = format!("x7Kq9L{}m2pBdW", " ".repeat(20));
    assert_eq!(redact(&knows, &near), "[redacted:ONE]");
}

/// Short values would flood a text with false hits; a form has at least ten characters.
#[test]
fn random_text_has_no_false_hits() {
    let knows = redactor(&[("ONE", "x7Kq9Lm2"), ("TWO", "a1b2C3d4"), ("THREE", "zeb-ra77")]);
    let mut state = 1_u64;
    let text: Vec<u8> = (0..2_000_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        })
        .collect();
    for text in [STANDARD.encode(&text), text.iter().map(|byte| format!("{byte:02x} ")).collect()] {
        assert_eq!(knows.redact(&text).hits, 0);
    }
}

#[test]
fn fifty_megabytes_of_near_misses_take_linear_time() {
    let value = "x7Kq9Lm2pBdW4TzRw8NsYc3HdF6gKe1Ua5QoXi0B";
    let knows = Redactor::new(&vault(&[("ONE", value), ("TWO", "x7x7x7x7x7x7x7x7x7x7x7x7x8")]));
    let near = STANDARD.encode(value);
    let pieces = [
        ("almost the value", value[..value.len() - 1].to_owned()),
        ("almost its Base64, wrapped", wrapped(&near[..near.len() - 6], 8, "\n")),
        ("repeating", "x7".to_owned()),
        ("escapes", "%78%37".to_owned()),
        ("half escapes", "%7%3x".to_owned()),
        ("white space", format!("x7{}", " ".repeat(31))),
        ("backslashes", "\\\\\\\\x".to_owned()),
        ("colours", "\u{1b}[01;31mx\u{1b}[7".to_owned()),
    ];
    let mut total = 0;
    for (name, piece) in pieces {
        let text = piece.repeat(6_250_000 / piece.len());
        let start = std::time::Instant::now();
        let found = knows.redact(&text);
        let took = start.elapsed();
        total += text.len();
        println!("{name}: {} bytes in {took:?}, {} hits", text.len(), found.hits);
        assert_eq!(found.hits, 0, "{name}");
    }
    println!("{total} bytes");
}

#[test]
fn a_known_secret_is_taken_out_in_another_case_and_in_wide_letters() {
    let value = "ghp_Zk3vQ9sX1bN7tR5wY2mC8dF6hJ4lP0aE";
    let (knows, control) =
        (redactor(&[("MY_TOKEN", value)]), redactor(&[("MY_TOKEN", "another-Val7e-entirely")]));
    let wide = |bytes: fn(u32) -> [u8; 4]| value.chars().map(u32::from).flat_map(bytes).collect::<Vec<u8>>();
    for form in [
        value.to_uppercase().into_bytes(),
        value.to_lowercase().into_bytes(),
        wide(u32::to_le_bytes),
        wide(u32::to_be_bytes),
    ] {
        assert_eq!(*knows.redact_bytes(&form), *b"[redacted:MY_TOKEN]", "{form:?}");
        assert_eq!(*control.redact_bytes(&form), *form, "the control");
    }
    // What is weak in one case is not masked in it.
    let mixed = redactor(&[("MIXED", "aBcXyZpQr")]);
    assert!(has_mark(&redact(&mixed, "aBcXyZpQr")) && !has_mark(&redact(&mixed, "abcxyzpqr")));
    // A value that is its own name in another case is masked, and its mark is not.
    let named = redactor(&[("FORGE_TOKEN_1", "forge_token_1")]);
    let once = redact(&named, "forge_token_1");
    assert_eq!((once.as_str(), redact(&named, &once)), ("[redacted:FORGE_TOKEN_1]", once.clone()));
}
