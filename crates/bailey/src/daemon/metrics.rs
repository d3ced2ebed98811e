//! Figures of the daemon for a collector, in the text format of Prometheus (exposition format 0.0.4). Names and numbers only: no
//! words of anybody's, no path, no session.

use super::Daemon;
use std::{fmt::Write as _, fs, rc::Rc};

impl Daemon {
    /// The figures of now.
    pub(super) fn metrics(self: &Rc<Self>) -> String {
        let status = self.status();
        let sessions = &status.sessions;
        let working = sessions.iter().filter(|held| held.state.working).count();
        let mut page = Page(String::new());
        page.put(
            "bailey_info",
            "gauge",
            "Which version runs.",
            &format!("{{version=\"{}\"}}", status.version),
            1,
        );
        page.put(
            "bailey_sessions",
            "gauge",
            "Sessions whose processes run, by what they do.",
            "{state=\"working\"}",
            working,
        );
        page.more("bailey_sessions", "{state=\"resting\"}", sessions.len() - working);
        let questions: usize = sessions.iter().map(|held| held.state.questions).sum();
        page.put(
            "bailey_questions",
            "gauge",
            "Questions that wait for a human, in sessions that run.",
            "",
            questions,
        );
        let clients: usize = sessions.iter().map(|held| held.state.clients).sum();
        page.put("bailey_clients", "gauge", "Front ends that look on at sessions.", "", clients);
        page.put(
            "bailey_turns_total",
            "counter",
            "Turns that ended since the daemon began.",
            "",
            self.turns.get(),
        );
        let crashes: usize = self.crashes.borrow().values().map(Vec::len).sum();
        page.put(
            "bailey_crashes",
            "gauge",
            "Ends of sessions' processes that nobody wanted, in the last five minutes.",
            "",
            crashes,
        );
        for (number, channel) in status.channels.iter().enumerate() {
            let label = format!("{{channel=\"{}\"}}", channel.name);
            if number == 0 {
                page.put(
                    "bailey_channel_up",
                    "gauge",
                    "Whether a channel's process runs.",
                    &label,
                    u8::from(channel.up),
                );
            } else {
                page.more("bailey_channel_up", &label, u8::from(channel.up));
            }
        }
        let processes = sessions.iter().map(|held| held.pid);
        let bytes: u64 = processes.filter_map(resident_bytes).sum();
        let help = "Memory that is resident, without what lies behind the walls.";
        page.put(
            "bailey_resident_bytes",
            "gauge",
            help,
            "{of=\"daemon\"}",
            resident_bytes(status.pid).unwrap_or(0),
        );
        page.more("bailey_resident_bytes", "{of=\"sessions\"}", bytes);
        if let Some(memory) = &status.memory {
            let level = match memory.state.as_str() {
                "free" => 0,
                "held" => 1,
                _ => 2,
            };
            let help = "Whether memory is short: 0 it is free, 1 nothing new begins, 2 sessions make room.";
            page.put("bailey_memory_pressure", "gauge", help, "", level);
            let help = "Memory that is taken, of what the daemon may use.";
            page.put("bailey_memory_used_bytes", "gauge", help, "", memory.used_bytes);
            let help = "What the daemon may use: its control group's limit, or the machine's memory.";
            page.put("bailey_memory_limit_bytes", "gauge", help, "", memory.limit_bytes);
        }
        let help = "Sessions that ended to make room, by what they did.";
        page.put("bailey_made_room_total", "counter", help, "{state=\"resting\"}", self.memory.rested.get());
        page.more("bailey_made_room_total", "{state=\"working\"}", self.memory.cut.get());
        let journal = ["journal.db", "journal.db-wal"].map(|name| self.home.root.join(name));
        let bytes: u64 =
            journal.iter().filter_map(|path| fs::metadata(path).ok()).map(|about| about.len()).sum();
        page.put("bailey_journal_bytes", "gauge", "The journal's files.", "", bytes);
        page.0
    }
}

struct Page(String);

impl Page {
    fn put(&mut self, name: &str, kind: &str, help: &str, labels: &str, value: impl std::fmt::Display) {
        // Writing to a string does not fail.
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}").ok();
        self.more(name, labels, value);
    }

    fn more(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        writeln!(self.0, "{name}{labels} {value}").ok();
    }
}

/// From proc(5); none where the process is gone.
fn resident_bytes(pid: u32) -> Option<u64> {
    let about = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kibibytes = about.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?;
    Some(kibibytes.parse::<u64>().ok()? << 10)
}
