//! The questions of clients, their bearers, and the answers.

use bailey_protocol::{ApprovalId, SessionId};
use serde::{Deserialize, Serialize};

/// A question of a browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The bearer that the browser sends; empty if it sends no bearer.
    pub bearer: String,
    /// The request itself.
    pub wish: Wish,
}

/// A one-time code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// The code of a link that the owner made.
    pub code: String,
}

/// A server's message to a channel, as it came: the signature is not checked yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The channel's name in the configuration.
    pub channel: String,
    /// The headers of Standard Webhooks.
    pub id: String,
    /// In seconds since 1970.
    pub timestamp: u64,
    /// All signatures, with spaces between.
    pub signature: String,
    /// The body.
    pub body: String,
}

/// A request of a browser or of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wish {
    /// A bearer for a code: [`Answer::Done`] holds it. The name is for the owner's list.
    Login(Code, String),
    /// To make its bearer invalid.
    Logout,
    /// To see a view: [`Answer::Opened`], and the descriptor is a pipe with lines of JSON.
    See(View),
    /// To perform an act: answered in the same way.
    Do(Act),
    /// A new session over a directory: [`Answer::Done`] holds its name.
    Begin {
        /// The project's, absolute.
        directory: String,
        /// `PROVIDER/NAME`; the configured model if absent.
        #[serde(default)]
        model: Option<String>,
    },
    /// To watch a session, and to speak there: [`Answer::Opened`], and the descriptor is a socket with lines
    /// of events and ops.
    Join(SessionId),
    /// To deliver a message to a channel: [`Answer::Done`] when the message will not be lost. The signature
    /// takes the place of a bearer.
    Deliver(Delivery),
    /// Whether the daemon answers: [`Answer::Done`]. This needs no bearer.
    Health,
    /// Figures for a collector, in the text format of Prometheus: [`Answer::Done`].
    Metrics,
}

/// A view of the home. Each is the output of a command with `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// The daemon, its sessions and channels.
    Status,
    /// All sessions of the home.
    Sessions,
    /// The words and actions of one session.
    Session(SessionId),
    /// The questions that wait.
    Approvals,
    /// One open question.
    Approval(ApprovalId),
    /// The rules in force.
    Rules,
    /// The newest entries of the journal.
    Audit,
    /// Whether the journal is still as it was written.
    Verify,
    /// The tasks that run by the clock.
    Schedules,
    /// Today's usage.
    Budget,
    /// The use of one session.
    Spent(SessionId),
    /// All settings, and where each comes from.
    Settings,
    /// The daemon's log.
    Logs,
    /// The models that are configured.
    Models,
    /// The projects whose settings are trusted.
    Trusted,
    /// The tools of the agent.
    Tools,
    /// The walls of this machine.
    Walls,
    /// The people who may speak over chat channels.
    People,
    /// The browsers that are let in.
    Browsers,
}

/// An action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "act", deny_unknown_fields)]
pub enum Act {
    /// Answers a question with yes, this once.
    Approve {
        /// The question.
        id: ApprovalId,
        /// Why, for the journal.
        #[serde(default)]
        reason: String,
    },
    /// Answers a question with no.
    Reject {
        /// The question.
        id: ApprovalId,
        /// Why, for the model and the journal.
        #[serde(default)]
        reason: String,
    },
    /// Shows the changes that a rule file would make, and the phrase that they need.
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
        /// The phrase; empty if the change needs no phrase.
        #[serde(default)]
        confirm: String,
    },
    /// Adds a scheduled task.
    AddSchedule {
        /// Its name.
        name: String,
        /// When, in the five fields of cron.
        when: String,
        /// The message for the agent at that time.
        task: String,
        /// The directory, absolute.
        directory: String,
        /// How many tokens each run may use.
        #[serde(default)]
        tokens: Option<u64>,
        /// The permissions of each run, a line each; if empty, the rules decide.
        #[serde(default)]
        may: Vec<String>,
        /// The channel that brings the results to its owner.
        #[serde(default)]
        to: Option<String>,
    },
    /// Runs a task now.
    RunSchedule {
        /// Its name.
        name: String,
    },
    /// Removes a task.
    RemoveSchedule {
        /// Its name.
        name: String,
    },
    /// Changes a setting, of those that may be changed from a browser.
    Set {
        /// Its dotted key.
        key: String,
        /// Its new value.
        value: String,
    },
    /// Makes a copy of the home, inside the home.
    Backup,
    /// Stops everything, until a human at the machine releases it.
    Estop {
        /// Why.
        #[serde(default)]
        reason: String,
    },
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It was done; the text is the result.
    Done(String),
    /// A descriptor comes with this.
    Opened,
    /// The bearer or the code is not known.
    Unknown,
    /// Too many wrong guesses: for so many seconds no question is looked at.
    Later(u64),
    /// It cannot be done; the text says why, and how to fix it.
    Refused(String),
}
