//! What `bailey audit` proves, through the binary: signed, proven, checked elsewhere, and what was tampered
//! with named.

use crate::stage::Stage;
use serde_json::Value;
use std::{fs, path::Path, process::Command};

/// A stage where two commands ran, each signed at its end, and the journal's first public key.
fn signed() -> (Stage, String) {
    let stage = Stage::new(&[("a", "a\n")]);
    for word in ["one", "two"] {
        assert_eq!(stage.ran(&["sandbox", "run", "--", "echo", word]).code, Some(0));
    }
    let key = stage.ran(&["audit", "key"]);
    assert_eq!(key.code, Some(0), "{}", key.stderr);
    (stage, key.stdout.trim().to_owned())
}

/// The number of the newest entry of this type.
fn entry(stage: &Stage, name: &str) -> String {
    let trail = stage.trail();
    let found = trail.iter().rfind(|entry| entry["type"] == name).unwrap();
    found["seq"].as_str().unwrap().to_owned()
}

/// `docs/audit_check.py`, away from any home; none without Python.
fn python(proof: &Path, key: &str) -> Option<(Option<i32>, String)> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/audit_check.py");
    let output =
        Command::new("python3").args(["-B", script]).arg(proof).arg(key).current_dir("/").output().ok()?;
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Some((output.status.code(), text))
}

#[test]
fn a_proof_is_checked_without_a_journal_and_by_another_program() {
    let (stage, key) = signed();
    let intent = entry(&stage, "intent");
    let proof = stage.folder().join("proof.json");
    let file = proof.to_str().unwrap();
    let made = stage.ran(&["audit", "prove", &intent, "--payload", "--out", file]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    // A home that cannot be made: the check looks at none.
    let check = |file: &str, key: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bailey"));
        command.args(["--home", "/proc/none", "audit", "check", file, "--key", key]).current_dir("/");
        crate::stage::Ran::of(command.output().unwrap())
    };
    let proven = check(file, &key);
    assert_eq!(proven.code, Some(0), "{}", proven.stderr);
    assert!(proven.stdout.starts_with(&format!("proven: this was entry {intent} of ")), "{}", proven.stdout);
    assert!(proven.stdout.contains("\"type\":\"intent\""));
    let growth = stage.folder().join("growth.json");
    let growth_file = growth.to_str().unwrap();
    assert_eq!(stage.ran(&["sandbox", "run", "--", "true"]).code, Some(0));
    assert_eq!(stage.ran(&["audit", "prove", "--since", "0", "-o", growth_file]).code, Some(0));
    let grown = check(growth_file, &key);
    assert!(grown.code == Some(0) && grown.stdout.contains("entries of checkpoint 0"), "{grown:?}");
    // Each refused, beside the control above: another word, another key, no proof.
    let forged = stage.folder().join("forged.json");
    let text = fs::read_to_string(&proof).unwrap();
    assert!(text.contains("merge") || text.contains("exec"));
    fs::write(&forged, text.replacen("\\\"kind\\\":\\\"", "\\\"kind\\\":\\\"x", 1)).unwrap();
    assert_ne!(fs::read_to_string(&forged).unwrap(), text);
    let refused = check(forged.to_str().unwrap(), &key);
    assert!(refused.code == Some(1) && refused.stderr.contains("leads to another root"), "{refused:?}");
    let stranger = "7".repeat(64);
    assert_eq!(check(file, &stranger).code, Some(1));
    assert_eq!(check(file, "short").code, Some(2));
    assert_eq!(check("/dev/null", &key).code, Some(1));
    let Some(other) = python(&proof, &key) else {
        println!("SKIPPED: there is no python3");
        return;
    };
    assert!(other.0 == Some(0) && other.1.starts_with("proven: entry "), "{other:?}");
    let other = python(&growth, &key).unwrap();
    assert!(other.0 == Some(0) && other.1.contains("are the first of the"), "{other:?}");
    let words = stage.folder().join("words.json");
    let said = text.rfind("\"bytes\":\"").unwrap() + 9;
    fs::write(&words, format!("{}x{}", &text[..said], &text[said..])).unwrap();
    let refused = check(words.to_str().unwrap(), &key);
    assert!(refused.code == Some(1) && refused.stderr.contains("the payload is not the one"), "{refused:?}");
    let shrunk = stage.folder().join("shrunk.json");
    let grown = fs::read_to_string(&growth).unwrap();
    let path = grown.find("\"path\":[\"").unwrap() + 9;
    fs::write(&shrunk, format!("{}{}{}", &grown[..path], "7".repeat(64), &grown[path + 64..])).unwrap();
    for (file, key) in [(&forged, &key), (&words, &key), (&shrunk, &key), (&proof, &stranger)] {
        let other = python(file, key).unwrap();
        assert!(other.0 == Some(1) && other.1.contains("this proves nothing"), "{other:?}");
    }
}

#[test]
fn the_check_in_python_is_read_in_a_minute() {
    let text = include_str!("../../../../docs/audit_check.py");
    assert!(text.lines().count() <= 60, "{} lines", text.lines().count());
    for text in
        [text, include_str!("../../../../docs/ed25519.py"), include_str!("../../../../docs/merkle.py")]
    {
        assert!(text.lines().all(|line| line.len() <= 120 && !line.contains(';')));
    }
}

#[test]
fn what_a_proof_holds_acts_on_no_terminal() {
    let stage = Stage::new(&[("a", "a\n")]);
    assert_eq!(stage.ran(&["sandbox", "run", "--", "printf", r"\033]0;owned\007two\nlines"]).code, Some(0));
    let key = stage.ran(&["audit", "key"]).stdout.trim().to_owned();
    let proof = stage.folder().join("proof.json");
    let file = proof.to_str().unwrap();
    let trail = stage.trail();
    let ran = trail.iter().rfind(|entry| entry["type"] == "outcome" && entry["exit"] == 0).unwrap();
    let outcome = ran["seq"].as_str().unwrap().to_owned();
    assert_eq!(stage.ran(&["audit", "prove", &outcome, "--payload", "-o", file]).code, Some(0));
    assert!(fs::read_to_string(&proof).unwrap().contains(r"\u001b"), "the control: it is in there");
    let shown = stage.ran(&["audit", "check", file, "--key", &key]);
    assert!(shown.code == Some(0) && shown.stdout.contains("owned"), "{shown:?}");
    assert!(!shown.stdout.contains(['\u{1b}', '\u{7}']), "{shown:?}");
    match python(&proof, &key) {
        None => println!("SKIPPED: there is no python3"),
        Some((code, text)) => {
            assert!(code == Some(0) && text.contains("owned") && !text.contains('\u{1b}'), "{text:?}");
        }
    }
}

#[test]
fn verify_says_up_to_when_it_is_signed_and_by_whose_key() {
    let (stage, key) = signed();
    let verified = stage.ran(&["--json", "audit", "verify", "--key", &key]).lines().remove(0);
    assert_eq!(verified["signed"]["key"], Value::from(key.clone()));
    assert_eq!(verified["signed"]["newest"]["entries"], verified["entries"]);
    let shown = stage.ran(&["audit", "verify"]);
    assert!(shown.stdout.contains(&format!("by keys that follow from {key}")), "{}", shown.stdout);
    let other = stage.ran(&["audit", "verify", "--key", &"7".repeat(64)]);
    assert!(other.code == Some(1) && other.stderr.contains("this is another journal"), "{other:?}");
    // Journal and key made anew by whoever holds the machine: all is well, but for whoever kept the key.
    for name in ["journal.db", "journal.db-wal", "journal.db-shm", "journal.key"] {
        fs::remove_file(stage.home().join(name)).ok();
    }
    assert_eq!(stage.ran(&["sandbox", "run", "--", "true"]).code, Some(0));
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0), "the control: by itself it holds");
    assert_eq!(stage.ran(&["audit", "verify", "--key", &key]).code, Some(1));
}

#[test]
fn the_key_that_signs_is_out_of_reach_inside_the_walls() {
    let (stage, _) = signed();
    let key = stage.home().join("journal.key");
    let text = key.to_str().unwrap();
    assert!(
        fs::read(&key).unwrap().starts_with(b"bailey.key.1")
            || fs::read(&key).unwrap()[2048..].starts_with(b"bailey.key.1")
    );
    // The control: outside, its owner's programs read it.
    assert!(Command::new("cat").arg(&key).output().unwrap().status.success());
    let inside = stage.ran(&["sandbox", "run", "--", "cat", text]);
    assert!(inside.code == Some(1) && inside.stderr.contains("No such file"), "{inside:?}");
    let explained = stage.ran(&["policy", "explain", "read", text]);
    assert!(explained.stdout.contains("denied") || explained.stdout.contains("deny"), "{}", explained.stdout);
}

/// Bailey's home as it is, to be put back.
fn copy(stage: &Stage) -> Vec<(&'static str, Vec<u8>)> {
    let names = ["journal.db", "journal.db-wal", "journal.db-shm", "journal.key"];
    names.into_iter().filter_map(|name| Some((name, fs::read(stage.home().join(name)).ok()?))).collect()
}

fn put_back(stage: &Stage, copy: &[(&'static str, Vec<u8>)]) {
    for name in ["journal.db", "journal.db-wal", "journal.db-shm", "journal.key"] {
        fs::remove_file(stage.home().join(name)).ok();
    }
    for (name, bytes) in copy {
        fs::write(stage.home().join(name), bytes).unwrap();
    }
}

/// A session, and what it said beside its command.
fn session(stage: &Stage) -> String {
    let ran = stage.ran(&["sandbox", "run", "--", "true"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stderr
}

#[test]
fn a_home_that_was_put_back_is_found_against_a_witness() {
    let stage = Stage::new(&[("a", "a\n")]);
    let file = stage.folder().join("witness.jsonl");
    fs::create_dir_all(stage.home()).unwrap();
    let config = format!("[journal]\nwitness = \"file:{}\"\n", file.display());
    fs::write(stage.home().join("config.toml"), config).unwrap();
    session(&stage);
    let old = copy(&stage);
    session(&stage);
    let lines = fs::read_to_string(&file).unwrap();
    assert_eq!(lines.lines().count(), 2);
    let vouched = stage.ran(&["audit", "verify"]);
    assert!(vouched.code == Some(0) && vouched.stdout.contains("vouches up to entry "), "{vouched:?}");
    // Journal and key together, as they were: nothing on this machine tells.
    put_back(&stage, &old);
    let found = stage.ran(&["audit", "verify"]);
    assert_eq!(found.code, Some(5), "{found:?}");
    assert!(
        found.stderr.contains("it is missing") && found.stderr.contains("the witness has it"),
        "{}",
        found.stderr
    );
    // And gone on from there.
    session(&stage);
    session(&stage);
    let found = stage.ran(&["audit", "verify"]);
    assert!(found.code == Some(5) && found.stderr.contains("the witness has it"), "{found:?}");
    // The control: without the witness all of it holds.
    fs::remove_file(stage.home().join("config.toml")).unwrap();
    let blind = stage.ran(&["audit", "verify"]);
    assert!(blind.code == Some(0) && blind.stdout.contains("without a witness"), "{blind:?}");
}

#[test]
fn a_witness_that_is_away_is_told_later_and_what_somebody_else_wrote_there_is_named() {
    let stage = Stage::new(&[("a", "a\n")]);
    let away = stage.folder().join("mount");
    let file = away.join("witness.jsonl");
    fs::create_dir_all(stage.home()).unwrap();
    let config = format!("[journal]\nwitness = \"file:{}\"\n", file.display());
    fs::write(stage.home().join("config.toml"), config).unwrap();
    let said = session(&stage);
    assert!(said.contains("that wait for it: 1") && said.contains("with the next session"), "{said}");
    let alone = stage.ran(&["audit", "verify"]);
    assert!(alone.code == Some(1) && alone.stdout.contains("verified:"), "{alone:?}");
    assert!(alone.stderr.contains("cannot be asked"), "{alone:?}");
    fs::create_dir(&away).unwrap();
    let said = session(&stage);
    assert!(!said.contains("witness"), "{said}");
    let lines = fs::read_to_string(&file).unwrap();
    assert_eq!(lines.lines().count(), 2);
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
    // What is no checkpoint is passed over; a checkpoint of this journal that its keys did not sign is not.
    fs::write(&file, format!("{lines}nonsense\n")).unwrap();
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
    fs::write(&file, lines.replace("entries 8", "entries 9")).unwrap();
    let found = stage.ran(&["audit", "verify"]);
    assert!(found.code == Some(5) && found.stderr.contains("that no key of it signed"), "{found:?}");
}

/// Where a disk is not mounted, a file of the same name can be made in its place.
#[test]
fn a_witness_that_was_told_is_told_again_where_it_has_what_it_was_told() {
    let stage = Stage::new(&[("a", "a\n")]);
    let (disk, away) = (stage.folder().join("disk"), stage.folder().join("away"));
    fs::create_dir_all(stage.home()).unwrap();
    fs::create_dir(&disk).unwrap();
    let config = format!("[journal]\nwitness = \"file:{}\"\n", disk.join("witness.jsonl").display());
    fs::write(stage.home().join("config.toml"), config).unwrap();
    assert!(!session(&stage).contains("witness"), "the control: a new one is made");
    fs::rename(&disk, &away).unwrap();
    fs::create_dir(&disk).unwrap();
    let said = session(&stage);
    assert!(said.contains("is empty") && said.contains("mount what it lies on"), "{said}");
    fs::remove_dir_all(&disk).unwrap();
    fs::rename(&away, &disk).unwrap();
    assert!(!session(&stage).contains("witness"));
    assert_eq!(fs::read_to_string(disk.join("witness.jsonl")).unwrap().lines().count(), 3);
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
}

/// A server that keeps the lines that it is sent, and gives them back.
fn keeper() -> (String, std::sync::Arc<std::sync::Mutex<String>>) {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/witness", listener.local_addr().unwrap());
    let kept = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let lines = kept.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut first, mut length) = (String::new(), 0);
            stream.read_line(&mut first).unwrap();
            loop {
                let mut header = String::new();
                stream.read_line(&mut header).unwrap();
                let header = header.to_ascii_lowercase();
                if let Some(value) = header.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if header.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let mut lines = lines.lock().unwrap();
            lines.push_str(std::str::from_utf8(&body).unwrap());
            let answer = if first.starts_with("GET /witness ") { lines.as_str() } else { "" };
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", answer.len());
            stream.get_mut().write_all((head + answer).as_bytes()).unwrap();
        }
    });
    (url, kept)
}

#[test]
fn a_server_is_told_of_each_checkpoint_through_the_network_door_and_asked_back() {
    let stage = Stage::new(&[("a", "a\n")]);
    let (url, kept) = keeper();
    fs::create_dir_all(stage.home()).unwrap();
    fs::write(stage.home().join("config.toml"), format!("[journal]\nwitness = \"{url}\"\n")).unwrap();
    let said = session(&stage);
    assert!(!said.contains("witness"), "{said}");
    let old = copy(&stage);
    session(&stage);
    assert_eq!(kept.lock().unwrap().lines().count(), 2);
    let trail = stage.trail();
    let told = |entry: &&Value| {
        entry["type"] == "intent" && entry["target"].as_str().is_some_and(|to| to.contains(&url))
    };
    assert_eq!(trail.iter().filter(told).count(), 2, "an effect like any other");
    let vouched = stage.ran(&["--json", "audit", "verify"]);
    assert_eq!(vouched.code, Some(0), "{vouched:?}");
    let vouched = vouched.lines().remove(0);
    assert_eq!(vouched["witness"]["vouches"]["checkpoints"], 2);
    assert_eq!(vouched["witness"]["name"], Value::from(url));
    put_back(&stage, &old);
    let found = stage.ran(&["audit", "verify"]);
    assert!(found.code == Some(5) && found.stderr.contains("the witness has it"), "{found:?}");
}

#[test]
fn a_server_that_never_answers_delays_the_end_by_seconds_and_leaves_nothing_open() {
    let stage = Stage::new(&[("a", "a\n")]);
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let config = format!("[journal]\nwitness = \"http://{}/\"\n", silent.local_addr().unwrap());
    fs::create_dir_all(stage.home()).unwrap();
    fs::write(stage.home().join("config.toml"), config).unwrap();
    let began = std::time::Instant::now();
    let said = session(&stage);
    assert!(said.contains("it did not answer within 5 s") && said.contains("that wait for it: 1"), "{said}");
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    let trail = stage.trail();
    let told = trail.iter().rfind(|entry| entry["type"] == "intent").unwrap();
    assert!(told["target"].as_str().unwrap().starts_with("POST http://127.0.0.1:"), "{told}");
    let ended = |entry: &&Value| entry["type"] == "outcome" && entry["effect"] == told["effect"];
    assert_eq!(trail.iter().find(ended).unwrap()["status"], "cancelled");
}

#[test]
fn a_witness_that_is_none_is_a_mistake_of_the_configuration() {
    let stage = Stage::new(&[]);
    fs::create_dir_all(stage.home()).unwrap();
    let home = fs::canonicalize(stage.home()).unwrap();
    let inside = format!("file:{}/w", stage.home().display());
    for (witness, why) in [
        ("ftp://example.org", "is no witness"),
        ("file:relative", "names no file"),
        ("file:/mnt/../root/w", "names no file"),
        ("https://user:secret@example.org/", "has a user or a password in it"),
        (inside.as_str(), "lies in Bailey's own home"),
    ] {
        fs::write(home.join("config.toml"), format!("[journal]\nwitness = \"{witness}\"\n")).unwrap();
        let wrong = stage.ran(&["config", "check"]);
        assert!(wrong.code == Some(2) && wrong.stderr.contains(why), "{witness}: {wrong:?}");
    }
    fs::write(home.join("config.toml"), "[journal]\nwitness = \"file:/mnt/other/bailey.jsonl\"\n").unwrap();
    assert_eq!(stage.ran(&["config", "check"]).code, Some(0), "the control");
}

/// In a journal of more entries than are walked at each start, too, it is the changed entry that is named,
/// and not the checkpoint that no longer fits.
#[test]
fn the_entry_that_was_changed_is_named_in_a_long_journal_too() {
    use bailey_journal::{Entry, Fact, Journal, Payload, SystemClock};
    use bailey_store::{Grade, Migration, Store, params};
    let stage = Stage::new(&[("a.txt", "a\n")]);
    assert_eq!(stage.ran(&["init"]).code, Some(0));
    let path = stage.home().join("journal.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let redactor = bailey_secrets::Redactor::new(&bailey_secrets::Vault::default());
        let (journal, _mint) =
            Journal::open(&path, redactor, std::sync::Arc::new(SystemClock)).await.unwrap();
        for number in 0..300 {
            let payload = Some(Payload::Text(number.to_string()));
            let entry = Entry { session: None, effect: None, fact: Fact::Released, payload };
            journal.append(entry).await.unwrap();
        }
        journal.checkpoint().await.unwrap();
    });
    let sound = stage.ran(&["audit", "verify"]);
    assert_eq!(sound.code, Some(0), "the control: {sound:?}");
    let migration = Migration { version: bailey_journal::SCHEMA_VERSION, sql: "" };
    runtime.block_on(async {
        let swap = |tx: &mut bailey_store::Tx<'_>| {
            tx.execute("DELETE FROM payload WHERE seq IN (4, 7)", params![])?;
            for sql in ["1000 WHERE seq = 4", "4 WHERE seq = 7", "7 WHERE seq = 1000"] {
                tx.execute(&format!("UPDATE entry SET seq = {sql}"), params![])?;
            }
            Ok(())
        };
        Store::open(&path, &[migration]).unwrap().write(Grade::Full, swap).await.unwrap();
    });
    let ran = stage.ran(&["audit", "verify"]);
    assert!(ran.code == Some(5) && ran.stderr.contains("entry 4"), "{ran:?}");
}
