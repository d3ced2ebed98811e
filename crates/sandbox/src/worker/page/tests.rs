use super::{TEXT_BYTES_MAX, text};

#[test]
fn a_page_reads_as_a_person_reads_it() {
    let html = "<!DOCTYPE html><html><head><title>The title</title><style>p { color: red }</style>
<script>if (1 < 2) { alert('</p>') }</script></head><body>
<h1>A  heading</h1><p>Some <b>bold</b>,\n   <a href='/there?a=1&amp;b=2'>linked</a> &amp; named &lt;words&gt; &#8212; &#x41;&eacute;.</p>
<ul><li>one<li>two</ul><!-- <p>hidden</p> --><pre>  kept
   as it is</pre><img src=x alt=\"a picture\"><table><tr><td>1<td>2</td></tr></table>
<a href=\"#top\">up</a> <a href=\"javascript:x()\">no</a> <a href=https://e.com>https://e.com</a></body></html>";
    assert_eq!(
        text(html.as_bytes()),
        "The title
# A heading

Some bold, linked (/there?a=1&b=2) & named <words> — A&eacute;.

- one
- two

  kept
   as it is

[a picture]
12 |

up no https://e.com"
    );
}

#[test]
fn what_is_no_html_stays_what_it_is() {
    for plain in ["", "1 < 2 && 3 > 2", "a <3 b", "<", "& &; &#; &#x110000; &#0; &nosuch;", "größe"] {
        assert_eq!(text(plain.as_bytes()), plain, "{plain}");
    }
    assert_eq!(text(b"\xff\xfe<p>x"), "\u{fffd}\u{fffd}\nx");
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
        assert!(text(html.as_bytes()).len() <= TEXT_BYTES_MAX);
    }
}

#[test]
fn what_nobody_reads_hides_nothing_behind_it() {
    assert_eq!(text(b"<script>x</SCRIPT >shown"), "shown");
    assert_eq!(text(b"<style>x</style><p title='>'>shown"), "shown");
    assert_eq!(text(b"<p title='open>shown"), "shown", "a quote that nothing closes");
    assert_eq!(text(b"<iframe src=x>inner</iframe>shown<script>never closed"), "shown");
}
