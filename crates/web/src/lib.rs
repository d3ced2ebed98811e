//! The page: the requests that a browser may make to a home, over HTTP/1.1.
//!
//! This crate parses requests and decides nothing. Each well-formed request becomes an [`Ask`] with the
//! *bearer* that came with it, and the process that runs this crate checks the bearer first. So the process
//! that parses the input of any browser, page or program on the machine has no power of its own.
//!
//! A bearer comes in the header `authorization` (RFC 6750) and never in a cookie: a browser sends cookies by
//! itself, also for other pages, and to every port of a host. Requests for another host, or from another
//! page, are refused as well ([`Origins`]).
//!
//! Input is bounded: connections, headers, bodies and the time that each may take. If all places are taken,
//! the connection that has asked for nothing for the longest time gives way. Output waits for its reader, and
//! a client that takes no output for long is cut off. A page that comes back names the last line that it has.

mod answer;
mod ask;
mod assets;
mod caller;
pub mod command;
mod guard;
pub mod logins;
mod packet;
mod patient;
mod places;
mod route;
mod stream;

/// Entries into private parsers, for the targets in `fuzz/`.
#[cfg(feature = "fuzz")]
pub mod fuzz {
    use crate::route;
    use hyper::{Method, Uri};

    /// The first line of a request, as `METHOD TARGET`.
    pub fn request(line: &str) {
        let Some((method, target)) = line.split_once(' ') else { return };
        let (Ok(method), Ok(uri)) = (method.parse::<Method>(), target.parse::<Uri>()) else { return };
        let found = route::read(&method, uri.path(), uri.query());
        assert!(found.is_none() || matches!(method, Method::GET | Method::HEAD | Method::POST));
    }
}

pub use ask::{Act, Answer, Ask, Code, Delivery, View, Wish};
pub use guard::Origins;

use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use patient::Patient;
use places::{Place, Places};
use std::{io, os::fd::OwnedFd, sync::Arc, time::Duration};
use stream::Streams;
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    time::sleep,
};

/// How many connections are open at once.
const CONNECTIONS_MAX: usize = 128;
/// How long the head of a request may take, which is also how long a connection is kept for the next request.
const HEAD_MAX: Duration = Duration::from_secs(20);
/// How long a client may take no output before it is cut off.
const TAKING_MAX: Duration = Duration::from_secs(30);
/// How much of a head is read, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// How long the listener pauses when no descriptor is left for a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// A question, and the sender that takes its answer. A descriptor comes with [`Answer::Opened`].
pub type PendingAsk = (Ask, oneshot::Sender<(Answer, Option<OwnedFd>)>);

/// The state that the requests of a connection share.
#[derive(Clone)]
struct Gateway {
    origins: Arc<Origins>,
    asks: mpsc::Sender<PendingAsk>,
    streams: Streams,
    place: Arc<Place>,
}

/// Serves the connections to `listener`. Questions go to `asks`. Returns when the receiver of `asks` is gone.
///
/// # Errors
/// A client cannot cause an error.
pub async fn serve(
    listener: TcpListener,
    origins: Origins,
    asks: mpsc::Sender<PendingAsk>,
) -> io::Result<()> {
    let (origins, streams) = (Arc::new(origins), Streams::default());
    let places = Places::new(CONNECTIONS_MAX);
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => {
                    sleep(PAUSE).await;
                    continue;
                }
            },
            () = asks.closed() => return Ok(()),
        };
        let place = tokio::select! {
            place = places.take() => place,
            () = asks.closed() => return Ok(()),
        };
        let Some(place) = place.map(Arc::new) else { return Ok(()) };
        // Pieces of a model's text are small, and must appear at once.
        stream.set_nodelay(true).ok();
        let (asks, origins, streams) = (asks.clone(), origins.clone(), streams.clone());
        let gateway = Gateway { origins, asks, streams, place: place.clone() };
        tokio::spawn(async move {
            let served = service_fn(|request: hyper::Request<Incoming>| {
                let gateway = gateway.clone();
                async move { Ok::<_, std::convert::Infallible>(gateway.answer(request).await) }
            });
            let mut connection = http1::Builder::new();
            connection.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX).max_buf_size(HEAD_BYTES_MAX);
            let stream = TokioIo::new(Patient::new(stream, TAKING_MAX));
            tokio::select! {
                // A connection's error concerns only its client.
                _ = connection.serve_connection(stream, served) => {}
                () = place.is_over() => {}
            }
        });
    }
}
