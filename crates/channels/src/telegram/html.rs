//! The Bot API's HTML: <https://core.telegram.org/bots/api#html-style>.

use crate::markup::{Run, Style, runs};

/// The longest message, in UTF-16 units, with its tags: the server counts without tags, so that each page
/// fits.
pub(super) const PAGE_UNITS_MAX: usize = 4096;
/// The longest name of a command, in characters.
const NAME_CHARS_MAX: usize = 64;
/// The longest address that becomes a link.
const LINK_UNITS_MAX: usize = 512;

/// A model's words as pages. No page breaks a tag, an entity or a character; each is whole HTML by itself.
pub(super) fn pages(markdown: &str) -> Vec<String> {
    let mut book = Book::default();
    for Run { styles, text } in runs(markdown) {
        // In code there are no links.
        let is_code = styles.iter().any(is_code);
        book.write(&fit(styles), &if is_code { text } else { unlinked(&text) });
    }
    book.close()
}

/// Plain words.
pub(super) fn escaped(text: &str) -> String {
    text.chars().map(|c| entity(c).map_or_else(|| c.to_string(), str::to_owned)).collect()
}

/// Words in which no client finds a command to say on a tap: a word joiner parts the stroke from its name.
/// Paths stay as they are, because clients make no command of them and people copy them.
fn unlinked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut before = ' ';
    for (place, c) in text.char_indices() {
        shown.push(c);
        let is_first = c == '/' && !before.is_alphanumeric() && !"_/".contains(before);
        let after = text.get(place + 1..).unwrap_or_default();
        if is_first && is_name(after) {
            shown.push('\u{2060}');
        }
        before = c;
    }
    shown
}

/// Whether a text begins with a possible name of a command. An empty text does, because text in another style
/// may go on.
fn is_name(text: &str) -> bool {
    // Longer names are no commands, and looking to the end each time would take the square of a text.
    let end = text.chars().take(NAME_CHARS_MAX).take_while(|c| c.is_alphanumeric() || *c == '_');
    let (_, rest) = text.split_at_checked(end.map(char::len_utf8).sum()).unwrap_or_default();
    text.is_empty() || rest.len() < text.len() && !rest.starts_with('/')
}

fn is_code(style: &Style) -> bool {
    matches!(style, Style::Code | Style::Block(_))
}

/// Which styles may be inside which: code takes nothing else, and a quote no other quote.
fn fit(styles: Vec<Style>) -> Vec<Style> {
    if let Some(code) = styles.iter().find(|style| is_code(style)) {
        let quote = styles.iter().find(|style| **style == Style::Quote);
        return quote.into_iter().chain([code]).cloned().collect();
    }
    let mut kept: Vec<Style> = Vec::new();
    for style in styles {
        let is_link = |style: &Style| matches!(style, Style::Link(_));
        let is_double = kept.contains(&style) || is_link(&style) && kept.iter().any(is_link);
        let is_fit = match &style {
            Style::Link(address) => is_address(address),
            _ => true,
        };
        if is_fit && !is_double {
            kept.push(style);
        }
    }
    kept
}

fn is_address(address: &str) -> bool {
    let is_web = address.starts_with("https://") || address.starts_with("http://");
    is_web && units(&escaped(address)) <= LINK_UNITS_MAX
}

#[derive(Default)]
struct Book {
    pages: Vec<String>,
    page: String,
    /// Units of the page so far.
    used: usize,
    open: Vec<Style>,
    /// Whether the page shows anything but space.
    is_shown: bool,
    /// Where in the page the last line begins that has no open style before it, in bytes.
    line: usize,
}

impl Book {
    fn write(&mut self, styles: &[Style], text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            self.restyle(styles);
            let room = PAGE_UNITS_MAX.saturating_sub(self.used + closing(&self.open));
            let (now, later) = cut(rest, room);
            if now.is_empty() {
                self.turn();
                continue;
            }
            if later.is_empty() || !self.is_shown && now.trim().is_empty() {
                self.put(now);
                rest = later;
                continue;
            }
            // A page ends at the end of a line or a word, when that leaves most of it filled.
            let at = now.rfind('\n').map(|at| at + 1).or_else(|| now.rfind(' ').map(|at| at + 1));
            let at = at.filter(|at| *at * 2 > now.len()).unwrap_or(now.len());
            let (now, _) = rest.split_at(at);
            self.put(now);
            rest = rest.split_at(at).1;
            self.turn();
        }
    }

    /// Closes the styles that are not wanted any more, and opens those that are.
    fn restyle(&mut self, styles: &[Style]) {
        let common = self.open.iter().zip(styles).take_while(|(one, other)| one == other).count();
        while self.open.len() > common {
            if let Some(style) = self.open.pop() {
                self.tag(&close(&style));
            }
        }
        let opened: String = styles.iter().skip(common).map(open).collect();
        if self.used + units(&opened) + closing(styles) + LINK_UNITS_MAX > PAGE_UNITS_MAX && self.is_shown {
            self.turn();
            return self.restyle(styles);
        }
        for style in styles.iter().skip(common) {
            self.tag(&open(style));
            self.open.push(style.clone());
        }
    }

    fn tag(&mut self, tag: &str) {
        self.page.push_str(tag);
        self.used += units(tag);
    }

    fn put(&mut self, text: &str) {
        // A message does not begin with line breaks.
        let text = if self.is_shown { text } else { text.trim_start_matches('\n') };
        let text = escaped(text);
        self.is_shown |= !text.trim().is_empty();
        self.used += units(&text);
        self.page.push_str(&text);
        if let Some(at) = text.rfind('\n').filter(|_| self.open.is_empty()) {
            self.line = self.page.len() - (text.len() - at - 1);
        }
    }

    /// Goes on with the next page. A line that is begun goes there as a whole, when that leaves most of this
    /// page filled.
    fn turn(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line * 2 > self.page.len() && line < self.page.len() {
            let begun = self.page.split_off(line);
            let page = std::mem::replace(&mut self.page, begun);
            self.pages.push(page.trim_end().to_owned());
            self.used = units(&self.page);
            // The text outside of tags: a `<` of the text is an entity, and so begins no tag.
            let mut parts = self.page.split('<').map(|part| part.rsplit('>').next().unwrap_or_default());
            self.is_shown = parts.any(|words| !words.trim().is_empty());
        } else {
            self.end();
        }
    }

    fn end(&mut self) {
        let open = std::mem::take(&mut self.open);
        for style in open.iter().rev() {
            self.page.push_str(&close(style));
        }
        let page = std::mem::take(&mut self.page);
        if std::mem::take(&mut self.is_shown) {
            self.pages.push(page.trim_end().to_owned());
        }
        self.used = 0;
    }

    fn close(mut self) -> Vec<String> {
        self.end();
        self.pages
    }
}

fn open(style: &Style) -> String {
    match style {
        Style::Bold => "<b>".into(),
        Style::Italic => "<i>".into(),
        Style::Struck => "<s>".into(),
        Style::Code => "<code>".into(),
        Style::Block(None) => "<pre>".into(),
        Style::Block(Some(language)) => format!("<pre><code class=\"language-{language}\">"),
        Style::Quote => "<blockquote>".into(),
        Style::Link(address) => format!("<a href=\"{}\">", escaped(address)),
    }
}

fn close(style: &Style) -> String {
    match style {
        Style::Bold => "</b>",
        Style::Italic => "</i>",
        Style::Struck => "</s>",
        Style::Code => "</code>",
        Style::Block(None) => "</pre>",
        Style::Block(Some(_)) => "</code></pre>",
        Style::Quote => "</blockquote>",
        Style::Link(_) => "</a>",
    }
    .into()
}

fn closing(styles: &[Style]) -> usize {
    styles.iter().map(|style| close(style).len()).sum()
}

fn entity(c: char) -> Option<&'static str> {
    match c {
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '&' => Some("&amp;"),
        '"' => Some("&quot;"),
        _ => None,
    }
}

fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// The part of the text that has room once it is escaped, and the rest.
fn cut(text: &str, room: usize) -> (&str, &str) {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += entity(c).map_or(c.len_utf16(), str::len);
        if used > room {
            return text.split_at(at);
        }
    }
    (text, "")
}
