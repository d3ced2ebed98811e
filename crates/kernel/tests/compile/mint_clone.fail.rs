//! There is one mint.
use bailey_journal::Mint;

fn both(mint: &Mint) -> Mint {
    mint.clone()
}

fn main() {
    let _ = both;
}
