//! How much memory this process and all that it starts may use, and how much of that is taken.

use super::{Version, own_one, own_two};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Where the kernel says what the machine has (proc_meminfo(5)).
const MEMINFO: &str = "/proc/meminfo";

/// Where to look: found once, as a process does not change its group by itself.
#[derive(Debug)]
pub struct Gauge {
    /// This process's group, and those above it.
    groups: Vec<PathBuf>,
    version: Version,
    meminfo: PathBuf,
}

/// What there is of memory, and what is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Without what the kernel gives back when somebody wants it (its copies of files), in bytes.
    pub used_bytes: u64,
    /// In bytes.
    pub limit_bytes: u64,
    /// Whether that is the limit of a control group. Else it is all that the machine has.
    pub is_group: bool,
}

impl Memory {
    /// How much is taken, in percent.
    #[must_use]
    pub fn percent(&self) -> u64 {
        self.used_bytes.saturating_mul(100).checked_div(self.limit_bytes).unwrap_or(0)
    }
}

impl Gauge {
    /// Finds this process's control group, and those that it lies in: the limit of each holds for it.
    #[must_use]
    pub fn find() -> Self {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let (own, version) = match own_one(&own, &mounts, "memory") {
            Some(own) => (Some(own), Version::One),
            None => (own_two(&own, &mounts), Version::Two),
        };
        let limit = file_of_limit(version);
        let above = own.iter().flat_map(|own| own.ancestors());
        let groups = above.take_while(|group| group.join(limit).exists()).map(Path::to_path_buf).collect();
        Self { groups, version, meminfo: MEMINFO.into() }
    }

    /// Takes a file for what the kernel says of the machine, and no control group for its own.
    #[must_use]
    pub fn of_machine(meminfo: PathBuf) -> Self {
        Self { groups: Vec::new(), version: Version::Two, meminfo }
    }

    /// What is taken now, where it is tightest: whichever is used up first, it ends something. None where
    /// nobody tells.
    #[must_use]
    pub fn look(&self) -> Option<Memory> {
        let machine = machine(&fs::read_to_string(&self.meminfo).unwrap_or_default());
        let total = machine.map_or(u64::MAX, |machine| machine.limit_bytes);
        let groups = self.groups.iter().filter_map(|group| self.group(group));
        // Without a limit version 1 says a number that no machine has.
        let groups = groups.filter(|group| group.limit_bytes < total);
        groups.chain(machine).max_by_key(Memory::percent)
    }

    fn group(&self, group: &Path) -> Option<Memory> {
        let read = |name: &str| fs::read_to_string(group.join(name)).ok();
        // Version 2 says `max` where there is none.
        let limit_bytes = read(file_of_limit(self.version))?.trim().parse().ok()?;
        let (used, given_back): (_, &[&str]) = match self.version {
            Version::One => ("memory.usage_in_bytes", &["total_inactive_file", "total_active_file"]),
            Version::Two => ("memory.current", &["inactive_file", "active_file", "slab_reclaimable"]),
        };
        let used: u64 = read(used)?.trim().parse().ok()?;
        let about = read("memory.stat").unwrap_or_default();
        let bytes = |line: &str| {
            let (name, bytes) = line.split_once(' ')?;
            given_back.contains(&name).then(|| bytes.parse::<u64>().ok())?
        };
        let given_back: u64 = about.lines().filter_map(bytes).sum();
        Some(Memory { used_bytes: used.saturating_sub(given_back), limit_bytes, is_group: true })
    }
}

fn file_of_limit(version: Version) -> &'static str {
    match version {
        Version::One => "memory.limit_in_bytes",
        Version::Two => "memory.max",
    }
}

fn machine(meminfo: &str) -> Option<Memory> {
    let bytes = |name: &str| {
        let rest = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        Some(rest.split_whitespace().next()?.parse::<u64>().ok()?.saturating_mul(1024))
    };
    let (limit_bytes, free) = (bytes("MemTotal:")?, bytes("MemAvailable:")?);
    Some(Memory { used_bytes: limit_bytes.saturating_sub(free), limit_bytes, is_group: false })
}

#[cfg(test)]
mod tests {
    use super::{Gauge, Memory, Version};
    use std::fs;

    #[test]
    fn the_tightest_limit_counts_and_what_is_given_back_does_not() {
        let place = tempfile::tempdir().unwrap();
        let (outer, inner) = (place.path().to_path_buf(), place.path().join("inner"));
        fs::create_dir(&inner).unwrap();
        let meminfo = place.path().join("meminfo");
        fs::write(&meminfo, "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable:  600 kB\n").unwrap();
        let write = |group: &std::path::Path, limit: &str, used: u64| {
            fs::write(group.join("memory.max"), limit).unwrap();
            fs::write(group.join("memory.current"), format!("{used}\n")).unwrap();
            fs::write(group.join("memory.stat"), "anon 5\ninactive_file 60\nactive_file 40\n").unwrap();
        };
        write(&inner, "max\n", 900);
        write(&outer, "1000\n", 900);
        let groups = vec![inner.clone(), outer];
        let gauge = Gauge { groups, version: Version::Two, meminfo: meminfo.clone() };
        assert_eq!(gauge.look(), Some(Memory { used_bytes: 800, limit_bytes: 1000, is_group: true }));
        write(&inner, "850\n", 900);
        assert_eq!(gauge.look().unwrap().percent(), 94);
        // A limit beyond what there is counts for nothing.
        let gauge = Gauge { groups: vec![inner.clone()], version: Version::Two, meminfo };
        write(&inner, "9223372036854771712\n", 900);
        let machine = gauge.look().unwrap();
        assert!(!machine.is_group && machine.percent() == 40, "{machine:?}");
        assert_eq!(Gauge::of_machine(inner.join("none")).look(), None);
    }
}
