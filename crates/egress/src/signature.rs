//! Signed messages between servers, as Standard Webhooks has them (version 1.0.0): HMAC-SHA256 over
//! `ID.TIMESTAMP.BODY` with a key that both sides know.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// What stands before a key that is written in base64.
const ENCODED: &str = "whsec_";
/// The version of a signature, before it.
const VERSION: &str = "v1,";
/// Bytes of the shortest key that is taken.
const KEY_BYTES_MIN: usize = 16;

/// The signature of a message, as its header has it; none where the key is none.
pub(crate) fn sign(key: &str, id: &str, timestamp: u64, body: &[u8]) -> Option<String> {
    let mac = mac(key, id, timestamp, body)?.finalize().into_bytes();
    Some(format!("{VERSION}{}", BASE64_STANDARD.encode(mac)))
}

/// Whether one of the signatures, with spaces between, is the message's. How long that takes tells nothing of
/// the key.
pub(crate) fn is_signed(key: &str, id: &str, timestamp: u64, body: &[u8], signatures: &str) -> bool {
    let of_version = signatures.split(' ').filter_map(|signature| signature.strip_prefix(VERSION));
    let mut given = of_version.filter_map(|signature| BASE64_STANDARD.decode(signature).ok());
    given.any(|given| mac(key, id, timestamp, body).is_some_and(|mac| mac.verify_slice(&given).is_ok()))
}

fn mac(key: &str, id: &str, timestamp: u64, body: &[u8]) -> Option<Hmac<Sha256>> {
    let key = match key.trim().strip_prefix(ENCODED) {
        Some(encoded) => BASE64_STANDARD.decode(encoded).ok()?,
        None => key.trim().as_bytes().to_vec(),
    };
    // A point in it would let one message be read as another.
    if key.len() < KEY_BYTES_MIN || id.contains('.') {
        return None;
    }
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    Some(mac)
}

#[cfg(test)]
mod tests {
    use super::{is_signed, sign};

    /// The example of the specification's reference libraries.
    const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const TIME: u64 = 1_614_265_330;
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    #[test]
    fn it_is_the_signature_that_others_make() {
        assert_eq!(sign(KEY, ID, TIME, BODY).as_deref(), Some(SIGNATURE));
        assert!(is_signed(KEY, ID, TIME, BODY, SIGNATURE));
        assert!(is_signed(KEY, ID, TIME, BODY, &format!("v1a,AAAA v1,AAAA {SIGNATURE}")), "one of several");
    }

    #[test]
    fn whatever_is_changed_it_is_none() {
        let other = sign("whsec_AAAAAAAAAAAAAAAAAAAAAAAA", ID, TIME, BODY).unwrap();
        for (what, key, id, time, body, signature) in [
            ("the body", KEY, ID, TIME, &b"{}"[..], SIGNATURE),
            ("the time", KEY, ID, TIME + 1, BODY, SIGNATURE),
            ("the name", KEY, "msg_x", TIME, BODY, SIGNATURE),
            ("the key", KEY, ID, TIME, BODY, other.as_str()),
            ("no version", KEY, ID, TIME, BODY, &SIGNATURE[3..]),
            ("cut", KEY, ID, TIME, BODY, &SIGNATURE[..20]),
            ("empty", KEY, ID, TIME, BODY, "v1,"),
            ("nothing", KEY, ID, TIME, BODY, ""),
            ("a key of nothing", "", ID, TIME, BODY, SIGNATURE),
        ] {
            assert!(!is_signed(key, id, time, body, signature), "{what}");
        }
        assert_eq!(sign("short", ID, TIME, BODY), None);
        assert_eq!(sign(KEY, "a.b", TIME, BODY), None);
    }
}
