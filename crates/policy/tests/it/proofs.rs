//! The proofs cannot be made, copied or written down outside the crate that checks. One program that uses
//! them as they are meant compiles, for all that fail; what the compiler says of each failure is compared by
//! the letter.

#[test]
fn proofs_are_made_by_decide_only() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/control.rs");
    cases.compile_fail("tests/ui/clone.rs");
    cases.compile_fail("tests/ui/serialize.rs");
    cases.compile_fail("tests/ui/literal.rs");
    cases.compile_fail("tests/ui/new.rs");
    cases.compile_fail("tests/ui/denial_isolation.rs");
}
