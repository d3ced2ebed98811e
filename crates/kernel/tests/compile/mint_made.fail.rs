//! Nor made from a journal.
use bailey_journal::{Journal, Mint};

fn make(journal: Journal) -> Mint {
    Mint { journal }
}

fn main() {
    let _ = make;
}
