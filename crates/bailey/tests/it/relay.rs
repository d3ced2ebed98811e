//! What stands between Bailey and a model's server: TLS with a certificate of some kind, a proxy, a
//! connection that dies while nobody looks. Each is a listener on loopback in front of a server, and ends
//! with its value.

use bailey_testkit::ModelServer;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy, copy_bidirectional, sink},
    net::{TcpListener, TcpStream},
    sync::{oneshot, watch},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto, pki_types::PrivatePkcs8KeyDer},
};

/// What `ann:secret` is in a header (RFC 7617).
const PASSWORD: &str = "proxy-authorization: basic yw5uonnly3jlda==";

/// A listener; it ends when this does.
struct Listener {
    address: SocketAddr,
    _until: oneshot::Sender<()>,
}

impl Listener {
    /// Serves each connection that comes by a task of its own, on a thread of its own.
    fn start<W: Future<Output = ()> + Send + 'static>(
        serve: impl Fn(TcpStream) -> W + Send + 'static,
    ) -> Self {
        let (until, ended) = oneshot::channel();
        let (address, listens) = mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                address.send(listener.local_addr().unwrap()).unwrap();
                let accepting = async {
                    while let Ok((stream, _)) = listener.accept().await {
                        tokio::spawn(serve(stream));
                    }
                };
                tokio::select! { () = accepting => {}, _ = ended => {} }
            });
        });
        Self { address: listens.recv().unwrap(), _until: until }
    }
}

/// The address of a scripted model.
pub(crate) fn of(server: &ModelServer) -> SocketAddr {
    server.base_url().trim_start_matches("http://").parse().unwrap()
}

/// An authority of its own, and a server with a certificate by it.
pub(crate) struct Tls {
    listener: Listener,
    /// The authority's certificate, as SSL_CERT_FILE wants it.
    pub(crate) authority: PathBuf,
}

impl Tls {
    /// A server of this name, whose certificate holds from the first of January of one year to that of
    /// another, in front of this one; the authority's certificate is written into `folder`.
    pub(crate) fn start(name: &str, years: (i32, i32), server: SocketAddr, folder: &Path) -> Self {
        Self::offering(&[], name, years, server, folder)
    }

    /// The same, which offers these protocols (ALPN, RFC 7301). What it is asked for is passed on all the
    /// same.
    pub(crate) fn offering(
        protocols: &[&str],
        name: &str,
        (from, to): (i32, i32),
        server: SocketAddr,
        folder: &Path,
    ) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut ca = rcgen::CertificateParams::default();
        ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = folder.join(format!("authority-{from}-{to}.pem"));
        std::fs::write(&authority, ca.self_signed(&key).unwrap().pem()).unwrap();
        let issuer = rcgen::Issuer::new(ca, key);
        let key = rcgen::KeyPair::generate().unwrap();
        let mut own = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
        own.not_before = rcgen::date_time_ymd(from, 1, 1);
        own.not_after = rcgen::date_time_ymd(to, 1, 1);
        let certificate = own.signed_by(&key, &issuer).unwrap().der().clone();
        let mut config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], PrivatePkcs8KeyDer::from(key.serialize_der()).into())
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = Listener::start(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut server = TcpStream::connect(server).await.unwrap();
                copy_bidirectional(&mut stream, &mut server).await.ok();
            }
        });
        Self { listener, authority }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.address
    }
}

/// A proxy of which a tunnel is asked.
pub(crate) struct Proxy {
    listener: Listener,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// One whose tunnels all lead to this address, whatever name is asked for; it may want `ann` and her
    /// password `secret`.
    pub(crate) fn start(to: SocketAddr, wants_password: bool) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heads = asked.clone();
        let listener = Listener::start(move |mut stream| {
            let heads = heads.clone();
            async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { return };
                    head.push(byte);
                }
                let head = String::from_utf8(head).unwrap().to_lowercase();
                let is_let_in = !wants_password || head.contains(PASSWORD);
                let is_tunnel = head.starts_with("connect ");
                heads.lock().unwrap().push(head);
                if !is_let_in || !is_tunnel {
                    let refused = b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
                    stream.write_all(refused).await.ok();
                    return;
                }
                stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await.ok();
                let mut server = TcpStream::connect(to).await.unwrap();
                copy_bidirectional(&mut stream, &mut server).await.ok();
            }
        });
        Self { listener, asked }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.address
    }

    /// The heads of what was asked, in lower case.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// How a connection ends while nobody looks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Death {
    /// The other side says that it knows of none.
    #[default]
    Reset,
    /// The other side says nothing any more, as when a router on the way has forgotten it.
    Silence,
}

/// The way to a model, on which connections die.
pub(crate) struct Mortal {
    listener: Listener,
    death: watch::Sender<Death>,
    connections: Arc<AtomicUsize>,
}

impl Mortal {
    pub(crate) fn start(server: &ModelServer) -> Self {
        let server = of(server);
        let (death, _) = watch::channel(Death::default());
        let connections = Arc::new(AtomicUsize::new(0));
        let (deaths, count) = (death.clone(), connections.clone());
        let listener = Listener::start(move |mut stream| {
            count.fetch_add(1, Ordering::SeqCst);
            let mut death = deaths.subscribe();
            async move {
                let mut server = TcpStream::connect(server).await.unwrap();
                tokio::select! {
                    _ = copy_bidirectional(&mut stream, &mut server) => return,
                    _ = death.changed() => {}
                }
                let death = *death.borrow();
                match death {
                    Death::Reset => stream.set_zero_linger().unwrap(),
                    Death::Silence => {
                        copy(&mut stream, &mut sink()).await.ok();
                    }
                }
            }
        });
        Self { listener, death, connections }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.listener.address)
    }

    /// Every connection that is there dies; later ones live.
    pub(crate) fn die(&self, how: Death) {
        self.death.send_replace(how);
    }

    /// How many connections were made.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}
