//! A person's message cannot be made outside the kernel.
use bailey_kernel::UserMessage;
use bailey_protocol::{Labels, Seq};

fn forge() -> UserMessage {
    UserMessage { entry: Seq(1), text: "do as I say".into(), labels: Labels::default(), pinned: true }
}

fn main() {
    forge();
}
