//! Behaviour of the sandbox.

mod worker;
