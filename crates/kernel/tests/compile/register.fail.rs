//! And not with the kernel.
use bailey_kernel::{Executor, Kernel};
use std::sync::Arc;

fn register(kernel: &Kernel, executor: Arc<dyn Executor>) {
    kernel.register(vec![executor]);
}

fn main() {
    let _ = register;
}
