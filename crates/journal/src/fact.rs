//! What the journal can say: one variant for each kind of entry, each with its type name and version.
//!
//! Long or erasable text (messages, arguments, outputs) is the entry's *payload* and lies beside the chain.

use crate::{
    Masked, Person, Sent, Terms,
    budget::BudgetScope,
    checkpoint::{Checkpoint, PublicKey},
};
use bailey_protocol::{
    ApprovalId, CallId, Cost, Digest, EffectId, Enforced, Image, ImageKind, Kind, Labels, Role, SessionId,
    Speaker, Status, Timestamp, TokenId, TurnId, Usage, Verdict, WsPath,
    event::Answer,
    number::{Seq, decimal},
};
use serde::{Deserialize, Serialize};

/// The version of the entries' shape. Readers keep unknown fields and refuse other versions.
pub const ENTRY_VERSION: u32 = 1;

/// Why an effect was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// It is what a tool call came to.
    Act,
    /// A plan needed to read something first.
    Need,
    /// Bailey's own, or the owner's, outside any tool call.
    Own,
}

/// How the gate came to let an effect through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Admitted {
    /// The rules allow it.
    Allowed,
    /// A human approved it.
    Approved,
}

/// The capability token that an effect was asked under, and the counts that it was a use of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Under {
    /// The token.
    pub token: TokenId,
    /// The names of the counts: the token's own as it was minted, and those of its narrowings.
    pub counts: Vec<Digest>,
}

/// How an extension failed to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtensionFailure {
    /// It took too long. It lives, and may answer the next question.
    Late,
    /// It ended, did not start, or took no question.
    Crashed,
    /// What it wrote was no answer to what it was asked; it was ended.
    Garbled,
}

impl ExtensionFailure {
    /// Whether it counts as a crash.
    #[must_use]
    pub fn is_crash(self) -> bool {
        matches!(self, Self::Crashed | Self::Garbled)
    }
}

/// What a session is bound to for good, by the owner's word when it began: whatever its agent does, it does
/// by a token of this scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confined {
    /// Who acts in it, for people.
    pub holder: String,
    /// The scope, as the owner wrote it.
    pub may: Vec<String>,
}

/// The session that opened another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// Which.
    pub session: SessionId,
    /// The tokens that the other one may use up of its budget.
    #[serde(with = "decimal")]
    pub part: u64,
}

/// An archive: entries of sessions that are in no table any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveFile {
    /// Its name in the folder of archives.
    pub name: String,
    /// The digest of its bytes.
    pub digest: Digest,
    /// How long it is, in bytes.
    #[serde(with = "decimal")]
    pub bytes: u64,
    /// How many entries it holds.
    #[serde(with = "decimal")]
    pub entries: u64,
    /// The number of the first of them.
    pub first: Seq,
    /// The number of the last of them; between the two lie others that are elsewhere.
    pub last: Seq,
}

/// What could not be brought over from a torn database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// The digest of the torn file; what the disk did not give of it counts as zeros.
    pub torn: Digest,
    /// The digest of the log beside it, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Digest>,
    /// The last entry that was brought over. Each up to it was.
    pub kept: Seq,
    /// The last entry that anything still names; where it is the one before, none is known to be lost.
    pub known: Seq,
    /// Entries whose payloads are lost, each with the last of its row.
    pub payloads: Vec<(Seq, Seq)>,
    /// The newest checkpoint that is about more entries than were brought over: so many were there when it
    /// was signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Checkpoint>,
    /// How many checkpoints of this journal were found and not brought over.
    pub checkpoints: u32,
    /// The first keys of lines of which no checkpoint was brought over, though an entry names them.
    pub lines: Vec<PublicKey>,
}

impl Loss {
    /// Whether an entry's payload is among what was lost.
    #[must_use]
    pub fn has(&self, number: u64) -> bool {
        self.payloads.iter().any(|(first, last)| (first.0..=last.0).contains(&number))
    }

    /// How many payloads were lost.
    #[must_use]
    pub fn payloads(&self) -> u64 {
        self.payloads.iter().map(|(first, last)| last.0.saturating_sub(first.0).saturating_add(1)).sum()
    }
}

/// What an entry says. Its payload, where it has one, is named in each variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
#[non_exhaustive]
pub enum Fact {
    /// The first entry.
    Genesis {
        /// The program that made the journal, with its version.
        program: String,
        /// 128 random bits in hexadecimal: no two journals start alike.
        nonce: String,
    },
    /// A session begins.
    SessionOpened {
        /// The project.
        workspace: WsPath,
        /// Whose session it is.
        principal: String,
        /// The model it starts with, `provider/model`.
        model: String,
    },
    /// A session begins as another one stood. Copies of that one's messages, replies and results follow.
    SessionForked {
        /// The other session.
        from: SessionId,
        /// The last entry of it that counts.
        at: Seq,
        /// The project.
        workspace: WsPath,
        /// Whose session it is.
        principal: String,
        /// The model it starts with, `provider/model`.
        model: String,
    },
    /// A sub-agent's conversation begins. What it does is done in its parent's session. Payload: its task.
    Delegated {
        /// The session of whoever gave the task, and what the sub-agent may use up of its budget.
        parent: Parent,
        /// By what it acts.
        token: TokenId,
        /// The project.
        workspace: WsPath,
        /// The model that it asks first, `provider/model`.
        model: String,
        /// What led to the task.
        labels: Labels,
    },
    /// The owner removed a session: its payloads are erased, this entry's chain stays.
    SessionRemoved {
        /// How many payloads were erased.
        payloads: u32,
    },
    /// A process took a session up again.
    SessionResumed {
        /// The model it goes on with.
        model: String,
    },
    /// Less than namespaces stands between the session's effects and the host, from here to where it is
    /// opened again.
    Walls {
        /// What the outcomes say: `landlock`, or `none`.
        backend: String,
    },
    /// The model is told of these tools of peers from here on. Payload: the tools, a list in JSON.
    Offered {
        /// The digest of the list, before keys were taken out of it.
        digest: Digest,
    },
    /// Who works in the session: one of the home's named agents.
    Agent {
        /// Its name.
        agent: String,
    },
    /// What the session's agent may: a token of this scope is all that it acts by.
    Confined(Confined),
    /// These rules are in force from here on.
    PolicyAdopted {
        /// Over all rules.
        policy: Digest,
    },
    /// The owner stopped everything in this home: nothing begins any more. Payload: why.
    Stopped,
    /// The owner lets things begin again.
    Released,
    /// What came before was brought back from a copy: what the home had after it is not here, and no yes of
    /// before counts. Payload: which.
    Restored,
    /// What came before was read from a torn database, entry by entry: what was lost of it. No yes of before
    /// counts. Payload: where the torn one is kept.
    Salvaged(Box<Loss>),
    /// A capability token was minted. Payload: what it is for.
    TokenMinted {
        /// Its name in the ledger.
        token: TokenId,
        /// The rules that it goes with.
        policy: Digest,
        /// How many operations it is good for.
        #[serde(with = "bailey_protocol::number::decimal")]
        operations: u64,
        /// Until when.
        expires: Timestamp,
        /// Who gets it, for people.
        holder: String,
    },
    /// A capability token was narrowed for somebody, which takes nothing from whoever had it. Payload: by
    /// what.
    TokenNarrowed {
        /// Its name in the ledger, which it shares with what it was narrowed from.
        token: TokenId,
        /// The name of its own count, the last of those that an effect under it names.
        count: Digest,
        /// Who gets it, for people.
        holder: String,
    },
    /// A capability token is over, and all that were narrowed from it.
    TokenEnded {
        /// Its name in the ledger.
        token: TokenId,
    },
    /// An extension of the policy gave no answer that counts. Payload: what it last wrote to its standard
    /// error.
    ExtensionFailed {
        /// Its name.
        extension: String,
        /// How.
        failure: ExtensionFailure,
    },
    /// An extension is not asked any more, which denies its kinds: it crashed a second time too soon.
    ExtensionDisabled {
        /// Its name.
        extension: String,
    },
    /// The owner has an extension asked again.
    ExtensionEnabled {
        /// Its name.
        extension: String,
    },
    /// A person's message was accepted. Payload: the text.
    Accepted {
        /// The turn that it starts or joins.
        turn: TurnId,
        /// Where it came from.
        labels: Labels,
        /// Who said it, where that is not the owner at a terminal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Speaker>,
        /// Its name where it was said, where it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// A picture came with the message that is accepted next. Payload: its bytes.
    Image {
        /// How it is written.
        kind: ImageKind,
        /// Where it came from.
        labels: Labels,
    },
    /// An effect is about to happen. Payload: the effect (of a model call: without the body).
    Intent {
        /// What kind.
        kind: Kind,
        /// One line for people.
        target: String,
        /// The digest of the effect's real bytes.
        digest: Digest,
        /// How it was let through.
        admitted: Admitted,
        /// The rules' reasons.
        reasons: Vec<String>,
        /// The question that a human said yes to.
        approval: Option<ApprovalId>,
        /// Why it was asked for.
        purpose: Purpose,
        /// The tool call that it serves.
        call: Option<CallId>,
        /// The effect inside which it runs.
        parent: Option<EffectId>,
        /// Who asks.
        role: Role,
        /// What led to it.
        labels: Labels,
        /// What is reserved.
        reserved: Cost,
        /// What it sends out; older journals lack it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<Sent>,
        /// The session that pays, where that is a sub-agent's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payer: Option<SessionId>,
        /// The token that it was asked under.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        under: Option<Under>,
    },
    /// The gate refused. Payload: the effect.
    Denied {
        /// What kind.
        kind: Kind,
        /// One line for people.
        target: String,
        /// The digest of the effect's real bytes.
        digest: Digest,
        /// Why.
        reasons: Vec<String>,
        /// The tool call that wanted it.
        call: Option<CallId>,
        /// Who asked.
        role: Role,
        /// What led to it.
        labels: Labels,
        /// The token that it was asked under, and that it used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        under: Option<Under>,
    },
    /// Another program asked whether it may use a tool of its own, which this journal will see no more of
    /// than it reports. Payload: the effect.
    Judged {
        /// The tool.
        tool: String,
        /// The digest of the effect's real bytes.
        digest: Digest,
        /// What it was told: allowed; to ask a human of its own; or denied.
        verdict: Verdict,
        /// Why.
        reasons: Vec<String>,
        /// Who asked.
        role: Role,
        /// What led to it.
        labels: Labels,
        /// The token that it was asked under, and that it used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        under: Option<Under>,
    },
    /// Another program says that it used a tool of its own. What came of that is known by its digest alone.
    Reported {
        /// The tool.
        tool: String,
        /// What it was told when it asked: after a question it was approved there, and not here. None where
        /// it did not ask.
        after: Option<Verdict>,
        /// The digest of what the tool brought, past the screen.
        output: Digest,
        /// How many bytes it brought.
        #[serde(with = "decimal")]
        bytes: u64,
        /// How many secrets the screen took out.
        redacted: u32,
        /// Where it came from.
        labels: Labels,
    },
    /// An effect ended. Payload: the outcome.
    Outcome {
        /// How.
        #[serde(flatten)]
        status: Status,
        /// The exit code of a command.
        exit: Option<i32>,
        /// What the walls were.
        enforced: Option<Enforced>,
        /// Milliseconds.
        duration_ms: u32,
        /// What it used up.
        used: Cost,
    },
    /// The owner wants a process in the background to end.
    EndAsked {
        /// Who, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        person: Option<Person>,
    },
    /// A human is asked. Payload: the card.
    Asked {
        /// The question.
        approval: ApprovalId,
        /// The digest of the effect that waits; of the card where none does.
        digest: Digest,
        /// The digest of its action alone, which a yes for the session is about; older journals lack it.
        #[serde(default)]
        action: Option<Digest>,
        /// One line for people.
        target: String,
        /// The tool call that waits.
        call: Option<CallId>,
        /// When it runs out and counts as a no; older journals lack it.
        #[serde(default)]
        until: Option<Timestamp>,
        /// What an answer can be and covers.
        #[serde(flatten)]
        terms: Terms,
        /// The question that ran out, and is asked once more with this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        again: Option<ApprovalId>,
    },
    /// A question is settled. Payload: the reason.
    Answered {
        /// The question.
        approval: ApprovalId,
        /// The answer.
        answer: Answer,
        /// Who: `owner`, or `bailey` where nobody could be asked.
        by: String,
        /// The person; older journals lack it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        person: Option<Person>,
    },
    /// Nobody has answered a question, and it is taken further.
    Escalated {
        /// The question.
        approval: ApprovalId,
        /// Which step it is, from 1.
        step: u32,
        /// Whether a program of the owner's was asked to tell somebody.
        told: bool,
    },
    /// A tool call's result, as the model sees it. Payload: the text.
    Observation {
        /// The call.
        call: CallId,
        /// The tool's name as the model wrote it.
        tool: String,
        /// Whether the tool did what it was asked.
        ok: bool,
        /// How many secrets the screen took out.
        redacted: u32,
        /// Which known ones were among them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        masked: Option<Masked>,
        /// Where it came from.
        labels: Labels,
        /// The question whose answer the real result waits for: this one is for now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waits: Option<ApprovalId>,
    },
    /// A model's reply. Payload: the reply, verbatim.
    Reply {
        /// The provider that can read it.
        provider: String,
        /// The model.
        model: String,
        /// The join of its context.
        labels: Labels,
    },
    /// A person's words that stay in the context whatever is summarised. Payload: the text.
    Pinned {
        /// Where they came from.
        labels: Labels,
    },
    /// A pinned message is an ordinary one from here on.
    Unpinned {
        /// Its entry.
        entry: Seq,
    },
    /// A message that was accepted during a turn, and that its person took back before the model saw it.
    Unsaid {
        /// Its entry.
        entry: Seq,
    },
    /// What the project says about itself in this file, or a file of Bailey's home, as the model sees it.
    /// Payload: the text.
    Guide {
        /// The file.
        path: WsPath,
        /// The digest of what the file holds; none when it is gone.
        digest: Option<Digest>,
        /// Whether it is a file of Bailey's home (the agent's own, or a paper), and not the project's.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        own: bool,
        /// Where it came from.
        labels: Labels,
    },
    /// Results were cut in their middle, to make room in the context.
    Shortened {
        /// The results' entries.
        entries: Vec<Seq>,
        /// The most that each may hold, in bytes.
        bytes: u32,
    },
    /// A note took the place of an earlier part of the context. Payload: the text.
    Summary {
        /// The entries of what it stands for.
        replaces: Vec<Seq>,
        /// The model that wrote it, `provider/model`, or `bailey` where none could.
        author: String,
        /// The join of what it stands for.
        labels: Labels,
        /// What the call of the model that wrote it took; older journals lack it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    /// The human revealed a masked file for this session.
    Revealed {
        /// The file.
        path: WsPath,
    },
    /// Checkpoints from here on are signed by keys that follow from this one.
    SigningBegun {
        /// The line's first.
        key: PublicKey,
    },
    /// Sessions that nobody needs here any more are in a file beside the journal. Of their entries the hashes
    /// stay. Payload: the sessions, as a list.
    Archived {
        /// The file.
        #[serde(flatten)]
        file: ArchiveFile,
        /// Over the number and the hash of each of its entries.
        list: Digest,
        /// The newest time of any of them.
        until: Timestamp,
    },
    /// The oldest archive went, because journal and archives were larger than they may be. The hashes stay.
    ArchiveRemoved {
        /// The entry that names it.
        archive: Seq,
        /// The file.
        #[serde(flatten)]
        file: ArchiveFile,
    },
    /// The model was told that a budget runs low. Payload: the text.
    Warned {
        /// How far the budget reaches.
        span: BudgetScope,
        /// `tokens`, or the code of a currency.
        unit: String,
        /// How much of it was used up, in hundredths.
        percent: u32,
    },
    /// Bailey itself told the model something, such as that the same call failed again. Payload: the text.
    Reminded {},
    /// A turn is over.
    TurnEnded {
        /// The turn.
        turn: TurnId,
        /// `answered`, `cancelled`, `limit`, `failed`.
        reason: String,
    },
}

impl Fact {
    /// Its type name in the journal.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Genesis { .. } => "genesis",
            Self::SessionOpened { .. } => "session_opened",
            Self::SessionForked { .. } => "session_forked",
            Self::Delegated { .. } => "delegated",
            Self::SessionRemoved { .. } => "session_removed",
            Self::SessionResumed { .. } => "session_resumed",
            Self::Walls { .. } => "walls",
            Self::Offered { .. } => "offered",
            Self::Agent { .. } => "agent",
            Self::Confined(_) => "confined",
            Self::PolicyAdopted { .. } => "policy_adopted",
            Self::Stopped => "stopped",
            Self::Released => "released",
            Self::Restored => "restored",
            Self::Salvaged(_) => "salvaged",
            Self::TokenMinted { .. } => "token_minted",
            Self::TokenNarrowed { .. } => "token_narrowed",
            Self::TokenEnded { .. } => "token_ended",
            Self::ExtensionFailed { .. } => "extension_failed",
            Self::ExtensionDisabled { .. } => "extension_disabled",
            Self::ExtensionEnabled { .. } => "extension_enabled",
            Self::Accepted { .. } => "accepted",
            Self::Image { .. } => "image",
            Self::Intent { .. } => "intent",
            Self::Denied { .. } => "denied",
            Self::Judged { .. } => "judged",
            Self::Reported { .. } => "reported",
            Self::Outcome { .. } => "outcome",
            Self::EndAsked { .. } => "end_asked",
            Self::Asked { .. } => "asked",
            Self::Answered { .. } => "answered",
            Self::Escalated { .. } => "escalated",
            Self::Observation { .. } => "observation",
            Self::Reply { .. } => "reply",
            Self::Pinned { .. } => "pinned",
            Self::Unpinned { .. } => "unpinned",
            Self::Unsaid { .. } => "unsaid",
            Self::Guide { .. } => "guide",
            Self::Shortened { .. } => "shortened",
            Self::Summary { .. } => "summary",
            Self::Archived { .. } => "archived",
            Self::ArchiveRemoved { .. } => "archive_removed",
            Self::Warned { .. } => "warned",
            Self::Reminded {} => "reminded",
            Self::Revealed { .. } => "revealed",
            Self::SigningBegun { .. } => "signing_begun",
            Self::TurnEnded { .. } => "turn_ended",
        }
    }
}

/// An entry that is to be written.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The session it belongs to.
    pub session: Option<SessionId>,
    /// The effect it is about.
    pub effect: Option<EffectId>,
    /// What it says.
    pub fact: Fact,
    /// What lies beside the chain; redacted before it is stored.
    pub payload: Option<Payload>,
}

/// What lies beside the chain. JSON is redacted string by string, because a secret with a quote in it looks
/// different inside JSON, and so that it is still JSON afterwards.
#[derive(Debug, Clone)]
pub enum Payload {
    /// Plain text.
    Text(String),
    /// A document.
    Json(serde_json::Value),
    /// A picture, as it came: what it shows is in no text.
    Image(Image),
}

impl Entry {
    /// An entry of a session.
    #[must_use]
    pub fn of(session: SessionId, fact: Fact) -> Self {
        Self { session: Some(session), effect: None, fact, payload: None }
    }

    /// The same about an effect.
    #[must_use]
    pub fn about(mut self, effect: EffectId) -> Self {
        self.effect = Some(effect);
        self
    }

    /// The same with a payload.
    #[must_use]
    pub fn with(mut self, payload: Payload) -> Self {
        self.payload = Some(payload);
        self
    }
}

/// The commitment to a payload inside the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commitment {
    /// SHA-256 over the salt and the stored payload, each with its length.
    pub digest: Digest,
    /// How long the stored payload is, in bytes.
    pub bytes: u32,
}

/// An entry as it is stored: these bytes, as JSON, are what the chain's hash covers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// [`ENTRY_VERSION`].
    pub v: u32,
    /// Its position.
    pub seq: Seq,
    /// When it was written.
    pub time: bailey_protocol::Timestamp,
    /// The session it belongs to.
    pub session: Option<SessionId>,
    /// The effect it is about.
    pub effect: Option<EffectId>,
    /// What lies beside the chain.
    pub payload: Option<Commitment>,
    /// What it says.
    #[serde(flatten)]
    pub fact: Fact,
}

/// A stored entry with its payload, unless that was erased.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The entry.
    pub entry: Stored,
    /// Its payload.
    pub payload: Option<Vec<u8>>,
}

impl Recorded {
    /// The payload as text; empty when there is none.
    #[must_use]
    pub fn text(&self) -> String {
        self.payload.as_deref().map(String::from_utf8_lossy).unwrap_or_default().into_owned()
    }
}
