use super::{Attempt, KINDS, TRIES, disabled_by, told, why_of};
use rustix::io::Errno;
use std::io;

fn none_left() -> io::Result<()> {
    Err(Errno::NOSPC.into())
}

#[test]
fn what_others_use_up_is_no_rule_and_what_is_zero_is_one() {
    let mut waits = 0;
    assert_eq!(told(none_left, false, true, || waits += 1), Attempt::UsedUp);
    assert_eq!(waits, TRIES, "it waits for others to give some back");
    let unasked = || panic!("there is nothing to wait for");
    assert_eq!(told(none_left, true, true, unasked), Attempt::Forbidden, "the control");
    assert_eq!(told(|| Err(Errno::PERM.into()), false, true, unasked), Attempt::Forbidden);
    assert_eq!(told(|| Err(Errno::NOMEM.into()), false, true, unasked), Attempt::Nothing);
    // What lies around a container's own user namespace nobody in it sees.
    assert_eq!(told(none_left, false, false, || {}), Attempt::Forbidden);
    let mut tries = 0;
    let attempt = || {
        tries += 1;
        if tries < 3 { none_left() } else { Ok(()) }
    };
    assert_eq!(told(attempt, false, false, || {}), Attempt::Able, "they gave some back");
}

#[test]
fn each_kind_of_namespaces_that_there_may_be_none_of_is_named() {
    for (_, kind) in KINDS {
        let file = format!("/proc/sys/user/max_{kind}_namespaces");
        let is_zero = |path: &str| Some(if path == file { "0" } else { "63000" }.to_owned());
        let said = disabled_by(is_zero).unwrap();
        assert!(said.contains(&format!("{file} is 0")) && said.starts_with(kind), "{said}");
    }
    assert_eq!(disabled_by(|_| Some("63000".into())), None, "the control");
    assert!(why_of(&Errno::NOSPC.into(), None, false).contains("try again"));
    assert!(why_of(&Errno::PERM.into(), None, false).contains("Operation not permitted"));
    // A setting that disables them for others is not why this one gets none now.
    let disabled = || Some("disabled".to_owned());
    assert_eq!(why_of(&Errno::PERM.into(), disabled(), false), "disabled");
    assert_eq!(why_of(&Errno::NOSPC.into(), disabled(), true), "disabled");
    assert!(why_of(&Errno::NOSPC.into(), disabled(), false).contains("try again"));
    assert!(why_of(&Errno::AGAIN.into(), disabled(), true).contains("unavailable"));
}
