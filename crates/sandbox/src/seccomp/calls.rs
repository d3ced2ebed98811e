//! The system calls that the owner chose for commands: one of the named lists, or one of their own by names.
//!
//! A list of one's own begins as a named one and adds from what the tables hold, with the tables' tests of
//! arguments. What the tables do not hold cannot be in it, however the numbers came here.

use super::{
    Sockets, alone,
    compile::compile,
    inside,
    table::{self, CLONE3, NEVER, Row},
};
use crate::sys::Instruction;
use bailey_protocol::{Digest, Profile};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How many letters a name may be away from the one that was meant.
const NEAR: usize = 2;

/// The system calls of commands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    profile: Profile,
    /// Of a list of one's own: what it is called, what it began as, and its numbers.
    name: String,
    base: Profile,
    numbers: BTreeSet<u32>,
}

/// A name that cannot stand in a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No table has it.
    #[error("there is no system call `{name}` here{hint}")]
    Unknown {
        /// As it was written.
        name: String,
        /// What may have been meant; empty where nothing is near.
        hint: String,
    },
    /// It reaches beyond the walls.
    #[error("`{0}` is in no profile: with it a command could reach beyond the walls")]
    Never(String),
}

impl Calls {
    /// One of the named lists.
    #[must_use]
    pub fn named(profile: Profile) -> Self {
        Self { profile, ..Self::default() }
    }

    /// A list of the owner's own, called so, which is a named one to begin with.
    #[must_use]
    pub fn custom(name: &str, base: Profile) -> Self {
        let all = table::rows().map(|row| row.number).filter(|number| table::row(base, *number).is_some());
        Self { profile: Profile::Custom, name: name.into(), base, numbers: all.collect() }
    }

    /// Adds a call to a list of one's own.
    ///
    /// # Errors
    /// When there is none of this name, or it is in no list whatever.
    pub fn allow(&mut self, call: &str) -> Result<(), CallError> {
        if NEVER.contains(&call) {
            return Err(CallError::Never(call.into()));
        }
        self.numbers.insert(number(call)?);
        Ok(())
    }

    /// Takes a call out of a list of one's own.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn deny(&mut self, call: &str) -> Result<(), CallError> {
        if !NEVER.contains(&call) {
            self.numbers.remove(&number(call)?);
        }
        Ok(())
    }

    /// Which profile it is.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// What the owner calls it; empty for a named one.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The digest of a list of one's own, whatever it is called; none for a named one.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        let numbers = self.numbers.iter().map(|number| number.to_le_bytes());
        let parts: Vec<_> = [*b"list"].into_iter().chain(numbers).collect();
        let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        (self.profile == Profile::Custom)
            .then(|| Digest::of_parts(&[&[self.base.name().as_bytes()], &parts[..]].concat()))
    }

    /// The program of a list of one's own.
    pub(crate) fn compile(&self, sockets: Sockets) -> Vec<Instruction> {
        compile(|number| self.row(number).map(|row| inside::with(row, sockets)))
    }

    /// The program of a list where no namespace stands beside it.
    pub(crate) fn compile_alone(&self) -> Vec<Instruction> {
        compile(|number| {
            let row = match self.profile {
                Profile::Custom => self.row(number),
                named => table::row(named, number),
            };
            row.and_then(alone::left)
        })
    }

    fn row(&self, number: u32) -> Option<&'static Row> {
        if number == CLONE3.number {
            return Some(&CLONE3);
        }
        let row = || table::row(self.base, number).or_else(|| table::row(Profile::Custom, number));
        self.numbers.contains(&number).then(row)?
    }
}

fn number(call: &str) -> Result<u32, CallError> {
    table::number(call).ok_or_else(|| {
        let known = || table::rows().map(|row| row.name.trim_start_matches("SYS_"));
        let near = known().min_by_key(|name| distance(name, call));
        let near = near.filter(|name| distance(name, call) <= NEAR);
        let hint = near.map(|name| format!(": `{name}` is one")).unwrap_or_default();
        CallError::Unknown { name: call.into(), hint }
    })
}

/// How many letters must be added, taken away or changed (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, mine) in one.bytes().enumerate() {
        let mut before = at;
        let mut last = at + 1;
        for (theirs, cell) in other.bytes().zip(row.iter_mut().skip(1)) {
            let changed = before + usize::from(mine != theirs);
            before = *cell;
            last = changed.min(before + 1).min(last + 1);
            *cell = last;
        }
        if let Some(first) = row.first_mut() {
            *first = at + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}
