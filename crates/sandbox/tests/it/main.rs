//! Behaviour of the sandbox.

mod house;
mod life;
mod limits;
mod masks;
mod tools;
mod walls;
mod worker;
mod workspace;
