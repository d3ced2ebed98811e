//! Where the requests of commands may lead: addresses of the world, and what the owner names besides.
//!
//! A name is resolved once, each of its addresses is looked at, and the connection goes to one of those: who
//! answers for the name cannot change its mind in between.

use crate::{
    ConfigError,
    config::Origin,
    connect::{BoxError, Connecting, tcp},
    proxy::{Connector, Ways},
};
use hyper::Uri;
use hyper_util::rt::TokioIo;
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};
use tower_service::Service;

/// Where clouds tell a machine its own secrets, beside all of 169.254.0.0/16: nobody names these.
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];
const METADATA_V6: [Ipv6Addr; 4] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
];

/// Why no connection is made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Barred {
    #[error(
        "`{host}` is {address}, which is no address of the world: the owner can name it in config.toml, as `[network] private = \
         [\"{host}\"]`"
    )]
    Private { host: Origin, address: IpAddr },
    #[error(
        "`{0}` is {1}, where a cloud gives a machine its own secrets: no request goes there, whatever the \
         configuration says"
    )]
    Metadata(Origin, IpAddr),
    #[error("`{0}` has no address")]
    Nowhere(Origin),
    #[error(
        "`{0}` is at another port than 80, 443 and those of `[network] private` and `tunnels` in config.toml"
    )]
    Port(Origin),
    #[error("`{0}` is this machine itself, or an address that is written as none is")]
    Here(Origin),
}

/// The owner's own places at private addresses.
#[derive(Debug, Clone, Default)]
pub(super) struct Private(Arc<[Origin]>);

impl Private {
    /// Reads them, as scheme, host and port.
    pub(super) fn new(urls: &[String]) -> Result<Self, ConfigError> {
        let origin = |url: &String| {
            let origin = url.parse().ok().as_ref().and_then(Origin::of);
            origin.ok_or_else(|| ConfigError::NoOrigin(url.clone()))
        };
        urls.iter().map(origin).collect::<Result<_, _>>().map(Self)
    }

    /// Whether what is spoken there after a `CONNECT` is plain HTTP.
    pub(super) fn is_plain(&self, host: &str, port: u16) -> bool {
        self.0.iter().any(|known| known.host == host && known.port == port && !known.tls)
    }

    fn has_port(&self, port: u16) -> bool {
        matches!(port, 80 | 443) || self.0.iter().any(|known| known.port == port)
    }

    /// Whom they name.
    pub(super) fn hosts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|known| known.host.as_str())
    }

    /// Whether it is one of them.
    pub(super) fn names(&self, host: &Origin) -> bool {
        self.0.contains(host)
    }
}

/// Connects to vetted addresses, or through the proxy that this machine's environment names: then who is
/// behind a name is that one's to find out.
#[derive(Debug, Clone)]
pub(super) struct Guarded {
    private: Private,
    tunnels: Private,
    proxies: Arc<Ways>,
    connect_timeout: Duration,
}

impl Guarded {
    /// `tunnels` are hosts that may be reached at other ports than the usual ones.
    pub(super) fn new(
        private: Private,
        tunnels: Private,
        proxies: Arc<Ways>,
        connect_timeout: Duration,
    ) -> Self {
        Self { private, tunnels, proxies, connect_timeout }
    }

    fn vet(&self, host: &Origin, addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Barred> {
        if addresses.is_empty() {
            return Err(Barred::Nowhere(host.clone()));
        }
        for address in addresses.iter().map(SocketAddr::ip) {
            if is_metadata(address) {
                return Err(Barred::Metadata(host.clone(), address));
            }
            #[cfg(feature = "controls")]
            if bailey_protocol::broken::broken("private_addresses") {
                continue;
            }
            if !is_of_the_world(address) && !self.private.names(host) {
                return Err(Barred::Private { host: host.clone(), address });
            }
        }
        Ok(addresses)
    }

    async fn connect(self, host: Origin) -> Result<TokioIo<TcpStream>, BoxError> {
        let bare = host.host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let resolved = async {
            let found: Vec<SocketAddr> = lookup_host((bare, host.port)).await?.collect();
            Ok::<_, io::Error>(found)
        };
        let found = timeout(self.connect_timeout, resolved).await??;
        let mut last: BoxError = "no address answers".into();
        for address in self.vet(&host, found)? {
            match timeout(self.connect_timeout, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    stream.set_nodelay(true).ok();
                    return Ok(TokioIo::new(stream));
                }
                Ok(Err(error)) => last = error.into(),
                Err(elapsed) => last = elapsed.into(),
            }
        }
        Err(last)
    }
}

impl Service<Uri> for Guarded {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Connecting;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, destination: Uri) -> Connecting {
        let this = self.clone();
        Box::pin(async move {
            let host = Origin::of(&destination).ok_or("no plain host")?;
            // This process is bound to these, but a proxy is not.
            if !this.private.has_port(host.port) && !this.tunnels.names(&host) {
                return Err(Barred::Port(host).into());
            }
            // The owner's own places lie beside this machine, not behind the proxy.
            if this.private.names(&host) || matches!(this.proxies.to(&destination), Ok(None)) {
                return this.connect(host).await;
            }
            // An address says by itself where it leads, and so does this machine's own name.
            if let Ok(address) = host.host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
                this.vet(&host, vec![SocketAddr::new(address, host.port)])?;
            } else if is_here_or_odd(&host.host) {
                return Err(Barred::Here(host).into());
            }
            Connector::new(tcp(this.connect_timeout), this.proxies).call(destination).await
        })
    }
}

/// Whether a name is this machine's own, or a number that some resolvers take for an address.
fn is_here_or_odd(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    last == "localhost" || last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a URL names an address where a cloud tells a machine its own secrets: no request goes there,
/// whoever names it.
#[must_use]
pub fn is_of_a_cloud(url: &str) -> bool {
    let host = url.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default();
    host.trim_start_matches('[').trim_end_matches(']').parse().is_ok_and(is_metadata)
}

/// Whether a host, as a URL spells it, is none of the world by its name alone.
pub(super) fn is_private(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    address.map_or_else(|_| is_here_or_odd(host), |address| !is_of_the_world(address))
}

/// Whether a cloud tells a machine its own secrets there, also where that address is wrapped in another one.
fn is_metadata(address: IpAddr) -> bool {
    let is_one = |address: &Ipv4Addr| address.is_link_local() || METADATA_V4.contains(address);
    match address {
        IpAddr::V4(address) => is_one(&address),
        IpAddr::V6(address) => METADATA_V6.contains(&address) || wrapped(address).iter().any(is_one),
    }
}

/// Addresses of version 4 that one of version 6 may stand for (RFC 4291, 2.5.5; RFC 3056; RFC 6052, 2.2; RFC
/// 7915; RFC 8215).
fn wrapped(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let bytes = address.octets();
    let at = |places: [usize; 4]| {
        let [a, b, c, d] = places.map(|place| bytes.get(place).copied().unwrap_or_default());
        Ipv4Addr::new(a, b, c, d)
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            vec![at([12, 13, 14, 15])]
        }
        [0x2002, ..] => vec![at([2, 3, 4, 5])],
        // How long the prefix is there, is a network's own.
        [0x64, 0xff9b, 1, ..] => {
            vec![at([6, 7, 9, 10]), at([7, 9, 10, 11]), at([9, 10, 11, 12]), at([12, 13, 14, 15])]
        }
        _ => Vec::new(),
    }
}

/// Whether an address is one of the world: not this machine's, a private network's, a link's, or one kept for
/// other uses (RFC 6890 and the registries that follow it), also where it is wrapped in another one.
fn is_of_the_world(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_of_the_world_v4(address),
        IpAddr::V6(address) => {
            let [first, second, third, ..] = address.segments();
            // Of version 6 only 2000::/3 is given out; wrapped addresses stand elsewhere, but for 6to4 and
            // Teredo.
            match (first, second) {
                (0x2002, _) => {
                    let [high, low] = second.to_be_bytes();
                    let [third_high, third_low] = third.to_be_bytes();
                    is_of_the_world_v4(Ipv4Addr::new(high, low, third_high, third_low))
                }
                (0x2001, 0..=0x01ff | 0x0db8) | (0x3fff, 0..=0x0fff) => false,
                _ => first & 0xe000 == 0x2000,
            }
        }
    }
}

fn is_of_the_world_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_near = matches!(
        (a, b),
        (0 | 10 | 127, _) | (100, 64..=127) | (169, 254) | (172, 16..=31) | (192, 168) | (198, 18..=19)
    );
    let is_kept =
        matches!((a, b, c), (224.., ..) | (192, 0, 0 | 2) | (192, 88, 99) | (198, 51, 100) | (203, 0, 113));
    !is_near && !is_kept
}

#[cfg(test)]
mod tests;
