//! Walls and checks that can be taken away one by one, to show that `bailey prove` notices. Only a build
//! with `--cfg bailey_break` has this module. A test makes that build, and checks that no other program has
//! the module.

extern crate std;

/// The environment variable with the names of the walls and checks to take away, separated by commas.
pub const VARIABLE: &str = "BAILEY_BREAK";

/// Whether this wall or check is taken away.
#[must_use]
pub fn broken(name: &str) -> bool {
    std::env::var(VARIABLE).is_ok_and(|names| names.split(',').any(|broken| broken == name))
}
