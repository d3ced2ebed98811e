//! A holder: the process whose user and mount namespace all live sandboxes of one session share.

use super::{Ground, init};
use crate::{
    ids,
    stage::{self, Opened, Stage},
    sys::{self, Namespaces, SignalFd},
    wire::{self, Header, Message, Streams},
};
use bailey_protocol::Wall;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, WaitOptions, set_parent_process_death_signal, wait},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{HashMap, VecDeque},
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd, RawFd},
};

/// The warden has written the maps (or needs not to).
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Go;

/// What the warden hears.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Notice {
    /// One sandbox is gone.
    Ended,
}

/// One sandbox: where its runtime listens.
struct Live {
    control: OwnedFd,
}

/// A holder's life. It ends with the warden's socket.
pub(super) fn main(ground: &Ground, header: &Header, is_root: bool, opened: Opened, socket: OwnedFd) -> ! {
    // The warden's other sockets must not live on here: their closing is what ends other holders.
    let keep: Vec<RawFd> = opened.descriptors().chain([socket.as_raw_fd(), 2]).collect();
    if sys::close_all_but(&keep).is_err() {
        sys::exit(125);
    }
    let code = match prepare(ground, header, is_root, opened, &socket) {
        Ok(stage) => serve(ground, &stage, &socket),
        Err(reason) => refuse(&reason, &socket),
    };
    sys::exit(i32::from(code.is_err()))
}

fn prepare(
    ground: &Ground,
    header: &Header,
    is_root: bool,
    opened: Opened,
    socket: &OwnedFd,
) -> Result<Option<Stage>, String> {
    let text = |error: io::Error| error.to_string();
    let without = &ground.config.without;
    if wire::receive::<Go>(socket.as_fd()).map_err(text)?.is_none() {
        return Err("the warden is gone".into());
    }
    let map = |error: io::Error| format!("the user namespace cannot be set up: {error}");
    match (without.contains(&Wall::UserNamespace), is_root) {
        (true, _) => {}
        (false, true) => ids::become_user().map_err(map)?,
        (false, false) => ids::map_self(ground.user.0, ground.user.1).map_err(map)?,
    }
    // After the change of ids, which would undo it.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    if without.contains(&Wall::MountNamespace) {
        return Ok(None);
    }
    let stage =
        stage::build(&ground.plan, &header.yard, header.view, opened).map_err(|error| error.to_string())?;
    Ok(Some(stage))
}

/// Answers every order with the reason why there can be no sandbox.
fn refuse(reason: &str, socket: &OwnedFd) -> io::Result<()> {
    while let Some((_, mut fds)) = wire::receive::<Header>(socket.as_fd())? {
        if let Some(streams) = Streams::take(&mut fds) {
            drop(wire::send(streams.control.as_fd(), &Message::Refused(reason.to_owned()), &[]));
        }
        wire::send(socket.as_fd(), &Notice::Ended, &[])?;
    }
    Ok(())
}

fn serve(ground: &Ground, stage: &Option<Stage>, socket: &OwnedFd) -> io::Result<()> {
    let signals = SignalFd::block(&[Signal::CHILD])?;
    let mut live: HashMap<Pid, Live> = HashMap::new();
    loop {
        let ready = {
            let mut polled = [
                PollFd::new(socket, PollFlags::IN),
                PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN),
            ];
            let tick = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
            rustix::io::retry_on_intr(|| poll(&mut polled, (!live.is_empty()).then_some(&tick)))?;
            polled.first().is_some_and(|first| !first.revents().is_empty())
        };
        while signals.next().is_some() {}
        reap(&mut live, socket)?;
        if ready {
            let Some((header, fds)) = wire::receive::<Header>(socket.as_fd())? else { return Ok(()) };
            start(ground, stage.as_ref(), &header, fds, &mut live, socket)?;
        }
    }
}

/// Tells of every sandbox that is gone: first the warden, then, by closing the control socket, the runtime. So
/// when the runtime asks for the next one, the warden already knows.
fn reap(live: &mut HashMap<Pid, Live>, socket: &OwnedFd) -> io::Result<()> {
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        let Some(Live { control }) = live.remove(&pid) else { continue };
        let gone = Message::Gone { signal: status.terminating_signal() };
        drop(wire::send(control.as_fd(), &gone, &[]));
        wire::send(socket.as_fd(), &Notice::Ended, &[])?;
    }
    Ok(())
}

fn start(
    ground: &Ground,
    stage: Option<&Stage>,
    header: &Header,
    mut fds: VecDeque<OwnedFd>,
    live: &mut HashMap<Pid, Live>,
    socket: &OwnedFd,
) -> io::Result<()> {
    let Some(streams) = Streams::take(&mut fds) else {
        return Err(io::Error::other("an order without descriptors"));
    };
    match sys::fork(namespaces(ground)) {
        Ok(None) => {
            drop(std::mem::take(live));
            init::main(ground, stage.map(|stage| stage.root.as_raw_fd()), header, streams, fds)
        }
        Ok(Some(pid)) => {
            live.insert(pid, Live { control: streams.control });
            Ok(())
        }
        Err(error) => {
            let refused = Message::Refused(format!("namespaces cannot be made: {error}"));
            drop(wire::send(streams.control.as_fd(), &refused, &[]));
            wire::send(socket.as_fd(), &Notice::Ended, &[])
        }
    }
}

fn namespaces(ground: &Ground) -> Namespaces {
    const EACH: [(Wall, Namespaces); 6] = [
        (Wall::PidNamespace, Namespaces::PID),
        (Wall::MountNamespace, Namespaces::MOUNT),
        (Wall::NetNamespace, Namespaces::NET),
        (Wall::IpcNamespace, Namespaces::IPC),
        (Wall::UtsNamespace, Namespaces::UTS),
        (Wall::CgroupNamespace, Namespaces::CGROUP),
    ];
    EACH.iter()
        .filter(|(wall, _)| !ground.config.without.contains(wall))
        .fold(Namespaces::default(), |all, (_, namespace)| all.with(*namespace))
}
