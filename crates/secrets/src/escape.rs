//! Escapes of a character that begin with a backslash or an ampersand: JSON's `\u002b` (RFC 8259), with a pair for what lies
//! beyond 16 bits; `\x2b` of programming languages; and HTML's references, `&#43;`, `&#x2b;` and `&plus;`, whose ampersand may
//! be escaped once more, as JSON and HTML do with HTML.

/// The most bytes that are looked at for one.
pub(crate) const ESCAPE_MAX: usize = 16;

/// HTML's names for what stands in keys and passwords.
const NAMES: [(&[u8], char); 42] = [
    (b"AMP", '&'),
    (b"GT", '>'),
    (b"Hat", '^'),
    (b"LT", '<'),
    (b"NewLine", '\n'),
    (b"QUOT", '"'),
    (b"Tab", '\t'),
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

/// The escape that a text begins with; with `end` nothing comes after it.
pub(crate) fn read(text: &[u8], end: bool) -> Escape {
    let bytes = text.get(..ESCAPE_MAX).unwrap_or(text);
    let is_all = end || bytes.len() == ESCAPE_MAX;
    let mut rest = Rest(bytes);
    let mut read = match bytes {
        [b'&', ..] => rest.byte().and_then(|_| rest.reference()),
        _ => rest.of_units(),
    };
    let mut length = bytes.len() - rest.0.len();
    if read == Ok('&') {
        match rest.reference() {
            Err(Escape::More) if !is_all => return Escape::More,
            Ok(c) => (read, length) = (Ok(c), bytes.len() - rest.0.len()),
            Err(_) => {}
        }
    }
    match read {
        Ok(c) => Escape::Of(c, length),
        Err(Escape::More) if !is_all => Escape::More,
        Err(_) => Escape::No,
    }
}

/// What of an escape has not been read.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn byte(&mut self) -> Result<u8, Escape> {
        let (first, rest) = self.0.split_first().ok_or(Escape::More)?;
        self.0 = rest;
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

    /// `\u` and four digits, or `\x` and two that make an ASCII character: what two others make depends on who wrote them.
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
        let first = self.byte()?;
        if first != b'#' {
            return self.name(first);
        }
        let mut next = self.byte()?;
        let radix = if matches!(next, b'x' | b'X') { 16 } else { 10 };
        if radix == 16 {
            next = self.byte()?;
        }
        let mut code = digit(next, radix)?;
        loop {
            match self.byte()? {
                b';' => return char::from_u32(code).ok_or(Escape::No),
                // So few digits come in [`ESCAPE_MAX`] bytes that only a wrong one is too large.
                next => code = code.checked_mul(radix).ok_or(Escape::No)?.saturating_add(digit(next, radix)?),
            }
        }
    }

    fn name(&mut self, first: u8) -> Result<char, Escape> {
        let (whole, mut length) = (self.0, 0);
        let mut next = first;
        while next.is_ascii_alphabetic() {
            next = self.byte()?;
            length += 1;
        }
        let is_name = |name: &&(&[u8], char)| {
            name.0.split_first() == Some((&first, whole.get(..length - 1).unwrap_or_default()))
        };
        if next != b';' || length == 0 {
            return Err(Escape::No);
        }
        NAMES.iter().find(is_name).map(|(_, c)| *c).ok_or(Escape::No)
    }
}

fn digit(byte: u8, radix: u32) -> Result<u32, Escape> {
    char::from(byte).to_digit(radix).ok_or(Escape::No)
}

#[cfg(test)]
mod tests {
    use super::{ESCAPE_MAX, Escape, read};

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
            ("&amp;", '&'),
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
            "&#4 3;",
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
        assert_eq!(read("&#00000000000000000000000000043;".as_bytes(), false), Escape::No);
        assert_eq!(read("&abcdefghijklmnop".get(..ESCAPE_MAX).unwrap().as_bytes(), false), Escape::No);
        // An ampersand whose reference goes no further is itself.
        assert_eq!(read(b"&amp;lt,", false), Escape::Of('&', 5));
    }
}
