use super::mounted;
use std::path::PathBuf;

const MOUNTS: &str = "\
31 30 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 /user.slice /mnt/two rw,relatime - cgroup2 cgroup2 rw,nsdelegate
";

fn check(kind: &str, controller: &str, path: &str, expected: Option<&str>) {
    let fits = |options: &str| controller.is_empty() || options.split(',').any(|option| option == controller);
    assert_eq!(mounted(MOUNTS, kind, fits, path), expected.map(PathBuf::from), "{kind} {controller} {path}");
}

#[test]
fn a_group_is_found_where_it_is_mounted() {
    check("cgroup", "memory", "/a/b", Some("/sys/fs/cgroup/memory/a/b"));
    check("cgroup", "cpu", "/", Some("/sys/fs/cgroup/cpu,cpuacct/"));
    check("cgroup", "pids", "/", None);
    check("cgroup2", "", "/user.slice/me", Some("/mnt/two/me"));
    // Above what is mounted there is nothing that could be written.
    check("cgroup2", "", "/system.slice", None);
}
