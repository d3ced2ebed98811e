//! The network door: the only place of Bailey that dials out.
//!
//! Everything that leaves the machine reaches it as a permitted effect, in which secrets are only named; the
//! door puts their values into headers at the last moment, so that no effect, journal entry or error ever
//! holds one, and each goes only where it was configured for. It never follows a redirect and never retries;
//! where a proxy is on the way, everything goes through a tunnel.
//!
//! It has three ways out, and an executor for each. [`Egress`] sends what Bailey itself sends, to configured
//! endpoints and nowhere else, whatever a permit says: HTTP/1.1, no cookies, no compression. [`ForwardProxy`]
//! leads to the world, for commands inside the walls and for the agent's own requests, where the rules let
//! them pass and the addresses are of the world. [`Uplink`] is a chat channel's standing way to its
//! servers, for requests, WebSockets and server-sent events.
//!
//! Read [`door`] first (how an effect is performed), then `request` (what is checked before anything is
//! sent), `connect` (the clients, and whom they trust), `proxy` (the way there), and [`forward`].

pub mod config;
pub mod door;
pub mod forward;
pub mod uplink;

mod connect;
mod failure;
mod proxy;
mod request;
mod signature;

pub use config::{Config, ConfigError, Endpoint, is_same_server};
pub use door::Egress;
pub use forward::{
    Authority, AuthorityError, BoundKey, Fetched, ForwardConfig, ForwardProxy, HostLimit, KeyForm,
    NotFetched, is_key_header, is_of_a_cloud,
};

pub use proxy::Proxies;
pub use uplink::{Uplink, UplinkEnd, UplinkError};
