//! Capability tokens, as a decision treats them: what holds, what does not, and that none widens.

use crate::support::*;
use bailey_policy::{
    Answer::{Allow, Deny},
    CAVEATS_MAX, Caller, Caveat, Decided, InvalidToken, Policy, Token,
};
use bailey_protocol::{Action, Digest, Kind, Role};

const FILE: &str = "/home/ann/proj/a/b.rs";

fn ask(action: Action, spoil: impl FnOnce(&mut Token)) -> Decided {
    let policy = Policy::new(vec![], vec![]);
    let mut held = token(&policy);
    spoil(&mut held);
    Asked { token: Some(held), ..Asked::new(&policy, action) }.alone()
}

#[track_caller]
fn invalid(why: InvalidToken, action: Action, spoil: impl FnOnce(&mut Token)) {
    let decided = ask(action, spoil);
    assert_eq!((answer(&decided), decided.token), (Deny, Some(Err(why))));
    let note = decided.reasons.last().unwrap().to_string();
    assert_eq!(note, format!("the token does not count: {why} (token `invalid`: pass)"));
}

#[track_caller]
fn valid(action: Action, spoil: impl FnOnce(&mut Token)) {
    let decided = ask(action, spoil);
    assert_eq!((answer(&decided), decided.token), (Allow, Some(Ok(()))), "{:?}", decided.reasons);
}

#[test]
fn it_dies_with_its_policy() {
    invalid(InvalidToken::OtherPolicy, read(FILE), |held| held.policy = Digest::of(b"yesterday's"));
    valid(read(FILE), |_| {});
}

#[test]
fn it_needs_a_scope_and_an_end() {
    invalid(InvalidToken::Boundless, read(FILE), |held| held.caveats.clear());
    invalid(InvalidToken::Boundless, read(FILE), |held| held.caveats[0].scope = None);
    invalid(InvalidToken::Boundless, read(FILE), |held| held.caveats[0].expires = None);
    invalid(InvalidToken::OutOfScope, read(FILE), |held| held.caveats[0].scope = Some(vec![]));
}

#[test]
fn a_clock_behind_what_is_on_disk_is_an_error() {
    let policy = Policy::new(vec![], vec![]);
    let at_clock = |newest| {
        Asked { token: Some(token(&policy)), newest, ..Asked::new(&policy, read(FILE)) }.alone().token
    };
    assert_eq!(at_clock(at(21)), Some(Err(InvalidToken::ClockBehind)));
    assert_eq!(at_clock(at(20)), Some(Ok(())), "control");
}

#[test]
fn a_narrowing_is_one_more_condition_and_never_one_less() {
    let narrow = |caveat: Caveat| move |held: &mut Token| held.caveats.push(caveat);
    let scope = |glob| Caveat { scope: Some(vec![path(&[glob])]), ..Caveat::default() };
    valid(read(FILE), narrow(scope("a/**")));
    invalid(InvalidToken::OutOfScope, read(FILE), narrow(scope("b/**")));
    invalid(InvalidToken::OutOfScope, change(&[FILE]), narrow(scope("a/**")));
    let exec_too = Caveat { scope: Some(vec![kind(Kind::Exec), kind(Kind::Read)]), ..Caveat::default() };
    valid(read(FILE), narrow(exec_too.clone()));
    invalid(InvalidToken::OutOfScope, exec(&["make"]), narrow(exec_too));
    let until = |second| Caveat { expires: Some(at(second)), ..Caveat::default() };
    invalid(InvalidToken::Expired, read(FILE), narrow(until(15)));
    valid(read(FILE), narrow(until(500)));
    let elsewhere = Caveat { sandbox: Some(sandbox(2)), ..Caveat::default() };
    invalid(InvalidToken::OtherSandbox, read(FILE), narrow(elsewhere));
    let long = |held: &mut Token| held.caveats.resize(CAVEATS_MAX + 1, Caveat::default());
    invalid(InvalidToken::TooLong, read(FILE), long);
    valid(read(FILE), |held| held.caveats.resize(CAVEATS_MAX, Caveat::default()));
}

#[test]
fn one_for_a_single_action_covers_that_one_to_the_last_word() {
    let only = sealed(Role::Agent, read(FILE)).action_digest();
    let narrow = |held: &mut Token| held.caveats.push(Caveat { action: Some(only), ..Caveat::default() });
    valid(read(FILE), narrow);
    invalid(InvalidToken::OutOfScope, read("/home/ann/proj/a/c.rs"), narrow);
    valid(read("/home/ann/proj/a/c.rs"), |_| {});
}

#[test]
fn it_covers_all_that_an_action_touches_or_nothing() {
    let paths = |globs: &'static [&'static str]| {
        move |held: &mut Token| {
            let scope = bailey_policy::Condition { action: Some(vec![Kind::Change]), ..path(globs) };
            held.caveats[0].scope = Some(vec![scope]);
        }
    };
    let two = || change(&["/home/ann/proj/a/x", "/home/ann/proj/b/x"]);
    valid(two(), paths(&["a/**", "b/**"]));
    invalid(InvalidToken::OutOfScope, two(), paths(&["a/**"]));
    invalid(InvalidToken::OutOfScope, two(), paths(&["a", "b"]));
}

#[test]
fn what_is_not_known_for_certain_is_not_covered() {
    let git = |held: &mut Token| held.caveats[0].scope = Some(vec![command(&["git status"])]);
    valid(exec(&["git", "status"]), git);
    invalid(InvalidToken::OutOfScope, exec(&["sh", "-c", "git status $X"]), git);
    invalid(InvalidToken::OutOfScope, exec(&["./git", "status"]), git);
    let tree = |held: &mut Token| held.caveats[0].scope = Some(vec![path(&["a/*"])]);
    invalid(InvalidToken::OutOfScope, search("/home/ann/proj/a"), tree);
}

#[test]
fn a_malformed_action_is_denied_and_uses_the_token_all_the_same() {
    let decided = ask(read("not/absolute"), |_| {});
    let used = decided.token.unwrap().unwrap_err();
    assert_eq!((answer(&decided), used, used.is_spent()), (Deny, InvalidToken::OutOfScope, true));
    let late = ask(read("not/absolute"), |held| held.caveats[0].expires = Some(at(1)));
    assert!(!late.token.unwrap().unwrap_err().is_spent(), "what had expired is not used by it");
}

#[test]
fn a_confined_caller_has_its_token_and_nothing_else() {
    let policy = Policy::new(vec![], vec![rule("all", Allow)]).with_extensions(vec![extension("x")]);
    let ask = |spoil: fn(&mut Token) -> bool, is_confined| {
        let mut held = token(&policy);
        let held = spoil(&mut held).then_some(held);
        let caller = Caller { is_confined, sandbox: Some(sandbox(1)), ..Caller::default() };
        let asked = Asked { token: held, caller, ..Asked::new(&policy, read(FILE)) };
        let (decided, extensions) = asked.decide(|_| says(Allow));
        assert!(!is_confined || extensions.is_empty(), "nobody is asked about what is denied");
        (answer(&decided), decided.reasons[0].text.clone())
    };
    let expire = |held: &mut Token| {
        held.caveats[0].expires = Some(at(15));
        true
    };
    assert_eq!(ask(|_| true, true).0, Allow);
    let (verdict, text) = ask(expire, true);
    assert_eq!((verdict, text.as_str()), (Deny, "its caller acts by a token alone, and it has expired"));
    let (verdict, text) = ask(|_| false, true);
    assert_eq!((verdict, text.as_str()), (Deny, "its caller acts by a token alone, and has none"));
    assert_eq!((ask(expire, false).0, ask(|_| false, false).0), (Allow, Allow), "control");
}
