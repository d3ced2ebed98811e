//! What the compiler refuses. Beside each failing program stands one that differs in that alone and compiles.

#[test]
fn proofs_cannot_be_forged() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/compile/*.pass.rs");
    cases.compile_fail("tests/compile/*.fail.rs");
}
