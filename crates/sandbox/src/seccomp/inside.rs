//! What a list of system calls allows more of where no socket of the host can be reached: Unix sockets,
//! between a session's own programs.
//!
//! A name of a socket is a file, and abstract names are the network namespace's. So it takes both: a
//! namespace of the session's own, and a root in which each directory of the host is shown through an overlay
//! ([`crate::apart`]).

use super::{
    Sockets,
    table::{FilterAction, Row, SOCKET, SOCKET_NET, SOCKETPAIR, UNIX, table},
};
use bailey_protocol::Profile;

const MORE: &[Row] = table! {
    Standard, SYS_socket, SOCKET or UNIX = Allowed, "pools of processes, build servers, agents of keys, terminals";
    StandardNet, SYS_socket, SOCKET_NET or UNIX = Allowed, "the same";
    Standard, SYS_socketpair, SOCKETPAIR or UNIX = Allowed, "pairs that carry messages: nothing to turn one to";
};

/// The row in place of one of the table's.
pub(super) fn with(row: &'static Row, sockets: Sockets) -> &'static Row {
    if sockets == Sockets::Network {
        return row;
    }
    let is_same = |more: &&Row| more.number == row.number && more.profile == row.profile;
    MORE.iter().find(is_same).unwrap_or(row)
}
