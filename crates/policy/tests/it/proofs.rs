//! The proofs cannot be made, copied or written down outside the crate that checks. Each failing program stands
//! beside one that differs in that alone and compiles.

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
