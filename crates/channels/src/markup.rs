//! A model's Markdown as runs of styled text: what a platform's markup is made of.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// How a run is shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Style {
    Bold,
    Italic,
    Struck,
    Code,
    /// A block of code, with its language where it says one.
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

/// The runs of a text. Pictures are named and never shown, since to show one is to ask its server for it; HTML is text.
pub(crate) fn runs(markdown: &str) -> Vec<Run> {
    let mut page = Page::default();
    let options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    Parser::new_ext(markdown, options).for_each(|event| page.take(event));
    page.runs
}

#[derive(Default)]
struct Page {
    runs: Vec<Run>,
    styles: Vec<Style>,
    /// The number of the next item of each list that is open; none where they have no numbers.
    lists: Vec<Option<u64>>,
    /// Line breaks that come before whatever comes next.
    breaks: usize,
}

impl Page {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(text) => {
                self.styles.push(Style::Code);
                self.text(&text);
                self.styles.pop();
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
                self.styles.push(Style::Bold);
            }
            Tag::Paragraph if self.lists.is_empty() => self.part(2),
            Tag::BlockQuote(_) => {
                self.part(2);
                self.styles.push(Style::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.part(2);
                let language = match kind {
                    CodeBlockKind::Fenced(language) if is_language(&language) => Some(language.into_string()),
                    CodeBlockKind::Fenced(_) | CodeBlockKind::Indented => None,
                };
                self.styles.push(Style::Block(language));
            }
            Tag::List(first) => {
                self.part(if self.lists.is_empty() { 2 } else { 1 });
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.styles.push(Style::Italic),
            Tag::Strong => self.styles.push(Style::Bold),
            Tag::Strikethrough => self.styles.push(Style::Struck),
            Tag::Link { dest_url, .. } => self.styles.push(Style::Link(dest_url.into_string())),
            Tag::Image { dest_url, .. } => {
                self.text("[picture: ");
                self.styles.push(Style::Code);
                self.text(&dest_url);
                self.styles.pop();
                self.text(" ");
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) | TagEnd::BlockQuote(_) | TagEnd::CodeBlock => {
                self.styles.pop();
                self.part(2);
            }
            TagEnd::Paragraph => self.part(if self.lists.is_empty() { 2 } else { 1 }),
            TagEnd::List(_) => {
                self.lists.pop();
                self.part(if self.lists.is_empty() { 2 } else { 1 });
            }
            TagEnd::Item => self.part(1),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link => {
                drop(self.styles.pop())
            }
            TagEnd::Image => self.text("]"),
            _ => {}
        }
    }

    fn item(&mut self) {
        self.part(1);
        let depth = self.lists.len().saturating_sub(1);
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

    /// So many line breaks before what comes next; more than were wanted before win.
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
    use super::runs;

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

    #[test]
    fn a_picture_is_named_and_html_is_text() {
        assert_eq!(
            shown("![a cat](http://x.example/?q=secret)"),
            "[picture: http://x.example/?q=secret a cat]"
        );
        assert_eq!(shown("a <b>bold</b> word"), "a <b>bold</b> word");
    }
}
