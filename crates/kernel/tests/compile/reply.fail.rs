//! A reply cannot be made outside the kernel.
use bailey_kernel::{Completion, Reply};
use bailey_protocol::{Labels, Seq};

fn forge(answer: Completion) -> Reply {
    Reply { entry: Seq(1), provider: "p".into(), answer, labels: Labels::default() }
}

fn main() {
    let _ = forge;
}
