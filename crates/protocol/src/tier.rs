//! How far code is trusted, and the least isolation that it runs behind.

use crate::{Enforced, Isolation, Wall};
use alloc::{format, string::String, vec::Vec};
use core::fmt;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

/// Whose code it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// The owner's own programs, such as extensions of the policy.
    Trusted,
    /// Commands that a model runs in the owner's workspace.
    Internal,
    /// Code from elsewhere that outlives the turn.
    Untrusted,
    /// Code that a model made and that outlives the turn.
    LlmGenerated,
}

impl Tier {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Trusted, Self::Internal, Self::Untrusted, Self::LlmGenerated];

    /// Its name in the configuration and on screens.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Internal => "internal",
            Self::Untrusted => "untrusted",
            Self::LlmGenerated => "llm-generated",
        }
    }

    /// Compares the given isolation with the least isolation that the tier wants.
    ///
    /// # Errors
    /// When the given isolation is lower. The text names both levels and, if a configuration can name the
    /// given one, how the owner lets it stand in.
    pub fn check(self, least: Level, given: Level) -> Result<(), String> {
        if given >= least {
            return Ok(());
        }
        let refusal =
            format!("not run, because {self} code needs the isolation `{least}`, and only `{given}` is here");
        let way = if least > Level::HIGHEST {
            "Bailey makes none like that yet"
        } else {
            "`bailey sandbox doctor` says what is missing"
        };
        let stand_in = format!(
            "to accept `{given}` instead, set `{self} = \"{given}\"` under [sandbox.tiers] in your \
             config.toml"
        );
        let named = Level::of_name(given.name()).map(|_| stand_in);
        Err([refusal, way.into()].into_iter().chain(named).collect::<Vec<_>>().join("; "))
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How strong the isolation between a program and the host is, the least first. Each level is accepted in
/// place of any level below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// No isolation, or less than the next level has.
    #[default]
    None,
    /// Landlock and seccomp, in the host's own namespaces.
    Landlock,
    /// A container's namespaces and its runtime's list of system calls.
    Container,
    /// Namespaces, Landlock and seccomp, as every command has them.
    Native,
    /// A kernel in user space.
    Gvisor,
    /// A kernel of its own, in a virtual machine.
    Microvm,
}

impl Level {
    /// The levels that a configuration can name. Only a command line can ask for [`Level::None`].
    pub const NAMED: [Self; 5] = [Self::Landlock, Self::Container, Self::Native, Self::Gvisor, Self::Microvm];

    /// The highest level that Bailey makes.
    pub const HIGHEST: Self = Self::Native;

    /// Its name in the configuration and on screens.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Landlock => "landlock",
            Self::Container => "container",
            Self::Native => "native",
            Self::Gvisor => "gvisor",
            Self::Microvm => "microvm",
        }
    }

    /// The level of that name, if a configuration can name it.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|level| level.name() == name)
    }

    /// The level of the walls that were in force. Walls alone never give more than [`Level::Native`].
    #[must_use]
    pub fn of(enforced: &Enforced) -> Self {
        const BOUND: [Wall; 4] = [Wall::Seccomp, Wall::NoNewPrivileges, Wall::NoCapabilities, Wall::Landlock];
        if enforced.landlock_abi == 0 || !BOUND.iter().all(|wall| enforced.walls.contains(wall)) {
            return Self::None;
        }
        let is_apart = Isolation::default().minimum.is_subset(&enforced.walls);
        if is_apart { Self::Native } else { Self::Landlock }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The least level of each tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the names are those of the tiers")]
pub struct Tiers {
    #[serde(deserialize_with = "named")]
    pub trusted: Level,
    #[serde(deserialize_with = "named")]
    pub internal: Level,
    #[serde(deserialize_with = "named")]
    pub untrusted: Level,
    #[serde(deserialize_with = "named")]
    pub llm_generated: Level,
}

impl Default for Tiers {
    /// A container for trusted code, namespaces for commands of the workspace, a virtual machine for all
    /// else.
    fn default() -> Self {
        Self {
            trusted: Level::Container,
            internal: Level::Native,
            untrusted: Level::Microvm,
            llm_generated: Level::Microvm,
        }
    }
}

impl Tiers {
    /// The least level of this tier.
    #[must_use]
    pub fn least(&self, tier: Tier) -> Level {
        match tier {
            Tier::Trusted => self.trusted,
            Tier::Internal => self.internal,
            Tier::Untrusted => self.untrusted,
            Tier::LlmGenerated => self.llm_generated,
        }
    }
}

/// Reads a level that a configuration can name.
fn named<'de, D: Deserializer<'de>>(from: D) -> Result<Level, D::Error> {
    let name = String::deserialize(from)?;
    Level::of_name(&name).ok_or_else(|| {
        let named = Level::NAMED.map(Level::name).join(", ");
        D::Error::custom(format!(
            "`{name}` is no level of isolation here: there are {named}, the least first"
        ))
    })
}

#[cfg(test)]
mod tests;
