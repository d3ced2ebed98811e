//! The vocabulary of Bailey: the types that front ends, the gate, the walls and the journal exchange.
//!
//! Everything here is plain data. The crate compiles without the standard library and does no I/O. A value
//! of these types *proves* nothing, because any code can make one. A type that proves something (`Allowed`,
//! `Permit`, `Observation`) lives in the crate that checks it.
//!
//! Read [`action`] first: an [`Action`] is one thing to be done to the world. An [`Effect`] is an action
//! with its circumstances, and [`Sealed`] is an effect serialised once, so that Bailey decides, shows,
//! approves, journals and performs the same bytes.
//!
//! JSON follows one rule book: fields in the type's order, no floats, 64-bit numbers as decimal strings,
//! times as RFC 3339 in UTC, digests in lower-case hexadecimal, bytes as a string where they are UTF-8 and
//! as `{"base64": …}` where they are not.
#![no_std]

extern crate alloc;

pub mod action;
pub mod blob;
#[cfg(feature = "controls")]
pub mod broken;
pub mod digest;
pub mod effect;
pub mod event;
pub mod exit;
pub mod history;
pub mod id;
pub mod image;
pub mod label;
pub mod message;
pub mod money;
pub mod number;
pub mod op;
pub mod outcome;
pub mod part;
pub mod path;
pub mod sent;
pub mod spell;
pub mod tier;
pub mod wall;

pub use action::{
    AGENT_FILE_BYTES_MAX, Action, Adaptation, Amendment, Command, FileChange, HeaderValue, HttpRequest, Kind,
    Limits, Marked, Merge, MergeFile, MergeKind, Portrait, Relay, ToolEffect, ToolUse, Uplink, UplinkServer,
    WEBSOCKET, authority, shell_word,
};
pub use blob::Blob;
pub use digest::{Digest, Hasher};
pub use effect::{Cost, Effect, Role, Sealed};
pub use event::{
    Answer, Card, CardPart, ContextSize, Event, Fault, Happening, Origin, OriginKind, PathCount, PinnedLine,
    RecalledLine, SessionLine, Usage, Verdict,
};
pub use history::{Branch, Commit, Tip, TipResult};
pub use id::{ApprovalId, CallId, EffectId, SandboxId, SessionId, TokenId, TurnId};
pub use image::{IMAGES_BYTES_MAX, Image, ImageKind};
pub use jiff::Timestamp;
pub use label::{Integrity, Labels, Secrecy};
pub use message::{Inbound, Speaker, ToolCall, ToolSpec};
pub use money::{Money, MoneyError};
pub use number::Seq;
pub use op::{Op, View};
pub use outcome::{
    CallReport, ChangedFile, DiffReport, ExecReport, FOUND_BYTES_MAX, FileDiff, FileKind, FileReport,
    FileState, HttpReport, ListReport, Listed, MergeResult, MergeState, Outcome, Outside, PageReport,
    ProcessReport, RelayReport, Report, SearchHit, SearchReport, StatReport, Status, Stream, Touched,
};
pub use part::{Part, SPLICES_MAX, Splice, file_state};
pub use path::{WsPath, quoted};
pub use sent::{INBOX, SENT_BYTES_MAX, SENT_FILES_MAX, SentFile};
pub use tier::{Level, Tier, Tiers};
pub use wall::{Enforced, Isolation, Profile, Wall};
