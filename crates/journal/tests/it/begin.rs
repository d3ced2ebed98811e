//! What `begin` refuses, and that nothing of a refused effect is written.

use crate::support::{Desk, LASTS, command, decide, desk, effect, paid_by, stricter, terms, why};
use bailey_journal::{
    Asker, BeginError, Budgets, Fact, JournalError, Query, SessionLock, Terms, Warrant, Wider,
};
use bailey_policy::{Pattern, Verdict};
use bailey_protocol::{Answer, ApprovalId, Digest, ExecReport, Report, Role, Sealed, SessionId};

async fn intents(desk: &Desk) -> usize {
    let entries = desk.journal.entries(Query::default()).await.unwrap();
    entries.iter().filter(|recorded| matches!(recorded.entry.fact, Fact::Intent { .. })).count()
}

#[tokio::test]
async fn an_effect_begins_with_its_own_verdict() {
    let desk = desk().await;
    let session = desk.session().await;
    let sealed = effect(session, command("echo"));
    let id = sealed.effect().id;
    let (permit, receipt) = desk.begin(sealed, 0).await.unwrap();
    assert_eq!(receipt.effect(), id);
    assert_eq!(intents(&desk).await, 1);
    let redeemed = permit.redeem(&desk.journal.seal()).unwrap();
    assert_eq!((redeemed.effect.id, redeemed.seq), (id, receipt.seq()));
}

#[tokio::test]
async fn another_journals_permit_is_refused() {
    let (one, other) = (desk().await, desk().await);
    let session = one.session().await;
    let (permit, _receipt) = one.begin(effect(session, command("echo")), 0).await.unwrap();
    assert!(matches!(permit.redeem(&other.journal.seal()), Err(JournalError::ForeignPermit)));
    // A second handle on the same file is another instance, too.
    let (permit, _receipt) = one.begin(effect(session, command("echo")), 0).await.unwrap();
    let (second, _) = one.second().await;
    assert!(matches!(permit.redeem(&second.seal()), Err(JournalError::ForeignPermit)));
}

#[tokio::test]
async fn the_verdict_about_another_effect_is_refused() {
    let desk = desk().await;
    let session = desk.session().await;
    let (asked, decided) = (effect(session, command("echo a")), effect(session, command("echo b")));
    let warrant = Warrant::Allowed(desk.allowed(&decided));
    let begun = desk.mint.begin(asked, warrant, why(), &Budgets::default()).await;
    assert!(matches!(begun, Err(BeginError::OtherEffect)));
    assert_eq!(intents(&desk).await, 0);
}

#[tokio::test]
async fn the_verdict_of_another_policy_is_stale() {
    let desk = desk().await;
    let session = desk.session().await;
    let sealed = effect(session, command("echo"));
    let warrant = Warrant::Allowed(desk.allowed(&sealed));
    desk.mint.adopt(stricter().digest()).await.unwrap();
    let begun = desk.mint.begin(sealed, warrant, why(), &Budgets::default()).await;
    assert!(matches!(begun, Err(BeginError::Stale)));
    assert_eq!(intents(&desk).await, 0);
    assert!(matches!(decide(&stricter(), &effect(session, command("echo"))), Verdict::Deny(_)));
    // Control: with the first policy back in force the same verdict is good.
    desk.mint.adopt(desk.policy.digest()).await.unwrap();
    drop(desk.begin(effect(session, command("echo")), 0).await.unwrap());
}

#[tokio::test]
async fn an_unknown_session_is_refused() {
    let desk = desk().await;
    let nobody = SessionId::new(1, [9; 10]);
    let begun = desk.begin(effect(nobody, command("echo")), 0).await;
    assert!(matches!(begun, Err(BeginError::NoSession(id)) if id == nobody));
    assert_eq!(intents(&desk).await, 0);
}

/// A question about a deployment, answered so.
async fn answered(desk: &Desk, sealed: &Sealed, answer: Answer) -> ApprovalId {
    let id = desk.mint.ask(sealed, terms(), serde_json::json!({ "title": "deploy" }), LASTS).await.unwrap();
    desk.mint.answer(sealed.effect().session, id, answer, "owner", "a test").await.unwrap();
    id
}

#[tokio::test]
async fn a_grant_is_burnt_once() {
    let desk = desk().await;
    let session = desk.session().await;
    let sealed = effect(session, command("deploy"));
    let id = answered(&desk, &sealed, Answer::Yes).await;
    let grant = desk.mint.grant(id, &sealed).await.unwrap();
    drop(desk.begin_approved(sealed.clone(), grant.clone()).await.unwrap());
    assert!(matches!(desk.begin_approved(sealed.clone(), grant).await, Err(BeginError::Burnt)));
    assert!(matches!(desk.mint.grant(id, &sealed).await, Err(JournalError::NotGranted(_))));
    assert_eq!(intents(&desk).await, 1);
}

/// Somebody who can write the file sets a row to a yes: where there is no
/// answer, a no, or a yes that is used up or void.
#[tokio::test]
async fn a_changed_row_alone_releases_nothing() {
    for (answer, is_used, is_void) in [
        (None, false, false),
        (Some(Answer::No), false, false),
        (Some(Answer::Yes), true, false),
        (Some(Answer::Yes), false, true),
        (Some(Answer::YesForSession), false, true),
    ] {
        let desk = desk().await;
        let session = desk.session().await;
        let sealed = effect(session, command("deploy"));
        let id = desk.mint.ask(&sealed, terms(), serde_json::json!({}), LASTS).await.unwrap();
        if let Some(answer) = answer {
            desk.mint.answer(session, id, answer, "owner", "").await.unwrap();
        }
        if is_used {
            let grant = desk.mint.grant(id, &sealed).await.unwrap();
            drop(desk.begin_approved(sealed.clone(), grant).await.unwrap());
        }
        if is_void {
            desk.mint.stop("a test").await.unwrap();
            desk.mint.release().await.unwrap();
        }
        for state in ["yes", "session", "pattern"] {
            let forged = format!("UPDATE approval SET state = '{state}' WHERE id = '{id}'");
            desk.tamper(move |tx| tx.execute(&forged, []).unwrap()).await;
            let grant = desk.mint.grant(id, &sealed).await.unwrap();
            let begun = desk.begin_approved(sealed.clone(), grant).await;
            assert!(matches!(begun, Err(BeginError::Burnt)), "{answer:?} as {state}");
        }
        assert_eq!(intents(&desk).await, usize::from(is_used));
        let verified = desk.journal.verify_projections().await.unwrap_err().to_string();
        assert!(verified.contains(&format!("the table `approval`, `{id}`")), "{verified}");
    }
    // A yes to one effect is no yes to another effect whose row is given its digest.
    let desk = desk().await;
    let session = desk.session().await;
    let (sealed, other) = (effect(session, command("deploy")), effect(session, command("deploy to all")));
    let id = answered(&desk, &sealed, Answer::Yes).await;
    let digests = [sealed.digest(), other.digest()].map(|digest| digest.to_string());
    let digest = |to: &str| format!("UPDATE approval SET digest = '{to}' WHERE id = '{id}'");
    let forged = digest(&digests[1]);
    desk.tamper(move |tx| tx.execute(&forged, []).unwrap()).await;
    let grant = desk.mint.grant(id, &other).await.unwrap();
    assert!(matches!(desk.begin_approved(other, grant).await, Err(BeginError::Burnt)));
    // The control: the effect that got the yes begins.
    let right = digest(&digests[0]);
    desk.tamper(move |tx| tx.execute(&right, []).unwrap()).await;
    let grant = desk.mint.grant(id, &sealed).await.unwrap();
    drop(desk.begin_approved(sealed, grant).await.unwrap());
    desk.journal.verify_projections().await.unwrap();
}

/// The entry of an answer that does not fit its hash counts as no answer.
#[tokio::test]
async fn a_changed_answer_releases_nothing() {
    let desk = desk().await;
    let session = desk.session().await;
    let sealed = effect(session, command("deploy"));
    let id = answered(&desk, &sealed, Answer::No).await;
    let forged = format!(
        "UPDATE entry SET body = CAST(replace(CAST(body AS TEXT), '\"answer\":\"no\"', '\"answer\":\"yes\"') AS BLOB)
         WHERE type = 'answered' AND session = '{session}'"
    );
    desk.tamper(move |tx| tx.execute(&forged, []).unwrap()).await;
    let row = format!("UPDATE approval SET state = 'yes' WHERE id = '{id}'");
    desk.tamper(move |tx| tx.execute(&row, []).unwrap()).await;
    let grant = desk.mint.grant(id, &sealed).await.unwrap();
    assert!(matches!(desk.begin_approved(sealed, grant).await, Err(BeginError::Burnt)));
    assert!(matches!(desk.journal.verify().await, Err(JournalError::Broken(_))));
}

#[tokio::test]
async fn a_row_that_is_gone_lifts_no_stop_and_one_that_came_reveals_nothing() {
    let desk = desk().await;
    let session = desk.session().await;
    desk.mint.stop("a test").await.unwrap();
    desk.tamper(|tx| tx.execute("DELETE FROM state WHERE name = 'stopped'", []).unwrap()).await;
    let begun = desk.begin(effect(session, command("echo")), 0).await;
    assert!(matches!(begun, Err(BeginError::Stopped { .. })));
    assert!(desk.journal.stopped().await.unwrap().is_some());
    assert!(matches!(desk.journal.verify_projections().await, Err(JournalError::Beside(_))));
    assert!(desk.mint.release().await.unwrap(), "the control");
    drop(desk.begin(effect(session, command("echo")), 0).await.unwrap());
    desk.journal.reveal(session, "/w/.env".into()).await.unwrap();
    let forged = format!("INSERT INTO revealed VALUES ('{session}', '/w/other')");
    desk.tamper(move |tx| tx.execute(&forged, []).unwrap()).await;
    assert_eq!(desk.journal.revealed(session).await.unwrap(), ["/w/.env".into()]);
}

/// Somebody who can hash writes an effect that got no yes. A signed
/// checkpoint would show that, and this check does.
#[tokio::test]
async fn an_approved_effect_without_its_answer_is_named() {
    let desk = desk().await;
    let session = desk.session().await;
    let sealed = effect(session, command("deploy"));
    let id = answered(&desk, &sealed, Answer::Yes).await;
    let grant = desk.mint.grant(id, &sealed).await.unwrap();
    drop(desk.begin_approved(sealed, grant).await.unwrap());
    desk.journal.verify_projections().await.expect("the control");
    let sealed = effect(session, command("deploy to all"));
    let open = desk.mint.ask(&sealed, terms(), serde_json::json!({}), LASTS).await.unwrap();
    let entries = desk.journal.entries(bailey_journal::Query::default()).await.unwrap();
    let intent = entries.iter().find(|it| matches!(it.entry.fact, Fact::Intent { .. })).unwrap();
    let mut fact = intent.entry.fact.clone();
    if let Fact::Intent { approval, .. } = &mut fact {
        *approval = Some(open);
    }
    desk.journal.append(bailey_journal::Entry::of(session, fact)).await.unwrap();
    desk.journal.verify().await.expect("each link fits");
    let verified = desk.journal.verify_projections().await.unwrap_err();
    assert!(
        matches!(&verified, JournalError::Broken(_)) && verified.to_string().contains(&open.to_string()),
        "{verified}"
    );
}

#[tokio::test]
async fn a_grant_is_good_for_its_own_effect_only() {
    let desk = desk().await;
    let session = desk.session().await;
    let (harmless, harmful) =
        (effect(session, command("deploy to test")), effect(session, command("deploy to all")));
    for answer in [Answer::Yes, Answer::YesForSession] {
        let harmless = effect(session, harmless.effect().action.clone());
        let id = answered(&desk, &harmless, answer).await;
        assert!(matches!(desk.mint.grant(id, &harmful).await, Err(JournalError::NotGranted(_))));
        // The grant of one effect, presented with the verdict about another.
        let grant = desk.mint.grant(id, &harmless).await.unwrap();
        let begun = desk.begin_approved(harmful.clone(), grant.clone()).await;
        assert!(matches!(begun, Err(BeginError::Burnt)), "{answer:?}");
        // Control: it is still good for its own.
        drop(desk.begin_approved(harmless, grant).await.unwrap());
    }
}

#[tokio::test]
async fn no_and_no_answer_grant_nothing() {
    let desk = desk().await;
    let session = desk.session().await;
    let sealed = effect(session, command("deploy"));
    let open = desk.mint.ask(&sealed, terms(), serde_json::json!({}), LASTS).await.unwrap();
    assert!(matches!(desk.mint.grant(open, &sealed).await, Err(JournalError::NotGranted(_))));
    let no = answered(&desk, &sealed, Answer::No).await;
    assert!(matches!(desk.mint.grant(no, &sealed).await, Err(JournalError::NotGranted(_))));
}

#[tokio::test]
async fn the_first_answer_counts() {
    let desk = desk().await;
    let session = desk.session().await;
    let sealed = effect(session, command("deploy"));
    let id = answered(&desk, &sealed, Answer::No).await;
    let late = desk.mint.answer(session, id, Answer::Yes, "owner", "").await;
    assert!(matches!(late, Err(JournalError::Settled(settled)) if settled == id));
    assert!(matches!(desk.mint.grant(id, &sealed).await, Err(JournalError::NotGranted(_))));
}

#[tokio::test]
async fn a_yes_for_the_session_is_for_this_exact_action_here() {
    let desk = desk().await;
    let (session, elsewhere) = (desk.session().await, desk.session().await);
    let sealed = effect(session, command("deploy a"));
    answered(&desk, &sealed, Answer::YesForSession).await;
    let again = effect(session, command("deploy a"));
    let grant = desk.mint.standing_grant(&again, &terms(), true).await.unwrap().unwrap();
    drop(desk.begin_approved(again, grant.clone()).await.unwrap());
    // It stays.
    let third = effect(session, command("deploy a"));
    drop(desk.begin_approved(third, grant).await.unwrap());
    assert_eq!(
        desk.mint.standing_grant(&effect(session, command("deploy b")), &terms(), true).await.unwrap(),
        None
    );
    assert_eq!(
        desk.mint.standing_grant(&effect(elsewhere, command("deploy a")), &terms(), true).await.unwrap(),
        None
    );
}

/// Whatever asks for the same: a yes is its asker's, who is compared where it is looked for and where it is
/// used up.
#[tokio::test]
async fn a_yes_is_the_askers_own() {
    let desk = desk().await;
    let (session, one, other) = (desk.session().await, desk.session().await, desk.session().await);
    let asker = |conversation| Asker { role: Role::Agent, conversation, token: None };
    let asks = |conversation| Terms { asker: Some(asker(conversation)), ..terms() };
    let askers = [None, Some(one), Some(other)];
    for (number, then) in askers.into_iter().enumerate() {
        let deploy = || effect(session, command(&format!("deploy {number}")));
        let shown = deploy();
        let id = desk.mint.ask(&shown, asks(then), serde_json::json!({}), LASTS).await.unwrap();
        desk.mint.answer(session, id, Answer::YesForSession, "owner", "").await.unwrap();
        let grant = desk.mint.standing_grant(&deploy(), &asks(then), true).await.unwrap().unwrap();
        for now in askers {
            let again = deploy();
            let found = desk.mint.standing_grant(&again, &asks(now), true).await.unwrap();
            assert_eq!(found.is_some(), now == then, "{then:?} {now:?}");
            // The transaction does not believe whoever found it.
            let warrant = Warrant::Approved(desk.review(&again), grant.clone());
            let begun = desk.mint.begin(again, warrant, paid_by(now), &Budgets::default()).await;
            assert_eq!(begun.is_ok(), now == then, "{then:?} {now:?}: {begun:?}");
        }
        // Nor is it of another role, of other walls, or of nobody knows whom.
        let owner = Asker { role: Role::Owner, ..asker(then) };
        for now in [
            Terms { asker: Some(owner), ..asks(then) },
            Terms { calls: Some("standard-net".into()), ..asks(then) },
            Terms { asker: None, ..asks(then) },
            Terms { calls: None, ..asks(then) },
        ] {
            assert_eq!(desk.mint.standing_grant(&deploy(), &now, true).await.unwrap(), None, "{now:?}");
        }
    }
    // A question of an older journal says neither, and a yes to it is for that one effect.
    let shown = effect(session, command("deploy old"));
    let id = desk.mint.ask(&shown, Terms::default(), serde_json::json!({}), LASTS).await.unwrap();
    desk.mint.answer(session, id, Answer::YesForSession, "owner", "").await.unwrap();
    let grant = desk.mint.grant(id, &shown).await.unwrap();
    drop(desk.begin_approved(shown, grant.clone()).await.unwrap());
    let again = effect(session, command("deploy old"));
    assert_eq!(desk.mint.standing_grant(&again, &Terms::default(), true).await.unwrap(), None);
    assert!(matches!(desk.begin_approved(again, grant).await, Err(BeginError::Burnt)));
}

/// A yes for a pattern begins what it covers, as often as it is asked for: in its session, for its asker, and
/// no other command.
#[tokio::test]
async fn a_yes_for_a_pattern_begins_what_it_covers() {
    let desk = desk().await;
    let (session, other) = (desk.session().await, desk.session().await);
    let of = |session, text| effect(session, command(text));
    let wider = Wider {
        pattern: Pattern::around(&command("wc --bytes")).unwrap(),
        program: Some(Digest::of(b"wc")),
        rules: ["asks".to_owned()].into(),
    };
    let shown = of(session, "wc --bytes");
    let asks = Terms { pattern: Some(wider.clone()), ..terms() };
    let id = desk.mint.ask(&shown, asks, serde_json::json!({}), LASTS).await.unwrap();
    desk.mint.answer(session, id, Answer::YesForPattern, "owner", "").await.unwrap();
    let covered = "wc --lines";
    let grant = desk.mint.pattern_grant(session, &command(covered), &terms(), wider).await.unwrap().unwrap();
    for _ in 0..2 {
        drop(desk.begin_approved(of(session, covered), grant.clone()).await.unwrap());
    }
    for refused in [of(session, "deploy push"), of(other, covered)] {
        assert!(matches!(desk.begin_approved(refused, grant.clone()).await, Err(BeginError::Burnt)));
    }
    let by_another = of(session, covered);
    let warrant = Warrant::Approved(desk.review(&by_another), grant);
    let begun = desk.mint.begin(by_another, warrant, paid_by(Some(other)), &Budgets::default()).await;
    assert!(matches!(begun, Err(BeginError::Burnt)));
}

#[tokio::test]
async fn a_new_policy_voids_questions_and_grants() {
    let desk = desk().await;
    let session = desk.session().await;
    let sealed = effect(session, command("deploy"));
    let open = desk.mint.ask(&sealed, terms(), serde_json::json!({}), LASTS).await.unwrap();
    let yes = answered(&desk, &sealed, Answer::Yes).await;
    desk.mint.adopt(stricter().digest()).await.unwrap();
    desk.mint.adopt(desk.policy.digest()).await.unwrap();
    assert!(matches!(desk.mint.grant(yes, &sealed).await, Err(JournalError::NotGranted(_))));
    assert!(matches!(
        desk.mint.answer(session, open, Answer::Yes, "owner", "").await,
        Err(JournalError::Settled(_))
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_race_for_one_grant_one_begins() {
    for _ in 0..20 {
        let desk = desk().await;
        let session = desk.session().await;
        let sealed = effect(session, command("deploy"));
        let id = answered(&desk, &sealed, Answer::Yes).await;
        let grant = desk.mint.grant(id, &sealed).await.unwrap();
        let (_, other_mint) = desk.second().await;
        let warrant = Warrant::Approved(desk.review(&sealed), grant.clone());
        let budgets = Budgets::default();
        let other = other_mint.begin(sealed.clone(), warrant, why(), &budgets);
        let (one, other) = tokio::join!(desk.begin_approved(sealed.clone(), grant), other);
        assert_eq!([one.is_ok(), other.is_ok()].iter().filter(|ok| **ok).count(), 1);
        assert_eq!(intents(&desk).await, 1);
    }
}

#[tokio::test]
async fn an_outcome_says_how_a_command_ended() {
    let desk = desk().await;
    let session = desk.session().await;
    let ended = ExecReport { exit: Some(3), ..ExecReport::default() };
    for (report, code) in [(Report::Exec(ended), Some(3)), (Report::Nothing, None)] {
        desk.run(session, command("false"), report).await;
        let entries = desk.journal.entries(Query::default()).await.unwrap();
        let said = &entries.last().unwrap().entry.fact;
        assert!(matches!(said, Fact::Outcome { exit, .. } if *exit == code), "{said:?}");
    }
}

#[tokio::test]
async fn what_did_not_end_is_unfinished_until_it_is_given_up() {
    let desk = desk().await;
    let session = desk.session().await;
    let sealed = effect(session, command("echo lost"));
    let id = sealed.effect().id;
    let (_permit, _receipt) = desk.begin(sealed, 0).await.unwrap();
    let lock = SessionLock::take(session, desk.home.path(), &crate::support::holder()).unwrap();
    let lost = desk.mint.unfinished(&lock).await.unwrap();
    assert_eq!(lost.len(), 1);
    assert_eq!((lost[0].effect, lost[0].target.as_str(), lost[0].is_act), (id, "echo lost", true));
    desk.mint.give_up(&lock, &lost[0]).await.unwrap();
    assert_eq!(desk.mint.unfinished(&lock).await.unwrap(), []);
    let entries = desk.journal.entries(Query::default()).await.unwrap();
    assert!(matches!(
        &entries.last().unwrap().entry.fact,
        Fact::Outcome { status: bailey_protocol::Status::Unknown, .. }
    ));
    // Another session's effects are none of its business.
    let other = desk.session().await;
    drop(desk.begin(effect(other, command("echo running")), 0).await.unwrap());
    assert_eq!(desk.mint.unfinished(&lock).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_adopt_one_policy_at_once_adopt_it_once() {
    let desk = desk().await;
    let (_, other) = desk.second().await;
    let adopted = async || {
        let entries = desk.journal.entries(Query::default()).await.unwrap();
        entries.iter().filter(|recorded| recorded.entry.fact.name() == "policy_adopted").count()
    };
    for round in 0..10 {
        let new = crate::support::policy(&format!(
            "[[rule]]\nname = \"r{round}\"\nanswer = \"deny\"\nreason = \"r\"\nmatch = {{ action = \"exec\" }}"
        ));
        let before = adopted().await;
        let (one, two) = tokio::join!(desk.mint.adopt(new.digest()), other.adopt(new.digest()));
        one.unwrap();
        two.unwrap();
        assert_eq!(adopted().await, before + 1);
    }
}

#[tokio::test]
async fn what_is_stopped_begins_nothing_until_it_is_released() {
    let desk = desk().await;
    let session = desk.session().await;
    let act = || effect(session, command("echo hi"));
    // The control: it can begin before, and after.
    drop(desk.begin(act(), 0).await.unwrap());
    desk.mint.stop("a test").await.unwrap();
    desk.mint.stop("again").await.unwrap();
    let barred = desk.begin(act(), 0).await;
    assert!(matches!(barred, Err(BeginError::Stopped { .. })), "{barred:?}");
    // Another process is barred as well, and what is made anew from the chain says the same.
    let (journal, _mint) = desk.second().await;
    assert!(journal.stopped().await.unwrap().is_some());
    assert_eq!(desk.journal.rebuild().await.unwrap().repaired.len(), 0);
    assert!(matches!(desk.begin(act(), 0).await, Err(BeginError::Stopped { .. })));
    assert!(desk.mint.release().await.unwrap());
    assert!(!desk.mint.release().await.unwrap(), "there is nothing more to release");
    drop(desk.begin(act(), 0).await.unwrap());
    assert_eq!(desk.journal.stopped().await.unwrap(), None);
}

/// What asks for a deployment of a session, and has run out.
async fn run_out(desk: &Desk, session: SessionId) -> ApprovalId {
    let sealed = effect(session, command("deploy"));
    let id = desk.mint.ask(&sealed, terms(), serde_json::json!({}), LASTS).await.unwrap();
    desk.clock.advance(LASTS);
    id
}

/// What ran out is asked once more, from however many places: one answer to it counts, and no other question
/// asks for the same.
#[tokio::test]
async fn what_ran_out_is_asked_once_more_as_one_question() {
    let desk = desk().await;
    let session = desk.session().await;
    let (_, other) = desk.second().await;
    let id = run_out(&desk, session).await;
    let (one, two) =
        tokio::join!(desk.mint.ask_again(id, LASTS, false), other.ask_again_in(session, id, LASTS, false));
    let again = one.unwrap();
    assert_eq!(two.unwrap(), again);
    assert_ne!(again, id);
    assert_eq!(desk.journal.questions(Some(session)).await.unwrap().len(), 2);
    // That one runs out as well: whichever of them is named, there is one more, and one only.
    desk.clock.advance(LASTS);
    let third = desk.mint.ask_again(id, LASTS, false).await.unwrap();
    assert!(third != again && third != id);
    for named in [id, again] {
        assert_eq!(desk.mint.ask_again(named, LASTS, false).await.unwrap(), third);
    }
    assert!(matches!(desk.mint.ask_again(third, LASTS, false).await, Err(JournalError::NotRunOut(_))));
    assert_eq!(desk.journal.questions(Some(session)).await.unwrap().len(), 3);
    // Answered and used: the same is asked for no more.
    desk.mint.answer(session, third, Answer::Yes, "owner", "").await.unwrap();
    let is_refused = async |what: &str| {
        for named in [id, again] {
            let asked = desk.mint.ask_again(named, LASTS, false).await;
            let is_it =
                matches!(asked, Err(JournalError::AskedAgain(one, other)) if (one, other) == (named, third));
            assert!(is_it, "{what}: {asked:?}");
        }
    };
    is_refused("answered").await;
    let sealed = effect(session, command("deploy"));
    let grant = desk.mint.standing_grant(&sealed, &terms(), false).await.unwrap().unwrap();
    drop(desk.begin_approved(sealed, grant).await.unwrap());
    is_refused("used").await;
    assert_eq!(intents(&desk).await, 1);
    // Another question about the same is another matter.
    let new = run_out(&desk, session).await;
    assert!(desk.mint.ask_again(new, LASTS, false).await.is_ok(), "the control");
}

/// Older programs asked once more as often as somebody wanted, so that one question may have several in its
/// place.
#[tokio::test]
async fn one_of_several_that_was_used_is_enough() {
    let desk = desk().await;
    let session = desk.session().await;
    let id = run_out(&desk, session).await;
    let (one, two) = (run_out(&desk, session).await, run_out(&desk, session).await);
    // As it would stand there.
    let entries = format!(
        "UPDATE entry SET body = CAST(json_set(CAST(body AS TEXT), '$.again', '{id}') AS BLOB)
        WHERE seq IN (SELECT asked FROM approval WHERE id IN ('{one}', '{two}'))"
    );
    desk.tamper(move |tx| tx.execute(&entries, []).unwrap()).await;
    let name = format!("UPDATE approval SET state = 'burnt' WHERE id = '{two}'");
    let asked = async || desk.mint.ask_again(one, LASTS, false).await;
    desk.tamper(move |tx| tx.execute(&name, []).unwrap()).await;
    assert!(matches!(asked().await, Err(JournalError::AskedAgain(_, other)) if other == two));
    // One for the session is void one day, and was used all the same.
    let name = format!("UPDATE approval SET state = 'void' WHERE id = '{two}'");
    desk.tamper(move |tx| tx.execute(&name, []).unwrap()).await;
    let first = format!("(SELECT min(seq) FROM entry WHERE session = '{session}')");
    let begun = format!(
        "UPDATE entry SET type = 'intent', body = CAST(json_set(CAST(body AS TEXT), '$.approval', '{two}') AS BLOB) WHERE seq = {first}"
    );
    desk.tamper(move |tx| tx.execute(&begun, []).unwrap()).await;
    assert!(matches!(asked().await, Err(JournalError::AskedAgain(_, other)) if other == two));
    // The control: nothing began on it.
    let other = format!("UPDATE entry SET type = 'other' WHERE type = 'intent' AND session = '{session}'");
    desk.tamper(move |tx| tx.execute(&other, []).unwrap()).await;
    assert!(asked().await.is_ok());
}

#[tokio::test]
async fn whoever_speaks_for_a_session_asks_once_more_in_no_other() {
    let desk = desk().await;
    let (session, other) = (desk.session().await, desk.session().await);
    let id = run_out(&desk, session).await;
    let asked = desk.mint.ask_again_in(other, id, LASTS, false).await;
    assert!(matches!(asked, Err(JournalError::Settled(named)) if named == id), "{asked:?}");
    assert_eq!(desk.journal.questions(None).await.unwrap().len(), 1);
    assert!(desk.mint.ask_again_in(session, id, LASTS, false).await.is_ok(), "the control");
}

/// A few digits name no question, and digits that two sessions' questions share name the one of the session
/// that is given.
#[tokio::test]
async fn a_question_is_named_by_eight_digits_at_least() {
    let desk = desk().await;
    let sessions = [desk.session().await, desk.session().await];
    let mut ids = Vec::new();
    for session in sessions {
        let sealed = effect(session, command("deploy"));
        ids.push(desk.mint.ask(&sealed, terms(), serde_json::json!({}), LASTS).await.unwrap());
    }
    let name = ids[0].to_string();
    for length in 0..8 {
        let named = desk.journal.question(&name[..length], Some(sessions[0])).await;
        assert!(matches!(named, Err(JournalError::ShortQuestion(_))), "{length}: {named:?}");
    }
    let named =
        async |name: &str, session| desk.journal.question(name, session).await.map(|found| found.session);
    assert_eq!(named(&name[..8], None).await.unwrap(), sessions[0], "control");
    assert_eq!(named(&name[..8].to_uppercase(), Some(sessions[1])).await.unwrap(), sessions[0], "control");
    assert!(matches!(named("00000000", None).await, Err(JournalError::NoSuchQuestion(_))));
    // Chance, in one home out of very many.
    let (other, alike) = (ids[1].to_string(), format!("{}{}", &name[..8], &ids[1].to_string()[8..]));
    let rename = format!("UPDATE approval SET id = '{alike}' WHERE id = '{other}'");
    desk.tamper(move |tx| tx.execute(&rename, []).unwrap()).await;
    assert!(matches!(named(&name[..8], None).await, Err(JournalError::SeveralQuestions(_))));
    for session in sessions {
        assert_eq!(named(&name[..8], Some(session)).await.unwrap(), session);
    }
    assert_eq!(named(&alike, None).await.unwrap(), sessions[1]);
}
