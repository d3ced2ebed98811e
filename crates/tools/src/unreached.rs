//! Why a command reached nothing of the network, as far as what is left of it says so.

use crate::exec::printed;
use bailey_protocol::{Command, ExecReport, Outcome};

/// What libraries and programs say where a name was not found.
const NO_NAME: [&str; 9] = [
    "ould not resolve host",
    "name resolution",
    "Name or service not known",
    "EAI_AGAIN",
    "ENOTFOUND",
    "no such host",
    "UnknownHostException",
    "nodename nor servname",
    "failed to lookup address",
];

/// What a command lacked that reached nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreached {
    /// It asked for no way to the network.
    NoWay,
    /// It has one, and its program took another: the door is a proxy, and names are looked up there alone.
    NotTheDoor,
}

impl Unreached {
    /// What is known of an ended command; none where nothing speaks for it. Packets without a route are counted by the kernel; of a name
    /// that was not found the command's own words are what there is, and they count where it failed.
    #[must_use]
    pub fn of(command: &Command, outcome: &Outcome, report: &ExecReport) -> Option<Self> {
        let has_lost = outcome.enforced.as_ref().is_some_and(|enforced| enforced.out_no_routes > 0);
        let found_no_name = || {
            let text = printed(report);
            report.exit != Some(0) && NO_NAME.iter().any(|words| text.contains(words))
        };
        let why = if command.network { Self::NotTheDoor } else { Self::NoWay };
        (has_lost || found_no_name()).then_some(why)
    }
}
