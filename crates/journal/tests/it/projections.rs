//! What follows from reports: the paths that a session's layer holds, with their bases.

use crate::support::{Desk, LASTS, command, desk, effect, merge, model, why};
use bailey_journal::{Applied, Budgets, Entry, Fact, Masked, Sent, Terms, Totals, Warrant};
use bailey_policy::{Facts, Places, Policy, Verdict, built_in_rules, file};
use bailey_protocol::{
    Action, Answer, ChangedFile, Cost, Digest, EffectId, ExecReport, FileChange, HttpReport, Merge,
    MergeFile, MergeKind, MergeResult, MergeState, Outcome, Relay, RelayReport, Report, SessionId, Status,
    Tip, TipResult, Touched, WsPath,
};

fn digest(text: &str) -> Option<Digest> {
    Some(Digest::of(text.as_bytes()))
}

fn touched(path: &str, base: Option<Digest>, unsure: bool) -> Touched {
    Touched { path: path.into(), base, unsure }
}

async fn after_command(desk: &Desk, session: SessionId, touched: Vec<Touched>) {
    let report = ExecReport { touched, ..ExecReport::default() };
    desk.run(session, command("make"), Report::Exec(report)).await;
}

/// Runs a merge whose results are these, and answers its effect.
async fn merged(
    desk: &Desk,
    session: SessionId,
    kind: MergeKind,
    of: Option<EffectId>,
    files: &[(MergeFile, MergeState)],
) -> EffectId {
    let action = merge(kind, of, files.iter().map(|(file, _)| file.clone()).collect());
    let results =
        files.iter().map(|(file, state)| MergeResult { path: file.path.clone(), state: state.clone() });
    let sealed = effect(session, action);
    let id = sealed.effect().id;
    let (_permit, receipt) = desk.begin(sealed, 0).await.unwrap();
    let report = Report::Merged { files: results.collect(), tips: Vec::new() };
    desk.mint.finish(receipt, &crate::support::done(report), Cost::default(), Vec::new()).await.unwrap();
    id
}

fn file_of(path: &str, base: Option<Digest>, new: Option<Digest>) -> MergeFile {
    MergeFile::whole(path.into(), base, new)
}

/// An apply that moved these files.
fn applied(id: EffectId, files: &[&MergeFile]) -> Applied {
    Applied {
        id,
        files: files.iter().map(|file| (*file).clone()).collect(),
        tips: Vec::new(),
        is_tried: false,
    }
}

#[tokio::test]
async fn references_are_taken_back_from_where_they_were_moved_to() {
    let desk = desk().await;
    let session = desk.session().await;
    let id = |digit: &str| digit.repeat(40);
    let tip = |name: &str, aside: Option<&str>| Tip {
        name: name.into(),
        old: Some(id("1")),
        new: id("2"),
        aside: aside.map(str::to_owned),
    };
    let asked = vec![
        tip("refs/heads/main", Some("refs/bailey/1/main")),
        tip("refs/heads/x", Some("refs/bailey/1/x")),
    ];
    let begin = async |direction, of, tips: &[Tip]| {
        let merge = Merge { tips: tips.to_vec(), ..Merge::of_files(direction, of, Vec::new()) };
        let sealed = effect(session, Action::Merge(merge));
        let id = sealed.effect().id;
        (id, desk.begin(sealed, 0).await.unwrap().1)
    };
    let end = async |receipt, tips: &[Tip], at: &[Option<&str>]| {
        let result = |(tip, at): (&Tip, &Option<&str>)| TipResult {
            name: tip.name.clone(),
            at: at.map(str::to_owned),
            why: None,
            state: match at {
                Some(_) => MergeState::Done,
                None => MergeState::Failed { reason: "no".into() },
            },
        };
        let tips = tips.iter().zip(at).map(result).collect();
        let report = Report::Merged { files: Vec::new(), tips };
        desk.mint.finish(receipt, &crate::support::done(report), Cost::default(), Vec::new()).await.unwrap();
    };
    // Cut off: as they were asked for, and not finished.
    let (apply, _) = begin(MergeKind::Apply, None, &asked).await;
    let unfinished = desk.journal.unfinished_apply(session).await.unwrap().unwrap();
    assert_eq!((unfinished.id, &unfinished.tips), (apply, &asked));
    // Ended: one where it was named, one beside.
    let (_, receipt) = begin(MergeKind::Apply, Some(apply), &asked).await;
    end(receipt, &asked, &[Some("refs/heads/main"), Some("refs/bailey/1/x")]).await;
    assert_eq!(desk.journal.unfinished_apply(session).await.unwrap(), None);
    let last = desk.journal.last_apply(session).await.unwrap().unwrap();
    let beside = Tip { old: None, ..tip("refs/bailey/1/x", None) };
    assert_eq!((last.id, &last.tips), (apply, &vec![tip("refs/heads/main", None), beside.clone()]));
    // An undo that kept one back, and another.
    let (_, receipt) = begin(MergeKind::Undo, Some(apply), &last.tips).await;
    end(receipt, &last.tips, &[Some("refs/heads/main"), None]).await;
    assert_eq!(desk.journal.last_apply(session).await.unwrap().unwrap().tips, std::slice::from_ref(&beside));
    let (_, receipt) = begin(MergeKind::Undo, Some(apply), std::slice::from_ref(&beside)).await;
    end(receipt, std::slice::from_ref(&beside), &[Some("refs/bailey/1/x")]).await;
    assert_eq!(desk.journal.last_apply(session).await.unwrap(), None);
    // What moved nothing is nothing to take back.
    let (_, receipt) = begin(MergeKind::Apply, None, &asked).await;
    end(receipt, &asked, &[None, None]).await;
    assert_eq!(desk.journal.last_apply(session).await.unwrap(), None);
}

#[tokio::test]
async fn the_first_base_counts() {
    let desk = desk().await;
    let session = desk.session().await;
    after_command(&desk, session, vec![touched("/w/a", digest("1"), false)]).await;
    after_command(&desk, session, vec![touched("/w/a", digest("2"), true), touched("/w/b", None, true)])
        .await;
    let change = FileChange { path: "/w/c".into(), base: digest("3"), new: Some("4".into()) };
    let change = Action::Change { files: vec![change] };
    let changed = ChangedFile {
        path: "/w/c".into(),
        old: digest("3"),
        new: digest("4"),
        touched: Some(touched("/w/c", digest("3"), false)),
    };
    desk.run(session, change, Report::Changed { files: vec![changed] }).await;
    let expected = [
        touched("/w/a", digest("1"), false),
        touched("/w/b", None, true),
        touched("/w/c", digest("3"), false),
    ];
    assert_eq!(desk.journal.touched(session).await.unwrap(), expected);
    assert_eq!(desk.journal.touched(desk.session().await).await.unwrap(), []);
}

#[tokio::test]
async fn an_apply_moves_the_bases_of_what_it_merged() {
    let desk = desk().await;
    let session = desk.session().await;
    after_command(&desk, session, vec![touched("/w/a", digest("1"), true), touched("/w/b", None, false)])
        .await;
    let a = file_of("/w/a", digest("1"), digest("2"));
    let b = file_of("/w/b", None, digest("new"));
    let conflict = MergeState::Conflict { reason: "changed".into() };
    let apply =
        merged(&desk, session, MergeKind::Apply, None, &[(a.clone(), MergeState::Done), (b, conflict)]).await;
    let expected = [touched("/w/a", digest("2"), false), touched("/w/b", None, false)];
    assert_eq!(desk.journal.touched(session).await.unwrap(), expected);
    assert_eq!(desk.journal.last_apply(session).await.unwrap(), Some(applied(apply, &[&a])));
    // And an undo moves them back.
    merged(&desk, session, MergeKind::Undo, Some(apply), &[(a, MergeState::Done)]).await;
    assert_eq!(desk.journal.touched(session).await.unwrap()[0], touched("/w/a", digest("1"), false));
    assert_eq!(desk.journal.last_apply(session).await.unwrap(), None);
}

#[tokio::test]
async fn undoing_takes_the_newest_apply_first() {
    let desk = desk().await;
    let session = desk.session().await;
    let file = |new: &str| vec![(file_of("/w/a", None, digest(new)), MergeState::Done)];
    let first = merged(&desk, session, MergeKind::Apply, None, &file("1")).await;
    let second = merged(&desk, session, MergeKind::Apply, None, &file("2")).await;
    let last = async || desk.journal.last_apply(session).await.unwrap().map(|applied| applied.id);
    assert_eq!(last().await, Some(second));
    merged(&desk, session, MergeKind::Undo, Some(second), &file("2")).await;
    assert_eq!(last().await, Some(first));
}

#[tokio::test]
async fn what_an_undo_kept_back_can_be_taken_back_later() {
    let desk = desk().await;
    let session = desk.session().await;
    let [a, b, c] = ["/w/a", "/w/b", "/w/c"].map(|path| file_of(path, None, digest("new")));
    let done = |file: &MergeFile| (file.clone(), MergeState::Done);
    let kept = |file: &MergeFile| (file.clone(), MergeState::Conflict { reason: "changed".into() });
    let failed = |file: &MergeFile| (file.clone(), MergeState::Failed { reason: "read-only".into() });
    let last = async || desk.journal.last_apply(session).await.unwrap();
    let older = merged(&desk, session, MergeKind::Apply, None, &[done(&a)]).await;
    let apply = merged(&desk, session, MergeKind::Apply, None, &[done(&a), done(&b), done(&c)]).await;
    let undo = async |files: &[_]| merged(&desk, session, MergeKind::Undo, Some(apply), files).await;
    undo(&[kept(&a), kept(&b), kept(&c)]).await;
    let tried = |files: &[&MergeFile]| Applied { is_tried: true, ..applied(apply, files) };
    assert_eq!(last().await, Some(tried(&[&a, &b, &c])));
    undo(&[done(&a), kept(&b), failed(&c)]).await;
    assert_eq!(last().await, Some(tried(&[&b, &c])));
    assert_eq!(desk.journal.applies(session).await.unwrap(), [applied(older, &[&a]), tried(&[&b, &c])]);
    undo(&[(b, MergeState::Already), done(&c)]).await;
    assert_eq!(last().await, Some(applied(older, &[&a])));
}

/// What an apply could not write and left as it was is no part of it; what it may have begun is.
#[tokio::test]
async fn an_undo_takes_nothing_back_where_nothing_was_done() {
    let desk = desk().await;
    let session = desk.session().await;
    let [a, b, c] = ["/w/a", "/w/b", "/w/c"].map(|path| file_of(path, None, digest("new")));
    let reason = || "read-only".to_owned();
    let untouched = |file: &MergeFile| (file.clone(), MergeState::Untouched { reason: reason() });
    let last = async || desk.journal.last_apply(session).await.unwrap();
    merged(&desk, session, MergeKind::Apply, None, &[untouched(&a), untouched(&b)]).await;
    assert_eq!(last().await, None);
    let failed = (b.clone(), MergeState::Failed { reason: reason() });
    let states = [untouched(&a), failed, (c.clone(), MergeState::Done)];
    let apply = merged(&desk, session, MergeKind::Apply, None, &states).await;
    assert_eq!(last().await, Some(applied(apply, &[&b, &c])));
}

#[tokio::test]
async fn a_discard_forgets_everything() {
    let desk = desk().await;
    let session = desk.session().await;
    after_command(&desk, session, vec![touched("/w/a", digest("1"), false)]).await;
    merged(&desk, session, MergeKind::Discard, None, &[]).await;
    assert_eq!(desk.journal.touched(session).await.unwrap(), []);
}

/// A read of a masked file that a human approved, as the kernel begins it.
async fn revealing(desk: &Desk, policy: &Policy, session: SessionId) {
    let sealed = effect(session, Action::Read { path: "/w/.env".into() });
    let places = Places { workspace: "/w".into(), ..Places::default() };
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    let facts = Facts::new(&sealed, now, &places);
    let Verdict::Review(review) = policy.decide(&facts).verdict else { panic!("it is not asked") };
    let id = desk.mint.ask(&sealed, Terms::default(), serde_json::json!({}), LASTS).await.unwrap();
    desk.mint.answer(session, id, Answer::Yes, "owner", "").await.unwrap();
    let grant = desk.mint.grant(id, &sealed).await.unwrap();
    let begun = desk.mint.begin(sealed, Warrant::Approved(review, grant), why(), &Budgets::default()).await;
    drop(begun.unwrap());
}

#[tokio::test]
async fn a_file_is_revealed_once() {
    let desk = desk().await;
    let session = desk.session().await;
    let rules = "[[rule]]\nname = \"r\"\nanswer = \"allow\"\nreason = \"r\"\nmatch = { action = \"read\" }";
    let rules = file::parse("r.toml", rules, file::Format::Toml).unwrap().rules;
    let policy = Policy::new(built_in_rules(), rules);
    desk.mint.adopt(policy.digest()).await.unwrap();
    assert_eq!(desk.journal.revealed(session).await.unwrap(), []);
    revealing(&desk, &policy, session).await;
    revealing(&desk, &policy, session).await;
    desk.journal.reveal(session, "/w/.env".into()).await.unwrap();
    assert_eq!(desk.journal.revealed(session).await.unwrap(), [WsPath::from("/w/.env")]);
    let entries = desk.journal.entries(bailey_journal::Query::default()).await.unwrap();
    let told = entries.iter().filter(|recorded| recorded.entry.fact.name() == "revealed").count();
    assert_eq!(told, 1);
    assert_eq!(desk.journal.revealed(desk.session().await).await.unwrap(), []);
}

/// Attack A64: what many small effects came to is one sum, whoever pays for them, and it is not forgotten.
#[tokio::test]
async fn a64_a_session_has_the_sum_of_what_it_sent_and_changed() {
    let desk = desk().await;
    let (session, other) = (desk.session().await, desk.session().await);
    assert_eq!(desk.journal.totals(session).await.unwrap(), Totals::default());
    let child = desk.child(session, 10).await;
    let url = "https://api.example.com/v1";
    for at in 0..10 {
        desk.run(session, model(url, 7), Report::Nothing).await;
        let path = format!("/w/{}", at % 3);
        after_command(&desk, session, vec![touched(&path, None, false)]).await;
    }
    // A sub-agent's effects are in its parent's session; it pays, and what is sent is the same sum.
    let sealed = effect(session, model("https://other.example", 1));
    let warrant = Warrant::Allowed(desk.allowed(&sealed));
    let circumstances = crate::support::paid_by(Some(child));
    drop(desk.mint.begin(sealed, warrant, circumstances, &Budgets::default()).await.unwrap());
    let sent = |host: &str, bytes| Sent { host: host.into(), bytes };
    let expected = Totals {
        sent: vec![
            sent("api.example.com", 10 * (7 + url.len() as u64)),
            sent("other.example", 1 + "https://other.example".len() as u64),
        ],
        changes: 0,
        commands: 10,
        files: 3,
    };
    assert_eq!(desk.journal.totals(session).await.unwrap(), expected);
    // Another process reads the same, and what is made anew from the chain is the same.
    assert_eq!(desk.second().await.0.totals(session).await.unwrap(), expected);
    assert!(desk.journal.rebuild().await.unwrap().repaired.is_empty());
    assert_eq!(desk.journal.totals(session).await.unwrap(), expected);
    // Control: it is this session's alone.
    assert_eq!(desk.journal.totals(other).await.unwrap(), Totals::default());
}

/// Attack A64: a request that does not say how long it is counts when it is over.
#[tokio::test]
async fn a64_what_a_command_sent_is_counted_whether_or_not_it_said_how_much() {
    let desk = desk().await;
    let session = desk.session().await;
    let relay = |host: &str, length| Relay {
        method: "PUT".into(),
        url: format!("https://{host}/"),
        length,
        number: 1,
        key: None,
    };
    let passed = |host: &str, counted| {
        Report::Relayed(RelayReport { host: host.into(), out: 500, counted, ..RelayReport::default() })
    };
    desk.run(session, Action::Relay(relay("said.example", Some(500))), passed("said.example", true)).await;
    desk.run(session, Action::Relay(relay("mute.example", None)), passed("mute.example", false)).await;
    let sent =
        |host: &str| Sent { host: host.into(), bytes: 500 + "https:///".len() as u64 + host.len() as u64 };
    let expected = vec![sent("mute.example"), sent("said.example")];
    assert_eq!(desk.journal.totals(session).await.unwrap().sent, expected);
    assert!(desk.journal.rebuild().await.unwrap().repaired.is_empty());
    assert_eq!(desk.journal.totals(session).await.unwrap().sent, expected);
}

/// A request that the network door refused was told on the next card as bytes that were sent there.
#[tokio::test]
async fn what_never_left_is_not_counted_as_sent() {
    let http = |sent| Report::Http(HttpReport { sent, ..HttpReport::default() });
    let relayed = |sent| Report::Relayed(RelayReport { sent, counted: true, ..RelayReport::default() });
    let failed = || Status::Failed { reason: "refused".into() };
    let url = "https://a.example/v1";
    let request = || {
        Action::Http(match model(url, 7) {
            Action::Model { request, .. } => request,
            _ => unreachable!(),
        })
    };
    let relay = || {
        let (method, length) = ("PUT".into(), Some(7));
        Action::Relay(Relay { method, url: url.into(), length, number: 1, key: None })
    };
    for (action, status, report, left) in [
        (request(), failed(), http(false), false),
        (relay(), failed(), relayed(false), false),
        // The controls: the request may have arrived, or that is unknown.
        (request(), failed(), http(true), true),
        (relay(), failed(), relayed(true), true),
        (request(), Status::Cancelled, http(false), true),
        (request(), Status::Unknown, Report::Nothing, true),
        (request(), failed(), Report::Nothing, true),
        (request(), Status::Done, http(true), true),
    ] {
        let desk = desk().await;
        let session = desk.session().await;
        let (_permit, receipt) = desk.begin(effect(session, action), 0).await.unwrap();
        let told = format!("{status:?} {report:?}");
        let outcome = Outcome { status, enforced: None, duration_ms: 1, report };
        desk.mint.finish(receipt, &outcome, Cost::default(), Vec::new()).await.unwrap();
        let sent = desk.journal.totals(session).await.unwrap().sent;
        assert_eq!(sent.len(), usize::from(left), "{told}");
        desk.journal.verify_projections().await.unwrap();
    }
}

/// Attack A63: a sub-agent is no way to begin a new count.
#[tokio::test]
async fn a63_hits_of_sub_agents_are_their_sessions() {
    let desk = desk().await;
    let (session, other) = (desk.session().await, desk.session().await);
    let child = desk.child(session, 10).await;
    let grandchild = desk.child(child, 5).await;
    let masked = Masked { secrets: ["KEY".into()].into(), of: digest("read a"), withheld: false };
    for (at, masked) in
        [(session, Some(&masked)), (child, Some(&masked)), (grandchild, Some(&masked)), (session, None)]
    {
        let fact = Fact::Observation {
            call: bailey_protocol::CallId("c1".into()),
            tool: "toy".into(),
            ok: true,
            redacted: 1,
            masked: masked.cloned(),
            labels: bailey_protocol::Labels::default(),
            waits: None,
        };
        desk.journal.append(Entry::of(at, fact)).await.unwrap();
    }
    assert_eq!(desk.journal.masked(session).await.unwrap(), [masked.clone(), masked.clone(), masked.clone()]);
    assert_eq!(desk.journal.masked(child).await.unwrap().len(), 2);
    assert_eq!(desk.journal.masked(other).await.unwrap(), []);
}
