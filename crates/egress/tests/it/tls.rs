//! Whom the door trusts.

use crate::{
    bench::{Bench, config, get},
    server::{Log, Step, answer, converse, serve},
};
use bailey_egress::Config;
use bailey_protocol::Status;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A server with a certificate that it signed itself, and that certificate.
async fn self_signed(name: &str) -> (String, String) {
    signed_itself(CertificateParams::new([name.to_owned()]).unwrap(), &KeyPair::generate().unwrap()).await
}

/// The same, with a certificate of this kind.
async fn signed_itself(params: CertificateParams, key: &KeyPair) -> (String, String) {
    let made = params.self_signed(key).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://127.0.0.1:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(stream) = acceptor.accept(stream).await {
                tokio::spawn(converse(stream, answer("200 OK", b"safe"), Log::default()));
            }
        }
    });
    (url, made.pem())
}

#[tokio::test]
async fn a_self_signed_certificate_is_not_trusted() {
    let (url, certificate) = self_signed("127.0.0.1").await;
    let bench = Bench::new(config(&[&url])).await;
    let seen = bench.send(get(&url)).await;
    let said = seen.failure();
    assert!(said.contains(&format!("the certificate of `{url}` is not trusted")), "{said}");
    assert!(said.contains("add its authority to the system's certificates"), "{said}");
    // The control: the same server is spoken to when its certificate is trusted.
    let trusting = Config { extra_authorities: Some(certificate), ..config(&[&url]) };
    let seen = Bench::new(trusting).await.send(get(&url)).await;
    assert_eq!((seen.status, seen.report.body.0.as_slice()), (Status::Done, b"safe".as_slice()));
}

/// Such as `openssl req -x509` makes: an authority's.
#[tokio::test]
async fn why_a_certificate_is_not_trusted_is_told_in_words() {
    let params = || CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let mut of_an_authority = params();
    of_an_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    for (params, also) in [(params(), ""), (of_an_authority, ", and is an authority's own (CA:TRUE)")] {
        let (url, _) = signed_itself(params, &KeyPair::generate().unwrap()).await;
        let seen = Bench::new(config(&[&url])).await.send(get(&url)).await;
        let said = seen.failure();
        let words =
            format!("is not trusted: it is signed by nobody whom this machine trusts (self-signed?){also}");
        assert!(said.contains(&words), "{said}");
        assert!(!said.contains("Error") && !said.contains("UnknownIssuer"), "{said}");
    }
}

#[tokio::test]
async fn a_certificate_of_another_name_is_not_trusted() {
    let (url, certificate) = self_signed("example.com").await;
    let trusting = Config { extra_authorities: Some(certificate), ..config(&[&url]) };
    let seen = Bench::new(trusting).await.send(get(&url)).await;
    let said = seen.failure();
    assert!(said.contains("is not trusted") && said.contains("it is only valid for example.com;"), "{said}");
}

#[tokio::test]
async fn https_to_a_server_that_speaks_plain_http() {
    let server = serve(vec![]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad\r\n\r\n").await.ok();
        }
    });
    let seen = Bench::new(config(&[&url])).await.send(get(&url)).await;
    assert!(seen.failure().contains("no secure connection"), "{}", seen.failure());
    drop(server);
}

#[tokio::test]
async fn a_handshake_that_hangs_runs_into_the_connect_limit() {
    let server = serve(vec![Step::Hang]).await;
    let url = server.url.replace("http:", "https:");
    let seen = Bench::new(config(&[&url])).await.send(get(&url)).await;
    assert!(seen.failure().contains("could not be reached within 0.6 s"), "{}", seen.failure());
}
