use super::{Response, TEXT_BYTES_MAX, read, text};

#[test]
fn a_page_reads_as_a_person_reads_it() {
    let html = "<!DOCTYPE html><html><head><title>The title</title><style>p { color: red }</style>
<script>if (1 < 2) { alert('</p>') }</script></head><body>
<h1>A  heading</h1><p>Some <b>bold</b>,\n   <a href='/there?a=1&amp;b=2'>linked</a> &amp; named &lt;words&gt; &#8212; &#x41;&eacute;.</p>
<ul><li>one<li>two</ul><!-- <p>hidden</p> --><pre>  kept
   as it is</pre><img src=x alt=\"a picture\"><table><tr><td>1<td>2</td></tr></table>
<a href=\"#top\">up</a> <a href=\"javascript:x()\">no</a> <a href=https://e.com>https://e.com</a></body></html>";
    assert_eq!(
        text(html).0,
        "The title
# A heading

Some bold, linked (/there?a=1&b=2) & named <words> — Aé.

- one
- two

  kept
   as it is

[a picture]
12 |

up no https://e.com"
    );
}

/// One picture filled the answer, and hid what followed it.
#[test]
fn a_picture_within_its_tag_is_no_text() {
    let picture = format!("<img alt='x>y' src=\"data:image/png;base64,{}\">", "iVBOR".repeat(100_000));
    let html = format!("<p>one</p>{picture}<p>gr&uuml;&szlig;e &deg;</p>{picture}<p>two</p>");
    assert!(text(&html) == ("one\n\ngrüße °\n\ntwo".to_owned(), false));
    // The control: where it does not end, it is text up to what is taken.
    let open = format!("<p>one</p><img src=\"{}", "iVBOR".repeat(100_000));
    assert!(text(&open).0.contains("iVBOR"), "control");
}

#[test]
fn what_is_no_html_stays_what_it_is() {
    for plain in ["", "1 < 2 && 3 > 2", "a <3 b", "<", "& &; &#; &#x110000; &#0; &nosuch;", "größe"] {
        assert_eq!(text(plain), (plain.to_owned(), false), "{plain}");
    }
    assert_eq!(text(&String::from_utf8_lossy(b"\xff\xff<p>x")).0, "\u{fffd}\u{fffd}\nx");
}

#[test]
fn hostile_pages_take_linear_time_and_bounded_room() {
    let many = |part: &str| part.repeat((4 << 20) / part.len());
    for html in [
        many("<"),
        many("<a "),
        many("<a href='"),
        many("<script>"),
        many("<!--"),
        many("&#"),
        many("</script"),
        many("<a href=x>y"),
        many("<b \""),
        many("<script></scrip"),
        many("&amp;"),
        many("<li>"),
        many("<pre>"),
    ] {
        assert!(text(&html).0.len() <= TEXT_BYTES_MAX);
    }
}

#[test]
fn what_nobody_reads_hides_nothing_behind_it() {
    assert_eq!(text("<script>x</SCRIPT >shown").0, "shown");
    assert_eq!(text("<style>x</style><p title='>'>shown").0, "shown");
    assert_eq!(text("<p title='open>shown").0, "shown", "a quote that nothing closes");
    assert_eq!(text("<iframe src=x>inner</iframe>shown<script>never closed").0, "shown");
}

#[test]
fn a_page_that_is_cut_says_so() {
    let read = |html: &str| match read(html.as_bytes(), None, true) {
        Response::Page { text, cut } => (text.unwrap(), cut),
        other => panic!("{other:?}"),
    };
    // Each letter takes three bytes, so this is far from as many characters as one page may have.
    let line = "<p>語語語語語語語語語語</p>";
    let (long, cut) = read(&line.repeat(TEXT_BYTES_MAX / 30 + 1));
    assert!(cut && long.len() <= TEXT_BYTES_MAX && long.len() > TEXT_BYTES_MAX - 64);
    let (one, cut) = read(&format!("<p>{}", "語".repeat(TEXT_BYTES_MAX / 3 + 1)));
    assert!(cut && one.len() <= TEXT_BYTES_MAX, "one long line");
    let (_, cut) = read(&line.repeat(TEXT_BYTES_MAX / 40));
    assert!(!cut, "the control");
}

#[test]
fn what_is_no_text_is_not_shown_as_some() {
    for (body, charset, html) in [
        (&b"a\0b"[..], None, false),
        (b"<p>a\0b", None, true),
        (b"plain", Some("klingon"), false),
        (b"<p>plain", Some("klingon"), true),
    ] {
        assert!(
            matches!(read(body, charset, html), Response::Page { text: None, cut: false }),
            "{charset:?}"
        );
    }
    let Response::Page { text, .. } = read(b"Gr\xfc\xdfe <b>", Some("iso-8859-1"), false) else { panic!() };
    assert_eq!(text.as_deref(), Some("Grüße <b>"), "the control");
}
