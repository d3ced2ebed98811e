//! A permit can be taken and redeemed.
use bailey_kernel::{Permit, Seal};

fn effect_of(permit: Permit, seal: &Seal) -> Option<bailey_protocol::Effect> {
    permit.redeem(seal).ok().map(|redeemed| redeemed.effect)
}

fn main() {
    let _ = effect_of;
}
