//! The arguments of what reads the journal.

use super::Prove;
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Show the newest entries
    Log {
        /// How many
        #[arg(long, short = 'n', default_value_t = 50)]
        last: u32,
        /// Of this session only
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
    },
    /// Verify every link of the chain, every payload and every checkpoint, and show how far they are signed
    Verify {
        /// The first public key, as it was kept elsewhere: what is signed must follow from it
        #[arg(long, value_name = "PUB")]
        key: Option<String>,
    },
    /// Prove to somebody else that an entry is in the journal, or that the journal only grew since a
    /// checkpoint
    Prove(Prove),
    /// Check a proof or an archive; this needs no journal, only the key
    ///
    /// The exit code is 0 where it holds and 1 where it does not. docs/audit_check.py does the same.
    Check {
        /// The file of the proof or the archive, or - for standard input
        file: PathBuf,
        /// The public key: 64 hexadecimal digits, or a file that holds them
        #[arg(long, value_name = "PUB")]
        key: String,
    },
    /// Sign what the journal holds, and print the first public key, to keep it elsewhere
    Key,
    /// Print every entry as a JSON line, with its hash and payload; or what was done as spans
    Export(Export),
    /// Private: the process that tells a collector what is done, beneath the daemon
    #[command(hide = true)]
    Send,
    /// Move old sessions out of the journal into archive files beside it
    ///
    /// A session leaves whole; what is needed stays: changes to apply or to take back, open questions,
    /// tokens, what a process has. The hashes stay, so that the journal proves what it proved. With
    /// `keep_days` in config.toml this happens by itself.
    Archive(Archive),
    /// Verify the chain, then rebuild every table that follows from it, and show which rows were wrong
    Rebuild,
    /// Move the readable part of a damaged journal into a new journal, and show what was lost
    ///
    /// Nobody may use the home meanwhile. What is damaged is kept beside it and deleted by nobody. The copies
    /// of the home (`backups/`) are asked for what is missing.
    #[command(alias = "salvage")]
    Recover {
        /// Another copy of this home to ask; may be given several times
        #[arg(long = "copy", value_name = "DIR")]
        copies: Vec<PathBuf>,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// Print spans for a collector of OpenTelemetry, without what was said: OTLP/JSON, a request in each line
    #[arg(long, group = "spans")]
    pub(crate) otlp: bool,
    /// Print stacks with milliseconds, which tools for flame graphs read
    #[arg(long, group = "spans")]
    pub(crate) folded: bool,
    /// Of this session only, with its sub-agents
    #[arg(long, value_name = "SESSION", requires = "spans")]
    pub(crate) session: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Archive {
    /// Sessions that were last used before this day (UTC), such as 2026-01-31; else `journal.keep_days` says
    #[arg(long, value_name = "DAY")]
    pub(crate) before: Option<String>,
    /// Only say what would leave, and what stays
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Show the archives there are
    #[arg(long, conflicts_with_all = ["before", "dry_run"])]
    pub(crate) list: bool,
    /// As a session starts it
    #[arg(long, hide = true)]
    pub(crate) due: bool,
}
