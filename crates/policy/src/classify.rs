//! What a tool does to the world, as far as its name and description tell. Nothing that is told here is
//! proof: whoever wrote the description may be wrong or hostile. So the worst word counts wherever it stands,
//! only a name makes a tool harmless, and what says nothing stays unclear, which no allow fits.

use alloc::{string::String, vec::Vec};
use bailey_protocol::ToolEffect;

mod words;

/// What is known of a tool whose effect nobody declared.
#[derive(Debug, Clone, Copy, Default)]
pub struct Described<'a> {
    /// Its name.
    pub name: &'a str,
    /// What its author says that it does.
    pub description: &'a str,
    /// Its schema of arguments, as text.
    pub schema: &'a str,
}

/// Most bytes of a description or schema that are looked at; a tool that says more is unclear.
const LOOKED_AT_MAX: usize = 64 * 1024;

/// Sorts a tool by its words.
#[must_use]
pub fn classify(tool: &Described<'_>) -> ToolEffect {
    let Described { name, description, schema } = *tool;
    if description.len() > LOOKED_AT_MAX || schema.len() > LOOKED_AT_MAX {
        return ToolEffect::Unclear;
    }
    let named = words_of(name);
    let all = || named.iter().cloned().chain(words_of(description)).chain(words_of(schema));
    let says = |list: &[&str]| all().any(|word| list.contains(&word.as_str()));
    let is_named = |list: &[&str]| named.iter().any(|word| list.contains(&word.as_str()));
    if says(words::DESTRUCTIVE) {
        ToolEffect::Destructive
    } else if says(words::EGRESS) {
        ToolEffect::Egress
    } else if is_named(words::WRITE) {
        ToolEffect::Write
    } else if is_named(words::READ) && !says(words::WRITE) {
        ToolEffect::Read
    } else {
        ToolEffect::Unclear
    }
}

/// The words of a text in lower case: runs of letters, parted at capitals, too, so that `sendEmail` is two,
/// and so is `HTTPDelete`.
fn words_of(text: &str) -> Vec<String> {
    let (mut words, mut word, mut was_small) = (Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let is_next_small = chars.peek().is_some_and(|next| next.is_lowercase());
        let ends = !c.is_alphabetic() || c.is_uppercase() && (was_small || is_next_small);
        if ends && !word.is_empty() {
            words.push(core::mem::take(&mut word));
        }
        if c.is_alphabetic() {
            word.extend(c.to_lowercase());
        }
        was_small = c.is_lowercase();
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

#[cfg(test)]
mod tests;
