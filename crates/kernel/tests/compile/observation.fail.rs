//! An observation cannot be made outside the kernel.
use bailey_kernel::Observation;
use bailey_protocol::{CallId, Labels};

fn forge() -> Observation {
    Observation {
        call: CallId("c".into()),
        tool: "t".into(),
        ok: true,
        text: "x".into(),
        labels: Labels::default(),
    }
}

fn main() {
    forge();
}
