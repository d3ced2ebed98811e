//! What front ends receive: one JSON object a line under `--json`.

use crate::{ApprovalId, CallId, Digest, EffectId, Enforced, Money, Seq, SessionId, number::decimal};
use alloc::{string::String, vec::Vec};
use serde::{Deserialize, Serialize};

/// The version of [`Event`]'s shape. Readers keep unknown fields and refuse other versions.
pub const EVENT_VERSION: u32 = 1;

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// [`EVENT_VERSION`].
    pub v: u32,
    /// The newest journal entry when it happened.
    pub seq: Seq,
    /// What happened.
    #[serde(flatten)]
    pub happening: Happening,
}

/// How the gate decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It ran without a question.
    Allowed,
    /// A human said yes.
    Approved,
    /// A human is asked.
    Asked,
    /// It did not run.
    Denied,
}

/// What became of a guide since the model was last told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuideState {
    /// It was read for the first time.
    Read,
    /// It says something else now.
    Changed,
    /// It is not there any more.
    Gone,
}

/// What a turn failed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The gate, or a human, said no.
    Denied,
    /// No model answered.
    Model,
    /// The journal cannot be read or written.
    Journal,
    /// Anything else.
    #[serde(other)]
    Other,
}

/// A human's answer to a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// This once.
    Yes,
    /// This exact effect for the rest of the session.
    YesForSession,
    /// All that the card's pattern covers, for the rest of the session.
    YesForPattern,
    /// No.
    No,
}

impl Answer {
    /// Whether it is a yes to what was asked.
    #[must_use]
    pub fn is_yes(self) -> bool {
        self != Self::No
    }
}

/// What a human is asked to judge: canonical values, each escaped for a terminal by whoever draws it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// One line: what would be done.
    pub title: String,
    /// Why the gate asks.
    pub reasons: Vec<String>,
    /// What exactly would be done.
    pub parts: Vec<CardPart>,
    /// Where the values of it came from, as far as the journal knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<Origin>,
    /// What this card cannot promise.
    pub caveats: Vec<String>,
    /// Whether a yes counts this once only: none for the session is offered.
    #[serde(default)]
    pub once: bool,
    /// What a yes for the pattern covers besides, in words; none: it is not offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Whether each answer needs a reason.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub reasoned: bool,
    /// Whether nothing of it was cut. One that was stored without this may have been.
    #[serde(default)]
    pub whole: bool,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The value, by its ends where it is long.
    pub value: String,
    /// What brought it.
    pub kind: OriginKind,
    /// The same in words.
    pub words: String,
    /// The entry of the journal that brought it.
    #[serde(default)]
    pub entry: Option<Seq>,
}

/// What brought a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OriginKind {
    /// A person's words.
    Person,
    /// A message with words of somebody whom nobody vouches for: passed on, quoted, or a guest's.
    Message,
    /// What the project says about itself to agents.
    Project,
    /// A file, or what was found in some.
    File,
    /// What a command wrote.
    Command,
    /// An answer from the network.
    Web,
    /// A sub-agent's answer, whatever it had read.
    Agent,
    /// Nothing that is known: the model's own words.
    Model,
}

/// A part of a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "part")]
pub enum CardPart {
    /// A named value.
    Field {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// A unified diff of one file.
    Diff {
        /// The file.
        path: String,
        /// The diff.
        diff: String,
    },
}

/// What was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// All tokens that the provider read, from a cache or not.
    #[serde(with = "decimal")]
    pub input_tokens: u64,
    /// Tokens that it wrote, those of its reasoning too.
    #[serde(with = "decimal")]
    pub output_tokens: u64,
    /// Those of the input that it read from a cache.
    #[serde(with = "decimal", default)]
    pub cache_read_tokens: u64,
    /// Those of the input that it wrote to a cache.
    #[serde(with = "decimal", default)]
    pub cache_write_tokens: u64,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLine {
    /// Its name.
    pub session: SessionId,
    /// Its workspace.
    pub workspace: String,
    /// The first line of its first message.
    pub title: String,
    /// When something last happened, RFC 3339.
    pub updated: String,
}

/// A pinned message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedLine {
    /// Its entry in the journal, which [`crate::Op::Unpin`] names.
    pub entry: Seq,
    /// The words.
    pub text: String,
}

/// The change of one path in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCount {
    /// The path, relative to the workspace.
    pub path: String,
    /// Lines that were added.
    pub more: usize,
    /// Lines that were taken away.
    pub less: usize,
    /// A description of it now, where that is more than lines of text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Happening {
    /// A session was opened or resumed.
    Session {
        /// The session.
        session: SessionId,
        /// Its workspace.
        workspace: String,
        /// The model, `provider/model`.
        model: String,
        /// Whether it had been there before.
        resumed: bool,
        /// What stands between its effects and the host, where that is less than namespaces: `landlock`, or
        /// `none`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        backend: Option<String>,
    },
    /// A message was accepted; it will not be lost.
    Accepted {
        /// Its name where it was said, where it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// Something came with the message that was accepted, and the model does not have it.
    Unseen {
        /// Why, and what to do.
        text: String,
    },
    /// A message was said again that had been accepted before: nothing begins by it.
    Repeated {
        /// Its name where it was said.
        key: String,
        /// How the turn that it belongs to ended; none: it runs, or goes on one day.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended: Option<String>,
        /// The last that the model said in that turn.
        text: String,
    },
    /// A turn that another process did not finish goes on.
    GoingOn,
    /// A person said something at another front end of the session, or at this one before it left.
    Said {
        /// The words, without secrets.
        text: String,
        /// Who, where that is not the owner at a terminal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// Messages that were accepted during the turn are in front of the model now.
    Heard {
        /// How many, in the order of their acceptance.
        messages: u32,
    },
    /// Something was pinned or unpinned, or a session with pinned messages goes on.
    Pinned {
        /// All that is pinned now, the oldest first.
        messages: Vec<PinnedLine>,
    },
    /// A piece of the model's text.
    Text {
        /// The piece.
        text: String,
    },
    /// The model called a tool.
    Call {
        /// The call.
        call: CallId,
        /// The tool's canonical name.
        tool: String,
        /// Its target in one line.
        target: String,
    },
    /// The gate decided about an effect.
    Decided {
        /// The call that it answers; none for effects of Bailey's own.
        call: Option<CallId>,
        /// The effect.
        effect: EffectId,
        /// Its kind.
        action: String,
        /// Its target in one line.
        target: String,
        /// The decision.
        verdict: Verdict,
        /// Why, one line per rule that spoke.
        reasons: Vec<String>,
    },
    /// A human must judge.
    Ask {
        /// The question.
        id: ApprovalId,
        /// The call that waits for it.
        call: Option<CallId>,
        /// What to judge.
        card: Card,
    },
    /// A question was answered or ran out.
    Answered {
        /// The question.
        id: ApprovalId,
        /// The answer.
        answer: Answer,
        /// The reason.
        why: String,
    },
    /// A piece of a running command's output.
    Output {
        /// The call.
        call: CallId,
        /// The piece, standard output and standard error mixed as they came.
        text: String,
    },
    /// A tool call is over.
    Result {
        /// The call.
        call: CallId,
        /// Whether the tool did what it was asked.
        ok: bool,
        /// One line.
        summary: String,
        /// What the model sees.
        text: String,
        /// How long it took.
        #[serde(with = "decimal")]
        duration_ms: u64,
        /// The walls, for effects that had some.
        enforced: Option<Enforced>,
    },
    /// The model was told what the project says about itself to agents.
    Guide {
        /// The file.
        path: String,
        /// Whether it is new to the model.
        state: GuideState,
    },
    /// Something that the user should know: a retry, a masked file, a resumed effect.
    Notice {
        /// One line.
        text: String,
    },
    /// What a model call has used.
    Usage {
        /// Of one model call.
        usage: Usage,
        /// What that costs; none where the model's price is not known.
        #[serde(default)]
        cost: Option<Money>,
    },
    /// The turn is over.
    End {
        /// `answered`, `cancelled`, `limit`, `failed`.
        reason: String,
        /// What, why and how to fix, when it failed.
        error: Option<String>,
        /// What it failed at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
    },
    /// What the session changed in the project.
    Diff {
        /// Unified diff over all files.
        diff: String,
        /// The files, relative to the workspace.
        files: Vec<String>,
        /// The same files, with the lines that were added and taken away.
        #[serde(default)]
        counts: Vec<PathCount>,
        /// Those that the gate calls Red to apply: a human is asked about each.
        red: Vec<String>,
        /// Why, one line for each rule that spoke.
        reasons: Vec<String>,
        /// Commits that the project's repository lacks, one line for each and for what becomes of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        commits: Vec<String>,
        /// Files that an apply would keep, because somebody changed them meanwhile, each with the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conflicts: Vec<String>,
        /// Files that no apply takes along, each with the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stays: Vec<String>,
        /// What git ignores of what the session changed, relative to the workspace: it stays in the session
        /// unless an apply names it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ignored: Vec<String>,
        /// What names all of this: an apply that names it moves nothing else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Digest>,
    },
    /// The sessions of this home.
    Sessions {
        /// The newest first.
        sessions: Vec<SessionLine>,
    },
    /// What the front end asked for was not done.
    Failed {
        /// [`crate::Op::name`] of it.
        op: String,
        /// What, why and how to fix.
        error: String,
    },
    /// Changes were applied, undone or discarded.
    Merged {
        /// `apply`, `undo` or `discard`.
        direction: String,
        /// The files, relative to the workspace.
        files: Vec<String>,
        /// What was kept because somebody changed it meanwhile, with the reason.
        conflicts: Vec<String>,
        /// What became of commits, one line for each branch.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        commits: Vec<String>,
        /// Files that stay in the session, each with the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stays: Vec<String>,
    },
}
