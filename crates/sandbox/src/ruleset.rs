//! Landlock: what of the root may be written, held by the kernel even where a mount would allow it.

use landlock::{
    ABI, Access as _, AccessFs, LandlockStatus, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetStatus, Scope, path_beneath_rules,
};
use std::path::PathBuf;

/// The newest ABI whose rights are handled. On an older kernel the crate leaves out what that does not know.
const NEWEST: ABI = ABI::V7;

/// The first ABI that keeps signals and abstract sockets in.
pub(crate) const SCOPED: u32 = 6;

/// Binds this process to reading and executing beneath `readable` and to writing beneath `writable`; signals
/// and abstract sockets stay within the sandbox. Returns the ABI in force. It needs no_new_privs.
///
/// # Errors
/// When the kernel has no Landlock, or does not enforce it.
pub(crate) fn restrict(readable: &[PathBuf], writable: &[PathBuf]) -> Result<u32, String> {
    let text = |error: landlock::RulesetError| format!("landlock: {error}");
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .and_then(|created| created.add_rules(path_beneath_rules(readable, AccessFs::from_read(NEWEST))))
        .and_then(|created| created.add_rules(path_beneath_rules(writable, AccessFs::from_all(NEWEST))))
        // It was set before, or was left away on purpose.
        .map(|created| created.no_new_privs(false))
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(text)?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => Err("landlock: the kernel does not enforce it".into()),
        (_, LandlockStatus::Available { effective_abi, .. }) => {
            Ok(u32::try_from(effective_abi as i32).unwrap_or(0))
        }
        _ => {
            Err("landlock: the kernel does not have it, or it is not among the boot parameter `lsm=`".into())
        }
    }
}
