//! Escapes of a character that begin with a backslash or an ampersand: JSON's `\u002b` (RFC 8259), with a
//! pair for what lies beyond 16 bits; `\x2b` of programming languages; and HTML's references, `&#43;`,
//! `&#x2b;` and `&plus;`, whose ampersand may be escaped once more, as JSON and HTML do with HTML. HTML reads
//! numbers, and some of its oldest names, without the `;`, too.

/// The most bytes that are looked at for one: HTML takes any number of zeros before a number, and each one
/// that is waited for delays what comes out. A number with more than fifty of them is taken for no escape.
pub(crate) const ESCAPE_MAX: usize = 64;
/// The letters of the longest name.
const NAME_MAX: usize = 16;

/// Names that HTML also reads where no `;` ends them, and whatever letters come then.
const OPEN_NAMES: [(&[u8], char); 8] = [
    (b"AMP", '&'),
    (b"GT", '>'),
    (b"LT", '<'),
    (b"QUOT", '"'),
    (b"amp", '&'),
    (b"gt", '>'),
    (b"lt", '<'),
    (b"quot", '"'),
];
/// HTML's names for characters of ASCII, and for two dashes that are read as one of these. (`&fjlig;`, which
/// is two, is not among them.)
const NAMES: [(&[u8], char); 47] = [
    (b"AMP", '&'),
    (b"DiacriticalGrave", '`'),
    (b"GT", '>'),
    (b"Hat", '^'),
    (b"LT", '<'),
    (b"NewLine", '\n'),
    (b"QUOT", '"'),
    (b"Tab", '\t'),
    (b"UnderBar", '_'),
    (b"VerticalLine", '|'),
    (b"amp", '&'),
    (b"apos", '\''),
    (b"ast", '*'),
    (b"bsol", '\\'),
    (b"colon", ':'),
    (b"comma", ','),
    (b"commat", '@'),
    (b"dash", '-'),
    (b"dollar", '$'),
    (b"equals", '='),
    (b"excl", '!'),
    (b"grave", '`'),
    (b"gt", '>'),
    (b"hyphen", '-'),
    (b"lbrace", '{'),
    (b"lbrack", '['),
    (b"lcub", '{'),
    (b"lowbar", '_'),
    (b"lpar", '('),
    (b"lsqb", '['),
    (b"lt", '<'),
    (b"midast", '*'),
    (b"num", '#'),
    (b"percnt", '%'),
    (b"period", '.'),
    (b"plus", '+'),
    (b"quest", '?'),
    (b"quot", '"'),
    (b"rbrace", '}'),
    (b"rbrack", ']'),
    (b"rcub", '}'),
    (b"rpar", ')'),
    (b"rsqb", ']'),
    (b"semi", ';'),
    (b"sol", '/'),
    (b"verbar", '|'),
    (b"vert", '|'),
];

/// What a text begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escape {
    /// No escape.
    No,
    /// It depends on bytes that have not come yet.
    More,
    /// One of this character, and its length.
    Of(char, usize),
}

/// Whether an escape may begin with this byte.
pub(crate) fn begins(byte: u8) -> bool {
    matches!(byte, b'\\' | b'&')
}

/// Whether there is anything in a text that may be one, also with what comes after it.
pub(crate) fn may_be_in(text: &[u8]) -> bool {
    let is_one = |two: &[u8]| match two {
        [b'\\', next] => matches!(next, b'u' | b'x'),
        [b'&', next] => *next == b'#' || next.is_ascii_alphabetic(),
        _ => false,
    };
    let begins_any = text.contains(&b'\\') || text.contains(&b'&');
    begins_any && (text.last().is_some_and(|last| begins(*last)) || text.windows(2).any(is_one))
}

/// Whether there is anything in such a text that may be an ampersand's escape.
pub(crate) fn may_be_twice(text: &[u8]) -> bool {
    let is_reference = |three: &[u8]| matches!(three, b"&am" | b"&AM" | b"&#0" | b"&#3" | b"&#x" | b"&#X");
    let is_unit = |four: &[u8]| matches!(four, b"0026" | b"\\x26");
    text.windows(3).any(is_reference) || text.windows(4).any(is_unit)
}

/// What an ampersand that is itself escaped stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// An ampersand: what comes then is no part of an escape.
    Once,
    /// The beginning of a reference, where one comes then.
    Twice,
}

/// The escape that a text begins with; with `end` nothing comes after it.
pub(crate) fn read(text: &[u8], depth: Depth, end: bool) -> Escape {
    let bytes = text.get(..ESCAPE_MAX).unwrap_or(text);
    let is_all = end || bytes.len() == ESCAPE_MAX;
    // What fills all that is looked at might go on, so it ends nowhere: else it would matter where a text is
    // cut.
    let mut rest = Rest { bytes, ends: end && bytes.len() < ESCAPE_MAX };
    let mut read = match bytes {
        [b'&', ..] => rest.byte().and_then(|_| rest.reference()),
        _ => rest.of_units(),
    };
    let mut length = bytes.len() - rest.bytes.len();
    if read == Ok('&') && depth == Depth::Twice {
        match rest.reference() {
            Err(Escape::More) if !is_all => return Escape::More,
            Ok(c) => (read, length) = (Ok(c), bytes.len() - rest.bytes.len()),
            Err(_) => {}
        }
    }
    match read {
        Ok(c) => Escape::Of(c, length),
        Err(Escape::More) if !is_all => Escape::More,
        Err(_) => Escape::No,
    }
}

/// A text with its escapes undone, which a value may have by itself.
pub(crate) fn undo(text: &str) -> String {
    let (mut undone, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(first) = rest.chars().next() {
        let (c, length) = match read(rest.as_bytes(), Depth::Twice, true) {
            Escape::Of(c, length) => (c, length),
            Escape::No | Escape::More => (first, first.len_utf8()),
        };
        undone.push(c);
        rest = rest.get(length..).unwrap_or_default();
    }
    undone
}

/// What of an escape has not been read.
struct Rest<'a> {
    bytes: &'a [u8],
    /// Whether nothing comes after it.
    ends: bool,
}

impl Rest<'_> {
    fn byte(&mut self) -> Result<u8, Escape> {
        let (first, rest) = self.bytes.split_first().ok_or(Escape::More)?;
        self.bytes = rest;
        Ok(*first)
    }

    /// One unit behind a backslash, or two that make a character together.
    fn of_units(&mut self) -> Result<char, Escape> {
        let code = match self.unit()? {
            high @ 0xd800..0xdc00 => match self.unit()? {
                low @ 0xdc00..0xe000 => 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00),
                _ => return Err(Escape::No),
            },
            unit => unit,
        };
        char::from_u32(code).ok_or(Escape::No)
    }

    /// `\u` and four digits, or `\x` and two that make an ASCII character: what two others make depends on
    /// who wrote them.
    fn unit(&mut self) -> Result<u32, Escape> {
        if self.byte()? != b'\\' {
            return Err(Escape::No);
        }
        let (digits, below) = match self.byte()? {
            b'u' => (4, 0x10000),
            b'x' => (2, 0x80),
            _ => return Err(Escape::No),
        };
        let unit = (0..digits).try_fold(0, |unit, _| Ok(unit * 16 + digit(self.byte()?, 16)?))?;
        if unit < below { Ok(unit) } else { Err(Escape::No) }
    }

    /// What is behind an ampersand.
    fn reference(&mut self) -> Result<char, Escape> {
        if self.bytes.first().is_some_and(|first| *first != b'#') {
            return self.name();
        }
        self.byte()?;
        let mut next = self.byte()?;
        let radix = if matches!(next, b'x' | b'X') { 16 } else { 10 };
        if radix == 16 {
            next = self.byte()?;
        }
        let mut code = digit(next, radix)?;
        loop {
            match self.bytes.first().map(|next| (digit(*next, radix), *next)) {
                // What is too large is no character, whatever comes then.
                Some((Ok(digit), _)) => code = code.saturating_mul(radix).saturating_add(digit),
                Some((Err(_), b';')) => {
                    self.byte()?;
                    break;
                }
                None if !self.ends => return Err(Escape::More),
                Some(_) | None => break,
            }
            self.byte()?;
        }
        char::from_u32(code).ok_or(Escape::No)
    }

    fn name(&mut self) -> Result<char, Escape> {
        let length = self.bytes.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (letters, rest) = self.bytes.split_at_checked(length).ok_or(Escape::No)?;
        if let [b';', rest @ ..] = rest
            && let Some((_, c)) = NAMES.iter().find(|(name, _)| *name == letters)
        {
            self.bytes = rest;
            return Ok(*c);
        }
        if rest.is_empty() && length <= NAME_MAX && !self.ends {
            return Err(Escape::More);
        }
        let (name, c) = OPEN_NAMES.iter().find(|(name, _)| letters.starts_with(name)).ok_or(Escape::No)?;
        self.bytes = self.bytes.get(name.len()..).unwrap_or_default();
        Ok(*c)
    }
}

fn digit(byte: u8, radix: u32) -> Result<u32, Escape> {
    char::from(byte).to_digit(radix).ok_or(Escape::No)
}

#[cfg(test)]
mod tests {
    use super::{Depth, ESCAPE_MAX, Escape, undo};

    fn read(text: &[u8], end: bool) -> Escape {
        super::read(text, Depth::Twice, end)
    }

    /// A value may hold what looks like a reference.
    #[test]
    fn an_escaped_ampersand_is_read_in_two_ways() {
        for (text, once) in [("&#38;lta", 5), ("&amp;plus;", 5), ("\\u0026#43;", 6), ("&amp;", 5)] {
            let read = |end| super::read(text.as_bytes(), Depth::Once, end);
            assert_eq!([read(false), read(true)], [Escape::Of('&', once); 2], "{text}");
        }
        assert_eq!(super::read(b"&#38", Depth::Once, false), Escape::More);
        assert_eq!(undo("aé&lta\\u002b&amp;amp;&&#9z"), "aé<a+&&\u{9}z");
        assert_eq!(undo("x7Kq9Lm2&nix"), "x7Kq9Lm2&nix");
    }

    #[test]
    fn each_escape_is_read_as_what_it_stands_for() {
        for (text, c) in [
            ("\\u002b", '+'),
            ("\\u002B", '+'),
            ("\\x2B", '+'),
            ("\\ud83d\\ude00", '😀'),
            ("&#43;", '+'),
            ("&#0043;", '+'),
            ("&#x2b;", '+'),
            ("&#X2B;", '+'),
            ("&plus;", '+'),
            ("&UnderBar;", '_'),
            ("&DiacriticalGrave;", '`'),
            ("&amp;VerticalLine;", '|'),
            ("&amp;", '&'),
            ("&#0000000000000000000000000000000000000000043;", '+'),
            ("&amp;#x0000000000000000000000000000000000000000002b;", '+'),
            ("&amp;#43;", '+'),
            ("&amp;#x0010FFFF;", '\u{10ffff}'),
            ("\\u0026#43;", '+'),
            ("\\u0026", '&'),
        ] {
            assert_eq!(read(text.as_bytes(), true), Escape::Of(c, text.len()), "{text}");
            let longer = format!("{text} and what comes then");
            assert_eq!(read(longer.as_bytes(), false), Escape::Of(c, text.len()), "{text}");
            for cut in 1..text.len() {
                assert_eq!(read(&text.as_bytes()[..cut], false), Escape::More, "{text}, {cut}");
            }
        }
    }

    /// As HTML's standard reads them ("numeric character reference end state", and names without `;` in its
    /// list).
    #[test]
    fn a_reference_may_end_without_a_semicolon() {
        for (text, c, length) in [
            ("&#90k", 'Z', 4),
            ("&#x5Ak", 'Z', 5),
            ("&#x5A&#90", 'Z', 5),
            ("&#4 3;", '\u{4}', 3),
            ("&amp;#90k", 'Z', 8),
            ("\\u0026#90k", 'Z', 9),
            ("&amp#90;k", 'Z', 8),
            ("&amp;lt,", '<', 7),
            ("&quotable;", '"', 5),
            ("&LT=", '<', 3),
            ("&gtttttttttttttttttttttttttt", '>', 3),
        ] {
            assert_eq!(read(text.as_bytes(), false), Escape::Of(c, length), "{text}");
        }
        for (text, c) in [("&#90", 'Z'), ("&#x5a", 'Z'), ("&lt", '<')] {
            assert_eq!(read(text.as_bytes(), true), Escape::Of(c, text.len()), "{text}");
            assert_eq!(read(text.as_bytes(), false), Escape::More, "{text}: more of it may come");
        }
    }

    #[test]
    fn what_is_no_escape_is_left_as_it_is() {
        for text in [
            "\\n",
            "\\u00zz",
            "\\xff",
            "\\ud83d!",
            "\\ud83d\\u0041",
            "\\ude00",
            "& ",
            "&;",
            "&#;",
            "&#x;",
            "&nix;",
            "&plus ",
            "&#xD800;",
            "&#x110000;",
            "&#99999999999;",
            "&#xFFFFFFFFFF;",
        ] {
            assert_eq!(read(text.as_bytes(), false), Escape::No, "{text}");
        }
        // What is too long is none, so that little is waited for.
        let zeros = format!("&#{}43;", "0".repeat(ESCAPE_MAX));
        for end in [false, true] {
            assert_eq!(read(zeros.as_bytes(), end), Escape::No);
            assert_eq!(read(zeros.get(..ESCAPE_MAX).unwrap().as_bytes(), end), Escape::No);
        }
        assert_eq!(read(b"&abcdefghijklmnopq", false), Escape::No);
        // An ampersand whose reference goes no further is itself.
        assert_eq!(read(b"&amp;nix,", false), Escape::Of('&', 5));
    }
}
