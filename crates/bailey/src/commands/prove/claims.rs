//! The claims of SECURITY.md that no line here tries, each with the reason from that file.

const SECURITY: &str = include_str!("../../../../../SECURITY.md");

/// A claim that is tried elsewhere: by the tests that its row names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Elsewhere {
    pub(super) claim: &'static str,
    pub(super) because: &'static str,
}

/// The rows whose third column says `no: …`, in their order.
pub(super) fn elsewhere() -> impl Iterator<Item = Elsewhere> {
    SECURITY.lines().filter_map(|row| {
        let mut cells = row.strip_prefix("| ")?.split(" | ").map(str::trim);
        let (claim, because) = (cells.next()?, cells.nth(1)?.strip_prefix("no: ")?);
        Some(Elsewhere { claim, because })
    })
}
