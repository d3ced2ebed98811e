//! What a stranger wrote is redacted before it reaches the disk, wherever it stands.

use crate::support::{Desk, LASTS, RULES, command, desk_with, effect, policy};
use bailey_journal::{Entry, Fact, Payload, Query, Terms};
use bailey_protocol::{
    Action, Blob, CallId, Cost, ExecReport, FileChange, FileReport, Labels, Outcome, Report, Status, Stream,
    Touched, TurnId,
};
use bailey_secrets::{Redactor, Secret, Vault};

const SECRET: &str = "hunter2-Zq9!xv\"7Lm";

fn redactor() -> Redactor {
    let mut vault = Vault::default();
    vault.insert("TEST_TOKEN".into(), Secret::new(SECRET.into()));
    Redactor::new(&vault)
}

fn stream(bytes: &[u8]) -> Stream {
    Stream { head: Blob(bytes.to_vec()), tail: Blob::default(), total: bytes.len() as u64 }
}

/// Under rules that ask about no program: a command with a variable may be any.
async fn lax(redactor: Redactor) -> Desk {
    let policy = policy(RULES.rsplit_once("[[rule]]").map_or("", |(first, _)| first));
    let desk = Desk { policy, ..desk_with(redactor).await };
    desk.mint.adopt(desk.policy.digest()).await.unwrap();
    desk
}

/// Writes the secret wherever a stranger could put it.
async fn write_everywhere(desk: &Desk) {
    let session = desk.session().await;
    let turn = TurnId::new(1, [1; 10]);
    desk.journal.accept(session, turn, format!("my key is {SECRET}"), Labels::default()).await.unwrap();
    let mut reading = command("login");
    if let Action::Exec(command) = &mut reading {
        command.argv.push(SECRET.into());
        command.env.insert("KEY".into(), SECRET.into());
        command.stdin = Some(SECRET.into());
    }
    let stdout = stream(format!("you are {SECRET}").as_bytes());
    // Not UTF-8: it is stored as Base64.
    let stderr = stream(&[b"\xff\xfe ".as_slice(), SECRET.as_bytes(), b" \xff"].concat());
    let touched = vec![Touched { path: format!("/w/{SECRET}").as_str().into(), base: None, unsure: false }];
    let report = ExecReport { exit: Some(0), stdout, stderr, touched, ..ExecReport::default() };
    desk.run(session, reading, Report::Exec(report)).await;
    desk.journal.reveal(session, format!("/w/.env.{SECRET}").as_str().into()).await.unwrap();
    let change =
        FileChange { path: format!("/w/{SECRET}").as_str().into(), base: None, new: Some(SECRET.into()) };
    let (_permit, receipt) =
        desk.begin(effect(session, Action::Change { files: vec![change] }), 0).await.unwrap();
    let failed = Outcome::failed(format!("cannot write {SECRET}"));
    desk.mint.finish(receipt, &failed, Cost::default(), Vec::new()).await.unwrap();
    let fact = Fact::Observation {
        call: CallId("c".into()),
        tool: SECRET.into(),
        ok: true,
        redacted: 0,
        masked: None,
        labels: Labels::default(),
        waits: None,
    };
    desk.journal.append(Entry::of(session, fact).with(Payload::Text(SECRET.into()))).await.unwrap();
    let sealed = effect(session, command(&format!("deploy {SECRET}")));
    let id = desk
        .mint
        .ask(&sealed, Terms::default(), serde_json::json!({ "title": SECRET }), LASTS)
        .await
        .unwrap();
    desk.mint.answer(session, id, bailey_protocol::Answer::No, "owner", SECRET).await.unwrap();
}

/// Whether the database's files hold the secret: as it is, as JSON writes it, or as Base64 at any alignment.
async fn on_disk(desk: &Desk) -> bool {
    desk.raw().checkpoint().await.unwrap();
    let mut needles = vec![SECRET.as_bytes().to_vec()];
    needles.push(serde_json::to_string(SECRET).unwrap().trim_matches('"').as_bytes().to_vec());
    for shift in 0..3 {
        let mut bytes = vec![0xff_u8; shift];
        bytes.extend_from_slice(SECRET.as_bytes());
        let json = serde_json::to_value(Blob([b"\xff\xff\xff".as_slice(), &bytes].concat())).unwrap();
        let text = json["base64"].as_str().unwrap();
        needles.push(text.as_bytes()[8..24].to_vec());
    }
    ["journal.db", "journal.db-wal"].iter().any(|name| {
        let bytes = std::fs::read(desk.home.path().join(name)).unwrap_or_default();
        needles.iter().any(|needle| bytes.windows(needle.len()).any(|window| window == needle))
    })
}

#[tokio::test]
async fn no_secret_is_on_disk() {
    let desk = lax(redactor()).await;
    write_everywhere(&desk).await;
    assert!(!on_disk(&desk).await);
    desk.journal.verify().await.unwrap();
    let entries = desk.journal.entries(Query::default()).await.unwrap();
    assert!(entries.iter().any(|recorded| recorded.text().contains("[redacted:TEST_TOKEN]")));
    // Control: a redactor that does not know it lets it through.
    let open = lax(Redactor::new(&Vault::default())).await;
    write_everywhere(&open).await;
    assert!(on_disk(&open).await);
}

#[tokio::test]
async fn a_redacted_outcome_can_be_read_back() {
    let desk = desk_with(redactor()).await;
    let session = desk.session().await;
    let content = Blob([b"\xff ".as_slice(), SECRET.as_bytes()].concat());
    let size = content.0.len() as u64;
    let report = Report::File(FileReport { content, size, digest: None, mode: 0o644 });
    desk.run(session, command("cat"), report).await;
    let entries = desk.journal.entries(Query::default()).await.unwrap();
    let stored = entries.last().unwrap().payload.clone().unwrap();
    let outcome: Outcome = serde_json::from_slice(&stored).unwrap();
    assert_eq!(outcome.status, Status::Done);
    let Report::File(file) = outcome.report else { panic!("it is another report") };
    assert_eq!(file.content.0, b"\xff [redacted:TEST_TOKEN]");
}

#[tokio::test]
async fn what_only_looks_like_bytes_keeps_all_it_says() {
    let desk = desk_with(redactor()).await;
    let session = desk.session().await;
    let card = serde_json::json!({ "value": { "base64": "aGk=", "note": format!("it is {SECRET}") }, "other": { "note": "aGk=" } });
    let sealed = effect(session, command("deploy"));
    desk.mint.ask(&sealed, Terms::default(), card, LASTS).await.unwrap();
    let entries = desk.journal.entries(Query::default()).await.unwrap();
    let asked = entries.last().unwrap().text();
    let kept =
        [r#""value":{"base64":"aGk=","note":"it is [redacted:TEST_TOKEN]"}"#, r#""other":{"note":"aGk="}"#];
    assert!(kept.iter().all(|kept| asked.contains(kept)), "{asked}");
}
