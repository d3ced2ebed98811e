//! Messages to a service manager, if one listens (sd_notify(3)): a datagram of words to the socket of
//! `NOTIFY_SOCKET`.

use std::{
    env,
    ffi::OsString,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            ffi::OsStrExt as _,
            net::{SocketAddr, UnixDatagram},
        },
    },
    process,
    time::Duration,
};

/// The service manager, if there is one.
#[derive(Debug)]
pub(super) struct Manager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// How often the service manager wants to hear that this process lives.
    pub(super) beat: Option<Duration>,
}

impl Manager {
    /// Finds the service manager in the environment.
    pub(super) fn find() -> Self {
        let socket = env::var_os("NOTIFY_SOCKET").and_then(|path| {
            let socket = UnixDatagram::unbound().ok()?;
            Some((socket, address(&path)?))
        });
        let beat = socket.is_some().then(beat).flatten();
        Self { socket, beat }
    }

    /// Tells the service manager. A message that it does not hear is no failure of the daemon.
    pub(super) fn tell(&self, words: &str) {
        if let Some((socket, address)) = &self.socket {
            socket.send_to_addr(words.as_bytes(), address).ok();
        }
    }
}

/// A path; or, with `@` before it, a name that is in no file system.
fn address(path: &OsString) -> Option<SocketAddr> {
    match path.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name).ok(),
        _ => SocketAddr::from_pathname(path).ok(),
    }
}

/// Half of the time that the service manager waits for, if that time is meant for this process.
fn beat() -> Option<Duration> {
    let number = |name: &str| env::var(name).ok()?.parse::<u64>().ok();
    let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(process::id()));
    let micros = number("WATCHDOG_USEC").filter(|micros| is_ours && *micros > 0)?;
    Some(Duration::from_micros(micros / 2))
}
