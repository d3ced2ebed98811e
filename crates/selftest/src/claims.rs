//! The claims that this program makes (`docs/security/claims.toml`), each with the lines here that try it.

use anyhow::{Context as _, Result};
use serde::Deserialize;

const CLAIMS: &str = include_str!("../../../docs/security/claims.toml");

/// A claim.
#[derive(Debug, Deserialize)]
pub(crate) struct Claim {
    /// The claim, in one sentence.
    pub(crate) claim: String,
    /// The lines of the table that try it, in the table's order.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test compares them with the table"))]
    #[serde(default)]
    pub(crate) prove: Vec<String>,
    /// Why no line here can try it: the tests that it names do.
    pub(crate) untried: Option<String>,
}

#[derive(Deserialize)]
struct Claims {
    claim: Vec<Claim>,
}

/// All claims, in their order.
///
/// # Errors
/// When the file that was built in is no list of claims.
pub(crate) fn all() -> Result<Vec<Claim>> {
    let claims: Claims = toml::from_str(CLAIMS).context("docs/security/claims.toml")?;
    Ok(claims.claim)
}
