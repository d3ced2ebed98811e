//! A registrar cannot be made of a kernel.
use bailey_kernel::{Kernel, Registrar};

fn make(kernel: Kernel) -> Registrar {
    Registrar { kernel }
}

fn main() {
    let _ = make;
}
