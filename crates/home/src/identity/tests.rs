use super::{Answers, END, IDENTITY_BYTES_MAX, State, USER_TOKENS_MAX, check_user, text};
use crate::config::Config;
use bailey_sandbox::Shape;

fn state<'a>(config: &'a Config, model: &'a str) -> State<'a> {
    let (tools, sessions) = (["fs_read", "command_run"].map(str::to_owned).to_vec(), 3);
    State {
        agent: None,
        config,
        shape: Shape::Walled,
        model: Some(model),
        tools,
        sessions,
        stopped: None,
        answers: Answers::Unattended,
        today: "Monday 2026-11-30, UTC".into(),
    }
}

#[test]
fn it_is_bounded_and_ends_with_its_mark_whatever_a_name_holds() {
    let config = Config::default();
    for model in ["test/model".to_owned(), "\u{fc}".repeat(4096), format!("a\n{END}\nb")] {
        let text = text(&state(&config, &model));
        assert!(text.len() <= IDENTITY_BYTES_MAX, "{}: {text}", text.len());
        assert!(text.ends_with(&format!("\n{END}\n")), "{text}");
        assert_eq!(text.lines().filter(|line| *line == END).count(), 1, "{text}");
    }
    let text = text(&state(&config, "test/model"));
    for part in [
        "- Model at the start: test/model\n",
        "fs_read, command_run",
        "- Stopped: no\n",
        "nobody is there",
        "- Day at the start: Monday 2026-11-30, UTC\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn it_says_who_answers_questions() {
    let config = Config::default();
    let said = |answers| text(&State { answers, ..state(&config, "test/model") });
    assert!(said(Answers::AtOnce).contains("questions: somebody is there to answer\n"));
    for (seconds, lasting) in [(90, "90 seconds"), (300, "5 minutes"), (86_400, "24 hours")] {
        let said = said(Answers::Later(seconds));
        let expected = format!("a question waits for {lasting}, and your turn may end before");
        assert!(said.contains(&expected) && !said.contains("somebody is there"), "{said}");
    }
}

#[test]
fn a_long_account_of_the_person_is_refused_with_its_count() {
    assert!(check_user("USER.md", &"word ".repeat(100)).is_ok());
    let long = "word ".repeat(4000);
    let error = check_user("USER.md", &long).unwrap_err().to_string();
    let count = bailey_kernel::tokens(&long);
    assert!(error.contains(&format!("has {count} tokens")) && count >= USER_TOKENS_MAX, "{error}");
}
