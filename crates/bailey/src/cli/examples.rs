//! An example or two of each command, in one table, so that all help has one shape. A test reads every line
//! of it with the parser itself.

use clap::Command;

/// A command's words, and its examples: what is typed, and what it is for.
type Examples = (&'static [&'static str], &'static [(&'static str, &'static str)]);

pub(super) const EXAMPLES: &[Examples] = &[
    (
        &["run"],
        &[
            ("bailey run \"make the tests pass\"", "in a repository"),
            ("git diff | bailey run \"review this\"", "with standard input as context"),
            ("bailey run --answer --approve never \"explain src/main.rs\"", "the answer alone"),
            ("bailey --json run --approve never \"explain src/main.rs\"", "the last line is the outcome"),
        ],
    ),
    (
        &["backup"],
        &[("bailey backup", "into the home itself"), ("bailey backup /mnt/disk/bailey", "to another disk")],
    ),
    (&["restore"], &[("bailey restore ~/.bailey/backups/20261121T180000Z", "")]),
    (
        &["agent", "new"],
        &[
            (
                "bailey agent new reviewer --tools fs.read,fs.list,search.grep,git.run",
                "it reads, and changes nothing",
            ),
            ("bailey run --agent reviewer \"look through the last commit\"", "then"),
        ],
    ),
    (&["agent", "list"], &[("bailey agent list", "")]),
    (&["agent", "remove"], &[("bailey agent remove reviewer", "")]),
    (
        &["schedule", "add"],
        &[
            (
                "bailey schedule add tests --cron \"30 7 * * mon-fri\" \"run the tests and say what fails\"",
                "",
            ),
            (
                "bailey schedule add notes --cron @daily --may read,list,search --may change:docs \"bring the notes up to date\"",
                "which may do nothing else",
            ),
        ],
    ),
    (&["schedule", "list"], &[("bailey schedule list", "")]),
    (&["schedule", "run"], &[("bailey schedule run tests", "now")]),
    (&["schedule", "rm"], &[("bailey schedule rm tests", "")]),
    (&["web", "link"], &[("bailey web link", "open the link within five minutes")]),
    (&["web", "list"], &[("bailey web list", "who is logged in, and since when")]),
    (
        &["web", "token"],
        &[("bailey web token grafana > /etc/prometheus/bailey.token", "for a metrics collector")],
    ),
    (
        &["web", "revoke"],
        &[("bailey web revoke 3", "one login, by its number"), ("bailey web revoke --all", "all logins")],
    ),
    (&["channels", "list"], &[("bailey channels list", "which channels are up, and why one is down")]),
    (
        &["channels", "add"],
        &[
            ("bailey channels add telegram", "in the project that its conversations are about"),
            ("bailey channels add telegram work", "a second bot; a pipe can bring its token"),
        ],
    ),
    (&["channels", "people"], &[("bailey channels people", "who may write, and who asks to")]),
    (
        &["channels", "pair"],
        &[
            ("bailey channels pair telegram H7KM-2QXA --as owner", "you, on your phone"),
            ("bailey channels pair telegram PZ4N-8WDE", "somebody who gives the agent work"),
            ("bailey channels pair telegram 4711 --as operator", "another role for a person who is let in"),
        ],
    ),
    (&["channels", "forget"], &[("bailey channels forget telegram 4711", "from now on")]),
    (&["chat"], &[("bailey chat", "in a repository"), ("bailey chat --resume 3f2a", "continue a session")]),
    (
        &["start"],
        &[("bailey start", "then: bailey chat"), ("bailey start --foreground", "from a service manager")],
    ),
    (&["stop"], &[("bailey stop", ""), ("bailey stop --patience 300", "where turns take long")]),
    (&["status"], &[("bailey status", ""), ("bailey --json status", "from a script")]),
    (&["reload"], &[("bailey reload", "after a change of config.toml or of a rule")]),
    (&["logs"], &[("bailey logs -f", "also new lines"), ("bailey --json logs -n 5", "from a script")]),
    (
        &["sessions", "list"],
        &[
            ("bailey sessions list", ""),
            ("bailey sessions list -n 10 --project .", "the newest ten of this project"),
        ],
    ),
    (&["sessions", "search"], &[("bailey sessions search flaky test", "with both words")]),
    (&["sessions", "show"], &[("bailey sessions show 3f2a", "by some of its digits")]),
    (
        &["sessions", "context"],
        &[
            ("bailey sessions context 3f2a", ""),
            ("bailey --json sessions context 3f2a", "with the request itself"),
        ],
    ),
    (&["sessions", "resume"], &[("bailey sessions resume 3f2a \"now the documentation\"", "")]),
    (
        &["sessions", "diff"],
        &[
            ("bailey sessions diff 3f2a", ""),
            ("bailey sessions diff 3f2a --red", "only the changes that ask you first"),
            ("bailey sessions diff 3f2a --hunks", "as numbered hunks"),
        ],
    ),
    (
        &["sessions", "apply"],
        &[
            ("bailey sessions apply 3f2a", ""),
            ("bailey sessions apply 3f2a src docs", "in parts"),
            ("bailey sessions apply 3f2a --hunks", "asks about each hunk"),
        ],
    ),
    (&["sessions", "discard"], &[("bailey sessions discard 3f2a", "")]),
    (&["sessions", "undo"], &[("bailey sessions undo 3f2a", "")]),
    (&["sessions", "fork"], &[("bailey sessions fork 3f2a --at 120", "from the state after entry 120")]),
    (&["sessions", "export"], &[("bailey sessions export 3f2a --output 3f2a.jsonl", "")]),
    (&["sessions", "rm"], &[("bailey sessions rm 3f2a", "")]),
    (
        &["approvals", "list"],
        &[("bailey approvals list", ""), ("bailey --json approvals list --all", "for scripts")],
    ),
    (&["approvals", "show"], &[("bailey approvals show 9c41d0aa", "by its first digits")]),
    (
        &["approvals", "approve"],
        &[
            ("bailey approvals approve 9c41d0aa", "once"),
            ("bailey approvals approve 9c41d0aa --session", "the same action for the rest of its session"),
            ("bailey approvals approve 9c41d0aa --pattern", "everything that the pattern on the card covers"),
        ],
    ),
    (
        &["approvals", "reject"],
        &[
            ("bailey approvals reject 9c41d0aa --reason \"not on a Friday\"", ""),
            ("bailey approvals reject --all --kind http", "all waiting requests"),
        ],
    ),
    (&["approvals", "again"], &[("bailey approvals again 9c41d0aa", "when nobody answered in time")]),
    (
        &["approvals", "servers"],
        &[("bailey approvals servers", ""), ("bailey --json approvals servers", "for scripts")],
    ),
    (
        &["approvals", "revoke"],
        &[
            ("bailey approvals revoke https://docs.example.com:443", "as it is listed"),
            ("bailey approvals revoke docs.example.com", "with any scheme and port"),
        ],
    ),
    (
        &["estop"],
        &[
            ("bailey estop --reason \"what is it doing\"", "from any terminal"),
            ("bailey estop --release", "when it is clear"),
            ("bailey estop --release --drop", "nothing goes on by itself"),
        ],
    ),
    (&["ps"], &[("bailey ps", ""), ("bailey ps --stop 8788f7be/1", "by its name in the list")]),
    (&["budget"], &[("bailey budget", ""), ("bailey --json budget", "for scripts")]),
    (
        &["audit", "export"],
        &[
            ("bailey audit export > journal.jsonl", ""),
            ("bailey audit export --otlp --session 3f2a", "spans, for a collector"),
            ("bailey audit export --folded --session 3f2a > session.folded", "stacks, for a flame graph"),
        ],
    ),
    (&["audit", "log"], &[("bailey audit log -n 20", ""), ("bailey --json audit log --session 3f2a", "")]),
    (
        &["audit", "verify"],
        &[
            ("bailey audit verify", "exit code 5 when the chain is broken"),
            ("bailey audit verify --key /media/usb/bailey.pub", "also check the signatures against that key"),
        ],
    ),
    (
        &["audit", "prove"],
        &[
            ("bailey audit prove 42 --out proof.json", "for anybody who has your first public key"),
            ("bailey audit prove 42 --payload --out proof.json", "with the content of the entry"),
            (
                "bailey audit prove --since 3 --out growth.json",
                "that nothing before checkpoint 3 was changed",
            ),
        ],
    ),
    (&["audit", "check"], &[("bailey audit check proof.json --key /media/usb/bailey.pub", "on any machine")]),
    (&["audit", "key"], &[("bailey audit key > /media/usb/bailey.pub", "once, to keep it elsewhere")]),
    (&["audit", "export"], &[("bailey audit export > journal.jsonl", "")]),
    (
        &["audit", "archive"],
        &[
            (
                "bailey audit archive --before 2026-01-31 --dry-run",
                "what would leave, and what stays and why",
            ),
            ("bailey audit archive --before 2026-01-31", ""),
            ("bailey audit archive --list", ""),
        ],
    ),
    (&["audit", "rebuild"], &[("bailey audit rebuild", "")]),
    (
        &["audit", "recover"],
        &[
            ("bailey audit recover", "when journal.db is damaged; bailey guide audit"),
            (
                "bailey audit recover --copy /mnt/disk/bailey",
                "and what that copy has in the place of what is gone",
            ),
        ],
    ),
    (
        &["policy", "show"],
        &[
            ("bailey policy show", "every rule in force"),
            ("bailey policy show outside-reads", "one rule, in full"),
        ],
    ),
    (&["policy", "check"], &[("bailey policy check", "after an edit of ~/.bailey/policy")]),
    (
        &["policy", "test"],
        &[
            ("bailey policy test", "the rules in force"),
            ("bailey policy test draft.toml", "a file before you move it there"),
        ],
    ),
    (
        &["policy", "decide"],
        &[
            ("bailey policy decide --stdio", "started by another runtime, which writes and reads lines"),
            ("bailey policy decide --stdio --trust internal", "where you vouch for it"),
        ],
    ),
    (
        &["policy", "explain"],
        &[
            ("bailey policy explain read ~/notes.txt", ""),
            ("bailey policy explain --network exec -- cargo fetch", ""),
            ("bailey policy explain tool send_email --effect egress", "a tool of another program"),
            ("bailey policy explain --entry 42", "a recorded decision"),
        ],
    ),
    (
        &["replay"],
        &[
            ("bailey replay 3f2a", "by its last digits"),
            ("bailey replay 3f2a --policy draft.toml", "what other rules would have decided"),
        ],
    ),
    (
        &["policy", "simulate"],
        &[
            ("bailey policy simulate draft.toml", "beside the rule files that the home has"),
            ("bailey policy simulate --without own.toml --last 1000", ""),
            ("bailey policy simulate drafts --session 3f2a", "a folder of drafts"),
        ],
    ),
    (
        &["policy", "update"],
        &[
            ("bailey policy update own.toml", ""),
            ("bailey policy update draft.toml --name own.toml --dry-run", "only look"),
            ("bailey policy update --remove own.toml", ""),
        ],
    ),
    (&["policy", "extensions", "list"], &[("bailey policy extensions list", "")]),
    (
        &["policy", "extensions", "enable"],
        &[("bailey policy extensions enable no-deploy", "after you fixed it")],
    ),
    (
        &["sandbox", "run"],
        &[
            ("bailey sandbox run -- cargo test", ""),
            ("bailey sandbox run --network -- curl https://example.com", "where your rules let that pass"),
        ],
    ),
    (
        &["prewarm", "add"],
        &[
            ("bailey prewarm add --network -- npm ci", "then bailey run --warm \"…\""),
            ("bailey prewarm add -n 3 -- cargo fetch --offline", "three of them"),
        ],
    ),
    (&["prewarm", "list"], &[("bailey prewarm list", "")]),
    (&["prewarm", "remove"], &[("bailey prewarm remove 3f2a9b1c", "by its name in the list")]),
    (&["sandbox", "doctor"], &[("bailey sandbox doctor", "exit code 1 when a wall is missing")]),
    (&["init"], &[("bailey init", "")]),
    (&["guide"], &[("bailey guide", "the list"), ("bailey guide network", "")]),
    (
        &["doctor"],
        &[
            ("bailey doctor", "exit code 1 when something fails"),
            ("bailey doctor --offline", "asks no model provider"),
            ("bailey doctor --verbose", "also the tiers of code"),
            ("bailey --json doctor", "one finding per line: check, grade, says, fix"),
        ],
    ),
    (
        &["prove"],
        &[
            ("bailey prove", "exit code 1 when something is NOT HELD"),
            ("bailey prove --all", "every line, with its control"),
            ("bailey prove network law", "some of the lines, by name"),
            ("bailey --json prove", "one object per line, for scripts"),
        ],
    ),
    (
        &["config", "show"],
        &[(
            "bailey config show --origin",
            "each value with the file and line, or the variable, it came from",
        )],
    ),
    (
        &["config", "set"],
        &[
            ("bailey config set model ollama/qwen3-coder", ""),
            ("bailey config set limits.day_tokens 2000000", ""),
        ],
    ),
    (&["config", "edit"], &[("bailey config edit", "in $VISUAL, else $EDITOR")]),
    (&["config", "check"], &[("bailey config check", "exit code 2 when there is a mistake")]),
    (
        &["secrets", "set"],
        &[
            ("bailey secrets set ANTHROPIC_API_KEY", "asks for it"),
            ("pass show anthropic | bailey secrets set ANTHROPIC_API_KEY", ""),
        ],
    ),
    (&["secrets", "list"], &[("bailey --json secrets list", "names only, never a value")]),
    (&["secrets", "rm"], &[("bailey secrets rm OLD_API_KEY", "")]),
    (
        &["trust", "show"],
        &[
            ("bailey trust show", "this repository's settings"),
            ("bailey trust show --all", "every trusted one"),
        ],
    ),
    (
        &["mcp", "add"],
        &[
            ("bailey mcp add memory", "a server that Bailey knows"),
            ("bailey mcp add notes --host api.example.com -- npx -y some-notes-server", "any other"),
            (
                "bailey mcp add mine --workspace read -- /usr/bin/python3 /opt/server.py",
                "it reads the project",
            ),
        ],
    ),
    (&["mcp", "trust"], &[("bailey mcp trust --workspace read", "in a project with a .mcp.json")]),
    (&["mcp", "list"], &[("bailey mcp list", "")]),
    (&["mcp", "show"], &[("bailey mcp show memory", "")]),
    (&["mcp", "test"], &[("bailey mcp test memory", "")]),
    (&["mcp", "approve"], &[("bailey mcp approve memory", "when its tools have changed")]),
    (&["mcp", "update"], &[("bailey mcp update memory", "")]),
    (&["mcp", "remove"], &[("bailey mcp remove memory", "")]),
    (&["trust", "add"], &[("bailey trust add -C src/project", "")]),
    (&["trust", "rm"], &[("bailey trust rm -C src/project", "")]),
    (&["soul", "show"], &[("bailey soul show", "")]),
    (&["soul", "accept"], &[("bailey soul accept", "once you have read it")]),
    (&["models"], &[("bailey models", "")]),
    (&["tools", "list"], &[("bailey tools list", "")]),
    (&["tools", "show"], &[("bailey tools show fs.edit", "")]),
    (
        &["completions"],
        &[("bailey completions bash > ~/.local/share/bash-completion/completions/bailey", "")],
    ),
    (&["man"], &[("bailey man ~/.local/share/man/man1", "a page for each command")]),
    (&["update"], &[("bailey update", "nothing is fetched or changed")]),
    (&["version"], &[("bailey version", ""), ("bailey --json version", "")]),
];

/// Puts the examples into the help of their commands.
pub(super) fn add(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (words, examples)| at(command, words, text(examples)))
}

fn at(command: Command, words: &[&'static str], help: String) -> Command {
    match words.split_first() {
        None => {
            // What a command says of its own stays, below.
            let own = command.get_after_help().map(|own| format!("\n\n{own}")).unwrap_or_default();
            command.after_help(help + &own)
        }
        Some((word, rest)) if command.find_subcommand(word).is_some() => {
            command.mut_subcommand(word, |command| at(command, rest, help))
        }
        Some(_) => command,
    }
}

fn text(examples: &[(&str, &str)]) -> String {
    let width = examples.iter().map(|(typed, _)| typed.len()).max().unwrap_or_default();
    let line = |(typed, what): &(&str, &str)| match *what {
        "" => format!("  {typed}"),
        what => format!("  {typed:width$}    {what}"),
    };
    let lines: Vec<String> = examples.iter().map(line).collect();
    format!("Example:\n{}", lines.join("\n"))
}
