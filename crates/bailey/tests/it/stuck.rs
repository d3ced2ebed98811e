//! What is too long, hangs or never comes to its end holds nobody else up.

use crate::{
    daemon::Daemon,
    page::{Page, anywhere},
    stage::Stage,
};
use serde_json::json;

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
    // Names out of the project's own settings are quoted, which nobody has to trust for that; then a model is missing.
    for bytes in [100, 20 << 10, 60 << 10] {
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
