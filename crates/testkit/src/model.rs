//! A model server with a script, as strict as the strictest real one. It speaks real HTTP/1.1 on a loopback
//! socket, on every wire that Bailey speaks, streamed. Plain
//! threads, so that it serves tests of the binary as well.
//!
//! Which wire is spoken follows from the path that is asked: `/v1/messages` (Anthropic), `/chat/completions`
//! and `/responses` (OpenAI), `…:streamGenerateContent` (Gemini) or `/api/chat` (Ollama).

mod http;
mod script;
mod strict;
mod wire;

pub use http::Request;
use script::Author;
pub use script::{Call, Gate, Message, Reply};

use http::{Response, serve};
use std::{
    collections::VecDeque,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running model server; it stops when dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
pub(crate) struct Shared {
    script: Mutex<VecDeque<Reply>>,
    always: Mutex<Option<Reply>>,
    author: OnceLock<Author>,
    requests: Mutex<Vec<Request>>,
    /// Whether a request that real servers refuse is answered all the same.
    lenient: AtomicBool,
    came: Condvar,
    stopped: AtomicBool,
}

impl ModelServer {
    /// A server that gives these replies, one for each request, in order. When they are used up it
    /// answers 400.
    ///
    /// # Panics
    /// When no socket can be had.
    #[must_use]
    pub fn start(script: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback socket");
        let address = listener.local_addr().expect("a bound socket");
        let shared =
            Arc::new(Shared { script: Mutex::new(script.into_iter().collect()), ..Shared::default() });
        let of_thread = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if of_thread.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let shared = of_thread.clone();
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, shared }
    }

    /// A server that gives the same reply to every request.
    #[must_use]
    pub fn always(reply: Reply) -> Self {
        let server = Self::start([]);
        *lock(&server.shared.always) = Some(reply);
        server
    }

    /// A server that answers each request with what `author` makes of it: a script that can go on from any
    /// point, as after a restart.
    #[must_use]
    pub fn by(author: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let server = Self::start([]);
        server.shared.author.set(Author::new(author)).ok();
        server
    }

    /// The same, but it takes requests that real servers refuse: for tests of the requests themselves.
    #[must_use]
    pub fn lenient(self) -> Self {
        self.shared.lenient.store(true, Ordering::SeqCst);
        self
    }

    /// Where it is, such as `http://127.0.0.1:41234`: the base URL of every wire.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds a reply to the script.
    pub fn push(&self, reply: Reply) {
        lock(&self.shared.script).push_back(reply);
    }

    /// The requests that came, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.requests).clone()
    }

    /// Waits until so many requests have come.
    ///
    /// # Panics
    /// When they do not come in 20 seconds. It blocks its thread: call it from `spawn_blocking` where the
    /// other side shares that thread.
    pub fn wait_for(&self, count: usize) {
        let deadline = Instant::now() + PATIENCE;
        let mut requests = lock(&self.shared.requests);
        while requests.len() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{} of {count} requests came", requests.len());
            requests =
                self.shared.came.wait_timeout(requests, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        TcpStream::connect(self.address).ok();
    }
}

impl Shared {
    /// Records a request and says what the script answers.
    fn answer(&self, request: Request) -> Response {
        let path = request.path.clone();
        let refusal = (request.method == "POST" && !self.lenient.load(Ordering::SeqCst))
            .then(|| strict::refusal(&request))
            .flatten();
        let reply = match self.author.get() {
            _ if refusal.is_some() => {
                Reply::error(400, "invalid_request_error", &refusal.unwrap_or_default())
            }
            // A list of models is no part of the script.
            _ if request.method == "GET" => lock(&self.always).clone().unwrap_or(Reply::Silent),
            Some(author) => author.reply(&request),
            None => self.next(),
        };
        lock(&self.requests).push(request);
        self.came.notify_all();
        wire::answer(&path, reply)
    }

    fn next(&self) -> Reply {
        let next = lock(&self.script).pop_front();
        next.or_else(|| lock(&self.always).clone())
            .unwrap_or_else(|| Reply::error(400, "invalid_request_error", "the script has no more replies"))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
