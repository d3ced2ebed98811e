//! The rules in force: the built-in rules, the organisation's and the human's.

use crate::{config::Config, extensions::Extensions, home::Home};
use anyhow::Result;
use bailey_policy::{DEFAULT_RULES, Policy, built_in_rules, file};
use std::path::PathBuf;

/// The user who owns the organisation's rules.
const ROOT: u32 = 0;

/// The rules in force, after a check of their examples, joined with the extensions that judge; and warnings
/// about them.
pub fn policy(home: &Home, extensions: &Extensions) -> Result<(Policy, Vec<String>)> {
    let (policy, parsed) = rules(home)?;
    // The examples of the rules would notice the fault, too.
    #[cfg(feature = "controls")]
    if ["built_in_rules", "default_deny"].into_iter().any(bailey_protocol::broken::broken) {
        return Ok((policy, Vec::new()));
    }
    parsed.check(&policy).map_err(file::RuleFileError::from)?;
    extensions.approvals().check(parsed.compliance)?;
    Ok((extensions.join(policy), parsed.warnings.iter().map(ToString::to_string).collect()))
}

/// Whether a human answers each question separately, because the human or the organisation requires it.
pub fn is_compliance(config: &Config) -> Result<bool> {
    Ok(config.approvals.is_compliance() || file::load_organisation(&organisation(), ROOT)?.compliance)
}

/// The built-in rules, the organisation's, and the human's from the home. When the home has no rules, the
/// default ones stand in for the human's. Their examples are not tried yet.
pub fn rules(home: &Home) -> Result<(Policy, file::Parsed)> {
    Ok(rules_of(&file::Texts::of_dir(&home.policy())?)?)
}

/// The same for a home whose rule files hold these texts.
pub fn rules_of(texts: &file::Texts) -> Result<(Policy, file::Parsed), file::RuleFileError> {
    let mut own = texts.parse()?;
    if own.rules.is_empty() && own.warnings.is_empty() {
        own = file::parse("default.toml", DEFAULT_RULES, file::Format::Toml)?;
    }
    with_binding(own)
}

/// Puts these rules behind the rules that no home can lift.
pub(super) fn with_binding(own: file::Parsed) -> Result<(Policy, file::Parsed), file::RuleFileError> {
    let parsed = file::load_organisation(&organisation(), ROOT)?.and(own);
    let policy = Policy::new(built_in_rules(), parsed.rules.clone());
    let policy = if parsed.compliance { policy.with_compliance() } else { policy };
    #[cfg(feature = "controls")]
    let policy = crate::controls::forget(policy);
    Ok((policy, parsed))
}

/// The directory of the organisation's rules.
pub fn organisation() -> PathBuf {
    #[cfg(feature = "controls")]
    if let Some(elsewhere) = crate::controls::organisation() {
        return elsewhere;
    }
    file::ORGANISATION.into()
}
