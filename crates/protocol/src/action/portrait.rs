//! An action for a person, as far as the action alone says it.

use super::authority;
use alloc::{borrow::Cow, string::String, vec::Vec};

/// The parts of a card that need nothing but the action. The text is not yet safe for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Portrait<'a> {
    /// One line: the deed and its object.
    pub title: String,
    /// Names and values, in order.
    pub fields: Vec<(&'static str, Cow<'a, str>)>,
}

impl<'a> Portrait<'a> {
    pub(super) fn new(title: String) -> Self {
        Self { title, fields: Vec::new() }
    }

    /// The same with one field more.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<Cow<'a, str>>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    /// The same with the fields of a request.
    pub(super) fn with_request(self, method: impl Into<Cow<'a, str>>, url: &'a str) -> Self {
        self.with("method", method).with("host", authority(url)).with("address", url)
    }

    /// The same with one field more, if there is a value.
    pub(super) fn with_some(self, name: &'static str, value: Option<impl Into<Cow<'a, str>>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}
