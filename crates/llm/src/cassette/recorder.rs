//! Records a cassette in front of the network door.

use super::{Cassette, Exchange, Normaliser, Response};
use bailey_kernel::{BoxFuture, Executor, Io, Output, Permit, ResolveError, Route};
use bailey_protocol::{Action, Blob, HttpReport, HttpRequest, Report, SessionId, Status};
use std::{
    fs::{File, OpenOptions},
    io::{self, Seek as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// The file that is recorded to, opened before a process binds itself. What it held stays until the first
/// exchange.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    file: File,
}

impl Recording {
    /// Opens the file, mode 0600 where it is made.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        Ok(Self { path: path.into(), file })
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = &self.file;
        file.rewind()?;
        file.write_all(bytes)?;
        file.set_len(bytes.len() as u64)?;
        file.sync_all()
    }
}

/// An executor that hands everything on to another and writes each whole exchange with a model to a file.
///
/// It records one session: only the inner executor can open a permit, so the request is taken from the
/// resolution that comes before, and calls of several sessions at once could not be told apart.
pub struct Recorder {
    inner: Arc<dyn Executor>,
    recording: Recording,
    normaliser: Normaliser,
    tape: Mutex<Tape>,
}

#[derive(Debug)]
struct Tape {
    cassette: Cassette,
    asked: Option<HttpRequest>,
}

impl Recorder {
    /// A recorder in front of `inner` that starts with `cassette` (usually an empty one) and writes to
    /// `recording`.
    #[must_use]
    pub fn new(
        inner: Arc<dyn Executor>,
        cassette: Cassette,
        recording: Recording,
        normaliser: Normaliser,
    ) -> Self {
        Self { inner, recording, normaliser, tape: Mutex::new(Tape { cassette, asked: None }) }
    }

    fn note(&self, action: &Action) {
        if let Action::Model { request, .. } = action {
            self.lock().asked = Some(request.clone());
        }
    }

    /// Writes down what came of the last request. What was cut off or cancelled is no exchange.
    fn record(&self, output: &Output) -> io::Result<()> {
        let mut tape = self.lock();
        let (Some(request), Report::Http(report)) = (tape.asked.take(), output.report()) else {
            return Ok(());
        };
        if output.outcome().status != Status::Done {
            return Ok(());
        }
        let exchange =
            Exchange { request: self.normaliser.request(&request.body.0), response: self.response(report) };
        tape.cassette.exchanges.push(exchange);
        let json = tape.cassette.to_json().map_err(io::Error::other)?;
        self.recording.write(json.as_bytes())
    }

    fn response(&self, report: &HttpReport) -> Response {
        let line = |line: &[u8]| match std::str::from_utf8(line) {
            Ok(text) => Blob::from(self.normaliser.response(text).as_str()),
            Err(_) => Blob(line.to_vec()),
        };
        let kept = |(name, _): &&(String, String)| name == "content-type";
        Response {
            status: report.status,
            headers: report.headers.iter().filter(kept).cloned().collect(),
            body: report.body.0.split(|byte| *byte == b'\n').map(line).collect(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Tape> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Executor for Recorder {
    fn routes(&self) -> Vec<Route> {
        self.inner.routes()
    }

    fn resolve<'a>(
        &'a self,
        session: SessionId,
        action: Action,
    ) -> BoxFuture<'a, Result<Action, ResolveError>> {
        self.note(&action);
        self.inner.resolve(session, action)
    }

    fn perform<'a>(&'a self, permit: Permit, io: Io) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let output = self.inner.perform(permit, io).await;
            match self.record(&output) {
                Ok(()) => output,
                Err(error) => Output::failed(format!(
                    "the cassette `{}` cannot be written ({error}); choose another file to record to",
                    self.recording.path.display()
                )),
            }
        })
    }
}
