use super::{LEAF, mounted, two};
use std::{
    fs,
    path::{Path, PathBuf},
};

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

/// Where groups with the controller `pids` can be made, in a hierarchy of version 2 below `at`, for who is in
/// the group `own`.
fn found(at: &Path, own: &str) -> Option<PathBuf> {
    let mounts = format!("33 30 0:29 / {} rw - cgroup2 cgroup2 rw,nsdelegate\n", at.display());
    two(&format!("0::{own}\n"), &mounts, "pids").map(|(directory, _)| directory)
}

#[test]
fn groups_of_version_2_are_made_where_no_process_sits_beside_them() {
    let folder = tempfile::tempdir().unwrap();
    let (service, leaf) = (folder.path().join("service"), folder.path().join("service").join(LEAF));
    fs::create_dir_all(&leaf).unwrap();
    for group in [&service, &leaf] {
        fs::write(group.join("cgroup.type"), "domain\n").unwrap();
    }
    for group in [folder.path(), &service, &leaf] {
        fs::write(group.join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        fs::write(group.join("cgroup.subtree_control"), "").unwrap();
    }
    let passed_on = |group: &Path| fs::read_to_string(group.join("cgroup.subtree_control")).unwrap();
    // Who sits in the service's own group passes nothing on: a group below could not be joined.
    assert_eq!(found(folder.path(), "/service"), None);
    assert_eq!(passed_on(&service), "");
    assert_eq!(found(folder.path(), &format!("/service/{LEAF}")), Some(service.clone()));
    assert_eq!(passed_on(&service), "+pids");
    assert_eq!(passed_on(&leaf), "");
    // The root of all may hold processes, too.
    assert_eq!(found(folder.path(), "/"), Some(folder.path().join("")));
    fs::write(service.join("cgroup.controllers"), "memory\n").unwrap();
    assert_eq!(found(folder.path(), &format!("/service/{LEAF}")), None);
}
