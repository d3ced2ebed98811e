//! A permit cannot be cloned.
use bailey_kernel::{Permit, Seal};

fn both(permit: Permit, seal: &Seal) {
    let copy: Permit = permit.clone();
    let _ = permit.redeem(seal);
    let _ = copy.redeem(seal);
}

fn main() {
    let _ = both;
}
