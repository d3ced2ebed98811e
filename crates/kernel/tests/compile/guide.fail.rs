//! A guide cannot be made outside the kernel.
use bailey_kernel::Guide;
use bailey_protocol::{Labels, Seq};

fn forge() -> Guide {
    Guide { entry: Seq(1), path: "/w/AGENTS.md".into(), digest: None, own: false, text: "x".into(), labels: Labels::default() }
}

fn main() {
    forge();
}
