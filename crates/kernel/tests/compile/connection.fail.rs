//! A connection cannot be made without the registrar, not even out of another one.
use bailey_kernel::Connection;
use bailey_protocol::SessionId;

fn forge(session: SessionId, other: Connection) -> Connection {
    Connection { session, workspace: "/w".into(), ..other }
}

fn main() {
    let _ = forge;
}
