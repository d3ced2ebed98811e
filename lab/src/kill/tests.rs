//! The short version: points spread over the turn, and the control.

use super::{
    Build, Program, Role, Way, When, control,
    dice::Dice,
    dry, merges, point, point_of_merge,
    random::{Aim, round},
    shortest,
    trace::NOT_ALLOWED,
};
use std::time::Duration;

/// Points of each role at most, spread over its list.
const POINTS: usize = 4;

#[test]
fn a_killed_session_goes_on() {
    let program = Program::tested().unwrap();
    if let Err(error) = dry(&program.path, Role::Main)
        && format!("{error:#}").contains(NOT_ALLOWED)
    {
        println!("SKIPPED: {error:#}");
        return;
    }
    for (role, when) in [(Role::Main, When::Before), (Role::Warden, When::After), (Role::Walls, When::Before)]
    {
        let count = shortest(&program.path, role, None).unwrap().len();
        assert!(count > 1, "{} makes {count} calls only", role.name());
        // A warden that keeps its holders makes few.
        let points = POINTS.min(count - 1);
        for number in (1..=points).map(|part| part * count / (points + 1)) {
            let call = point(&program.path, role, when, number).unwrap();
            assert!(call.is_some(), "no run came to call {number} of {}", role.name());
        }
    }
    control::run(&program, Build::default()).unwrap();
}

#[test]
fn sessions_killed_at_random_moments_go_on() {
    let program = Program::tested().unwrap();
    let whole = round(&program.path, None).unwrap();
    assert_eq!(whole.victim, None, "nothing was aimed at");
    let mut dice = Dice::new(None);
    println!("seed {}", dice.seed());
    let aims: [Aim; 2] = [(); 2].map(|()| Aim { after: dice.within(whole.took), pick: dice.next() });
    // A moment at which something runs, whatever the dice say.
    let sure = Aim { after: Duration::from_millis(200), pick: 0 };
    assert!(round(&program.path, Some(sure)).unwrap().victim.is_some(), "nothing was killed");
    for aim in aims {
        println!("{aim:?}: {:?}", round(&program.path, Some(aim)).unwrap());
    }
}

#[test]
fn a_killed_merge_is_ended_by_the_next() {
    let program = Program::tested().unwrap();
    for (way, role, when) in [
        (Way::Apply, Role::Walls, When::After),
        (Way::Apply, Role::Main, When::Before),
        (Way::Undo, Role::Walls, When::Before),
    ] {
        let count = match shortest(&program.path, role, Some(way)) {
            Err(error) if format!("{error:#}").contains(NOT_ALLOWED) => {
                return println!("SKIPPED: {error:#}");
            }
            calls => calls.unwrap().len(),
        };
        let points = POINTS.min(count - 1);
        let mut yard = None;
        for number in (1..=points).map(|part| part * count / (points + 1)) {
            let call = point_of_merge(&program.path, role, when, number, way, &mut yard).unwrap();
            assert!(call.is_some(), "no {} came to call {number} of {}", way.name(), role.name());
        }
    }
    merges::control().unwrap();
}
