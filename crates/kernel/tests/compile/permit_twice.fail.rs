//! A permit cannot be redeemed twice.
use bailey_kernel::{Permit, Seal};

fn twice(permit: Permit, seal: &Seal) {
    let _ = permit.redeem(seal);
    let _ = permit.redeem(seal);
}

fn main() {
    let _ = twice;
}
