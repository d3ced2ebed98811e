//! The server: blocking, one thread for each connection, with and without TLS.

use super::{
    LARGE,
    client::{Head, send},
};
use anyhow::Result;
use rustls::{ServerConfig, ServerConnection, StreamOwned, pki_types::PrivatePkcs8KeyDer};
use std::{
    io::{BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
};

/// Two listeners on loopback, which serve until this process ends.
pub(super) struct Server {
    http: SocketAddr,
    https: SocketAddr,
    authority: String,
}

impl Server {
    pub(super) fn start() -> Result<Self> {
        let key = rcgen::KeyPair::generate()?;
        let mut ca = rcgen::CertificateParams::default();
        ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = ca.self_signed(&key)?.pem();
        let issuer = rcgen::Issuer::new(ca, key);
        let key = rcgen::KeyPair::generate()?;
        let own = rcgen::CertificateParams::new(["localhost".to_owned()])?.signed_by(&key, &issuer)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        let config = Arc::new(config.with_no_client_auth().with_single_cert(vec![own.der().clone()], key)?);
        let http = listen(serve)?;
        let https = listen(move |stream| match ServerConnection::new(config.clone()) {
            Ok(tls) => serve(StreamOwned::new(tls, stream)),
            Err(error) => Err(error.into()),
        })?;
        Ok(Self { http, https, authority })
    }

    /// The certificate of whoever vouches for it, as PEM text.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    pub(super) fn url(&self, tls: bool) -> String {
        match tls {
            true => format!("https://localhost:{}", self.https.port()),
            false => format!("http://{}", self.http),
        }
    }
}

fn listen(serve: impl Fn(TcpStream) -> Result<()> + Clone + Send + 'static) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            // Its error is the other side's, which went away.
            thread::spawn(move || stream.set_nodelay(true).ok().and_then(|()| serve(stream).ok()));
        }
    });
    Ok(address)
}

fn serve(stream: impl Read + Write) -> Result<()> {
    let mut stream = BufReader::with_capacity(64 << 10, stream);
    loop {
        let head = Head::read(&mut stream)?;
        head.body(&mut stream)?;
        let length = if head.first.contains("/large") { LARGE } else { 2 };
        let to = stream.get_mut();
        to.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").as_bytes())?;
        send(to, length)?;
        to.flush()?;
    }
}
