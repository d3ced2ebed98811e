//! A permit is redeemed once.
use bailey_kernel::{Permit, Seal};

fn once(permit: Permit, seal: &Seal) {
    let _ = permit.redeem(seal);
}

fn main() {
    let _ = once;
}
