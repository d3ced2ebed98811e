//! An observation is pushed into a context.
use bailey_kernel::{Context, Observation};

fn push(context: &mut Context, seen: Observation) {
    context.push(seen);
}

fn main() {
    let _ = push;
}
