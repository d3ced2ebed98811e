//! The one client: connections are made, trusted and reused here.

use crate::{
    Config,
    failure::Failure,
    proxy::{self, Connector},
};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::{
        legacy::{Client, connect::HttpConnector},
        proxy::matcher::Matcher,
    },
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use std::{sync::Arc, time::Duration};
use tokio::sync::OnceCell;

/// How long an unused connection is kept.
const IDLE_CONNECTION: Duration = Duration::from_secs(90);

/// How many unused connections to one server are kept.
const IDLE_CONNECTIONS_MAX: usize = 4;

pub(crate) type HttpsClient = Client<HttpsConnector<Connector>, Full<Bytes>>;

/// The client. Who is trusted is read from the system at the first `https` request, not at start-up.
#[derive(Debug)]
pub(crate) struct Clients {
    connect_timeout: Duration,
    extra_authorities: Option<String>,
    proxies: Arc<Matcher>,
    plain: OnceCell<HttpsClient>,
    trusting: OnceCell<HttpsClient>,
}

impl Clients {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            connect_timeout: config.connect_timeout,
            extra_authorities: config.extra_authorities.clone(),
            proxies: Arc::new(config.proxies.matcher()),
            plain: OnceCell::new(),
            trusting: OnceCell::new(),
        }
    }

    /// The proxy on the way to this place, without a password.
    pub(crate) fn proxy(&self, destination: &Uri) -> Option<String> {
        let proxy = proxy::on_the_way(&self.proxies, destination)?;
        Some(proxy.uri().to_string().trim_end_matches('/').to_owned())
    }

    /// The client for `http` (which trusts no certificate at all) or for `https`.
    pub(crate) async fn get(&self, tls: bool) -> Result<&HttpsClient, Failure> {
        if !tls {
            return self.plain.get_or_try_init(|| async { self.client(RootCertStore::empty()) }).await;
        }
        let trusting = || async {
            let extra = self.extra_authorities.clone();
            let roots = tokio::task::spawn_blocking(move || authorities(extra.as_deref()));
            self.client(roots.await.map_err(|error| Failure::Authorities(error.to_string()))??)
        };
        self.trusting.get_or_try_init(trusting).await
    }

    fn client(&self, roots: RootCertStore) -> Result<HttpsClient, Failure> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Failure::Authorities(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(self.connect_timeout));
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
        Ok(Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_CONNECTION)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .build(connector.wrap_connector(Connector::new(tcp, self.proxies.clone()))))
    }
}

/// The system's certificate authorities (OpenSSL's places, or `SSL_CERT_FILE` and `SSL_CERT_DIR`) and the extra
/// ones. The system's are preferred to a built-in list, because whoever runs this box decides whom it trusts.
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
