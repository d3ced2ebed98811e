//! The certificate authority of the door: commands trust it, so that the door can look into what they send.
//!
//! It is made anew by each process and never written down. Nobody outside of the walls trusts it.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// The most certificates that are kept.
const KEPT_MAX: usize = 256;
/// What the protocol after the handshake is called (RFC 7301).
const HTTP_1_1: &[u8] = b"http/1.1";
pub(super) const HTTP_2: &[u8] = b"h2";

/// A certificate authority that lives as long as this process.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    /// By host: what is shown in its place.
    shown: Mutex<HashMap<String, Arc<ServerConfig>>>,
}

/// No authority could be made, or no certificate by it.
#[derive(Debug, thiserror::Error)]
#[error("a certificate of the network door: {0}")]
pub struct AuthorityError(String);

impl Authority {
    /// A new one.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn new() -> Result<Self, AuthorityError> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, "Bailey's network door");
        let key = KeyPair::generate().map_err(failed)?;
        let pem = params.self_signed(&key).map_err(failed)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), pem, shown: Mutex::default() })
    }

    /// What is to be trusted inside the walls, as PEM text (RFC 7468).
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// How the door speaks in the place of a host.
    pub(super) fn in_place_of(&self, host: &str) -> Result<Arc<ServerConfig>, AuthorityError> {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = shown.get(host) {
            return Ok(known.clone());
        }
        let config = Arc::new(self.server(host)?);
        if shown.len() >= KEPT_MAX {
            shown.clear();
        }
        shown.insert(host.to_owned(), config.clone());
        Ok(config)
    }

    fn server(&self, host: &str) -> Result<ServerConfig, AuthorityError> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let mut params = CertificateParams::new([bare.to_owned()]).map_err(failed)?;
        params.distinguished_name.push(DnType::CommonName, bare);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        let chain = vec![CertificateDer::from(certificate)];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
            .map_err(failed)?;
        config.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1_1.to_vec()];
        Ok(config)
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

fn failed(error: impl fmt::Display) -> AuthorityError {
    AuthorityError(error.to_string())
}
