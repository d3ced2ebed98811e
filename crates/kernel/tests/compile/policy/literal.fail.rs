use bailey_policy::Allowed;
use bailey_protocol::{Digest, Isolation};

fn main() {
    let _ = Allowed { effect: Digest::of(b""), policy: Digest::of(b""), isolation: Isolation::default() };
}
