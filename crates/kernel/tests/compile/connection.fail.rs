//! A connection cannot be made without the registrar.
use bailey_kernel::Connection;
use bailey_protocol::{Cost, Event, SessionId};
use tokio::sync::mpsc;

fn forge(session: SessionId, events: mpsc::Sender<Event>) -> Connection {
    Connection { session, workspace: "/w".into(), events, limit: Cost { tokens: u64::MAX } }
}

fn main() {
    let _ = forge;
}
