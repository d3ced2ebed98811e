//! How well a condition fits, when not everything is known.

/// Ordered, so that AND is the minimum and OR the maximum.
///
/// A value that is missing, or that covers more than the rule speaks of, fits `Maybe`. That an allow needs
/// `Yes` while a review or a deny is content with `Maybe` is what makes every gap in our knowledge fail
/// closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    No,
    Maybe,
    Yes,
}

impl From<bool> for Fit {
    fn from(fits: bool) -> Self {
        if fits { Self::Yes } else { Self::No }
    }
}
