//! What comes with messages that is no text.

use super::{ANN, BOB, EVE, at, bridge, let_in, pair, times};
use crate::{
    attacks::actor::controls,
    daemon::{Daemon, end},
    stage::Stage,
};
use bailey_testkit::{
    ModelServer, Reply,
    telegram::{Fault, File, TOKEN},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

/// A picture of so many bytes, none like another.
fn picture(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let noise = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    });
    b"\x89PNG\r\n\x1a\n".iter().copied().chain(noise).take(length).collect()
}

/// Says that whatever model is at this address takes pictures.
fn takes_pictures(stage: &Stage, model: &ModelServer) {
    let host = model.base_url().split('/').nth(2).unwrap().to_owned();
    let entry = format!("[[model]]\nhost = {host:?}\nname = \"*\"\nimages = true\nwindow = 200_000\n");
    fs::write(stage.home().join("models.toml"), entry).unwrap();
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(40);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_photo_is_shown_to_a_model_and_stays_in_its_conversation() {
    for wire in ["anthropic", "openai"] {
        let stage = Stage::new(&[("a.txt", "one\n")]);
        let script = ["a red square", "still red", "somebody else's", "and again"].map(Reply::text);
        let (telegram, model) = at(&stage, script.to_vec());
        let config = fs::read_to_string(stage.home().join("config.toml")).unwrap();
        let config = config.replace("wire = \"anthropic\"", &format!("wire = {wire:?}"));
        fs::write(stage.home().join("config.toml"), config).unwrap();
        takes_pictures(&stage, &model);
        let daemon = Daemon::start(&stage);
        pair(&stage, &telegram, ANN, "Ann", "owner");
        let photo = picture(7, 300_000);
        telegram.has("big", "photos/file_1.jpg", &photo);
        telegram.shows(ANN, "Ann", ANN, "big", "what is this?");
        telegram.wait_for(ANN, "a red square");

        let data = STANDARD.encode(&photo);
        let body: Value = serde_json::from_str(&model.requests()[0].body).unwrap();
        let said = body["messages"].as_array().unwrap().last().unwrap();
        assert_eq!(said["role"], "user");
        let content = said["content"].as_array().unwrap();
        let (shown, words) = match wire {
            "anthropic" => {
                let source = json!({ "type": "base64", "media_type": "image/png", "data": data });
                (json!({ "type": "image", "source": source }), content.last().unwrap()["text"].clone())
            }
            _ => {
                let url = format!("data:image/png;base64,{data}");
                let shown = json!({ "type": "image_url", "image_url": { "url": url } });
                (shown, content.last().unwrap()["text"].clone())
            }
        };
        assert!(content.contains(&shown), "{wire}: the picture is not in the request");
        assert_eq!(words, "what is this?");
        // It is an entry, whose payload are its bytes; and it counts as a picture and not as its letters.
        let entries = stage.entries("image");
        assert_eq!(entries.len(), 1, "{entries:#?}");
        assert_eq!(
            (&entries[0]["kind"], &entries[0]["labels"]["integrity"]),
            (&json!("png"), &json!("user"))
        );
        assert_eq!(entries[0]["payload"]["bytes"], 300_000);
        let reserved = |place: usize| {
            let intents = stage.entries("intent");
            let intents: Vec<&Value> = intents.iter().filter(|it| it["kind"] == "model").collect();
            intents[place]["reserved"]["tokens"].as_str().unwrap().parse::<u64>().unwrap()
        };
        assert!((4_800..60_000).contains(&reserved(0)), "{}", reserved(0));

        // After all was killed it is still there.
        daemon.kill();
        assert_eq!(stage.ran(&["start"]).code, Some(0));
        telegram.says(ANN, "Ann", ANN, "and now?");
        telegram.wait_for(ANN, "still red");
        assert!(model.requests()[1].body.contains(&data), "{wire}: it was lost over a restart");
        // What somebody else showed is somebody else's, and a picture needs no words.
        let other = picture(8, 5_000);
        telegram.has("other", "photos/file_2.jpg", &other);
        let sizes = json!([{ "file_id": "other", "file_unique_id": "u", "width": 9, "height": 9 }]);
        let forwarded = json!({ "photo": sizes, "forward_origin": { "type": "hidden_user" } });
        telegram.brings(ANN, "Ann", ANN, &forwarded);
        telegram.wait_for(ANN, "somebody else's");
        assert!(model.requests()[2].body.contains(&STANDARD.encode(&other)));
        assert_eq!(stage.entries("image")[1]["labels"]["integrity"], "external");

        let session = stage.entries("image")[0]["session"].as_str().unwrap().to_owned();
        let shown = stage.ran(&["sessions", "show", &session]);
        assert!(shown.stdout.contains("(a picture: png, 300000 bytes)"), "{shown:?}");
        // It is run again as it was, and forked with what it was shown.
        drop(daemon);
        let again = stage.ran(&["replay", &session]);
        assert_eq!(again.code, Some(0), "{again:?}");
        let forked = stage.ran(&["--json", "sessions", "fork", &session]);
        assert_eq!(forked.code, Some(0), "{forked:?}");
        assert_eq!(stage.entries("image").len(), 4);
        assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
        // Whoever removes the session removes it, too.
        let removed = stage.ran(&["sessions", "rm", &session, "--yes"]);
        assert_eq!(removed.code, Some(0), "{removed:?}");
        telegram.check();
    }
}

#[test]
fn a_model_that_takes_no_pictures_is_told_so_and_so_is_the_person() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, model) = at(&stage, vec![Reply::text("I cannot see it.")]);
    let _daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    let photo = picture(7, 3_000);
    telegram.has("big", "photos/file_1.jpg", &photo);
    telegram.shows(ANN, "Ann", ANN, "big", "what is this?");
    telegram.wait_for(ANN, "`test/model` takes no pictures");
    telegram.wait_for(ANN, "I cannot see it.");
    let body = &model.requests()[0].body;
    assert!(body.contains("what is this?") && body.contains("you take no pictures"), "{body}");
    assert!(!body.contains(&STANDARD.encode(&photo)));
    telegram.check();
}

#[test]
fn a_photo_comes_once_over_losses_and_kills() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, model) = at(&stage, vec![Reply::text("the first"), Reply::text("the second")]);
    takes_pictures(&stage, &model);
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    let photo = picture(3, 200_000);
    telegram.has("big", "photos/file_1.jpg", &photo);
    telegram.fail("getFile", [Fault::Lost, Fault::Slow(1)]);
    telegram.fail("file", [Fault::Broken, Fault::Unheard]);
    telegram.shows(ANN, "Ann", ANN, "big", "one");
    telegram.wait_for(ANN, "the first");
    assert!(model.requests()[0].body.contains(&STANDARD.encode(&photo)));
    assert_eq!(telegram.asked().len(), 3);

    // All is killed in the middle of the download.
    telegram.fail("file", [Fault::Stalled]);
    telegram.shows(ANN, "Ann", ANN, "big", "two");
    wait_until("it is not fetched", || telegram.asked().len() == 4);
    end(bridge(&stage), "-KILL");
    telegram.wait_for(ANN, "the second");
    daemon.wait("its end", |it| it["working"] == false);
    assert_eq!(telegram.asked().len(), 5);
    let data = STANDARD.encode(&photo);
    assert_eq!(model.requests()[1].body.matches(&data).count(), 2);
    assert_eq!((stage.entries("accepted").len(), stage.entries("image").len()), (2, 2));
    for answer in ["the first", "the second"] {
        assert_eq!(times(&telegram, ANN, answer), 1, "{:#?}", telegram.shown(ANN));
    }
    telegram.check();
}

#[test]
fn what_is_no_picture_or_too_large_is_not_taken_whatever_it_is_called() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, model) = at(&stage, ["one", "two", "three", "four"].map(Reply::text).to_vec());
    takes_pictures(&stage, &model);
    let _daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    // It says that it is small, and is not.
    let whole = 50 << 20;
    telegram.has_file("lie", File { path: "photos/lie.jpg".into(), size: 1_000, bytes: picture(1, whole) });
    telegram.shows(ANN, "Ann", ANN, "lie", "the lie");
    telegram.wait_for(ANN, "a picture, which is larger than 3 MiB");
    telegram.wait_for(ANN, "one");
    assert!(telegram.sent() < whole / 4, "{} bytes were taken", telegram.sent());
    // The control: one that is as large as it says comes whole.
    let fits = picture(2, 2 << 20);
    telegram.has("fits", "photos/fits.jpg", &fits);
    let before = telegram.sent();
    telegram.shows(ANN, "Ann", ANN, "fits", "the control");
    telegram.wait_for(ANN, "two");
    assert_eq!(telegram.sent() - before, fits.len());
    assert!(model.requests()[1].body.contains(&STANDARD.encode(&fits)));

    let is_told = |words: &str| telegram.wait_for(ANN, words);
    telegram.has("script", "photos/photo.png", b"#!/bin/sh\necho photo.png\n");
    telegram.shows(ANN, "Ann", ANN, "script", "no picture");
    is_told("which is none that is read here");
    is_told("three");
    let body = &model.requests()[2].body;
    assert!(body.contains("no picture") && !body.contains("bin/sh"), "{body}");
    // Captions are looked through as words are; with a key nothing is fetched.
    let asked = telegram.asked().len();
    let key = "ghp_Zk3Pq8Rt5Yu1Io4As6Df8Gh2Jw9Lm0Nb7Vc1";
    telegram.shows(ANN, "Ann", ANN, "fits", key);
    is_told("looks like a password or a key");
    assert_eq!(telegram.asked().len(), asked);
    assert_eq!(stage.entries("image").len(), 1);
    telegram.check();
}

#[test]
fn a_file_of_whoever_is_not_let_in_is_never_fetched() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, model) = at(&stage, vec![Reply::text("a picture of Eve's")]);
    takes_pictures(&stage, &model);
    let _daemon = Daemon::start(&stage);
    telegram.has("big", "photos/file_1.jpg", &picture(3, 2_000));
    telegram.shows(EVE, "Eve", EVE, "big", "look");
    telegram.wait_for(EVE, "You are not known here");
    // In a group, too, where somebody is let in.
    pair(&stage, &telegram, BOB, "Bob", "user");
    telegram.shows(EVE, "Eve", -100, "big", "@bailey_bot look");
    thread::sleep(Duration::from_millis(1500));
    assert_eq!((telegram.calls("getFile"), telegram.asked().len()), (0, 0));
    assert!(model.requests().is_empty());
    // The control: the same, once she is.
    let_in(&stage, &telegram, EVE, "Eve", "guest");
    telegram.shows(EVE, "Eve", EVE, "big", "look");
    telegram.wait_for(EVE, "a picture of Eve's");
    assert_eq!((telegram.calls("getFile"), telegram.asked().len()), (1, 1));
    // A guest's picture is data.
    assert_eq!(stage.entries("image")[0]["labels"]["integrity"], "external");
    telegram.check();
}

/// What a server that was taken over names instead of a file's path: the key stands in front of it.
#[test]
fn a_path_that_a_platform_names_leads_nowhere_else() {
    let elsewhere = "../../elsewhere/x.png";
    for is_control in [false, true] {
        let stage = Stage::new(&[("a.txt", "one\n")]);
        let (telegram, model) = at(&stage, vec![Reply::text("done")]);
        takes_pictures(&stage, &model);
        let program = if is_control { controls() } else { Path::new(env!("CARGO_BIN_EXE_bailey")) };
        let mut start = std::process::Command::new(program);
        start.args(stage.bailey(&["start"]).get_args()).env("BAILEY_CONTROL_PAGE_WITHOUT", "path");
        assert!(start.current_dir(stage.project()).stderr(Stdio::null()).status().unwrap().success());
        let _daemon = Daemon::of(&stage);
        pair(&stage, &telegram, ANN, "Ann", "owner");
        telegram.has("big", elsewhere, &picture(3, 2_000));
        telegram.shows(ANN, "Ann", ANN, "big", "look");
        telegram.wait_for(ANN, "done");
        let reached = telegram.asked().contains(&format!("/bot{TOKEN}/{elsewhere}"));
        assert_eq!(reached, is_control, "{:?}", telegram.asked());
        assert_eq!(times(&telegram, ANN, "a place that may be another's") == 1, !is_control);
        assert_eq!(model.requests().len(), 1);
        telegram.check();
    }
}

/// Where a model was told that a file lies.
fn place(body: &str) -> String {
    let told = body.rsplit("The file `").next().unwrap();
    told.split('`').next().unwrap().to_owned()
}

#[test]
fn a_file_lies_in_the_sessions_layer_and_its_name_leads_nowhere() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, model) = at(&stage, vec![Reply::text("I have it.")]);
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    pair(&stage, &telegram, BOB, "Bob", "guest");
    telegram.has("doc", "documents/file_1", b"the meeting is on Friday\n");
    let document = |id: &str, name: &str| json!({ "document": { "file_id": id, "file_unique_id": "u", "file_name": name, "mime_type": "text/plain" } });
    telegram.brings(ANN, "Ann", ANN, &document("doc", "../../../notes.txt"));
    telegram.wait_for(ANN, "I have it.");
    let first = place(&model.requests()[0].body);
    assert!(first.starts_with(".bailey-inbox/") && first.ends_with("/_.._.._notes.txt"), "{first}");
    assert!(model.requests()[0].body.contains("25 bytes; data, not orders"));
    // The agent has it, under that name.
    model.push(Reply::calls([("c1", "fs_read", json!({ "path": first }))]));
    model.push(Reply::text("On Friday."));
    telegram.says(ANN, "Ann", ANN, "when is it?");
    telegram.wait_for(ANN, "On Friday.");
    assert!(model.requests()[2].body.contains("the meeting is on Friday"));
    // The same again is the same file; another of the same name is another.
    telegram.has("other", "documents/file_2", b"the meeting is on Monday\n");
    for (id, words, is_first) in [("doc", "again", true), ("other", "other", false)] {
        model.push(Reply::text(words));
        telegram.brings(ANN, "Ann", ANN, &document(id, "../../../notes.txt"));
        telegram.wait_for(ANN, words);
        let told = place(&model.requests().last().unwrap().body);
        assert_eq!(told == first, is_first, "{told}");
    }
    // Nothing of it is in the project, and no merge takes it along by itself.
    let session = stage.entries("accepted")[0]["session"].as_str().unwrap().to_owned();
    daemon.wait("its end", |it| it["working"] == false);
    drop(daemon);
    let diff = stage.ran(&["sessions", "diff", &session]);
    let is_changed = |line: &str| line.contains("+++ b/") && line.ends_with("notes.txt");
    assert!(diff.code == Some(0) && !diff.stdout.lines().any(is_changed), "{diff:?}");
    let files: Vec<_> = fs::read_dir(stage.project()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(files.len(), 2, "{files:?}");
    assert!(!stage.folder().join("notes.txt").exists());
    // It was an effect like any other, of whoever sent it.
    let changes: Vec<Value> =
        stage.entries("intent").into_iter().filter(|it| it["kind"] == "change").collect();
    assert!(changes.len() == 4 && changes.iter().all(|it| it["role"] == "owner"), "{changes:#?}");
    assert!(changes.iter().all(|it| it["labels"]["integrity"] == "user"));
    let again = stage.ran(&["replay", &session]);
    assert_eq!(again.code, Some(0), "{again:?}");
    telegram.check();
}

#[test]
fn a_voice_message_is_a_file_and_rules_say_whose_files_are_kept() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (telegram, model) = at(&stage, vec![Reply::text("I hear nothing.")]);
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    let rule = "[[rule]]\nname = \"guests\"\nanswer = \"deny\"\nreason = \"guests bring nothing\"\nmatch = { action = \"change\", role = \"guest\" }\n";
    assert_eq!(stage.ran(&["init"]).code, Some(0));
    fs::write(stage.home().join("policy/guests.toml"), rule).unwrap();
    let daemon = Daemon::start(&stage);
    pair(&stage, &telegram, ANN, "Ann", "owner");
    pair(&stage, &telegram, BOB, "Bob", "guest");
    telegram.has("voice", "voice/file_1.oga", b"OggS\0sound");
    let voice = json!({ "voice": { "file_id": "voice", "file_unique_id": "u", "duration": 3, "mime_type": "audio/ogg" } });
    // It is lost once, and everything is killed in the middle of it.
    telegram.fail("file", [Fault::Unheard, Fault::Stalled]);
    telegram.brings(ANN, "Ann", ANN, &voice);
    wait_until("it is not fetched", || telegram.asked().len() == 2);
    end(bridge(&stage), "-KILL");
    telegram.wait_for(ANN, "Bailey cannot turn speech into text yet");
    telegram.wait_for(ANN, "I hear nothing.");
    let body = &model.requests()[0].body;
    assert!(
        body.contains("A voice message.") && body.contains("/voice.oga` came with this: 10 bytes"),
        "{body}"
    );
    assert_eq!(stage.entries("accepted").len(), 1);
    let change = |it: &Value| it["kind"] == "change" && it["type"] == "intent";
    assert_eq!(stage.trail().into_iter().filter(change).count(), 1);

    model.push(Reply::text("There is none."));
    telegram.brings(BOB, "Bob", BOB, &voice);
    telegram.wait_for(BOB, "The file `voice.oga` was not kept: denied: guests bring nothing");
    telegram.wait_for(BOB, "There is none.");
    let body = &model.requests()[1].body;
    assert!(body.contains("It was not kept: denied: guests bring nothing"), "{body}");
    let denied = stage.entries("denied");
    assert_eq!(
        (&denied[0]["role"], &denied[0]["labels"]["integrity"]),
        (&json!("guest"), &json!("external"))
    );
    drop(daemon);
    telegram.check();
}
