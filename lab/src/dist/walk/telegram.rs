//! Telegram in docs/channels.md, typed and said.

use super::{
    RELEASE, TELEGRAM, Walk, model,
    phone::{ANN, Phone},
};
use anyhow::{Context as _, Result};
use bailey_testkit::telegram::{TOKEN, Telegram};
use std::{thread, time::Duration};

/// How long it takes a person to come to the machine.
const WAY: Duration = Duration::from_secs(10);
/// What the page names and does not ask to type here.
pub(super) const ELSEWHERE: &[&str] = &["/newbot", "/setprivacy", "/reset", "bailey start"];

pub(super) fn walk(walk: &mut Walk, telegram: &Telegram) -> Result<()> {
    walk.remarks("In five steps");
    let key = "bailey secrets set TELEGRAM_BOT_TOKEN";
    walk.does_as(key, key, &[("(not shown): ", &format!("{TOKEN}\r"))])?;
    let channel = walk.page.toml("[channels.telegram]")?.replace("/home/me", "/home/ann");
    walk.tells("# what is not as on the page: the server of the Bot API is a stand-in on this machine", "");
    walk.adds(&format!("\n{channel}base_url = \"http://{TELEGRAM}\"\n"))?;
    walk.does("bailey reload")?;
    walk.does("bailey channels list")?;
    let mut phone = Phone::new(telegram);
    let phone = &mut phone;
    let stranger = phone.says(walk, "hello", "bailey channels pair telegram")?;
    let code = stranger.split("pair telegram ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let code = code.context("no code")?.to_owned();
    let pair = "bailey channels pair telegram H7KM-2QXA --as owner";
    walk.does_as(pair, &pair.replace("H7KM-2QXA", &code), &[])?;
    phone.says(walk, model::LIST, "There are two")?;

    walk.remarks("Questions: answered by a button, in words, and in a terminal");
    phone.says_freely(walk, model::NOTES)?;
    phone.card(walk, "notes.txt", Some("Yes, once"))?;
    phone.reads(walk, "under the mat")?;
    phone.reads(walk, "✔ yes")?;
    phone.says_freely(walk, model::NOTES)?;
    let card = phone.card(walk, "notes.txt", None)?;
    walk.page.has("/reject ID [WHY]")?;
    phone.says_freely(walk, &format!("/reject {} not now", name_in(&card)?))?;
    phone.reads(walk, "I was not let")?;
    phone.says_freely(walk, model::NOTES)?;
    let card = phone.card(walk, "notes.txt", None)?;
    walk.page.has("/approve ID")?;
    phone.says_freely(walk, &format!("/approve {}", name_in(&card)?))?;
    phone.reads(walk, "under the mat")?;
    phone.says_freely(walk, model::NOTES)?;
    phone.card(walk, "notes.txt", None)?;
    let open = walk.types("bailey approvals list", &[], 0)?;
    let approve = "bailey approvals approve ID";
    walk.does_as(approve, &approve.replace("ID", &name_in(&open)?), &[])?;
    phone.reads(walk, "under the mat")?;

    walk.remarks("Commands");
    phone.says(walk, "/status", "process")?;
    phone.says(walk, "/budget", "since midnight")?;
    phone.says(walk, "/memory", "no memory across sessions yet")?;
    phone.says(walk, "/tools", "command.run")?;
    phone.says(walk, "/sandbox", "walls")?;
    phone.says(walk, "/help", "/stop")?;
    phone.says(walk, "/backup", "MiB")?;
    walk.page.has("/pin WORDS")?;
    phone.says_freely(walk, "/pin be kind")?;
    phone.reads(walk, "Kept in mind")?;
    phone.says(walk, "/clear", "new session")?;
    phone.says_freely(walk, model::WAIT)?;
    phone.reads(walk, "sleep 1000")?;
    phone.says(walk, "/stop", "being stopped")?;
    phone.says_freely(walk, model::WAIT)?;
    phone.reads(walk, "sleep 1000")?;
    phone.says(walk, "/estop", "everything stops")?;
    phone.says_freely(walk, model::LIST)?;
    // The answer was the last word before it.
    thread::sleep(WAY);
    walk.does_as("bailey estop --release", "bailey estop --release", &[RELEASE])?;
    phone.reads(walk, "There are two")?;

    walk.remarks("What it changes, and where it comes to the project");
    phone.says(walk, model::REPAIR, "the test passes now")?;
    let status = walk.does("bailey status")?;
    let session = name_in(&status)?;
    let chat = "bailey chat --resume SESSION";
    walk.does_as(chat, &chat.replace("SESSION", &session), &[("› ", "/apply\r"), ("applied", "\u{4}")])?;
    walk.page.has("/apply")?;
    walk.types("(cd ~/project && sh test.sh)", &[], 0)?;

    walk.remarks("Who is let in");
    walk.does("bailey channels people")?;
    let forget = "bailey channels forget telegram NUMBER";
    walk.does_as(forget, &forget.replace("NUMBER", &ANN.to_string()), &[])?;
    phone.says(walk, model::LIST, "not known here")?;
    walk.does("bailey logs")?;
    Ok(())
}

/// The first name of eight digits in what a command said: a session's, or a question's.
fn name_in(said: &str) -> Result<String> {
    let is_name = |word: &&str| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    said.split_whitespace().find(is_name).map(str::to_owned).with_context(|| format!("no name in: {said}"))
}
