//! Executors are registered with the registrar.
use bailey_kernel::{Executor, Registrar};
use std::sync::Arc;

fn register(registrar: &Registrar, executor: Arc<dyn Executor>) {
    registrar.register(vec![executor]);
}

fn main() {
    let _ = register;
}
