//! The clients: connections are made, trusted and reused here.

use crate::failure::Failure;
use hyper::{Uri, body::Body};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use std::{error::Error, future::Future, pin::Pin, sync::Arc, time::Duration};
use tokio::{net::TcpStream, sync::OnceCell};
use tower_service::Service;

/// How long an unused connection is kept.
const IDLE_CONNECTION: Duration = Duration::from_secs(90);

/// How many unused connections to one server are kept.
const IDLE_CONNECTIONS_MAX: usize = 4;

/// What went wrong on the way to a server.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// A connection on its way.
pub(crate) type Connecting = Pin<Box<dyn Future<Output = Result<TokioIo<TcpStream>, BoxError>> + Send>>;

/// Who makes connections: each kind of client goes its own way.
pub(crate) trait Dial:
    Service<Uri, Response = TokioIo<TcpStream>, Error = BoxError, Future = Connecting>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<T> Dial for T where
    T: Service<Uri, Response = TokioIo<TcpStream>, Error = BoxError, Future = Connecting>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// Who vouches for servers, and what is spoken with them. It is read from the system at the first `https`
/// request, not at start-up.
#[derive(Debug)]
pub(crate) struct Trust {
    extra_authorities: Option<String>,
    speaks: Speaks,
    config: OnceCell<ClientConfig>,
}

/// What is spoken inside TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    Http1,
    /// HTTP/2 where the server knows it.
    Both,
}

/// A client whose connections are made by `D` and whose requests have the body `B`.
#[derive(Debug)]
pub(crate) struct Clients<D, B> {
    dial: D,
    trust: Arc<Trust>,
    plain: OnceCell<Client<HttpsConnector<D>, B>>,
    trusting: OnceCell<Client<HttpsConnector<D>, B>>,
}

impl Trust {
    pub(crate) fn new(extra_authorities: Option<String>, speaks: Speaks) -> Arc<Self> {
        Arc::new(Self { extra_authorities, speaks, config: OnceCell::new() })
    }

    async fn config(&self) -> Result<&ClientConfig, Failure> {
        let read = || async {
            let extra = self.extra_authorities.clone();
            let roots = tokio::task::spawn_blocking(move || authorities(extra.as_deref()));
            config(roots.await.map_err(|error| Failure::Authorities(error.to_string()))??)
        };
        self.config.get_or_try_init(read).await
    }
}

impl<D: Dial, B> Clients<D, B>
where
    B: Body + Send + 'static + Unpin,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    pub(crate) fn new(dial: D, trust: Arc<Trust>) -> Self {
        Self { dial, trust, plain: OnceCell::new(), trusting: OnceCell::new() }
    }

    /// The client for `http` (which trusts no certificate at all) or for `https`.
    pub(crate) async fn get(&self, tls: bool) -> Result<&Client<HttpsConnector<D>, B>, Failure> {
        if !tls {
            return self
                .plain
                .get_or_try_init(|| async { Ok(self.client(config(RootCertStore::empty())?)) })
                .await;
        }
        let trusting = || async { Ok(self.client(self.trust.config().await?.clone())) };
        self.trusting.get_or_try_init(trusting).await
    }

    fn client(&self, tls: ClientConfig) -> Client<HttpsConnector<D>, B> {
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        let connector = match self.trust.speaks {
            Speaks::Http1 => connector.enable_http1().wrap_connector(self.dial.clone()),
            Speaks::Both => connector.enable_all_versions().wrap_connector(self.dial.clone()),
        };
        Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_CONNECTION)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .build(connector)
    }
}

fn config(roots: RootCertStore) -> Result<ClientConfig, Failure> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::Authorities(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// What makes connections of TCP.
pub(crate) fn tcp(timeout: Duration) -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(timeout));
    tcp
}

/// The system's certificate authorities (OpenSSL's places, or `SSL_CERT_FILE` and `SSL_CERT_DIR`) and the
/// extra ones. The system's are preferred to a built-in list, because whoever runs this box decides whom it
/// trusts.
fn authorities(extra: Option<&str>) -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(system.certs);
    for certificate in CertificateDer::pem_slice_iter(extra.unwrap_or_default().as_bytes()) {
        let certificate = certificate.map_err(|error| Failure::Authorities(error.to_string()))?;
        roots.add(certificate).map_err(|error| Failure::Authorities(error.to_string()))?;
    }
    if roots.is_empty() {
        let why = system.errors.first().map_or_else(|| "there are none".into(), ToString::to_string);
        return Err(Failure::Authorities(why));
    }
    Ok(roots)
}
