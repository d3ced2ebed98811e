//! A permit is handed to one executor.
use bailey_kernel::{BoxFuture, Executor, Io, Output, Permit};

fn hand<'a>(one: &'a dyn Executor, permit: Permit, io: Io) -> BoxFuture<'a, Output> {
    one.perform(permit, io)
}

fn main() {
    let _ = hand;
}
