//! An observation cannot be made outside the kernel.
use bailey_kernel::Observation;
use bailey_protocol::{CallId, Labels, Seq};

fn forge() -> Observation {
    Observation {
        entry: Seq(1),
        call: CallId("c".into()),
        tool: "t".into(),
        ok: true,
        text: "x".into(),
        images: Vec::new(),
        labels: Labels::default(),
    }
}

fn main() {
    forge();
}
