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

/// Each character that is meant as `write` writes it.
fn escaped(value: &str, is_meant: impl Fn(char) -> bool, write: impl Fn(u32) -> String) -> String {
    value.chars().map(|c| if is_meant(c) { write(c.into()) } else { c.to_string() }).collect()
}

fn unit(code: u32) -> String {
    format!("\\u{code:04X}")
}

fn decimal(code: u32) -> String {
    format!("&#{code};")
}

/// Each character by number without the `;`, where that ends it all the same.
fn open(value: &str, write: impl Fn(u32) -> String) -> String {
    let is_digit = |c: Option<&char>| c.is_some_and(char::is_ascii_hexdigit);
    let chars: Vec<char> = value.chars().collect();
    let next = chars.iter().skip(1).map(Some).chain([None]);
    let one = |(c, next): (&char, Option<&char>)| {
        if is_digit(next) { c.to_string() } else { write(u32::from(*c)) }
    };
    chars.iter().zip(next).map(one).collect()
}

/// What libraries escape of a value, each in its own way.
fn escapes(value: &str) -> Vec<(&'static str, String)> {
    let is_mark = |c: char| !c.is_ascii_alphanumeric() && c != '%';
    let json = value.replace('\\', "\\\\").replace('"', "\\u0022").replace('\'', "\\u0027");
    let named = value.replace('&', "&amp;").replace('"', "&quot;").replace('\'', "&#39;");
    vec![
        ("JSON, only + as \\u002B", json.replace('+', "\\u002B")),
        ("JSON in JSON, only + as \\u002B", json.replace('+', "\\u002B").replace('\\', "\\\\")),
        ("HTML, only + as a reference", named.replace('+', "&#43;")),
        ("HTML, / and + in two ways", named.replace('/', "&#x2F;").replace('+', "&#43;")),
        ("HTML, / and + by name", named.replace('/', "&sol;").replace('+', "&plus;")),
        ("HTML in JSON", named.replace('+', "&#43;").replace('&', "\\u0026")),
        ("HTML in HTML", named.replace('+', "&#43;").replace('&', "&amp;")),
        ("a URL in HTML", percent_but_quotes(value).replace('\'', "&#39;")),
        ("a URL in JSON", percent_but_quotes(value).replace('\'', "\\u0027")),
        ("each character as \\u0067", escaped(value, |_| true, unit)),
        ("each character as \\x67", escaped(value, |_| true, |code| format!("\\x{code:02x}"))),
        ("each character as &#103;", escaped(value, |_| true, decimal)),
        ("each character as &#x67;", escaped(value, |_| true, |code| format!("&#x{code:x};"))),
        ("each mark as \\u002b", escaped(value, is_mark, |code| format!("\\u{code:04x}"))),
        ("each mark as &#0043;", escaped(value, is_mark, |code| format!("&#{code:04};"))),
        ("each character as &#103 without its end", open(value, |code| format!("&#{code}"))),
        ("each character as &#x67 without its end", open(value, |code| format!("&#x{code:X}"))),
        (
            "some behind many zeros",
            escaped(value, |c| "/+$".contains(c), |code| format!("&#{}{code};", "0".repeat(40))),
        ),
        ("each character behind many zeros", escaped(value, |_| true, |code| format!("&#x{code:050x};"))),
        ("some of each", escaped(value, |c| c < 'A', unit).replace('L', "&#76;").replace('C', "&#x43;")),
    ]
}

fn percent_but_quotes(value: &str) -> String {
    escaped(value, |c| !c.is_ascii_alphanumeric() && c != '\'', |code| format!("%{code:02X}"))
}

fn hex(value: &str) -> String {
    value.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Each letter in another case than the one before.
fn mixed_hex(value: &str) -> String {
    let mut is_upper = false;
    let cased = |c: char| {
        is_upper ^= c.is_ascii_alphabetic();
        if is_upper { c.to_ascii_uppercase() } else { c }
    };
    hex(value).chars().map(cased).collect()
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
        ("hexadecimal in both cases", mixed_hex(value)),
        ("hexadecimal in both cases with colons", wrapped(&mixed_hex(value), 2, ":")),
        ("hexadecimal in both cases in lines", wrapped(&mixed_hex(value), 16, "\n    ")),
        ("hexadecimal in both cases behind a percent sign", format!("100%{}", mixed_hex(value))),
        ("hexadecimal in both cases, escaped", escaped(&mixed_hex(value), |c| c > '8', decimal)),
        ("hexadecimal in lines", wrapped(&hex(value), 60, "\n")),
        ("hexadecimal in pairs", wrapped(&hex(value), 4, " ")),
        ("hexadecimal with colons", wrapped(&hex(value), 2, ":")),
        ("hexadecimal with dashes", wrapped(&hex(value).to_uppercase(), 2, "-")),
        ("hexadecimal with colons in lines", wrapped(&wrapped(&hex(value), 2, ":"), 45, "\n    ")),
        ("a part in colour", value.replacen("q9+", "\u{1b}[01;31m\u{1b}[Kq9+\u{1b}[m\u{1b}[K", 1)),
    ] {
        forms.push((name.to_owned(), text));
    }
    forms.extend(escapes(value).into_iter().map(|(name, text)| (name.to_owned(), text)));
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
            // What is left are characters that hold bits of the neighbours too: at most two on each side, and
            // padding.
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
        ("references", "&#120;&#x37;".to_owned()),
        ("half references", "&#&#12&amp;#12".to_owned()),
        ("units", "\\u0078\\u0037".to_owned()),
        ("half units", "\\u00\\ud83d\\u0078".to_owned()),
        ("pairs", "78:37:".to_owned()),
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

/// The key of a well-known example, with just what the encoders of two common libraries escape of it.
#[test]
fn a_key_is_taken_out_whatever_of_it_is_escaped() {
    let value = "wJalrXUt/FEMI+K7MDENGbPxRfiCYzz/KEYq9Az";
    let knows = redactor(&[("KEY", value)]);
    for text in [value.replace('+', "\\u002B"), value.replace('+', "&#43;")] {
        assert_eq!(redact(&knows, &format!("<p>{text}</p>")), "<p>[redacted:KEY]</p>");
        // Nothing of it is left beside a cut, either.
        let cut = format!("{}{}", "before ".repeat(200), &text[..text.len() - 1]);
        let shown = String::from_utf8(knows.redact_before_cut(cut.as_bytes())).unwrap();
        assert!(!shown.contains("wJal"), "{shown}");
    }
    let named = redactor(&[("NAMED", "sk_live_9Zk3vQ9s|X1bN7*tR5wY`2mC")]);
    for text in [
        "sk&UnderBar;live&UnderBar;9Zk3vQ9s&VerticalLine;X1bN7&midast;tR5wY&DiacriticalGrave;2mC",
        "sk&lowbar;live&lowbar;9Zk3vQ9s&vert;X1bN7&ast;tR5wY&grave;2mC",
    ] {
        assert_eq!(redact(&named, &format!("<p>{text}</p>")), "<p>[redacted:NAMED]</p>");
    }
    // A short password, of which too little is left without its quotes.
    let knows = redactor(&[("PASSWORD", "aB3'\"xY9")]);
    for text in
        ["aB3'\\u0022xY9", "aB3\\u0027\\u0022xY9", "aB3&#39;&quot;xY9", "aB3'&#34;xY9", "aB%33'%22xY9"]
    {
        assert_eq!(redact(&knows, text), "[redacted:PASSWORD]", "{text}");
    }
    // One with so many of them in a row that, escaped, they would be too wide a gap.
    let quoted = "aaa000AAA\\\\\"\\\\'0b";
    let knows = redactor(&[("QUOTED", quoted)]);
    for text in [escaped(quoted, |_| true, unit), escaped(quoted, |c| !c.is_ascii_alphanumeric(), decimal)] {
        assert_eq!(redact(&knows, &text), "[redacted:QUOTED]", "{text}");
    }
    // One of which a part looks like a reference of HTML, where it is escaped, and where only others of its
    // characters are; and two of which an end becomes one with what stands beside it.
    let refers = "aaa000AAA&lta+7Kq";
    let knows = redactor(&[("REFERS", refers)]);
    for text in [
        escaped(refers, |c| !c.is_ascii_lowercase(), decimal),
        refers.replace('&', "&amp;"),
        refers.replace('&', "&amp;amp;"),
        refers.replace('&', "\\u0026"),
        refers.replace('+', "\\u002b"),
        refers.replace('&', "&amp;").replace('+', "%2B"),
    ] {
        assert_eq!(redact(&knows, &text), "[redacted:REFERS]", "{text}");
    }
    let knows = redactor(&[("ENDS", "x7Kq9Lm2pB&l")]);
    assert_eq!(redact(&knows, "x7Kq9Lm2pB&amp;lt;"), "[redacted:ENDS]t;");
    let knows = redactor(&[("BEGINS", "gt7Kq9Lm2pB+4")]);
    assert_eq!(redact(&knows, "a=b&amp;gt7Kq9Lm2pB&plus;4"), "a=b&amp;[redacted:BEGINS]");
    let knows = redactor(&[("BOTH", "aaa000AAA&amp;\\\"\\\\\\'\\b")]);
    let both = escaped("aaa000AAA&amp;\\\"\\\\\\'\\b", |c| !c.is_ascii_lowercase(), decimal);
    assert_eq!(redact(&knows, &both), "[redacted:BOTH]", "{both}");
    // Characters of more bytes than one, and of two units.
    let wide = "clé-+7Kq9Lm😀2pBdW";
    let knows = redactor(&[("WIDE", wide)]);
    for text in [
        wide.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect::<String>(),
        escaped(wide, |_| true, decimal),
        wide.replace('+', "\\u002B").replace('é', "\\u00E9").replace('😀', "\\uD83D\\uDE00"),
    ] {
        assert_eq!(redact(&knows, &format!("|{text}|")), "|[redacted:WIDE]|");
        let mut stream = knows.stream();
        let mut pieces: Vec<u8> = text.bytes().flat_map(|byte| stream.push(&[byte])).collect();
        pieces.extend(stream.finish());
        assert_eq!(String::from_utf8(pieces).unwrap(), "[redacted:WIDE]");
    }
}

/// Where each character of a long value is escaped, what comes before a cut leaves out all of it.
#[test]
fn a_cut_leaves_nothing_of_an_escaped_value() {
    let value = "x7Kq9Lm2pBdW4TzRw8NsYc3HdF6gKe1Ua5QoXi0B".repeat(5);
    let knows = redactor(&[("LONG", &value)]);
    for text in [escaped(&value, |_| true, unit), escaped(&value, |_| true, |code| format!("&#x{code:x};"))] {
        let cut = format!("{}{}", "before ".repeat(400), &text[..text.len() - 1]);
        let shown = String::from_utf8(knows.redact_before_cut(cut.as_bytes())).unwrap();
        assert!(shown.starts_with("before ") && !shown.contains(&text[..6]), "{shown}");
    }
}
