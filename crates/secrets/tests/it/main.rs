//! How secrets are named, read, matched and hidden.
#![expect(clippy::unwrap_used, reason = "helpers of tests: a panic is how a test fails")]

mod dotenv;
mod forms;
mod guard;
mod keyring;
mod neutralise;
mod own;
mod redact;
mod sealed;
mod shapes;
mod stream;
mod vault;

use bailey_secrets::{Redactor, Secret, Vault};

fn vault(pairs: &[(&str, &str)]) -> Vault {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), Secret::new((*value).to_owned()))).collect()
}

fn redactor(pairs: &[(&str, &str)]) -> Redactor {
    Redactor::new(&vault(pairs))
}

fn redact(redactor: &Redactor, text: &str) -> String {
    redactor.redact(text).text.into_owned()
}
