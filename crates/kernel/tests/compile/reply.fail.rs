//! A reply cannot be made outside the kernel.
use bailey_kernel::{Answer, Reply};
use bailey_protocol::Labels;

fn forge(answer: Answer) -> Reply {
    Reply { provider: "p".into(), answer, labels: Labels::default() }
}

fn main() {
    let _ = forge;
}
