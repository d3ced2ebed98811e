use super::{Level, Tier, Tiers};
use crate::{Enforced, Isolation, Wall};

fn native() -> Enforced {
    Enforced { walls: Isolation::default().minimum, landlock_abi: 1, ..Enforced::default() }
}

#[test]
fn each_wall_that_is_missing_lowers_the_level() {
    assert_eq!(Level::of(&native()), Level::Native, "the control");
    for wall in Isolation::default().minimum {
        let mut less = native();
        less.walls.remove(&wall);
        assert!(Level::of(&less) < Level::Native, "without {wall}");
    }
    assert_eq!(Level::of(&Enforced { landlock_abi: 0, ..native() }), Level::None);
}

#[test]
fn without_namespaces_it_is_landlock_and_without_that_nothing() {
    let walls = [Wall::Seccomp, Wall::NoNewPrivileges, Wall::NoCapabilities, Wall::Landlock];
    let bound = Enforced { walls: walls.into(), ..native() };
    assert_eq!(Level::of(&bound), Level::Landlock, "the control");
    for wall in walls {
        let mut less = bound.clone();
        less.walls.remove(&wall);
        assert_eq!(Level::of(&less), Level::None, "without {wall}");
    }
}

#[test]
fn a_tier_takes_its_level_or_a_higher_one() {
    for tier in Tier::ALL {
        let least = Tiers::default().least(tier);
        for level in Level::NAMED {
            assert_eq!(tier.check(least, level).is_ok(), level >= least, "{tier}, {level}");
        }
        assert!(tier.check(least, Level::None).is_err(), "{tier}");
    }
}

#[test]
fn what_stands_in_holds_for_the_tier_that_names_it() {
    let check = |tiers: &Tiers, tier: Tier, given| tier.check(tiers.least(tier), given);
    let refused = check(&Tiers::default(), Tier::Untrusted, Level::Native).unwrap_err();
    assert!(refused.contains("untrusted = \"native\""), "{refused}");
    let tiers: Tiers = serde_json::from_str(r#"{"untrusted": "native"}"#).unwrap();
    assert_eq!(check(&tiers, Tier::Untrusted, Level::Native), Ok(()));
    assert!(check(&tiers, Tier::LlmGenerated, Level::Native).is_err());
    assert!(check(&tiers, Tier::Untrusted, Level::Landlock).is_err());
}

#[test]
fn a_configuration_names_no_level_without_walls() {
    assert_eq!(Level::of_name("none"), None);
    assert!(serde_json::from_str::<Tiers>(r#"{"internal": "landlock"}"#).is_ok(), "the control");
    assert!(serde_json::from_str::<Tiers>(r#"{"internal": "none"}"#).is_err());
    for level in Level::NAMED {
        assert_eq!(Level::of_name(level.name()), Some(level));
    }
}
