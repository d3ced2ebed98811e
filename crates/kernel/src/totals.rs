//! The sum on a card: what the session sent and changed so far, so that many small steps are seen as the
//! large one that they are.

use crate::{Kernel, Refused, Scope};
use bailey_journal::{Sent, Totals};
use bailey_protocol::CardPart;

/// Hosts that a card names; what went to others is a sum.
const HOSTS_MAX: usize = 3;

impl Kernel {
    /// The row of a card that says what the session came to so far; none where that is nothing.
    pub(crate) async fn so_far(&self, scope: &Scope) -> Result<Option<CardPart>, Refused> {
        let totals = self.journal().totals(scope.session()).await?;
        let is_direct = self.policy().await?.is_direct();
        let value = words(&totals, is_direct);
        Ok((!value.is_empty()).then(|| CardPart::Field {
            name: "this session so far".into(),
            value,
            brief: true,
        }))
    }
}

/// `is_direct`: without walls nobody sees what a command changes.
fn words(Totals { sent, changes, commands, files }: &Totals, is_direct: bool) -> String {
    let mut words = Vec::new();
    let (named, others) = sent.split_at(sent.len().min(HOSTS_MAX));
    let mut hosts: Vec<String> =
        named.iter().map(|Sent { host, bytes }| format!("{} to {host}", size(*bytes))).collect();
    if !others.is_empty() {
        let bytes = others.iter().fold(0_u64, |sum, sent| sum.saturating_add(sent.bytes));
        hosts.push(format!("{} to {} other hosts", size(bytes), others.len()));
    }
    if !hosts.is_empty() {
        words.push(format!("sent {}", hosts.join(", ")));
    }
    let count = |number: u64, one: &str| match number {
        1 => format!("1 {one}"),
        number => format!("{number} {one}s"),
    };
    if changes + commands > 0 {
        let by = format!("{} and {}", count(*changes, "change"), count(*commands, "command"));
        words.push(match is_direct && *commands > 0 {
            true => format!("{by}; what commands change is not seen"),
            false => format!("{by}, which changed {}", count(*files, "file")),
        });
    }
    words.join("; ")
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::{Sent, Totals, words};

    #[test]
    fn a_sum_is_one_line() {
        assert_eq!(words(&Totals::default(), false), "");
        let sent = |host: &str, bytes| Sent { host: host.into(), bytes };
        let mut totals = Totals { sent: vec![sent("a", 12_345_678)], changes: 1, commands: 0, files: 1 };
        assert_eq!(words(&totals, false), "sent 12 MB to a; 1 change and 0 commands, which changed 1 file");
        totals.sent.extend([sent("b", 50_000), sent("c", 7), sent("d", 3), sent("e", u64::MAX)]);
        let hosts = "sent 12 MB to a, 50 kB to b, 7 bytes to c, 18446744073709 MB to 2 other hosts; ";
        assert_eq!(words(&totals, false), format!("{hosts}1 change and 0 commands, which changed 1 file"));
        let totals = Totals { commands: 2, ..Totals::default() };
        assert_eq!(words(&totals, true), "0 changes and 2 commands; what commands change is not seen");
    }
}
