//! Proofs, archives and capability tokens, which come from strangers.

use bailey_journal::{
    BadToken, Macaroon, TOKEN_BYTES_MAX, archive,
    checkpoint::PublicKey,
    proof::{Proof, Proven},
};
use bailey_policy::Caveat;

/// The first key of the journal that the seeds are proofs of. Nobody has its secret any more.
const KEY: &str = "658c854bd0fe89606047448e9d43cf46d12b93ae7af755858b72a1857331cc38";

/// Whatever is done to a proof, it shows what the seeds show or nothing.
pub(crate) fn proof(data: &[u8]) {
    let key = PublicKey::parse(KEY).expect("the key is one");
    let Ok(proof) = Proof::parse(data) else { return };
    match proof.check(&key) {
        Ok(Proven::Entry { number, body, signed, .. }) => {
            assert!(number <= signed.entries && body.contains(&format!("\"seq\":\"{number}\"")), "{body}");
        }
        Ok(Proven::Growth { from, to }) => assert!(from.entries <= to.entries && from.epoch < to.epoch),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The key of the archives that the seeds are, of nine entries and of six.
const ARCHIVED: &str = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c";

/// Whatever is done to an archive, what it shows was signed.
pub(crate) fn archive(data: &[u8]) {
    let key = PublicKey::parse(ARCHIVED).expect("the key is one");
    match archive::check(data, &key) {
        Ok(sealed) => {
            assert!([6, 9].contains(&sealed.signed.entries), "{sealed:?}");
            assert!(sealed.first <= sealed.last && sealed.last.0 <= sealed.signed.entries, "{sealed:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// What is read as a token is written again the same, and can be narrowed until it is full.
pub(crate) fn token(text: &str) {
    let Ok(mut token) = Macaroon::parse(text) else { return };
    assert!(text.len() <= TOKEN_BYTES_MAX && *token.text() == *text, "{text}");
    let by = Caveat { holder: Some("a fuzzer".into()), operations: Some(1), ..Caveat::default() };
    let end = loop {
        match token.clone().narrow(&by) {
            Ok(narrowed) => token = narrowed,
            Err(end) => break end,
        }
    };
    assert_eq!((end, Macaroon::parse(&token.text())), (BadToken::Full, Ok(token)));
}
