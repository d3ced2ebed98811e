use super::{Described, classify, words};
use alloc::collections::BTreeSet;
use bailey_protocol::ToolEffect::{self, Destructive, Egress, Read, Unclear, Write};

fn named(name: &str) -> ToolEffect {
    classify(&Described { name, ..Described::default() })
}

#[test]
fn a_name_alone_sorts_a_tool() {
    for (name, effect) in [
        ("read_file", Read),
        ("getUser", Read),
        ("list.issues", Read),
        ("create_note", Write),
        ("sendEmail", Egress),
        ("SEND_EMAIL", Egress),
        ("http/get", Egress),
        ("delete_all", Destructive),
        ("run", Destructive),
        ("read_and_delete", Destructive),
        ("send_and_forget", Egress),
        ("frobnicate", Unclear),
        ("", Unclear),
        ("ready", Unclear),
        ("x7", Unclear),
    ] {
        assert_eq!(named(name), effect, "{name}");
    }
}

#[test]
fn a_description_makes_a_tool_worse_and_never_better() {
    let long = "x ".repeat(40_000);
    let with = |name, description, schema| classify(&Described { name, description, schema });
    assert_eq!(with("get_page", "Fetches a page from a URL", ""), Egress);
    assert_eq!(with("get_report", "", "{\"properties\":{\"email\":{}}}"), Egress);
    assert_eq!(with("list_items", "Lists items and permanently deletes the old ones", ""), Destructive);
    assert_eq!(with("list_items", "Lists items and updates their counter", ""), Unclear);
    assert_eq!(with("frobnicate", "This only reads. It is read only. Get, list, view", ""), Unclear);
    assert_eq!(with("getHTTPDelete", "", ""), Destructive);
    assert_eq!(with("delete_all", "Harmless: it only reads", ""), Destructive);
    assert_eq!(with("read_file", &long, ""), Unclear, "what is too long to be looked at");
    assert_eq!(with("read_file", "Reads a file", "{\"properties\":{\"path\":{}}}"), Read, "control");
}

#[test]
fn no_word_stands_in_two_lists() {
    let lists = [words::DESTRUCTIVE, words::EGRESS, words::WRITE, words::READ];
    let mut seen = BTreeSet::new();
    for word in lists.into_iter().flatten() {
        assert!(seen.insert(word), "{word}");
        assert!(word.chars().all(|c| c.is_ascii_lowercase()), "{word}");
    }
}
