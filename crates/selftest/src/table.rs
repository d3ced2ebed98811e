//! The attacks of `bailey prove`: each line names its wall and its claim. A test compares the
//! table with docs/security/claims.toml.

use super::{door::Request, gate::Check, record::Tampering};

/// One attack.
#[derive(Debug)]
pub(crate) struct Attack {
    /// Its name.
    pub(crate) id: &'static str,
    /// The property that must hold, in plain words.
    pub(crate) says: &'static str,
    /// The wall that holds it.
    pub(crate) wall: &'static str,
    /// The claim, as docs/security/claims.toml has it.
    pub(crate) claim: &'static str,
    pub(crate) trial: Trial,
}

/// How an attack is tried.
///
/// In a probe's words `{user}`, `{project}`, `{outside}` and `{home}` are planted places; `{yard}` is the
/// project inside the walls, and a similar place outside. `{pid}` is a planted process, `{port}` and
/// `{abstract}` are planted listeners, `{open}` and its like planted servers (see `door.rs`), `{variables}`
/// the names of this process's own variables.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Trial {
    /// The same probe inside and outside the walls (see `probe.rs`).
    Probe(&'static str),
    /// The same, but the host's file shows whether the probe came through.
    File { probe: &'static str, file: &'static str },
    /// The probe tries to kill a planted process.
    Kill,
    /// The probe tries to leave a process behind.
    Leave,
    /// The probe tries to grow past a limit.
    Grow { probe: &'static str, limit: Limit },
    /// A directory is swapped for a link to the outside while the kernel reads.
    Swap,
    /// A request to the gate.
    Gate(Check),
    /// A copy of the journal is changed.
    Record(Tampering),
    /// A command prints a key that Bailey knows.
    Secret,
    /// A command asks at the network door.
    Door(Request),
}

/// A limit of a command, lower here than usual.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    /// Tasks.
    Tasks(u32),
    /// Bytes of memory.
    Memory(u64),
    /// Bytes of disk.
    Disk(u64),
}

const SEEN: &str = "Inside the walls, nothing of the host is seen except the listed parts";
const NETWORK: &str = "A command reaches no network, not even the host's loopback";
const SOCKETS: &str =
    "A command reaches no Unix socket of the host in any directory of the host that the command is shown";
const RULED: &str = "A command reaches no host except by a request that the rules allow; the door judges \
                     each request by its host, path and method, also inside TLS, writes it into the journal \
                     before it leaves or as refused, also where the door refuses it by itself, and says with \
                     a refusal how to allow the request; a command of the owner's is no better off";
const WORLD: &str = "No request of a command leads to an address of this machine, a private network or a \
                     cloud's metadata, however the address is written, except to places that the owner's \
                     configuration names by scheme, host and port; a request never leads to metadata";
const BOUND: &str = "Commands use a key that its owner bound to a server, and never hold the key; the door \
                     puts it in for that scheme, host, port, method, path and header only, beside nothing \
                     that has a usual name of a login; the key's stand-in inside is refused in every other \
                     place, spelling and piece; an answer that shows the key is masked; each use is an entry \
                     that names the key";
const TRAFFIC: &str = "The number of bytes that go to a host and come from it, and the number of requests to \
                       it, stay within the limits of the owner; the only traffic that is not looked into is \
                       traffic that the owner named and a rule allows";
const PASS: &str = "A request shows the pass of its own command: another command of the session, which \
                    shares its network, uses no way that is not its own";
const CALLS: &str =
    "System calls that leave the walls are refused, whichever profile the owner chose or wrote";
const BOMBS: &str = "Bailey bounds and reaps bombs, within two seconds also where it can only watch a limit";
const LEFT: &str =
    "Nothing of a command is left when the command ends or is cancelled, or when Bailey is killed";
const PROJECT: &str = "The project is untouched until an apply; an apply is whole per file, even when it is \
                       killed; an undo restores all of it";
const HOST_RUNS: &str = "Files on a list of files that git, builds, editors and agents obey are not applied \
                         unasked, and not without each file having been named on the card; no apply writes \
                         into the project the files that make a git repository";
const MASKED: &str = "Secret-looking files cannot be read inside until the human reveals them";
const SWAPPED: &str =
    "A directory that is swapped for a link during a read, search or change shows nothing outside";
const LEAST: &str = "An error in a check is a refusal; below the minimum of walls, and below the isolation \
                     that the owner wants of a tier, nothing runs, whatever an order says";
const UNWALLED: &str = "Only a flag of the command line leaves walls away; then each command, each change of \
                        a file (also of the agent's own file), and each look at the machine's temporary \
                        files is a question of its own, whatever rules allow, and without a human no such \
                        action happens; a search shows no line of a file that looks like a secret";
const LAW: &str = "The agent cannot change its own law";
const SIGNS: &str = "The key that signs is out of reach inside the walls";
const ONCE: &str = "An answer given after the asking process ended is used once at most, for that call's \
                    very action, and not after a change of the rules; a question without an answer in time \
                    is a no";
const FILES: &str = "A yes to a command is good while the files that it names are as they were when the \
                     human was asked: its program, its interpreter, and the files that its words lead to";
const BUDGET: &str = "Bailey makes no model call without a reservation";
const STOP: &str = "After `bailey estop` nothing begins in any process of the home, also after a restart, \
                    until a human at a terminal releases the stop; running work is ended within a second, \
                    and an action that had a yes before is asked about anew; this holds also where the disk \
                    is full, as long as the 1 MiB of the home is there that is kept for it";
const IN_FORCE: &str = "Rules that another process put into force count from the next effect on";
const FORGED: &str = "Anyone can narrow a token, but no one can widen, forge or cut a token";
const SPENT: &str = "A caller that acts by a token does nothing without a token that holds: in its walls, in \
                     its time, for its number of operations, under the rules that it was minted under";
const WITNESSED: &str = "A comparison with a witness finds an old copy of journal and key that was put back, \
                         however much was written since";
const CHAIN: &str = "Bailey finds a changed, deleted, inserted or reordered entry of the journal";
const SIGNED: &str = "A journal whose end was cut off, and a chain that was written anew as a whole, are \
                      found as far as they were signed; an attacker who has today's key cannot sign anything \
                      of yesterday";
const FORMS: &str = "Bailey takes out a key that it knows also in the forms that programs print by accident: \
                     Base64 at every alignment, in hexadecimal, percent-encoded, escaped for JSON, HTML or a \
                     shell, coloured, over line breaks, in pieces of a stream";

const fn line(
    id: &'static str,
    says: &'static str,
    wall: &'static str,
    claim: &'static str,
    trial: Trial,
) -> Attack {
    Attack { id, says, wall, claim, trial }
}

use Trial::{Door, File, Gate, Grow, Kill, Leave, Probe, Record, Secret, Swap};

pub(crate) const LINES: &[Attack] = &[
    line(
        "home.key",
        "a command cannot read a key in ~/.ssh",
        "mount namespace",
        SEEN,
        Probe("read {user}/.ssh/id_ed25519"),
    ),
    line(
        "home.file",
        "a command cannot read another file of the home",
        "mount namespace",
        SEEN,
        Probe("read {user}/notes.txt"),
    ),
    line(
        "outside.read",
        "a command cannot read a file outside of the project",
        "mount namespace",
        SEEN,
        Probe("read {outside}/notes.txt"),
    ),
    line(
        "outside.write",
        "a command cannot write outside of the project",
        "mount namespace",
        SEEN,
        File { probe: "write {outside}/new.txt", file: "{outside}/new.txt" },
    ),
    line(
        "kernel.write",
        "a command cannot write into the kernel's files in /proc",
        "landlock",
        SEEN,
        Probe("rewrite /proc/self/comm"),
    ),
    line(
        "project.write",
        "what a command writes into the project stays in the layer",
        "mount namespace",
        PROJECT,
        File { probe: "write {yard}/new.txt", file: "{yard}/new.txt" },
    ),
    line(
        "git.hook",
        "a hook that a command writes never runs on the host",
        "mount namespace",
        HOST_RUNS,
        File { probe: "write {yard}/.git/hooks/pre-commit", file: "{yard}/.git/hooks/pre-commit" },
    ),
    line("mask.env", "a command cannot read the project's .env", "masks", MASKED, Probe("read {yard}/.env")),
    line(
        "mask.moved",
        "a command cannot move a directory above what is masked",
        "mounts above mounts",
        MASKED,
        Probe("move {user}/.cargo"),
    ),
    line(
        "link.swap",
        "a directory swapped for a link shows nothing outside",
        "reads beneath the root",
        SWAPPED,
        Swap,
    ),
    line(
        "host.variables",
        "a command gets none of this process's variables",
        "a new environment",
        SEEN,
        Probe("variables {variables}"),
    ),
    line(
        "process.look",
        "a command cannot look into a process of the host",
        "pid and user namespace, no capabilities",
        SEEN,
        Probe("look {pid}"),
    ),
    line(
        "process.kill",
        "a command cannot kill a process of the host",
        "pid namespace, landlock",
        SEEN,
        Kill,
    ),
    line(
        "process.trace",
        "a command cannot trace a process of the host",
        "seccomp, pid and user namespace, landlock, no capabilities",
        CALLS,
        Probe("trace {pid}"),
    ),
    line("process.left", "nothing that a command starts outlives it", "pid namespace", LEFT, Leave),
    line(
        "network.loopback",
        "a command cannot reach a server on the host",
        "net namespace",
        NETWORK,
        Probe("tcp {port}"),
    ),
    line("network.route", "a command has no route to the world", "net namespace", NETWORK, Probe("route")),
    line(
        "network.abstract",
        "a command cannot reach an abstract socket of the host",
        "seccomp, net namespace, landlock",
        NETWORK,
        Probe("abstract {abstract}"),
    ),
    line(
        "network.shown",
        "a command cannot reach a socket in a directory that it is shown",
        "overlays",
        SOCKETS,
        Probe("socket {user}/.cargo/bin/s"),
    ),
    line(
        "network.socket",
        "a command cannot reach a socket that lies in the project",
        "seccomp, overlay",
        SOCKETS,
        Probe("socket {project}/server.sock"),
    ),
    line(
        "door.rule",
        "a request that no rule allows does not leave",
        "rules at the network door",
        RULED,
        Door(Request::Unruled),
    ),
    line(
        "door.private",
        "no request leads to a private address that nobody named",
        "addresses at the network door",
        WORLD,
        Door(Request::Private),
    ),
    line(
        "door.key",
        "a key is put in at no other path than its own",
        "places of keys at the network door",
        BOUND,
        Door(Request::Elsewhere),
    ),
    line(
        "door.url",
        "the stand-in of a key leaves in no URL",
        "stand-ins at the network door",
        BOUND,
        Door(Request::Url),
    ),
    line(
        "door.body",
        "the stand-in of a key leaves in no body",
        "bodies at the network door",
        BOUND,
        Door(Request::Body),
    ),
    line(
        "door.answer",
        "an answer that shows the key is masked",
        "answers at the network door",
        BOUND,
        Door(Request::Answer),
    ),
    line(
        "door.limit",
        "no more goes to a host than its owner said",
        "limits at the network door",
        TRAFFIC,
        Door(Request::Limit),
    ),
    line(
        "door.pass",
        "a command cannot use the door of another one",
        "passes at the network door",
        PASS,
        Door(Request::Pass),
    ),
    line("call.namespace", "a command cannot make namespaces", "seccomp", CALLS, Probe("namespace")),
    line("call.mount", "a command cannot mount", "seccomp, landlock", CALLS, Probe("mount")),
    line("call.root", "a command cannot become root", "seccomp, landlock", CALLS, Probe("root")),
    line("call.bpf", "a command cannot load programs into the kernel", "seccomp", CALLS, Probe("bpf")),
    line(
        "call.keyring",
        "a command cannot ask for the kernel's keyrings",
        "seccomp",
        CALLS,
        Probe("keyring"),
    ),
    line(
        "call.io_uring",
        "a command cannot go past the filter by io_uring",
        "seccomp",
        CALLS,
        Probe("io_uring"),
    ),
    line("call.userfault", "a command cannot handle page faults", "seccomp", CALLS, Probe("userfault")),
    line(
        "limit.tasks",
        "a fork bomb is bounded",
        "pids limit",
        BOMBS,
        Grow { probe: "tasks 300", limit: Limit::Tasks(100) },
    ),
    line(
        "limit.memory",
        "what takes too much memory is ended",
        "memory limit",
        BOMBS,
        Grow { probe: "memory 384", limit: Limit::Memory(192 << 20) },
    ),
    line(
        "limit.disk",
        "what takes too much disk is ended",
        "disk limit",
        BOMBS,
        Grow { probe: "disk {yard}/fill 24", limit: Limit::Disk(8 << 20) },
    ),
    line(
        "law.rules",
        "a command cannot write Bailey's rules",
        "mount namespace",
        LAW,
        File { probe: "write {home}/policy/new.toml", file: "{home}/policy/new.toml" },
    ),
    line(
        "law.journal",
        "a command cannot touch the journal",
        "mount namespace",
        LAW,
        File { probe: "write {home}/journal.bait", file: "{home}/journal.bait" },
    ),
    line(
        "law.key",
        "a command cannot read what lies beside the key that signs",
        "mount namespace",
        SIGNS,
        Probe("read {home}/bait.key"),
    ),
    line(
        "gate.law",
        "no rule of a home lets the agent at Bailey's own rules",
        "built-in rules",
        LAW,
        Gate(Check::Law),
    ),
    line(
        "gate.unwalled",
        "without a sandbox no rule lets a command through unasked",
        "built-in rules",
        UNWALLED,
        Gate(Check::Unwalled),
    ),
    line(
        "walls.tier",
        "nothing runs behind less than its tier wants",
        "the warden's comparison of levels",
        LEAST,
        Gate(Check::Tier),
    ),
    line("gate.once", "an approval is used once", "the journal's transaction", ONCE, Gate(Check::Once)),
    line(
        "gate.files",
        "a script that changed after the yes is not run",
        "digest of named files",
        FILES,
        Gate(Check::Files),
    ),
    line(
        "gate.budget",
        "no model is asked beyond the budget",
        "the journal's transaction",
        BUDGET,
        Gate(Check::Budget),
    ),
    line(
        "gate.stop",
        "after an emergency stop nothing begins",
        "the journal's transaction",
        STOP,
        Gate(Check::Stop),
    ),
    line(
        "gate.late",
        "an answer that came too late begins nothing",
        "the journal's transaction",
        ONCE,
        Gate(Check::Late),
    ),
    line(
        "gate.rules",
        "what was allowed by rules that have changed since begins nothing",
        "the journal's transaction",
        IN_FORCE,
        Gate(Check::Rules),
    ),
    line(
        "gate.forged",
        "a token with another signature opens nothing",
        "chain of HMACs",
        FORGED,
        Gate(Check::Forged),
    ),
    line(
        "gate.spent",
        "a token is used as often as it says",
        "the journal's transaction",
        SPENT,
        Gate(Check::Spent),
    ),
    line(
        "journal.byte",
        "a changed byte of the journal is found",
        "hash chain",
        CHAIN,
        Record(Tampering::Byte),
    ),
    line(
        "journal.order",
        "entries that changed places are found",
        "hash chain",
        CHAIN,
        Record(Tampering::Order),
    ),
    line(
        "journal.end",
        "an end of the journal that was cut off is found",
        "checkpoints",
        SIGNED,
        Record(Tampering::End),
    ),
    line(
        "journal.back",
        "an old copy of the journal that was put back is found",
        "witness",
        WITNESSED,
        Record(Tampering::Back),
    ),
    line("journal.key", "a key that a command prints is not in the journal", "redactor", FORMS, Secret),
];
