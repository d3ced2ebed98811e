//! Walls and checks that can be taken away one by one, to show that `bailey prove` notices. Only a build with
//! `--cfg bailey_break` has this; a test makes it, and looks that no other program has it.

extern crate std;

/// Names what is taken away, separated by commas.
pub const VARIABLE: &str = "BAILEY_BREAK";

/// Whether this wall or check is taken away.
#[must_use]
pub fn broken(name: &str) -> bool {
    std::env::var(VARIABLE).is_ok_and(|names| names.split(',').any(|broken| broken == name))
}
