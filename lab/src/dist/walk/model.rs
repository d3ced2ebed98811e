//! The model that stands in: it does what the person of the walk asks for, and nothing else.

use bailey_testkit::{ModelServer, Reply, Request};
use serde_json::{Value, json};

pub(super) const LIST: &str = "which files are there?";
pub(super) const NOTES: &str = "what do my notes say?";
pub(super) const REPAIR: &str = "make the test pass";
pub(super) const WAIT: &str = "wait for me";

pub(super) fn start() -> ModelServer {
    ModelServer::by(reply)
}

fn reply(request: &Request) -> Reply {
    let (asked, results) = asked(&request.body);
    let run = |command: &str| Reply::calls([("c", "command_run", json!({ "command": command }))]);
    let call = |name: &str, arguments: Value| Reply::calls([("c", name, arguments)]);
    match (asked.as_str(), results.len()) {
        (LIST, 0) => call("fs_list", json!({ "path": "." })),
        (LIST, _) => Reply::text("There are two: `sum.sh` and `test.sh`."),
        (NOTES, 0) => call("fs_read", json!({ "path": "/home/ann/notes.txt" })),
        (NOTES, _) if results.iter().any(|it| it.contains("under the mat")) => {
            Reply::text("They say where the key is: under the mat.")
        }
        (NOTES, _) => Reply::text("I was not let."),
        (REPAIR, 0) => run("sh test.sh"),
        (REPAIR, 1) => call("fs_edit", json!({ "path": "sum.sh", "old": " - 1", "new": "" })),
        (REPAIR, 2) => run("sh test.sh"),
        (REPAIR, _) => Reply::text("`sum.sh` took one too many away; the test passes now."),
        (WAIT, 0) => run("sleep 1000"),
        _ => Reply::text("I see."),
    }
}

/// The last words of a person, and what tools gave since.
fn asked(body: &str) -> (String, Vec<String>) {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let (mut asked, mut results) = (String::new(), Vec::new());
    let messages = body.get("messages").and_then(Value::as_array).into_iter().flatten();
    for message in messages.filter(|message| message.get("role").is_some_and(|role| role == "user")) {
        let content = message.get("content");
        let whole = content.and_then(Value::as_str).map(|text| json!({ "type": "text", "text": text }));
        for part in content.and_then(Value::as_array).into_iter().flatten().chain(whole.as_ref()) {
            let text = part.get("text").and_then(Value::as_str).unwrap_or_default();
            if part.get("type").is_some_and(|kind| kind == "tool_result") {
                results.push(part.to_string());
            } else if let Some(known) = [LIST, NOTES, REPAIR, WAIT].into_iter().find(|it| text.contains(it)) {
                asked = known.to_owned();
                results.clear();
            }
        }
    }
    (asked, results)
}
