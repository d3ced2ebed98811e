//! The mint is moved into the kernel.
use bailey_journal::Mint;
use bailey_kernel::{Config, Kernel, Journal};
use bailey_policy::Policy;

async fn build(mint: Mint, policy: Policy, config: Config) {
    if let Ok((kernel, _)) = Kernel::new(mint, policy, config).await {
        let _journal: &Journal = kernel.journal();
    }
}

fn main() {
    let _ = build;
}
