//! The network door: the only place of Bailey that dials out.
//!
//! It is an executor. Everything that leaves the machine reaches it as a permitted effect, in which secrets are
//! only named; the door puts their values into headers at the last moment, so that no effect, journal entry or
//! error ever holds one. It sends to configured endpoints and nowhere else, whatever a permit says, and each secret
//! goes to the endpoints that it was configured for. It never follows a redirect and never retries; where a proxy is on
//! the way, everything goes through a tunnel.
//!
//! It refuses to be a general HTTP client: HTTP/1.1 only, no cookies, no compression, no uploads from files.
//!
//! Read [`door`] first ([`Egress`], how an effect is performed), then `request` (what is checked before anything is
//! sent), `connect` (the one client, and whom it trusts) and `proxy` (the way there).

pub mod config;
pub mod door;
pub mod forward;

mod connect;
mod failure;
mod proxy;
mod request;

pub use config::{Config, ConfigError, Endpoint};
pub use door::Egress;
pub use forward::{
    Authority, AuthorityError, BoundKey, Fetched, ForwardConfig, ForwardProxy, HostLimit, KeyForm,
};
pub use proxy::Proxies;
