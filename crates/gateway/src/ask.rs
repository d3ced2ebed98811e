//! What is asked, in whose name, and what comes of it.

use bailey_protocol::{ApprovalId, SessionId};
use serde::{Deserialize, Serialize};

/// A question of a browser's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// What the browser shows for being somebody's; empty where it shows nothing.
    pub bearer: String,
    /// What it wants.
    pub wish: Wish,
}

/// A one-time code, and how the browser calls itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// The code of a link that the owner made.
    pub code: String,
}

/// What a server says to a channel, as it came: nobody has looked at the signature yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The channel's name in the configuration.
    pub channel: String,
    /// The headers of Standard Webhooks.
    pub id: String,
    /// In seconds since 1970.
    pub timestamp: u64,
    /// All of them, with spaces between.
    pub signature: String,
    /// The body.
    pub body: String,
}

/// What a browser wants, or a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wish {
    /// A bearer for a code: [`Answer::Done`] holds it. The name is for the owner's list.
    Login(Code, String),
    /// That its bearer is one no more.
    Logout,
    /// To see something: [`Answer::Opened`], and the descriptor is a pipe with lines of JSON.
    See(View),
    /// To have something done: answered in the same way.
    Do(Act),
    /// A new session over a directory: [`Answer::Done`] holds its name.
    Begin {
        /// The project's, absolute.
        directory: String,
        /// `PROVIDER/NAME`; none: the configured one.
        #[serde(default)]
        model: Option<String>,
    },
    /// To look on at a session, and to speak there: [`Answer::Opened`], and the descriptor is a socket with
    /// lines of events and ops.
    Join(SessionId),
    /// That a channel takes this: [`Answer::Done`] when it will not be lost. The signature stands for a
    /// bearer.
    Deliver(Delivery),
    /// Whether the daemon answers: [`Answer::Done`]. No bearer is needed for it.
    Health,
    /// Figures for a collector, in the text format of Prometheus: [`Answer::Done`].
    Metrics,
}

/// Something to see. Each is what a command prints with `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// The daemon, its sessions and channels.
    Status,
    /// All sessions of the home.
    Sessions,
    /// What was said and done in one.
    Session(SessionId),
    /// The questions that wait.
    Approvals,
    /// One of them.
    Approval(ApprovalId),
    /// The rules in force.
    Rules,
    /// The newest entries of the journal.
    Audit,
    /// Whether the journal is as it was written.
    Verify,
    /// Tasks by the clock.
    Schedules,
    /// What was used up today.
    Budget,
    /// All settings, and where each comes from.
    Settings,
    /// What happened to the daemon.
    Logs,
    /// The models that are configured.
    Models,
    /// What the agent has for tools.
    Tools,
    /// Which walls stand here.
    Walls,
    /// Who may speak over chat channels.
    People,
    /// The browsers that are let in.
    Browsers,
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "act", deny_unknown_fields)]
pub enum Act {
    /// A yes to a question, this once.
    Approve {
        /// The question.
        id: ApprovalId,
        /// Why, for the journal.
        #[serde(default)]
        reason: String,
    },
    /// A no.
    Reject {
        /// The question.
        id: ApprovalId,
        /// Why, for the model and the journal.
        #[serde(default)]
        reason: String,
    },
    /// What a rule file would change, and the phrase that it needs.
    TryRules {
        /// Its name in the home.
        name: String,
        /// Its whole text.
        text: String,
    },
    /// Puts a rule file into the home.
    UpdateRules {
        /// Its name in the home.
        name: String,
        /// Its whole text.
        text: String,
        /// The phrase; empty where none is needed.
        #[serde(default)]
        confirm: String,
    },
    /// Writes a task down.
    AddSchedule {
        /// Its name.
        name: String,
        /// When, in the five fields of cron.
        when: String,
        /// What is said then.
        task: String,
        /// Where, absolute.
        directory: String,
        /// How many tokens each time may use up.
        #[serde(default)]
        tokens: Option<u64>,
        /// What each time may do, a line each; empty: what the rules allow.
        #[serde(default)]
        may: Vec<String>,
    },
    /// Does a task now.
    RunSchedule {
        /// Its name.
        name: String,
    },
    /// Does a task no more.
    RemoveSchedule {
        /// Its name.
        name: String,
    },
    /// Makes a copy of the home, in it.
    Backup,
    /// Stops everything, until a human at the machine releases it.
    Estop {
        /// Why.
        #[serde(default)]
        reason: String,
    },
}

/// What comes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It was done; the text is what was asked for.
    Done(String),
    /// A descriptor comes with this.
    Opened,
    /// The bearer, or the code, is nobody's.
    Unknown,
    /// Too much was guessed wrong: so many seconds nothing is looked at.
    Later(u64),
    /// It cannot be done: what, why, and how to fix.
    Refused(String),
}
