//! An identifier type per kind of thing, so that one cannot be handed over for another.

use alloc::string::String;
use core::fmt;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_v7 {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A UUID version 7 (RFC 9562) of this time (milliseconds since 1970) and these random bits.
            #[must_use]
            pub fn new(unix_ms: u64, random: [u8; 10]) -> Self {
                Self(uuid::Builder::from_unix_timestamp_millis(unix_ms, &random).into_uuid())
            }

            /// Reads the hyphenated form; `None` for anything else.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                Uuid::try_parse(text).ok().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    )*};
}

uuid_v7! {
    /// A conversation of one principal with one agent in one workspace.
    SessionId;
    /// One message and all that follows from it until the final answer.
    TurnId;
    /// One thing done, or tried, to the world.
    EffectId;
    /// The walls of one long-lived thing: of a session, an extension, a sub-agent.
    SandboxId;
}

/// The identifier that a model gave to a tool call; unique within one reply only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub String);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! random_bits {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// An identifier of these random bits.
            #[must_use]
            pub fn new(random: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(random))
            }

            /// Its bits.
            #[must_use]
            pub fn bytes(&self) -> [u8; 16] {
                self.0.into_bytes()
            }

            /// Reads the hyphenated form; `None` for anything else.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                Uuid::try_parse(text).ok().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    )*};
}

random_bits! {
    /// Names one question to a human. It grants something, so it is 128 random bits and nothing else.
    ApprovalId;
    /// Names one capability token in the ledger, and those that were narrowed from it: 128 random bits.
    TokenId;
}
