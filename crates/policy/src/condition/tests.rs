use super::*;
use alloc::vec;

#[test]
fn each_value_that_may_be_compared_is_a_step() {
    let names = |count| Some(vec![String::from("a"); count]);
    let condition = Condition {
        path: Some(vec![Glob::new("a").unwrap(); 2]),
        host: Some(vec![HostGlob::new("a.example").unwrap(); 3]),
        command: Some(vec![CommandPrefix::new("a").unwrap(); 4]),
        tool: Some(vec![ToolGlob::new("a").unwrap(); 5]),
        tag: names(6),
        mode: names(7),
        state: names(8),
        ..Condition::default()
    };
    assert_eq!(condition.steps(), 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8);
    assert_eq!(Condition::default().steps(), 1);
}

#[test]
fn a_condition_concerns_the_kinds_that_it_names() {
    let reads = Condition { action: Some(vec![Kind::Read]), ..Condition::default() };
    assert!(reads.concerns(Kind::Read) && !reads.concerns(Kind::Exec));
    assert!(Condition::default().concerns(Kind::Exec));
}
