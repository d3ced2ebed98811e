//! Pages of the web as text, made inside the walls: whoever wrote the page wrote it for a reader in C, too.
//!
//! This is no browser: it runs nothing, follows nothing, and needs no tree. It goes over the bytes once,
//! keeps what a person would read, and writes links as `text (address)`.

use super::{Response, charset};

/// The longest text that is made, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// The longest tag that is read as one; more is text.
const TAG_BYTES_MAX: usize = 8 << 10;
/// Elements whose content nobody reads.
const UNREAD: [&str; 8] = ["script", "style", "noscript", "template", "svg", "math", "iframe", "head"];
/// Elements that begin a line of their own.
const BLOCKS: [&str; 34] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "br",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "title",
    "tr",
    "ul",
];
/// Characters by name that pages use most (HTML, 13.5).
const NAMED: [(&str, &str); 19] = [
    ("shy", ""),
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("apos", "'"),
    ("nbsp", " "),
    ("ndash", "–"),
    ("mdash", "—"),
    ("hellip", "…"),
    ("lsquo", "‘"),
    ("rsquo", "’"),
    ("ldquo", "“"),
    ("rdquo", "”"),
    ("bull", "•"),
    ("trade", "™"),
    ("rarr", "→"),
    ("larr", "←"),
    ("euro", "€"),
];

/// The names of U+00A0 to U+00FF, in order (HTML, 13.5).
const LATIN: &str = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute \
    micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring \
    AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml \
    times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil \
    egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash \
    ugrave uacute ucirc uuml yacute thorn yuml";

/// What can be read of what a server sent.
pub(super) fn read(body: &[u8], charset: Option<&str>, is_html: bool) -> Response {
    // A text with such a character is none, or one of another set than it is said to be.
    let Some(read) = charset::decoded(body, charset, is_html).filter(|text| !text.contains('\0')) else {
        return Response::Page { text: None, cut: false };
    };
    let (text, cut) = if is_html { text(&read) } else { (read.into_owned(), false) };
    Response::Page { text: Some(text), cut }
}

/// Bytes of a tag that holds a picture.
const PICTURE_BYTES_MAX: usize = 4 << 20;

/// The text of a page, and whether there was more of it.
fn text(html: &str) -> (String, bool) {
    let (mut page, mut is_closed) = (PageText::default(), true);
    let mut rest = html;
    while !rest.is_empty() && page.text.len() < TEXT_BYTES_MAX {
        let at = rest.find('<').unwrap_or(rest.len());
        let (words, tail) = rest.split_at(at);
        page.words(words);
        // A picture may stand in its tag, and be longer than any text. Where one tag has no end, nobody looks
        // for others.
        if is_closed && tail.get(1..2).is_some_and(|next| next.starts_with(|c: char| c.is_ascii_alphabetic()))
        {
            let end = quoted_end(tail);
            is_closed = end.is_some();
            if let Some(after) = end.filter(|end| *end > TAG_BYTES_MAX).and_then(|end| tail.get(end + 1..)) {
                rest = after;
                continue;
            }
        }
        rest = match Tag::read(tail) {
            Some((tag, after)) => page.tag(&tag, after),
            // A `<` that begins no tag is one; and where no tag ends for so long, none began.
            None => {
                let is_tag = tail
                    .get(1..2)
                    .is_some_and(|next| !next.starts_with(|c: char| c.is_whitespace() || c == '<'));
                let most = if is_tag { TAG_BYTES_MAX.min(tail.len()) } else { 1.min(tail.len()) };
                let (words, after) = tail.split_at(tail.floor_char_boundary(most.max(1)));
                page.words(words);
                after
            }
        };
    }
    let (text, cut) = page.done();
    (text, cut || !rest.is_empty())
}

/// The text of a page, as far as the page was read.
#[derive(Default)]
struct PageText {
    text: String,
    /// Whether a space is due before the next word.
    spaced: bool,
    /// How deep in text that keeps its spaces.
    kept: usize,
    /// Where links lead that are open, and where their text begins.
    links: Vec<(String, usize)>,
}

/// One tag.
struct Tag<'a> {
    name: String,
    closes: bool,
    attributes: &'a str,
}

impl<'a> Tag<'a> {
    /// A tag at the beginning of this, and what follows it. A comment is one without a name.
    fn read(html: &'a str) -> Option<(Self, &'a str)> {
        let inner = html.strip_prefix('<')?;
        let none = |attributes| Self { name: String::new(), closes: false, attributes };
        if let Some(comment) = inner.strip_prefix("!--") {
            let end = comment.find("-->").map_or(comment.len(), |end| end + 3);
            return Some((none(""), comment.get(end..).unwrap_or_default()));
        }
        let (closes, inner) = inner.strip_prefix('/').map_or((false, inner), |inner| (true, inner));
        if !inner.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '!' | '?')) {
            return None;
        }
        let end = end_of(inner)?;
        let (inside, after) = (inner.get(..end)?, inner.get(end + 1..).unwrap_or_default());
        let cut = inside.find(|c: char| c.is_ascii_whitespace() || c == '/').unwrap_or(inside.len());
        let (name, attributes) = inside.split_at(cut);
        Some((Self { name: name.to_ascii_lowercase(), closes, attributes }, after))
    }

    /// The value of an attribute.
    fn attribute(&self, name: &str) -> Option<String> {
        let mut rest = self.attributes;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
            let cut = rest.find(|c: char| c.is_ascii_whitespace() || c == '=')?;
            let (own, tail) = rest.split_at(cut);
            let tail = tail.trim_start();
            let Some(value) = tail.strip_prefix('=') else {
                rest = tail;
                continue;
            };
            let value = value.trim_start();
            let (value, after) = match value.chars().next() {
                Some(quote @ ('"' | '\'')) => {
                    let inner = value.get(1..)?;
                    let end = inner.find(quote).unwrap_or(inner.len());
                    (inner.get(..end)?, inner.get(end + 1..).unwrap_or_default())
                }
                _ => value.split_at(value.find(|c: char| c.is_ascii_whitespace()).unwrap_or(value.len())),
            };
            if own.eq_ignore_ascii_case(name) {
                return Some(decoded(value));
            }
            rest = after;
        }
    }
}

/// Where the first `>` outside of quotes stands, as far as a tag with a picture in it reaches.
fn quoted_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    tag.bytes().take(PICTURE_BYTES_MAX).position(|byte| {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
        quote.is_none() && byte == b'>'
    })
}

/// Where a tag ends: at a `>` outside of quotes.
fn end_of(inner: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in inner.bytes().enumerate().take(TAG_BYTES_MAX) {
        match (quote, byte) {
            (None, b'>') => return Some(at),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    // A quote that nothing closes: the first `>` it is.
    inner.bytes().take(TAG_BYTES_MAX).position(|byte| byte == b'>')
}

impl PageText {
    fn words(&mut self, text: &str) {
        let text = decoded(text);
        if self.kept > 0 {
            self.text.push_str(&text);
            return;
        }
        for c in text.chars() {
            if c.is_whitespace() {
                self.spaced = true;
            } else {
                if std::mem::take(&mut self.spaced)
                    && !self.text.is_empty()
                    && !self.text.ends_with(['\n', ' '])
                {
                    self.text.push(' ');
                }
                self.text.push(c);
            }
        }
    }

    /// Takes a tag; answers what is read next.
    fn tag<'a>(&mut self, tag: &Tag<'_>, after: &'a str) -> &'a str {
        let name = tag.name.as_str();
        if !tag.closes && name == "title" {
            self.line();
        }
        if !tag.closes && UNREAD.contains(&name) && name != "head" {
            return skipped(name, after);
        }
        if BLOCKS.contains(&name) {
            self.line();
        }
        match (name, tag.closes) {
            ("li", false) => self.text.push_str("- "),
            ("td" | "th", true) => self.text.push_str(" | "),
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", false) => {
                let level = name.bytes().last().map_or(1, |digit| usize::from(digit - b'0'));
                self.text.push_str(&"#".repeat(level));
                self.spaced = true;
            }
            ("p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "table" | "ul" | "ol" | "pre", true) => {
                self.text.push('\n')
            }
            ("pre", false) => self.kept += 1,
            ("img", false) => {
                if let Some(said) = tag.attribute("alt").filter(|said| !said.trim().is_empty()) {
                    self.words(&format!(" [{said}] "));
                }
            }
            ("a", false) => {
                if let Some(place) = tag.attribute("href") {
                    self.links.push((place, self.text.len()));
                }
            }
            ("a", true) => self.link(),
            _ => {}
        }
        if name == "pre" && tag.closes {
            self.kept = self.kept.saturating_sub(1);
        }
        after
    }

    fn link(&mut self) {
        let Some((place, from)) = self.links.pop() else { return };
        let told = self.text.get(from..).unwrap_or_default().trim();
        let is_told =
            told == place || place.starts_with('#') || place.to_ascii_lowercase().starts_with("javascript:");
        if !is_told && !told.is_empty() {
            self.text.push_str(&format!(" ({place})"));
        }
    }

    fn line(&mut self) {
        self.spaced = false;
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// No more than one empty line in a row, and none at either end; and whether it was too long.
    fn done(self) -> (String, bool) {
        let mut text = String::with_capacity(self.text.len());
        let mut empty = 0;
        for line in self.text.lines().map(str::trim_end) {
            empty = if line.is_empty() { empty + 1 } else { 0 };
            if empty < 2 && !(line.is_empty() && text.is_empty()) {
                text.push_str(line);
                text.push('\n');
            }
        }
        let cut = text.trim_end().len() > TEXT_BYTES_MAX;
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.truncate(text.trim_end().len());
        (text, cut)
    }
}

/// What follows an element whose content nobody reads: its text ends at its own closing tag alone (HTML,
/// 13.2.5).
fn skipped<'a>(name: &str, after: &'a str) -> &'a str {
    let close = format!("</{name}");
    let bytes = after.as_bytes();
    let is_at = |at: usize| {
        bytes.get(at..at + close.len()).is_some_and(|here| here.eq_ignore_ascii_case(close.as_bytes()))
    };
    let mut from = 0;
    while let Some(at) = bytes.get(from..).and_then(|rest| rest.iter().position(|byte| *byte == b'<')) {
        let at = from + at;
        if is_at(at) {
            let tail = after.get(at..).unwrap_or_default();
            return tail.find('>').map_or("", |end| tail.get(end + 1..).unwrap_or_default());
        }
        from = at + 1;
    }
    ""
}

/// Text with its character references replaced.
fn decoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let end = tail.bytes().take(12).position(|byte| byte == b';');
        let known = end.and_then(|end| Some((character(tail.get(1..end)?)?, end)));
        match known {
            Some((known, end)) => {
                out.push_str(&known);
                rest = tail.get(end + 1..).unwrap_or_default();
            }
            None => {
                out.push('&');
                rest = tail.get(1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    out
}

fn character(name: &str) -> Option<String> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code).filter(|c| *c != '\0').map(String::from);
    }
    let named = NAMED.iter().find(|(known, _)| *known == name).map(|(_, character)| (*character).to_owned());
    let latin = || (0xa0_u32..).zip(LATIN.split(' ')).find(|(_, known)| *known == name);
    named.or_else(|| latin().and_then(|(code, _)| char::from_u32(code)).map(String::from))
}

#[cfg(test)]
mod tests;
