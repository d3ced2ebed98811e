//! The short version: points spread over the turn, and the control.

use super::{Build, Program, Role, When, control, dry, point, trace::NOT_ALLOWED};

/// Points of each role, spread over its list.
const POINTS: usize = 4;

#[test]
fn a_killed_session_goes_on() {
    let program = Program::build(Build::default()).unwrap();
    if let Err(error) = dry(&program.path, Role::Main)
        && format!("{error:#}").contains(NOT_ALLOWED)
    {
        println!("SKIPPED: {error:#}");
        return;
    }
    for (role, when) in [(Role::Main, When::Before), (Role::Warden, When::After), (Role::Walls, When::Before)]
    {
        let count = dry(&program.path, role).unwrap().len();
        assert!(count > POINTS, "{} makes {count} calls only", role.name());
        for number in (1..=POINTS).map(|part| part * count / (POINTS + 1)) {
            let call = point(&program.path, role, when, number).unwrap();
            assert!(call.is_some(), "no run came to call {number} of {}", role.name());
        }
    }
    control::run(&program, Build::default()).unwrap();
}
