//! Behaviour of the sandbox.

mod house;
mod walls;
mod worker;
