//! The chain: narrowed by anyone, widened by nobody.

use super::{BadToken, CAVEAT_BYTES_MAX, Macaroon, TOKEN_BYTES_MAX, TOKEN_PREFIX};
use crate::checkpoint::Secret;
use bailey_policy::{CAVEATS_MAX, Caveat, Condition, Glob};
use bailey_protocol::{Digest, Kind, TokenId};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

fn secret() -> Secret {
    Secret::new([3; 32])
}

fn reads(glob: &str) -> Caveat {
    let path = Some(vec![Glob::new(glob).unwrap()]);
    let scope = Condition { action: Some(vec![Kind::Read]), path, ..Condition::default() };
    Caveat { scope: Some(vec![scope]), operations: Some(3), ..Caveat::default() }
}

fn minted() -> Macaroon {
    Macaroon::mint(&secret(), TokenId::new([7; 16]), Digest::of(b"rules"), &reads("src/**")).unwrap()
}

fn bytes(token: &Macaroon) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(&token.text()[TOKEN_PREFIX.len()..]).unwrap()
}

fn of(bytes: &[u8]) -> Result<Macaroon, BadToken> {
    Macaroon::parse(&format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

#[test]
fn anyone_narrows_it_without_the_secret() {
    let mut token = minted();
    for times in 1..CAVEATS_MAX {
        token = token.narrow(&reads(&format!("src/{times}/**"))).unwrap();
        let read = Macaroon::parse(&token.text()).unwrap();
        assert_eq!(read, token);
        assert!(read.is_of(&secret()) && !read.is_of(&Secret::new([4; 32])));
        assert_eq!(read.read_caveats().unwrap().last(), Some(&reads(&format!("src/{times}/**"))));
    }
    assert_eq!(token.narrow(&Caveat::default()), Err(BadToken::Full));
}

#[test]
fn nobody_takes_a_caveat_away_or_changes_one() {
    let narrowed = minted().narrow(&reads("src/a/**")).unwrap();
    let good = bytes(&narrowed);
    assert!(of(&good).unwrap().is_of(&secret()), "control");
    // Without its last caveat, which is what a thief of the narrowed one would want.
    let last = 2 + narrowed.caveats.last().unwrap().len();
    let mut cut = good.clone();
    cut.drain(good.len() - 32 - last..good.len() - 32);
    let cut = of(&cut).unwrap();
    assert_eq!(cut.read_caveats().unwrap(), [reads("src/**")]);
    assert!(!cut.is_of(&secret()));
    // With one more whose link nobody computed, and with two that changed places.
    let mut longer = narrowed.clone();
    longer.caveats.push(b"{}".to_vec());
    let mut swapped = narrowed.clone();
    swapped.caveats.swap(0, 1);
    let mut bare = narrowed.clone();
    bare.caveats.clear();
    for forged in [longer, swapped, bare] {
        assert!(!forged.is_of(&secret()), "{forged:?}");
    }
    let other = Macaroon { id: TokenId::new([8; 16]), ..narrowed.clone() };
    let rules = Macaroon { policy: Digest::of(b"other rules"), ..narrowed };
    assert!(!other.is_of(&secret()) && !rules.is_of(&secret()));
    // Any bit.
    for place in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[place] ^= 1 << bit;
            assert!(!of(&bad).is_ok_and(|token| token.is_of(&secret())), "bit {bit} of {place}");
        }
    }
}

#[test]
fn what_is_cut_too_long_or_not_understood_is_no_token() {
    let text = minted().text();
    for length in 0..text.len() {
        assert!(!Macaroon::parse(&text[..length]).is_ok_and(|token| token.is_of(&secret())), "{length}");
    }
    assert_eq!(Macaroon::parse(&"x".repeat(TOKEN_BYTES_MAX + 1)), Err(BadToken::TooLong));
    assert_eq!(Macaroon::parse("bailey-token-2.AAAA"), Err(BadToken::Malformed));
    let long = Caveat { holder: Some("x".repeat(CAVEAT_BYTES_MAX)), ..Caveat::default() };
    assert!(matches!(minted().narrow(&long), Err(BadToken::Caveat(_))));
    // A caveat that only a later version knows cannot be kept by this one.
    let mut later = minted();
    let caveat = br#"{"weekday":"monday"}"#.to_vec();
    later.tag = super::next(&later.tag, &caveat);
    later.caveats.push(caveat);
    assert!(later.is_of(&secret()));
    let error = Macaroon::parse(&later.text()).unwrap_err();
    assert!(matches!(&error, BadToken::Caveat(why) if why.contains("weekday")), "{error}");
}

#[test]
fn its_counts_tell_no_link_and_its_debug_form_tells_nothing() {
    let token = minted().narrow(&reads("src/a/**")).unwrap();
    let counts = token.counts();
    assert_eq!(counts.len(), 2);
    assert_eq!(minted().counts(), counts[..1], "a narrowed one draws on the one it was made from");
    let mut links = vec![super::first(&secret(), token.id, token.policy)];
    for caveat in &token.caveats {
        links.push(super::next(links.last().unwrap(), caveat));
    }
    assert!(links.iter().all(|link| counts.iter().all(|count| count.0 != **link)));
    let shown = format!("{token:?}");
    assert!(!shown.contains("src/a") && shown.len() < 120, "{shown}");
}
