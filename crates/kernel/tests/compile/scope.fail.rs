//! A scope cannot be made of a connection by hand.
use bailey_kernel::{Connection, Scope};
use bailey_protocol::Role;

fn forge(connection: Connection) -> Scope {
    Scope { connection, role: Role::Owner, cancel: Default::default(), bearer: None, conversation: None, trust: None }
}

fn main() {
    let _ = forge;
}
