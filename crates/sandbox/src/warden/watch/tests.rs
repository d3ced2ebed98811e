use super::{Tree, disk_used, is_memory_above, out_no_routes_in, out_no_routes_in_6};
use rustix::process::{Pid, Signal, kill_process};
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
    let parts = ["upper", "home", "tmp"];
    for part in ["upper/deep/er", "home", "tmp"] {
        fs::create_dir_all(dir.path().join(part)).unwrap();
    }
    let folder = fs::File::open(dir.path()).unwrap();
    let empty = disk_used(folder.as_fd(), parts, u64::MAX).unwrap();
    fs::write(dir.path().join("upper/deep/er/file"), vec![1; 100_000]).unwrap();
    fs::write(dir.path().join("tmp/file"), vec![1; 50_000]).unwrap();
    let used = disk_used(folder.as_fd(), parts, u64::MAX).unwrap() - empty;
    assert!((150_000..200_000).contains(&used), "{used}");
}

#[test]
fn the_memory_below_a_process_is_that_of_its_children_and_theirs() {
    // This program's own is not among it, and a shell with its child takes less than 64 MiB and more than a
    // page.
    let _own = vec![1_u8; 80 << 20];
    assert!(!is_memory_above(4096, Tree::Below, 0), "nothing was started");
    let mut shell = std::process::Command::new("/bin/sh").args(["-c", "sleep 100; :"]).spawn().unwrap();
    while super::below().len() < 2 {
        std::thread::yield_now();
    }
    assert!(is_memory_above(4096, Tree::Below, 0));
    assert!(!is_memory_above(64 << 20, Tree::Below, 0));
    for process in super::below() {
        let id = process.file_name().unwrap().to_str().unwrap().parse().unwrap();
        kill_process(Pid::from_raw(id).unwrap(), Signal::KILL).unwrap();
    }
    shell.wait().unwrap();
}
