use super::{Declared, LINE_BYTES_MAX, Request, read};
use bailey_kernel::Offered;
use bailey_protocol::ToolEffect::{self, Destructive, Egress, Read, Unclear};

fn wrong(line: &str) -> String {
    match read(line.as_bytes()) {
        Err(why) | Ok(Request::Begin(Err(why))) => why,
        Ok(asked) => panic!("{line}: {asked:?}"),
    }
}

fn tools(text: &str) -> Vec<(String, ToolEffect)> {
    match read(format!("{{\"op\":\"begin\",\"tools\":{text}}}").as_bytes()).unwrap() {
        Request::Begin(Ok(declared)) => {
            declared.tools.into_iter().map(|Offered { name, effect }| (name, effect)).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn lines_are_read() {
    assert!(matches!(read(br#"{"op":"hello","protocol":1}"#), Ok(Request::Hello)));
    assert!(matches!(read(br#" {"op":"end","more":{"op":"begin"}} "#), Ok(Request::End)), "unknown fields");
    let Ok(Request::Decide { id, tool, args }) = read(
        br#"{"op":"decide","id":7,"tool":"t","args":{"a": 1,"a":2},"arg_labels":{},"context_labels":[]}"#,
    ) else {
        panic!()
    };
    assert_eq!((id, tool.as_str(), args.as_str()), (7.into(), "t", r#"{"a": 1,"a":2}"#), "as it was written");
    let Ok(Request::Begin(Ok(Declared { title, .. }))) =
        read(br#"{"op":"begin","case_id":"c1","user_prompt":"do\nit"}"#)
    else {
        panic!()
    };
    assert_eq!(title, "another program's task c1: do");
    let Ok(Request::Observe { output, .. }) = read(br#"{"op":"observe","tool":"t","output":{"a": 1}}"#)
    else {
        panic!()
    };
    assert_eq!(output, r#"{"a": 1}"#);
}

#[test]
fn tools_are_what_is_declared_or_what_their_words_tell() {
    let declared =
        r#"{"a":{"effect":"read"},"b":{"effect":"egress","output":"trusted","roles":{"to":"recipient"}}}"#;
    assert_eq!(tools(declared), [("a".into(), Read), ("b".into(), Egress)]);
    let told = r#"{"get_it":{},"wipe":null,"odd":{"description":"Does it"},
                   "get_x":{"input_schema":{"properties":{"url":{"type":"string"}}}}}"#;
    let expected = [("get_it", Read), ("get_x", Egress), ("odd", Unclear), ("wipe", Destructive)];
    assert_eq!(tools(told), expected.map(|(name, effect)| (name.to_owned(), effect)));
    let wrapped = r#"{"read_it":{"input_schema":{"description":"Reads the file and\ndeletes it"}},
                      "read_on":{"input_schema":{"description":"\u0064elete"}},
                      "read_up":{"input_schema":{"description":"Reads the file"}}}"#;
    let expected = [("read_it", Destructive), ("read_on", Destructive), ("read_up", Read)];
    assert_eq!(tools(wrapped), expected.map(|(name, effect)| (name.to_owned(), effect)));
    assert_eq!(tools("null"), []);
}

/// One tool of an unknown effect failed the whole task, and each call of each tool was denied.
#[test]
fn a_tool_that_is_declared_wrongly_is_unclear_and_touches_no_other() {
    for (said, why) in [
        (r#"{"effect":"none"}"#, "unknown effect `none`"),
        (r#"{"effect":"Read"}"#, "unknown effect `Read`"),
        (r#"{"effect":7}"#, "`effect`"),
        (r#"{"effect":["read"]}"#, "`effect`"),
        (r#"{"effect":"read","effect":"read"}"#, "duplicate field `effect`"),
        (r#"{"description":["reads"]}"#, "`description`"),
        ("7", "invalid type"),
        (r#""read""#, "invalid type"),
    ] {
        let line = format!(r#"{{"op":"begin","tools":{{"get_it":{said},"read_it":{{"effect":"read"}}}}}}"#);
        let Ok(Request::Begin(Ok(declared))) = read(line.as_bytes()) else { panic!("{said}") };
        assert!(
            declared.remarks[0].contains("`get_it`") && declared.remarks[0].contains(why),
            "{declared:?}"
        );
        let effects = declared.tools.iter().map(|it| (it.name.as_str(), it.effect)).collect::<Vec<_>>();
        assert_eq!(effects, [("get_it", Unclear), ("read_it", Read)], "{said}");
    }
    let Ok(Request::Begin(Ok(declared))) =
        read(br#"{"op":"begin","tools":{"a b":{"effect":"read"},"read_it":{"effect":"read"}}}"#)
    else {
        panic!()
    };
    assert_eq!((declared.tools.len(), declared.tools[0].name.as_str()), (1, "read_it"));
    assert!(declared.remarks[0].contains("no tool's name"), "{declared:?}");
    assert_eq!(tools(r#"{"get_it":{"effect":null}}"#), [("get_it".into(), Read)], "the control");
}

#[test]
fn what_is_no_line_says_why() {
    for (line, why) in [
        ("", "no JSON object"),
        ("7", "no JSON object"),
        ("{}", "missing field `op`"),
        (r#"["decide",null,null,null,null,7,"a",{},null]"#, "a line is one object"),
        (r#"{"op":"decide","op":"end"}"#, "duplicate field `op`"),
        (r#"{"op":"decide","id":1,"tool":"t","args":{},"args":{}}"#, "duplicate field `args`"),
        (r#"{"op":"allow"}"#, "unknown `op`"),
        (r#"{"op":"hello","protocol":2}"#, "protocol 2"),
        (r#"{"op":"decide","tool":"t"}"#, "needs an `id`"),
        (r#"{"op":"decide","id":1.5,"tool":"t"}"#, "`id`"),
        (r#"{"op":"decide","id":{},"tool":"t"}"#, "`id`"),
        (r#"{"op":"decide","id":1}"#, "needs a `tool`"),
        (r#"{"op":"decide","id":1,"tool":7}"#, "`tool`"),
        (r#"{"op":"decide","id":1,"tool":"t"}"#, "needs `args`"),
        (r#"{"op":"decide","id":1,"tool":"t","args":[]}"#, "`args`"),
        (r#"{"op":"decide","id":1,"tool":"t","args":{"a":NaN}}"#, "no JSON object"),
        (r#"{"op":"begin","tools":{"a":{},"a":{}}}"#, "twice"),
        (r#"{"op":"begin","tools":[]}"#, "`tools`"),
    ] {
        let said = wrong(line);
        assert!(said.contains(why), "{line}: {said}");
    }
    assert!(read(b"{\"op\":\"end\xff\"}").unwrap_err().contains("no UTF-8"));
    assert!(read(&vec![b' '; LINE_BYTES_MAX + 1]).unwrap_err().contains("more than"));
    let deep = format!("{{\"op\":\"end\",\"x\":{}", "[".repeat(1_000_000));
    assert!(wrong(&deep).contains("no JSON object"));
    let many: Vec<String> = (0..=1000).map(|i| format!("\"t{i}\":{{}}")).collect();
    assert!(
        wrong(&format!("{{\"op\":\"begin\",\"tools\":{{{}}}}}", many.join(","))).contains("more than 1000")
    );
}
