//! Sets of characters in which servers send text: a file of the nineties is read as well as one of today.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use std::borrow::Cow;

/// How much of a page is looked through for the set that it names (HTML, 13.2.3.2).
const NAMED_WITHIN: usize = 1024;

/// The text of these bytes, in the set that they begin with the mark of, or else that is named, by the server
/// or by the page itself, or else in UTF-8. What is none of it becomes U+FFFD. None where the server names a
/// set that nobody knows.
pub(super) fn decoded<'a>(bytes: &'a [u8], named: Option<&str>, is_html: bool) -> Option<Cow<'a, str>> {
    let (encoding, mark) = match (Encoding::for_bom(bytes), named) {
        (Some(marked), _) => marked,
        (None, Some(named)) => (Encoding::for_label_no_replacement(named.as_bytes())?, 0),
        (None, None) if is_html => (of_page(bytes), 0),
        (None, None) => (UTF_8, 0),
    };
    Some(encoding.decode_without_bom_handling(bytes.get(mark..)?).0)
}

/// The set that a page names itself, or shows by how it begins.
fn of_page(html: &[u8]) -> &'static Encoding {
    match html {
        [b'<', 0, ..] => return UTF_16LE,
        [0, b'<', ..] => return UTF_16BE,
        _ => {}
    }
    let head = String::from_utf8_lossy(html.get(..NAMED_WITHIN).unwrap_or(html)).to_ascii_lowercase();
    let tags = head.split("<meta").skip(1).map(|tag| tag.split('>').next().unwrap_or_default());
    let named = tags.filter_map(|tag| tag.split_once("charset=")).find_map(|(_, value)| {
        let value = value.trim_start_matches(['"', '\'', ' ']);
        let end = value.find(['"', '\'', ' ', ';', '/']).unwrap_or(value.len());
        Encoding::for_label_no_replacement(value.get(..end)?.as_bytes())
    });
    // It was read as ASCII so far, which UTF-16 is not.
    named.filter(|named| named.is_ascii_compatible()).unwrap_or(UTF_8)
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn text_is_read_in_the_set_that_is_named() {
        let wide = |units: fn(u16) -> [u8; 2]| "<p>Grüße".encode_utf16().flat_map(units).collect::<Vec<u8>>();
        let marked = |mark: &[u8], bytes: &[u8]| [mark, bytes].concat();
        let page = |head: &str| [head.as_bytes(), b"<p>Gr\xfc\xdfe"].concat();
        for (bytes, named, html, expected) in [
            (b"Gr\xfc\xdfe".to_vec(), Some("iso-8859-1"), false, "Grüße"),
            (b"Gr\xfc\xdfe \x80".to_vec(), Some("windows-1252"), true, "Grüße €"),
            ("Grüße".into(), Some("utf-8"), false, "Grüße"),
            ("Grüße".into(), None, false, "Grüße"),
            (b"Gr\xfc\xdfe".to_vec(), None, false, "Gr\u{fffd}\u{fffd}e"),
            (b"\x93\xfa\x96\x7b".to_vec(), Some("shift_jis"), true, "日本"),
            (wide(u16::to_le_bytes), Some("utf-16le"), true, "<p>Grüße"),
            (wide(u16::to_be_bytes), Some("utf-16be"), true, "<p>Grüße"),
            (wide(u16::to_le_bytes), None, true, "<p>Grüße"),
            (wide(u16::to_be_bytes), None, true, "<p>Grüße"),
            // A mark says more than a name.
            (marked(b"\xff\xfe", &wide(u16::to_le_bytes)), Some("utf-8"), false, "<p>Grüße"),
            (marked(b"\xef\xbb\xbf", "Grüße".as_bytes()), None, true, "Grüße"),
            (page("<meta charset=latin1>"), None, true, "<meta charset=latin1><p>Grüße"),
            (
                page("<META http-equiv=content-type content='text/html; charset=ISO-8859-1'>"),
                None,
                true,
                "<META http-equiv=content-type content='text/html; charset=ISO-8859-1'><p>Grüße",
            ),
            // What cannot be, and what is no page, names nothing.
            ("<meta charset=utf-16>Grüße".into(), None, true, "<meta charset=utf-16>Grüße"),
            ("<meta charset=nix>Grüße".into(), None, true, "<meta charset=nix>Grüße"),
            ("<meta charset=latin1>Grüße".into(), None, false, "<meta charset=latin1>Grüße"),
            (Vec::new(), None, true, ""),
        ] {
            assert_eq!(decoded(&bytes, named, html).as_deref(), Some(expected), "{named:?} {html}");
        }
        assert_eq!(decoded(b"x", Some("klingon"), true), None);
        assert_eq!(decoded(b"x", Some("hz-gb-2312"), true), None, "one that hides what is ASCII");
    }
}
