//! What is too long, hangs or never comes to its end holds nobody else up.

use crate::{
    daemon::{Daemon, PATIENCE, end, pid},
    page::{Page, anywhere, connect, default_model, event},
    stage::Stage,
};
use bailey_testkit::Reply;
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// How often the page's process has begun.
fn begun(stage: &Stage) -> usize {
    stage.ran(&["--json", "logs", "--lines", "500"]).stdout.matches("\"page_begun\"").count()
}

#[test]
fn a_long_refusal_is_told_as_far_as_it_fits_and_the_page_goes_on() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let _model = stage.model(Vec::new());
    anywhere(&stage);
    let _daemon = Daemon::start(&stage);
    let page = Page::of(&stage);
    // Names out of the project's own settings are quoted, which nobody has to trust for that; then a model is
    // missing.
    for bytes in [60 << 10, 20 << 10, 100] {
        stage.write(".bailey/config.toml", &format!("{} = 1\n", "x".repeat(bytes)));
        let refused = page.post("/api/sessions", &json!({ "directory": stage.project() }));
        assert_eq!(refused.status, 409, "{bytes}: {}", refused.body.len());
        let why = refused.lines()[0]["error"].as_str().unwrap().to_owned();
        assert!(why.starts_with("no model") && why.contains(".bailey/config.toml"), "{bytes}: {why}");
        assert_eq!(why.contains("(cut: it is "), bytes > 100, "{bytes}: {why}");
        assert!(why.len() < 10 << 10, "{bytes}: {}", why.len());
        assert_eq!(page.get("/api/status").status, 200, "{bytes}");
        // At a terminal, too, that is told, and not that the answer is too long.
        let ran = stage.ran(&["chat"]);
        assert!(ran.code != Some(0) && ran.stderr.contains("no model"), "{bytes}: {ran:?}");
    }
    assert_eq!(begun(&stage), 1, "the page's process ended");
}

#[test]
fn a_session_that_hangs_when_it_is_to_end_is_ended_and_holds_nobody_up() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let _model = stage.model(Vec::new());
    default_model(&stage);
    anywhere(&stage);
    let daemon = Daemon::start(&stage);
    let page = Arc::new(Page::of(&stage));
    let begun = page.post("/api/sessions", &json!({ "directory": stage.project() }));
    let session = begun.lines()[0]["done"].as_str().unwrap().to_owned();
    let first = pid(&daemon.status()["sessions"][0]);
    // Stopped, it is there and does nothing any more.
    end(first, "-STOP");
    let mut closing = BufReader::new(UnixStream::connect(stage.home().join("daemon/socket")).unwrap());
    closing.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
    writeln!(closing.get_mut(), "{}", json!({ "v": 1, "ask": "close", "session": session })).unwrap();
    // More than are served at once want it, and wait for its end.
    let begin = Instant::now();
    let joining: Vec<_> = (0..20)
        .map(|_| {
            let (page, session) = (page.clone(), session.clone());
            thread::spawn(move || drop(page.join(&session, "")))
        })
        .collect();
    thread::sleep(Duration::from_secs(1));
    let asked = Instant::now();
    assert_eq!(page.get("/healthz").body, "ok\n");
    assert!(asked.elapsed() < Duration::from_secs(3), "the page is there: {:?}", asked.elapsed());
    assert!(!joining.iter().any(thread::JoinHandle::is_finished), "the control: they wait");
    joining.into_iter().for_each(|it| it.join().unwrap());
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    let mut told = String::new();
    closing.read_line(&mut told).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap()["told"], "closed");
    assert_ne!(pid(&daemon.status()["sessions"][0]), first);
    let log = stage.ran(&["--json", "logs", "--lines", "500"]).stdout;
    assert!(log.contains("\"hung\"") && !log.contains("\"begun_again\""), "{log}");
}

/// Each may take 20 s for a request.
#[test]
fn those_who_ask_for_nothing_give_way_to_those_who_do() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let _model = stage.model(vec![Reply::text("hello")]);
    default_model(&stage);
    anywhere(&stage);
    let _daemon = Daemon::start(&stage);
    let page = Page::of(&stage);
    let (mut lines, stream, _) = page.begin(&stage, None);
    let heads = format!("host: 127.0.0.1:{}\r\ncontent-type: application/json\r\n", page.port);
    for half in
        ["GET / HT".to_owned(), format!("POST /api/login HTTP/1.1\r\n{heads}content-length: 9\r\n\r\n{{")]
    {
        let crowd: Vec<_> = (0..200)
            .map(|_| {
                let mut one = connect(page.port);
                // Whoever gave way already hears that.
                one.write_all(half.as_bytes()).ok();
                one
            })
            .collect();
        let begin = Instant::now();
        assert_eq!(page.get("/api/status").status, 200);
        assert!(begin.elapsed() < Duration::from_secs(5), "{half}: {:?}", begin.elapsed());
        drop(crowd);
    }
    // Who looks on at a session keeps the place, though it was there first.
    page.say(&stream, "hello");
    event(&mut lines, "end");
}
