//! What the compiler refuses. The programs that pass use the same names, so that those that fail fail by what
//! they do. Where one stands beside a failing program by its name, it differs in that alone; the others are
//! controls for several, and each error's first line is compared by the letter.

use bailey_testkit::compiled;
use std::path::Path;

#[test]
fn proofs_cannot_be_forged() {
    compiled(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile"));
}

/// The proofs of a policy cannot be made, copied or written down outside the crate that checks.
#[test]
fn proofs_are_made_by_decide_only() {
    compiled(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile/policy"));
}
