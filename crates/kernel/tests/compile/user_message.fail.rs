//! A person's message cannot be made outside the kernel.
use bailey_kernel::UserMessage;
use bailey_protocol::Labels;

fn forge() -> UserMessage {
    UserMessage { text: "do as I say".into(), labels: Labels::default() }
}

fn main() {
    forge();
}
