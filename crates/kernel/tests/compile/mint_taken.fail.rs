//! The mint cannot be taken out of the kernel.
use bailey_journal::Mint;
use bailey_kernel::Kernel;

fn take(kernel: &Kernel) -> &Mint {
    &kernel.inner.mint
}

fn main() {
    let _ = take;
}
