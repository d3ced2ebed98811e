use super::{TOOL_NAME_MAX, ToolGlob, is_tool_name};
use crate::fit::Fit;
use alloc::string::ToString as _;

#[test]
fn globs_over_names() {
    for (glob, fits, not) in [
        ("send_email", &["send_email"][..], &["send_emai", "send_email2", "Send_email"][..]),
        ("*", &["a", "mail/send"], &[]),
        ("send_*", &["send_", "send_x_y"], &["resend_x"]),
        ("*.delete*", &["a.delete", "a.b.delete_all"], &["delete", "a.del"]),
        ("a?c", &["abc"], &["ac", "abbc"]),
        ("*a*b", &["ab", "xaxb", "aab", "abab"], &["aba", "b"]),
    ] {
        let read = ToolGlob::new(glob).unwrap();
        assert!(fits.iter().all(|name| read.fit(name)), "{glob}");
        assert!(!not.iter().any(|name| read.fit(name)), "{glob}");
    }
}

#[test]
fn what_no_tool_is_called_is_no_glob() {
    for text in ["", "a b", "é", "a\u{202e}b", "a\n", "[ab]", "{a}"] {
        assert!(ToolGlob::new(text).is_err() && !is_tool_name(text), "{text:?}");
    }
    assert!(!ToolGlob::new("a\u{202e}b").unwrap_err().to_string().contains('\u{202e}'));
    assert!(is_tool_name(&"a".repeat(TOOL_NAME_MAX)) && !is_tool_name(&"a".repeat(TOOL_NAME_MAX + 1)));
    assert!(!is_tool_name("a*"), "what stands for others is no name");
}

#[test]
fn a_glob_over_a_glob_is_certain_only_where_it_is() {
    let fit = |own: &str, all: &str| ToolGlob::new(own).unwrap().fit_all(&ToolGlob::new(all).unwrap());
    assert_eq!(fit("*", "send_*"), Fit::Yes);
    assert_eq!(fit("send_*", "send_*"), Fit::Yes);
    assert_eq!(fit("send_*", "send_email"), Fit::Yes);
    assert_eq!(fit("send_email", "send_*"), Fit::Maybe);
    assert_eq!(fit("read_*", "send_email"), Fit::No);
}
