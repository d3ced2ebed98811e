//! Orders to the warden as a taken-over main process could write them: by hand, over its very socket.

use bailey_protocol::{Command, Isolation, Limits, WsPath};
use rustix::{
    fd::{AsFd as _, BorrowedFd, OwnedFd},
    fs::{MemfdFlags, SealFlags},
    net::{
        AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
        SocketType, sockopt::socket_type,
    },
    process::{Pid, PidfdFlags, PidfdGetfdFlags},
};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{IoSlice, Read as _, Write as _},
    mem::MaybeUninit,
    os::unix::fs::FileExt as _,
    path::Path,
    time::{Duration, Instant},
};

/// The main process's end of its warden.
pub(super) struct Warden {
    socket: OwnedFd,
}

/// A task: a command in the project.
pub(super) fn command(project: &Path, argv: &[&str]) -> Value {
    let command = Command {
        argv: argv.iter().map(|&word| word.into()).collect(),
        cwd: WsPath(project.display().to_string()),
        env: Default::default(),
        stdin: None,
        network: false,
        background: false,
        limits: Limits::default(),
    };
    json!({ "Run": [command, null] })
}

fn job(task: &Value, isolation: &Isolation) -> String {
    let limits = Limits::default();
    json!({ "task": task, "isolation": isolation, "limits": limits, "is_first": false }).to_string()
}

fn in_memory(text: &str) -> File {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut memory = File::from(rustix::fs::memfd_create("job", flags).unwrap());
    memory.write_all(text.as_bytes()).unwrap();
    std::io::Seek::rewind(&mut memory).unwrap();
    memory
}

impl Warden {
    /// Takes it from the process.
    pub(super) fn of(process: u32) -> Self {
        let pidfd =
            rustix::process::pidfd_open(Pid::from_raw(process as i32).unwrap(), PidfdFlags::empty()).unwrap();
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
        let sockets = descriptors.flatten().filter(|fd| {
            fs::read_link(fd.path()).is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
        });
        let mut found = sockets.filter_map(|fd| {
            let number = fd.file_name().to_str()?.parse().ok()?;
            let socket = rustix::process::pidfd_getfd(&pidfd, number, PidfdGetfdFlags::empty()).ok()?;
            (socket_type(&socket).ok()? == SocketType::SEQPACKET).then_some(socket)
        });
        Self { socket: found.next().unwrap() }
    }

    /// Asks for a sandbox: its refusal after `refused: `, or what it wrote to standard output.
    pub(super) fn ask(
        &self,
        session: &str,
        view: &str,
        reads: &[String],
        task: &Value,
        isolation: &Isolation,
    ) -> String {
        self.ask_by(SealFlags::WRITE | SealFlags::SHRINK, session, view, reads, task, isolation)
    }

    /// The same, in memory with these seals.
    pub(super) fn ask_by(
        &self,
        seals: SealFlags,
        session: &str,
        view: &str,
        reads: &[String],
        task: &Value,
        isolation: &Isolation,
    ) -> String {
        let sealed = in_memory(&job(task, isolation));
        rustix::fs::fcntl_add_seals(&sealed, seals).unwrap();
        self.ask_for(&sealed, session, view, reads, || ())
    }

    /// Asks for one task in memory that holds another, and is sealed, after this time.
    pub(super) fn ask_then(
        &self,
        session: &str,
        view: &str,
        jobs: &[(Value, Isolation); 2],
        after: Duration,
    ) -> String {
        let [first, then] = jobs.each_ref().map(|(task, isolation)| job(task, isolation));
        // Of one length, as memory that shrinks has been somebody else's.
        let length = first.len().max(then.len());
        let memory = in_memory(&format!("{first:length$}"));
        self.ask_for(&memory, session, view, &[], || {
            let begin = Instant::now();
            while begin.elapsed() < after {
                std::hint::spin_loop();
            }
            memory.write_all_at(format!("{then:length$}").as_bytes(), 0).unwrap();
            rustix::fs::fcntl_add_seals(&memory, SealFlags::WRITE | SealFlags::SHRINK).unwrap();
        })
    }

    fn ask_for(
        &self,
        job: &File,
        session: &str,
        view: &str,
        reads: &[String],
        meanwhile: impl FnOnce(),
    ) -> String {
        let limits = Limits::default();
        let order =
            json!({ "Start": { "session": session, "view": view, "extra_reads": reads, "limits": limits } });
        let null = File::open("/dev/null").unwrap();
        let (output, output_end) = rustix::pipe::pipe().unwrap();
        let (control, control_end) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        let fds = [job.as_fd(), null.as_fd(), output_end.as_fd(), output_end.as_fd(), control_end.as_fd()];
        self.send(&order, &fds);
        meanwhile();
        drop((output_end, control_end));
        let mut printed = String::new();
        File::from(output).read_to_string(&mut printed).unwrap();
        loop {
            let mut packet = [0; 64 << 10];
            let (length, _) = rustix::net::recv(&control, &mut packet[..], RecvFlags::empty()).unwrap();
            // Then the warden knows that it is gone.
            if length == 0 {
                return printed;
            }
            let message: Value = serde_json::from_slice(&packet[..length]).unwrap();
            if let Some(reason) = message["Refused"].as_str() {
                printed = format!("refused: {reason}");
            }
        }
    }

    /// Asks for a change of the agent's own file: what came of it, as the warden says it.
    pub(super) fn swap(&self, old: Option<&str>, new: Option<&str>) -> String {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut sealed = File::from(rustix::fs::memfd_create("swap", flags).unwrap());
        sealed.write_all(json!({ "old": old, "new": new }).to_string().as_bytes()).unwrap();
        std::io::Seek::rewind(&mut sealed).unwrap();
        rustix::fs::fcntl_add_seals(&sealed, SealFlags::WRITE | SealFlags::SHRINK).unwrap();
        self.swap_as(sealed.as_fd())
    }

    /// The same as a pipe says it.
    pub(super) fn swap_by_pipe(&self, new: &str) -> String {
        let (pipe, end) = rustix::pipe::pipe().unwrap();
        File::from(end).write_all(json!({ "old": null, "new": new }).to_string().as_bytes()).unwrap();
        self.swap_as(pipe.as_fd())
    }

    /// The same as any descriptor says it.
    pub(super) fn swap_as(&self, said: BorrowedFd<'_>) -> String {
        let (control, control_end) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        self.send(&json!("Swap"), &[said, control_end.as_fd()]);
        drop(control_end);
        let mut packet = [0; 64 << 10];
        let (length, _) = rustix::net::recv(&control, &mut packet[..], RecvFlags::empty()).unwrap();
        String::from_utf8(packet[..length].to_vec()).unwrap()
    }

    /// Asks for one that cannot be, where the answer has no room while what is returned is open.
    #[must_use]
    pub(super) fn swap_unheard(&self) -> OwnedFd {
        let (control, full) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        while rustix::net::send(&full, &[0; 4096], SendFlags::DONTWAIT).is_ok() {}
        self.send(&json!("Swap"), &[File::open("/dev/null").unwrap().as_fd(), full.as_fd()]);
        control
    }

    fn send(&self, order: &Value, fds: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(5))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
        let text = order.to_string();
        rustix::net::sendmsg(
            &self.socket,
            &[IoSlice::new(text.as_bytes())],
            &mut control,
            SendFlags::empty(),
        )
        .unwrap();
    }
}
