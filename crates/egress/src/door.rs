//! The door itself: one permitted effect in, one exchange with a server, its output streamed and reported.

use crate::{
    Config, ConfigError,
    config::{Endpoints, Origin},
    connect::{Clients, Speaks, Trust, tcp},
    failure::{Failure, innermost},
    proxy::Connector,
    request::build,
};
use bailey_kernel::{BoxFuture, Chunk, Executor, Io, Output, Permit, ResolveError, Route, Seal};
use bailey_protocol::{Action, HttpReport, HttpRequest, Outcome, Report, SessionId, Status};
use bailey_secrets::Vault;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{HeaderMap, Request, Response, body::Incoming};
use hyper_util::client::legacy::connect::capture_connection;
use std::sync::Arc;
use tokio::{
    sync::mpsc::Sender,
    time::{Instant, timeout},
};

/// The network door: the executor of [`Route::Network`].
///
/// What it reports tells how far an effect came: [`Report::Nothing`] when it was refused before anything was
/// sent, so that trying again is of no use; [`Report::Http`] with status 0 when no answer came; else with
/// what came.
#[derive(Debug)]
pub struct Egress {
    config: Config,
    endpoints: Endpoints,
    vault: Arc<Vault>,
    seal: Seal,
    connector: Connector,
    clients: Clients<Connector, Full<Bytes>>,
}

impl Egress {
    /// A door that takes the permits of the journal with this seal and the secrets of this vault.
    ///
    /// # Errors
    /// When an endpoint is no URL.
    pub fn new(config: Config, vault: Arc<Vault>, seal: Seal) -> Result<Self, ConfigError> {
        let endpoints = Endpoints::new(config.endpoints.clone())?;
        let connector = Connector::new(tcp(config.connect_timeout), Arc::new(config.proxies.ways()));
        let clients =
            Clients::new(connector.clone(), Trust::new(config.extra_authorities.clone(), Speaks::Http1));
        Ok(Self { config, endpoints, vault, seal, connector, clients })
    }

    /// Sends the request and takes in the answer. `report` holds what came, however it ends.
    async fn exchange(
        &self,
        request: HttpRequest,
        out: &Sender<Chunk>,
        report: &mut HttpReport,
    ) -> Result<(), Failure> {
        let (request, origin) = build(request, &self.endpoints, &self.vault)?;
        let answer = self.head(request, &origin, &mut report.sent).await;
        report.sent = answer.as_ref().err().is_none_or(Failure::is_after_sending);
        let (head, body) = answer?.into_parts();
        report.status = head.status.as_u16();
        report.headers = headers(&head.headers);
        // A closed channel is no error: the report still takes everything.
        out.send(Chunk::Head(report.status, report.headers.clone())).await.ok();
        self.body(body, &origin, out, &mut report.body.0).await
    }

    /// Waits for the head of the answer: so long for a connection, then so long for the first byte. `sent` is
    /// set as soon as there is a connection: whoever gives up after that leaves it so, and before it nothing
    /// has left.
    async fn head(
        &self,
        mut request: Request<Full<Bytes>>,
        origin: &Origin,
        sent: &mut bool,
    ) -> Result<Response<Incoming>, Failure> {
        let Config { connect_timeout, first_byte_timeout, .. } = self.config;
        let first_byte_timeout = self.endpoints.first_byte_timeout(origin, first_byte_timeout);
        let client = self.clients.get(origin.tls).await?;
        let proxy = self.connector.proxy(request.uri());
        let mut connection = capture_connection(&mut request);
        let connected =
            async { timeout(connect_timeout, connection.wait_for_connection_metadata()).await.is_ok() };
        let answer = client.request(request);
        tokio::pin!(answer);
        let answer = tokio::select! {
            biased;
            answer = &mut answer => answer,
            in_time = connected => {
                if !in_time {
                    return Err(Failure::ConnectTimeout(origin.clone(), connect_timeout));
                }
                *sent = true;
                let answer = timeout(first_byte_timeout, answer).await;
                self.endpoints.was_late(origin, answer.is_err());
                answer.map_err(|_| Failure::FirstByteTimeout(origin.clone(), first_byte_timeout))?
            }
        };
        answer.map_err(|error| Failure::of(origin, proxy, &error, connect_timeout))
    }

    async fn body(
        &self,
        mut body: Incoming,
        origin: &Origin,
        out: &Sender<Chunk>,
        taken: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let Config { first_byte_timeout, idle_timeout, body_bytes_max, .. } = self.config;
        // Some servers send the head at once, and read the request only then.
        let first = self.endpoints.first_byte_timeout(origin, first_byte_timeout).max(idle_timeout);
        loop {
            let limit = if taken.is_empty() { first } else { idle_timeout };
            let frame = timeout(limit, body.frame())
                .await
                .map_err(|_| Failure::IdleTimeout(origin.clone(), limit))?;
            let Some(frame) = frame else { return Ok(()) };
            let frame = frame.map_err(|error| Failure::Broken(origin.clone(), innermost(&error)))?;
            let Ok(mut bytes) = frame.into_data() else { continue };
            let room = body_bytes_max.saturating_sub(taken.len());
            let fits = bytes.len() <= room;
            bytes.truncate(room);
            taken.extend_from_slice(&bytes);
            out.send(Chunk::Body(bytes)).await.ok();
            if !fits {
                return Err(Failure::TooLarge(origin.clone(), body_bytes_max));
            }
        }
    }
}

/// Names in lower case, values with U+FFFD where they are not UTF-8.
fn headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().into(), text(value))).collect()
}

impl Executor for Egress {
    fn routes(&self) -> Vec<Route> {
        vec![Route::Network]
    }

    /// Nothing here has a path.
    fn resolve<'a>(&'a self, _: SessionId, action: Action) -> BoxFuture<'a, Result<Action, ResolveError>> {
        Box::pin(async move { Ok(action) })
    }

    fn perform<'a>(&'a self, permit: Permit, io: Io) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let request = match permit.redeem(&self.seal).map(|redeemed| redeemed.effect.action) {
                Ok(Action::Model { request, .. } | Action::Http(request)) => request,
                Ok(other) => {
                    return Output::failed(format!("the network door performs no `{}`", other.kind().name()));
                }
                Err(error) => return Output::failed(error.to_string()),
            };
            let began = Instant::now();
            let mut report =
                HttpReport { sent: false, status: 0, headers: Vec::new(), body: Vec::new().into() };
            // Dropping the exchange closes its connection.
            let status = tokio::select! {
                biased;
                () = io.cancel.cancelled() => Status::Cancelled,
                ended = self.exchange(request, &io.out, &mut report) => match ended {
                    Ok(()) => Status::Done,
                    Err(failure) if failure.is_before_sending() => return Output::failed(failure.to_string()),
                    Err(failure) => Status::Failed { reason: failure.to_string() },
                },
            };
            let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            Output::new(Outcome { status, enforced: None, duration_ms, report: Report::Http(report) })
        })
    }
}
