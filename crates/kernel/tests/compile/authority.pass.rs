//! Authority comes from the registrar's connection; provenance from a context.
use bailey_kernel::{Connection, Context, Kernel, Provenance, Registrar, Scope};
use bailey_protocol::{Event, SessionId};
use tokio::sync::mpsc;

fn authority(kernel: &Kernel, registrar: &Registrar, session: SessionId, events: mpsc::Sender<Event>) -> Scope {
    let connection: Connection = registrar.connect(session, "/w".into(), events);
    kernel.turn_of(&connection)
}

fn provenance(context: &Context) -> Provenance {
    context.provenance()
}

fn main() {
    let _ = (authority, provenance);
}
