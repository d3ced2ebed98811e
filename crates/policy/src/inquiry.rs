//! The second step of a decision in which extensions have a say.

use crate::{
    Facts, Policy,
    extension::{Extension, ExtensionReply},
    policy::guard,
    subject::Resource,
    tally::Tally,
    token::TokenUse,
    verdict::Decided,
};
use alloc::vec::Vec;

/// How far a decision came.
#[derive(Debug)]
#[must_use]
pub enum Judged<'a> {
    /// To its end.
    Decided(Decided),
    /// To the extensions.
    Asks(Inquiry<'a>),
}

/// A decision that waits for extensions: the rules have spoken, and none denied.
#[derive(Debug)]
#[must_use]
pub struct Inquiry<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) facts: Facts<'a>,
    pub(crate) resources: Vec<Resource<'a>>,
    pub(crate) tally: Tally,
    pub(crate) token: TokenUse,
}

impl<'a> Inquiry<'a> {
    /// Who is to be asked, each about the whole effect.
    pub fn extensions(&self) -> impl Iterator<Item = &'a Extension> + use<'a> {
        self.policy.asked(self.facts.effect.effect().action.kind())
    }

    /// The decision, given what became of asking each of them. Whoever has no reply denies.
    pub fn conclude(self, mut reply: impl FnMut(&Extension) -> Option<ExtensionReply>) -> Decided {
        let (policy, facts) = (self.policy, self.facts);
        let conclude = move || {
            let mut inquiry = self;
            for extension in inquiry.extensions() {
                let (answer, text) = extension.count(reply(extension));
                inquiry.tally.hear_extension(extension, answer, &text);
            }
            inquiry.verdict()
        };
        guard(conclude, || policy.failed(&facts))
    }

    pub(crate) fn verdict(self) -> Decided {
        self.policy.verdict(&self.facts, self.tally, &self.resources, self.token)
    }
}
