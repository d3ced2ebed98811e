//! A permit cannot be handed to two executors.
use bailey_kernel::{BoxFuture, Executor, Io, Output, Permit};

fn hand<'a>(one: &'a dyn Executor, two: &'a dyn Executor, permit: Permit, io: [Io; 2]) -> [BoxFuture<'a, Output>; 2] {
    let [first, second] = io;
    [one.perform(permit, first), two.perform(permit, second)]
}

fn main() {
    let _ = hand;
}
