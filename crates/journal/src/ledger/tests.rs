//! What the check of the chain is good for: the same token with that check away.

use crate::{BadToken, Journal, Macaroon, NewSession, SystemClock};
use bailey_policy::{Caveat, Condition};
use bailey_protocol::{Digest, Kind, SessionId, WsPath};
use bailey_secrets::{Redactor, Vault};
use std::sync::Arc;

#[tokio::test]
async fn a_forged_token_is_refused_and_without_the_check_it_would_hold() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("journal.db");
    let (journal, mint) =
        Journal::open(&path, Redactor::new(&Vault::default()), Arc::new(SystemClock)).await.unwrap();
    let rules = Digest::of(b"rules");
    mint.adopt(rules).await.unwrap();
    let session = SessionId::new(1, [1; 10]);
    let new = NewSession {
        agent: None,
        confined: None,
        workspace: WsPath::from("/w"),
        principal: "owner".into(),
        model: "p/m".into(),
    };
    journal.open_session(session, new).await.unwrap();
    let scope = |kind| Condition { action: Some(vec![kind]), ..Condition::default() };
    let caveat = |kind| Caveat {
        scope: Some(vec![scope(kind)]),
        expires: Some("2026-02-01T00:00:00Z".parse().unwrap()),
        operations: Some(3),
        ..Caveat::default()
    };
    let token = mint.mint_token(session, rules, caveat(Kind::Read)).await.unwrap();
    assert!(mint.present(&token).await.unwrap().is_ok(), "control");
    // The same name with another scope, over the home's ledger but not by its secret.
    let forged = Macaroon::mint(&no_secret(), token.id(), rules, &caveat(Kind::Exec)).unwrap();
    assert_eq!(mint.present(&forged).await.unwrap().err(), Some(BadToken::Forged));
    let held = mint.look_up(&forged).await.unwrap().unwrap();
    assert_eq!(held.token().caveats, [caveat(Kind::Exec)], "without the check it is as good as any");
    assert_eq!(held.token().operations_left, 3);
}

fn no_secret() -> crate::checkpoint::Secret {
    crate::checkpoint::Secret::new([0; 32])
}
