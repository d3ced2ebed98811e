use super::*;
use crate::{CommandPrefix, Facts, Places, Programs};
use bailey_protocol::{
    Action, Command, Cost, Effect, EffectId, Labels, Limits, Role, Sealed, SessionId, Timestamp, WsPath,
};

fn on(globs: &[&str]) -> Condition {
    let path = Some(globs.iter().map(|glob| Glob::new(glob).unwrap()).collect());
    Condition { path, ..Condition::default() }
}

fn of(program: &str) -> Condition {
    Condition { command: Some(vec![CommandPrefix::new(program).unwrap()]), ..Condition::default() }
}

fn found(action: Action) -> Vec<usize> {
    let mut index = Index::default();
    let rules = [
        on(&["src/**"]),
        on(&["src/deep/**"]),
        on(&["docs/**", "/etc/**"]),
        on(&["{home}/.cache/**"]),
        of("git"),
        of("/usr/bin/cargo"),
        Condition::default(),
    ];
    rules.iter().enumerate().for_each(|(number, condition)| index.insert(number, condition));
    let effect = Effect {
        id: EffectId::new(1, [1; 10]),
        session: SessionId::new(1, [2; 10]),
        parent: None,
        call: None,
        role: Role::Agent,
        action,
        labels: Labels::default(),
        cost: Cost::default(),
    };
    let (effect, places) = (Sealed::new(effect).unwrap(), places());
    let facts = Facts::new(&effect, Timestamp::UNIX_EPOCH, &places);
    let about = effect.effect().action.describe();
    index.find(&Resource::all(&facts, &about, Programs::KNOWN), rules.len()).collect()
}

fn places() -> Places {
    Places { workspace: "/home/ann/p".into(), user_home: "/home/ann".into(), ..Places::default() }
}

fn read(path: &str) -> Action {
    Action::Read { path: path.into() }
}

fn exec(program: &str) -> Action {
    Action::Exec(Command {
        argv: vec![program.into()],
        cwd: "/home/ann/p".into(),
        env: BTreeMap::new(),
        stdin: None,
        network: false,
        background: false,
        limits: Limits::default(),
    })
}

/// That it never finds too few, the differential test shows; that it finds little is why it is there.
#[test]
fn it_finds_the_rules_around_a_thing_and_no_others() {
    assert_eq!(found(read("/home/ann/p/src/a.rs")), [0, 6]);
    assert_eq!(found(read("/home/ann/p/src/deep/a.rs")), [0, 1, 6]);
    assert_eq!(found(read("/home/ann/p/src")), [0, 6]);
    assert_eq!(
        found(Action::Diff { root: WsPath("/home/ann/p/src".into()), also: Vec::new() }),
        [0, 1, 6],
        "a tree"
    );
    assert_eq!(found(read("/etc/passwd")), [2, 6]);
    assert_eq!(found(read("/home/ann/.cache/a")), [3, 6]);
    assert_eq!(found(read("/srv/a")), [6]);
}

#[test]
fn a_program_is_found_with_and_without_its_folder() {
    assert_eq!(found(exec("git")), [4, 6]);
    assert_eq!(found(exec("/opt/bin/git")), [4, 6]);
    assert_eq!(found(exec("cargo")), [5, 6]);
    assert_eq!(found(exec("ls")), [6]);
}
