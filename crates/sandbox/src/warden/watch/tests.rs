use super::{disk_used, out_no_routes_in, out_no_routes_in_6};
use std::{fs, os::fd::AsFd};

#[test]
fn packets_without_a_route_are_read_by_name() {
    let snmp = "Ip: Forwarding OutDiscards OutNoRoutes ReasmTimeout\nIp: 1 2 37 4\nIcmp: InMsgs\nIcmp: 9\n";
    assert_eq!(out_no_routes_in(snmp), 37);
    assert_eq!(out_no_routes_in("Ip: Forwarding\nIp: 1\n"), 0);
    assert_eq!(out_no_routes_in(""), 0);
    assert_eq!(out_no_routes_in_6("Ip6InReceives \t4\nIp6OutNoRoutes                  \t12\n"), 12);
}

#[test]
fn a_folder_is_measured_with_all_its_parts() {
    let dir = tempfile::tempdir().unwrap();
    for part in ["upper/deep/er", "home", "tmp"] {
        fs::create_dir_all(dir.path().join(part)).unwrap();
    }
    let folder = fs::File::open(dir.path()).unwrap();
    let empty = disk_used(folder.as_fd(), u64::MAX).unwrap();
    fs::write(dir.path().join("upper/deep/er/file"), vec![1; 100_000]).unwrap();
    fs::write(dir.path().join("tmp/file"), vec![1; 50_000]).unwrap();
    let used = disk_used(folder.as_fd(), u64::MAX).unwrap() - empty;
    assert!((150_000..200_000).contains(&used), "{used}");
}
