//! A24: what a program asks of the kernel.

use super::{
    actor::{Actor, Who, told},
    control::{Lack, Lacks, judge},
};
use std::process::{Child, Stdio};

const PROBE: &str = include_str!("../probes/calls.py");

/// What not every kernel has, lets a user do, or is set to do. All else must succeed without the walls.
const LACKS: &Lacks = &[
    (&["bpf"], Lack::Root),
    (&["device", "open_by_handle_at", "swapon", "syslog"], Lack::Root),
    (&["kexec_load", "init_module"], Lack::Root),
    (&["kexec_load", "init_module", "bpf", "swapon"], Lack::Answer(&["ENOSYS"])),
    (&["io_uring"], Lack::Setting("/proc/sys/kernel/io_uring_disabled", 0)),
    (&["io_uring", "userfaultfd"], Lack::Answer(&["ENOSYS"])),
    (&["perf_event_open"], Lack::Setting("/proc/sys/kernel/perf_event_paranoid", 2)),
    (&["tiocsti"], Lack::Answer(&["EIO"])),
    // Families and protocols that a kernel is built without, or has no module of.
    (&["socket_vsock", "socket_alg", "socket_xdp", "socket_bluetooth", "socket_key"], FAMILY),
    (&["socket_tipc", "socket_smc", "socket_can", "socket_packet"], FAMILY),
    (&["socket_sctp"], Lack::Answer(&["EPROTONOSUPPORT", "ESOCKTNOSUPPORT"])),
    // Numbers of another architecture's.
    (&["x32", "int80"], Lack::Answer(&["ENOSYS", "signal 11"])),
];

const FAMILY: Lack = Lack::Answer(&["EAFNOSUPPORT"]);

/// In namespaces of its own anybody has every capability over them, and says who may ping.
const ROOT: [&str; 13] = [
    "unshare",
    "--user",
    "--map-root-user",
    "--mount",
    "--net",
    "--uts",
    "--pid",
    "--fork",
    "--mount-proc",
    "sh",
    "-c",
    "echo 0 0 > /proc/sys/net/ipv4/ping_group_range; exec \"$@\"",
    "sh",
];

attack!(a24_system_calls_are_refused);
fn a24_system_calls_are_refused(who: Who) {
    let actor = Actor::new(who, &[("calls.py", PROBE)]);
    let host = Host::start(&actor);
    let pid = host.pid();
    let probe = ["/usr/bin/python3", "calls.py", &pid];
    let inside = told(&actor.inside(&probe));
    let controls = [
        ("without seccomp", told(&actor.without("seccomp", true, &probe))),
        ("outside", told(&actor.outside(&probe))),
        ("as root of namespaces outside", told(&actor.outside(&[&ROOT, probe.as_slice()].concat()))),
    ];
    for (name, told) in &inside {
        assert_ne!(told, "ok", "{name} succeeded inside the walls");
        let answers = controls.each_ref().map(|(_, told)| told[name].as_str());
        let done = controls.iter().find(|(_, told)| told[name] == "ok").map(|(how, _)| *how);
        judge(who, name, done.ok_or(&answers[..]), LACKS);
    }
}

/// A process of the actor on the host.
struct Host(Child);

impl Host {
    fn start(actor: &Actor) -> Self {
        let mut command = actor.program(&["sleep", "300"]);
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
