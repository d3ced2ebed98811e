//! Walls and checks that can be taken away one by one, to show that `bailey prove` notices. Only the feature
//! `controls` has this module. `cargo xtask prove` builds with it, and `cargo xtask dist` checks that no
//! release has it.

extern crate std;

/// The environment variable with the names of the walls and checks to take away, separated by commas.
pub const VARIABLE: &str = "BAILEY_BREAK";

/// Whether this wall or check is taken away.
#[must_use]
pub fn broken(name: &str) -> bool {
    std::env::var(VARIABLE).is_ok_and(|names| names.split(',').any(|broken| broken == name))
}
