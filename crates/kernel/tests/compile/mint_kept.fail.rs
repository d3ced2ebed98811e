//! The mint cannot be kept once it is in the kernel.
use bailey_journal::Mint;
use bailey_kernel::{Config, Kernel};
use bailey_policy::Policy;

async fn keep(mint: Mint, policy: Policy, config: Config) {
    let _ = Kernel::new(mint, policy, config).await;
    let _ = mint.journal();
}

fn main() {
    let _ = keep;
}
