//! Why a command reached nothing of the network, as far as what is left of it says so.

use crate::exec::printed;
use bailey_protocol::{Command, ExecReport, Outcome};

/// What libraries and programs say where a name was not found.
const NO_NAME: [&str; 9] = [
    "ould not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "getaddrinfo EAI_AGAIN",
    "getaddrinfo ENOTFOUND",
    ": no such host",
    "java.net.UnknownHostException",
    "nodename nor servname provided",
    "failed to lookup address information",
];

/// What the C library and others say of a kind of socket that is refused.
const NO_FAMILY: [&str; 3] = ["Address family not supported", "address family not supported", "EAFNOSUPPORT"];

/// What programs say where they are not told which network interfaces there are.
const NO_NETLINK: [&str; 3] = ["uv_interface_addresses", "netlinkrib:", "route ip+net:"];

/// What a command lacked that reached nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreached {
    /// It asked which network interfaces there are, and its list of system calls does not have that.
    NoInterfaces,
    /// It wanted a Unix socket, and behind these walls there are none.
    NoUnixSockets,
    /// It asked for no way to the network.
    NoWay,
    /// It has one, and its program took another: the door is a proxy, and names are looked up there alone.
    NotTheDoor,
}

impl Unreached {
    /// What is known of a command that failed; none where nothing speaks for it, and where the door spoke
    /// itself. Packets without a route are counted by the kernel; of a name that was not found the command's
    /// own words are what there is.
    #[must_use]
    pub fn of(command: &Command, outcome: &Outcome, report: &ExecReport) -> Option<Self> {
        let is_told = !report.refused.is_empty() || !report.not_passed.is_empty();
        if report.exit == Some(0) || is_told {
            return None;
        }
        let has_unix_sockets = outcome.enforced.as_ref().is_some_and(|enforced| enforced.has_unix_sockets);
        if !has_unix_sockets && NO_FAMILY.iter().any(|words| printed(report).contains(words)) {
            return Some(Self::NoUnixSockets);
        }
        if NO_NETLINK.iter().any(|words| printed(report).contains(words)) {
            return Some(Self::NoInterfaces);
        }
        let has_lost = outcome.enforced.as_ref().is_some_and(|enforced| enforced.out_no_routes > 0);
        let found_no_name = || {
            let text = printed(report);
            NO_NAME.iter().any(|words| text.contains(words))
        };
        let why = if command.network { Self::NotTheDoor } else { Self::NoWay };
        (has_lost || found_no_name()).then_some(why)
    }
}
