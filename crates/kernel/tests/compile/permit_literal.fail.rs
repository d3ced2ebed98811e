//! A permit cannot be written down as a literal.
use bailey_kernel::{Permit, Seal};
use bailey_protocol::{Effect, Isolation, Seq};

fn forge(effect: Effect, isolation: Isolation, seal: Seal) -> Permit {
    Permit { effect, isolation, named: None, seq: Seq(1), seal }
}

fn main() {
    let _ = forge;
}
