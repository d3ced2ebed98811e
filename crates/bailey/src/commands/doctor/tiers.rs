//! Whose code runs here, and behind what: the tiers of trust, one by one.

use super::Finding;
use crate::config::Config;
use bailey_protocol::{Level, Tier};

/// Compares what the owner wants of each tier with what the walls came to when they were tried.
pub(super) fn tiers(config: &Config, given: Level) -> Vec<Finding> {
    Tier::ALL.into_iter().map(|tier| one(config, tier, given)).collect()
}

fn one(config: &Config, tier: Tier, given: Level) -> Finding {
    let check = check(tier);
    let least = config.tiers.least(tier);
    let who = who(config, tier);
    let wants = format!("{who}: needs `{least}` or more");
    let special = |says: String| Finding { is_special: true, ..Finding::ok(check, says) };
    match (tier.check(least, given), who.is_empty()) {
        (Ok(()), false) => special(format!("{wants}, and `{given}` is here")),
        (Ok(()), true) => special(format!("not in use; it would need `{least}`, and `{given}` is here")),
        (Err(_), true) => {
            let way = match given > Level::None {
                true => format!(" (`{tier} = \"{given}\"` under [sandbox.tiers] would allow it)"),
                false => String::new(),
            };
            special(format!(
                "not in use; it would be refused, because it needs `{least}` and only `{given}` is here{way}"
            ))
        }
        (Err(why), false) => Finding::fail(
            check,
            format!("{wants}, and only `{given}` is here, so it is refused"),
            // Which is what is being read.
            why.split_once("; ").map_or_else(String::new, |(_, way)| {
                way.replace(
                    "`bailey sandbox doctor` says what is missing",
                    "`walls` above says what is missing",
                )
            }),
        ),
    }
}

/// What of this home is of a tier.
fn who(config: &Config, tier: Tier) -> String {
    let extensions = config.extensions.iter().filter(|declared| declared.tier == tier);
    let names: Vec<&str> = extensions.map(|declared| declared.name.as_str()).collect();
    let extensions = match names.as_slice() {
        [] => None,
        [one] => Some(format!("the extension {one}")),
        several => Some(format!("the extensions {}", several.join(", "))),
    };
    let peers = config.peers.iter().filter(|(_, peer)| peer.tier == tier);
    let peers = peers.map(|(name, _)| format!("the peer {name}"));
    let commands = (tier == Tier::Internal).then(|| "commands of a workspace".to_owned());
    commands.into_iter().chain(extensions).chain(peers).collect::<Vec<_>>().join(" and ")
}

fn check(tier: Tier) -> &'static str {
    match tier {
        Tier::Trusted => "tier trusted",
        Tier::Internal => "tier internal",
        Tier::Untrusted => "tier untrusted",
        Tier::LlmGenerated => "tier llm-generated",
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Finding, Grade},
        tiers,
    };
    use crate::config::Config;
    use bailey_protocol::Level;

    #[test]
    fn each_tier_says_what_it_wants_and_what_it_gets() {
        let grades = |config: &Config, given| {
            tiers(config, given)
                .into_iter()
                .map(|found| (found.grade, found.fix.is_some()))
                .collect::<Vec<_>>()
        };
        let mut config = Config::default();
        let (fine, refused, unused) = ((Grade::Ok, false), (Grade::Fail, true), (Grade::Ok, false));
        assert_eq!(grades(&config, Level::Native), [fine, fine, unused, unused]);
        assert_eq!(grades(&config, Level::Landlock), [unused, refused, unused, unused]);
        config.tiers.internal = Level::Landlock;
        config.tiers.untrusted = Level::Native;
        assert_eq!(grades(&config, Level::Landlock), [unused, fine, unused, unused]);
        assert_eq!(grades(&config, Level::Native), [fine, fine, fine, unused]);
        config.tiers.internal = Level::Microvm;
        let found = tiers(&config, Level::Native);
        assert!(found.iter().any(|found| found.says.contains("commands of a workspace: needs `microvm`")));
        let names_itself =
            |found: &Finding| found.fix.as_ref().is_some_and(|fix| fix.contains("sandbox doctor"));
        let found = tiers(&Config::default(), Level::None);
        assert!(!found.iter().any(names_itself), "{found:?}");
    }
}
