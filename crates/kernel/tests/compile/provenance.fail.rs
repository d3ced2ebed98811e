//! Provenance cannot be claimed.
use bailey_kernel::Provenance;
use bailey_protocol::{Integrity, Labels, Secrecy};

fn forge() -> Provenance {
    Provenance { labels: Labels::new(Integrity::Owner, Secrecy::Public) }
}

fn main() {
    forge();
}
