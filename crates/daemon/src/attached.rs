//! Processes that listen to the outside for the daemon. The daemon begins each one again when it ends. Over a
//! line of packets, the process asks for the things that it may not do itself.

use super::{Daemon, ended, process, reader};
use anyhow::{Context as _, Result};
use bailey_channels::inbox::Inbox;
use bailey_home::program;
use bailey_session::{
    exit,
    packet::{self, Asking, Packet, Refusable},
    wire::ChannelState,
};
use rustix::{
    net::{AddressFamily, Shutdown, SocketFlags, SocketType},
    process::{Signal, kill_process_group},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use std::{
    cell::{Cell, RefCell},
    io,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{net, process::CommandExt as _},
    },
    pin::pin,
    process::Stdio,
    rc::Rc,
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::Interest,
    net::UnixStream,
    sync::Semaphore,
    task::spawn_local,
    time::{Instant, sleep, timeout},
};

/// How long the daemon waits before it begins a process again, at first and at most.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// How long a process may take to end when a person may no longer speak through it.
const REVOKED_MAX: Duration = Duration::from_millis(300);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// After a process has lived this long, the pause is the shortest again.
const LIVED: Duration = Duration::from_secs(300);
/// How many requests of a process are served at once, and how many may be pending: more than a page's
/// connections ask for.
const AT_ONCE_MAX: usize = 16;
const WAITING_MAX: usize = 256;

/// Slots for the requests of a process.
#[derive(Clone)]
struct RequestSlots {
    heard: Arc<Semaphore>,
    served: Arc<Semaphore>,
}

impl RequestSlots {
    fn new() -> Self {
        let [heard, served] = [WAITING_MAX, AT_ONCE_MAX].map(|most| Arc::new(Semaphore::new(most)));
        Self { heard, served }
    }

    /// Tells the tasks that wait for a place to give up: they do nothing for a process that is gone.
    fn close(&self) {
        self.heard.close();
        self.served.close();
    }
}

/// A process that the daemon keeps up.
pub(super) struct AttachedProcess {
    /// The kind of process, for the log.
    kind: &'static str,
    state: RefCell<ChannelState>,
    /// The daemon's end; `None` while no process runs.
    socket: RefCell<Option<Rc<UnixStream>>>,
    places: RefCell<RequestSlots>,
    /// Whether the process must not begin again, or must begin at once.
    is_over: Cell<bool>,
    is_anew: Cell<bool>,
    /// Whether servers deliver to it.
    pub(super) takes_deliveries: bool,
    /// Whether the process says when it is connected.
    pub(super) is_up_once_it_says: bool,
    pub(super) inbox: Inbox,
}

impl AttachedProcess {
    pub(super) fn new(kind: &'static str, name: &str) -> Self {
        let state =
            ChannelState { name: name.to_owned(), up: false, connecting: false, note: "begins".into() };
        Self {
            kind,
            state: RefCell::new(state),
            socket: RefCell::default(),
            places: RefCell::new(RequestSlots::new()),
            is_over: Cell::default(),
            is_anew: Cell::default(),
            takes_deliveries: false,
            is_up_once_it_says: false,
            inbox: Inbox::default(),
        }
    }

    pub(super) fn state(&self) -> ChannelState {
        self.state.borrow().clone()
    }

    /// Ends its process, where it stands: its notes show its work.
    pub(super) fn end(&self) {
        self.is_over.set(true);
        self.cut();
    }

    /// Ends its process, and begins the next one at once.
    pub(super) fn begin_anew(&self) {
        self.is_anew.set(true);
        self.cut();
    }

    /// How long the process may take to end, once its line is cut. When only this process is to end and the
    /// daemon goes on, a person may no longer speak there: the connections that the process holds end with
    /// it, and its notes are on disk.
    fn ends_within(&self, is_all_over: bool) -> Duration {
        let is_cut_off = self.is_anew.get() || self.is_over.get() && !is_all_over;
        if is_cut_off { REVOKED_MAX } else { super::ENDING_MAX }
    }

    fn cut(&self) {
        self.places.borrow().close();
        if let Some(socket) = self.socket.borrow_mut().take() {
            rustix::net::shutdown(&*socket, Shutdown::Both).ok();
        }
    }

    fn is(&self, up: bool, note: String) {
        let mut state = self.state.borrow_mut();
        (state.up, state.note) = (up, note);
        state.connecting = up && self.is_up_once_it_says;
    }

    /// The process says that its platform has answered.
    pub(super) fn is_connected(&self) {
        self.state.borrow_mut().connecting = false;
    }
}

impl Daemon {
    /// Keeps a process of this program up: `greet` sends each new process its first message, `serve` answers
    /// its requests.
    pub(super) fn keep_up<Q, A, F>(
        self: &Rc<Self>,
        kept: Rc<AttachedProcess>,
        words: Vec<String>,
        greet: impl Fn(&UnixStream) -> io::Result<()> + 'static,
        serve: impl Fn(Rc<Self>, Q) -> F + 'static,
    ) where
        Q: Asking + DeserializeOwned + 'static,
        A: Serialize + Refusable,
        F: Future<Output = Result<(A, Option<OwnedFd>)>> + 'static,
    {
        let daemon = self.clone();
        spawn_local(async move {
            let name = kept.state().name;
            let log = |what: &str, why: &str| {
                daemon.log.note(&format!("{}_{what}", kept.kind), json!({ "channel": name, "why": why }));
            };
            let mut pause = PAUSE_MIN;
            while !kept.is_over.get() && !daemon.is_stopping.get() {
                let begun = Instant::now();
                let why = match daemon.attach(&kept, &words, &greet, &serve).await {
                    Ok(code) if code == Some(i32::from(exit::WRONG)) => {
                        // Its last words say why. The owner corrects the cause and tells the daemon.
                        let last = kept.state().note;
                        kept.is(false, last);
                        daemon.changed.notify_waiters();
                        return log("given_up", &kept.state().note);
                    }
                    Ok(_) => {
                        let last = kept.state().note;
                        if last.is_empty() { "its process ended".to_owned() } else { last }
                    }
                    Err(error) => format!("{error:#}"),
                };
                kept.is(false, why.clone());
                daemon.changed.notify_waiters();
                if kept.is_over.get() || daemon.is_stopping.get() {
                    return;
                }
                if kept.is_anew.take() {
                    continue;
                }
                log("ended", &why);
                pause = if begun.elapsed() > LIVED { PAUSE_MIN } else { (pause * 2).min(PAUSE_MAX) };
                sleep(pause).await;
            }
        });
    }

    /// Runs such a process to its end and returns its exit code.
    async fn attach<Q, A, F>(
        self: &Rc<Self>,
        kept: &Rc<AttachedProcess>,
        words: &[String],
        greet: impl Fn(&UnixStream) -> io::Result<()>,
        serve: &impl Fn(Rc<Self>, Q) -> F,
    ) -> Result<Option<i32>>
    where
        Q: Asking + DeserializeOwned,
        A: Serialize + Refusable,
        F: Future<Output = Result<(A, Option<OwnedFd>)>> + 'static,
    {
        self.stay()?;
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let mut child = program::again()
            .arg("--home")
            .arg(&self.home.root)
            .args(words)
            .current_dir("/")
            .process_group(0)
            .env_remove("NOTIFY_SOCKET")
            .env_remove("WATCHDOG_USEC")
            .env_remove("WATCHDOG_PID")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("no process can be started")?;
        let err = child.stderr.take().context("a process has no pipes")?;
        let group = process(child.id());
        let remarks = Rc::new(RefCell::new(Vec::new()));
        let said = spawn_local(self.clone().listen(reader(err.into())?, remarks.clone()));
        let socket = Rc::new(UnixStream::from_std(net::UnixStream::from(ours))?);
        greet(&socket)?;
        *kept.socket.borrow_mut() = Some(socket.clone());
        kept.is(true, String::new());
        self.changed.notify_waiters();
        let begun = json!({ "channel": kept.state().name, "pid": child.id() });
        self.log.note(&format!("{}_begun", kept.kind), begun);
        let places = RequestSlots::new();
        *kept.places.borrow_mut() = places.clone();
        let mut dying = pin!(ended(child));
        let mut died = None;
        loop {
            // A place comes before the next request: when too many requests wait here, the next ones wait in
            // the kernel.
            let place = tokio::select! {
                biased;
                place = places.heard.clone().acquire_owned() => place,
                status = &mut dying => {
                    died = Some(status);
                    break;
                }
            };
            let Ok(place) = place else { break };
            let Some(Packet::<Q> { number, it }) = receive(&socket).await else { break };
            let served = (!it.is_quick()).then(|| places.served.clone());
            let (socket, answering) = (socket.clone(), serve(self.clone(), it));
            spawn_local(async move {
                let _place = place;
                let _turn = match served {
                    Some(served) => match served.acquire_owned().await {
                        Err(_) => return,
                        turn => turn.ok(),
                    },
                    None => None,
                };
                let (it, fd) = match answering.await {
                    Ok((it, fd)) => (Some(it), fd),
                    Err(error) => (A::wrong(&error), None),
                };
                // A process that has ended needs no answer.
                answer(&socket, number, it, fd).await.ok();
            });
        }
        kept.socket.borrow_mut().take();
        places.close();
        kept.inbox.leave();
        drop(socket);
        // The process ends with its line; a process that does not end in time is killed.
        let status = match died {
            Some(status) => status,
            None => timeout(kept.ends_within(self.is_stopping.get()), dying).await.unwrap_or_else(|_| {
                group.map(|group| kill_process_group(group, Signal::KILL));
                None
            }),
        };
        timeout(super::ENDING_MAX, said).await.ok();
        if let Some(why) = remarks.borrow().last().and_then(|last| last.strip_prefix("error: ")) {
            why.clone_into(&mut kept.state.borrow_mut().note);
        }
        Ok(status.and_then(|status| status.code()))
    }
}

/// Sends the answer. When it is too long for a packet, sends a refusal that says so.
async fn answer<A: Serialize + Refusable>(
    socket: &UnixStream,
    number: u64,
    it: Option<A>,
    fd: Option<OwnedFd>,
) -> io::Result<()> {
    let send = async |it: Option<A>, fd: Option<OwnedFd>| {
        let Some(it) = it else { return Ok(()) };
        let (packet, fd) = (Packet { number, it }, fd.as_ref().map(|fd| fd.as_fd()));
        // When the socket has no room for the packet, it is sent later.
        socket.async_io(Interest::WRITABLE, || packet::send(socket, &packet, fd)).await
    };
    match send(it, fd).await {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            send(A::refused(format!("the answer cannot be told: {error}")), None).await
        }
        sent => sent,
    }
}

/// The next request of such a process; `None` when the process has ended, or sends something that is not a
/// request.
async fn receive<Q: DeserializeOwned>(socket: &UnixStream) -> Option<Packet<Q>> {
    loop {
        socket.readable().await.ok()?;
        let received = socket.try_io(Interest::READABLE, || packet::receive::<Packet<Q>>(socket));
        match received {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            received => return received.ok()?.map(|(packet, _)| packet),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Refusable as _, answer};
    use bailey_session::packet::{self, Packet};
    use bailey_web::Answer;
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    use std::{os::unix::net, thread};
    use tokio::net::UnixStream;

    #[tokio::test]
    async fn an_answer_of_any_length_is_answered() {
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        rustix::io::ioctl_fionbio(&ours, true).unwrap();
        let ours = UnixStream::from_std(net::UnixStream::from(ours)).unwrap();
        let hear = move || {
            let (Packet { number, it }, _) =
                packet::receive::<Packet<Answer>>(&theirs).unwrap().expect("it has ended");
            (number, it)
        };
        // The JSON form of a control character is six times as long.
        let why = "\u{1}".repeat(70 << 10);
        let wrong = Answer::wrong(&anyhow::anyhow!(why.clone())).unwrap();
        let Answer::Refused(told) = &wrong else { panic!("{wrong:?}") };
        assert!(told.starts_with("\u{1}\u{1}") && told.contains("(cut: it is 71680 bytes long)"), "{told}");
        // More answers at once than there is room for; then two that are too long to be received whole, and
        // one that fits.
        let answers: Vec<Answer> = std::iter::repeat_n(wrong, 20)
            .chain([65 << 10, 300 << 10].map(|bytes| Answer::Refused("x".repeat(bytes))))
            .chain([Answer::Done("fits".into())])
            .collect();
        let count = answers.len();
        let hearing = thread::spawn(move || (0..count).map(|_| hear()).collect::<Vec<_>>());
        for (number, it) in (0..).zip(answers.clone()) {
            answer(&ours, number, Some(it), None).await.unwrap();
        }
        let heard = hearing.join().unwrap();
        for ((number, it), (at, told)) in (0..).zip(answers).zip(heard) {
            assert_eq!(number, at);
            match told {
                Answer::Refused(why) if number == 20 || number == 21 => {
                    assert!(why.contains("too long for a packet"), "{why}");
                }
                told => assert_eq!(told, it),
            }
        }
    }
}
