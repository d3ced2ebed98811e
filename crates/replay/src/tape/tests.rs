use super::{Step, Tape};
use bailey_journal::{
    Fact, Purpose, Recorded, SessionInfo, Stored,
    fact::{Admitted, ENTRY_VERSION},
};
use bailey_protocol::{Cost, Digest, Kind, Labels, Role, Seq, SessionId, Timestamp, WsPath};

fn opened() -> (Fact, &'static str) {
    let (workspace, principal, model) = (WsPath("/w".into()), "owner".into(), "test/model".into());
    (Fact::SessionOpened { workspace, principal, model }, "")
}

fn guide(text: &'static str) -> (Fact, &'static str) {
    let (path, digest) = (WsPath("/h/agent.toml".into()), Some(Digest::of(b"as it was")));
    (Fact::Guide { path, digest, own: true, labels: Labels::default() }, text)
}

fn intent(role: Role) -> (Fact, &'static str) {
    let fact = Fact::Intent {
        kind: Kind::Exec,
        target: "judge".into(),
        digest: Digest::of(b"judge"),
        admitted: Admitted::Allowed,
        reasons: Vec::new(),
        approval: None,
        purpose: Purpose::Own,
        call: None,
        parent: None,
        role,
        labels: Labels::default(),
        reserved: Cost::default(),
        sent: None,
        payer: None,
        under: None,
    };
    (fact, "{}")
}

/// The content of the agent's own file that the tape gives for the opening of the session.
fn own(told: impl IntoIterator<Item = (Fact, &'static str)>) -> Option<String> {
    let info = SessionInfo {
        id: SessionId::new(1, [1; 10]),
        workspace: WsPath("/w".into()),
        principal: "owner".into(),
        model: "test/model".into(),
        opened: Timestamp::UNIX_EPOCH,
        updated: Timestamp::UNIX_EPOCH,
        title: String::new(),
        tokens_used: 0,
        is_of_commands: false,
    };
    let entries = [opened()].into_iter().chain(told).zip(1..).map(|((fact, payload), seq)| Recorded {
        entry: Stored {
            v: ENTRY_VERSION,
            seq: Seq(seq),
            time: Timestamp::UNIX_EPOCH,
            session: Some(info.id),
            effect: None,
            payload: None,
            fact,
        },
        payload: Some(payload.into()),
    });
    let entries = entries.collect();
    let tape = Tape { info, entries, effects: Vec::new(), questions: Vec::new(), end: None };
    match tape.steps().into_iter().next() {
        Some(Step::Open { own, .. }) => own,
        other => panic!("{other:?}"),
    }
}

/// An extension starts at the same time as the first turn, so its entry comes before the guide's or after it.
#[test]
fn the_start_of_an_extension_does_not_end_what_a_session_was_told_at_its_beginning() {
    let told = Some("name = \"Ada\"\n".to_owned());
    let says = || guide("[says how you are]\nname = \"Ada\"\n");
    assert_eq!(own([says(), intent(Role::Owner)]), told);
    assert_eq!(own([intent(Role::Owner), says()]), told);
    assert_eq!(
        own([intent(Role::Agent), says()]),
        None,
        "the control: what the agent did may have changed it"
    );
}
