//! A24: what a program asks of the kernel.

use super::actor::{Actor, Who, could_not_be_tried, told};
use std::process::{Child, Stdio};

const PROBE: &str = include_str!("../probes/calls.py");

/// Attempts that any Linux lets a user make: when their control fails, the probe is broken.
const SURE: [&str; 9] = [
    "ptrace",
    "process_vm_readv",
    "unshare_user",
    "clone_user",
    "socket_unix",
    "socketpair_dgram",
    "socket_netlink",
    "kill_outside",
    "personality",
];

attack!(a24_system_calls_are_refused);
fn a24_system_calls_are_refused(who: Who) {
    let actor = Actor::new(who, &[("calls.py", PROBE)]);
    let host = Host::start(&actor);
    let pid = host.pid();
    let probe = ["/usr/bin/python3", "calls.py", &pid];
    let inside = told(&actor.inside(&probe));
    // In namespaces of its own anybody has every capability over them.
    let root =
        ["unshare", "--user", "--map-root-user", "--mount", "--net", "--pid", "--fork", "--mount-proc"];
    let controls = [
        ("without seccomp", told(&actor.without("seccomp", true, &probe))),
        ("outside", told(&actor.outside(&probe))),
        ("as root of namespaces outside", told(&actor.outside(&[&root, probe.as_slice()].concat()))),
    ];
    let succeeds = |name: &str| {
        controls.iter().find(|(_, told)| told.get(name).is_some_and(|told| told == "ok")).map(|(how, _)| *how)
    };
    for (name, told) in &inside {
        assert_ne!(told, "ok", "{name} succeeded inside the walls");
        match succeeds(name) {
            Some(how) => println!("held: {name}: {told} (succeeds {how})"),
            None => {
                could_not_be_tried(name, format!("{:?}", controls.each_ref().map(|(_, told)| told.get(name))))
            }
        }
    }
    for name in SURE {
        assert!(succeeds(name).is_some(), "the control of {name}: {controls:?}");
    }
    if who == Who::Root {
        assert!(succeeds("mount").is_some() && succeeds("open_by_handle_at").is_some(), "{controls:?}");
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
