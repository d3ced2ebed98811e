mod aarch64;

use super::{
    CallError, Calls, Sockets,
    compile::{compile, with_door},
    program,
    table::{self, Row},
};
use crate::sys::Instruction;
use bailey_protocol::Profile;
use std::collections::{BTreeMap, BTreeSet};

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
const NO_FAMILY: u32 = libc::SECCOMP_RET_ERRNO | libc::EAFNOSUPPORT as u32;
const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;

/// A second reading of the BPF machine, for what the compiler emits.
fn run(code: &[Instruction], architecture: u32, number: u32, arguments: [u64; 6]) -> u32 {
    let mut data = Vec::new();
    data.extend(number.to_ne_bytes());
    data.extend(architecture.to_ne_bytes());
    data.extend(0u64.to_ne_bytes());
    arguments.iter().for_each(|argument| data.extend(argument.to_ne_bytes()));
    let (mut at, mut accumulator) = (0usize, 0u32);
    loop {
        let Instruction { code: op, jt, jf, k } = code[at];
        at += 1;
        let take = |yes: bool| usize::from(if yes { jt } else { jf });
        match u32::from(op) {
            0x20 => accumulator = u32::from_ne_bytes(data[k as usize..k as usize + 4].try_into().unwrap()),
            0x54 => accumulator &= k,
            0x05 => at += k as usize,
            0x15 => at += take(accumulator == k),
            0x35 => at += take(accumulator >= k),
            0x06 => return k,
            other => panic!("instruction {other:#x} at {at}"),
        }
    }
}

fn compile_profile(profile: Profile) -> Vec<Instruction> {
    compile(|number| table::row(profile, number))
}

fn call(profile: Profile, number: libc::c_long, arguments: [u64; 6]) -> u32 {
    run(&compile_profile(profile), table::ARCHITECTURE, number as u32, arguments)
}

#[test]
fn every_number_gets_the_answer_of_the_table() {
    for profile in Profile::NAMED {
        let code = compile_profile(profile);
        for number in 0..600 {
            let expected = match table::row(profile, number) {
                _ if number > table::NEWEST => ENOSYS,
                None => EPERM,
                Some(row) if row.name == "clone3" => ENOSYS,
                Some(row) if row.tests.is_empty() => ALLOW,
                // Judged by their arguments, below.
                Some(_) => continue,
            };
            assert_eq!(run(&code, table::ARCHITECTURE, number, [0; 6]), expected, "{profile:?} {number}");
        }
    }
}

#[test]
fn arguments_decide_where_the_table_says_so() {
    let code = compile_profile(Profile::Standard);
    let rows = table::rows().filter(|row| row.profile <= Profile::Standard);
    for row in rows.filter(|row| !row.tests.is_empty()) {
        // Try every combination of listed values and some that are not.
        let choices: Vec<Vec<u32>> = row
            .tests
            .iter()
            .map(|test| test.values.iter().copied().chain([3, 5, 0x4000_0000, u32::MAX]).collect())
            .collect();
        let combinations = choices.iter().fold(vec![Vec::new()], |all: Vec<Vec<u32>>, values| {
            all.iter()
                .flat_map(|so_far| values.iter().map(|value| [so_far.as_slice(), &[*value]].concat()))
                .collect()
        });
        for values in combinations {
            let mut arguments = [0xffff_ffff_0000_0000; 6];
            for (test, value) in row.tests.iter().zip(&values) {
                // The high half is noise: the kernel does not look at it either.
                arguments[test.argument as usize] |= u64::from(*value);
            }
            let holds = row.tests.iter().all(|test| {
                test.values.contains(&(arguments[test.argument as usize] as u32 & test.mask))
                    == test.is_wanted
            });
            let expected = if holds { ALLOW } else { EPERM };
            let answer = run(&code, table::ARCHITECTURE, row.number, arguments);
            assert_eq!(answer, expected, "{} {values:x?}", row.name);
        }
    }
}

#[test]
fn foreign_architectures_are_killed_and_x32_is_refused() {
    const I386: u32 = 0x4000_0003;
    let code = compile_profile(Profile::Standard);
    assert_eq!(run(&code, I386, libc::SYS_read as u32, [0; 6]), KILL);
    assert_eq!(run(&code, table::ARCHITECTURE, libc::SYS_read as u32 | 0x4000_0000, [0; 6]), EPERM);
    assert_eq!(run(&code, table::ARCHITECTURE, libc::SYS_read as u32, [0; 6]), ALLOW);
}

/// What waits for an order may bind itself to fewer calls with words that it alone knows; all else is as it
/// was.
#[test]
fn a_door_opens_for_its_words_alone() {
    let words = [0x1234_5678, 0x9abc_def0];
    for profile in Profile::NAMED {
        let (plain, code) = (compile_profile(profile), with_door(&compile_profile(profile), words));
        let seccomp = libc::SYS_seccomp as u32;
        let ask = |code: &[Instruction], first: u64, second: u64| {
            run(code, table::ARCHITECTURE, seccomp, [1, 0, 0x7fff_0000, first, second, 0])
        };
        let [first, second] = words.map(u64::from);
        assert_eq!(ask(&code, first, second), ALLOW, "{profile:?}");
        for (first, second) in
            [(0, 0), (first, 0), (0, second), (second, first), (first, first), (second, second)]
        {
            assert_eq!(ask(&code, first, second), EPERM, "{profile:?} {first:x} {second:x}");
        }
        // The control: without a door there are no such words.
        assert_eq!(ask(&plain, first, second), EPERM, "{profile:?}");
        for number in (0..600).filter(|number| *number != seccomp) {
            for arguments in [[0; 6], [1, 2, 3, first, second, 6], [u64::MAX; 6]] {
                let answers = [&plain, &code].map(|code| run(code, table::ARCHITECTURE, number, arguments));
                assert_eq!(answers[0], answers[1], "{profile:?} {number} {arguments:x?}");
            }
        }
        assert_eq!(run(&code, 0x4000_0003, seccomp, [1, 0, 0, first, second, 0]), KILL, "{profile:?}");
        assert_eq!(
            run(&code, table::ARCHITECTURE, seccomp | 0x4000_0000, [1, 0, 0, first, second, 0]),
            EPERM
        );
    }
}

#[test]
fn what_breaks_sandboxes_is_refused() {
    let never = [
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_pidfd_getfd,
        libc::SYS_kcmp,
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_open_tree,
        libc::SYS_move_mount,
        libc::SYS_fsopen,
        libc::SYS_mount_setattr,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_open_by_handle_at,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_kexec_load,
        libc::SYS_swapon,
        libc::SYS_reboot,
        libc::SYS_syslog,
        libc::SYS_clock_settime,
        libc::SYS_iopl,
        libc::SYS_modify_ldt,
        libc::SYS_fanotify_init,
        libc::SYS_memfd_secret,
    ];
    for number in never {
        assert_eq!(call(Profile::Standard, number, [0; 6]), EPERM, "{number}");
    }
    let socket = |family: i32, kind: i32| {
        call(Profile::Standard, libc::SYS_socket, [family as u64, kind as u64, 0, 0, 0, 0])
    };
    assert_eq!(socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC), ALLOW);
    assert_eq!(socket(libc::AF_INET6, libc::SOCK_DGRAM | libc::SOCK_NONBLOCK), ALLOW);
    assert_eq!(socket(libc::AF_UNIX, libc::SOCK_STREAM), NO_FAMILY);
    for family in [libc::AF_NETLINK, libc::AF_PACKET, libc::AF_VSOCK, libc::AF_ALG] {
        assert_eq!(socket(family, libc::SOCK_STREAM), EPERM, "{family}");
    }
    assert_eq!(socket(libc::AF_INET, libc::SOCK_RAW), EPERM);
    assert_eq!(call(Profile::Strict, libc::SYS_socket, [2, 1, 0, 0, 0, 0]), EPERM);
    let clone =
        |flags: i32| call(Profile::Standard, libc::SYS_clone, [flags as u32 as u64 | 17, 0, 0, 0, 0, 0]);
    assert_eq!(clone(libc::CLONE_VM | libc::CLONE_VFORK), ALLOW);
    for flag in [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ] {
        assert_eq!(clone(flag), EPERM, "{flag:#x}");
    }
    assert_eq!(call(Profile::Standard, libc::SYS_ioctl, [0, libc::TIOCSTI, 0, 0, 0, 0]), EPERM);
    assert_eq!(call(Profile::Standard, libc::SYS_ioctl, [0, libc::TIOCGWINSZ, 0, 0, 0, 0]), ALLOW);
}

#[test]
fn the_table_has_each_call_once_and_strict_stays_small() {
    let rows: BTreeSet<(u32, Profile)> = table::rows().map(|row| (row.number, row.profile)).collect();
    assert_eq!(rows.len(), table::rows().count());
    let larger = table::rows()
        .filter(|row| table::rows().any(|other| other.number == row.number && other.profile < row.profile));
    assert_eq!(larger.map(|row| row.name).collect::<Vec<_>>(), ["SYS_socket"], "each other call stands once");
    assert!(table::rows().all(|row| row.number <= table::NEWEST && !row.who.is_empty()));
    // An older name of a call can do no more than the call.
    let (older, own): (Vec<&Row>, Vec<&Row>) = table::rows()
        .filter(|row| row.profile == Profile::Strict)
        .partition(|row| row.who.ends_with("older programs"));
    let (own, older) = (own.len(), older.len());
    assert!((70..=90).contains(&own) && older <= 20, "strict has {own} calls and {older} older names");
}

/// The worker is code of our own; what it may do beyond the profile that it is said to have is named here.
#[test]
fn the_worker_has_the_strict_calls_and_three_more() {
    let (strict, worker) = (compile_profile(Profile::Strict), compile(table::of_worker));
    let answer = |code: &[Instruction], number| run(code, table::ARCHITECTURE, number, [0; 6]);
    let more: Vec<u32> =
        (0..600).filter(|number| answer(&strict, *number) != answer(&worker, *number)).collect();
    let expected = [libc::SYS_flistxattr, libc::SYS_fsetxattr, libc::SYS_syncfs];
    assert_eq!(more.iter().copied().collect::<BTreeSet<u32>>(), expected.map(|number| number as u32).into());
    assert!(more.iter().all(|number| answer(&strict, *number) == EPERM && answer(&worker, *number) == ALLOW));
}

/// The names of a header of the kernel with their numbers; none where it is not installed.
fn header(path: &str) -> Option<BTreeMap<String, u32>> {
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("SKIPPED: no {path}: the numbers are not compared with the kernel's own");
        return None;
    };
    let line = |line: &str| {
        let line = line.strip_prefix("#define __NR_").or_else(|| line.strip_prefix("#define __NR3264_"))?;
        let mut words = line.split_whitespace();
        let name = words.next()?;
        // What the generic list calls by its 32-bit name.
        let name = if name == "fstatat" { "newfstatat" } else { name };
        Some((name.to_owned(), words.next()?.parse().ok()?))
    };
    Some(text.lines().filter_map(line).collect())
}

/// What x86-64 has besides is what it began with, and each of these has a successor in the list of both.
const X86_64_ALONE: &[&str] = &[
    "open",
    "stat",
    "lstat",
    "access",
    "readlink",
    "dup2",
    "poll",
    "arch_prctl",
    "fork",
    "vfork",
    "creat",
    "mkdir",
    "rmdir",
    "unlink",
    "rename",
    "link",
    "symlink",
    "chmod",
    "chown",
    "lchown",
    "utime",
    "utimes",
    "futimesat",
    "getdents",
    "inotify_init",
    "select",
    "pipe",
    "epoll_create",
    "epoll_wait",
    "epoll_ctl_old",
    "epoll_wait_old",
    "eventfd",
    "signalfd",
    "pause",
    "alarm",
    "getpgrp",
    "time",
    "mknod",
];

#[test]
fn aarch64_has_the_same_list_but_for_what_x86_64_began_with() {
    let of_both: BTreeSet<&str> = aarch64::AARCH64.iter().map(|(name, _)| *name).collect();
    let here: BTreeSet<&str> = table::rows().map(|row| row.name.trim_start_matches("SYS_")).collect();
    let alone: BTreeSet<&str> = X86_64_ALONE.iter().copied().collect();
    let expected = if cfg!(target_arch = "x86_64") { &of_both | &alone } else { of_both.clone() };
    assert_eq!(here, expected);
    assert_eq!(&of_both & &alone, BTreeSet::new());
    let numbers: BTreeSet<u32> = aarch64::AARCH64.iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers.len(), aarch64::AARCH64.len());
    if cfg!(target_arch = "aarch64") {
        let libc: BTreeSet<(&str, u32)> =
            table::rows().map(|row| (row.name.trim_start_matches("SYS_"), row.number)).collect();
        assert_eq!(libc, aarch64::AARCH64.iter().copied().collect());
    }
    let Some(generic) = header("/usr/include/asm-generic/unistd.h") else { return };
    let newest = generic.values().max().unwrap();
    for (name, number) in aarch64::AARCH64.iter().filter(|(_, number)| number <= newest) {
        assert_eq!(generic.get(*name), Some(number), "{name}");
    }
    for name in X86_64_ALONE {
        assert!(!generic.contains_key(*name), "aarch64 has `{name}`, too");
    }
}

/// Every call that x86-64 has is in the tables or on the list of what is in no profile: none was overlooked.
#[test]
#[cfg(target_arch = "x86_64")]
fn every_system_call_was_considered() {
    let paths = ["/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"];
    let Some(known) = paths.into_iter().find_map(header) else { return };
    for (name, number) in &known {
        let is_never = table::NEVER.contains(&name.as_str());
        assert_eq!(table::number(name), (!is_never).then_some(*number), "{name}");
    }
}

#[test]
fn netlink_is_for_standard_net_alone() {
    let netlink = |profile| call(profile, libc::SYS_socket, [16, 3, 0, 0, 0, 0]);
    let packet = |profile| call(profile, libc::SYS_socket, [17, 3, 0, 0, 0, 0]);
    assert_eq!(Profile::NAMED.map(netlink), [EPERM, EPERM, ALLOW]);
    assert_eq!(Profile::NAMED.map(packet), [EPERM; 3]);
}

/// Each kind of socket, and what the lists say of it with Unix sockets and without.
#[test]
fn unix_sockets_come_alone() {
    for profile in Profile::NAMED {
        let [network, unix] =
            [Sockets::Network, Sockets::Unix].map(|sockets| program(profile, sockets).unwrap());
        let kinds = (0..48).flat_map(|family| (0..7).map(move |kind| (family, kind)));
        for (family, kind) in kinds {
            for protocol in [0, 1, 2, 6, 17, 132, 255] {
                let answers = |number: libc::c_long| {
                    let arguments = [family, kind | 0o2_004_000, protocol, 0, 0, 0];
                    [network, unix].map(|code| run(code, table::ARCHITECTURE, number as u32, arguments))
                };
                let which = format!("{profile:?} {family} {kind} {protocol}");
                let [without, with] = answers(libc::SYS_socket);
                let is_one = family == 1 && [1, 2, 5].contains(&kind) && protocol < 2;
                match profile {
                    Profile::Strict => assert_eq!([without, with], [EPERM; 2], "{which}"),
                    _ if is_one => assert_eq!([without, with], [NO_FAMILY, ALLOW], "{which}"),
                    _ if family == 1 => assert_eq!([without, with], [NO_FAMILY, EPERM], "{which}"),
                    _ => assert_eq!(without, with, "{which}"),
                }
                let [without, with] = answers(libc::SYS_socketpair);
                let is_pair = profile != Profile::Strict && family == 1 && [1, 5].contains(&kind);
                assert_eq!(without == ALLOW, is_pair, "{which}");
                let is_more = profile != Profile::Strict && is_one;
                assert_eq!(with == ALLOW, is_pair || is_more, "{which}");
            }
        }
    }
}

#[test]
fn profiles_have_names_and_two_more() {
    assert_eq!(Profile::of_name("basic"), Some(Profile::Strict));
    assert_eq!(Profile::of_name("advanced"), Some(Profile::Standard));
    assert_eq!(Profile::NAMED.map(|profile| Profile::of_name(profile.name()).unwrap()), Profile::NAMED);
    assert_eq!([Profile::of_name("custom"), Profile::of_name("Strict")], [None; 2]);
}

#[test]
fn a_list_of_ones_own_adds_and_takes_away_and_never_reaches_beyond_the_walls() {
    let mut own = Calls::custom("own", Profile::Strict);
    own.allow("socket").unwrap();
    own.allow("io_setup").unwrap();
    own.deny("openat2").unwrap();
    let code = own.compile(Sockets::Network);
    let call = |number: libc::c_long, arguments| run(&code, table::ARCHITECTURE, number as u32, arguments);
    assert_eq!(call(libc::SYS_io_setup, [0; 6]), ALLOW);
    assert_eq!(call(libc::SYS_openat2, [0; 6]), EPERM);
    assert_eq!(call(libc::SYS_read, [0; 6]), ALLOW);
    assert_eq!(call(libc::SYS_clone3, [0; 6]), ENOSYS, "its flags cannot be seen");
    // The tests of arguments stay.
    assert_eq!(call(libc::SYS_socket, [2, 1, 0, 0, 0, 0]), ALLOW);
    assert_eq!(call(libc::SYS_socket, [1, 1, 0, 0, 0, 0]), NO_FAMILY);
    assert_eq!(call(libc::SYS_clone, [libc::CLONE_NEWUSER as u64, 0, 0, 0, 0, 0]), EPERM);
    for name in table::NEVER {
        assert_eq!(own.allow(name), Err(CallError::Never((*name).into())));
        assert_eq!(table::number(name), None, "{name}");
    }
    let error = own.allow("io_setpu").unwrap_err().to_string();
    assert_eq!(error, "there is no system call `io_setpu` here: `io_setup` is one");
    assert!(matches!(own.deny("frobnicate"), Err(CallError::Unknown { hint, .. }) if hint.is_empty()));
}

/// However its numbers came there, by a file or by a forged message: what the tables do not hold is refused.
#[test]
fn numbers_beyond_the_tables_are_refused() {
    let all: Vec<u32> = (0..600).collect();
    let forged = serde_json::json!({ "profile": "custom", "name": "x", "base": "standard", "numbers": all });
    let code = serde_json::from_value::<Calls>(forged).unwrap().compile(Sockets::Unix);
    for number in [libc::SYS_mount, libc::SYS_ptrace, libc::SYS_bpf, libc::SYS_unshare, libc::SYS_setns] {
        assert_eq!(run(&code, table::ARCHITECTURE, number as u32, [0; 6]), EPERM, "{number}");
    }
    assert_eq!(run(&code, table::ARCHITECTURE, libc::SYS_read as u32, [0; 6]), ALLOW);
}

/// Each end of a pair of datagram sockets can be connected again, to the name of a socket outside.
#[test]
fn a_pair_of_sockets_stays_a_pair() {
    for profile in [Profile::Strict, Profile::Standard] {
        let pair = |family: i32, kind: i32| {
            call(profile, libc::SYS_socketpair, [family as u64, kind as u64, 0, 0, 0, 0])
        };
        let kinds = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC];
        let is_allowed = |kind: i32| pair(libc::AF_UNIX, kind) == ALLOW;
        assert_eq!(kinds.map(is_allowed), [profile == Profile::Standard; 3], "{profile:?}");
        assert_eq!(pair(libc::AF_UNIX, libc::SOCK_DGRAM), EPERM);
        assert_eq!(pair(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_NONBLOCK), EPERM);
        assert_eq!(pair(libc::AF_INET, libc::SOCK_STREAM), EPERM);
    }
}

/// The process that confined itself: a network client with a database, on threads, and nothing more.
#[test]
fn what_confined_itself_starts_nothing_and_judges_no_file_s_mode() {
    let code = super::own();
    let call = |number: libc::c_long, arguments| run(&code, table::ARCHITECTURE, number as u32, arguments);
    let never = [
        libc::SYS_execve,
        libc::SYS_execveat,
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_pidfd_getfd,
        libc::SYS_mount,
        libc::SYS_open_tree,
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_bpf,
        libc::SYS_io_uring_setup,
        libc::SYS_userfaultfd,
        libc::SYS_keyctl,
        libc::SYS_open_by_handle_at,
        libc::SYS_kill,
        libc::SYS_pidfd_send_signal,
        libc::SYS_fchmod,
        libc::SYS_fchmodat,
        libc::SYS_fchownat,
        libc::SYS_utimensat,
        libc::SYS_setxattr,
        libc::SYS_bind,
        libc::SYS_listen,
    ];
    for number in never {
        assert_eq!(call(number, [0; 6]), EPERM, "{number}");
    }
    let clone = |flags: i32| call(libc::SYS_clone, [flags as u32 as u64, 0, 0, 0, 0, 0]);
    assert_eq!(clone(libc::CLONE_VM | libc::CLONE_THREAD), ALLOW);
    assert_eq!(clone(libc::SIGCHLD), EPERM, "a process");
    assert_eq!(clone(libc::CLONE_VM | libc::CLONE_VFORK), EPERM, "a process");
    assert_eq!(clone(libc::CLONE_THREAD | libc::CLONE_NEWNS), EPERM);
    let kill = |process: u64, signal: i32| call(libc::SYS_kill, [process, signal as u64, 0, 0, 0, 0]);
    let itself = u64::from(std::process::id());
    assert_eq!(kill(itself, libc::SIGSTOP), ALLOW);
    assert_eq!(
        [kill(itself, libc::SIGKILL), kill(1, libc::SIGSTOP), kill(u64::MAX, libc::SIGSTOP)],
        [EPERM; 3]
    );
    let abort = |process: u64, signal: i32| call(libc::SYS_tgkill, [process, 7, signal as u64, 0, 0, 0]);
    assert_eq!(abort(itself, libc::SIGABRT), ALLOW);
    assert_eq!([abort(itself, libc::SIGTERM), abort(itself + 1, libc::SIGABRT)], [EPERM; 2]);
    let pair = |kind: i32| call(libc::SYS_socketpair, [libc::AF_UNIX as u64, kind as u64, 0, 0, 0, 0]);
    assert_eq!(pair(libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC), ALLOW);
    assert_eq!(pair(libc::SOCK_DGRAM), EPERM);
    let socket = |family: i32| call(libc::SYS_socket, [family as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0]);
    assert_eq!(socket(libc::AF_INET), ALLOW);
    assert_eq!(socket(libc::AF_UNIX), EPERM);
    let fcntl = |what: i32| call(libc::SYS_fcntl, [0, what as u64, 1, 0, 0, 0]);
    assert_eq!([libc::F_DUPFD_CLOEXEC, libc::F_SETFL, libc::F_OFD_SETLK].map(fcntl), [ALLOW; 3]);
    // A file or socket signals whom it belongs to: any process, by any signal.
    assert_eq!([libc::F_SETOWN, 10, 15].map(fcntl), [EPERM; 3], "F_SETOWN, F_SETSIG, F_SETOWN_EX");
    let ioctl = |what: u64| call(libc::SYS_ioctl, [0, what, 0, 0, 0, 0]);
    assert_eq!(ioctl(libc::TIOCGWINSZ), ALLOW);
    assert_eq!([0x8901, 0x8902, libc::TIOCSTI].map(ioctl), [EPERM; 3], "FIOSETOWN, SIOCSPGRP");
    // It connects, and Landlock is not asked.
    let fast = libc::MSG_FASTOPEN as u64;
    for (number, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
        let send = |with: u64| {
            let mut arguments = [0; 6];
            arguments[flags] = with;
            call(number, arguments)
        };
        assert_eq!([send(0), send(libc::MSG_NOSIGNAL as u64), send(fast)], [ALLOW, ALLOW, EPERM], "{number}");
    }
    assert_eq!(call(libc::SYS_prlimit64, [1, 0, 0, 0, 0, 0]), EPERM, "another process's limits");
    assert_eq!(call(libc::SYS_prlimit64, [0; 6]), ALLOW);
}
