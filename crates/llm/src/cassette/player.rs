//! Plays a cassette in the network door's place.

use super::{Cassette, Exchange, Normaliser, Response, difference::difference};
use bailey_kernel::{BoxFuture, Chunk, Executor, Io, Output, Permit, ResolveError, Route, Seal};
use bailey_protocol::{Action, Blob, HttpReport, HttpRequest, Outcome, Report, SessionId, Status};
use bytes::Bytes;
use std::sync::{Mutex, PoisonError};

/// How many chunks a body is handed over in, so that reading in pieces is exercised.
const CHUNKS: usize = 4;

/// An executor that answers model calls from a cassette, in order, and refuses everything else. The first
/// request that is not the recorded one stops it for good.
#[derive(Debug)]
pub struct Player {
    cassette: Cassette,
    normaliser: Normaliser,
    seal: Seal,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: usize,
    failed: Option<String>,
}

impl Player {
    /// A player at the cassette's start. `seal` is that of the journal whose permits it takes.
    #[must_use]
    pub fn new(cassette: Cassette, normaliser: Normaliser, seal: Seal) -> Self {
        Self { cassette, normaliser, seal, state: Mutex::default() }
    }

    /// How many exchanges were not played yet.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.cassette.exchanges.len().saturating_sub(self.lock().next)
    }

    /// The response to this request, when it is the recorded one.
    fn play(&self, request: &HttpRequest) -> Result<HttpReport, String> {
        let mut state = self.lock();
        if let Some(reason) = &state.failed {
            return Err(reason.clone());
        }
        match self.compare(state.next, request) {
            Ok(response) => {
                state.next += 1;
                Ok(self.report(response))
            }
            Err(reason) => {
                state.failed = Some(reason.clone());
                Err(reason)
            }
        }
    }

    fn compare(&self, place: usize, request: &HttpRequest) -> Result<&Response, String> {
        let (number, all) = (place + 1, self.cassette.exchanges.len());
        let Some(Exchange { request: expected, response }) = self.cassette.exchanges.get(place) else {
            return Err(format!(
                "the cassette is at its end: exchange {number} was asked for and it holds {all}; the session took \
                 more model calls than the recorded one, record it again if that is meant"
            ));
        };
        match difference(expected, &self.normaliser.request(&request.body.0)) {
            None => Ok(response),
            Some((place, lines)) => Err(format!(
                "exchange {number} of {all} differs from the cassette at {place}; record it again if that is meant \
                 (- recorded, + asked now)\n{lines}"
            )),
        }
    }

    fn report(&self, response: &Response) -> HttpReport {
        let line = |line: &Blob| match std::str::from_utf8(&line.0) {
            Ok(text) => self.normaliser.replayed(text).into_bytes(),
            Err(_) => line.0.clone(),
        };
        let body = response.body.iter().map(line).collect::<Vec<_>>().join(&b'\n');
        HttpReport {
            sent: true,
            status: response.status,
            headers: response.headers.clone(),
            body: Blob(body),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Executor for Player {
    fn routes(&self) -> Vec<Route> {
        vec![Route::Network]
    }

    fn resolve<'a>(&'a self, _: SessionId, action: Action) -> BoxFuture<'a, Result<Action, ResolveError>> {
        Box::pin(async move { Ok(action) })
    }

    fn perform<'a>(&'a self, permit: Permit, io: Io) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let action = match permit.redeem(&self.seal) {
                Ok(redeemed) => redeemed.effect.action,
                Err(error) => return Output::failed(error.to_string()),
            };
            let Action::Model { request, .. } = action else {
                return Output::failed(
                    "a cassette answers model calls only; nothing else leaves this machine",
                );
            };
            match self.play(&request) {
                Ok(report) => stream(report, &io).await,
                Err(reason) => Output::failed(reason),
            }
        })
    }
}

/// Hands the response over as the network door would: head first, then the body in pieces.
async fn stream(report: HttpReport, io: &Io) -> Output {
    let body = &report.body.0;
    let size = body.len().div_ceil(CHUNKS).max(1);
    let head = Chunk::Head(report.status, report.headers.clone());
    let pieces = body.chunks(size).map(|piece| Chunk::Body(Bytes::copy_from_slice(piece)));
    let mut status = Status::Done;
    for chunk in std::iter::once(head).chain(pieces) {
        tokio::select! {
            biased;
            () = io.cancel.cancelled() => {
                status = Status::Cancelled;
                break;
            }
            // Nobody listens any more: the report still holds everything.
            _ = io.out.send(chunk) => {}
        }
    }
    Output::new(Outcome { status, enforced: None, duration_ms: 0, report: Report::Http(report) })
}
