//! The events that front ends receive: with `--json`, one JSON object on each line.

use crate::{
    ApprovalId, CallId, Digest, EffectId, Enforced, Money, SentFile, Seq, SessionId, number::decimal,
};
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
    /// The happening, with its data.
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

/// The state of a guide, compared with the last time that the model was told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuideState {
    /// It was read for the first time.
    Read,
    /// Its content is different now.
    Changed,
    /// It is not there any more.
    Gone,
}

/// The cause of a turn's failure.
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
    /// Whether it says yes to the question.
    #[must_use]
    pub fn is_yes(self) -> bool {
        self != Self::No
    }
}

/// A question for a human to judge. It holds canonical values; the front end that draws the card escapes
/// each of them for a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// The effect in one line.
    pub title: String,
    /// Why the gate asks.
    pub reasons: Vec<String>,
    /// The exact effect.
    pub parts: Vec<CardPart>,
    /// Where its values came from, as far as the journal knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<Origin>,
    /// The points that this card cannot promise.
    pub caveats: Vec<String>,
    /// Whether a yes counts only once: the card does not offer a yes for the session.
    #[serde(default)]
    pub once: bool,
    /// The further effects that a yes for the pattern covers, in words; `None` when the card does not offer
    /// that yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Whether each answer needs a reason.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub reasoned: bool,
    /// Whether the card is complete. A card that was stored without this field may have been cut.
    #[serde(default)]
    pub whole: bool,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The value, by its ends where it is long.
    pub value: String,
    /// The kind of source that brought it.
    pub kind: OriginKind,
    /// The source in words.
    pub words: String,
    /// The entry of the journal that brought it.
    #[serde(default)]
    pub entry: Option<Seq>,
}

/// The kind of source that brought a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OriginKind {
    /// A person's words.
    Person,
    /// A message with words that no person vouches for: passed on, quoted, or a guest's.
    Message,
    /// The project's text about itself for agents.
    Project,
    /// A file, or the hits of a search in files.
    File,
    /// The output of a command.
    Command,
    /// An answer from the network.
    Web,
    /// The result of a peer's tool.
    Peer,
    /// A sub-agent's answer, no matter which sources the sub-agent read.
    Agent,
    /// No known source: the model's own words.
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
        /// Whether a short card shows it, too. Other fields stand in the details.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        brief: bool,
    },
    /// A unified diff of one file.
    Diff {
        /// The file.
        path: String,
        /// The diff.
        diff: String,
    },
}

/// Numbers of tokens that were used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// All tokens that the provider read, from a cache or not.
    #[serde(with = "decimal")]
    pub input_tokens: u64,
    /// Tokens that it wrote, including those of its reasoning.
    #[serde(with = "decimal")]
    pub output_tokens: u64,
    /// The input tokens that it read from a cache.
    #[serde(with = "decimal", default)]
    pub cache_read_tokens: u64,
    /// The input tokens that it wrote to a cache.
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
    /// A description of its present state, when the change is not only in lines of text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

/// How full a context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextSize {
    /// The tokens of the newest request and its reply.
    #[serde(with = "decimal")]
    pub tokens: u64,
    /// The tokens that the model takes; `None` when that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

/// A line of an earlier conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum RecalledLine {
    /// A person's message.
    Person {
        /// The words.
        text: String,
    },
    /// The model's words.
    Model {
        /// The words.
        text: String,
    },
    /// A call of a tool.
    Call {
        /// The tool and its target in one line.
        text: String,
        /// Whether the tool did its task.
        ok: bool,
    },
}

/// Something that happened, by its kind.
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
        /// Whether the session existed before.
        resumed: bool,
        /// The isolation between its effects and the host, when that is less than namespaces: `landlock` or
        /// `none`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        backend: Option<String>,
    },
    /// A message was accepted; it will not be lost.
    Accepted {
        /// The name that its source gave it, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// The model does not have something that came with the accepted message.
    Unseen {
        /// The reason, and how to fix it.
        text: String,
    },
    /// A message arrived again that was accepted before. It starts nothing.
    Repeated {
        /// The name that its source gave it.
        key: String,
        /// How its turn ended; `None` while the turn runs or can still go on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended: Option<String>,
        /// The last text of the model in that turn.
        text: String,
    },
    /// A turn that another process left unfinished goes on.
    GoingOn,
    /// A person said something at another front end of the session, or at this front end before it left.
    Said {
        /// The words, without secrets.
        text: String,
        /// The person, if not the owner at a terminal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// The model has now received messages that were accepted during the turn.
    Heard {
        /// How many, in the order of their acceptance.
        messages: u32,
    },
    /// The owner took messages back that the model had not seen.
    Unsaid {
        /// Their words, in order.
        texts: Vec<String>,
    },
    /// Something was pinned or unpinned, or a session with pinned messages goes on.
    Pinned {
        /// All messages that are pinned now, the oldest first.
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
        /// Whether the owner called it beside the turns.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        own: bool,
    },
    /// The gate decided about an effect.
    Decided {
        /// The call that it answers; `None` for Bailey's own effects.
        call: Option<CallId>,
        /// The effect.
        effect: EffectId,
        /// Its kind.
        action: String,
        /// Its target in one line.
        target: String,
        /// The decision.
        verdict: Verdict,
        /// The reasons, one line for each rule that spoke.
        reasons: Vec<String>,
    },
    /// A human must judge.
    Ask {
        /// The question.
        id: ApprovalId,
        /// The call that waits for it.
        call: Option<CallId>,
        /// The card to judge.
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
        /// Whether the tool did its task.
        ok: bool,
        /// One line.
        summary: String,
        /// The text that the model sees.
        text: String,
        /// How long it took.
        #[serde(with = "decimal")]
        duration_ms: u64,
        /// The walls that were in force, for effects with walls.
        enforced: Option<Enforced>,
    },
    /// The model was told the project's text about itself for agents.
    Guide {
        /// The file.
        path: String,
        /// Whether it is new to the model.
        state: GuideState,
    },
    /// The agent sent a message of its own, apart from its answer.
    Sent {
        /// The person at a channel whom it is for, `CHANNEL:ID`; `None` for the session's own person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
        /// The words, without secrets.
        text: String,
        /// A file that goes with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<SentFile>,
        /// The person whose message the agent works on, `CHANNEL:ID`; `None` for the owner at a terminal.
        /// Only that person's conversation shows a message without `to`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<String>,
    },
    /// Something that the user should know: a retry, a masked file, a resumed effect.
    Notice {
        /// One line.
        text: String,
    },
    /// The tokens that a model call has used.
    Usage {
        /// The tokens of this one model call.
        usage: Usage,
        /// Their price; `None` when the model's price is not known.
        #[serde(default)]
        cost: Option<Money>,
        /// How full the conversation's context is; `None` for a call of a sub-agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<ContextSize>,
    },
    /// The turn is over.
    End {
        /// `answered`, `cancelled`, `limit`, `failed`.
        reason: String,
        /// When it failed: the problem, its cause and how to fix it.
        error: Option<String>,
        /// The cause of the failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
        /// How long the turn took, in milliseconds; `None` in events of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        took_ms: Option<u64>,
    },
    /// The session's changes that are not in the project, as they are after a turn, a merge or a resume.
    Changed {
        /// How many paths differ.
        files: u32,
        /// The first hundred of them.
        counts: Vec<PathCount>,
        /// The branches whose commits an apply would move.
        branches: u32,
    },
    /// The end of the conversation so far, when a session goes on.
    Recalled {
        /// The oldest first.
        lines: Vec<RecalledLine>,
        /// How many earlier lines are left out.
        left_out: u32,
    },
    /// The paths that [`crate::Op::Files`] asked for.
    Found {
        /// The beginning that was asked for.
        like: String,
        /// The paths, relative to the workspace; those of directories end with `/`.
        paths: Vec<String>,
    },
    /// The subject that [`crate::Op::Show`] asked for.
    Shown {
        /// Lines of text.
        lines: Vec<String>,
    },
    /// The session's changes of the project.
    Diff {
        /// Unified diff over all files.
        diff: String,
        /// The files, relative to the workspace.
        files: Vec<String>,
        /// The same files, with the lines that were added and taken away.
        #[serde(default)]
        counts: Vec<PathCount>,
        /// The files that the gate calls Red to apply. Bailey asks a human about each of them.
        red: Vec<String>,
        /// The reasons, one line for each rule that spoke.
        reasons: Vec<String>,
        /// Commits that the project's repository lacks: one line for each branch, which says how an apply
        /// treats it, and lines for its commits.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        commits: Vec<String>,
        /// Files that an apply would leave as they are because somebody changed them meanwhile, each with
        /// the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conflicts: Vec<String>,
        /// Files that no apply moves, each with the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stays: Vec<String>,
        /// Changed paths that git ignores, relative to the workspace. Each stays in the session unless an
        /// apply names it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ignored: Vec<String>,
        /// A digest of all these changes. An apply that names it moves nothing else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Digest>,
    },
    /// The sessions of this home.
    Sessions {
        /// The newest first.
        sessions: Vec<SessionLine>,
    },
    /// A request of the front end was not done.
    Failed {
        /// The request's [`crate::Op::name`].
        op: String,
        /// The problem, its cause and how to fix it.
        error: String,
    },
    /// Changes were applied, undone or discarded.
    Merged {
        /// `apply`, `undo` or `discard`.
        direction: String,
        /// The files, relative to the workspace.
        files: Vec<String>,
        /// Files that stayed as they were because somebody changed them meanwhile, each with the reason.
        conflicts: Vec<String>,
        /// The result for commits, one line for each branch.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        commits: Vec<String>,
        /// Files that stay in the session, each with the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stays: Vec<String>,
    },
}
