//! What the compiler refuses. The programs that pass use the same names, so that those that fail fail by what
//! they do. Where one stands beside a failing program by its name, it differs in that alone; the others are
//! controls for several, and what the compiler says of each failure is compared by the letter.

#[test]
fn proofs_cannot_be_forged() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/compile/*.pass.rs");
    cases.compile_fail("tests/compile/*.fail.rs");
}
