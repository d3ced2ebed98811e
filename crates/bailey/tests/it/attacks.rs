//! The attacks on the walls, against the real binary, as root and as an ordinary user, each with its control:
//! the same probe with the wall away must succeed, or nothing was shown and the test fails. What this machine
//! refuses outside of the walls, too, is on a list with the reason (control.rs), and the test says `could not
//! be tried`.
//!
//! The numbers are those of the list of attacks that docs/security/claims.md refers to.

#![expect(clippy::print_stdout, reason = "a test says what held, and what could not be tried here")]

/// One attack, as root and as an ordinary user.
macro_rules! attack {
    ($name:ident) => {
        mod $name {
            use crate::attacks::actor::Who;

            #[test]
            fn as_root() {
                if Who::Root.is_here() {
                    super::$name(Who::Root);
                }
            }

            #[test]
            fn as_a_user() {
                super::$name(Who::User);
            }
        }
    };
}

pub(crate) mod actor;
mod bombs;
mod calls;
mod control;
mod doctor;
mod files;
mod git;
mod history;
mod network;
mod normal;
mod refusal;
mod repository;
mod shell;
