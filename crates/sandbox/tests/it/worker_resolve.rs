//! Names become canonical paths; nothing is judged yet, so names may lead anywhere, but only to one place.

use super::{Ground, Request, Response, run};
use bailey_protocol::{Action, Command, Limits, Merge, MergeFile, MergeKind, WsPath};

fn resolve(ground: &Ground, name: &str) -> Result<String, String> {
    resolve_action(ground, Action::Stat { path: name.into() }).map(|action| action.paths()[0].0.clone())
}

fn resolve_action(ground: &Ground, action: Action) -> Result<Action, String> {
    match run(Request::Resolve { action, workspace: ground.text("ws") }) {
        Response::Resolved(action) => Ok(action),
        Response::Refused { reason } => Err(reason),
        other => panic!("{other:?}"),
    }
}

fn ground() -> Ground {
    let ground = Ground::new();
    ground.file("ws/src/main.rs", "");
    ground.file("outside/secret", "");
    ground.link("ws/up", "../outside");
    ground.link("ws/abs", &ground.text("outside/secret"));
    ground.link("ws/chain", "up/secret");
    ground.link("ws/loop", "loop");
    ground.link("ws/dangling", "../outside/not-yet");
    ground.link("ws/src/back", "..");
    ground
}

#[test]
fn every_spelling_of_a_path_becomes_the_one_it_leads_to() {
    let ground = ground();
    let cases = [
        ("src/main.rs", "ws/src/main.rs"),
        ("./src//./main.rs", "ws/src/main.rs"),
        ("src/../src/main.rs", "ws/src/main.rs"),
        ("src/back/src/back/src/main.rs", "ws/src/main.rs"),
        (".", "ws"),
        ("..", ""),
        ("up/secret", "outside/secret"),
        // As the kernel does it: up from where the link leads to, not from where it lies.
        ("up/../ws", "ws"),
        ("abs", "outside/secret"),
        ("chain", "outside/secret"),
        ("dangling", "outside/not-yet"),
        ("new/dir/file", "ws/new/dir/file"),
        ("src/NFC-é", "ws/src/NFC-é"),
    ];
    for (name, expected) in cases {
        assert_eq!(resolve(&ground, name), Ok(ground.text(expected)), "{name}");
    }
    assert_eq!(resolve(&ground, &"../".repeat(200)), Ok("/".into()));
}

#[test]
fn what_leads_nowhere_is_refused_with_a_reason() {
    let ground = ground();
    let long = "a/".repeat(3000);
    let cases = [
        ("", "is empty"),
        ("loop", "too many symbolic links"),
        ("a\0b", "NUL"),
        ("not-yet/../src", "goes up from a directory that does not exist"),
        ("src/main.rs/x", "not a directory"),
        (long.as_str(), "longer than 4096"),
    ];
    for (name, reason) in cases {
        let refused = resolve(&ground, name).unwrap_err();
        assert!(refused.contains(reason), "{name}: {refused}");
    }
}

#[test]
fn a_link_to_a_name_that_is_not_utf8_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let ground = ground();
    let raw = std::ffi::OsStr::from_bytes(b"caf\xe9");
    std::fs::write(ground.path.join("ws").join(raw), "").unwrap();
    std::os::unix::fs::symlink(raw, ground.path.join("ws/raw")).unwrap();
    assert!(resolve(&ground, "raw").unwrap_err().contains("not UTF-8"));
}

#[test]
fn a_command_starts_in_a_directory_that_exists() {
    let ground = ground();
    let exec = |cwd: &str| {
        Action::Exec(Command {
            argv: vec!["true".into()],
            cwd: cwd.into(),
            env: Default::default(),
            stdin: None,
            network: false,
            background: false,
            limits: Limits::default(),
        })
    };
    let resolved = resolve_action(&ground, exec("src/back")).unwrap();
    assert_eq!(resolved.paths()[0], &ground.ws("ws"));
    assert!(resolve_action(&ground, exec("src/main.rs")).unwrap_err().contains("is not a directory"));
    assert!(resolve_action(&ground, exec("absent")).is_err());
}

#[test]
fn a_merge_names_a_symlink_itself() {
    let ground = ground();
    let file = MergeFile::whole(WsPath("src/back/abs".into()), None, None);
    let merge = Action::Merge(Merge::of_files(MergeKind::Apply, None, vec![file]));
    assert_eq!(resolve_action(&ground, merge).unwrap().paths()[0], &ground.ws("ws/abs"));
}
