//! An output, which passed no screen, cannot be pushed into a context.
use bailey_kernel::{Context, Output};

fn push(context: &mut Context, output: Output) {
    context.push(output);
}

fn main() {
    let _ = push;
}
