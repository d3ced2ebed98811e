//! Figures of the daemon: for clients that read them at the page, and for a collector that gets them.

use super::Daemon;
use bailey_journal::{Clock as _, SystemClock};
use bailey_telemetry::{Figure, Figures};
use std::{fs, rc::Rc};

impl Daemon {
    /// The figures of now.
    pub(super) fn figures(self: &Rc<Self>) -> Figures {
        let status = self.status();
        let sessions = &status.sessions;
        let working = sessions.iter().filter(|held| held.state.working).count();
        let resting: usize = status.resting.iter().map(|it| it.questions).sum();
        let questions = resting + sessions.iter().map(|held| held.state.questions).sum::<usize>();
        let clients: usize = sessions.iter().map(|held| held.state.clients).sum();
        let crashes = self.crashes_lately();
        let mut all = vec![
            Figure::gauge("bailey.info", "Which version runs.").with("version", &status.version, 1),
            Figure::gauge("bailey.sessions", "Sessions whose processes run, by what they do.")
                .with("state", "working", working as u64)
                .with("state", "resting", (sessions.len() - working) as u64),
            Figure::gauge("bailey.questions", "Questions that wait for a human.").of(questions as u64),
            Figure::gauge("bailey.clients", "Front ends that look on at sessions.").of(clients as u64),
            Figure::counter("bailey.turns", "Turns that ended since the daemon began.").of(self.turns.get()),
            Figure::gauge(
                "bailey.crashes",
                "Ends of sessions' processes that nobody wanted, in the last five minutes.",
            )
            .of(crashes as u64),
        ];
        let up = Figure::gauge("bailey.channel.up", "Whether a channel's process runs.");
        all.push(
            status
                .channels
                .iter()
                .fold(up, |up, channel| up.with("channel", &channel.name, u64::from(channel.up))),
        );
        let resident = sessions.iter().filter_map(|held| resident_bytes(held.pid)).sum();
        all.push(
            Figure::gauge("bailey.resident", "Memory that is resident, without what lies behind the walls.")
                .bytes()
                .with("of", "daemon", resident_bytes(status.pid).unwrap_or(0))
                .with("of", "sessions", resident),
        );
        if let Some(memory) = &status.memory {
            let level = match memory.state.as_str() {
                "free" => 0,
                "held" => 1,
                _ => 2,
            };
            let about = "Whether memory is short: 0 it is free, 1 nothing new begins, 2 sessions make room.";
            all.push(Figure::gauge("bailey.memory.pressure", about).of(level));
            let about = "Memory that is taken, of what the daemon may use.";
            all.push(Figure::gauge("bailey.memory.used", about).bytes().of(memory.used_bytes));
            let about = "What the daemon may use: its control group's limit, or the machine's memory.";
            all.push(Figure::gauge("bailey.memory.limit", about).bytes().of(memory.limit_bytes));
        }
        all.push(
            Figure::counter("bailey.made_room", "Sessions that ended to make room, by what they did.")
                .with("state", "resting", self.memory.rested.get())
                .with("state", "working", self.memory.cut.get()),
        );
        let journal = ["journal.db", "journal.db-wal"].map(|name| self.home.root.join(name));
        let bytes = journal.iter().filter_map(|path| fs::metadata(path).ok()).map(|about| about.len()).sum();
        all.push(Figure::gauge("bailey.journal", "The journal's files.").bytes().of(bytes));
        Figures { since: self.since, time: SystemClock.now(), all }
    }
}

/// From proc(5); `None` when the process is gone.
fn resident_bytes(pid: u32) -> Option<u64> {
    let about = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kibibytes = about.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?;
    Some(kibibytes.parse::<u64>().ok()? << 10)
}
