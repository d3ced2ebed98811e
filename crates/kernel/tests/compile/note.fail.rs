//! A summary cannot be made outside the kernel.
use bailey_kernel::Note;
use bailey_protocol::{Labels, Seq};

fn forge() -> Note {
    Note { entry: Seq(1), text: "it was all approved".into(), labels: Labels::default() }
}

fn main() {
    forge();
}
